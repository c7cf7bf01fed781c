/* SPDX-License-Identifier: Apache-2.0 */
/* Phases: a ConvTranspose that makes its input larger by whole factors becomes a convolution of the input,
 * which computes all results that one pixel stands for (its phases) as channels, and DepthToSpace. Results by
 * phases have windows of their own; one window covers them, with zeros where a phase has no weight. For
 * targets whose convolutions are faster by more than the zeros cost.
 *
 * Along a dim, y[block * q + r] is the sum of x[q + d] * w[r + pad - d * stride] over all d. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { BIAS = 2, PLANE = 2, RANK = 4 };

typedef struct phases {
    const ir_node *node;
    const grt_tensor *w, *bias;                      /* [in, out, kernel...]; bias may be NULL */
    int64_t kernel[PLANE], pad[PLANE], reach[PLANE]; /* reach: pixels on either side that results depend on */
    int64_t stride, block;                           /* block: results for a pixel, along each dim */
} phases;

static int64_t attr_at(const ir_node *node, const char *name, int32_t i, int64_t otherwise)
{
    size_t n;
    const int64_t *v = grt_attr_ints(&node->desc, name, &n);
    return v && (size_t)i < n ? v[i] : otherwise;
}

static bool is_plain(const ir_node *node)
{
    const char *pad = grt_attr_string(&node->desc, "auto_pad", "NOTSET");
    size_t n;
    return grt_attr_int(&node->desc, "group", 1) == 1 && !grt_attr_ints(&node->desc, "output_shape", &n) &&
           !strcmp(pad, "NOTSET") && attr_at(node, "dilations", 0, 1) == 1 &&
           attr_at(node, "dilations", 1, 1) == 1;
}

static int64_t phases_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The offsets of pixels that results of one pixel depend on, and whether there are as many results along the
 * dim as the block says. */
static bool read_dim(phases *p, int32_t d, bool single)
{
    const ir_node *node = p->node;
    const int64_t end = attr_at(node, "pads", d + PLANE, 0), more = attr_at(node, "output_padding", d, 0);
    p->kernel[d] = p->w->dims[2 + d];
    if (p->stride < 1 || more < 0 || end > INT32_MAX || more > INT32_MAX ||
        attr_at(node, "pads", d, 0) > INT32_MAX || p->stride > INT32_MAX)
        return false;
    p->pad[d] = attr_at(node, "pads", d, 0);
    const int64_t results = p->kernel[d] + more - p->pad[d] - end; /* of a single pixel */
    if (attr_at(node, "strides", d, 1) != p->stride || p->pad[d] < 0 || end < 0 || results < 1)
        return false;
    const int64_t block = single ? results : p->stride;
    if (results != block || (d && block != p->block))
        return false;
    p->block = block;
    const int64_t first = -phases_floor_div(p->kernel[d] - 1 - p->pad[d], p->stride),
                  last = phases_floor_div(block - 1 + p->pad[d], p->stride);
    p->reach[d] = single ? 0 : last > -first ? last : -first;
    return true;
}

/* The convolution multiplies at most four times as much, which 3 x 3 windows with a stride of 2 do. */
static bool has_few_zeros(const phases *p)
{
    enum { MOST = 4 };
    double weights = 1, wanted = 1;
    for (int d = 0; d < PLANE; d++) {
        weights *= (double)p->block * (2 * (double)p->reach[d] + 1);
        wanted *= (double)p->kernel[d];
    }
    return weights <= MOST * wanted;
}

/* Windows that do not overlap need no zeros: they are a product of pixels. */
static bool read_phases(const ir_node *node, phases *p)
{
    const ir_value *x = ir_in(node, 0), *w = ir_in(node, 1), *bias = ir_in(node, BIAS);
    *p = (phases){.node = node, .w = w ? w->type.data : NULL, .bias = bias ? bias->type.data : NULL};
    if (!rewrite_is(node, "ConvTranspose") || !is_plain(node) || !x || x->type.rank != RANK || !p->w ||
        p->w->rank != RANK || (bias && !p->bias) ||
        !grt_dtype_in(p->w->dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)))
        return false;
    const grt_dims *dims = node->graph->module->dims;
    const bool single = grt_dim_equals(dims, x->type.dims[2], 1) && grt_dim_equals(dims, x->type.dims[3], 1);
    p->stride = attr_at(node, "strides", 0, 1);
    if (!read_dim(p, 0, single) || !read_dim(p, 1, single) || p->block < 2)
        return false;
    return has_few_zeros(p);
}

/* Which of the window's weights phase `r` has `offset` pixels away; -1: none. */
static int64_t tap(const phases *p, int32_t d, int64_t r, int64_t offset)
{
    const int64_t k = r + p->pad[d] - offset * p->stride;
    return k >= 0 && k < p->kernel[d] ? k : -1;
}

static ir_value *phases_make_weights(const phases *p, ir_graph *graph)
{
    const int64_t in = p->w->dims[0], out = p->w->dims[1], b = p->block;
    const int64_t dims[RANK] = {b * b * out, in, 2 * p->reach[0] + 1, 2 * p->reach[1] + 1};
    const size_t size = grt_dtype_size(p->w->dtype);
    grt_tensor *t = ir_constant_create(graph->module, p->w->dtype, RANK, dims);
    if (!t)
        return NULL;
    const char *from = p->w->data;
    char *to = t->data;
    for (int64_t f = 0; f < dims[0]; f++)
        for (int64_t c = 0; c < in; c++)
            for (int64_t i = -p->reach[0]; i <= p->reach[0]; i++)
                for (int64_t k = -p->reach[1]; k <= p->reach[1]; k++, to += size) {
                    const int64_t row = tap(p, 0, f / out / b, i), column = tap(p, 1, f / out % b, k);
                    const int64_t at = ((c * out + f % out) * p->kernel[0] + row) * p->kernel[1] + column;
                    if (row < 0 || column < 0)
                        memset(to, 0, size);
                    else
                        memcpy(to, from + at * (int64_t)size, size);
                }
    return ir_constant(graph, NULL, t);
}

/* Once for each phase. */
static ir_value *make_bias(const phases *p, ir_graph *graph)
{
    const int64_t out = p->w->dims[1], n = p->block * p->block;
    const size_t bytes = (size_t)out * grt_dtype_size(p->bias->dtype);
    grt_tensor *t = ir_constant_create(graph->module, p->bias->dtype, 1, (int64_t[]){n * out});
    for (int64_t i = 0; t && i < n; i++)
        memcpy((char *)t->data + (size_t)i * bytes, p->bias->data, bytes);
    return t ? ir_constant(graph, NULL, t) : NULL;
}

static ir_value *phases_made(ir_node *node)
{
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_value *make_conv(const phases *p, ir_node *before)
{
    ir_graph *graph = before->graph;
    ir_value *in[] = {ir_in(p->node, 0), phases_make_weights(p, graph), p->bias ? make_bias(p, graph) : NULL};
    if (!in[1] || (p->bias && !in[2]))
        return NULL;
    ir_node *conv =
        ir_node_create(graph, before, "", "Conv", p->node->desc.name, p->bias ? BIAS + 1 : BIAS, in, 1);
    if (!conv)
        return NULL;
    ir_attr_set_ints(conv, "pads", (int64_t[]){p->reach[0], p->reach[1], p->reach[0], p->reach[1]},
                     2 * PLANE);
    ir_attr_set_ints(conv, "kernel_shape", (int64_t[]){2 * p->reach[0] + 1, 2 * p->reach[1] + 1}, PLANE);
    return phases_made(conv);
}

/* An activation is the same before elements move, where the convolution can take it over. */
static ir_node *phases_activation_of(ir_value *value)
{
    ir_node *user = rewrite_only_user(value);
    if (!user || !user->row || !(user->row->flags & OP_POINTWISE) || user->n_out != 1 ||
        ir_in(user, 0) != value)
        return NULL;
    for (int32_t i = 1; i < user->n_in; i++)
        if (ir_in(user, i) && !(ir_in(user, i)->type.data && ir_in(user, i)->type.rank == 0))
            return NULL;
    return user;
}

static ir_value *phases_activate(const ir_node *act, ir_node *before, ir_value *x)
{
    enum { MOST = 3 };
    ir_value *in[MOST] = {x};
    if (act->n_in > MOST)
        return NULL;
    for (int32_t i = 1; i < act->n_in; i++)
        in[i] = ir_in(act, i);
    ir_node *node = ir_node_create(before->graph, before, act->desc.domain, act->desc.op, act->desc.name,
                                   act->n_in, in, 1);
    if (node)
        ir_attrs_copy(node, act);
    return phases_made(node);
}

static ir_value *spread(const phases *p, ir_node *before, ir_value *x)
{
    ir_node *node = ir_node_create(before->graph, before, "", "DepthToSpace", p->node->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    ir_attr_set_int(node, "blocksize", p->block);
    return phases_made(node);
}

/* The last node that took the place of this one, or the node itself. */
static ir_node *split(pass_context *context, ir_node *node)
{
    phases p;
    if (!read_phases(node, &p))
        return node;
    ir_node *act = phases_activation_of(node->out[0]), *last = act ? act : node, *const previous = last->prev;
    ir_value *y = make_conv(&p, last);
    if (y && act)
        y = phases_activate(act, last, y);
    y = y ? spread(&p, last, y) : NULL;
    if (y && rewrite_same_shape(&y->type, &last->out[0]->type) && rewrite_replace_node(last, y)) {
        if (act)
            ir_node_remove(node);
        context->changed++;
        return y->producer;
    }
    while (last->prev != previous)
        ir_node_remove(last->prev);
    return node;
}

static grt_status phases_visit(pass_context *context, ir_graph *graph)
{
    for (ir_node *node = graph->first; node; node = node->next)
        node = split(context, node);
    return GRT_OK;
}

grt_status pass_phases(pass_context *context)
{
    return context->target->traits->splits_phases ? rewrite_each_graph(context, phases_visit) : GRT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and shifts per channel: batch normalisation, and Mul, Add and the like by constants, go into the
 * weights of the convolution or product before them, also past a Transpose or a Reshape that keeps channels
 * (the scale of a layer in ConvNeXt and its kin), or a Reshape that makes several dims of them (biases of
 * heads). A batch normalisation that has none before it becomes a Mul and an Add. */
#include "graph/passes/channel_affine.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/simplify.h"
#include "graph/ir/constant.h"

#include <math.h>
#include <string.h>

/* A constant that varies over dim `channel` of a result of rank `rank` only: its elements by channel. */
static bool affine_per_channel(const grt_tensor *t, int32_t rank, int32_t channel, int64_t n)
{
    if (!t || !grt_dtype_in(t->dtype, GRT_SET_FLOATS) || t->rank > rank)
        return false;
    for (int32_t i = 0; i < t->rank; i++) {
        bool here = i + rank - t->rank == channel;
        if (t->dims[i] != 1 && !(here && t->dims[i] == n))
            return false;
    }
    return true;
}

/* ---- where it goes ---- */

/* A node whose constant weights make the channels of its result. */
typedef struct host {
    ir_node *node;
    const grt_tensor *weight;
    int64_t n; /* channels of the result */
    int64_t outer,
        inner; /* weight elements: [outer][channels per group][inner], group after group if outer is 1... */
    int64_t groups;  /* ConvTranspose: weight is [groups][outer][n / groups][inner] */
    int32_t channel; /* dim of the result */
    ir_node *add;    /* MatMul: the Add behind it, whose other input is its bias; or NULL */
    int32_t bias_at; /* input of the node, or of the Add, that is the bias */
} host;

/* The constant that this node adds to each channel of `x`: which of its inputs it is, else -1. */
static int32_t bias_input(const ir_node *node, const ir_value *x, int32_t channel, int64_t n)
{
    if (!rewrite_is(node, "Add") || !rewrite_same_shape(&x->type, &node->out[0]->type))
        return -1;
    const int32_t at = ir_in(node, 0) == x ? 1 : 0;
    const ir_value *bias = ir_in(node, at);
    return bias && bias != x && affine_per_channel(bias->type.data, x->type.rank, channel, n) ? at : -1;
}

/* A product has its bias in the Add behind it. Weights that others read stay as they are. */
static bool find_product(ir_node *node, host *h)
{
    const ir_value *out = node->out[0];
    if (h->weight->rank != 2 || out->type.rank < 2 || ir_in(node, 1)->n_uses != 1)
        return false;
    h->n = h->weight->dims[1];
    h->outer = h->weight->dims[0];
    h->inner = 1;
    h->channel = out->type.rank - 1;
    ir_node *user = rewrite_only_user(out);
    h->bias_at = user ? bias_input(user, out, h->channel, h->n) : -1;
    h->add = h->bias_at < 0 ? NULL : user;
    return true;
}

static bool find_host(ir_node *node, host *h)
{
    const ir_value *w = node ? ir_in(node, 1) : NULL;
    const grt_tensor *t = w ? w->type.data : NULL;
    if (!t || t->rank < 2 || !grt_dtype_in(t->dtype, GRT_SET_FLOATS))
        return false;
    *h = (host){.node = node, .weight = t, .groups = 1, .channel = 1, .bias_at = 2};
    if (rewrite_is(node, "Conv")) { /* [M, C/group, k...] */
        h->n = t->dims[0];
        h->outer = 1;
        h->inner = grt_dims_product(t->dims, 1, t->rank);
    } else if (rewrite_is(node, "ConvTranspose")) { /* [C, M/group, k...] */
        h->groups = grt_attr_int(&node->desc, "group", 1);
        if (h->groups < 1 || t->dims[0] % h->groups)
            return false;
        h->n = t->dims[1] * h->groups;
        h->outer = t->dims[0] / h->groups;
        h->inner = grt_dims_product(t->dims, 2, t->rank);
    } else if (rewrite_is(node, "Gemm") && t->rank == 2) {
        bool rows = grt_attr_int(&node->desc, "transB", 0) != 0; /* [N, K] */
        h->n = t->dims[rows ? 0 : 1];
        h->outer = rows ? 1 : t->dims[0];
        h->inner = rows ? t->dims[1] : 1;
    } else if (!rewrite_is(node, "MatMul") || !find_product(node, h)) {
        return false;
    }
    return h->n > 0;
}

static ir_value *scaled_weight(const host *h, const channel_affine *a)
{
    ir_module *module = h->node->graph->module;
    grt_tensor *t = ir_constant_create(module, h->weight->dtype, h->weight->rank, h->weight->dims);
    if (!t)
        return NULL;
    int64_t per_group = h->n / h->groups, at = 0;
    for (int64_t g = 0; g < h->groups; g++)
        for (int64_t o = 0; o < h->outer; o++)
            for (int64_t c = 0; c < per_group; c++)
                for (int64_t i = 0; i < h->inner; i++, at++)
                    channel_affine_store(t, at,
                                         grt_tensor_double(h->weight, at) * a->scale[g * per_group + c]);
    return ir_constant(h->node->graph, NULL, t);
}

static ir_value *bias_of(const host *h)
{
    return h->add ? ir_in(h->add, h->bias_at) : rewrite_is(h->node, "MatMul") ? NULL : ir_in(h->node, 2);
}

/* The bias that the host has now, by channel: Gemm's C times beta. */
static bool read_bias(const host *h, double *bias)
{
    const ir_value *value = bias_of(h);
    double beta = rewrite_is(h->node, "Gemm") ? (double)grt_attr_float(&h->node->desc, "beta", 1) : 1;
    if (!value)
        return true;
    if (!value->type.data || !affine_per_channel(value->type.data, h->channel + 1, h->channel, h->n))
        return false;
    int64_t elements = grt_tensor_elements(value->type.data);
    for (int64_t i = 0; i < h->n; i++)
        bias[i] = beta * grt_tensor_double(value->type.data, elements == 1 ? 0 : i);
    return true;
}

static ir_value *new_bias(const host *h, const double *bias)
{
    grt_tensor *t = ir_constant_create(h->node->graph->module, h->weight->dtype, 1, &h->n);
    if (!t)
        return NULL;
    for (int64_t i = 0; i < h->n; i++)
        channel_affine_store(t, i, bias[i]);
    return ir_constant(h->node->graph, NULL, t);
}

/* Puts an Add behind the product. */
static bool add_bias(const host *h, ir_value *bias)
{
    ir_value *out = h->node->out[0];
    ir_node *add = ir_node_create(h->node->graph, h->node->next, "", "Add", h->node->desc.name, 2,
                                  (ir_value *[]){out, bias}, 1);
    if (!add || op_infer_node(add) != GRT_OK)
        return false;
    ir_value_replace(out, add->out[0]);
    ir_node_set_input(add, 0, out);
    return true;
}

static bool set_bias(const host *h, ir_value *bias)
{
    if (h->add)
        ir_node_set_input(h->add, h->bias_at, bias);
    else if (rewrite_is(h->node, "MatMul"))
        return add_bias(h, bias);
    else if (h->node->n_in > 2)
        ir_node_set_input(h->node, 2, bias);
    else
        ir_node_add_input(h->node, bias);
    return true;
}

static bool absorb(const host *h, const channel_affine *a, grt_arena *scratch)
{
    double *bias = GRT_ARENA_ARRAY(scratch, double, h->n);
    if (!bias || !read_bias(h, bias))
        return false;
    for (int64_t i = 0; i < h->n; i++)
        bias[i] = bias[i] * a->scale[i] + a->shift[i];
    bool needs_bias = a->shifts || bias_of(h);
    ir_value *weight = a->scales ? scaled_weight(h, a) : ir_in(h->node, 1);
    ir_value *shift = needs_bias ? new_bias(h, bias) : NULL;
    if (!weight || (needs_bias && !shift))
        return false;
    if (needs_bias && !set_bias(h, shift))
        return false;
    ir_node_set_input(h->node, 1, weight);
    if (needs_bias && rewrite_is(h->node, "Gemm"))
        ir_attr_remove(h->node, "beta");
    return true;
}

/* The channels, which are the last dim, become the last dims of `to`. */
static bool split_channels(channel_place *m, const ir_type *to, const grt_dims *dims)
{
    const int64_t n = m->sizes[0];
    int64_t all = 1, dim;
    int32_t k = 0;
    while (k < to->rank && (!k || all < n) && grt_dim_is_const(dims, to->dims[to->rank - 1 - k], &dim) &&
           dim > 0 && dim <= n / all) {
        all *= dim;
        k++;
    }
    if (!k || all != n)
        return false;
    m->channel = to->rank - k;
    m->n_dims = k;
    for (int32_t i = 0; i < k; i++)
        grt_dim_is_const(dims, to->dims[m->channel + i], &m->sizes[i]);
    return true;
}

static bool step_over(channel_place *m, const ir_node *user)
{
    const ir_type *from = &m->value->type, *to = &user->out[0]->type;
    size_t n;
    const int64_t *perm = grt_attr_ints(&user->desc, "perm", &n);
    if (m->n_dims > 1)
        return false;
    if (rewrite_is(user, "Transpose") && perm && n == (size_t)from->rank) {
        int32_t at = 0;
        while (at < from->rank - 1 && perm[at] != m->channel)
            at++;
        m->channel = at;
    } else if (!rewrite_is_reshape(user) || ir_in(user, 0) != m->value || m->channel != from->rank - 1 ||
               !split_channels(m, to, user->graph->module->dims)) {
        return false;
    }
    m->value = user->out[0];
    return true;
}

static channel_place find_made(const host *h)
{
    channel_place m = {h->add ? h->add->out[0] : h->node->out[0], h->channel, 1, {h->n}};
    const ir_node *user = rewrite_only_user(m.value);
    while (user && step_over(&m, user))
        user = rewrite_only_user(m.value);
    return m;
}

/* A scalar behind a product without bias is the epilogue's, and a bias of its own too, unless the channels
 * have become several dims. */
static bool leaves_to_epilogue(const host *h, const channel_place *m, const channel_affine *a)
{
    if (!rewrite_is(h->node, "MatMul") || h->add || (m->n_dims > 1 && a->shifts))
        return false;
    bool equal = true;
    for (int64_t i = 1; i < a->n; i++)
        equal &= a->scale[i] == a->scale[0];
    return equal;
}

/* The input of a follower that is no constant. */
static ir_value *followed(const ir_node *user)
{
    return ir_in(user, ir_in(user, 0)->type.data ? 1 : 0);
}

/* Fold what follows the node into it, as long as something does. */
static void fold_followers(pass_context *context, ir_node *node, grt_arena *scratch)
{
    host h;
    while (find_host(node, &h)) {
        rewrite_clear_scratch(context, scratch);
        const channel_place m = find_made(&h);
        ir_node *user = rewrite_only_user(m.value);
        channel_affine a = {0};
        const int32_t rank = m.value->type.rank;
        if (!user || rank < 2 || ir_in(user, 0) == ir_in(user, 1))
            return;
        const bool normalises =
            m.channel == 1 && m.n_dims == 1 && channel_affine_read_norm(user, &a, scratch, h.n);
        if (!normalises &&
            (!channel_affine_read_arithmetic(user, &m, &a, scratch, h.n) || leaves_to_epilogue(&h, &m, &a)))
            return;
        if (!rewrite_same_shape(&m.value->type, &user->out[0]->type) || !absorb(&h, &a, scratch))
            return;
        ir_node_absorb_name(node, user);
        ir_value *last = followed(user); /* not m.value where a bias became an Add of its own */
        if (!rewrite_take_over_node(user, last))
            return; /* cannot be: it is made by a node and has no other use */
        rewrite_forget_names(node->out[0], last);
        context->changed++;
        if (ir_constants_collect(context->module) != GRT_OK)
            return; /* the weights that were scaled before keep their memory */
    }
}

/* ---- batch normalisation on its own ---- */

/* Values of the channels, which are dim `channel` of a result of rank `rank`. */
static ir_value *channel_constant(const ir_node *node, const double *values, int64_t n, int32_t channel,
                                  int32_t rank)
{
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = channel; i < rank; i++)
        dims[i - channel] = i > channel ? 1 : n;
    grt_tensor *t = ir_constant_create(node->graph->module, node->out[0]->type.dtype, rank - channel, dims);
    if (!t)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        channel_affine_store(t, i, values[i]);
    return ir_constant(node->graph, NULL, t);
}

/* The Transpose that brings the channels of a normalisation alone, whose result is only transposed again: it
 * may as well come behind, where both may cancel. NULL: there is none. */
static ir_node *transpose_for(const ir_node *node, int64_t *out_perm)
{
    const ir_value *x = ir_in(node, 0), *y = node->out[0];
    ir_node *transpose = rewrite_producer(x, "Transpose");
    if (!transpose || transpose->graph != node->graph || x->n_uses != 1 ||
        !simplify_permutation(transpose, x->type.rank, out_perm))
        return NULL;
    for (const ir_use *use = y->uses; use; use = use->next)
        if (!rewrite_is(use->node, "Transpose"))
            return NULL;
    return transpose;
}

/* x * scale + shift, by new nodes in front of `node`. */
static ir_value *scaled_and_shifted(ir_node *node, ir_value *x, const channel_affine *a, int32_t channel)
{
    const char *name = node->desc.name;
    ir_value *scale = channel_constant(node, a->scale, a->n, channel, x->type.rank);
    ir_value *shift = channel_constant(node, a->shift, a->n, channel, x->type.rank);
    if (!scale || !shift)
        return NULL; /* over the budget */
    ir_node *mul = ir_node_create(node->graph, node, "", "Mul", name, 2, (ir_value *[]){x, scale}, 1);
    if (!mul || op_infer_node(mul) != GRT_OK)
        return NULL;
    ir_node *add =
        ir_node_create(node->graph, node, "", "Add", name, 2, (ir_value *[]){mul->out[0], shift}, 1);
    return add && op_infer_node(add) == GRT_OK ? add->out[0] : NULL;
}

/* What cannot be made leaves the normalisation as it is. */
static void split_batchnorm(pass_context *context, ir_node *node, grt_arena *scratch)
{
    ir_value *x = ir_in(node, 0);
    const ir_value *parameter = ir_in(node, 1);
    channel_affine a = {0};
    int64_t perm[GRT_MAX_RANK];
    rewrite_clear_scratch(context, scratch);
    if (!x || x->type.rank < 2 || !grt_dtype_in(x->type.dtype, GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)) ||
        !parameter || !parameter->type.data || x->type.dtype != node->out[0]->type.dtype ||
        !channel_affine_read_norm(node, &a, scratch, grt_tensor_elements(parameter->type.data)))
        return;
    ir_node *transpose = transpose_for(node, perm);
    ir_value *y = transpose ? scaled_and_shifted(node, ir_in(transpose, 0), &a, (int32_t)perm[1])
                            : scaled_and_shifted(node, x, &a, 1);
    if (y && transpose) {
        ir_node *behind = ir_node_create(node->graph, node, "", "Transpose", node->desc.name, 1, &y, 1);
        if (behind)
            ir_attr_set_ints(behind, "perm", perm, (size_t)x->type.rank);
        y = behind && op_infer_node(behind) == GRT_OK ? behind->out[0] : NULL;
    }
    if (!y || !rewrite_take_over_node(node, y))
        return;
    if (transpose)
        simplify_drop_if_dead(transpose);
    context->changed++;
}

static grt_status affine_visit_with(pass_context *context, ir_graph *graph, grt_arena *scratch)
{
    /* A follower may be the next node: go on from what is after it only then. */
    for (ir_node *node = graph->first; node; node = node->next)
        fold_followers(context, node, scratch);
    IR_FOR_EACH_NODE (node, graph)
        if (rewrite_is(node, "BatchNormalization"))
            split_batchnorm(context, node, scratch);
    return GRT_OK;
}

static grt_status affine_visit(pass_context *context, ir_graph *graph)
{
    grt_arena *scratch = grt_arena_create();
    grt_status status = scratch ? affine_visit_with(context, graph, scratch) : grt_fail_memory(0);
    if (scratch)
        rewrite_clear_scratch(context, scratch);
    grt_arena_release(scratch);
    return status;
}

grt_status pass_affine(pass_context *context)
{
    return rewrite_each_graph(context, affine_visit);
}

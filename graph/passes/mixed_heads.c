/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of scores that are mixed with each other ("talking heads": CaiT, EfficientFormer V2, DeepViT), by a
 * matrix over heads, in front of a softmax, behind it, or both:
 *
 *   transpose(transpose(s) w) + bias, or a 1 x 1 convolution, or w times s as one matrix of an image
 *
 * Each becomes graphrt::HeadMix, which reads s where it lies; what is next to a softmax over keys takes it
 * in. A bias in front of a softmax is the same for all keys of a row, so that it cancels. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"
#include "src/base/element.h"

#include <math.h>

enum { RANK = 4, HEADS = 1, MOST_HEADS = 32, BEFORE = 1, AFTER, BIAS };

typedef struct heads_mixture {
    ir_value *x;
    const grt_tensor *matrix; /* [to, from, 1...], or [from, to] */
    bool is_turned;           /* the latter */
    ir_value *bias;           /* a constant, or NULL */
} heads_mixture;

static bool is_constant_of(const ir_value *value, int32_t rank)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    return t && t->rank == rank && grt_dtype_in(t->dtype, GRT_SET_FLOATS);
}

/* True if there are few heads on both sides. */
static bool has_few_heads(const grt_tensor *matrix)
{
    return matrix->dims[0] >= 1 && matrix->dims[0] <= MOST_HEADS && matrix->dims[1] >= 1 &&
           matrix->dims[1] <= MOST_HEADS;
}

static const int64_t *mixed_perm(const ir_node *transpose)
{
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    return perm && n == RANK ? perm : NULL;
}

/* The node that makes a value for one node alone. */
static const ir_node *only_producer(const ir_value *value, const char *op)
{
    const ir_node *node = rewrite_producer(value, op);
    return node && value->n_uses == 1 && !rewrite_is_output(value) ? node : NULL;
}

/* True if `to_last` moves heads behind all others, and `back` undoes it. */
static bool moves_heads(const int64_t *to_last, const int64_t *back)
{
    if (!to_last || !back || to_last[RANK - 1] != HEADS)
        return false;
    for (int32_t i = 0; i < RANK; i++)
        if (to_last[back[i]] != i)
            return false;
    return true;
}

/* transpose(transpose(x) w + bias) */
static bool read_product(const ir_node *node, heads_mixture *out)
{
    const int64_t *back = rewrite_is(node, "Transpose") ? mixed_perm(node) : NULL;
    if (!back)
        return false;
    const ir_node *sum = only_producer(ir_in(node, 0), "Add"), *product;
    *out = (heads_mixture){.is_turned = true};
    if (sum) {
        const int32_t at = is_constant_of(ir_in(sum, 1), 1) ? 1 : 0;
        out->bias = ir_in(sum, at);
        product = is_constant_of(out->bias, 1) ? only_producer(ir_in(sum, 1 - at), "MatMul") : NULL;
    } else {
        product = only_producer(ir_in(node, 0), "MatMul");
    }
    const ir_node *turn = product ? only_producer(ir_in(product, 0), "Transpose") : NULL;
    if (!turn || !is_constant_of(ir_in(product, 1), 2) || !moves_heads(mixed_perm(turn), back))
        return false;
    out->x = ir_in(turn, 0);
    out->matrix = ir_in(product, 1)->type.data;
    return true;
}

/* A softmax over keys, by itself or in a mixture. */
static bool is_softmax(const ir_node *node)
{
    if (!node || !node->out[0] || node->out[0]->type.rank != RANK)
        return false;
    return grt_op_is(&node->desc, "graphrt", "HeadMix")
               ? grt_attr_int(&node->desc, "softmax", 0) != 0
               : rewrite_is(node, "Softmax") &&
                     grt_axis(grt_attr_int(&node->desc, "axis", -1), RANK) == RANK - 1;
}

/* True of dims in front of which a value is a row of planes: 1 x 1 taps, without a group. */
static bool is_pointwise_conv(const ir_node *conv)
{
    const grt_tensor *w = ir_in(conv, 1)->type.data;
    size_t n;
    const int64_t *pads = grt_attr_ints(&conv->desc, "pads", &n);
    for (size_t i = 0; pads && i < n; i++)
        if (pads[i])
            return false;
    const int64_t *strides = grt_attr_ints(&conv->desc, "strides", &n);
    for (size_t i = 0; strides && i < n; i++)
        if (strides[i] != 1)
            return false;
    return w->dims[2] == 1 && w->dims[3] == 1 && grt_attr_int(&conv->desc, "group", 1) == 1;
}

/* A convolution is one over heads if there is a softmax over keys on one of its sides. */
static bool read_conv(const ir_node *node, heads_mixture *out)
{
    if (!rewrite_is(node, "Conv") || !is_constant_of(ir_in(node, 1), RANK) || !is_pointwise_conv(node) ||
        (ir_in(node, 2) && !is_constant_of(ir_in(node, 2), 1)))
        return false;
    const ir_node *user = rewrite_only_user(node->out[0]);
    *out = (heads_mixture){.x = ir_in(node, 0), .matrix = ir_in(node, 1)->type.data, .bias = ir_in(node, 2)};
    return is_softmax(out->x->producer) || is_softmax(user);
}

/* Dims [batch, heads, queries, keys] and [batch, heads, queries * keys]. */
static bool joins_planes(const ir_value *planes, const ir_value *joined)
{
    return planes->type.rank == RANK && joined->type.rank == RANK - 1 &&
           planes->type.dims[0] == joined->type.dims[0] && planes->type.dims[1] == joined->type.dims[1];
}

/* reshape(w reshape(x)) */
static bool read_left_product(const ir_node *node, heads_mixture *out)
{
    if (!rewrite_is_reshape(node))
        return false;
    const ir_node *product = only_producer(ir_in(node, 0), "MatMul");
    ir_value *joined = product ? ir_in(product, 1) : NULL;
    const ir_node *join = joined && joined->n_uses == 1 ? joined->producer : NULL;
    if (!join || !rewrite_is_reshape(join) || !is_constant_of(ir_in(product, 0), 2) ||
        !joins_planes(ir_in(join, 0), joined) || !joins_planes(node->out[0], product->out[0]))
        return false;
    *out = (heads_mixture){.x = ir_in(join, 0), .matrix = ir_in(product, 0)->type.data};
    for (int32_t i = 2; i < RANK; i++)
        if (out->x->type.dims[i] != node->out[0]->type.dims[i])
            return false;
    return true;
}

/* [to, from] */
static ir_value *matrix_of(ir_graph *graph, const heads_mixture *m)
{
    const int64_t to = m->matrix->dims[m->is_turned], from = m->matrix->dims[!m->is_turned];
    grt_tensor *t = ir_constant_create(graph->module, m->matrix->dtype, 2, (int64_t[]){to, from});
    for (int64_t i = 0; t && i < to; i++)
        for (int64_t j = 0; j < from; j++)
            grt_element_put(t, i * from + j,
                            grt_element_get(m->matrix, m->is_turned ? j * to + i : i * from + j));
    return t ? ir_constant(graph, NULL, t) : NULL;
}

static ir_value *mixture_put(pass_context *context, ir_node *before, ir_value *const *in, bool softmax)
{
    int32_t n = BIAS + 1;
    while (n > 1 && !in[n - 1])
        n--;
    ir_node *made =
        ir_node_create(before->graph, before, "graphrt", "HeadMix", before->desc.name, n, (ir_value **)in, 1);
    if (made && softmax)
        ir_attr_set_int(made, "softmax", 1);
    return rewrite_offered(context, made);
}

/* What a mixture reads, if that is a softmax for it alone that mixes no heads behind itself. */
static const ir_node *mixed_softmax_of(const ir_value *x)
{
    const ir_node *node = x->producer;
    return is_softmax(node) && node->graph == x->graph && x->n_uses == 1 && !rewrite_is_output(x) &&
                   (rewrite_is(node, "Softmax") || (!ir_in(node, AFTER) && !ir_in(node, BIAS)))
               ? node
               : NULL;
}

static void mixed_product(pass_context *context, ir_node *node)
{
    heads_mixture m;
    if (!node->out[0] || node->out[0]->type.rank != RANK ||
        !(read_product(node, &m) || read_conv(node, &m) || read_left_product(node, &m)) ||
        m.x->type.rank != RANK || m.x->graph != node->graph || m.x->type.dtype != m.matrix->dtype ||
        !has_few_heads(m.matrix))
        return;
    const ir_node *softmax = mixed_softmax_of(m.x);
    ir_value *matrix = matrix_of(node->graph, &m), *made = NULL;
    if (matrix && softmax)
        made = mixture_put(context, node,
                           (ir_value *[]){ir_in(softmax, 0),
                                          rewrite_is(softmax, "Softmax") ? NULL : ir_in(softmax, BEFORE),
                                          matrix, m.bias},
                           true);
    if (matrix && !made)
        made = mixture_put(context, node, (ir_value *[]){m.x, matrix, NULL, m.bias}, false);
    if (made && rewrite_same_shape(&made->type, &node->out[0]->type) && rewrite_take_over_node(node, made))
        context->changed++;
}

static bool mixed_is_finite(const ir_value *constant)
{
    const grt_tensor *t = constant ? constant->type.data : NULL;
    for (int64_t i = 0; t && i < grt_tensor_elements(t); i++)
        if (!isfinite(grt_element_get(t, i)))
            return false;
    return true;
}

/* softmax(w x + bias), of a mixture that nothing else reads. */
static void mixed_softmax(pass_context *context, ir_node *node)
{
    const ir_value *x = ir_in(node, 0);
    const ir_node *mix = x ? x->producer : NULL;
    if (!is_softmax(node) || !rewrite_is(node, "Softmax") || !mix ||
        !grt_op_is(&mix->desc, "graphrt", "HeadMix") || is_softmax(mix) || mix->graph != node->graph ||
        x->n_uses != 1 || rewrite_is_output(x) || !mixed_is_finite(ir_in(mix, BIAS)))
        return;
    ir_value *made =
        mixture_put(context, node, (ir_value *[]){ir_in(mix, 0), ir_in(mix, BEFORE), NULL, NULL}, true);
    if (made && rewrite_take_over_node(node, made))
        context->changed++;
}

static void mixed_heads_visit(pass_context *context, ir_node *node)
{
    if (rewrite_is(node, "Softmax"))
        mixed_softmax(context, node);
    else
        mixed_product(context, node);
}

grt_status pass_mixed_heads(pass_context *context)
{
    return rewrite_each_node(context, mixed_heads_visit);
}

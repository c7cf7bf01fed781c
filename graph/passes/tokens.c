/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: a 1 x 1 convolution whose result becomes queries, keys or values is a product of tokens with
 * weights, between transposes. Attention in pictures (CoAtNet, detectors, denoisers) then has the form that
 * pass attention finds packed, and the moves of both cancel. So does values * transposed weights, which
 * becomes the transpose of weights * transposed values. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { DEEPEST = 8, BIAS = 2, MOST_RANK = 4 };

static bool all_are(const ir_node *node, const char *name, int64_t value)
{
    size_t n;
    const int64_t *v = grt_attr_ints(&node->desc, name, &n);
    for (size_t i = 0; v && i < n; i++)
        if (v[i] != value)
            return false;
    return true;
}

/* Constant weights, all channels for all, one pixel for each result. */
static bool is_pixel_conv(const ir_node *node)
{
    const ir_value *x = ir_in(node, 0), *w = ir_in(node, 1), *bias = ir_in(node, BIAS);
    const grt_tensor *t = w ? w->type.data : NULL;
    if (!rewrite_is(node, "Conv") || !x || !t || x->type.rank != t->rank || t->rank < 3 ||
        t->rank > MOST_RANK || (bias && !bias->type.data) ||
        !grt_dtype_in(t->dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)))
        return false;
    for (int32_t i = 2; i < t->rank; i++)
        if (t->dims[i] != 1)
            return false;
    return grt_attr_int(&node->desc, "group", 1) == 1 && all_are(node, "strides", 1) &&
           all_are(node, "pads", 0);
}

static bool tokens_is_move(const ir_node *node)
{
    return rewrite_has(node, OP_VIEW | OP_PARTS) || (node->row && node->row->cost == OP_COST_MOVE) ||
           rewrite_is(node, "Cast");
}

static bool is_scaled(const ir_node *node)
{
    double v;
    return (rewrite_is(node, "Mul") || rewrite_is(node, "Div")) &&
           (ir_const_float(ir_in(node, 1), &v) || ir_const_float(ir_in(node, 0), &v));
}

/* True if the value, moved or scaled, meets another one that is no constant in a product. */
static bool meets_another(const ir_value *value, int depth)
{
    for (const ir_use *use = value->uses; use; use = use->next) {
        const ir_node *node = use->node;
        if (!node || node->graph != value->graph)
            continue;
        if (rewrite_is(node, "MatMul") && !ir_in(node, 0)->type.data && !ir_in(node, 1)->type.data)
            return true;
        if (depth == DEEPEST || use->index != 0 || !(tokens_is_move(node) || is_scaled(node)))
            continue;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i] && meets_another(node->out[i], depth + 1))
                return true;
    }
    return false;
}

/* [out, in, 1...] as [in, out]. */
static ir_value *make_weights(ir_graph *graph, const grt_tensor *w)
{
    const int64_t out = w->dims[0], in = w->dims[1];
    const size_t size = grt_dtype_size(w->dtype);
    grt_tensor *t = ir_constant_create(graph->module, w->dtype, 2, (int64_t[]){in, out});
    if (!t)
        return NULL;
    const char *from = w->data;
    char *to = t->data;
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++, to += size)
            memcpy(to, from + (o * in + i) * (int64_t)size, size);
    return ir_constant(graph, NULL, t);
}

static ir_value *put(ir_node *before, const char *op, ir_value *a, ir_value *b)
{
    ir_node *node = a ? ir_node_create(before->graph, before, "", op, before->desc.name, b ? 2 : 1,
                                       (ir_value *[]){a, b}, 1)
                      : NULL;
    return node && op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

static ir_value *transposed(ir_node *before, ir_value *x, const int64_t *perm)
{
    ir_node *node =
        x ? ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1) : NULL;
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)x->type.rank);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* Channels to the end, or back to where they were. */
static ir_value *turned(ir_node *before, ir_value *x, bool to_last)
{
    int64_t perm[GRT_MAX_RANK];
    const int32_t rank = x ? x->type.rank : 0;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : to_last ? (i == rank - 1 ? 1 : i + 1) : i == 1 ? rank - 1 : i - 1;
    return transposed(before, x, perm);
}

static void as_product(pass_context *context, ir_node *conv)
{
    ir_node *const previous = conv->prev;
    ir_value *w = make_weights(conv->graph, ir_in(conv, 1)->type.data);
    ir_value *y = w ? put(conv, "MatMul", turned(conv, ir_in(conv, 0), true), w) : NULL;
    if (y && ir_in(conv, BIAS))
        y = put(conv, "Add", y, ir_in(conv, BIAS));
    y = turned(conv, y, false);
    if (y && rewrite_same_shape(&y->type, &conv->out[0]->type) && rewrite_replace_node(conv, y)) {
        context->changed++;
        return;
    }
    while (conv->prev != previous) /* it stays: what was begun goes */
        ir_node_remove(conv->prev);
}

static bool tokens_swaps_last_two(const ir_node *transpose)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(&transpose->desc, "perm", &n);
    const int32_t rank = transpose->out[0]->type.rank;
    if (!perm || rank < 2 || n != (size_t)rank)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (perm[i] != (i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2))
            return false;
    return true;
}

/* The weights of values * transposed weights, or NULL. */
static ir_value *right_weights(const ir_node *product)
{
    const ir_node *transpose =
        rewrite_is(product, "MatMul") ? rewrite_producer(ir_in(product, 1), "Transpose") : NULL;
    ir_value *weights = transpose && tokens_swaps_last_two(transpose) ? ir_in(transpose, 0) : NULL;
    const ir_node *cast = rewrite_producer(weights, "Cast");
    return rewrite_producer(cast ? ir_in(cast, 0) : weights, "Softmax") &&
                   ir_in(product, 0)->type.rank == weights->type.rank
               ? weights
               : NULL;
}

static ir_value *swapped(ir_node *before, ir_value *x)
{
    int64_t perm[GRT_MAX_RANK];
    const int32_t rank = x ? x->type.rank : 0;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
    return transposed(before, x, perm);
}

static void put_weights_first(pass_context *context, ir_node *product, ir_value *weights)
{
    ir_node *const previous = product->prev;
    ir_value *values = swapped(product, ir_in(product, 0));
    ir_value *y = values ? swapped(product, put(product, "MatMul", weights, values)) : NULL;
    if (y && rewrite_same_shape(&y->type, &product->out[0]->type) && rewrite_replace_node(product, y)) {
        context->changed++;
        return;
    }
    while (product->prev != previous)
        ir_node_remove(product->prev);
}

static grt_status visit(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        ir_value *weights = right_weights(node);
        if (weights)
            put_weights_first(context, node, weights);
    }
    IR_FOR_EACH_NODE (node, graph)
        if (is_pixel_conv(node) && meets_another(node->out[0], 0))
            as_product(context, node);
    return GRT_OK;
}

grt_status pass_tokens(pass_context *context)
{
    return context->target->traits->channels_last ? rewrite_each_graph(context, visit) : GRT_OK;
}

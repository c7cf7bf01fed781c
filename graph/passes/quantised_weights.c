/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: products by constant weights that DequantizeLinear widens, and rows of them. */
#include "graph/passes/quantised.h"

/* Smaller weights are folded: they fit the caches as float32. */
enum { LEAST_ELEMENTS = 1 << 18 };

typedef struct weights {
    ir_node *dequantise;
    bool transposed; /* stored as [n, k] */
} weights;

static bool is_large_matrix(const ir_node *dequantise)
{
    if (!dequantise || dequantise->out[0]->type.rank != 2)
        return false;
    for (int32_t i = 0; i < dequantise->n_in; i++)
        if (ir_in(dequantise, i) && !ir_in(dequantise, i)->type.data)
            return false;
    return grt_tensor_elements(ir_in(dequantise, 0)->type.data) >= LEAST_ELEMENTS;
}

static bool reads_weights(const ir_value *value, weights *out)
{
    ir_node *transpose = rewrite_producer(value, "Transpose");
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    *out = (weights){.transposed = transpose != NULL};
    if (transpose && perm && (n != 2 || perm[0] != 1))
        return false;
    out->dequantise = rewrite_producer(transpose ? ir_in(transpose, 0) : value, "DequantizeLinear");
    return is_large_matrix(out->dequantise);
}

/* Gemm's C as a bias. */
static bool reads_gemm(const ir_node *node, weights *w, ir_value **bias)
{
    ir_value *c = ir_in(node, 2);
    if (grt_attr_int(&node->desc, "transA", 0) || grt_attr_float(&node->desc, "alpha", 1) != 1 ||
        (c && (grt_attr_float(&node->desc, "beta", 1) != 1 || c->type.rank != 1)))
        return false;
    if (grt_attr_int(&node->desc, "transB", 0))
        w->transposed = !w->transposed;
    *bias = c;
    return true;
}

static void quantised_weights_copy_blocks(ir_node *to, const ir_node *dequantise)
{
    ir_attr_set_int(to, "axis", grt_attr_int(&dequantise->desc, "axis", 1));
    ir_attr_set_int(to, "block_size", grt_attr_int(&dequantise->desc, "block_size", 0));
}

static void offer_replacement(pass_context *context, ir_node *node, ir_node *made)
{
    if (!quantised_offer(context, made, node->out[0]))
        return;
    if (rewrite_replace(node->out[0], made->out[0]))
        context->changed++;
    else
        ir_node_remove(made);
}

static void quantised_weights_make_product(pass_context *context, ir_node *node)
{
    weights w;
    ir_value *bias = NULL;
    const bool gemm = rewrite_is(node, "Gemm");
    if ((!gemm && !rewrite_is(node, "MatMul")) || !reads_weights(ir_in(node, 1), &w) ||
        (gemm && !reads_gemm(node, &w, &bias)))
        return;
    ir_value *in[] = {ir_in(node, 0), ir_in(w.dequantise, 0), ir_in(w.dequantise, 1), ir_in(w.dequantise, 2),
                      bias};
    ir_node *made = ir_node_create(node->graph, node, "graphrt", "WMatMul", node->desc.name,
                                   bias    ? 5
                                   : in[3] ? 4
                                           : 3,
                                   in, 1);
    if (!made)
        return;
    quantised_weights_copy_blocks(made, w.dequantise);
    ir_attr_set_int(made, "transB", w.transposed);
    offer_replacement(context, node, made);
}

/* Rows of a table: of words in front of a language model. */
static void make_gather(pass_context *context, ir_node *node)
{
    const ir_node *dequantise = rewrite_producer(ir_in(node, 0), "DequantizeLinear");
    if (!is_large_matrix(dequantise) || grt_axis(grt_attr_int(&node->desc, "axis", 0), 2) != 0)
        return;
    ir_value *in[] = {ir_in(node, 1), ir_in(dequantise, 0), ir_in(dequantise, 1), ir_in(dequantise, 2)};
    ir_node *made =
        ir_node_create(node->graph, node, "graphrt", "WGather", node->desc.name, in[3] ? 4 : 3, in, 1);
    if (!made)
        return;
    quantised_weights_copy_blocks(made, dequantise);
    offer_replacement(context, node, made);
}

grt_status quantised_weights(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph)
        if (node->n_out == 1 && node->out[0]->n_uses) {
            if (rewrite_is(node, "Gather"))
                make_gather(context, node);
            else
                quantised_weights_make_product(context, node);
        }
    return GRT_OK;
}

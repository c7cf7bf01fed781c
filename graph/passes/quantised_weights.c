/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `quantised`: products by constant weights that DequantizeLinear widens, and rows of them. */
#include "graph/passes/quantised.h"
#include "graph/ir/constant.h"
#include "src/base/element.h"

#include <string.h>

typedef struct weights {
    ir_node *dequantise;
    ir_value *data;  /* the numbers, which are constant */
    bool transposed; /* stored as [n, k] */
} weights;

static bool is_constant_matrix(const ir_node *dequantise, const ir_value *data)
{
    if (!dequantise || dequantise->out[0]->type.rank != 2 || !data || !data->type.data)
        return false;
    for (int32_t i = 1; i < dequantise->n_in; i++)
        if (ir_in(dequantise, i) && !ir_in(dequantise, i)->type.data)
            return false;
    return true;
}

/* The producer, if it swaps the two dims of a matrix. */
static ir_node *swaps_dims(const ir_value *value)
{
    ir_node *transpose = rewrite_producer(value, "Transpose");
    size_t n;
    const int64_t *perm = transpose ? grt_attr_ints(&transpose->desc, "perm", &n) : NULL;
    return !perm || (n == 2 && perm[0] == 1) ? transpose : NULL;
}

/* A Transpose may lie behind DequantizeLinear or, where there is one scale, before it. */
static bool reads_weights(const ir_value *value, weights *out)
{
    const ir_node *transpose = swaps_dims(value);
    *out = (weights){.transposed = transpose != NULL};
    out->dequantise = rewrite_producer(transpose ? ir_in(transpose, 0) : value, "DequantizeLinear");
    out->data = out->dequantise ? ir_in(out->dequantise, 0) : NULL;
    const ir_value *scale = out->dequantise ? ir_in(out->dequantise, 1) : NULL;
    transpose = out->data && !out->data->type.data ? swaps_dims(out->data) : NULL;
    if (transpose && scale && scale->type.data && grt_tensor_elements(scale->type.data) == 1) {
        out->data = ir_in(transpose, 0);
        out->transposed = !out->transposed;
    }
    return is_constant_matrix(out->dequantise, out->data);
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

static uint8_t code_at(const grt_tensor *t, int64_t i)
{
    const int bits = (int)grt_dtype_bits(t->dtype);
    return bits == 8 ? ((const uint8_t *)t->data)[i] : grt_packed_get(t->data, i, bits);
}

/* One zero point for all where all are equal, as importers of symmetric 4 bits write them: as many as there
 * are scales would add 3 % to the weights. */
static ir_value *one_zero(ir_graph *graph, ir_value *zero)
{
    const grt_tensor *t = zero ? zero->type.data : NULL;
    if (!t || grt_tensor_elements(t) < 2 || grt_dtype_bits(t->dtype) > 8)
        return zero;
    const uint8_t first = code_at(t, 0);
    for (int64_t i = 1; i < grt_tensor_elements(t); i++)
        if (code_at(t, i) != first)
            return zero;
    grt_tensor *one = ir_constant_create(graph->module, t->dtype, 0, NULL);
    if (!one)
        return zero;
    memcpy(one->data, &first, 1);
    ir_value *made = ir_constant(graph, NULL, one);
    return made ? made : zero;
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
    if (rewrite_take_over(node->out[0], made->out[0]))
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
    ir_value *in[] = {ir_in(node, 0), w.data, ir_in(w.dequantise, 1),
                      one_zero(node->graph, ir_in(w.dequantise, 2)), bias};
    ir_node *made = ir_node_create(node->graph, node, "graphrt", "WMatMul", node->desc.name,
                                   bias    ? 5
                                   : in[3] ? 4
                                           : 3,
                                   in, 1);
    if (!made)
        return;
    quantised_weights_copy_blocks(made, w.dequantise);
    ir_attr_set_int(made, "transB", w.transposed);
    if (grt_attr_int(&node->desc, "accuracy_level", 0))
        ir_attr_set_int(made, "accuracy_level", grt_attr_int(&node->desc, "accuracy_level", 0));
    offer_replacement(context, node, made);
}

/* Rows of a table: of words in front of a language model. */
static void make_gather(pass_context *context, ir_node *node)
{
    const ir_node *dequantise = rewrite_producer(ir_in(node, 0), "DequantizeLinear");
    if (!is_constant_matrix(dequantise, dequantise ? ir_in(dequantise, 0) : NULL) ||
        grt_axis(grt_attr_int(&node->desc, "axis", 0), 2) != 0)
        return;
    ir_value *in[] = {ir_in(node, 1), ir_in(dequantise, 0), ir_in(dequantise, 1),
                      one_zero(node->graph, ir_in(dequantise, 2))};
    ir_node *made =
        ir_node_create(node->graph, node, "graphrt", "WGather", node->desc.name, in[3] ? 4 : 3, in, 1);
    if (!made)
        return;
    quantised_weights_copy_blocks(made, dequantise);
    ir_attr_set_int(made, "output_dtype", dequantise->out[0]->type.dtype);
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

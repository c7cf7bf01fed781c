/* SPDX-License-Identifier: Apache-2.0 */
/* The three projections in front of an Attention become one product, whose result the attention reads as it
 * is:
 *
 *   Attention(x Wq + bq, x Wk + bk, x Wv + bv)  ->  graphrt::Attention(x [Wq Wk Wv] + [bq bk bv])
 *
 * They are products of floats, or of 8-bit numbers with float results. A part without a bias, as keys have
 * it where a bias would change no weight, gets zeros beside others that have one.
 */
#include "graph/ir/constant.h"
#include "graph/passes/quantised.h"

#include <string.h>

enum { Q, K, V, MASK, PARTS = 3, BIAS = 2 };

static bool is_quantised(const ir_node *node)
{
    return grt_op_is(&node->desc, "graphrt", "QMatMul");
}

static const ir_value *weights_of(const ir_node *node)
{
    return ir_in(node, is_quantised(node) ? QP_W : 1);
}

static ir_value *merge_projections_bias_of(const ir_node *node)
{
    return ir_in(node, is_quantised(node) ? QP_BIAS : BIAS);
}

static bool merge_projections_is_plain_constant(const ir_value *value, int32_t rank)
{
    return value && value->type.data && !value->producer && !value->is_input &&
           value->type.data->rank == rank;
}

/* The bias of the first part that has one. */
static const ir_value *first_bias(ir_node *const *parts)
{
    const ir_value *bias = NULL;
    for (int i = 0; i < PARTS && !bias; i++)
        bias = merge_projections_bias_of(parts[i]);
    return bias;
}

/* None, or a constant: one number, or one for each column. */
static bool is_level(const ir_value *value)
{
    return !value || merge_projections_is_plain_constant(value, 1) ||
           (value->type.data && !value->producer && !value->is_input &&
            grt_tensor_elements(value->type.data) == 1);
}

/* The same of 8-bit numbers, whose result is not rounded. */
static bool is_quantised_projection(const ir_node *node)
{
    const ir_value *x = ir_in(node, QP_X), *bias = ir_in(node, QP_BIAS);
    for (int32_t i = QP_RESIDUAL; i < node->n_in; i++)
        if (ir_in(node, i))
            return false;
    return !*grt_attr_string(&node->desc, "activation", "") && !grt_attr_int(&node->desc, "transB", 0) &&
           !ir_in(node, QP_Y_SCALE) && x->type.rank == 3 &&
           merge_projections_is_plain_constant(ir_in(node, QP_W), 2) && is_level(ir_in(node, QP_W_SCALE)) &&
           is_level(ir_in(node, QP_W_ZERO)) && (!bias || merge_projections_is_plain_constant(bias, 1));
}

/* x * constant matrix (+ constant bias), nothing else; used by the attention alone. */
static bool is_projection(const ir_value *value)
{
    const ir_node *node = value ? value->producer : NULL;
    if (!node || value->n_uses != 1)
        return false;
    if (is_quantised(node))
        return is_quantised_projection(node);
    const bool fused = grt_op_is(&node->desc, "graphrt", "MatMul");
    if (!fused && !rewrite_is(node, "MatMul"))
        return false;
    if (fused && (*grt_attr_string(&node->desc, "activation", "") || grt_attr_int(&node->desc, "transA", 0) ||
                  grt_attr_int(&node->desc, "transB", 0) ||
                  grt_attr_float(&node->desc, "scale", 1.0f) != 1.0f || ir_in(node, 3)))
        return false;
    const ir_value *bias = ir_in(node, BIAS), *x = ir_in(node, 0);
    return x && x->type.rank == 3 && merge_projections_is_plain_constant(ir_in(node, 1), 2) &&
           (!bias || (merge_projections_is_plain_constant(bias, 1) &&
                      bias->type.data->dims[0] == ir_in(node, 1)->type.data->dims[1]));
}

static bool merge_projections_fits(const ir_node *node, ir_node *const *parts)
{
    const int64_t q_heads = grt_attr_int(&node->desc, "q_num_heads", 0),
                  kv_heads = grt_attr_int(&node->desc, "kv_num_heads", 0);
    const ir_value *first = first_bias(parts);
    const grt_tensor *w[PARTS];
    for (int i = 0; i < PARTS; i++) {
        const ir_value *bias = merge_projections_bias_of(parts[i]);
        w[i] = weights_of(parts[i])->type.data;
        if (is_quantised(parts[i]) != is_quantised(parts[0]) || ir_in(parts[i], 0) != ir_in(parts[0], 0) ||
            (bias && bias->type.dtype != first->type.dtype) || w[i]->dtype != w[0]->dtype ||
            w[i]->dims[0] != w[0]->dims[0])
            return false;
        for (int32_t k = QP_X_SCALE; is_quantised(parts[i]) && k <= QP_X_ZERO; k++)
            if (ir_in(parts[i], k) != ir_in(parts[0], k))
                return false;
        if (is_quantised(parts[i]) && !ir_in(parts[i], QP_W_ZERO) != !ir_in(parts[0], QP_W_ZERO))
            return false;
    }
    /* One size for all heads, so that the sum of the widths says everything. */
    return q_heads > 0 && kv_heads > 0 && w[Q]->dims[1] % q_heads == 0 &&
           w[Q]->dims[1] / q_heads * kv_heads == w[K]->dims[1] && w[V]->dims[1] == w[K]->dims[1];
}

static ir_value *merge_projections_join(ir_node *const *parts, int32_t input)
{
    const grt_tensor *tensors[PARTS];
    for (int i = 0; i < PARTS; i++)
        tensors[i] = ir_in(parts[i], input)->type.data;
    return rewrite_join(parts[0]->graph, tensors, PARTS, tensors[0]->rank - 1);
}

/* Zeros for each column of the part's weights. */
static const grt_tensor *no_bias(const ir_node *part, grt_dtype dtype)
{
    grt_tensor *zeros =
        ir_constant_create(part->graph->module, dtype, 1, &weights_of(part)->type.data->dims[1]);
    if (zeros)
        memset(zeros->data, 0, grt_tensor_bytes(zeros));
    return zeros;
}

/* NULL if no part has a bias, or memory is out. */
static ir_value *join_biases(ir_node *const *parts)
{
    const ir_value *first = first_bias(parts);
    const grt_tensor *tensors[PARTS];
    for (int i = 0; first && i < PARTS; i++) {
        const ir_value *bias = merge_projections_bias_of(parts[i]);
        tensors[i] = bias ? bias->type.data : no_bias(parts[i], first->type.dtype);
        if (!tensors[i])
            return NULL;
    }
    return first ? rewrite_join(parts[0]->graph, tensors, PARTS, 0) : NULL;
}

/* Scales or zero points of all columns; single ones are repeated. */
static ir_value *join_levels(ir_node *const *parts, int32_t input)
{
    int64_t n = 0;
    for (int i = 0; i < PARTS; i++)
        n += weights_of(parts[i])->type.data->dims[1];
    const grt_dtype dtype = ir_in(parts[0], input)->type.dtype;
    grt_tensor *all = ir_constant_create(parts[0]->graph->module, dtype, 1, &n);
    if (!all)
        return NULL;
    const size_t size = grt_dtype_size(dtype);
    char *to = all->data;
    for (int i = 0; i < PARTS; i++) {
        const grt_tensor *from = ir_in(parts[i], input)->type.data;
        for (int64_t k = 0; k < weights_of(parts[i])->type.data->dims[1]; k++, to += size)
            memcpy(to, (const char *)from->data + (grt_tensor_elements(from) == 1 ? 0 : (size_t)k * size),
                   size);
    }
    return ir_constant(parts[0]->graph, NULL, all);
}

static ir_node *make_quantised_product(ir_node *before, ir_node *const *parts)
{
    ir_value *in[QP_BIAS + 1] = {NULL};
    for (int32_t i = QP_X; i <= QP_X_ZERO; i++)
        in[i] = ir_in(parts[0], i);
    in[QP_W] = merge_projections_join(parts, QP_W);
    for (int32_t i = QP_W_SCALE; i <= QP_W_ZERO; i++)
        in[i] = ir_in(parts[0], i) ? join_levels(parts, i) : NULL;
    in[QP_BIAS] = join_biases(parts);
    if (!in[QP_W] || !in[QP_W_SCALE] || (ir_in(parts[0], QP_W_ZERO) && !in[QP_W_ZERO]) ||
        (first_bias(parts) && !in[QP_BIAS]))
        return NULL;
    ir_node *made = ir_node_create(before->graph, before, "graphrt", "QMatMul", parts[0]->desc.name,
                                   in[QP_BIAS] ? QP_BIAS + 1 : QP_W_ZERO + 1, in, 1);
    for (int i = 1; made && i < PARTS; i++)
        ir_node_absorb_name(made, parts[i]);
    return made;
}

static ir_node *merge_projections_make_product(ir_node *before, ir_node *const *parts)
{
    if (is_quantised(parts[0]))
        return make_quantised_product(before, parts);
    const bool bias = first_bias(parts) != NULL;
    ir_value *in[PARTS] = {ir_in(parts[0], 0), merge_projections_join(parts, 1), join_biases(parts)};
    if (!in[1] || (bias && !in[BIAS]))
        return NULL;
    ir_node *made = ir_node_create(before->graph, before, bias ? "graphrt" : "", "MatMul",
                                   parts[0]->desc.name, bias ? PARTS : 2, in, 1);
    for (int i = 1; made && i < PARTS; i++)
        ir_node_absorb_name(made, parts[i]);
    return made;
}

static bool merge_projections_merge(pass_context *context, ir_node *node, ir_node *const *parts)
{
    ir_node *product = merge_projections_make_product(node, parts);
    if (!product || op_infer_node(product) != GRT_OK)
        return false;
    ir_value *in[MASK + 1] = {product->out[0], NULL, NULL, ir_in(node, MASK)};
    ir_node *made = ir_node_create(node->graph, node, "graphrt", "Attention", node->desc.name,
                                   ir_in(node, MASK) ? MASK + 1 : 1, in, 1);
    if (!made)
        return false;
    ir_attrs_copy(made, node);
    if (op_infer_node(made) != GRT_OK || !rewrite_same_shape(&made->out[0]->type, &node->out[0]->type) ||
        !rewrite_supported(context, product, NULL) || !rewrite_supported(context, made, NULL) ||
        !rewrite_replace(node->out[0], made->out[0])) {
        ir_node_remove(made);
        ir_node_remove(product);
        return false;
    }
    ir_node_remove(node);
    for (int i = 0; i < PARTS; i++)
        ir_node_remove(parts[i]);
    context->changed++;
    return true;
}

static grt_status merge_projections_visit_graph(pass_context *context, ir_graph *graph)
{
    IR_FOR_EACH_NODE (node, graph) {
        bool plain = rewrite_is(node, "Attention") && node->out[0];
        for (int32_t i = 1; plain && i < node->n_out; i++)
            plain = !node->out[i] || !node->out[i]->n_uses;
        for (int32_t i = MASK + 1; plain && i < node->n_in; i++)
            plain = !ir_in(node, i);
        for (int32_t i = Q; plain && i <= V; i++)
            plain = is_projection(ir_in(node, i));
        if (!plain)
            continue;
        ir_node *parts[PARTS] = {ir_in(node, Q)->producer, ir_in(node, K)->producer,
                                 ir_in(node, V)->producer};
        if (merge_projections_fits(node, parts))
            merge_projections_merge(context, node, parts);
    }
    return GRT_OK;
}

grt_status pass_merge_projections(pass_context *context)
{
    return rewrite_each_graph(context, merge_projections_visit_graph);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/row_wise.h"

#include "graph/passes/rewrite.h"
#include "src/base/checked.h"

bool row_wise_has_rows(const ir_value *value)
{
    const ir_type *type = &value->type;
    int64_t width;
    return type->kind == GRT_KIND_TENSOR && type->rank >= 2 && grt_dtype_size(type->dtype) &&
           grt_dim_is_const(value->graph->module->dims, type->dims[type->rank - 1], &width) && width > 0;
}

int64_t row_wise_bytes(const ir_value *value)
{
    int64_t width = 0;
    grt_dim_is_const(value->graph->module->dims, value->type.dims[value->type.rank - 1], &width);
    return grt_mul_saturated(width, (int64_t)grt_dtype_size(value->type.dtype));
}

bool row_wise_is_matrix(const ir_value *value)
{
    const ir_node *transpose = value ? rewrite_producer(value, "Transpose") : NULL;
    const ir_value *x = transpose ? ir_in(transpose, 0) : value;
    return x && x->type.data && !x->producer && !x->is_input && x->type.rank == 2;
}

/* True if all dims but the last one are 1: broadcast to all rows alike. */
static bool is_beside_all_rows(const ir_value *value, int32_t rank)
{
    const ir_type *type = &value->type;
    if (type->kind != GRT_KIND_TENSOR || type->rank < 0 || type->rank > rank)
        return false;
    for (int32_t i = 0; i < type->rank - 1; i++)
        if (!grt_dim_equals(value->graph->module->dims, type->dims[i], 1))
            return false;
    return true;
}

static bool has_rows_like(const ir_value *value, const ir_type *out)
{
    if (!row_wise_has_rows(value) || value->type.rank != out->rank)
        return false;
    for (int32_t i = 0; i < out->rank - 1; i++)
        if (value->type.dims[i] != out->dims[i])
            return false;
    return true;
}

bool row_wise_reads(const ir_node *node, int32_t input)
{
    const ir_value *x = ir_in(node, input);
    if (!x || !has_rows_like(x, &node->out[0]->type))
        return false;
    return rewrite_has(node, OP_POINTWISE) ? !is_beside_all_rows(x, node->out[0]->type.rank) : input == 0;
}

static bool is_plain_gemm(const ir_node *node)
{
    return !grt_attr_int(&node->desc, "transA", 0) && row_wise_is_matrix(ir_in(node, 1)) &&
           (!ir_in(node, 2) || is_beside_all_rows(ir_in(node, 2), 2));
}

/* Of one dim, the last: what the row's trait says of parameters is that they are no longer than that. */
static bool is_along_rows(const ir_node *node)
{
    const int32_t rank = node->out[0]->type.rank;
    if (grt_axis(grt_attr_int(&node->desc, "axis", -1), rank) != rank - 1)
        return false;
    for (int32_t i = 1; i < node->n_in; i++)
        if (ir_in(node, i) && !is_beside_all_rows(ir_in(node, i), rank))
            return false;
    return true;
}

/* Besides the inputs that have rows. */
static bool row_wise_alike(const ir_node *node)
{
    switch (node->row->batch) {
    case OP_BATCH_MATMUL:
        return row_wise_is_matrix(ir_in(node, 1));
    case OP_BATCH_GEMM:
        return is_plain_gemm(node);
    case OP_BATCH_NORM:
    case OP_BATCH_AXIS:
        return is_along_rows(node);
    default:
        break;
    }
    if (!rewrite_has(node, OP_POINTWISE) || node->row->flags & OP_RANDOM)
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        if (ir_in(node, i) && !has_rows_like(ir_in(node, i), &node->out[0]->type) &&
            !is_beside_all_rows(ir_in(node, i), node->out[0]->type.rank))
            return false;
    return true;
}

bool row_wise_makes(const ir_node *node)
{
    bool reads = false;
    if (!node->row || *node->desc.domain || node->n_out != 1 || !node->out[0] ||
        !row_wise_has_rows(node->out[0]) || !row_wise_alike(node))
        return false;
    for (int32_t i = 0; i < node->n_in; i++)
        reads |= row_wise_reads(node, i);
    return reads;
}

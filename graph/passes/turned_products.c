/* SPDX-License-Identifier: Apache-2.0 */
/* Products over channels, as of cross-covariance attention (DaViT, XCiT, Restormer), have tokens as columns:
 * their second factor was transposed for it and their result is transposed back. With exchanged factors
 * tokens are rows on both sides.
 *
 *   transpose(P transpose(V))   ->   V transpose(P)
 *
 * P is no larger than V, and products read it transposed. What else the two Transposes move they still do,
 * but rows of channels and not single numbers, as those of queries and keys do (pass `equal_parts`). */
#include "graph/passes/index_map.h"
#include "graph/passes/rewrite.h"

/* True if the columns of a value were rows where it was moved from: numbers next to each other are below each
 * other now. */
static bool was_transposed(ir_value *value)
{
    grt_dims *dims = value->graph->module->dims;
    const int32_t rank = value->type.rank;
    index_map map;
    index_part row, column;
    return index_map_of(value, &map, NULL) && map.source != value &&
           index_map_single(dims, &map, rank - 2, &row) && index_map_single(dims, &map, rank - 1, &column) &&
           grt_dim_equals(dims, row.stride, 1) && !grt_dim_equals(dims, column.stride, 0) &&
           !grt_dim_equals(dims, column.stride, 1);
}

static ir_value *turned_products_put(ir_node *before, const char *op, ir_value *a, ir_value *b,
                                     const int64_t *perm)
{
    ir_node *made =
        ir_node_create(before->graph, before, "", op, before->desc.name, b ? 2 : 1, (ir_value *[]){a, b}, 1);
    if (!made)
        return NULL;
    if (perm)
        ir_attr_set_ints(made, "perm", perm, (size_t)a->type.rank);
    return op_infer_node(made) == GRT_OK ? made->out[0] : NULL;
}

/* True if the left factor has no more rows than the right one has columns, where both are known. */
static bool has_few_rows(const ir_value *left, const ir_value *right)
{
    const grt_dims *dims = left->graph->module->dims;
    const int32_t rank = left->type.rank;
    int64_t rows, columns;
    return grt_dim_is_const(dims, left->type.dims[rank - 2], &rows) &&
           (!grt_dim_is_const(dims, right->type.dims[rank - 1], &columns) || rows <= columns);
}

/* The product's result by exchanged factors, as `outer` transposes it. Transposes that follow each other are
 * joined later. */
static ir_value *exchanged(ir_node *before, ir_value *p, ir_value *v, const int64_t *outer)
{
    const int32_t rank = p->type.rank, row = rank - 2, column = rank - 1;
    int64_t out[GRT_MAX_RANK], swap[GRT_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        swap[i] = i < row ? i : i == row ? column : row;
    for (int32_t i = 0; i < rank; i++)
        out[i] = swap[outer[i]];
    v = turned_products_put(before, "Transpose", v, NULL, swap);
    p = turned_products_put(before, "Transpose", p, NULL, swap);
    ir_value *y = v && p ? turned_products_put(before, "MatMul", v, p, NULL) : NULL;
    return y ? turned_products_put(before, "Transpose", y, NULL, out) : NULL;
}

static void turned_products_visit(pass_context *context, ir_node *node)
{
    ir_node *product = rewrite_is(node, "Transpose") ? rewrite_producer(ir_in(node, 0), "MatMul") : NULL;
    ir_value *p = product ? ir_in(product, 0) : NULL, *v = product ? ir_in(product, 1) : NULL;
    const int32_t rank = p ? p->type.rank : 0;
    size_t n;
    const int64_t *outer = grt_attr_ints(&node->desc, "perm", &n);
    if (!v || rank < 2 || rank > GRT_MAX_RANK || v->type.rank != rank || product->graph != node->graph ||
        product->out[0]->n_uses != 1 || v->n_uses != 1 || !outer || n != (size_t)rank ||
        outer[rank - 1] != rank - 2 || !has_few_rows(p, v) || !was_transposed(v))
        return;
    ir_value *y = exchanged(node, p, v, outer);
    if (y && rewrite_take_over_node(node, y)) /* unused nodes are dead */
        context->changed++;
}

grt_status pass_turned_products(pass_context *context)
{
    return rewrite_each_node(context, turned_products_visit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and GatherND by constants that take all there is in order, as exporters write masks that are indexed
 * by ranges, or rows. */
#include "graph/passes/simplify.h"

enum { FEWEST = 2 }; /* one element of a shape stays a Gather, which passes know as a size */

/* True if the indices are 0, 1, ... to the end of a dim. */
static bool counts_through(const ir_node *node, int64_t dim)
{
    const int64_t *v;
    int64_t n;
    return ir_const_ints(ir_in(node, 1), &v, &n) && n == dim && rewrite_are_neighbours(node, v, n, 0, dim);
}

/* A list of neighbours is a Slice, which goes in front of transposes. Not of a list of sizes, which passes
 * look for in Gather. */
static bool becomes_slice(simplify_work *w, ir_node *node, int32_t axis, int64_t dim)
{
    const ir_value *indices = ir_in(node, 1);
    const int64_t *v;
    int64_t n;
    if (ir_in(node, 0)->type.rank < 2 || !indices || indices->type.rank != 1 ||
        !ir_const_ints(indices, &v, &n) || n < 1)
        return false;
    const int64_t start = v[0] < 0 ? v[0] + dim : v[0], at = axis;
    if (start < 0 || n > dim || start > dim - n)
        return false;
    const int64_t end = start + n;
    if (!rewrite_are_neighbours(node, v, n, start, dim))
        return false;
    ir_value *bounds[] = {ir_constant_ints(node->graph, node->desc.name, &start, 1),
                          ir_constant_ints(node->graph, node->desc.name, &end, 1),
                          ir_constant_ints(node->graph, node->desc.name, &at, 1)};
    if (!bounds[0] || !bounds[1] || !bounds[2])
        return false;
    ir_node_become(node, "", "Slice");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_node_set_input(node, 1, bounds[0]);
    ir_node_add_input(node, bounds[1]);
    ir_node_add_input(node, bounds[2]);
    return simplify_changed(w, node);
}

bool simplify_gather(simplify_work *w, ir_node *node)
{
    ir_value *data = ir_in(node, 0);
    int64_t dim;
    if (!data || data->type.kind != GRT_KIND_TENSOR || data->type.rank < 1)
        return false;
    const int32_t axis = (int32_t)grt_axis(grt_attr_int(&node->desc, "axis", 0), data->type.rank);
    if (axis < 0 || !grt_dim_is_const(node->graph->module->dims, data->type.dims[axis], &dim) || dim < FEWEST)
        return false;
    if (counts_through(node, dim))
        return simplify_become_reshape(w, node, data);
    return becomes_slice(w, node, axis, dim);
}

static bool is_place(const int64_t *v, int64_t element, const int64_t *dims, int64_t depth)
{
    for (int64_t k = depth; k-- > 0; element /= dims[k])
        if ((v[k] < 0 ? v[k] + dims[k] : v[k]) != element % dims[k])
            return false;
    return true;
}

/* True if row i of the indices is the place of element i of the first `depth` dims of the data, and they are
 * all of them. Reading takes of the compile's budget. */
static bool takes_all_in_order(const ir_node *node, const grt_tensor *indices, int64_t depth)
{
    const ir_type *data = &ir_in(node, 0)->type;
    const int64_t *v, rows = grt_dims_product(indices->dims, 0, indices->rank - 1);
    int64_t dims[GRT_MAX_RANK], count, elements = 1;
    if (!ir_const_ints(ir_in(node, 1), &v, &count) || rows < FEWEST)
        return false;
    for (int64_t k = 0; k < depth; k++) {
        if (!grt_dim_is_const(node->graph->module->dims, data->dims[k], &dims[k]) || dims[k] < 1 ||
            dims[k] > rows / elements)
            return false;
        elements *= dims[k];
    }
    compile_budget *budget = &node->graph->module->budget;
    int64_t row = 0;
    if (elements != rows || !budget_allows(budget, 0, (double)count))
        return false;
    while (row < rows && is_place(v + row * depth, row, dims, depth))
        row++;
    budget_work(budget, (double)(row * depth));
    return row == rows;
}

/* A list of indices of the first dim is Gather's, whose moves are known to more passes. */
static bool becomes_gather(simplify_work *w, ir_node *node, const grt_tensor *indices)
{
    const int64_t *v;
    int64_t n;
    if (indices->rank != 2 || !ir_const_ints(ir_in(node, 1), &v, &n))
        return false;
    ir_value *list = ir_constant_ints(node->graph, node->desc.name, v, n);
    if (!list)
        return false;
    ir_node_become(node, "", "Gather");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_node_set_input(node, 1, list);
    return simplify_changed(w, node);
}

bool simplify_gather_nd(simplify_work *w, ir_node *node)
{
    const ir_value *data = ir_in(node, 0), *places = ir_in(node, 1);
    const grt_tensor *indices = places ? places->type.data : NULL;
    if (!data || data->type.kind != GRT_KIND_TENSOR || !indices || indices->rank < 2 ||
        grt_attr_int(&node->desc, "batch_dims", 0) != 0)
        return false;
    const int64_t depth = indices->dims[indices->rank - 1];
    if (depth < 1 || depth > data->type.rank)
        return false;
    if (takes_all_in_order(node, indices, depth))
        return simplify_become_reshape(w, node, ir_in(node, 0));
    return depth == 1 && becomes_gather(w, node, indices);
}

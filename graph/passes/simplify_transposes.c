/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of transposes, those that move dims of 1 only, those of rows that are looked up in a table, and
 * equal ones of what is joined. */
#include "graph/passes/simplify.h"

bool simplify_keeps_order(const ir_type *in, const int64_t *perm, const grt_dims *dims)
{
    int64_t last = -1;
    for (int32_t i = 0; i < in->rank; i++) {
        if (grt_dim_equals(dims, in->dims[perm[i]], 1))
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

static ir_value *put_transpose(simplify_work *w, ir_node *before, ir_value *x, const int64_t *perm)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", perm, (size_t)x->type.rank);
    simplify_queue(w, node);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

/* Where the axes of the indices are among those of what is transposed; -1 if they do not follow each other.
 * first, n: which they are. */
static int32_t place_of_indices(const int64_t *perm, int32_t rank, int32_t first, int32_t n)
{
    int32_t at = 0;
    while (at < rank && perm[at] != first)
        at++;
    if (at + n > rank)
        return -1;
    for (int32_t i = 0; i < n; i++)
        if (perm[at + i] != first + i)
            return -1;
    return at;
}

/* What is looked up in a small constant table and transposed, as biases of attention by distance are, each
 * index with a number for each head, is looked up in the transposed table. */
static bool look_up_transposed(simplify_work *w, ir_node *node, const int64_t *perm)
{
    enum { MOST_ELEMENTS = 1 << 16 };
    ir_node *gather = rewrite_producer(ir_in(node, 0), "Gather");
    ir_value *table = gather ? ir_in(gather, 0) : NULL, *indices = gather ? ir_in(gather, 1) : NULL;
    if (!table || !indices || table->producer || !table->type.data || ir_in(node, 0)->n_uses != 1 ||
        grt_tensor_elements(table->type.data) > MOST_ELEMENTS || indices->type.rank < 1)
        return false;
    const int32_t rank = table->type.rank, n = indices->type.rank,
                  axis = (int32_t)grt_axis(grt_attr_int(&gather->desc, "axis", 0), rank),
                  at = place_of_indices(perm, rank - 1 + n, axis, n);
    int64_t order[GRT_MAX_RANK];
    if (at < 0)
        return false;
    for (int32_t i = 0; i < rank; i++) {
        const int64_t from = i == at ? axis : perm[i < at ? i : i - 1 + n];
        order[i] = i == at || from < axis ? from : from - n + 1;
    }
    ir_value *turned = put_transpose(w, node, table, order);
    if (!turned)
        return false;
    ir_node_become(node, "", "Gather");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_attr_set_int(node, "axis", at);
    ir_node_set_input(node, 0, turned);
    ir_node_add_input(node, indices);
    simplify_drop_if_dead(gather);
    return simplify_changed(w, node);
}

static bool exchanges_last_two(const int64_t *perm, int32_t rank)
{
    for (int32_t i = 0; i < rank - 2; i++)
        if (perm[i] != i)
            return false;
    return rank >= 2 && perm[rank - 1] == rank - 2;
}

/* An outer product, as of frequencies and positions, is transposed by exchanging its factors, a column and a
 * row, whose elements stay where they are. */
static bool exchange_factors(simplify_work *w, ir_node *node, const int64_t *perm)
{
    const ir_value *x = ir_in(node, 0);
    ir_node *product = x->n_uses == 1 ? rewrite_producer(x, "MatMul") : NULL;
    const int32_t rank = x->type.rank;
    const grt_dims *dims = node->graph->module->dims;
    ir_value *column = product ? ir_in(product, 0) : NULL, *row = product ? ir_in(product, 1) : NULL;
    if (!column || !row || column->type.rank != rank || row->type.rank != rank ||
        !exchanges_last_two(perm, rank) || !grt_dim_equals(dims, column->type.dims[rank - 1], 1) ||
        !grt_dim_equals(dims, row->type.dims[rank - 2], 1))
        return false;
    row = put_transpose(w, node, row, perm);
    column = put_transpose(w, node, column, perm);
    if (!row || !column)
        return false;
    ir_node_become(node, "", "Mul");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_node_set_input(node, 0, row);
    ir_node_add_input(node, column);
    simplify_drop_if_dead(product);
    return simplify_changed(w, node);
}

bool simplify_transpose(simplify_work *w, ir_node *node)
{
    ir_value *x = ir_in(node, 0);
    int64_t outer[GRT_MAX_RANK], inner[GRT_MAX_RANK];
    if (!x || !simplify_permutation(node, x->type.rank, outer))
        return false;
    int32_t rank = x->type.rank;
    bool identity = true;
    for (int32_t i = 0; i < rank; i++)
        identity &= outer[i] == i;
    if (identity)
        return simplify_becomes(w, node, x);
    if (simplify_keeps_order(&x->type, outer, node->graph->module->dims) &&
        simplify_become_reshape(w, node, x))
        return true;
    if (look_up_transposed(w, node, outer) || exchange_factors(w, node, outer))
        return true;
    ir_node *before = rewrite_producer(x, "Transpose");
    if (!before || !ir_in(before, 0) || !simplify_permutation(before, rank, inner))
        return false;
    int64_t both[GRT_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        both[i] = inner[outer[i]];
    ir_attr_set_ints(node, "perm", both, (size_t)rank);
    ir_node_set_input(node, 0, ir_in(before, 0));
    simplify_drop_if_dead(before);
    return simplify_changed(w, node);
}

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
    ir_node *turned = ir_node_create(node->graph, node, "", "Transpose", node->desc.name, 1, &table, 1);
    if (!turned)
        return false;
    ir_attr_set_ints(turned, "perm", order, (size_t)rank);
    if (op_infer_node(turned) != GRT_OK)
        return false;
    ir_node_become(node, "", "Gather");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_attr_set_int(node, "axis", at);
    ir_node_set_input(node, 0, turned->out[0]);
    ir_node_add_input(node, indices);
    simplify_drop_if_dead(gather);
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
    if (look_up_transposed(w, node, outer))
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

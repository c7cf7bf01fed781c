/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of transposes, and those that move dims of 1 only. */
#include "graph/passes/simplify.h"

/* Only dims of 1 move: the elements stay where they are. */
static bool keeps_order(const ir_type *in, const int64_t *perm, const grt_dims *dims)
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
    if (keeps_order(&x->type, outer, node->graph->module->dims) && simplify_become_reshape(w, node, x))
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

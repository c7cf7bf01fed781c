/* SPDX-License-Identifier: Apache-2.0 */
/* What rules of pass `simplify` ask of a node and do to it. */
#include "graph/passes/simplify.h"

bool simplify_keeps_shape(const ir_node *node, int32_t i)
{
    const ir_value *in = ir_in(node, i);
    return in && in->type.kind == GRT_KIND_TENSOR && rewrite_same_shape(&node->out[0]->type, &in->type);
}

bool simplify_all_ints_are(const ir_node *node, int32_t i, int64_t value)
{
    const int64_t *v;
    int64_t n;
    if (!ir_const_ints(ir_in(node, i), &v, &n))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (v[k] != value)
            return false;
    return true;
}

bool simplify_become_reshape(simplify_work *w, ir_node *node, ir_value *x)
{
    return rewrite_become_reshape(node, x) && simplify_changed(w, node);
}

bool simplify_permutation(const ir_node *node, int32_t rank, int64_t *out_perm)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    if (rank < 0 || (perm && n != (size_t)rank))
        return false;
    for (int32_t i = 0; i < rank; i++)
        out_perm[i] = perm ? perm[i] : rank - 1 - i;
    return true;
}

void simplify_become_transpose(ir_node *node, ir_value *x, const int64_t *perm, int32_t rank)
{
    ir_node_become(node, "", "Transpose");
    node->desc.attrs = NULL;
    node->desc.n_attrs = 0;
    ir_attr_set_ints(node, "perm", perm, (size_t)rank);
    ir_node_set_input(node, 0, x);
    ir_node_drop_inputs(node, 1);
}

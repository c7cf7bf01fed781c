/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of reshapes, and transposes between them. */
#include "graph/passes/simplify.h"

/* `x` under dims that Reshape can be given (as simplify_become_reshape), as a new node in front of `before`.
 * NULL if they cannot. */
static ir_value *simplify_reshaped(simplify_work *w, ir_node *before, ir_value *x, int32_t rank,
                                   const grt_dim *dims)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Reshape", before->desc.name, 1, &x, 1);
    if (!node)
        return NULL;
    node->out[0]->type = (ir_type){.dtype = x->type.dtype, .rank = rank, .dims = dims};
    if (simplify_become_reshape(w, node, x))
        return node->out[0];
    ir_node_remove(node);
    return NULL;
}

/* Batch dims that are joined, the last two exchanged, and the batch dims split again: a Transpose that leaves
 * the batch alone. */
static bool transpose_between(simplify_work *w, ir_node *node)
{
    ir_node *transpose = rewrite_producer(ir_in(node, 0), "Transpose");
    ir_value *joined = transpose ? ir_in(transpose, 0) : NULL;
    const ir_type *out = &node->out[0]->type;
    int64_t perm[GRT_MAX_RANK];
    int32_t rank = out->rank, inner = joined ? joined->type.rank : -1;
    if (!joined || !rewrite_is_reshape(joined->producer) || transpose->graph != node->graph || rank < 3 ||
        inner < 2 || !simplify_permutation(transpose, inner, perm))
        return false;
    for (int32_t i = 0; i < inner; i++)
        if (perm[i] != (i < inner - 2 ? i : i == inner - 2 ? inner - 1 : inner - 2))
            return false;
    grt_dim *dims = GRT_ARENA_ARRAY(node->graph->module->arena, grt_dim, rank);
    if (!dims || out->dims[rank - 1] != joined->type.dims[inner - 2] ||
        out->dims[rank - 2] != joined->type.dims[inner - 1])
        return false;
    for (int32_t i = 0; i < rank; i++) {
        perm[i] = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
        dims[i] = out->dims[perm[i]];
    }
    /* What was joined has these dims, mostly. A Reshape to them could not always be written: only one of its
     * dims may be found from the others. */
    ir_value *x = ir_in(joined->producer, 0);
    const ir_type split = {.dtype = joined->type.dtype, .rank = rank, .dims = dims};
    if (!x || !rewrite_same_shape(&x->type, &split))
        x = simplify_reshaped(w, node, joined, rank, dims);
    if (!x)
        return false;
    ir_node *join = joined->producer;
    simplify_become_transpose(node, x, perm, rank);
    simplify_drop_if_dead(transpose);
    simplify_drop_if_dead(join);
    return simplify_changed(w, node);
}

/* Dims of 1 that vanish after a Transpose vanish before it. */
static bool squeeze_before_transpose(simplify_work *w, ir_node *node)
{
    ir_node *transpose = rewrite_producer(ir_in(node, 0), "Transpose");
    ir_value *x = transpose && ir_in(node, 0)->n_uses == 1 ? ir_in(transpose, 0) : NULL;
    const ir_type *out = &node->out[0]->type;
    int64_t perm[GRT_MAX_RANK], kept[GRT_MAX_RANK];
    int32_t n = 0, rank = x ? x->type.rank : -1;
    bool stays[GRT_MAX_RANK] = {false};
    /* Squeeze only: a Reshape that joins a batch of one looks the same, but belongs to what transpose_between
     * undoes. */
    if (!x || !rewrite_is(node, "Squeeze") || transpose->graph != node->graph || out->rank < 2 ||
        out->rank >= rank || !simplify_permutation(transpose, rank, perm))
        return false;
    for (int32_t i = 0; i < rank; i++) {
        grt_dim dim = x->type.dims[perm[i]];
        if (n < out->rank && out->dims[n] == dim) {
            stays[perm[i]] = true;
            kept[n++] = perm[i];
        } else if (!grt_dim_equals(node->graph->module->dims, dim, 1)) {
            return false;
        }
    }
    grt_dim *dims = GRT_ARENA_ARRAY(node->graph->module->arena, grt_dim, out->rank);
    int64_t place[GRT_MAX_RANK];
    if (n != out->rank || !dims)
        return false;
    n = 0;
    for (int32_t i = 0; i < rank; i++)
        if (stays[i]) {
            place[i] = n;
            dims[n++] = x->type.dims[i];
        }
    for (int32_t i = 0; i < n; i++)
        perm[i] = place[kept[i]];
    x = simplify_reshaped(w, node, x, n, dims);
    if (!x)
        return false;
    simplify_become_transpose(node, x, perm, n);
    simplify_drop_if_dead(transpose);
    return simplify_changed(w, node);
}

bool simplify_reshape(simplify_work *w, ir_node *node)
{
    if (simplify_same_shape(w, node) || transpose_between(w, node) || squeeze_before_transpose(w, node))
        return true;
    ir_value *in = ir_in(node, 0);
    ir_node *inner = in ? in->producer : NULL;
    if (!rewrite_is_reshape(inner) || !ir_in(inner, 0) || inner->graph != node->graph)
        return false;
    if (!simplify_become_reshape(w, node, ir_in(inner, 0)))
        return false;
    simplify_drop_if_dead(inner);
    return true;
}

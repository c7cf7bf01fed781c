/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of data movement share. No rows of its own. */
#include "graph/ops/moves.h"

#include <string.h>

grt_dim moves_clamp(grt_dims *dims, grt_dim dim)
{
    return dim < 0 || grt_dim_is_size(dims, dim)
               ? dim
               : grt_dim_make(dims, GRT_DIM_MAX, dim, grt_dim_const(dims, 0));
}

grt_status moves_axes(const infer *inf, int32_t i, int32_t rank, bool *out_axes, int64_t *out_n,
                      bool *out_known)
{
    const int64_t *axes;
    *out_known = true;
    memset(out_axes, 0, (size_t)rank * sizeof *out_axes);
    if (!infer_has(inf, i)) {
        *out_n = rank;
        memset(out_axes, 1, (size_t)rank * sizeof *out_axes);
        return GRT_OK;
    }
    if (!infer_ints(inf, i, &axes, out_n)) {
        *out_known = false;
        return GRT_OK;
    }
    for (int64_t k = 0; k < *out_n; k++) {
        int32_t axis;
        GRT_TRY(infer_axis(inf, "an entry of axes", axes[k], rank, &axis));
        if (out_axes[axis])
            return infer_fail(inf, "axes names axis %d twice", axis);
        out_axes[axis] = true;
    }
    return GRT_OK;
}

grt_status moves_check_perm(const infer *inf, const char *attr, int32_t input, const int64_t *perm, size_t n)
{
    bool used[GRT_MAX_RANK] = {false};
    if (n > GRT_MAX_RANK)
        return infer_fail(inf, "attribute %s has %zu entries for input %d; at most %d are supported", attr, n,
                          input, GRT_MAX_RANK);
    for (size_t k = 0; k < n; k++) {
        if (perm[k] < 0 || perm[k] >= (int64_t)n)
            return infer_fail(inf, "entry %zu of attribute %s for input %d is %lld; expected one in [0, %zu)",
                              k, attr, input, (long long)perm[k], n);
        if (used[perm[k]])
            return infer_fail(inf,
                              "entry %zu of attribute %s for input %d names axis %lld for the second time", k,
                              attr, input, (long long)perm[k]);
        used[perm[k]] = true;
    }
    return GRT_OK;
}

const grt_dim *moves_permuted(const infer *inf, const ir_type *type, const int64_t *perm)
{
    grt_dim *dims = infer_dims(inf, type->rank);
    for (int32_t k = 0; dims && k < type->rank; k++)
        dims[k] = type->dims[perm[k]];
    return dims;
}

void moves_put_input(ir_node *node, int32_t index, ir_value *value)
{
    while (node->n_in < index)
        ir_node_add_input(node, NULL);
    if (node->n_in == index)
        ir_node_add_input(node, value);
    else
        ir_node_set_input(node, index, value);
}

void moves_attr_to_input(ir_node *node, const char *name, int32_t index)
{
    const grt_attr *attr = grt_attr_find(&node->desc, name);
    if (!attr)
        return;
    ir_value *value = NULL;
    if (attr->kind == GRT_ATTR_INTS)
        value = ir_constant_ints(node->graph, name, attr->ints.v, (int64_t)attr->ints.n);
    else if (attr->kind == GRT_ATTR_INT)
        value = ir_constant_ints(node->graph, name, &attr->i, 1);
    else
        return; /* the check of attribute kinds reports it */
    moves_put_input(node, index, value);
    ir_attr_remove(node, name);
}

grt_status moves_along_axis(infer *inf)
{
    int32_t axis;
    if (inf->in[0]->rank >= 0)
        GRT_TRY(
            infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), inf->in[0]->rank, &axis));
    return infer_same_as_first(inf);
}

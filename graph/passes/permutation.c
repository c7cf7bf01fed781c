/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/permutation.h"

#include "graph/passes/rewrite.h"

#include <string.h>

bool permutation_moves(const ir_node *node)
{
    return rewrite_has(node, OP_VIEW) || rewrite_is(node, "Transpose");
}

ir_value *permutation_source(ir_value *value)
{
    for (int32_t i = 0; i < PERMUTATION_CHAIN; i++) {
        const ir_node *node = value->producer;
        if (!node || node->graph != value->graph || !ir_in(node, 0) || !permutation_moves(node))
            break;
        value = ir_in(node, 0);
    }
    return value;
}

/* The part that comes next, from the innermost on: one of size 1, or that of stride `stride`; -1 if there is
 * none. */
static int32_t next_part(const grt_dims *dims, const index_part *parts, int32_t n, const bool *taken,
                         grt_dim stride)
{
    int32_t found = -1;
    for (int32_t i = 0; i < n; i++) {
        if (taken[i])
            continue;
        if (grt_dim_equals(dims, parts[i].size, 1))
            return i;
        if (found < 0 && parts[i].stride == stride)
            found = i;
    }
    return found;
}

bool permutation_of_parts(grt_dims *dims, const index_part *parts, int32_t n, const ir_value *source,
                          permutation *out)
{
    bool taken[INDEX_MAP_PARTS] = {false};
    grt_dim stride = grt_dim_const(dims, 1), all = stride;
    out->n = n;
    for (int32_t k = n - 1; k >= 0; k--) {
        const int32_t i = next_part(dims, parts, n, taken, stride);
        if (i < 0)
            return false;
        taken[i] = true;
        out->dims[k] = parts[i].size;
        out->perm[i] = k;
        stride = grt_dim_mul(dims, stride, parts[i].size);
    }
    for (int32_t i = 0; i < source->type.rank; i++)
        all = grt_dim_mul(dims, all, source->type.dims[i]);
    return all == stride;
}

bool permutation_of(grt_dims *dims, const index_map *map, permutation *out)
{
    index_part parts[INDEX_MAP_PARTS];
    memcpy(parts, map->parts, sizeof parts);
    const int32_t n = index_parts_join(dims, parts, map->n);
    return grt_dim_equals(dims, map->offset, 0) && permutation_of_parts(dims, parts, n, map->source, out);
}

static ir_value *permutation_transposed(ir_node *before, ir_value *value, const permutation *p)
{
    ir_node *node = ir_node_create(before->graph, before, "", "Transpose", before->desc.name, 1, &value, 1);
    if (!node)
        return NULL;
    ir_attr_set_ints(node, "perm", p->perm, (size_t)p->n);
    return op_infer_node(node) == GRT_OK ? node->out[0] : NULL;
}

ir_value *permutation_apply(ir_node *before, ir_value *source, const permutation *p, int32_t rank,
                            const grt_dim *to)
{
    ir_value *x = source;
    if (p->n > 1) {
        x = rewrite_reshaped(before, x, p->n, p->dims);
        x = x ? permutation_transposed(before, x, p) : NULL;
    }
    return x ? rewrite_reshaped(before, x, rank, to) : NULL;
}

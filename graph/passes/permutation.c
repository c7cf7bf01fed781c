/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/permutation.h"

#include "graph/passes/rewrite.h"

#include <string.h>

/* The part behind which, in the source, the next one of stride `stride` lies; -1 if there is none. */
static int32_t part_of_stride(const index_part *parts, int32_t n, const bool *taken, grt_dim stride)
{
    for (int32_t i = 0; i < n; i++)
        if (!taken[i] && parts[i].stride == stride)
            return i;
    return -1;
}

bool permutation_of(grt_dims *dims, const index_map *map, permutation *out)
{
    index_part parts[INDEX_MAP_PARTS];
    bool taken[INDEX_MAP_PARTS] = {false};
    memcpy(parts, map->parts, sizeof parts);
    const int32_t n = index_parts_join(dims, parts, map->n);
    grt_dim stride = grt_dim_const(dims, 1), all = stride;
    out->n = n;
    for (int32_t k = n - 1; k >= 0; k--) {
        const int32_t i = part_of_stride(parts, n, taken, stride);
        if (i < 0)
            return false;
        taken[i] = true;
        out->dims[k] = parts[i].size;
        out->perm[i] = k;
        stride = grt_dim_mul(dims, stride, parts[i].size);
    }
    for (int32_t i = 0; i < map->source->type.rank; i++)
        all = grt_dim_mul(dims, all, map->source->type.dims[i]);
    return grt_dim_equals(dims, map->offset, 0) && all == stride;
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

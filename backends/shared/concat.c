/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/concat.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_moved_concat_read(const grt_op_desc *desc, grt_moved_concat **out)
{
    size_t n = 0;
    const int64_t *perms = grt_attr_ints(desc, "perms", &n);
    grt_moved_concat *c = malloc(sizeof *c + n * sizeof *perms);
    if (!c)
        return grt_fail_memory(sizeof *c + n * sizeof *perms);
    c->axis = grt_attr_int(desc, "axis", 0);
    c->perms = memcpy(c + 1, n ? perms : &c->axis, n * sizeof *perms);
    *out = c;
    return GRT_OK;
}

void grt_moved_part_of(const grt_moved_concat *c, int32_t i, const grt_tensor *part, const grt_tensor *whole,
                       int64_t *at, grt_moved_part *out)
{
    const int64_t *perm = c->perms + (size_t)i * (size_t)whole->rank, axis = grt_axis(c->axis, whole->rank);
    int64_t from[GRT_MAX_RANK];
    grt_dims_strides(part->dims, part->rank, from);
    grt_dims_strides(whole->dims, whole->rank, out->to);
    out->rank = whole->rank;
    out->stays = true;
    int64_t last = -1;
    for (int32_t k = 0; k < whole->rank; k++) {
        out->dims[k] = part->dims[perm[k]];
        out->from[k] = from[perm[k]];
        if (out->dims[k] == 1)
            continue;
        out->stays = out->stays && perm[k] > last;
        last = perm[k];
    }
    out->offset = *at * out->to[axis];
    *at += out->dims[axis];
}

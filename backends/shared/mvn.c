/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/mvn.h"

#include <stdlib.h>

static void add_axis(grt_axes_walk *walk, int64_t dim, int64_t stride)
{
    walk->dims[walk->rank] = dim;
    walk->strides[walk->rank++] = stride;
    walk->total *= dim;
}

grt_status grt_mvn_reshape(grt_reshape *r)
{
    static const int64_t usual[] = {0, 2, 3};
    const grt_tensor *x = r->in[0];
    int64_t strides[GRT_MAX_RANK];
    bool named[GRT_MAX_RANK] = {false};
    size_t n;
    const int64_t *axes = grt_attr_ints(r->desc, "axes", &n);
    if (!axes)
        axes = usual, n = 3;
    for (size_t k = 0; k < n; k++) {
        const int64_t axis = grt_axis(axes[k], x->rank);
        if (axis < 0)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axes[%zu] is %lld; for rank %d it must be in [%d, %d]", k, (long long)axes[k],
                               x->rank, -x->rank, x->rank - 1);
        named[axis] = true;
    }
    grt_mvn *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    grt_dims_strides(x->dims, x->rank, strides);
    shape->kept.total = shape->over.total = 1;
    for (int32_t k = 0; k < x->rank; k++)
        add_axis(named[k] ? &shape->over : &shape->kept, x->dims[k], strides[k]);
    r->shape = shape;
    return GRT_OK;
}

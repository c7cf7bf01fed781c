/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/cumulate.h"

#include <stdlib.h>

grt_status grt_cumulate_create(const grt_kernel_node *node, void **out_state)
{
    grt_cumulate *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->product = grt_op_is(node->desc, "", "CumProd");
    state->exclusive = grt_attr_int(node->desc, "exclusive", 0) != 0;
    state->reverse = grt_attr_int(node->desc, "reverse", 0) != 0;
    *out_state = state;
    return GRT_OK;
}

grt_status grt_cumulate_axis(const grt_op_desc *desc, const grt_tensor *x, const grt_tensor *axis,
                             int32_t *out_axis)
{
    const int64_t given = grt_tensor_int(axis, 0), found = grt_axis(given, x->rank);
    if (found < 0)
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis is %lld; for rank %d it must be in [%d, %d]", (long long)given, x->rank,
                           -x->rank, x->rank - 1);
    *out_axis = (int32_t)found;
    return GRT_OK;
}

bool grt_lp_norm_supports(const grt_kernel_node *node, grt_text *why)
{
    const int64_t p = grt_attr_int(node->desc, "p", 2);
    if (p == 1 || p == 2)
        return true;
    grt_text_add(why, "attribute p is %lld; norms 1 and 2 are supported", (long long)p);
    return false;
}

grt_status grt_lp_norm_create(const grt_kernel_node *node, void **out_state)
{
    grt_lp_norm *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->axis = grt_attr_int(node->desc, "axis", -1);
    state->p = grt_attr_int(node->desc, "p", 2);
    *out_state = state;
    return GRT_OK;
}

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

grt_status grt_det_check(const grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    if (x->dims[x->rank - 2] == x->dims[x->rank - 1])
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "matrices must be square, found %lld x %lld",
                       (long long)x->dims[x->rank - 2], (long long)x->dims[x->rank - 1]);
}

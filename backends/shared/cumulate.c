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

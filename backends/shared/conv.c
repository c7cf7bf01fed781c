/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/conv.h"

grt_status grt_conv_check_addends(const grt_reshape *r, bool last)
{
    const grt_tensor *y = r->out[0], *bias = grt_reshape_in(r, GRT_CONV_BIAS),
                     *residual = grt_reshape_in(r, GRT_CONV_RESIDUAL);
    const int64_t channels = y->dims[last ? y->rank - 1 : 1];
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (bias && grt_tensor_elements(bias) != channels)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)channels);
    if (residual && !grt_dims_equal(residual->dims, residual->rank, y->dims, y->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the residual is %s; expected the result's dims, %s",
                           grt_tensor_text(residual, found), grt_tensor_text(y, wanted));
    return GRT_OK;
}

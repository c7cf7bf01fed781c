/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/det.h"

grt_status grt_det_check(const grt_reshape *r)
{
    const grt_tensor *x = r->in[0];
    if (x->dims[x->rank - 2] == x->dims[x->rank - 1])
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "matrices must be square, found %lld x %lld",
                       (long long)x->dims[x->rank - 2], (long long)x->dims[x->rank - 1]);
}

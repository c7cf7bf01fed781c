/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/mel.h"

#include "src/base/element.h"
#include "src/base/tensor.h"

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

grt_status grt_mel_read(const grt_op_desc *desc, const grt_tensor *const *in, int64_t triangles, grt_mel *out)
{
    const int64_t rate = grt_tensor_int(in[2], 0);
    const double low = mel_of(grt_element_get(in[3], 0)), high = mel_of(grt_element_get(in[4], 0)),
                 step = (high - low) / (double)(triangles + 2);
    if (rate < 1 || !(step >= 0) || isinf(step))
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the sample rate must be positive, and the upper edge not below the lower one");
    *out = (grt_mel){.length = grt_tensor_int(in[1], 0), .rate = rate, .low = low, .step = step};
    return GRT_OK;
}

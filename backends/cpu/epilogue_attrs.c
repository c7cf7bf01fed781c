/* SPDX-License-Identifier: Apache-2.0 */
/* A fused node's activation, of one value. */
#include "backends/cpu/epilogue_attrs.h"

float cpu_act_scalar(grt_act act, float x)
{
    grt_act_apply(act, &x, 1);
    return x;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Words between the four lanes that hold a row of a tensor core's result. */
#ifndef GRT_BACKENDS_CUDA_LANE_EXCHANGE_CUH
#define GRT_BACKENDS_CUDA_LANE_EXCHANGE_CUH

#include <stdint.h>

/* Of four lanes with four words each: lane i gets word i of all, in the order of the lanes. */
static __device__ __forceinline__ void exchange(uint32_t *v, int quad)
{
#pragma unroll
    for (int step = 1; step <= 2; step *= 2)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & step)
                continue;
            const bool upper = quad & step;
            const uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + step], step);
            v[i] = upper ? got : v[i];
            v[i + step] = upper ? v[i + step] : got;
        }
}

#endif

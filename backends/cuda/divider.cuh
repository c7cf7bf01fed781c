/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of numbers below 2^31 by a number that the host knows, without a division. */
#ifndef GRT_BACKENDS_CUDA_DIVIDER_CUH
#define GRT_BACKENDS_CUDA_DIVIDER_CUH

#include <cstdint>

namespace
{

struct divider {
    uint32_t factor;
    int shift; /* -1: by one */

    static divider by(int d)
    {
        int bits = 0;
        while ((int64_t)1 << bits < d)
            bits++;
        return {(uint32_t)((((uint64_t)1 << (31 + bits)) + (uint64_t)d - 1) / (uint64_t)d), bits - 1};
    }
    __device__ __forceinline__ int operator()(int n) const
    {
        return shift < 0 ? n : (int)(__umulhi((uint32_t)n, factor) >> shift);
    }
};

} // namespace

#endif

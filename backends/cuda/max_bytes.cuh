/* SPDX-License-Identifier: Apache-2.0 */
/* The largest of bytes, 16 places at once. Bytes are compared as halves of words, of which processors have an
 * instruction; there is none for bytes. */
#ifndef GRT_BACKENDS_CUDA_MAX_BYTES_CUH
#define GRT_BACKENDS_CUDA_MAX_BYTES_CUH

#include <stdint.h>

/* SIGNED ones are taken plus 128. Of no bytes the largest is the type's least. */
template <bool SIGNED> struct max_bytes {
    uint32_t even[4] = {}, odd[4] = {};

    __device__ __forceinline__ void add(uint4 bytes)
    {
        const uint32_t flip = SIGNED ? 0x80808080u : 0, low = 0x00FF00FFu,
                       word[4] = {bytes.x ^ flip, bytes.y ^ flip, bytes.z ^ flip, bytes.w ^ flip};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            even[i] = __vmaxu2(even[i], word[i] & low);
            odd[i] = __vmaxu2(odd[i], word[i] >> 8 & low);
        }
    }
    __device__ __forceinline__ uint4 largest() const
    {
        const uint32_t flip = SIGNED ? 0x80808080u : 0;
        return make_uint4((even[0] | odd[0] << 8) ^ flip, (even[1] | odd[1] << 8) ^ flip,
                          (even[2] | odd[2] << 8) ^ flip, (even[3] | odd[3] << 8) ^ flip);
    }
};

#endif

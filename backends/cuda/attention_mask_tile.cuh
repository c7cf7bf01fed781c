/* SPDX-License-Identifier: Apache-2.0 */
/* What warps do with tiles of masks in shared memory (attention_mask.h). */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_MASK_TILE_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_MASK_TILE_CUH

#include "backends/cuda/attention_mask.h"
#include "backends/cuda/attention_rows.cuh"

/* A key that such a number hides has a weight of exactly zero in a row with a score (times log2(e)) above
 * SEEN_FROM. Passes write -1e30. */
#define HIDDEN_TO (-9e29f)
#define SEEN_FROM (-1e29f)

/* True if all elements of these 16 bytes of a mask hide. */
template <class M> static __device__ __forceinline__ bool mask_hides(const uint4 &v)
{
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    if constexpr (sizeof(M) == 1) {
        return (v.x | v.y | v.z | v.w) == 0;
    } else if constexpr (std::is_same<M, __half>::value) { /* which has no such number but the infinite one */
        const uint32_t infinite = 0xFC00FC00u;
        return v.x == infinite && v.y == infinite && v.z == infinite && v.w == infinite;
    } else {
        bool all = true;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if constexpr (sizeof(M) == 4)
                all &= __uint_as_float(words[i]) <= HIDDEN_TO;
            else
                all &= __uint_as_float(words[i] & 0xFFFF0000u) <= HIDDEN_TO &&
                       __uint_as_float(words[i] << 16) <= HIDDEN_TO;
        return all;
    }
}

/* True if the tile hides all keys from the warp's 16 rows. Called by all lanes; warp: of the tile's rows. */
template <class M>
static __device__ __forceinline__ bool mask_tile_hides(const char *mask, uint32_t warp, uint32_t lane)
{
    enum { SIZE = sizeof(M), LINE = SIZE == 1 ? 64 : 128, PANELS = SIZE == 4 ? 2 : 1 };
    bool all = true;
#pragma unroll
    for (int p = 0; p < PANELS; p++) {
        const uint4 *lines = (const uint4 *)(mask + (p * CUDA_MASK_ROWS + warp * WARP_ROWS) * LINE);
#pragma unroll
        for (int i = 0; i < WARP_ROWS * LINE / 16; i += 32)
            all &= mask_hides<M>(lines[i + lane]);
    }
    return __all_sync(0xffffffffu, all);
}

/* Scores, times log2(e), of N keys with the tile's mask. row: the lane's first, in the tile. */
template <int N, class M>
static __device__ __forceinline__ void mask_tile_add(const char *mask, float factor, float (*score)[4],
                                                     uint32_t row, uint32_t quad)
{
    struct alignas(2 * sizeof(M)) pair {
        M v[2];
    };
#pragma unroll
    for (int k = 0; k < N / 8; k++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const pair two = *(const pair *)(mask + cuda_mask_at(sizeof(M), row + 8 * r, k * 8 + 2 * quad));
#pragma unroll
            for (int i = 0; i < 2; i++)
                score[k][2 * r + i] = attention_masked(score[k][2 * r + i] * factor, two.v[i]);
        }
}

/* Calls `use` with an element of the mask's type. */
template <class F> static __device__ __forceinline__ void mask_with_type(int dtype, F use)
{
    if (dtype == GRT_DTYPE_BOOL)
        use(uint8_t());
    else if (dtype == GRT_DTYPE_FLOAT16)
        use(__half());
    else if (dtype == GRT_DTYPE_BFLOAT16)
        use(__nv_bfloat16());
    else
        use(0.0f);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes by wgmma of panels in shared memory, and how a warpgroup's sums leave. */
#ifndef GRT_BACKENDS_CUDA_QGEMM_PANELS_CUH
#define GRT_BACKENDS_CUDA_QGEMM_PANELS_CUH

#include "backends/cuda/qgemm_store.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

/* What leaves at once: the sums of a warp's 16 pixels and 32 filters. */
struct quarter {
    enum { TILES_M = 1, TILES_N = 4, FILTERS = 32 };
};

/* The epilogue's columns of a block. */
template <int N, bool ROWS = false> struct shared_columns {
    int32_t offset[N];
    float scale[N], bias[N], row[ROWS ? N : 4];

    __device__ __forceinline__ void fill(const cuda_qfinish &f, int first, int n, int thread)
    {
        if (thread >= N)
            return;
        const int j = min(first + thread, n - 1);
        offset[thread] = f.offset[j];
        scale[thread] = f.scale[j];
        bias[thread] = f.bias[j];
        if constexpr (ROWS)
            row[thread] = f.row[j];
    }
    /* By a warp, all from the first on; n is a multiple of 4. */
    __device__ __forceinline__ void fill_by_warp(const cuda_qfinish &f, int from, int n)
    {
        for (int at = threadIdx.x % 32 * 4; at < N; at += 32 * 4) {
            const int j = min(from + at, n - 4);
            const int4 offsets = *(const int4 *)(f.offset + j);
            const float4 scales = *(const float4 *)(f.scale + j), biases = *(const float4 *)(f.bias + j);
            if constexpr (ROWS)
                *(float4 *)(row + at) = *(const float4 *)(f.row + j);
            *(int4 *)(offset + at) = offsets;
            *(float4 *)(scale + at) = scales;
            *(float4 *)(bias + at) = biases;
        }
    }
    /* Of column k of a lane's eight, from the first on. */
    __device__ __forceinline__ float row_of(int first, int k) const
    {
        return row[first + (int)(threadIdx.x & 3) * 8 + k];
    }
    __device__ __forceinline__ void read(int first, lane_columns *to) const
    {
        const int j = first + (int)(threadIdx.x & 3) * 8;
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
            *(int4 *)(to->offset + k) = *(const int4 *)(offset + j + k);
            *(float4 *)(to->scale + k) = *(const float4 *)(scale + j + k);
            *(float4 *)(to->bias + k) = *(const float4 *)(bias + j + k);
            *(int4 *)(to->zero + k) = make_int4(0, 0, 0, 0);
        }
    }
};

#define QGEMM_C4(c, i)  "+r"((c)[i][0]), "+r"((c)[i][1]), "+r"((c)[i][2]), "+r"((c)[i][3])
#define QGEMM_C16(c, i) QGEMM_C4(c, i), QGEMM_C4(c, (i) + 1), QGEMM_C4(c, (i) + 2), QGEMM_C4(c, (i) + 3)
#define QGEMM_PRODUCT_64(TYPE)                                                                             \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\n"                                                 \
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32." TYPE ".s8 " WARPGROUP_R64 ", %32, %33, p;}" \
                 : QGEMM_C16(c, 0), QGEMM_C16(c, 4)                                                        \
                 : "l"(a), "l"(b), "r"(adds))
#define QGEMM_PRODUCT_128(TYPE)                                                                              \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;\n"                                                   \
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32." TYPE ".s8 " WARPGROUP_R128 ", %64, %65, p;}" \
                 : QGEMM_C16(c, 0), QGEMM_C16(c, 4), QGEMM_C16(c, 8), QGEMM_C16(c, 12)                       \
                 : "l"(a), "l"(b), "r"(adds))

/* c (+)= 64 x 32 by 32 x 64 or 128. */
template <bool SIGNED>
__device__ __forceinline__ void multiply_panels(int32_t (&c)[8][4], uint64_t a, uint64_t b, int adds)
{
    if constexpr (SIGNED)
        QGEMM_PRODUCT_64("s8");
    else
        QGEMM_PRODUCT_64("u8");
}
template <bool SIGNED>
__device__ __forceinline__ void multiply_panels(int32_t (&c)[16][4], uint64_t a, uint64_t b, int adds)
{
    if constexpr (SIGNED)
        QGEMM_PRODUCT_128("s8");
    else
        QGEMM_PRODUCT_128("u8");
}

/* The compiler does not know of products in flight. */
template <int N> __device__ __forceinline__ void hold_panels(int32_t (&c)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : QGEMM_C4(c, i)::"memory");
}

/* Stages of shared memory are panels of 128 bytes of a row; groups of four warps have 64 pixels each and read
 * the same weights. */
template <int GROUPS, int COLUMNS, int STAGES, int BLOCKS> struct panels {
    enum {
        CHUNKS = PANEL_ROW / CUDA_QCHUNK,
        THREADS = 128 * GROUPS,
        AHEAD = STAGES,
        RESIDENT = BLOCKS, /* of a multiprocessor */
        PIXELS = 64 * GROUPS,
        FILTERS = COLUMNS,
        STAGE = (PIXELS + FILTERS) * CHUNKS,
        STEP_ROWS = THREADS / CHUNKS,
        X_EACH = PIXELS / STEP_ROWS,
        W_EACH = FILTERS / STEP_ROWS,
        BYTES = AHEAD * STAGE * CUDA_QCHUNK + PANEL_ALIGNMENT
    };
    static_assert(FILTERS % STEP_ROWS == 0 && STAGES >= 2, "");
};

/* Of `depth` chunks. From the first stages, which are on their way, to the sums of all; the last product may
 * still run. */
template <class F, bool SIGNED>
__device__ __forceinline__ void sum_panels(const cuda_qgemm &g, const view &v, int depth, uint4 *stages,
                                           fetcher<F> &f, int32_t (&sum)[F::FILTERS / 8][4])
{
    const int group = threadIdx.x / 128;
    int now = 0, next = F::AHEAD - 1;
    for (int at = 0; at < depth; at += F::CHUNKS) {
        wait_for<F::AHEAD - 2>();
        publish_shared();
        warpgroup_wait<0>();
        __syncthreads(); /* this stage is there, and all have done with the one that is fetched into */
        const uint32_t x = (uint32_t)__cvta_generic_to_shared(stages + now * F::STAGE) +
                           group * 64 * PANEL_ROW,
                       w = (uint32_t)__cvta_generic_to_shared(stages + now * F::STAGE) +
                           F::PIXELS * PANEL_ROW;
        warpgroup_begin();
#pragma unroll
        for (int step = 0; step < PANEL_ROW / 32; step++)
            multiply_panels<SIGNED>(sum, panel_descriptor(x + step * 32), panel_descriptor(w + step * 32),
                                    at > 0 || step > 0);
        warpgroup_commit();
        if (at + (F::AHEAD - 1) * F::CHUNKS < depth)
            f.fetch_stage(g, v, stages + next * F::STAGE);
        commit();
        now = now + 1 == F::AHEAD ? 0 : now + 1;
        next = next + 1 == F::AHEAD ? 0 : next + 1;
    }
}

} // namespace

#endif

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
template <int N> struct shared_columns {
    int32_t offset[N];
    float scale[N], bias[N];

    __device__ __forceinline__ void fill(const cuda_qfinish &f, int first, int n, int thread)
    {
        if (thread >= N)
            return;
        const int j = min(first + thread, n - 1);
        offset[thread] = f.offset[j];
        scale[thread] = f.scale[j];
        bias[thread] = f.bias[j];
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
#define QGEMM_R32                                                                                            \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27," \
    "%28,%29,%30,%31"
#define QGEMM_PRODUCT_64(TYPE)                                                                           \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\n"                                               \
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32." TYPE ".s8 {" QGEMM_R32 "}, %32, %33, p;}" \
                 : QGEMM_C16(c, 0), QGEMM_C16(c, 4)                                                      \
                 : "l"(a), "l"(b), "r"(adds))
#define QGEMM_PRODUCT_128(TYPE)                                                                          \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;\n"                                               \
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32." TYPE ".s8 {" QGEMM_R32                   \
                 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52," \
                 "%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p;}"                           \
                 : QGEMM_C16(c, 0), QGEMM_C16(c, 4), QGEMM_C16(c, 8), QGEMM_C16(c, 12)                   \
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

/* What threads have copied to shared memory is seen by wgmma. */
__device__ __forceinline__ void publish_copies()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* The compiler does not know of products in flight. */
template <int N> __device__ __forceinline__ void hold_panels(int32_t (&c)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : QGEMM_C4(c, i)::"memory");
}

} // namespace

#endif

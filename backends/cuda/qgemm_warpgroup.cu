/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_warpgroup.h. Stages of shared memory are panels of 128 bytes of a row; two groups of four warps
 * have 64 pixels each and read the same weights. Two blocks of a multiprocessor hide each other's waiting. */
#include "backends/cuda/qgemm_warpgroup.h"

#include "backends/cuda/qgemm_tile.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

struct panels {
    enum {
        CHUNKS = PANEL_ROW / CUDA_QCHUNK,
        THREADS = 256,
        AHEAD = 3,
        PIXELS = 128,
        FILTERS = 128,
        STAGE = (PIXELS + FILTERS) * CHUNKS,
        STEP_ROWS = THREADS / CHUNKS,
        X_EACH = PIXELS / STEP_ROWS,
        W_EACH = FILTERS / STEP_ROWS,
        BYTES = AHEAD * STAGE * CUDA_QCHUNK + PANEL_ALIGNMENT
    };
};

/* What leaves at once: the sums of a warp's 16 pixels and 32 filters. */
struct quarter {
    enum { TILES_M = 1, TILES_N = 4, FILTERS = 32, COUNT = panels::FILTERS / FILTERS };
};

#define QGEMM_C4(c, i)  "+r"((c)[i][0]), "+r"((c)[i][1]), "+r"((c)[i][2]), "+r"((c)[i][3])
#define QGEMM_C16(c, i) QGEMM_C4(c, i), QGEMM_C4(c, (i) + 1), QGEMM_C4(c, (i) + 2), QGEMM_C4(c, (i) + 3)
#define QGEMM_PRODUCT(TYPE)                                                                             \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;\n"                                              \
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32." TYPE ".s8 "                             \
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,"  \
                 "%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43," \
                 "%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "   \
                 "%64, %65, p;}"                                                                        \
                 : QGEMM_C16(c, 0), QGEMM_C16(c, 4), QGEMM_C16(c, 8), QGEMM_C16(c, 12)                  \
                 : "l"(a), "l"(b), "r"(adds))

/* c (+)= 64 x 32 by 32 x 128. */
template <bool SIGNED>
__device__ __forceinline__ void multiply_panels(int32_t (&c)[16][4], uint64_t a, uint64_t b, int adds)
{
    if constexpr (SIGNED)
        QGEMM_PRODUCT("s8");
    else
        QGEMM_PRODUCT("u8");
}

/* What threads have copied to shared memory is seen by wgmma. */
__device__ __forceinline__ void publish_copies()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <bool SIGNED>
__global__ void __launch_bounds__(panels::THREADS, 2)
    multiply_warpgroups(const __grid_constant__ cuda_qgemm g, const __grid_constant__ view all, int columns,
                        bool in_eights)
{
    using F = panels;
    extern __shared__ uint4 room[];
    const uint32_t skip = (0u - (uint32_t)__cvta_generic_to_shared(room)) % PANEL_ALIGNMENT;
    uint4 *stages = room + skip / CUDA_QCHUNK;
    const view v = item_of(g, all);
    const int64_t depth = depth_of(g);
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4;
    const int first_pixel = blockIdx.x / columns * F::PIXELS,
              first_filter = blockIdx.x % columns * F::FILTERS;
    int32_t sum[16][4];
    fetcher<F> f;
    f.begin(g, v, first_pixel, first_filter);
#pragma unroll
    for (int k = 0; k < F::AHEAD - 1; k++) {
        if (k * F::CHUNKS < depth)
            f.fetch_stage(g, v, stages + k * F::STAGE);
        commit();
    }
    int now = 0, next = F::AHEAD - 1;
    for (int at = 0; at < depth; at += F::CHUNKS) {
        wait_for<F::AHEAD - 2>();
        publish_copies();
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
    warpgroup_wait<0>();
#pragma unroll
    for (int i = 0; i < 16; i++) /* the compiler does not know of products in flight */
        asm volatile("" : QGEMM_C4(sum, i)::"memory");
    int32_t none[1][4] = {};
#pragma unroll
    for (int q = 0; q < quarter::COUNT; q++) {
        int32_t part[1][4][4];
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[0][t][i] = sum[q * 4 + t][i];
        store_tile<quarter, false>(g, v, part, none, first_pixel + group * 64 + warp * TILE,
                                   first_filter + q * quarter::FILTERS, in_eights);
    }
}

int64_t warpgroup_tiles_of(const cuda_qgemm *g)
{
    const int64_t pixels = (int64_t)g->images * g->out[0] * g->out[1];
    return ((pixels + panels::PIXELS - 1) / panels::PIXELS) *
           ((g->n + panels::FILTERS - 1) / panels::FILTERS);
}

template <bool SIGNED>
grt_status warpgroup_launch(const cuda_qgemm *g, const view &v, bool in_eights, cudaStream_t stream)
{
    const dim3 grid((unsigned)warpgroup_tiles_of(g), (unsigned)g->items);
    CUDA_TRY(cudaFuncSetAttribute(multiply_warpgroups<SIGNED>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  panels::BYTES));
    multiply_warpgroups<SIGNED><<<grid, panels::THREADS, panels::BYTES, stream>>>(
        *g, v, (g->n + panels::FILTERS - 1) / panels::FILTERS, in_eights);
    CUDA_LAUNCHED();
    return GRT_OK;
}

} // namespace

bool cuda_qgemm_warpgroup_fits(const cuda_qgemm *g)
{
    const int64_t depth = (int64_t)g->kernel[0] * g->kernel[1] * g->chunks;
    return !g->sums_rows && g->n >= 96 && depth >= 2 * panels::CHUNKS && warpgroup_tiles_of(g) < INT32_MAX &&
           warpgroup_tiles_of(g) * g->items >= g->multiprocessors;
}

grt_status cuda_qgemm_warpgroup_enqueue(const cuda_qgemm *g, const void *x, const void *w,
                                        const void *residual, const cuda_qfinish *finish, void *y,
                                        bool in_eights, cudaStream_t stream)
{
    const view v = {(const uint8_t *)x, (const uint8_t *)w, (const uint8_t *)residual, y, *finish};
    return g->x_signed ? warpgroup_launch<true>(g, v, in_eights, stream)
                       : warpgroup_launch<false>(g, v, in_eights, stream);
}

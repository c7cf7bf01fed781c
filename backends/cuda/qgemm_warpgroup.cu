/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_warpgroup.h. Stages of shared memory are panels of 128 bytes of a row; groups of four warps have
 * 64 pixels each and read the same weights. Blocks of a multiprocessor hide each other's waiting. */
#include "backends/cuda/qgemm_warpgroup.h"

#include "backends/cuda/qgemm_panels.cuh"

#include <math.h>

namespace
{

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

/* From the first stages, which are on their way, to the sums of all; the last product may still run. */
template <class F, bool SIGNED>
__device__ __forceinline__ void sum_panels(const cuda_qgemm &g, const view &v, uint4 *stages, fetcher<F> &f,
                                           int32_t (&sum)[F::FILTERS / 8][4])
{
    const int depth = (int)depth_of(g), group = threadIdx.x / 128;
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
}

/* Residuals of the next filters come while these leave. */
template <class F>
__device__ __forceinline__ void
store_panels(const cuda_qgemm &g, const view &v, const shared_columns<F::FILTERS> &epilogue,
             int32_t (&sum)[F::FILTERS / 8][4], int first_pixel, int first_filter, bool in_eights)
{
    const int32_t none[4] = {};
    const int eight = (int)(threadIdx.x & 3) * 8;
    const cuda_qhead h = *v.finish.head;
    const lane_rows rows(g, v, first_pixel);
    lane_residual following;
    if (in_eights)
        following.load(g, v, rows, first_filter + eight);
    warpgroup_wait<0>();
    hold_panels(sum);
#pragma unroll
    for (int q = 0; q < F::FILTERS / quarter::FILTERS; q++) {
        const int first = first_filter + q * quarter::FILTERS;
        int32_t part[4][4];
        lane_columns each;
        const lane_residual residual = following;
        if (first >= g.n)
            break;
        if (in_eights && (q + 1) * quarter::FILTERS < F::FILTERS)
            following.load(g, v, rows, first + quarter::FILTERS + eight);
        epilogue.read(q * quarter::FILTERS, &each);
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[t][i] = sum[q * 4 + t][i];
        store_lane<quarter, false>(g, v, h, each, part, none, rows, residual, first, in_eights);
    }
}

template <class F, bool SIGNED>
__global__ void __launch_bounds__(F::THREADS, F::RESIDENT)
    multiply_warpgroups(const __grid_constant__ cuda_qgemm g, const __grid_constant__ view all, int columns,
                        bool in_eights)
{
    extern __shared__ uint4 room[];
    __shared__ __align__(16) shared_columns<F::FILTERS> epilogue;
    const uint32_t skip = (0u - (uint32_t)__cvta_generic_to_shared(room)) % PANEL_ALIGNMENT;
    uint4 *stages = room + skip / CUDA_QCHUNK;
    const view v = item_of(g, all);
    const int first_pixel = blockIdx.x / columns * F::PIXELS,
              first_filter = blockIdx.x % columns * F::FILTERS;
    int32_t sum[F::FILTERS / 8][4];
    fetcher<F> f;
    f.begin(g, v, first_pixel, first_filter);
#pragma unroll
    for (int k = 0; k < F::AHEAD - 1; k++) {
        if (k * F::CHUNKS < depth_of(g))
            f.fetch_stage(g, v, stages + k * F::STAGE);
        commit();
    }
    epilogue.fill(v.finish, first_filter, g.n, threadIdx.x);
    sum_panels<F, SIGNED>(g, v, stages, f, sum);
    store_panels<F>(g, v, epilogue, sum, first_pixel + threadIdx.x / 32 * TILE, first_filter, in_eights);
}

/* Both are for two blocks of a multiprocessor. Steps in forms of three (128 x 64, 64 x 128) are faster alone,
 * but behind one of two, and the other way round, they take 3 to 11 us longer on an H100. */
using large = panels<2, 128, 3, 2>;
using small = panels<1, 64, 6, 2>;

/* Of each item. */
template <class F> int64_t warpgroup_tiles_of(const cuda_qgemm *g)
{
    const int64_t pixels = (int64_t)g->images * g->out[0] * g->out[1];
    return ((pixels + F::PIXELS - 1) / F::PIXELS) * ((g->n + F::FILTERS - 1) / F::FILTERS);
}

template <class F, bool SIGNED>
grt_status warpgroup_launch(const cuda_qgemm *g, const view &v, bool in_eights, cudaStream_t stream)
{
    const dim3 grid((unsigned)warpgroup_tiles_of<F>(g), (unsigned)g->items);
    CUDA_TRY(cudaFuncSetAttribute(multiply_warpgroups<F, SIGNED>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  F::BYTES));
    multiply_warpgroups<F, SIGNED>
        <<<grid, F::THREADS, F::BYTES, stream>>>(*g, v, (g->n + F::FILTERS - 1) / F::FILTERS, in_eights);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <class F>
grt_status launch_panels(const cuda_qgemm *g, const view &v, bool in_eights, cudaStream_t stream)
{
    return g->x_signed ? warpgroup_launch<F, true>(g, v, in_eights, stream)
                       : warpgroup_launch<F, false>(g, v, in_eights, stream);
}

/* What the busiest multiprocessor computes. `factor`: how much longer that takes than in the largest tiles,
 * as measured on an H100. A tile that is alone waits for memory; of small ones no more are worth it than run
 * at once. */
template <class F> double cost_of(const cuda_qgemm *g, double factor)
{
    const int64_t tiles = warpgroup_tiles_of<F>(g) * g->items,
                  each = (tiles + g->multiprocessors - 1) / g->multiprocessors;
    const bool crowded = (int)F::PIXELS < (int)large::PIXELS && each > F::RESIDENT;
    return crowded ? INFINITY : (double)(each * F::PIXELS * F::FILTERS) * factor * (each == 1 ? 1.25 : 1.0);
}

} // namespace

bool cuda_qgemm_warpgroup_fits(const cuda_qgemm *g)
{
    return !g->sums_rows && warpgroup_tiles_of<small>(g) < INT32_MAX;
}

grt_status cuda_qgemm_warpgroup_enqueue(const cuda_qgemm *g, const void *x, const void *w,
                                        const void *residual, const cuda_qfinish *finish, void *y,
                                        bool in_eights, cudaStream_t stream)
{
    const view v = view_of(g, x, w, residual, finish, y);
    if (cost_of<small>(g, 1.3) < cost_of<large>(g, 1.0))
        return launch_panels<small>(g, v, in_eights, stream);
    return launch_panels<large>(g, v, in_eights, stream);
}

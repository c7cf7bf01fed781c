/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_warpgroup.h. Blocks of a multiprocessor hide each other's waiting. */
#include "backends/cuda/qgemm_warpgroup.h"

#include "backends/cuda/qgemm_panels.cuh"

#include <math.h>

namespace
{

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
    overlap_let_next_begin();
    f.begin(g, v, first_pixel, first_filter, 0, (int)depth_of(g));
    f.fetch_first(g, v, stages);
    epilogue.fill(v.finish, first_filter, g.n, threadIdx.x);
    sum_panels<F, SIGNED>(g, v, (int)depth_of(g), stages, f, sum);
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
    CUDA_TRY(overlap_launch(g->overlaps, multiply_warpgroups<F, SIGNED>, grid, F::THREADS, F::BYTES, stream,
                            *g, v, (g->n + F::FILTERS - 1) / F::FILTERS, in_eights));
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

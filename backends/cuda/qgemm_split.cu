/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_split.h. Each block of a cluster sums some stages of the same tile; then each finishes its share
 * of the tile, with the others' sums from their shared memory. Integers: the order does not matter. */
#include "backends/cuda/qgemm_split.h"

#include "backends/cuda/cluster.cuh"
#include "backends/cuda/qgemm_panels.cuh"

namespace
{

using split_form = panels<1, 64, 6, 2>;

enum {
    MOST_SPLITS = 8,
    SPLIT_STAGES = 2,       /* of a block at least */
    LANE_ROWS = 2 * 2 * 128 /* a lane's eight filters of a row, for all of a tile */
};

__device__ __forceinline__ void add_to(int4 &a, int4 b)
{
    a.x += b.x;
    a.y += b.y;
    a.z += b.z;
    a.w += b.w;
}

/* [32 filters][row of a lane's two][half of its eight filters][thread] */
__device__ __forceinline__ int4 *share_of(int4 *shares, int row, int half)
{
    return shares + (row / 128 * 2 + half) * 128 + row % 128;
}

__device__ __forceinline__ void write_shares(const int32_t (&sum)[8][4], int4 *shares)
{
#pragma unroll
    for (int q = 0; q < 2; q++)
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int t = q * 4 + half * 2;
                *share_of(shares, (q * 2 + k) * 128 + threadIdx.x, half) =
                    make_int4(sum[t][2 * k], sum[t][2 * k + 1], sum[t + 1][2 * k], sum[t + 1][2 * k + 1]);
            }
}

/* Row `row` of LANE_ROWS. */
__device__ __forceinline__ void finish_row(const cuda_qgemm &g, const view &v, const cuda_qhead &h,
                                           const shared_columns<split_form::FILTERS> &epilogue, int4 *shares,
                                           int splits, int row, int first_pixel, int first_filter,
                                           bool in_eights)
{
    const int q = row / 256, k = row / 128 % 2, thread = row % 128,
              first = first_filter + q * quarter::FILTERS, filter = first + (thread & 3) * 8;
    lane_columns each;
    lane_residual residual;
    const lane_rows rows(g, v, first_pixel + thread / 32 * TILE);
    if (filter >= g.n)
        return;
    if (in_eights)
        residual.load(g, v, rows, filter);
    epilogue.read(q * quarter::FILTERS, &each);
    int4 sum[2] = {};
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(share_of(shares, row, 0)),
                   other = (uint32_t)__cvta_generic_to_shared(share_of(shares, row, 1));
#pragma unroll 4
    for (int s = 0; s < splits; s++) {
        add_to(sum[0], cluster_load(at, s));
        add_to(sum[1], cluster_load(other, s));
    }
    const int32_t both[8] = {sum[0].x, sum[0].y, sum[0].z, sum[0].w, sum[1].x, sum[1].y, sum[1].z, sum[1].w},
                  none[4] = {};
    int32_t part[4][4];
#pragma unroll
    for (int t = 0; t < 4; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            part[t][i] = both[t * 2 + i % 2];
    lane_rows one = rows;
    one.there[0] = rows.there[0] && k == 0;
    one.there[1] = rows.there[1] && k == 1;
    store_lane<quarter, false>(g, v, h, each, part, none, one, residual, first, in_eights);
}

template <bool SIGNED>
__global__ void __launch_bounds__(split_form::THREADS, split_form::RESIDENT)
    multiply_split(const __grid_constant__ cuda_qgemm g, const __grid_constant__ view all, int columns,
                   int splits, bool in_eights)
{
    using F = split_form;
    extern __shared__ uint4 room[];
    __shared__ __align__(16) shared_columns<F::FILTERS> epilogue;
    const uint32_t skip = (0u - (uint32_t)__cvta_generic_to_shared(room)) % PANEL_ALIGNMENT;
    uint4 *stages = room + skip / CUDA_QCHUNK;
    const view v = item_of(g, all);
    const int tile = blockIdx.x / splits, rank = (int)cluster_rank(),
              first_pixel = tile / columns * F::PIXELS, first_filter = tile % columns * F::FILTERS,
              depth = (int)depth_of(g), all_stages = (depth + F::CHUNKS - 1) / F::CHUNKS,
              begin = all_stages * rank / splits * F::CHUNKS,
              end = min(all_stages * (rank + 1) / splits * F::CHUNKS, depth);
    int32_t sum[F::FILTERS / 8][4];
    fetcher<F> f;
    overlap_let_next_begin();
    f.begin(g, v, first_pixel, first_filter, begin, end);
    f.fetch_first(g, v, stages);
    epilogue.fill(v.finish, first_filter, g.n, threadIdx.x);
    const cuda_qhead h = *v.finish.head;
    sum_panels<F, SIGNED>(g, v, end - begin, stages, f, sum);
    warpgroup_wait<0>();
    hold_panels(sum);
    __syncthreads(); /* no product reads the stages any more */
    write_shares(sum, (int4 *)stages);
    cluster_arrive();
    cluster_wait();
    const int each = LANE_ROWS / splits;
    for (int row = threadIdx.x; row < each; row += F::THREADS)
        finish_row(g, v, h, epilogue, (int4 *)stages, splits, rank * each + row, first_pixel, first_filter,
                   in_eights);
    cluster_arrive(); /* the others have read what is here */
    cluster_wait();
}

int64_t split_tiles_of(const cuda_qgemm *g)
{
    const int64_t pixels = (int64_t)g->images * g->out[0] * g->out[1];
    return (pixels + split_form::PIXELS - 1) / split_form::PIXELS *
           ((g->n + split_form::FILTERS - 1) / split_form::FILTERS) * g->items;
}

/* As many blocks as run at once, with some stages each. */
int splits_of(const cuda_qgemm *g)
{
    const int64_t tiles = split_tiles_of(g),
                  stages = ((int64_t)g->kernel[0] * g->kernel[1] * g->chunks + split_form::CHUNKS - 1) /
                           split_form::CHUNKS;
    int splits = 1;
    while (splits < MOST_SPLITS && tiles * splits * 2 <= g->multiprocessors &&
           stages >= splits * 2 * SPLIT_STAGES)
        splits *= 2;
    return splits;
}

template <bool SIGNED>
grt_status launch_split(const cuda_qgemm *g, const view &v, int splits, bool in_eights, cudaStream_t stream)
{
    using F = split_form;
    const auto kernel = multiply_split<SIGNED>;
    const int columns = (g->n + F::FILTERS - 1) / F::FILTERS;
    const dim3 grid((unsigned)(split_tiles_of(g) / g->items * splits), (unsigned)g->items);
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config = overlap_config(true, grid, F::THREADS, F::BYTES, stream, attributes);
    attributes[1] = {};
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {(unsigned)splits, 1, 1};
    config.numAttrs = 2;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, F::BYTES));
    CUDA_TRY(cudaLaunchKernelEx(&config, kernel, *g, v, columns, splits, in_eights));
    return GRT_OK;
}

} // namespace

bool cuda_qgemm_split_fits(const cuda_qgemm *g)
{
    return !g->sums_rows && splits_of(g) > 1;
}

grt_status cuda_qgemm_split_enqueue(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                                    const cuda_qfinish *finish, void *y, bool in_eights, cudaStream_t stream)
{
    const view v = view_of(g, x, w, residual, finish, y);
    const int splits = splits_of(g);
    return g->x_signed ? launch_split<true>(g, v, splits, in_eights, stream)
                       : launch_split<false>(g, v, splits, in_eights, stream);
}

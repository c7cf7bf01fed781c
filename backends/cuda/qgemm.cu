/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm.h. A block has a tile of the result; tiles of both operands come to shared memory in stages.
 * Where weights have zero points the sums of x's rows come from the same tensor cores, as a product by ones.
 */
#include "backends/cuda/qgemm.h"

#include "backends/cuda/qgemm_bulk.h"
#include "backends/cuda/qgemm_split.h"
#include "backends/cuda/qgemm_store.cuh"
#include "backends/cuda/qgemm_warpgroup.h"

namespace
{

template <bool SIGNED>
__device__ __forceinline__ void multiply_bytes(int32_t *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    if constexpr (SIGNED)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Warps DOWN x ACROSS, each with M x N tiles of 16 x 8 results. */
template <int DOWN, int ACROSS, int M, int N, int STAGES, int BLOCKS> struct form {
    enum {
        CHUNKS = 4, /* of a row in a stage */
        THREADS = DOWN * ACROSS * 32,
        WARP_COLUMNS = ACROSS,
        TILES_M = M,
        TILES_N = N,
        AHEAD = STAGES,
        RESIDENT = BLOCKS, /* of a multiprocessor: registers are limited to that */
        PIXELS = DOWN * M * 16,
        FILTERS = ACROSS * N * 8,
        STAGE = (PIXELS + FILTERS) * CHUNKS,
        STEP_ROWS = THREADS / CHUNKS, /* rows that are fetched at once */
        X_EACH = PIXELS / STEP_ROWS,
        W_EACH = FILTERS / STEP_ROWS
    };
    static_assert(N == 4 && PIXELS % STEP_ROWS == 0 && FILTERS % STEP_ROWS == 0 && STEP_ROWS % 8 == 0 &&
                      STAGE * STAGES * 16 <= 48 << 10,
                  "");
};
using large = form<2, 4, 4, 4, 3, 2>;  /* 128 x 128 */
using narrow = form<4, 2, 2, 4, 4, 2>; /* 128 x 64 */
using small = form<2, 2, 2, 4, 4, 5>;  /* 64 x 64 */

template <class F, bool SIGNED, bool SUMS>
__device__ __forceinline__ void multiply_stage(const uint4 *stage, int row, int column,
                                               int32_t (&sum)[F::TILES_M][F::TILES_N][4],
                                               int32_t (&row_sum)[F::TILES_M][4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < F::CHUNKS / 2; step++) {
        uint32_t a[F::TILES_M][4], b[F::TILES_N][2];
#pragma unroll
        for (int m = 0; m < F::TILES_M; m++)
            load_matrices(a[m], stage + place<F>(row + m * TILE + lane % 16, step * 2 + lane / 16));
#pragma unroll
        for (int n = 0; n < F::TILES_N; n += 2)
            load_matrices(b[n], stage + place<F>(F::PIXELS + column + n * 8 + lane / 16 * 8 + lane % 8,
                                                 step * 2 + lane / 8 % 2));
#pragma unroll
        for (int m = 0; m < F::TILES_M; m++) {
#pragma unroll
            for (int n = 0; n < F::TILES_N; n++)
                multiply_bytes<SIGNED>(sum[m][n], a[m], b[n][0], b[n][1]);
            if constexpr (SUMS)
                multiply_bytes<SIGNED>(row_sum[m], a[m], 0x01010101u, 0x01010101u);
        }
    }
}

template <class F, bool SIGNED, bool SUMS>
__global__ void __launch_bounds__(F::THREADS, F::RESIDENT)
    cuda_qgemm_multiply(const __grid_constant__ cuda_qgemm g, const __grid_constant__ view all, int columns,
                        bool in_eights)
{
    __shared__ uint4 stages[F::AHEAD][F::STAGE];
    const view v = item_of(g, all);
    const int64_t depth = depth_of(g);
    const int warp = threadIdx.x / 32, row = warp / F::WARP_COLUMNS * F::TILES_M * TILE,
              column = warp % F::WARP_COLUMNS * F::TILES_N * 8;
    /* Neighbours share pixels, which are more than weights. */
    const int first_pixel = blockIdx.x / columns * F::PIXELS,
              first_filter = blockIdx.x % columns * F::FILTERS;
    int32_t sum[F::TILES_M][F::TILES_N][4] = {}, row_sum[F::TILES_M][4] = {};
    fetcher<F> f;
    overlap_let_next_begin();
    f.begin(g, v, first_pixel, first_filter, 0, (int)depth);
    f.fetch_first(g, v, stages[0]);
    int now = 0, next = F::AHEAD - 1;
    for (int at = 0; at < depth; at += F::CHUNKS) {
        wait_for<F::AHEAD - 2>();
        __syncthreads(); /* this stage is there, and all have done with the one that is fetched into */
        if (at + (F::AHEAD - 1) * F::CHUNKS < depth)
            f.fetch_stage(g, v, stages[next]);
        commit();
        multiply_stage<F, SIGNED, SUMS>(stages[now], row, column, sum, row_sum);
        now = now + 1 == F::AHEAD ? 0 : now + 1;
        next = next + 1 == F::AHEAD ? 0 : next + 1;
    }
    store_tile<F, SUMS>(g, v, sum, row_sum, first_pixel + row, first_filter + column, in_eights);
}

int64_t pixels_of(const cuda_qgemm *g)
{
    return (int64_t)g->images * g->out[0] * g->out[1];
}

template <class F> int64_t tiles_of(const cuda_qgemm *g)
{
    return ((pixels_of(g) + F::PIXELS - 1) / F::PIXELS) * ((g->n + F::FILTERS - 1) / F::FILTERS);
}

template <class F, bool SIGNED, bool SUMS>
cudaError_t launch(const cuda_qgemm *g, const view &v, bool in_eights, cudaStream_t stream)
{
    const dim3 grid((unsigned)tiles_of<F>(g), (unsigned)g->items);
    return overlap_launch(g->overlaps, cuda_qgemm_multiply<F, SIGNED, SUMS>, grid, F::THREADS, 0, stream, *g,
                          v, (g->n + F::FILTERS - 1) / F::FILTERS, in_eights);
}

template <class F, bool SUMS>
grt_status launch_form(const cuda_qgemm *g, const view &v, bool in_eights, cudaStream_t stream)
{
    const cudaError_t error = g->x_signed ? launch<F, true, SUMS>(g, v, in_eights, stream)
                                          : launch<F, false, SUMS>(g, v, in_eights, stream);
    CUDA_TRY(error);
    return GRT_OK;
}

} // namespace

void cuda_qgemm_set_device(cuda_qgemm *g, const cuda_device *device)
{
    g->multiprocessors = device->prop.multiProcessorCount;
    g->has_warpgroups = device->prop.major == 9 && device->prop.minor == 0;
    g->overlaps = device->prop.major >= 9;
    g->encode_tiled = g->has_warpgroups ? cuda_tensor_map_find() : NULL;
    g->encode_im2col = g->has_warpgroups ? cuda_image_map_find() : NULL;
}

bool cuda_qgemm_fits(const cuda_qgemm *g)
{
    return pixels_of(g) < INT32_MAX / 2 && tiles_of<small>(g) < INT32_MAX && g->items <= 65535 &&
           (int64_t)g->kernel[0] * g->kernel[1] * g->chunks < INT32_MAX / 2;
}

bool cuda_qgemm_in_eights(const cuda_qgemm *g, const void *residual, const void *y)
{
    const uintptr_t together = (uintptr_t)y | (uintptr_t)residual | (uintptr_t)g->y_pixel |
                               (uintptr_t)g->y_image | (uintptr_t)g->y_item | (uintptr_t)g->n;
    return g->y_channel == 1 && together % 8 == 0 &&
           (g->y_size == 1 || ((uintptr_t)y | (uintptr_t)residual) % 16 == 0) &&
           (g->y != GRT_DTYPE_FLOAT || g->residual == GRT_DTYPE_NONE);
}

bool cuda_qgemm_looks_up(const cuda_qgemm *g, const void *residual, const void *y)
{
    return g->has_warpgroups && cuda_qgemm_bulk_fits(g, residual, y);
}

grt_status cuda_qgemm_enqueue(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                              const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    const view v = view_of(g, x, w, residual, finish, y);
    const bool in_eights = cuda_qgemm_in_eights(g, residual, y);
    if (g->has_warpgroups && cuda_qgemm_bulk_fits(g, residual, y))
        return cuda_qgemm_bulk_enqueue(g, x, w, residual, finish, y, stream);
    if (g->has_warpgroups && cuda_qgemm_split_fits(g))
        return cuda_qgemm_split_enqueue(g, x, w, residual, finish, y, in_eights, stream);
    if (g->has_warpgroups && cuda_qgemm_warpgroup_fits(g))
        return cuda_qgemm_warpgroup_enqueue(g, x, w, residual, finish, y, in_eights, stream);
    const int64_t enough = 2 * (int64_t)g->multiprocessors;
    const bool many = tiles_of<narrow>(g) * g->items >= enough;
    /* Short sums wait for memory most of the time: more blocks hide that. */
    const bool is_long = (int64_t)g->kernel[0] * g->kernel[1] * g->chunks >= 4 * large::CHUNKS;
    if (!g->sums_rows && is_long && g->n > 64 && tiles_of<large>(g) * g->items >= enough)
        return launch_form<large, false>(g, v, in_eights, stream);
    if (g->sums_rows && many)
        return launch_form<narrow, true>(g, v, in_eights, stream);
    if (g->sums_rows)
        return launch_form<small, true>(g, v, in_eights, stream);
    if (many)
        return launch_form<narrow, false>(g, v, in_eights, stream);
    return launch_form<small, false>(g, v, in_eights, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See weight_product.h: products of up to 8 rows, at memory's speed. Warps of a block divide k, tile by tile
 * in turn, and need nothing of each other until they add up: each has a ring of stages in shared memory,
 * which asynchronous copies fill several tiles ahead. Many warps with several copies each under way keep
 * memory busy; no other kernel adds partial sums. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_FEW_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_FEW_CUH

#include "backends/cuda/overlap.cuh"
#include "backends/cuda/weight_finish.cuh"
#include "backends/cuda/weight_number.cuh"
#include "backends/cuda/weight_pack.h"

namespace
{

/* What a warp takes at once is a pair of tiles, 128 rows of k. BLOCKS: scales of a column in a pair; 0: one
 * scale for each column, which is applied at the end. */
template <class T, cuda_weight_numbers F, int BLOCKS_OF_PAIR, int ROWS_OF_X, int TILES_OF_N, int WARPS_OF_K,
          int AHEAD>
struct few_form {
    using number = T;
    using reader = weight_reader<T, F>;
    enum {
        BLOCKS = BLOCKS_OF_PAIR,
        ROWS = ROWS_OF_X,
        TILES = TILES_OF_N,
        WARPS = WARPS_OF_K,
        THREADS = WARPS * 32,
        EIGHTS = (ROWS + 7) / 8,
        STAGES = AHEAD,
        PIECE = 16,
        TILE_BYTES = reader::WORDS * 512,
        X_PIECES = 16,                    /* of a row */
        X_STRIDE = ROWS == 1 ? 256 : 272, /* eight rows' same pieces lie in different banks */
        SCALE_PIECES = BLOCKS * 2,        /* of a tile of columns */
        ZERO_PIECES = F == CUDA_WEIGHT_E4M3 ? 0 : BLOCKS,
        X_AT = TILES * 2 * TILE_BYTES,
        SCALES_AT = X_AT + ROWS * X_STRIDE,
        ZEROS_AT = SCALES_AT + TILES * SCALE_PIECES * PIECE,
        STAGE_BYTES = ZEROS_AT + TILES * ZERO_PIECES * PIECE,
        SMALL_PIECES = (ROWS == 1 ? X_PIECES : 0) + TILES * (SCALE_PIECES + ZERO_PIECES),
        TURNS = (SMALL_PIECES + 31) / 32,
        MOST_TURNS = TURNS ? TURNS : 1,
        COLUMNS = TILES * 16,
        SUM_BYTES = WARPS * ROWS * COLUMNS * 4,
        RING_BYTES = WARPS * STAGES * STAGE_BYTES,
        SHARED_BYTES = RING_BYTES > SUM_BYTES ? RING_BYTES : SUM_BYTES,
    };
};

/* The first of a block's rows of x. */
template <class F> __device__ __forceinline__ int few_row()
{
    return (int)blockIdx.y * F::ROWS;
}

/* What a lane copies of scales and zero points for each pair, and of a single row of x: 16 bytes, or nothing.
 */
struct few_piece {
    const char *from;
    int stride; /* to the next pair's, or the next pairs' that share it; 0: nothing */
    int pairs;  /* from this one on there are zeros instead */
    int to;     /* in the stage */
    int shift;  /* pairs that share it, as a power of two */
};

/* Of scales, or of zero points: `item` of those of all tiles of columns, `size` bytes for each column. */
template <class F>
__device__ __forceinline__ few_piece few_piece_of_blocks(const cuda_weight_product &p, const void *data,
                                                         int item, int size, int first_tile)
{
    enum { BLOCKS = F::BLOCKS ? F::BLOCKS : 1 };
    const int of_tile = BLOCKS * size, tile = first_tile + item / of_tile, at = item % of_tile;
    few_piece piece = {};
    piece.from = (const char *)data + (size_t)min(tile, p.tiles_n - 1) * p.blocks * 16 * size + at * F::PIECE;
    piece.stride = data ? BLOCKS * 16 * size : 0;
    piece.pairs = BLOCKS > 1 ? (p.blocks - at / size + BLOCKS - 1) / BLOCKS : p.tiles_k;
    piece.shift = BLOCKS > 1 ? 0 : p.block_log - 7;
    return piece;
}

template <class F>
__device__ __forceinline__ few_piece few_piece_of(const cuda_weight_product &p, int item, int first_tile)
{
    using T = typename F::number;
    const int scales = F::TILES * F::SCALE_PIECES, zeros = F::TILES * F::ZERO_PIECES;
    few_piece piece = {};
    if (item < scales) {
        piece = few_piece_of_blocks<F>(p, p.scales, item, (int)sizeof(T), first_tile);
        piece.to = F::SCALES_AT + item * F::PIECE;
    } else if (item < scales + zeros) {
        piece = few_piece_of_blocks<F>(p, p.zeros, item - scales, 1, first_tile);
        piece.to = F::ZEROS_AT + (item - scales) * F::PIECE;
    } else if (item < F::SMALL_PIECES) {
        const int at = item - scales - zeros;
        piece.from = (const char *)p.x + at * F::PIECE;
        piece.stride = 128 * (int)sizeof(T);
        piece.pairs = (p.k - at * 8 + 127) / 128;
        piece.to = F::X_AT + at * F::PIECE;
    }
    return piece;
}

/* Two rows of x at a time. */
template <class F>
__device__ __forceinline__ void few_fetch_x(const cuda_weight_product &p, int pair, char *stage, int lane)
{
    using T = typename F::number;
    const int first = lane / F::X_PIECES, rows = p.m - few_row<F>(), at = lane % F::X_PIECES,
              k = pair * 128 + at * 8;
    const T *from = (const T *)p.x + (size_t)(few_row<F>() + first) * p.k + k;
    char *const to = stage + F::X_AT + first * F::X_STRIDE + at * F::PIECE;
#pragma unroll
    for (int row = 0; row < F::ROWS; row += 2)
        if (first + row < rows)
            fetch(to + row * F::X_STRIDE, k < p.k ? from + (size_t)row * p.k : (const T *)p.x, k < p.k);
}

/* A lane's copies for the pair `at`. */
template <class F>
__device__ __forceinline__ void few_fetch_weights(const cuda_weight_product &p,
                                                  const char *const (&w)[F::TILES], int at, char *stage,
                                                  int lane)
{
#pragma unroll
    for (int n = 0; n < F::TILES; n++)
#pragma unroll
        for (int i = 0; i < 2 * F::reader::WORDS; i++)
            if (i < F::reader::WORDS || 2 * at + 1 < p.tiles_k)
                fetch(stage + n * 2 * F::TILE_BYTES + i * 512 + lane * F::PIECE,
                      w[n] + (int64_t)at * (2 * F::TILE_BYTES) + i * 512, true);
}

template <class F>
__device__ __forceinline__ void few_fetch_pieces(const cuda_weight_product &p,
                                                 const few_piece (&pieces)[F::MOST_TURNS], int at,
                                                 char *stage, int lane)
{
    if (F::ROWS > 1)
        few_fetch_x<F>(p, at, stage, lane);
#pragma unroll
    for (int i = 0; i < F::TURNS; i++)
        if (pieces[i].stride) {
            const bool there = at < pieces[i].pairs;
            const uint32_t of = there ? (uint32_t)at >> pieces[i].shift : 0;
            fetch(stage + pieces[i].to, pieces[i].from + (uint64_t)of * (uint32_t)pieces[i].stride, there);
        }
}

/* One of a pair's tiles. */
template <class F>
__device__ __forceinline__ void
few_multiply_tile(const cuda_weight_product &p, const char *stage, int tile, int n, int g,
                  uint32_t column_zeros, const uint32_t (&words)[4 * F::reader::WORDS],
                  const uint32_t (&x)[F::EIGHTS][8], float (&sum)[F::EIGHTS][4])
{
    using T = typename F::number;
    enum { WORDS = F::reader::WORDS, STEPS = F::BLOCKS ? (F::BLOCKS == 1 ? 4 : 8 / F::BLOCKS) : 4 };
    float part[F::EIGHTS][4];
    uint32_t zero[2];
    F::reader::prepare(column_zeros, zero);
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const int b = F::BLOCKS == 1 ? 0 : (tile * 4 + step) / STEPS;
        if (F::ZERO_PIECES && p.zeros && step % STEPS == 0) {
            const char *const zeros = stage + F::ZEROS_AT + (n * F::ZERO_PIECES + b) * F::PIECE;
            F::reader::prepare(((const uint16_t *)zeros)[g], zero);
        }
        uint32_t a[4];
        F::reader::read(&words[step * WORDS], zero, a);
#pragma unroll
        for (int m = 0; m < F::EIGHTS; m++) {
            if (F::BLOCKS == 0) {
                tensor_core<T>::mma(sum[m], a, &x[m][2 * step]);
                continue;
            }
            if (step % STEPS == 0)
                part[m][0] = part[m][1] = part[m][2] = part[m][3] = 0.0f;
            tensor_core<T>::mma(part[m], a, &x[m][2 * step]);
        }
        if (F::BLOCKS && (step + 1) % STEPS == 0) {
            const T *scale =
                (const T *)(stage + F::SCALES_AT + (n * F::SCALE_PIECES + b * 2) * F::PIECE) + g * 2;
            const float low = cuda_widen(scale[0]), high = cuda_widen(scale[1]);
#pragma unroll
            for (int m = 0; m < F::EIGHTS; m++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (F::ROWS > 1 || i % 2 == 0)
                        sum[m][i] = fmaf(part[m][i], i < 2 ? low : high, sum[m][i]);
        }
    }
}

template <class F>
__device__ __forceinline__ void few_multiply(const cuda_weight_product &p, const char *stage, bool whole,
                                             int lane, const uint32_t (&zeros)[F::TILES],
                                             float (&sum)[F::TILES][F::EIGHTS][4])
{
    enum { WORDS = F::reader::WORDS };
#pragma unroll
    for (int tile = 0; tile < 2; tile++) {
        if (tile == 1 && !whole)
            continue;
        uint32_t x[F::EIGHTS][8];
#pragma unroll
        for (int m = 0; m < F::EIGHTS; m++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                load_matrices(&x[m][4 * half], stage + F::X_AT +
                                                   (F::ROWS == 1 ? 0 : (m * 8 + lane % 8) * F::X_STRIDE) +
                                                   (tile * 8 + half * 4 + lane / 8) * F::PIECE);
#pragma unroll
        for (int n = 0; n < F::TILES; n++) {
            uint32_t words[4 * WORDS];
            weight_read_words<typename F::reader>(stage + (n * 2 + tile) * F::TILE_BYTES, lane, words);
            few_multiply_tile<F>(p, stage, tile, n, lane / 4, zeros[n], words, x, sum[n]);
        }
    }
}

/* Sums of all warps meet in shared memory. */
template <class F>
__device__ __forceinline__ void few_store(const cuda_weight_product &p, int first_tile, int warp, int lane,
                                          const float (&sum)[F::TILES][F::EIGHTS][4], float *shared)
{
    using T = typename F::number;
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < F::TILES; n++)
#pragma unroll
        for (int m = 0; m < F::EIGHTS; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (F::ROWS > 1 || (t == 0 && i % 2 == 0))
                    shared[(warp * F::ROWS + m * 8 + t * 2 + i % 2) * F::COLUMNS + n * 16 + g + i / 2 * 8] =
                        sum[n][m][i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < F::ROWS * F::COLUMNS; i += F::THREADS) {
        const int row = few_row<F>() + i / F::COLUMNS, column = first_tile * 16 + i % F::COLUMNS;
        if (row >= p.m || column >= p.n)
            continue;
        float all = 0.0f;
#pragma unroll
        for (int k = 0; k < F::WARPS; k++)
            all += shared[k * F::ROWS * F::COLUMNS + i];
        weight_finish<T>(p, F::BLOCKS ? all : all * weight_column_scale<T>(p, column), row, column);
    }
}

template <class F>
__global__ void __launch_bounds__(F::THREADS, F::ROWS == 1 && F::THREADS == 256 ? 5 : 2)
    weight_few_kernel(const __grid_constant__ cuda_weight_product p)
{
    extern __shared__ __align__(128) char shared[];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32,
              first_tile = (int)blockIdx.x * F::TILES;
    char *const ring = shared + warp * (F::STAGES * F::STAGE_BYTES);
    const char *w[F::TILES];
    few_piece pieces[F::MOST_TURNS];
    uint32_t zeros[F::TILES];
#pragma unroll
    for (int n = 0; n < F::TILES; n++) { /* behind the last column, that column again */
        zeros[n] = weight_column_zeros(p, first_tile + n, lane / 4);
        w[n] = (const char *)p.w +
               (size_t)(first_tile + n < p.tiles_n ? first_tile + n : p.tiles_n - 1) * p.tiles_k *
                   F::TILE_BYTES +
               lane * F::PIECE;
    }
    const int pairs = (p.tiles_k + 1) / 2;
#pragma unroll
    for (int i = 0; i < F::TURNS; i++)
        pieces[i] = few_piece_of<F>(p, i * 32 + lane, first_tile);
    float sum[F::TILES][F::EIGHTS][4] = {};
    overlap_let_next_begin();
    for (int i = 0; i < F::STAGES - 1; i++)
        if (warp + i * F::WARPS < pairs)
            few_fetch_weights<F>(p, w, warp + i * F::WARPS, ring + i * F::STAGE_BYTES, lane);
    overlap_wait();
    for (int i = 0; i < F::STAGES - 1; i++) {
        if (warp + i * F::WARPS < pairs)
            few_fetch_pieces<F>(p, pieces, warp + i * F::WARPS, ring + i * F::STAGE_BYTES, lane);
        commit();
    }
    int now = 0, next = (F::STAGES - 1) * F::STAGE_BYTES;
    for (int at = warp; at < pairs; at += F::WARPS) {
        const int later = at + (F::STAGES - 1) * F::WARPS;
        wait_for<F::STAGES - 2>();
        __syncwarp();
        if (later < pairs) {
            few_fetch_weights<F>(p, w, later, ring + next, lane);
            few_fetch_pieces<F>(p, pieces, later, ring + next, lane);
        }
        commit();
        few_multiply<F>(p, ring + now, 2 * at + 1 < p.tiles_k, lane, zeros, sum);
        now = now + F::STAGE_BYTES == F::STAGES * F::STAGE_BYTES ? 0 : now + F::STAGE_BYTES;
        next = next + F::STAGE_BYTES == F::STAGES * F::STAGE_BYTES ? 0 : next + F::STAGE_BYTES;
    }
    wait_for<0>();
    __syncthreads();
    few_store<F>(p, first_tile, warp, lane, sum, (float *)shared);
}

template <class F, int MOST_BYTES>
grt_status few_launch(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    static_assert(F::SHARED_BYTES <= MOST_BYTES, "");
    if (!p) {
        CUDA_TRY(cudaFuncSetAttribute(weight_few_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      F::SHARED_BYTES));
        return GRT_OK;
    }
    const dim3 blocks((unsigned)((p->tiles_n + F::TILES - 1) / F::TILES),
                      (unsigned)((p->m + F::ROWS - 1) / F::ROWS));
    CUDA_TRY(overlap_launch(choice->overlaps, weight_few_kernel<F>, blocks, F::THREADS, F::SHARED_BYTES,
                            stream, *p));
    return GRT_OK;
}

template <class T, cuda_weight_numbers F, int BLOCKS>
grt_status few_use_rows(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    if constexpr (F != CUDA_WEIGHT_4) { /* for those see weight_row.cuh */
        if (choice->spread == CUDA_WEIGHT_FEW_1)
            return few_launch<few_form<T, F, BLOCKS, 1, 1, 8, 3>, CUDA_WEIGHT_FEW_1_BYTES>(p, choice, stream);
        if (choice->spread == CUDA_WEIGHT_FEW_1_DEEP)
            return few_launch<few_form<T, F, BLOCKS, 1, 1, 16, 4>, CUDA_WEIGHT_FEW_BYTES>(p, choice, stream);
    }
    switch (choice->spread) {
    case CUDA_WEIGHT_FEW_32:
        return few_launch<few_form<T, F, BLOCKS, 32, 1, 8, 2>, CUDA_WEIGHT_FEW_32_BYTES>(p, choice, stream);
    default:
        return few_launch<few_form<T, F, BLOCKS, 8, 2, 8, 3>, CUDA_WEIGHT_FEW_BYTES>(p, choice, stream);
    }
}

/* Blocks of 16 and 64 have a kernel for 4 bits only. */
template <class T, cuda_weight_numbers F>
grt_status few_use_blocks(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    switch (choice->blocks) {
    case 0:
        return few_use_rows<T, F, 0>(p, choice, stream);
    case 1:
        return few_use_rows<T, F, 1>(p, choice, stream);
    case 2:
        return few_use_rows < T, F, F == CUDA_WEIGHT_4 ? 2 : 1 > (p, choice, stream);
    case 4:
        return few_use_rows<T, F, 4>(p, choice, stream);
    default:
        return few_use_rows < T, F, F == CUDA_WEIGHT_4 ? 8 : 4 > (p, choice, stream);
    }
}

template <class T>
grt_status few_use(const cuda_weight_product *p, cuda_weight_numbers numbers,
                   const cuda_weight_choice *choice, cudaStream_t stream)
{
    return weight_with_numbers(
        numbers, [&](auto n) { return few_use_blocks<T, decltype(n)::value>(p, choice, stream); });
}

} // namespace

#endif

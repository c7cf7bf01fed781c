/* SPDX-License-Identifier: Apache-2.0 */
/* See weight_product.h: products of one row, at memory's speed. Warps of a block divide k, a pair of tiles
 * each time, and need nothing of each other until they add up: each has a ring of stages in shared memory,
 * which asynchronous copies fill several pairs ahead.
 *
 * What takes the time is instructions as much as bytes. So weights are multiplied as they are stored, and
 * zero points are subtracted by way of sums of x. A product has room for 8 rows of x: here they are x's 8
 * steps of 16 rows of k, each in a row of its own with zeros elsewhere. So the sums of all blocks of a pair
 * lie in different lanes, and their scales are multiplied all at once.
 *
 * x may be normalised on the way: it is multiplied by the norm's scale, and what it is to be divided by is
 * found from the same numbers and applied to the sums. A block of a gated product has the same columns of
 * both halves. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_ROW_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_ROW_CUH

#include "backends/cuda/overlap.cuh"
#include "backends/cuda/weight_finish.cuh"
#include "backends/cuda/weight_number.cuh"
#include "backends/cuda/weight_pack.h"

namespace
{

/* BLOCKS: scales of a column in a pair of tiles, 128 rows of k; 0: one scale for each column, which is
 * applied at the end. PER_PROCESSOR: blocks of threads. */
template <class T, cuda_weight_numbers F, int BLOCKS_OF_PAIR, int TILES_OF_N, int WARPS_OF_K, int AHEAD,
          int PER_PROCESSOR>
struct row_form {
    using number = T;
    using reader = weight_reader<T, F>;
    using raw = weight_raw<T, F>;
    enum {
        BLOCKS = BLOCKS_OF_PAIR,
        TILES = TILES_OF_N,
        WARPS = WARPS_OF_K,
        THREADS = WARPS * 32,
        STAGES = AHEAD,
        AT_ONCE = PER_PROCESSOR,
        PIECE = 16,
        COLUMNS = TILES * 16,
        TILE_BYTES = reader::WORDS * 512,
        X_BYTES = 128 * (int)sizeof(T),
        X_PIECES = X_BYTES / PIECE,
        SCALE_PIECES = BLOCKS * (int)sizeof(T), /* of a tile */
        ZERO_PIECES = BLOCKS,
        X_AT = TILES * 2 * TILE_BYTES,
        NORM_AT = X_AT + X_BYTES,
        SCALES_AT = NORM_AT + X_BYTES,
        ZEROS_AT = SCALES_AT + TILES * SCALE_PIECES * PIECE,
        STAGE_BYTES = ZEROS_AT + TILES * ZERO_PIECES * PIECE,
        SMALL_PIECES = 2 * X_PIECES + TILES * (SCALE_PIECES + ZERO_PIECES),
        TURNS = (SMALL_PIECES + 31) / 32,
        RING_BYTES = WARPS * STAGES * STAGE_BYTES,
        SUM_BYTES = WARPS * COLUMNS * 4,
        SHARED_BYTES = RING_BYTES + SUM_BYTES + WARPS * 4 + PIECE,
    };
    static_assert((int)X_PIECES == 16, "a lane's first piece is of x or of the norm, the others of neither");
};

/* Which tile of columns is the block's n-th: of a gated product the second is of the other half. */
template <class F> __device__ __forceinline__ int row_tile(const cuda_weight_product &p, int n)
{
    const int tile = p.gated ? (int)blockIdx.x + n * (p.tiles_n / 2) : (int)blockIdx.x * F::TILES + n;
    return min(tile, p.tiles_n - 1); /* behind the last column, that column again */
}

/* What a lane copies for each pair beside weights: 16 bytes, or nothing. */
struct row_piece {
    const char *from;
    int stride; /* to the next pair's, or the next pairs' that share it; 0: nothing */
    int pairs;  /* from this one on there are zeros instead */
    int to;     /* in the stage */
    int shift;  /* pairs that share it, as a power of two */
};

template <class F>
__device__ __forceinline__ row_piece row_piece_of_blocks(const cuda_weight_product &p, const void *data,
                                                         int item, int size)
{
    enum { BLOCKS = F::BLOCKS ? F::BLOCKS : 1 };
    const int of_tile = BLOCKS * size, at = item % of_tile;
    row_piece piece = {};
    piece.from =
        (const char *)data + (size_t)row_tile<F>(p, item / of_tile) * p.blocks * 16 * size + at * F::PIECE;
    piece.stride = data ? BLOCKS * 16 * size : 0;
    piece.pairs = BLOCKS > 1 ? (p.blocks - at / size + BLOCKS - 1) / BLOCKS : p.tiles_k;
    piece.shift = BLOCKS > 1 ? 0 : p.block_log - 7;
    return piece;
}

template <class F>
__device__ __forceinline__ row_piece row_piece_of_x(const cuda_weight_product &p, const void *data, int at)
{
    row_piece piece = {};
    piece.from = (const char *)data + at * F::PIECE;
    piece.stride = data ? F::X_BYTES : 0;
    piece.pairs = (p.k - at * 8 + 127) / 128;
    return piece;
}

template <class F> __device__ __forceinline__ row_piece row_piece_of(const cuda_weight_product &p, int item)
{
    using T = typename F::number;
    enum { SCALES = F::TILES * F::SCALE_PIECES, ZEROS = F::TILES * F::ZERO_PIECES };
    row_piece piece = {};
    if (item < 2 * F::X_PIECES)
        piece = row_piece_of_x<F>(p, item < F::X_PIECES ? p.x : p.norm, item % F::X_PIECES);
    else if (item < 2 * F::X_PIECES + SCALES)
        piece = row_piece_of_blocks<F>(p, p.scales, item - 2 * F::X_PIECES, (int)sizeof(T));
    else if (item < F::SMALL_PIECES && p.blocks > 1)
        piece = row_piece_of_blocks<F>(p, p.zeros, item - 2 * F::X_PIECES - SCALES, 1);
    piece.to = F::X_AT + item * F::PIECE;
    return piece;
}

template <class F>
__device__ __forceinline__ void row_fetch_weights(const cuda_weight_product &p,
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

/* FROM 1: all but x and the norm. */
template <class F, int FROM>
__device__ __forceinline__ void row_fetch_pieces(const row_piece (&pieces)[F::TURNS], int at, char *stage)
{
#pragma unroll
    for (int i = FROM; i < F::TURNS; i++)
        if (pieces[i].stride) {
            const bool there = at < pieces[i].pairs;
            const uint32_t of = there ? (uint32_t)at >> pieces[i].shift : 0;
            fetch(stage + pieces[i].to, pieces[i].from + (uint64_t)of * (uint32_t)pieces[i].stride, there);
        }
}

/* What does not depend on the kernel in front, of the first stages. */
template <class F>
__device__ __forceinline__ void
row_fetch_first(const cuda_weight_product &p, const char *const (&w)[F::TILES],
                const row_piece (&pieces)[F::TURNS], int warp, int pairs, char *ring, int lane)
{
    for (int i = 0; i < F::STAGES - 1; i++) {
        const int at = warp + i * F::WARPS;
        if (at < pairs) {
            row_fetch_weights<F>(p, w, at, ring + i * F::STAGE_BYTES, lane);
            row_fetch_pieces<F, 1>(pieces, at, ring + i * F::STAGE_BYTES);
        }
        commit();
    }
}

/* x and the norm of the first stages, by way of registers: asynchronous copies are waited for in order, so
 * that the first stage would wait for the weights of all others. */
template <class F>
__device__ __forceinline__ void row_load_first(const row_piece &piece, int warp, int pairs, char *ring)
{
    uint4 v[F::STAGES - 1];
#pragma unroll
    for (int i = 0; i < F::STAGES - 1; i++) {
        const int at = warp + i * F::WARPS;
        v[i] = make_uint4(0, 0, 0, 0);
        if (piece.stride && at < min(pairs, piece.pairs))
            v[i] = *(const uint4 *)(piece.from + (uint64_t)(uint32_t)at * (uint32_t)piece.stride);
    }
#pragma unroll
    for (int i = 0; i < F::STAGES - 1; i++)
        *(uint4 *)(ring + i * F::STAGE_BYTES + piece.to) = v[i];
}

/* ---- x ---- */

template <class T> union row_four {
    uint2 bits;
    T x[4];
};

/* A pair's x, multiplied where it lies by the norm's scale, if there is one, which leaves it within its type;
 * `squares` gets those of a lane's numbers. A lane gets the sums of steps 2 t and 2 t + 1, or, of wider
 * blocks, of both in the first. */
template <class F>
__device__ __forceinline__ void row_take_x(const cuda_weight_product &p, char *stage, int lane,
                                           float &squares, float (&sums)[2])
{
    using T = typename F::number;
    row_four<T> v;
    v.bits = ((const uint2 *)(stage + F::X_AT))[lane];
    if (p.norm) {
        row_four<T> scale;
        scale.bits = ((const uint2 *)(stage + F::NORM_AT))[lane];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float x = cuda_widen(v.x[i]);
            squares = fmaf(x, x, squares);
            v.x[i] = cuda_narrow<T, float>(x * p.norm_unit * cuda_widen(scale.x[i]));
        }
        ((uint2 *)(stage + F::X_AT))[lane] = v.bits;
        __syncwarp();
    }
    float sum = (cuda_widen(v.x[0]) + cuda_widen(v.x[1])) + (cuda_widen(v.x[2]) + cuda_widen(v.x[3]));
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (F::BLOCKS < 8)
        sum += __shfl_xor_sync(0xffffffffu, sum, 4);
    sums[0] = __shfl_sync(0xffffffffu, sum, lane % 4 * 8);
    if (F::BLOCKS == 8)
        sums[1] = __shfl_sync(0xffffffffu, sum, lane % 4 * 8 + 4);
}

/* Where a lane finds its rows of the right operand: of one load of four, numbers of x; else zeros. */
struct row_x {
    uint32_t at[4], moves[4]; /* moves: 1 if it lies in a stage */
};

template <class F> __device__ __forceinline__ row_x row_x_of(const char *ring, const char *zeros, int lane)
{
    const int matrix = lane / 8, step = lane % 8;
    row_x out;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const bool mine = step == 2 * j + matrix / 2;
        out.at[j] =
            (uint32_t)__cvta_generic_to_shared(mine ? ring + F::X_AT + (step * 2 + matrix % 2) * 16 : zeros);
        out.moves[j] = mine;
    }
    return out;
}

static __device__ __forceinline__ void row_load_matrices(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* ---- products ---- */

/* byte + ADDED. */
template <int ADDED> __device__ __forceinline__ float row_float(uint32_t byte)
{
    return __uint_as_float(0x4b000000u | byte) - (8388608.0f - (float)ADDED);
}

/* The products of one of a pair's tiles: c[0] and c[1] are of column g and steps 2 t and 2 t + 1, c[2] and
 * c[3] of g + 8. */
template <class F>
__device__ __forceinline__ void row_multiply(const char *tile, int lane, const uint32_t (&x)[2][4],
                                             float (&c)[4])
{
    enum { WORDS = F::reader::WORDS };
    uint32_t words[4 * WORDS];
    weight_read_words<typename F::reader>(tile, lane, words);
#pragma unroll
    for (int step = 0; step < 4; step++) {
        uint32_t a[4];
        F::raw::read(&words[step * WORDS], a);
        tensor_core<typename F::number>::mma(c, a, &x[step / 2][step % 2 * 2]);
    }
}

static __device__ __forceinline__ float row_sum(float a, float b, float c, float d)
{
    return (a + c) + (b + d);
}

/* What a pair's blocks add to the sums of columns g and g + 8 of the n-th tile. */
template <class F>
__device__ __forceinline__ void row_scale(const char *stage, int n, bool has_zeros, int lane,
                                          uint32_t column_zeros, const float (&of_x)[2],
                                          const float (&c)[2][4], float (&sum)[2])
{
    using T = typename F::number;
    enum { EACH = F::BLOCKS == 8 ? 2 : 1 }; /* blocks of a lane */
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int block = EACH == 2 ? 2 * t + i : t * F::BLOCKS / 4;
        const T *const scale =
            (const T *)(stage + F::SCALES_AT + n * F::SCALE_PIECES * F::PIECE) + block * 16 + g * 2;
        float low = EACH == 2 ? c[0][i] + c[1][i] : row_sum(c[0][0], c[0][1], c[1][0], c[1][1]),
              high = EACH == 2 ? c[0][2 + i] + c[1][2 + i] : row_sum(c[0][2], c[0][3], c[1][2], c[1][3]);
        uint32_t both = column_zeros;
        if (has_zeros)
            both = ((const uint16_t *)(stage + F::ZEROS_AT + n * F::ZERO_PIECES * F::PIECE))[block * 8 + g];
        low = fmaf(low, (float)F::raw::LOW, -row_float<F::raw::ADDED>(both & 255) * of_x[i]);
        high = fmaf(high, (float)F::raw::HIGH, -row_float<F::raw::ADDED>(both >> 8) * of_x[i]);
        sum[0] = fmaf(low, cuda_widen(scale[0]), sum[0]);
        sum[1] = fmaf(high, cuda_widen(scale[1]), sum[1]);
    }
}

/* Of columns that have one scale: what zero points take from the sums of all of a warp's pairs. */
template <class F>
__device__ __forceinline__ void row_add_columns(const float (&c)[2][4], float of_x, uint32_t zeros,
                                                float (&sum)[2])
{
    sum[0] = row_sum(c[0][0], c[0][1], c[1][0], c[1][1]);
    sum[1] = row_sum(c[0][2], c[0][3], c[1][2], c[1][3]);
    sum[0] = fmaf(sum[0], (float)F::raw::LOW, -row_float<F::raw::ADDED>(zeros & 255) * of_x);
    sum[1] = fmaf(sum[1], (float)F::raw::HIGH, -row_float<F::raw::ADDED>(zeros >> 8) * of_x);
}

/* A thread's column, if it has one: -1 where there is none. */
template <class F> __device__ __forceinline__ int row_column(const cuda_weight_product &p)
{
    const int n = (int)threadIdx.x / 16,
              tile = p.gated ? (int)blockIdx.x + n * (p.tiles_n / 2) : (int)blockIdx.x * F::TILES + n,
              column = tile * 16 + (int)threadIdx.x % 16;
    return threadIdx.x < F::COLUMNS && column < p.n ? column : -1;
}

/* What is added to a column's sum, asked for long before. */
struct row_last {
    float scale, bias, residual;
};

template <class F> __device__ __forceinline__ row_last row_last_of(const cuda_weight_product &p, int column)
{
    using T = typename F::number;
    row_last last = {1.0f, 0.0f, 0.0f};
    if (column < 0)
        return last;
    if (F::BLOCKS == 0)
        last.scale = weight_column_scale<T>(p, column);
    if (p.bias)
        last.bias = cuda_load<float>(p.bias, p.bias_dtype, column);
    if (p.residual)
        last.residual = cuda_widen(((const T *)p.residual)[column]);
    return last;
}

/* What is left to do for the norm, as a factor of the sums. `squares`: of each warp. */
template <class F>
__device__ __forceinline__ float row_norm_factor(const cuda_weight_product &p, const float *squares)
{
    float all = 0.0f;
#pragma unroll
    for (int i = 0; i < F::WARPS; i++)
        all += squares[i];
    return 1.0f / (sqrtf(all / (float)p.k + p.epsilon) * p.norm_unit);
}

/* Sums of all warps meet in shared memory. */
template <class F>
__device__ __forceinline__ void row_store(const cuda_weight_product &p, float (&sum)[F::TILES][2],
                                          float squares, const row_last &last, int column, float *parts,
                                          int warp, int lane)
{
    using T = typename F::number;
#pragma unroll
    for (int n = 0; n < F::TILES; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            sum[n][i] += __shfl_xor_sync(0xffffffffu, sum[n][i], 1);
            sum[n][i] += __shfl_xor_sync(0xffffffffu, sum[n][i], 2);
            if (lane % 4 == 0)
                parts[warp * F::COLUMNS + n * 16 + i * 8 + lane / 4] = sum[n][i];
        }
    float *const all_squares = parts + F::WARPS * F::COLUMNS;
    if (p.norm) {
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            squares += __shfl_xor_sync(0xffffffffu, squares, step);
        if (lane == 0)
            all_squares[warp] = squares;
    }
    __syncthreads();
    if (threadIdx.x >= F::COLUMNS)
        return;
    float all = 0.0f;
#pragma unroll
    for (int k = 0; k < F::WARPS; k++)
        all += parts[k * F::COLUMNS + threadIdx.x];
    if (p.norm)
        all *= row_norm_factor<F>(p, all_squares);
    all = fmaf(all, last.scale, last.bias);
    if (p.gated) {
        const float second = __shfl_down_sync(0xffffffffu, all, 16);
        if (threadIdx.x < 16)
            ((T *)p.y)[column] = cuda_narrow<T, float>(weight_gate(all, second));
    } else if (column >= 0) {
        all += last.residual;
        ((T *)p.y)[column] =
            cuda_narrow<T, float>(p.act.kind == GRT_ACT_NONE ? all : cuda_activate_rare(p.act, all));
    }
}

/* A gated product needs two tiles. */
template <class F>
__global__ void __launch_bounds__(F::THREADS, F::AT_ONCE)
    weight_row_kernel(const __grid_constant__ cuda_weight_product p)
{
    extern __shared__ __align__(128) char shared[];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, pairs = (p.tiles_k + 1) / 2;
    char *const ring = shared + warp * (F::STAGES * F::STAGE_BYTES);
    char *const zeros = shared + F::RING_BYTES + F::SUM_BYTES + F::WARPS * 4;
    float *const parts = (float *)(shared + F::RING_BYTES);
    const bool has_zeros = p.zeros && p.blocks > 1;
    const char *w[F::TILES];
    uint32_t column_zeros[F::TILES];
    row_piece pieces[F::TURNS];
#pragma unroll
    for (int n = 0; n < F::TILES; n++) {
        column_zeros[n] = weight_column_zeros(p, row_tile<F>(p, n), lane / 4);
        w[n] = (const char *)p.w + (size_t)row_tile<F>(p, n) * p.tiles_k * F::TILE_BYTES + lane * F::PIECE;
    }
#pragma unroll
    for (int i = 0; i < F::TURNS; i++)
        pieces[i] = row_piece_of<F>(p, i * 32 + lane);
    overlap_let_next_begin();
    row_fetch_first<F>(p, w, pieces, warp, pairs, ring, lane);
    if (threadIdx.x < 4)
        ((uint32_t *)zeros)[threadIdx.x] = 0;
    __syncthreads();
    const row_x from = row_x_of<F>(ring, zeros, lane);
    const int column = row_column<F>(p);
    overlap_wait();
    row_load_first<F>(pieces[0], warp, pairs, ring);
    const row_last last = row_last_of<F>(p, column);
    float sum[F::TILES][2] = {}, c[F::TILES][2][4] = {}, all_x = 0.0f, squares = 0.0f;
    int now = 0, next = (F::STAGES - 1) * F::STAGE_BYTES;
#pragma unroll 1
    for (int at = warp; at < pairs; at += F::WARPS) {
        const int later = at + (F::STAGES - 1) * F::WARPS;
        wait_for<F::STAGES - 2>();
        __syncwarp();
        if (later < pairs) {
            row_fetch_weights<F>(p, w, later, ring + next, lane);
            row_fetch_pieces<F, 0>(pieces, later, ring + next);
        }
        commit();
        float of_x[2] = {};
        row_take_x<F>(p, ring + now, lane, squares, of_x);
        all_x += of_x[0];
        if (F::BLOCKS)
#pragma unroll
            for (int i = 0; i < F::TILES * 8; i++)
                c[i / 8][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll
        for (int tile = 0; tile < 2; tile++) {
            if (tile == 1 && 2 * at + 1 >= p.tiles_k)
                continue;
            uint32_t x[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++)
                row_load_matrices(x[i], from.at[2 * tile + i] + from.moves[2 * tile + i] * (uint32_t)now);
#pragma unroll
            for (int n = 0; n < F::TILES; n++)
                row_multiply<F>(ring + now + (n * 2 + tile) * F::TILE_BYTES, lane, x, c[n][tile]);
        }
#pragma unroll
        for (int n = 0; n < F::TILES && F::BLOCKS; n++)
            row_scale<F>(ring + now, n, has_zeros, lane, column_zeros[n], of_x, c[n], sum[n]);
        next = now;
        now = now + F::STAGE_BYTES == F::STAGES * F::STAGE_BYTES ? 0 : now + F::STAGE_BYTES;
    }
    wait_for<0>();
#pragma unroll
    for (int n = 0; n < F::TILES && !F::BLOCKS; n++)
        row_add_columns<F>(c[n], all_x, column_zeros[n], sum[n]);
    row_store<F>(p, sum, squares, last, column, parts, warp, lane);
}

/* ---- launches ---- */

template <class F>
grt_status row_launch(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    static_assert((int)F::SHARED_BYTES <= (int)CUDA_WEIGHT_ROW_BYTES, "");
    if (!p) {
        CUDA_TRY(cudaFuncSetAttribute(weight_row_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      F::SHARED_BYTES));
        return GRT_OK;
    }
    const int blocks = p->gated ? p->tiles_n / 2 : (p->tiles_n + F::TILES - 1) / F::TILES;
    CUDA_TRY(overlap_launch(choice->overlaps, weight_row_kernel<F>, dim3((unsigned)blocks), F::THREADS,
                            F::SHARED_BYTES, stream, *p));
    return GRT_OK;
}

template <class T, int BLOCKS>
grt_status row_use_spread(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    switch (choice->spread) {
    case CUDA_WEIGHT_ROW_16:
        return row_launch<row_form<T, CUDA_WEIGHT_4, BLOCKS, 1, 16, 3, 2>>(p, choice, stream);
    case CUDA_WEIGHT_ROW_32:
        return row_launch<row_form<T, CUDA_WEIGHT_4, BLOCKS, 2, 8, 2, 3>>(p, choice, stream);
    default:
        return row_launch<row_form<T, CUDA_WEIGHT_4, BLOCKS, 2, 4, 4, 5>>(p, choice, stream);
    }
}

template <class T>
grt_status row_use(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    switch (choice->blocks) {
    case 0:
        return row_use_spread<T, 0>(p, choice, stream);
    case 1:
        return row_use_spread<T, 1>(p, choice, stream);
    case 2:
        return row_use_spread<T, 2>(p, choice, stream);
    case 4:
        return row_use_spread<T, 4>(p, choice, stream);
    default:
        return row_use_spread<T, 8>(p, choice, stream);
    }
}

} // namespace

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See weight_product.h. Weights are the left operand of mma.m16n8k16, so that 8 rows of x are enough to use
 * it: a warp has N tiles of 16 columns and M of 8 rows of the result. What a stage of k needs comes to shared
 * memory by asynchronous copies. K_WARPS warps divide a stage's rows of k and add up at the end. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_TILE_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_TILE_CUH

#include "backends/cuda/weight_finish.cuh"
#include "backends/cuda/weight_number.cuh"
#include "backends/cuda/weight_pack.h"

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32, PIECE = 16 /* bytes copied at once */ };

template <class T, cuda_weight_numbers F, int K_WARPS, int N_WARPS, int N, int M, int AHEAD> struct form {
    using number = T;
    using operand = typename weight_operand<T>::type;
    using reader = weight_reader<operand, F>;
    enum {
        KW = K_WARPS,
        NW = N_WARPS,
        MW = WARPS / K_WARPS / N_WARPS,
        TN = N,
        TM = M,
        STAGES = AHEAD,
        PARTS = weight_operand<T>::PARTS,
        TILES = N_WARPS * N, /* of columns */
        COLUMNS = TILES * 16,
        ROWS = MW * M * 8,
        DEPTH = K_WARPS * 64,
        TILE_PIECES = reader::WORDS * 32,
        W_PIECES = K_WARPS * TILES * TILE_PIECES,
        X_PIECES = DEPTH * (int)sizeof(T) / PIECE, /* of a row */
        X_STRIDE = DEPTH * (int)sizeof(T) + 8 * (int)sizeof(T),
        SCALE_BYTES = 4 * 16 * 4, /* of a tile: up to 4 blocks */
        ZERO_BYTES = 4 * 16,
        X_AT = W_PIECES * PIECE,
        SCALES_AT = X_AT + ROWS * X_STRIDE,
        ZEROS_AT = SCALES_AT + K_WARPS * TILES * SCALE_BYTES,
        STAGE_BYTES = ZEROS_AT + K_WARPS * TILES * ZERO_BYTES,
        SUM_STRIDE = COLUMNS + 4,
        SUM_BYTES = K_WARPS * ROWS * SUM_STRIDE * 4,
        SHARED_BYTES = STAGES * STAGE_BYTES > SUM_BYTES ? STAGES *STAGE_BYTES : SUM_BYTES,
    };
    static_assert(KW * NW * MW == WARPS && W_PIECES % THREADS == 0, "");
};

/* The block of threads' part: first tile of columns, first row, tiles of k from `tile` to before `end`. */
struct weight_part {
    int tile_n, row, tile, end;
};

/* ---- a stage comes in ---- */

/* Where a thread's pieces of the weights come from: what does not change from stage to stage. */
template <class F> struct weight_source {
    enum { PIECES = F::W_PIECES / THREADS };
    const char *from[PIECES]; /* of the first stage's tile; NULL: no such column */
};

template <class F>
__device__ __forceinline__ weight_source<F> weights_from(const cuda_weight_product &p,
                                                         const weight_part &part)
{
    weight_source<F> source;
#pragma unroll
    for (int i = 0; i < weight_source<F>::PIECES; i++) {
        const int piece = i * THREADS + (int)threadIdx.x,
                  column = part.tile_n + piece / F::TILE_PIECES % F::TILES,
                  at = part.tile + piece / F::TILE_PIECES / F::TILES;
        const size_t tile = (size_t)column * p.tiles_k + at;
        source.from[i] = column < p.tiles_n ? (const char *)p.w + tile * (F::TILE_PIECES * PIECE) +
                                                  piece % F::TILE_PIECES * PIECE
                                            : NULL;
    }
    return source;
}

template <class F>
__device__ __forceinline__ void fetch_weights(const cuda_weight_product &p, const weight_part &part,
                                              const weight_source<F> &source, int tile, char *stage)
{
    const size_t passed = (size_t)(tile - part.tile) * (F::TILE_PIECES * PIECE);
#pragma unroll
    for (int i = 0; i < weight_source<F>::PIECES; i++) {
        const int piece = i * THREADS + (int)threadIdx.x;
        const bool there = source.from[i] && tile + piece / F::TILE_PIECES / F::TILES < part.end;
        fetch(stage + piece * PIECE, there ? source.from[i] + passed : (const char *)p.w, there);
    }
}

/* Scales and zero points of all blocks that the stage meets. Pieces of the same number are neighbours, so
 * that warps whose pieces do not exist are through at once; the last threads begin, who have least of x to
 * do. */
template <class F>
__device__ __forceinline__ void fetch_scales(const cuda_weight_product &p, const weight_part &part, int tile,
                                             char *stage)
{
    enum { ALL = F::KW * F::TILES };
    const int size = p.wide_scales ? 4 : (int)sizeof(typename F::number), subs = 4 >> p.block_shift,
              pieces = size + (p.zeros ? 1 : 0);
    for (int item = THREADS - 1 - (int)threadIdx.x; item < ALL * 4 * pieces; item += THREADS) {
        const int of = item % ALL, sub = item / ALL % 4, piece = item / ALL / 4;
        if (sub >= subs)
            continue;
        const int at = tile + of / F::TILES, column = part.tile_n + of % F::TILES,
                  row = at * 64 + (sub << p.block_shift) * 16,
                  block = p.block_log >= 0 ? row >> p.block_log : row / p.padded_block;
        const bool there = column < p.tiles_n && at < part.end && block < p.blocks;
        const size_t first = there ? ((size_t)column * p.blocks + block) * 16 : 0;
        if (piece < size)
            fetch(stage + F::SCALES_AT + of * F::SCALE_BYTES + sub * 16 * size + piece * PIECE,
                  (const char *)p.scales + first * size + (there ? piece * PIECE : 0), there);
        else
            fetch(stage + F::ZEROS_AT + of * F::ZERO_BYTES + sub * 16, p.zeros + first, there);
    }
}

/* The number of x in this row and packed row of k. */
template <class T> __device__ __forceinline__ T load_x(const cuda_weight_product &p, int row, int at, int end)
{
    const int block = at / p.padded_block, in_block = at - block * p.padded_block,
              k = block * p.block + in_block;
    if (in_block >= p.block || k >= p.k || at >= end)
        return T(0.0f);
    const T x = ((const T *)p.x)[(size_t)row * p.k + k];
    return p.row_scale ? cuda_narrow<T, float>(cuda_widen(x) * p.row_scale[k]) : x;
}

/* Rows of x that there are; others were set to 0 before the first stage. */
template <class F>
__device__ __forceinline__ void fetch_x(const cuda_weight_product &p, const weight_part &part, int tile,
                                        char *stage)
{
    using T = typename F::number;
    enum { EACH = PIECE / (int)sizeof(T) };
    const int rows = p.m - part.row < (int)F::ROWS ? p.m - part.row : (int)F::ROWS, end = part.end * 64;
    for (int i = (int)threadIdx.x; i < rows * F::X_PIECES; i += THREADS) {
        const int row = i / F::X_PIECES, piece = i % F::X_PIECES, at = tile * 64 + piece * EACH;
        char *to = stage + F::X_AT + row * F::X_STRIDE + piece * PIECE;
        if (p.in_pieces) {
            const bool there = at < p.k && at < end;
            fetch(to, (const T *)p.x + (there ? (size_t)(part.row + row) * p.k + at : 0), there);
        } else {
#pragma unroll
            for (int j = 0; j < EACH; j++)
                ((T *)to)[j] = load_x<T>(p, part.row + row, at + j, end);
        }
    }
}

template <class F>
__device__ __forceinline__ void fetch_stage(const cuda_weight_product &p, const weight_part &part,
                                            const weight_source<F> &source, int tile, char *stage)
{
    fetch_weights<F>(p, part, source, tile, stage);
    fetch_x<F>(p, part, tile, stage);
    fetch_scales<F>(p, part, tile, stage);
}

/* Rows of x that do not exist, in all stages. */
template <class F>
__device__ __forceinline__ void clear_x(const cuda_weight_product &p, int row, char *shared)
{
    const int rows = p.m - row < (int)F::ROWS ? p.m - row : (int)F::ROWS;
    for (int stage = 0; stage < F::STAGES; stage++)
        for (int i = rows * F::X_STRIDE / 16 + (int)threadIdx.x; i < F::ROWS * F::X_STRIDE / 16; i += THREADS)
            *(uint4 *)(shared + stage * F::STAGE_BYTES + F::X_AT + i * 16) = make_uint4(0, 0, 0, 0);
}

/* ---- a stage is multiplied ---- */

/* A lane's scales and zero points of columns g and g + 8, for each block that the stage meets. */
template <class F, int BLOCKS> struct block_numbers {
    float scale[F::TN][BLOCKS][2];
    uint32_t zero[F::TN][BLOCKS][2];
};

template <class F, int BLOCKS>
__device__ __forceinline__ void load_blocks(const cuda_weight_product &p, const char *stage, int first,
                                            block_numbers<F, BLOCKS> &out)
{
    using T = typename F::number;
    const int g = (int)threadIdx.x % 32 / 4;
    const char *scales = stage + F::SCALES_AT + first * F::SCALE_BYTES,
               *zeros = stage + F::ZEROS_AT + first * F::ZERO_BYTES;
#pragma unroll
    for (int n = 0; n < F::TN; n++)
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            if (p.wide_scales) {
                const float2 both = ((const float2 *)(scales + n * F::SCALE_BYTES))[b * 8 + g];
                out.scale[n][b][0] = both.x;
                out.scale[n][b][1] = both.y;
            } else {
                const T *both = (const T *)(scales + n * F::SCALE_BYTES) + (b * 8 + g) * 2;
                out.scale[n][b][0] = cuda_widen(both[0]);
                out.scale[n][b][1] = cuda_widen(both[1]);
            }
            uint32_t both = (uint32_t)p.zero * 0x101u;
            if (p.zeros)
                both = ((const uint16_t *)(zeros + n * F::ZERO_BYTES))[b * 8 + g];
            F::reader::prepare(both, out.zero[n][b]);
        }
}

/* STEPS steps of 16 rows of k share a scale. Without a branch, so that loads, conversions and products of
 * different steps overlap. */
template <class F, int STEPS>
__device__ __forceinline__ void multiply_blocks(const cuda_weight_product &p, const char *stage, int k_warp,
                                                int n_warp, int m_warp, float (&sum)[F::TN][F::TM][4])
{
    using T = typename F::number;
    using core = tensor_core<typename F::operand>;
    enum { WORDS = F::reader::WORDS };
    const int lane = (int)threadIdx.x % 32, first = k_warp * F::TILES + n_warp * F::TN;
    const char *x = stage + F::X_AT + (m_warp * F::TM * 8 + lane / 4) * F::X_STRIDE +
                    (k_warp * 64 + lane % 4 * 2) * (int)sizeof(T);
    uint32_t words[F::TN][4 * WORDS];
    block_numbers<F, 4 / STEPS> blocks;
    float part[F::TN][F::TM][4];
#pragma unroll
    for (int n = 0; n < F::TN; n++)
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            *(uint4 *)&words[n][4 * i] =
                *(const uint4 *)(stage + ((first + n) * F::TILE_PIECES + i * 32 + lane) * PIECE);
    load_blocks<F, 4 / STEPS>(p, stage, first, blocks);
#pragma unroll
    for (int step = 0; step < 4; step++) {
        uint32_t a[F::TN][4];
#pragma unroll
        for (int n = 0; n < F::TN; n++)
            F::reader::read(&words[n][step * WORDS], blocks.zero[n][step / STEPS], a[n]);
#pragma unroll
        for (int m = 0; m < F::TM; m++) {
            uint32_t b[F::PARTS][2];
            weight_read_x((const T *)(x + m * 8 * F::X_STRIDE) + step * 16, b);
#pragma unroll
            for (int n = 0; n < F::TN; n++) {
                if (step % STEPS == 0)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        part[n][m][i] = 0.0f;
#pragma unroll
                for (int i = 0; i < F::PARTS; i++)
                    core::mma(part[n][m], a[n], b[i]);
                if ((step + 1) % STEPS == 0)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        sum[n][m][i] =
                            fmaf(part[n][m][i], blocks.scale[n][step / STEPS][i / 2], sum[n][m][i]);
            }
        }
    }
}

template <class F>
__device__ __forceinline__ void multiply_stage(const cuda_weight_product &p, const char *stage, int k_warp,
                                               int n_warp, int m_warp, float (&sum)[F::TN][F::TM][4])
{
    if (p.block_shift == 2)
        multiply_blocks<F, 4>(p, stage, k_warp, n_warp, m_warp, sum);
    else if (p.block_shift == 1)
        multiply_blocks<F, 2>(p, stage, k_warp, n_warp, m_warp, sum);
    else
        multiply_blocks<F, 1>(p, stage, k_warp, n_warp, m_warp, sum);
}

/* ---- results leave ---- */

/* Sums of all warps of k meet in shared memory. */
template <class F>
__device__ __forceinline__ void store_sums(const cuda_weight_product &p, const weight_part &part, int k_warp,
                                           int n_warp, int m_warp, const float (&sum)[F::TN][F::TM][4],
                                           float *shared)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < F::TN; n++)
#pragma unroll
        for (int m = 0; m < F::TM; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                shared[(k_warp * F::ROWS + (m_warp * F::TM + m) * 8 + t * 2 + i % 2) * F::SUM_STRIDE +
                       (n_warp * F::TN + n) * 16 + g + i / 2 * 8] = sum[n][m][i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < F::ROWS * F::COLUMNS; i += THREADS) {
        const int row = part.row + i / F::COLUMNS, column = part.tile_n * 16 + i % F::COLUMNS;
        if (row >= p.m || column >= p.n)
            continue;
        float all = 0.0f;
        for (int k = 0; k < F::KW; k++)
            all += shared[(k * F::ROWS + i / F::COLUMNS) * F::SUM_STRIDE + i % F::COLUMNS];
        if (p.partial)
            p.partial[((size_t)blockIdx.z * p.m + row) * p.n + column] = all;
        else
            weight_finish<typename F::number>(p, all, row, column);
    }
}

template <class F>
__global__ void __launch_bounds__(THREADS) weight_kernel(const __grid_constant__ cuda_weight_product p)
{
    extern __shared__ __align__(128) char shared[];
    const int warp = (int)threadIdx.x / 32, k_warp = warp % F::KW, n_warp = warp / F::KW % F::NW,
              m_warp = warp / F::KW / F::NW, begin = (int)blockIdx.z * p.split_tiles,
              last = begin + p.split_tiles;
    const weight_part part = {(int)blockIdx.x * F::TILES, (int)blockIdx.y * F::ROWS, begin,
                              last < p.tiles_k ? last : p.tiles_k};
    const int stages = (part.end - part.tile + F::KW - 1) / F::KW;
    float sum[F::TN][F::TM][4] = {};
    const weight_source<F> source = weights_from<F>(p, part);
    clear_x<F>(p, part.row, shared);
    for (int i = 0; i < F::STAGES - 1; i++) {
        if (i < stages)
            fetch_stage<F>(p, part, source, part.tile + i * F::KW, shared + i * F::STAGE_BYTES);
        commit();
    }
    for (int i = 0, at = 0, next = F::STAGES - 1; i < stages; i++) {
        wait_for<F::STAGES - 2>();
        __syncthreads();
        if (i + F::STAGES - 1 < stages)
            fetch_stage<F>(p, part, source, part.tile + (i + F::STAGES - 1) * F::KW,
                           shared + next * F::STAGE_BYTES);
        commit();
        multiply_stage<F>(p, shared + at * F::STAGE_BYTES, k_warp, n_warp, m_warp, sum);
        at = at + 1 == F::STAGES ? 0 : at + 1;
        next = next + 1 == F::STAGES ? 0 : next + 1;
    }
    wait_for<0>();
    __syncthreads();
    store_sums<F>(p, part, k_warp, n_warp, m_warp, sum, (float *)shared);
}

/* ---- launches ---- */

template <class F>
grt_status cuda_weight_tile_launch_form(const cuda_weight_product *p, int splits, cudaStream_t stream)
{
    const dim3 grid((unsigned)((p->tiles_n + F::TILES - 1) / F::TILES),
                    (unsigned)((p->m + F::ROWS - 1) / F::ROWS), (unsigned)splits);
    weight_kernel<F><<<grid, THREADS, F::SHARED_BYTES, stream>>>(*p);
    CUDA_LAUNCHED();
    return splits > 1 ? weight_add<typename F::number>(p, splits, false, stream) : GRT_OK;
}

/* Launches the product; without one, asks for the shared memory that its kernel wants. */
template <class F>
grt_status use_form(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    if (p)
        return cuda_weight_tile_launch_form<F>(p, choice->splits, stream);
    CUDA_TRY(
        cudaFuncSetAttribute(weight_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, F::SHARED_BYTES));
    return GRT_OK;
}

/* float32 has thrice the operands: fewer rows at a time. */
template <class T, cuda_weight_numbers F>
grt_status use_numbers(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    enum { MOST = sizeof(T) == 4 ? 4 : 8 };
    switch (choice->spread) {
    case CUDA_WEIGHT_ROWS_8:
        return use_form<form<T, F, 8, 1, 1, 1, 4>>(p, choice, stream);
    case CUDA_WEIGHT_ROWS_8_WIDE:
        return use_form<form<T, F, 4, 2, 2, 1, 4>>(p, choice, stream);
    case CUDA_WEIGHT_ROWS_16:
        return use_form<form<T, F, 4, 2, 2, 2, 3>>(p, choice, stream);
    case CUDA_WEIGHT_ROWS_32:
        return use_form<form<T, F, 1, 8, 2, 4, 3>>(p, choice, stream);
    case CUDA_WEIGHT_ROWS_64:
        return use_form<form<T, F, 1, 8, 2, MOST, 3>>(p, choice, stream);
    default:
        return use_form<form<T, F, 1, 4, 2, MOST, 3>>(p, choice, stream);
    }
}

template <class T>
grt_status use_all(const cuda_weight_product *p, cuda_weight_numbers numbers,
                   const cuda_weight_choice *choice, cudaStream_t stream)
{
    return weight_with_numbers(numbers,
                               [&](auto n) { return use_numbers<T, decltype(n)::value>(p, choice, stream); });
}

} // namespace

#endif

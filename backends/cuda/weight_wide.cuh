/* SPDX-License-Identifier: Apache-2.0 */
/* See weight_product.h: products of many rows by wgmma. Weights are the left operand, in registers: a group
 * of four warps has 64 columns, and all groups of a block the same rows of x, which are read from shared
 * memory. Four more warps bring what comes, as far ahead as there is room. While a group's products of one
 * tile of k are computed, it widens its weights of the next. Scales of blocks are multiplied into weights as
 * DequantizeLinear says, rounded to x's type.
 *
 * Few columns leave processors idle: then the blocks of a cluster divide k, and each adds up what all have of
 * a part of the results, in a fixed order. */
#ifndef GRT_BACKENDS_CUDA_WEIGHT_WIDE_CUH
#define GRT_BACKENDS_CUDA_WEIGHT_WIDE_CUH

#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/cluster.cuh"
#include "backends/cuda/warpgroup.cuh"
#include "backends/cuda/weight_finish.cuh"
#include "backends/cuda/weight_number.cuh"
#include "backends/cuda/weight_pack.h"

#include <type_traits>

namespace
{

/* Blocks that divide k, at most; and what a warp has of eight rows. */
enum { WIDE_MOST_SPLITS = 8, WIDE_SUM_BYTES = 512 };

/* BLOCKS: of k with a scale, in a tile; 0: one scale for each column, which is applied at the end. */
template <class T, cuda_weight_numbers F, int BLOCKS_OF_TILE, int GROUPS_OF_N, int ROWS_OF_X, int AHEAD,
          int AT_FIRST = 2>
struct wide_form {
    using number = T;
    using reader = weight_reader<T, F>;
    enum {
        BLOCKS = BLOCKS_OF_TILE,
        GROUPS = GROUPS_OF_N,
        ROWS = ROWS_OF_X,
        STAGES = AHEAD,
        EARLY = STAGES < AT_FIRST ? STAGES : AT_FIRST, /* more would keep x waiting behind them */
        TILES = GROUPS * 4,
        COLUMNS = TILES * 16,
        THREADS = GROUPS * 128 + 128,
        /* Registers of a thread that multiplies, and of one that does not: as many as all are launched with.
         */
        BLOCKS_AT_ONCE = 1,
        MULTIPLY_REGISTERS = GROUPS == 4 ? 112 : 232,
        FETCH_REGISTERS = GROUPS == 4 ? 32 : 40,
        AT_ONCE = ROWS < 128 ? ROWS : 128, /* of a product */
        TILE_BYTES = reader::WORDS * 512,
        SCALE_BYTES = BLOCKS * 16 * (int)sizeof(T), /* of a tile */
        ZERO_BYTES = F == CUDA_WEIGHT_E4M3 ? 0 : BLOCKS * 16,
        X_BYTES = ROWS * PANEL_ROW,
        W_AT = X_BYTES,
        SCALES_AT = W_AT + TILES * TILE_BYTES,
        ZEROS_AT = SCALES_AT + TILES * SCALE_BYTES,
        STAGE_BYTES =
            (ZEROS_AT + TILES * ZERO_BYTES + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT,
        /* Sums of all parts of k of the rows that a block adds up; some have one eight of rows more. */
        SUMS_BYTES = (ROWS / 8 + WIDE_MOST_SPLITS - 1) * TILES * WIDE_SUM_BYTES,
        ROOM = STAGES * STAGE_BYTES > SUMS_BYTES ? STAGES *STAGE_BYTES : SUMS_BYTES,
        SHARED_BYTES = ROOM + (2 * STAGES + 1) * 8 + PANEL_ALIGNMENT,
    };
};

/* What a block of threads has: columns from tile_n on, and of a gated product as many of the second half
 * behind those of the first. */
struct wide_part {
    int tile_n, row, tile, end;
};

/* Tiles of columns, of which a gated product has half in either part. */
template <class F> __device__ __forceinline__ int wide_tiles(const cuda_weight_product &p)
{
    return p.gated ? F::TILES / 2 : F::TILES;
}

/* Which tile of columns is the block's `i`-th; -1: none. */
template <class F>
__device__ __forceinline__ int wide_tile(const cuda_weight_product &p, const wide_part &part, int i)
{
    const int half = wide_tiles<F>(p), all = p.gated ? p.tiles_n / 2 : p.tiles_n,
              tile = part.tile_n + (i < half ? i : i - half);
    return tile >= all ? -1 : i < half ? tile : all + tile;
}

/* The barrier counts this thread once its copies up to here have arrived. */
__device__ __forceinline__ void arrive_with_copies(uint64_t *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(barrier))
                 : "memory");
}

/* Scales, or zero points, of a stage: a thread has one piece of 16 bytes, or none. BYTES: of a tile. */
struct wide_piece {
    const char *from; /* NULL: none */
    int to;
};

template <class F, int BYTES>
__device__ __forceinline__ wide_piece wide_piece_of(const cuda_weight_product &p, const void *data, int size,
                                                    const wide_part &part, int i)
{
    enum { PIECES = BYTES < 16 ? 1 : BYTES / 16 };
    const int tile = BYTES && data && i < F::TILES * PIECES ? wide_tile<F>(p, part, i / PIECES) : -1;
    if (tile < 0)
        return {NULL, 0};
    return {(const char *)data + (size_t)tile * p.blocks * 16 * size + i % PIECES * 16, i * 16};
}

/* Where a thread's pieces of a tile of k come from. */
template <class F> struct wide_source {
    enum { OF_TILE = F::TILE_BYTES / 16, PIECES = F::TILES * OF_TILE / 128 };
    const char *w[PIECES]; /* NULL: nothing */
    wide_piece scale, zero;
};

template <class F>
__device__ __forceinline__ wide_source<F> wide_source_of(const cuda_weight_product &p, const wide_part &part,
                                                         int thread)
{
    using T = typename F::number;
    wide_source<F> from;
#pragma unroll
    for (int i = 0; i < from.PIECES; i++) {
        const int tile = wide_tile<F>(p, part, (i * 128 + thread) / from.OF_TILE);
        from.w[i] = tile < 0 ? NULL
                             : (const char *)p.w + ((size_t)tile * p.tiles_k) * F::TILE_BYTES +
                                   thread % from.OF_TILE * 16;
    }
    from.scale = wide_piece_of<F, F::SCALE_BYTES>(p, p.scales, (int)sizeof(T), part, thread);
    from.zero = wide_piece_of<F, F::ZERO_BYTES>(p, p.zeros, 1, part, 127 - thread);
    return from;
}

template <class F>
__device__ __forceinline__ void wide_fetch_weights(const cuda_weight_product &p, const wide_source<F> &from,
                                                   int tile, char *stage, uint64_t *full, int thread)
{
    const int block = F::BLOCKS == 1 ? tile >> (p.block_log - 6) : tile;
#pragma unroll
    for (int i = 0; i < from.PIECES; i++)
        if (from.w[i])
            fetch(stage + F::W_AT + (i * 128 + thread) * 16, from.w[i] + (size_t)tile * F::TILE_BYTES, true);
    if (from.scale.from)
        fetch(stage + F::SCALES_AT + from.scale.to, from.scale.from + (size_t)block * F::SCALE_BYTES, true);
    if (from.zero.from)
        fetch(stage + F::ZEROS_AT + from.zero.to, from.zero.from + (size_t)block * F::ZERO_BYTES, true);
    arrive_with_copies(full);
}

/* By the four warps that do not multiply: x by the bulk copy engine, all else, which is small and does not
 * depend on the kernel in front, by threads. */
template <class F>
__device__ __forceinline__ void wide_fetch(const cuda_weight_product &p, const CUtensorMap *map,
                                           const wide_part &part, char *stages, uint64_t *full,
                                           uint64_t *empty, int thread)
{
    const wide_source<F> from = wide_source_of<F>(p, part, thread);
    const int room = min(part.tile + (int)F::EARLY, part.end);
    ring place = {0, 0};
    for (int tile = part.tile; tile < room; tile++)
        wide_fetch_weights<F>(p, from, tile, stages + (tile - part.tile) * F::STAGE_BYTES,
                              &full[tile - part.tile], thread);
    overlap_wait();
    for (int tile = part.tile; tile < part.end; tile++, place.next(F::STAGES)) {
        char *const stage = stages + place.at * F::STAGE_BYTES;
        barrier_wait(&empty[place.at], place.phase ^ 1);
        if (thread == 0) {
            barrier_expect(&full[place.at], F::X_BYTES);
            bulk_fetch(stage, map, tile * 64, part.row, 0, 0, &full[place.at]);
        }
        if (tile >= room)
            wide_fetch_weights<F>(p, from, tile, stage, &full[place.at], thread);
    }
    wait_for<0>();
}

/* Times the lower, or the upper, of two scales. */
template <int WHICH> __device__ __forceinline__ uint32_t wide_times(uint32_t a, uint32_t scales, __half)
{
    const __half2 both = *(const __half2 *)&scales,
                  c = __hmul2(*(const __half2 *)&a, WHICH ? __high2half2(both) : __low2half2(both));
    return *(const uint32_t *)&c;
}
template <int WHICH>
__device__ __forceinline__ uint32_t wide_times(uint32_t a, uint32_t scales, __nv_bfloat16)
{
    const __nv_bfloat162 both = *(const __nv_bfloat162 *)&scales,
                         c = __hmul2(*(const __nv_bfloat162 *)&a,
                                     WHICH ? __high2bfloat162(both) : __low2bfloat162(both));
    return *(const uint32_t *)&c;
}

/* Where a lane's weights, scales and zero points lie in the first stage. */
struct wide_lane {
    const char *words, *scales, *zeros; /* zeros NULL: all blocks have the column's */
    uint32_t column_zeros;
};

template <class F>
__device__ __forceinline__ wide_lane wide_lane_of(const cuda_weight_product &p, const wide_part &part,
                                                  const char *stages, int tile, int lane)
{
    const int g = lane / 4;
    return {stages + F::W_AT + tile * F::TILE_BYTES + lane * 16,
            stages + F::SCALES_AT + tile * F::SCALE_BYTES + g * 2 * (int)sizeof(typename F::number),
            F::ZERO_BYTES && p.zeros ? stages + F::ZEROS_AT + tile * F::ZERO_BYTES + g * 2 : NULL,
            weight_column_zeros(p, max(wide_tile<F>(p, part, tile), 0), g)};
}

/* A warp's weights of a tile, `at` bytes from the first stage's, as operands of four products. */
template <class F>
__device__ __forceinline__ void wide_widen(const wide_lane &from, int at, uint32_t (&a)[4][4])
{
    using T = typename F::number;
    enum { WORDS = F::reader::WORDS, STEPS = F::BLOCKS > 1 ? 4 / F::BLOCKS : 4 };
    enum { SCALES = F::BLOCKS ? F::BLOCKS : 1 };
    uint32_t words[4 * WORDS], scales[SCALES], zeros[SCALES];
    weight_read_words<typename F::reader>(from.words + at, 0, words);
#pragma unroll
    for (int b = 0; b < SCALES; b++) {
        scales[b] = F::BLOCKS ? *(const uint32_t *)(from.scales + at + b * 32) : 0;
        zeros[b] = from.column_zeros;
        if (F::ZERO_BYTES && from.zeros)
            zeros[b] = *(const uint16_t *)(from.zeros + at + b * 16);
    }
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const int b = F::BLOCKS ? step / STEPS : 0;
        uint32_t zero[2];
        F::reader::prepare(zeros[b], zero);
        F::reader::read(&words[step * WORDS], zero, a[step]);
#pragma unroll
        for (int i = 0; i < 4 && F::BLOCKS; i++)
            a[step][i] =
                i % 2 ? wide_times<1>(a[step][i], scales[b], T{}) : wide_times<0>(a[step][i], scales[b], T{});
    }
#pragma unroll
    for (int step = 0; step < 4; step++) /* before what follows */
        asm volatile("" : "+r"(a[step][0]), "+r"(a[step][1]), "+r"(a[step][2]), "+r"(a[step][3]));
}

/* The panel `bytes` behind the first: both lie in the lower 256 KB. */
__device__ __forceinline__ uint64_t wide_panel(uint64_t first, int bytes)
{
    return first >> 32 << 32 | (uint32_t)((uint32_t)first + (uint32_t)bytes / 16);
}

template <class F>
__device__ __forceinline__ void wide_issue(uint64_t x, uint32_t (&a)[4][4], float (&sum)[F::ROWS / 8][4])
{
    using T = typename F::number;
    warpgroup_begin();
#pragma unroll
    for (int step = 0; step < 4; step++)
#pragma unroll
        for (int m = 0; m < F::ROWS; m += F::AT_ONCE)
            warpgroup<T, F::AT_ONCE>::template multiply<0>(sum + m / 8, a[step],
                                                           wide_panel(x, m * PANEL_ROW + step * 32), 1);
    warpgroup_commit();
}

/* The products of the tile at `place`, which begin while those in front go on; those are waited for then.
 * Whatever the compiler does, weights are widened while others are multiplied. */
template <class F>
__device__ __forceinline__ void wide_next(const wide_lane &from, uint64_t x, uint64_t *full, uint64_t *empty,
                                          int lane, ring &place, uint32_t (&a)[4][4],
                                          float (&sum)[F::ROWS / 8][4])
{
    const int last = place.at;
    place.next(F::STAGES);
    barrier_wait(&full[place.at], place.phase);
    wide_widen<F>(from, place.at * F::STAGE_BYTES, a);
    wide_issue<F>(wide_panel(x, place.at * F::STAGE_BYTES), a, sum);
    warpgroup_wait<1>();
    if (lane == 0)
        barrier_arrive(&empty[last]);
}

template <class F>
__device__ __forceinline__ void wide_multiply(const cuda_weight_product &p, const wide_part &part,
                                              const char *stages, uint64_t *full, uint64_t *empty, int tile,
                                              int lane, float (&sum)[F::ROWS / 8][4])
{
    const uint64_t x = panel_descriptor((uint32_t)__cvta_generic_to_shared(stages));
    const wide_lane from = wide_lane_of<F>(p, part, stages, tile, lane);
    uint32_t a[4][4], b[4][4];
    ring place = {0, 0};
    if (part.end <= part.tile)
        return;
    warpgroup_hold<F::ROWS>(sum);
    barrier_wait(&full[0], 0);
    wide_widen<F>(from, 0, a);
    wide_issue<F>(x, a, sum);
    int left = part.end - part.tile - 1;
#pragma unroll 1
    for (; left >= 2; left -= 2) {
        wide_next<F>(from, x, full, empty, lane, place, b, sum);
        wide_next<F>(from, x, full, empty, lane, place, a, sum);
    }
    if (left)
        wide_next<F>(from, x, full, empty, lane, place, b, sum);
    warpgroup_wait<0>();
    warpgroup_hold<F::ROWS>(sum);
}

/* ---- sums ----
 * Blocks of a cluster, of which each has a part of k, share out the rows, eight at a time. What a warp has of
 * eight rows and 16 columns goes to the block that adds them up, 16 bytes of each lane: eight rows' sums lie
 * in shared memory by block, eight rows, tile of columns and lane. */
template <class F> struct wide_sums {
    char *at;
    int splits, each; /* each: eights of rows of a block, at most */
    uint64_t *there;  /* all are */
    __device__ __forceinline__ char *of(int split, int eight, int tile) const
    {
        return at + ((split * each + eight) * F::TILES + tile) * WIDE_SUM_BYTES;
    }
};

template <class F> __device__ __forceinline__ wide_sums<F> wide_sums_of(char *stages, uint64_t *there)
{
    const int splits = (int)gridDim.z;
    return {stages, splits, (F::ROWS / 8 + splits - 1) / splits, there};
}

/* Before any block of the cluster sends. */
template <class F> __device__ __forceinline__ void wide_expect_sums(uint64_t *there)
{
    const int splits = (int)gridDim.z, own = (F::ROWS / 8 - (int)blockIdx.z + splits - 1) / splits;
    barrier_expect(there, (uint32_t)((splits - 1) * max(own, 0) * F::TILES * WIDE_SUM_BYTES));
}

template <class F>
__device__ __forceinline__ void wide_send(const wide_sums<F> &to, int tile, int lane,
                                          const float (&sum)[F::ROWS / 8][4])
{
    int block = 0, eight = 0;
#pragma unroll
    for (int i = 0; i < F::ROWS / 8; i++) {
        char *const at = to.of((int)blockIdx.z, eight, tile) + lane * 16;
        const float4 v = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        if (block == (int)blockIdx.z)
            *(float4 *)at = v;
        else
            cluster_send_four(at, v, to.there, (uint32_t)block);
        if (++block == to.splits) {
            block = 0;
            eight++;
        }
    }
}

enum { WIDE_FOUR = 4 /* results side by side */ };

/* A lane's four columns of a row, in the order of blocks. */
template <class F>
__device__ __forceinline__ void wide_add(const wide_sums<F> &from, int eight, int tile, int lane,
                                         float (&sum)[WIDE_FOUR])
{
    const int row = lane / 4, four = lane % 4,
              first =
                  (four % 2 * 16 + row / 2) * 4 + row % 2 + four / 2 * 2; /* as lanes of wgmma have them */
    const float *at = (const float *)from.of(0, eight, tile) + first;
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        sum[i] = at[i * 16];
#pragma unroll 1
    for (int split = 1; split < from.splits; split++) {
        at += from.each * F::TILES * (WIDE_SUM_BYTES / 4);
#pragma unroll
        for (int i = 0; i < WIDE_FOUR; i++)
            sum[i] += at[i * 16];
    }
}

static __device__ __noinline__ float wide_rare_number(const void *data, int dtype, int i)
{
    return cuda_load<float>(data, dtype, i);
}

/* What a lane's four columns have in common. Instructions by which sums leave are run once, and come from
 * memory then: what is rare is called, or stands apart from what is common. */
struct wide_columns {
    float scale[WIDE_FOUR], bias[WIDE_FOUR];
};

template <class F>
__device__ __forceinline__ wide_columns wide_columns_of(const cuda_weight_product &p, int column)
{
    wide_columns out = {{1, 1, 1, 1}, {}};
    const int last = p.n - 1;
    if (F::BLOCKS == 0)
#pragma unroll
        for (int i = 0; i < WIDE_FOUR; i++)
            out.scale[i] = weight_column_scale<typename F::number>(p, min(column + i, last));
    if (p.bias)
#pragma unroll
        for (int i = 0; i < WIDE_FOUR; i++)
            out.bias[i] = wide_rare_number(p.bias, p.bias_dtype, min(column + i, last));
    return out;
}

template <class T> struct alignas(8) wide_numbers {
    T v[WIDE_FOUR];
};

/* Where a lane's four results go: `there` of them. whole: all four, at addresses for 8 bytes. */
struct wide_place {
    size_t at;
    int there;
    bool whole;
};

template <class T>
__device__ __forceinline__ wide_numbers<T> wide_residual(const cuda_weight_product &p, const wide_place &to)
{
    const T *const residual = (const T *)p.residual + to.at;
    wide_numbers<T> out = {};
    if (!p.residual || to.there <= 0)
        return out;
    if (to.whole)
        return *(const wide_numbers<T> *)residual;
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        if (i < to.there)
            out.v[i] = residual[i];
    return out;
}

template <class T>
__device__ __forceinline__ void wide_write(const cuda_weight_product &p, const wide_place &to,
                                           const wide_numbers<T> &residual, float (&sum)[WIDE_FOUR])
{
    wide_numbers<T> out;
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        sum[i] += cuda_widen(residual.v[i]);
    if (p.act.kind != GRT_ACT_NONE)
#pragma unroll
        for (int i = 0; i < WIDE_FOUR; i++)
            sum[i] = cuda_activate_rare(p.act, sum[i]);
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        out.v[i] = cuda_narrow<T, float>(sum[i]);
    if (to.whole) {
        *(wide_numbers<T> *)((T *)p.y + to.at) = out;
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        if (i < to.there)
            ((T *)p.y)[to.at + i] = out.v[i];
}

/* A lane's four columns of the block's `eight`-th rows. */
template <class F>
__device__ __forceinline__ void wide_sum(const wide_sums<F> &from, const wide_columns &columns, int eight,
                                         int tile, int lane, float (&sum)[WIDE_FOUR])
{
    wide_add<F>(from, eight, tile, lane, sum);
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        sum[i] = F::BLOCKS == 0 ? fmaf(sum[i], columns.scale[i], columns.bias[i]) : sum[i] + columns.bias[i];
}

/* How a block's warps share out its part of the results: each takes its tile of columns of eight rows at a
 * time; of a gated product half as many tiles are results, and two warps share one. */
template <class F, bool GATED> struct wide_share {
    enum { WARPS = GATED ? 2 : 1, RESULTS = F::TILES / WARPS, TOGETHER = F::ROWS <= 64 ? 2 : 4 };
    int tile, first, columns, column, row, rows; /* first: of the block's eights; rows: to the next of them */
    __device__ __forceinline__ wide_share(const cuda_weight_product &p, const wide_part &part, int splits,
                                          int warp, int lane)
        : tile(warp % RESULTS), first(warp / RESULTS), columns(GATED ? p.n / 2 : p.n),
          column((part.tile_n + tile) * 16 + lane % 4 * WIDE_FOUR),
          row(part.row + (first * splits + (int)blockIdx.z) * 8 + lane / 4), rows(WARPS * splits * 8)
    {
    }
};

template <class F, bool GATED>
__device__ __forceinline__ void wide_results(const wide_sums<F> &from, const wide_share<F, GATED> &share,
                                             const wide_columns &first, const wide_columns &second, int eight,
                                             int lane, float (&sum)[WIDE_FOUR])
{
    float more[WIDE_FOUR];
    wide_sum<F>(from, first, eight, share.tile, lane, sum);
    if (!GATED)
        return;
    wide_sum<F>(from, second, eight, share.RESULTS + share.tile, lane, more);
#pragma unroll
    for (int i = 0; i < WIDE_FOUR; i++)
        sum[i] = weight_gate(sum[i], more[i]);
}

/* Where nothing but a residual is added, and four results are 8 bytes. Residuals of the next rows are asked
 * for before those in front are added. */
template <class F, bool GATED>
__device__ __forceinline__ void wide_finish_plain(const cuda_weight_product &p, const wide_part &part,
                                                  const wide_sums<F> &from, int warp, int lane)
{
    using T = typename F::number;
    using four = wide_numbers<T>;
    const wide_share<F, GATED> share(p, part, from.splits, warp, lane);
    enum { AHEAD = share.TOGETHER };
    const int end = share.column < share.columns ? min(p.m, part.row + (int)F::ROWS) : 0;
    const size_t step = (size_t)share.rows * share.columns,
                 at = (size_t)share.row * share.columns + share.column;
    const T *residual = p.residual ? (const T *)p.residual + at : NULL;
    T *y = (T *)p.y + at;
    four more[AHEAD] = {};
    const wide_columns first = wide_columns_of<F>(p, share.column),
                       second = GATED ? wide_columns_of<F>(p, share.columns + share.column) : first;
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        if (residual && share.row + i * share.rows < end)
            more[i] = *(const four *)(residual + i * step);
    if (from.splits > 1)
        cluster_receive(from.there);
    int row = share.row, eight = share.first;
#pragma unroll 1
    while (row < end)
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            float sum[WIDE_FOUR];
            four out;
            if (row >= end)
                break;
            wide_results<F, GATED>(from, share, first, second, eight, lane, sum);
#pragma unroll
            for (int j = 0; j < WIDE_FOUR; j++)
                out.v[j] = cuda_narrow<T, float>(sum[j] + cuda_widen(more[i].v[j]));
            *(four *)y = out;
            if (residual) {
                if (row + AHEAD * share.rows < end)
                    more[i] = *(const four *)(residual + AHEAD * step);
                residual += step;
            }
            y += step;
            row += share.rows;
            eight += share.WARPS;
        }
}

template <class F, bool GATED>
__device__ __forceinline__ void wide_finish_any(const cuda_weight_product &p, const wide_part &part,
                                                const wide_sums<F> &from, int warp, int lane, bool whole)
{
    using T = typename F::number;
    const wide_share<F, GATED> share(p, part, from.splits, warp, lane);
    enum { TOGETHER = share.TOGETHER };
    const int there = share.columns - share.column, end = min(p.m, part.row + (int)F::ROWS);
    const wide_columns first = wide_columns_of<F>(p, share.column),
                       second = GATED ? wide_columns_of<F>(p, share.columns + share.column) : first;
    if (from.splits > 1)
        cluster_receive(from.there);
    int row = share.row, eight = share.first;
#pragma unroll 1
    for (; row < end; row += TOGETHER * share.rows, eight += TOGETHER * share.WARPS) {
        wide_place to[TOGETHER];
        wide_numbers<T> residual[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int of = row + i * share.rows;
            to[i] = {(size_t)of * share.columns + share.column, of < end ? there : 0, whole};
            residual[i] = wide_residual<T>(p, to[i]);
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            float sum[WIDE_FOUR];
            if (to[i].there <= 0)
                break;
            wide_results<F, GATED>(from, share, first, second, eight + i * share.WARPS, lane, sum);
            wide_write<T>(p, to[i], residual[i], sum);
        }
    }
}

template <class F, bool GATED>
__device__ __forceinline__ void wide_finish(const cuda_weight_product &p, const wide_part &part,
                                            const wide_sums<F> &from, int warp, int lane)
{
    const bool whole =
        (GATED ? p.n / 2 : p.n) % WIDE_FOUR == 0 && (((uintptr_t)p.y | (uintptr_t)p.residual) & 7) == 0;
    if (whole && !p.bias && p.act.kind == GRT_ACT_NONE)
        wide_finish_plain<F, GATED>(p, part, from, warp, lane);
    else
        wide_finish_any<F, GATED>(p, part, from, warp, lane, whole);
}

template <class F>
__global__ void __launch_bounds__(F::THREADS, F::BLOCKS_AT_ONCE)
    weight_wide_kernel(const __grid_constant__ cuda_weight_product p, const __grid_constant__ CUtensorMap map)
{
    extern __shared__ char raw[];
    char *const stages = raw + (-(uint32_t)__cvta_generic_to_shared(raw) & (PANEL_ALIGNMENT - 1));
    uint64_t *const full = (uint64_t *)(stages + F::ROOM), *const empty = full + F::STAGES,
                    *const sums_there = empty + F::STAGES;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0), lane = (int)threadIdx.x % 32,
              begin = (int)blockIdx.z * p.split_tiles;
    const wide_part part = {(int)blockIdx.x * wide_tiles<F>(p), (int)blockIdx.y * F::ROWS, begin,
                            min(begin + p.split_tiles, p.tiles_k)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&full[i], 1 + 128);
            barrier_init(&empty[i], F::GROUPS * 4);
        }
        barrier_init(sums_there, 1);
        barrier_init_done();
        wide_expect_sums<F>(sums_there);
    }
    __syncthreads();
    overlap_let_next_begin();
    if (warp >= F::GROUPS * 4) {
        warpgroup_leave_registers<F::FETCH_REGISTERS>();
        wide_fetch<F>(p, &map, part, stages, full, empty, (int)threadIdx.x - F::GROUPS * 128);
        return;
    }
    warpgroup_take_registers<F::MULTIPLY_REGISTERS>();
    float sum[F::ROWS / 8][4] = {};
    const wide_sums<F> sums = wide_sums_of<F>(stages, sums_there);
    wide_multiply<F>(p, part, stages, full, empty, warp, lane, sum);
    /* All have read all stages, in all blocks that send here. */
    if (sums.splits > 1) {
        __syncwarp();
        cluster_arrive_only();
        cluster_wait();
    } else {
        asm volatile("bar.sync 1, %0;" ::"n"(F::GROUPS * 128) : "memory");
    }
    wide_send<F>(sums, warp, lane, sum);
    overlap_wait();
    if (p.gated) {
        asm volatile("bar.sync 1, %0;" ::"n"(F::GROUPS * 128) : "memory");
        wide_finish<F, true>(p, part, sums, warp, lane);
    } else {
        __syncwarp();
        wide_finish<F, false>(p, part, sums, warp, lane);
    }
}

/* ---- launches ---- */

template <class F>
grt_status wide_launch(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    using T = typename F::number;
    if (!p) {
        CUDA_TRY(cudaFuncSetAttribute(weight_wide_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      F::SHARED_BYTES));
        return GRT_OK;
    }
    const uint64_t k = (uint64_t)p->k;
    const cuda_tensor_view x = {std::is_same<T, __half>::value ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_BFLOAT16,
                                {k, (uint64_t)p->m, 1, 1},
                                {1, k, k, k}};
    CUtensorMap map;
    CUDA_TRY(cuda_tensor_map_encode(choice->encode, &x, p->x, F::ROWS, &map));
    const int tiles = p->gated ? F::TILES / 2 : F::TILES, all = p->gated ? p->tiles_n / 2 : p->tiles_n;
    const dim3 grid((unsigned)((all + tiles - 1) / tiles), (unsigned)((p->m + F::ROWS - 1) / F::ROWS),
                    (unsigned)choice->splits);
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config =
        overlap_config(choice->overlaps, grid, F::THREADS, F::SHARED_BYTES, stream, &attributes[0]);
    cudaLaunchAttribute *const cluster = &attributes[config.numAttrs];
    *cluster = {};
    cluster->id = cudaLaunchAttributeClusterDimension;
    cluster->val.clusterDim = {1, 1, (unsigned)choice->splits};
    config.numAttrs++;
    CUDA_TRY(cudaLaunchKernelEx(&config, weight_wide_kernel<F>, *p, map));
    return GRT_OK;
}

template <class T, cuda_weight_numbers F, int BLOCKS>
grt_status wide_use_rows(const cuda_weight_product *p, const cuda_weight_choice *choice, cudaStream_t stream)
{
    switch (choice->spread) {
    case CUDA_WEIGHT_WIDE_32_DOUBLE:
        return wide_launch<wide_form<T, F, BLOCKS, 4, 32, 8>>(p, choice, stream);
    case CUDA_WEIGHT_WIDE_64:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 64, 10>>(p, choice, stream);
    case CUDA_WEIGHT_WIDE_64_DOUBLE:
        return wide_launch<wide_form<T, F, BLOCKS, 4, 64, 7>>(p, choice, stream);
    case CUDA_WEIGHT_WIDE_128:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 128, 7>>(p, choice, stream);
    default:
        return wide_launch<wide_form<T, F, BLOCKS, 2, 256, 5>>(p, choice, stream);
    }
}

/* Blocks of 16 have a kernel for 4 bits only. */
template <class T, cuda_weight_numbers F>
grt_status wide_use_blocks(const cuda_weight_product *p, const cuda_weight_choice *choice,
                           cudaStream_t stream)
{
    switch (choice->blocks) {
    case 0:
        return wide_use_rows<T, F, 0>(p, choice, stream);
    case 1:
    case 2:
        return wide_use_rows<T, F, 1>(p, choice, stream);
    case 4:
        return wide_use_rows<T, F, 2>(p, choice, stream);
    default:
        return wide_use_rows < T, F, F == CUDA_WEIGHT_4 ? 4 : 2 > (p, choice, stream);
    }
}

template <class T>
grt_status wide_use(const cuda_weight_product *p, cuda_weight_numbers numbers,
                    const cuda_weight_choice *choice, cudaStream_t stream)
{
    return weight_with_numbers(
        numbers, [&](auto n) { return wide_use_blocks<T, decltype(n)::value>(p, choice, stream); });
}

} // namespace

#endif

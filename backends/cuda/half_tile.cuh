/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of half_product.h. One warp has operands fetched by the bulk copy engine into a ring of stages;
 * each warpgroup sums 64 rows of the block's tile and finishes them in registers. Small products split their
 * sum over the blocks of a cluster, which join through distributed shared memory. */
#ifndef GRT_BACKENDS_CUDA_HALF_TILE_CUH
#define GRT_BACKENDS_CUDA_HALF_TILE_CUH

#include "backends/cuda/activate.cuh"
#include "backends/cuda/bulk_rows.cuh"
#include "backends/cuda/cluster.cuh"
#include "backends/cuda/divider.cuh"
#include "backends/cuda/half_panels.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/tensor_core.cuh"

namespace
{

enum { HALF_ROWS = 64 /* of a warpgroup */, WARP_ROWS = 16, PRODUCT_BYTES = 32 /* of the sum */ };

/* Numbers of a stage's sum. */
template <class T> constexpr int half_depth = PANEL_ROW / (int)sizeof(T);

/* GROUPS warpgroups with 64 rows each, N columns, BLOCKS of them on a multiprocessor. */
template <int GROUPS_OF_BLOCK, int N, int STAGES_OF_RING, int BLOCKS_OF_PROCESSOR> struct half_form {
    enum {
        GROUPS = GROUPS_OF_BLOCK,
        COLUMNS = N,
        STAGES = STAGES_OF_RING,
        BLOCKS = BLOCKS_OF_PROCESSOR,
        ROWS = GROUPS * HALF_ROWS,
        X_STAGE = ROWS * PANEL_ROW,
        W_STAGE = N * PANEL_ROW,
        MEMBERS = GROUPS * 128, /* threads that sum */
        IS_WIDE = N >= 192,     /* more registers than are launched */
        THREADS = MEMBERS + (IS_WIDE ? 128 : 32),
        REGISTERS = GROUPS == 3 ? 152 : 208,
        PANEL_COLUMNS = N < 64 ? N : 64, /* of results, that a warp has at once */
        PANEL_CHUNKS = PANEL_COLUMNS / 8,
        PANELS = N / PANEL_COLUMNS,
        READS = PANEL_CHUNKS / 2 /* of 16 bytes by each lane */
    };
    static_assert(ROWS * N * 4 <= STAGES * (X_STAGE + W_STAGE), "");
};

template <class T, class F> struct half_room {
    enum { WARPS = sizeof(T) == 2 ? F::MEMBERS / 32 : 0 /* whose results go by way of `out` */ };
    char x[F::STAGES][F::X_STAGE],
        w[F::STAGES][F::W_STAGE]; /* then, of split sums, the parts that are joined */
    char out[WARPS + 1][WARPS > 0 ? WARP_ROWS *PANEL_ROW : 16];
    char bias[F::STAGES][F::COLUMNS * sizeof(T)]; /* comes with a tile's first stage */
    uint64_t full[F::STAGES], empty[F::STAGES];
};

struct half_maps {
    CUtensorMap x, w;
};

struct half_work {
    int rows, columns, tiles, across; /* across: tiles side by side */
    int steps, per_tap, taps_right, splits;
    int line, lines; /* windows: of a result, in pixels; of an image */
    int stride[2], begin[2], dilation[2];
    divider by_across, by_line, by_lines;
    bool is_windows, is_constant;
    uint32_t low, high; /* bounds, each twice if they have 16 bits */
    grt_act act;
    const void *bias, *residual;
    void *y;
};

template <class F> struct half_place {
    int row, column;
    __device__ __forceinline__ half_place(const half_work &work, int tile)
    {
        const int line = work.by_across(tile);
        row = line * F::ROWS;
        column = (tile - line * work.across) * F::COLUMNS;
    }
};

/* The steps of this block's part of the sum. */
struct half_part {
    int begin, end;
    __device__ __forceinline__ half_part(const half_work &work, int rank)
        : begin(work.steps * rank / work.splits), end(work.steps * (rank + 1) / work.splits)
    {
    }
};

/* ---- what is fetched ---- */

static __device__ __forceinline__ void half_fetch_taps(void *to, const CUtensorMap *map, int channel, int tap,
                                                       int column, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3,%4,%5}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(tap), "r"(column)
                 : "memory");
}

static __device__ __forceinline__ void half_fetch_bytes(void *to, const void *from, uint32_t bytes,
                                                        uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

/* The steps of the sum one after the other: which tap, which channels. */
template <class T> struct half_step {
    int tap, channel;
    __device__ __forceinline__ half_step(const half_work &work, int step)
        : tap(step / work.per_tap), channel((step - tap * work.per_tap) * half_depth<T>)
    {
    }
    __device__ __forceinline__ void next(const half_work &work)
    {
        channel += half_depth<T>;
        if (channel == work.per_tap * half_depth<T>) {
            channel = 0;
            tap++;
        }
    }
};

/* Weights, and a tile's bias with its first ones. */
template <class T, class F, bool ACROSS>
__device__ __forceinline__ void half_fetch_weights(const half_work &work, const half_maps &maps,
                                                   half_room<T, F> &room, int stage, half_step<T> at,
                                                   int column, bool has_bias)
{
    uint64_t *full = &room.full[stage];
    const uint32_t bias_bytes = has_bias ? min((int)F::COLUMNS, work.columns - column) * (int)sizeof(T) : 0;
    barrier_expect(full, F::X_STAGE + F::W_STAGE + bias_bytes);
    if (has_bias)
        half_fetch_bytes(room.bias[stage], (const T *)work.bias + column, bias_bytes, full);
    if constexpr (ACROSS)
#pragma unroll
        for (int p = 0; p < F::COLUMNS / 64; p++)
            bulk_fetch_rows(room.w[stage] + p * ACROSS_PANEL, &maps.w, column + p * 64, at.channel, full);
    else
        half_fetch_taps(room.w[stage], &maps.w, at.channel, at.tap, column, full);
}

template <class T, class F, bool ACROSS>
__device__ __forceinline__ void half_fetch(const half_work &work, const half_maps &maps,
                                           half_room<T, F> &room, int rank, int first_tile, int tile_step)
{
    const half_part part(work, rank);
    const bool adds_bias = work.bias && rank == 0;
    int ahead = 0;
    if (work.is_constant) { /* weights come while the kernel in front of this one still writes x */
        half_step<T> at(work, part.begin);
        ahead = min(part.end - part.begin, (int)F::STAGES);
        for (int k = 0; k < ahead; k++, at.next(work))
            half_fetch_weights<T, F, ACROSS>(work, maps, room, k, at, half_place<F>(work, first_tile).column,
                                             adds_bias && k == 0);
    }
    overlap_wait();
    ring place = {0, 0};
    for (int tile = first_tile; tile < work.tiles; tile += tile_step) {
        const half_place<F> t(work, tile);
        const int line = work.by_line(t.row), image = work.by_lines(line),
                  down = (line - image * work.lines) * work.stride[0] - work.begin[0],
                  right = (t.row - line * work.line) * work.stride[1] - work.begin[1];
        half_step<T> at(work, part.begin);
        for (int k = part.begin; k < part.end; k++, at.next(work), place.next(F::STAGES)) {
            uint64_t *full = &room.full[place.at];
            if (--ahead < 0) {
                barrier_wait(&room.empty[place.at], place.phase ^ 1);
                half_fetch_weights<T, F, ACROSS>(work, maps, room, place.at, at, t.column,
                                                 adds_bias && k == part.begin);
            }
            if (work.is_windows) {
                const int tap_down = at.tap / work.taps_right,
                          tap_right = at.tap - tap_down * work.taps_right;
                bulk_fetch_windows(room.x[place.at], &maps.x, at.channel, right, down, image,
                                   tap_right * work.dilation[1], tap_down * work.dilation[0], full);
            } else {
                bulk_fetch_rows(room.x[place.at], &maps.x, at.channel, t.row, full);
            }
        }
    }
}

/* ---- sums ---- */

template <class T> struct half_pair {
    using word_type = uint32_t;
    static __device__ __forceinline__ float2 widen(uint32_t word)
    {
        if constexpr (std::is_same<T, __half>::value)
            return __half22float2(*(const __half2 *)&word);
        else
            return __bfloat1622float2(*(const __nv_bfloat162 *)&word);
    }
    /* Rounding keeps the order, so numbers may be bounded behind it. NaN goes through. */
    static __device__ __forceinline__ uint32_t bounded(uint32_t word, uint32_t low, uint32_t high)
    {
        if constexpr (std::is_same<T, __half>::value) {
            const __half2 v = __hmin2_nan(__hmax2_nan(*(const __half2 *)&word, *(const __half2 *)&low),
                                          *(const __half2 *)&high);
            return *(const uint32_t *)&v;
        } else {
            const __nv_bfloat162 v =
                __hmin2_nan(__hmax2_nan(*(const __nv_bfloat162 *)&word, *(const __nv_bfloat162 *)&low),
                            *(const __nv_bfloat162 *)&high);
            return *(const uint32_t *)&v;
        }
    }
};

template <> struct half_pair<float> {
    using word_type = float2;
    static __device__ __forceinline__ float2 widen(float2 word)
    {
        return word;
    }
};

/* Sums begin with the bias: column i * 8 + quad * 2 and the next, of both rows of a thread. */
template <class T, int N>
__device__ __forceinline__ void half_begin_sums(const char *bias, float (&sum)[N / 8][4])
{
    const int quad = threadIdx.x & 3;
#pragma unroll
    for (int i = 0; i < N / 8; i++) {
        float2 v = make_float2(0, 0);
        if (bias)
            v = half_pair<T>::widen(((const typename half_pair<T>::word_type *)bias)[i * 4 + quad]);
        sum[i][0] = sum[i][2] = v.x;
        sum[i][1] = sum[i][3] = v.y;
    }
}

template <class T, class F, bool ACROSS>
__device__ __forceinline__ void half_sum(half_room<T, F> &room, int group, int steps, bool adds_bias,
                                         ring &place, float (&sum)[F::COLUMNS / 8][4])
{
    const auto release = [&](int stage) {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&room.empty[stage]);
    };
    int before = 0;
    barrier_wait(&room.full[place.at], place.phase);
    half_begin_sums<T, F::COLUMNS>(adds_bias ? room.bias[place.at] : nullptr, sum);
    warpgroup_hold<F::COLUMNS>(sum);
    for (int k = 0; k < steps; k++) {
        barrier_wait(&room.full[place.at], place.phase);
        const uint32_t x = shared_address(room.x[place.at]) + group * HALF_ROWS * PANEL_ROW,
                       w = shared_address(room.w[place.at]);
        warpgroup_begin();
#pragma unroll
        for (int p = 0; p < PANEL_ROW / PRODUCT_BYTES; p++)
            half_panels<T, F::COLUMNS, ACROSS>::multiply(
                sum, half_panel_descriptor<false>(x + p * PRODUCT_BYTES),
                half_panel_descriptor<ACROSS>(w + p * (ACROSS ? 16 * PANEL_ROW : PRODUCT_BYTES)));
        warpgroup_commit();
        warpgroup_wait<1>();
        if (k > 0)
            release(before);
        before = place.at;
        place.next(F::STAGES);
    }
    warpgroup_wait<0>();
    warpgroup_hold<F::COLUMNS>(sum);
    release(before);
}

/* ---- results ---- */

/* As cuBLASLt has it: the tanh form, which differs from the exact one by at most 5e-4. */
static __device__ __forceinline__ float half_gelu(float x)
{
    float t;
    const float u = x * fmaf(x * x, 0.0356774081f, 0.797884561f), h = 0.5f * x;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(u));
    return fmaf(h, t, h);
}

/* Of float32: bounds, or any activation by the hardware's exponential, which is off by less than what TF32
 * operands are rounded by. */
template <bool CURVED, int N>
__device__ __forceinline__ void half_activate_floats(const half_work &work, float (&x)[N])
{
    if constexpr (CURVED) {
        cuda_activate_all<__half>(work.act, x);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = cuda_bounded(x[i], __uint_as_float(work.low), __uint_as_float(work.high));
    }
}

template <class T, bool GELU>
__device__ __forceinline__ uint32_t half_activate(const half_work &work, float x, float y)
{
    if constexpr (GELU)
        return tensor_core<T>::pair(half_gelu(x), half_gelu(y));
    else
        return half_pair<T>::bounded(tensor_core<T>::pair(x, y), work.low, work.high);
}

/* Where a chunk of 16 bytes of a warp's results lies: rows that are read together lie in different banks. */
static __device__ __forceinline__ char *half_chunk(char *out, int row, int chunk)
{
    return out + row * PANEL_ROW + ((chunk ^ (row & 7)) << 4);
}

/* The warp's rows from `row` on, and PANEL_COLUMNS from `column` on, 16 bytes at once. */
template <class F> struct half_lines {
    enum { LANE_ROWS = 32 / F::PANEL_CHUNKS };
    const int chunk = threadIdx.x % F::PANEL_CHUNKS, first = threadIdx.x % 32 / F::PANEL_CHUNKS;

    template <class T>
    __device__ __forceinline__ void read(const half_work &work, int row, int column,
                                         uint4 (&to)[F::READS]) const
    {
        const int at = column + chunk * 8;
#pragma unroll
        for (int i = 0; i < F::READS; i++) {
            const int line = row + first + i * LANE_ROWS;
            to[i] = make_uint4(0, 0, 0, 0);
            if (work.residual && line < work.rows && at < work.columns)
                to[i] = *(const uint4 *)((const T *)work.residual + (size_t)line * work.columns + at);
        }
    }
    __device__ __forceinline__ void put(char *out, const uint4 (&from)[F::READS]) const
    {
#pragma unroll
        for (int i = 0; i < F::READS; i++)
            *(uint4 *)half_chunk(out, first + i * LANE_ROWS, chunk) = from[i];
    }
    template <class T>
    __device__ __forceinline__ void write(const half_work &work, int row, int column, char *out) const
    {
        const int at = column + chunk * 8;
#pragma unroll
        for (int i = 0; i < F::READS; i++) {
            const int line = row + first + i * LANE_ROWS;
            const uint4 v = *(const uint4 *)half_chunk(out, first + i * LANE_ROWS, chunk);
            if (line < work.rows && at < work.columns)
                *(uint4 *)((T *)work.y + (size_t)line * work.columns + at) = v;
        }
    }
};

static __device__ __forceinline__ void half_store_matrices(char *at, const uint32_t (&word)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(at)),
                 "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
}

/* A panel of results goes by way of shared memory, where its residuals lie. */
template <class T, class F, bool GELU>
__device__ __forceinline__ void half_finish(const half_work &work, char *out, float (*sum)[4])
{
    const int lane = threadIdx.x % 32, row = (lane >> 3 & 1) * 8 + (lane & 7);
#pragma unroll
    for (int i = 0; i < F::PANEL_CHUNKS; i += 2) {
        char *at = half_chunk(out, row, i + (lane >> 4));
        uint32_t word[4];
        if (work.residual) {
            load_matrices(word, at);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float2 v = half_pair<T>::widen(word[k]);
                sum[i + k / 2][k % 2 * 2] += v.x;
                sum[i + k / 2][k % 2 * 2 + 1] += v.y;
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            word[k] = half_activate<T, GELU>(work, sum[i + k / 2][k % 2 * 2], sum[i + k / 2][k % 2 * 2 + 1]);
        half_store_matrices(at, word);
    }
}

/* 8 columns. */
template <class T, bool GELU>
__device__ __forceinline__ void half_finish_pair(const half_work &work, int row, int column, float4 sum)
{
    const int at = column + (threadIdx.x & 3) * 2;
    float v[2][2] = {{sum.x, sum.y}, {sum.z, sum.w}};
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const size_t to = (size_t)(row + 8 * r) * work.columns + at;
        if (row + 8 * r >= work.rows || at >= work.columns)
            continue;
        if (work.residual) {
            const float2 added = half_pair<T>::widen(
                *(const typename half_pair<T>::word_type *)((const T *)work.residual + to));
            v[r][0] += added.x;
            v[r][1] += added.y;
        }
        if constexpr (sizeof(T) == 4) {
            half_activate_floats<GELU>(work, v[r]);
            *(float2 *)((T *)work.y + to) = make_float2(v[r][0], v[r][1]);
        } else {
            *(uint32_t *)((T *)work.y + to) = half_activate<T, GELU>(work, v[r][0], v[r][1]);
        }
    }
}

/* Results of 4 bytes leave as they are: lanes side by side exchange pairs, so that each has four columns of
 * one row. */
template <class F> struct half_float_lines {
    enum { CHUNKS = 4 /* that a lane has residuals of at once, of 8 columns each */ };
    const int odd = threadIdx.x & 1, line = threadIdx.x % 32 / 4 + odd * 8,
              first = (threadIdx.x >> 1 & 1) * 4;

    __device__ __forceinline__ bool find(const half_work &work, int row, int column, size_t &at) const
    {
        at = (size_t)(row + line) * work.columns + column + first;
        return row + line < work.rows && column + first < work.columns;
    }
    __device__ __forceinline__ void read(const half_work &work, int row, int column,
                                         float4 (&to)[CHUNKS]) const
    {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            size_t at;
            to[i] = make_float4(0, 0, 0, 0);
            if (work.residual && find(work, row, column + i * 8, at))
                to[i] = *(const float4 *)((const float *)work.residual + at);
        }
    }
    /* By name, as the compiler makes four stores of an assignment. */
    static __device__ __forceinline__ void store(float *to, const float (&v)[4])
    {
        asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]),
                     "f"(v[3])
                     : "memory");
    }
    template <bool CURVED>
    __device__ __forceinline__ void finish(const half_work &work, int row, int column, const float (*sum)[4],
                                           const float4 (&residual)[CHUNKS]) const
    {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            const float *s = sum[i];
            const float x = __shfl_xor_sync(0xffffffffu, odd ? s[0] : s[2], 1),
                        y = __shfl_xor_sync(0xffffffffu, odd ? s[1] : s[3], 1);
            const float4 more = residual[i];
            float v[4] = {(odd ? x : s[0]) + more.x, (odd ? y : s[1]) + more.y, (odd ? s[2] : x) + more.z,
                          (odd ? s[3] : y) + more.w};
            size_t at;
            half_activate_floats<CURVED>(work, v);
            if (find(work, row, column + i * 8, at))
                store((float *)work.y + at, v);
        }
    }
};

/* The cluster's blocks each get the sums of some columns from all. */
template <class T, class F, bool GELU>
__device__ __forceinline__ void half_join(const half_work &work, half_room<T, F> &room, int rank, int row,
                                          int column, float (&sum)[F::COLUMNS / 8][4])
{
    enum { EIGHTS = F::COLUMNS / 8 };
    const int share = EIGHTS / work.splits;
    const uint32_t mine = shared_address(&room) + (rank * share * F::MEMBERS + threadIdx.x) * 16;
    cluster_arrive_only();
    cluster_wait(); /* no block needs its stages any longer */
    uint32_t there = 0;
    int left = 0, owner = 0;
#pragma unroll
    for (int i = 0; i < EIGHTS; i++) {
        if (left == 0) {
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"(owner));
            owner++;
            left = share;
        }
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(there), "f"(sum[i][0]),
                     "f"(sum[i][1]), "f"(sum[i][2]), "f"(sum[i][3])
                     : "memory");
        there += F::MEMBERS * 16;
        left--;
    }
    cluster_arrive();
    cluster_wait();
    for (int i = 0; i < share; i++) {
        float4 all = make_float4(0, 0, 0, 0);
        for (int s = 0; s < work.splits; s++) {
            const float4 v = ((const float4 *)&room)[(s * share + i) * F::MEMBERS + threadIdx.x];
            all = make_float4(all.x + v.x, all.y + v.y, all.z + v.z, all.w + v.w);
        }
        half_finish_pair<T, GELU>(work, row, column + (rank * share + i) * 8, all);
    }
}

/* A tile's results, whose residuals of the first panel were read before the sum. */
template <class T, class F, bool GELU> struct half_out {
    const half_lines<F> lines;
    uint4 residual[F::READS];

    __device__ __forceinline__ void begin(const half_work &work, int row, int column)
    {
        lines.template read<T>(work, row, column, residual);
    }
    __device__ __forceinline__ void finish(const half_work &work, char *out, int row, int column,
                                           float (*sum)[4], bool is_last)
    {
        if (work.residual) {
            lines.put(out, residual);
            if (!is_last)
                begin(work, row, column + F::PANEL_COLUMNS);
            __syncwarp();
        }
        half_finish<T, F, GELU>(work, out, sum);
        __syncwarp();
        lines.template write<T>(work, row, column, out);
        __syncwarp();
    }
};
template <class F, bool CURVED> struct half_out<float, F, CURVED> {
    using float_lines = half_float_lines<F>;
    const float_lines lines;
    float4 residual[float_lines::CHUNKS];

    __device__ __forceinline__ void begin(const half_work &work, int row, int column)
    {
        lines.read(work, row, column, residual);
    }
    __device__ __forceinline__ void finish(const half_work &work, char *, int row, int column,
                                           float (*sum)[4], bool is_last)
    {
#pragma unroll
        for (int i = 0; i < F::PANEL_CHUNKS; i += float_lines::CHUNKS) {
            const int next = i + float_lines::CHUNKS;
            lines.template finish<CURVED>(work, row, column + i * 8, sum + i, residual);
            if (work.residual && (next < F::PANEL_CHUNKS || !is_last))
                begin(work, row, column + next * 8);
        }
    }
};

template <class T, class F, bool ACROSS, bool GELU, bool SPLIT>
__device__ __forceinline__ void half_multiply(const half_work &work, half_room<T, F> &room, int rank,
                                              int first_tile, int tile_step)
{
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const half_part part(work, rank);
    char *out = room.out[sizeof(T) == 2 ? warp : 0];
    ring place = {0, 0};
    overlap_wait();
    for (int tile = first_tile; tile < work.tiles; tile += tile_step) {
        const half_place<F> t(work, tile);
        const int row = t.row + warp * WARP_ROWS;
        float sum[F::COLUMNS / 8][4];
        half_out<T, F, GELU> results;
        if constexpr (!SPLIT)
            results.begin(work, row, t.column);
        half_sum<T, F, ACROSS>(room, group, part.end - part.begin, work.bias && rank == 0, place, sum);
        if constexpr (SPLIT) {
            half_join<T, F, GELU>(work, room, rank, row + lane / 4, t.column, sum);
        } else {
#pragma unroll
            for (int p = 0; p < F::PANELS; p++)
                results.finish(work, out, row, t.column + p * F::PANEL_COLUMNS, sum + p * F::PANEL_CHUNKS,
                               p + 1 == F::PANELS);
        }
    }
}

template <class T, class F, bool ACROSS, bool GELU, bool SPLIT>
__global__ void __launch_bounds__(F::THREADS, F::BLOCKS)
    half_kernel(const __grid_constant__ half_work work, const __grid_constant__ half_maps maps)
{
    extern __shared__ __align__(PANEL_ALIGNMENT) char half_raw[];
    half_room<T, F> &room = *(half_room<T, F> *)half_raw;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), rank = SPLIT ? (int)cluster_rank() : 0,
              first_tile = SPLIT ? blockIdx.x / work.splits : blockIdx.x,
              tile_step = SPLIT ? work.tiles : gridDim.x;
    overlap_let_next_begin();
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], F::MEMBERS / 32);
        }
        barrier_init_done();
    }
    __syncthreads();
    if (warp < F::MEMBERS / 32) {
        if constexpr (F::IS_WIDE)
            warpgroup_take_registers<F::REGISTERS>();
        half_multiply<T, F, ACROSS, GELU, SPLIT>(work, room, rank, first_tile, tile_step);
    } else {
        if constexpr (F::IS_WIDE)
            warpgroup_leave_registers<40>();
        if (threadIdx.x == F::MEMBERS)
            half_fetch<T, F, ACROSS>(work, maps, room, rank, first_tile, tile_step);
    }
}

} // namespace

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See float8_bulk.h and bulk_turns.cuh. */
#include "backends/cuda/float8_bulk.h"

#include "backends/cuda/bulk_turns.cuh"
#include "backends/cuda/float8.cuh"
#include "backends/cuda/qgemm_store.cuh"

namespace
{

template <int N> struct float8_columns {
    float scale[TURNS][N], bias[TURNS][N];
};

template <class F> using float8_room = turn_room<F, float8_columns<F::COLUMNS>>;

struct float8_work : turn_work {
    int stages; /* of a tile */
};

template <class F>
__device__ __forceinline__ void fetch_operands(const float8_work &work, const turn_maps &maps,
                                               float8_room<F> &room)
{
    ring place = {0, 0};
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const turn_tile<F> t(work, tile);
        for (int c = 0; c < work.stages; c++, place.next(F::STAGES)) {
            barrier_wait(&room.empty[place.at], place.phase ^ 1);
            uint64_t *full = &room.full[place.at];
            barrier_expect(full, F::X_STAGE + F::W_STAGE);
            bulk_fetch_filters(room.w[place.at], &maps.w, c * PANEL_ROW, t.column / LANES_COLUMNS, full);
            bulk_fetch_rows(room.x[place.at], &maps.x, c * PANEL_ROW, t.row, full);
        }
    }
}

struct float8_panels {
    static __device__ __forceinline__ void multiply(float (&c)[8][4], uint64_t a, uint64_t b, int adds)
    {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " WARPGROUP_R64
                     ", %32, %33, p, 1, 1;}"
                     : WARPGROUP_C64(c)
                     : "l"(a), "l"(b), "r"(adds));
    }
    static __device__ __forceinline__ void multiply(float (&c)[16][4], uint64_t a, uint64_t b, int adds)
    {
        asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " WARPGROUP_R128
                     ", %64, %65, p, 1, 1;}"
                     : WARPGROUP_C128(c)
                     : "l"(a), "l"(b), "r"(adds));
    }
    template <int N> static __device__ __forceinline__ void hold(float (&c)[N][4])
    {
        warpgroup_hold<N * 8>(c);
    }
};

/* Eight results of a row, which lie where their residuals do. */
template <class Y>
__device__ __forceinline__ void store_eight(const cuda_float8_finish &f, const float (&x)[LANE_COLUMNS],
                                            float unit, char *to)
{
    if constexpr (sizeof(Y) == 1) {
        const bool is_e5m2 = f.dtype == GRT_DTYPE_FLOAT8E5M2;
        uint32_t word[2];
#pragma unroll
        for (int k = 0; k < 2; k++)
            word[k] = cuda_float8_pair(x[4 * k] * unit, x[4 * k + 1] * unit, is_e5m2) |
                      cuda_float8_pair(x[4 * k + 2] * unit, x[4 * k + 3] * unit, is_e5m2) << 16;
        *(uint2 *)to = make_uint2(word[0], word[1]);
    } else {
        uint32_t word[4];
        const uint4 before = f.residual ? *(const uint4 *)to : make_uint4(0, 0, 0, 0);
        const uint32_t residual[4] = {before.x, before.y, before.z, before.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const Y *pair = (const Y *)&residual[k];
            word[k] =
                tensor_core<Y>::pair(x[2 * k] + cuda_widen(pair[0]), x[2 * k + 1] + cuda_widen(pair[1]));
        }
        *(uint4 *)to = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

template <class F>
__device__ __forceinline__ void fill_columns(const cuda_float8_finish &f, float8_room<F> &room, int group,
                                             int first)
{
    const int thread = threadIdx.x % 128;
    const int64_t j = min(first + thread, (int)f.columns - 1);
    if (thread >= F::COLUMNS)
        return;
    room.columns.scale[group][thread] = *f.x_scale * f.w_scale[f.w_scale_each ? j : 0];
    room.columns.bias[group][thread] = f.bias ? f.bias[j] : 0.0f;
}

/* 64 rows of sums. Four tiles of 8 columns are 32 in the order of the map of weights. */
template <class F, class Y, bool GELU>
__device__ __forceinline__ void finish_half(const cuda_float8_finish &f, const float *scale,
                                            const float *bias, float (&sum)[F::COLUMNS / 8][4], float unit,
                                            char *out)
{
    const int lane = threadIdx.x % 32, eight = (lane & 3) * LANE_COLUMNS;
#pragma unroll
    for (int q = 0; q < F::COLUMNS / LANES_COLUMNS; q++) {
        const int first = q * LANES_COLUMNS + eight, column = first * F::SIZE, panel = column / F::LINE;
        float factor[LANE_COLUMNS], shift[LANE_COLUMNS];
#pragma unroll
        for (int k = 0; k < LANE_COLUMNS; k += 4) {
            *(float4 *)(factor + k) = *(const float4 *)(scale + first + k);
            *(float4 *)(shift + k) = *(const float4 *)(bias + first + k);
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            float x[LANE_COLUMNS];
#pragma unroll
            for (int i = 0; i < LANE_COLUMNS; i++) {
                x[i] = fmaf(sum[q * 4 + i / 2][2 * k + i % 2], factor[i], shift[i]);
                if constexpr (GELU)
                    x[i] = cuda_qgelu(x[i]);
                else if (f.act.kind == GRT_ACT_RELU)
                    x[i] = x[i] < 0 ? 0.0f : x[i];
            }
            const int row = threadIdx.x % 128 / 32 * TILE + lane / 4 + 8 * k,
                      at = row * F::LINE + column % F::LINE;
            store_eight<Y>(f, x, unit, out + panel * F::PANEL + (at ^ (at >> 7 & F::SWIZZLE) << 4));
        }
    }
}

template <class F, class Y, bool GELU>
__device__ __forceinline__ void take_turns(const cuda_float8_finish &f, const float8_work &work,
                                           const turn_maps &maps, float8_room<F> &room, int group)
{
    const bool first = threadIdx.x % 128 == 0;
    const float unit = f.y_scale ? 1.0f / *f.y_scale : 1.0f;
    ring place = {0, 0};
    uint32_t phase = 0, order = 0;
    int turn = 0;
    bool is_begin = group == 0;
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x, turn ^= 1) {
        if (turn != group) {
            for (int k = 0; k < work.stages; k++)
                place.next(F::STAGES);
            continue;
        }
        const turn_tile<F> t(work, tile);
        float sum[2][F::COLUMNS / 8][4];
        /* A barrier tells a phase from the next one only: nobody waits for stages that lie a whole ring
         * ahead. */
        if (!is_begin) {
            barrier_wait(&room.summed[group ^ 1], order);
            order ^= 1;
        }
        is_begin = false;
        fill_columns<F>(f, room, group, t.column);
        sum_stages<F, float8_panels, PANEL_ROW / 32>(work.stages, place, room, &room.summed[group], sum);
        group_sync(group);
        if (f.residual)
            barrier_wait(&room.residual_full[group], phase);
        phase ^= 1;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            char *out = room.out[group] + half * F::PANELS * F::PANEL;
            finish_half<F, Y, GELU>(f, room.columns.scale[group], room.columns.bias[group], sum[half], unit,
                                    out);
            publish_shared();
            group_sync(group);
            if (first)
                store_half<F>(maps, out, t, half);
        }
        if (first) {
            bulk_store_wait_read();
            barrier_arrive(&room.out_empty[group]);
        }
    }
}

template <class F, class Y, bool GELU>
__global__ void __launch_bounds__(F::THREADS, 1)
    float8_in_turns(const __grid_constant__ cuda_float8_finish f, const __grid_constant__ float8_work work,
                    const __grid_constant__ turn_maps maps)
{
    extern __shared__ char raw[];
    float8_room<F> &room = turn_room_in<float8_room<F>>(raw);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    begin_turns<F>(room);
    if (warp < TURNS * 4) {
        warpgroup_take_registers<232>();
        take_turns<F, Y, GELU>(f, work, maps, room, warp >> 2);
    } else {
        warpgroup_leave_registers<40>();
        if (threadIdx.x == TURNS * 128)
            fetch_operands<F>(work, maps, room);
        else if (threadIdx.x == TURNS * 128 + 32 && f.residual)
            fetch_residuals<F>(work, maps, room);
    }
}

/* ---- launching ---- */

template <class F> grt_status map_matrices(const cuda_float8_bulk *b, turn_maps *maps)
{
    const cuda_float8_finish *f = &b->finish;
    const cuda_matrix_view x = {b->x, 1, f->rows, b->k, b->k},
                           y = {f->y, F::SIZE, f->rows, f->columns, f->columns * F::SIZE},
                           residual = {f->residual, F::SIZE, f->rows, f->columns, f->columns * F::SIZE};
    CUDA_TRY(cuda_tensor_map_matrix(b->encode, &x, TURN_ROWS, PANEL_ROW, &maps->x));
    CUDA_TRY(cuda_tensor_map_filters(b->encode, b->w, f->columns, b->k, F::COLUMNS, &maps->w));
    CUDA_TRY(cuda_tensor_map_matrix(b->encode, &y, TURN_HALF, F::LINE, &maps->y));
    if (f->residual)
        CUDA_TRY(cuda_tensor_map_matrix(b->encode, &residual, TURN_HALF, F::LINE, &maps->residual));
    return GRT_OK;
}

template <class F> int64_t float8_bulk_tiles(const cuda_float8_bulk *b)
{
    return tiles_of_turns<F>(b->finish.rows, b->finish.columns);
}

int64_t float8_bulk_stages(const cuda_float8_bulk *b)
{
    return (b->k + PANEL_ROW - 1) / PANEL_ROW;
}

template <class F, class Y, bool GELU> grt_status launch_bulk(const cuda_float8_bulk *b, cudaStream_t stream)
{
    const cuda_float8_finish *f = &b->finish;
    const size_t bytes = turn_room_bytes<float8_room<F>>();
    turn_maps maps = {};
    float8_work work = {};
    work.columns = (int)((f->columns + F::COLUMNS - 1) / F::COLUMNS);
    work.tiles = (int)float8_bulk_tiles<F>(b);
    work.stages = (int)float8_bulk_stages(b);
    GRT_TRY(map_matrices<F>(b, &maps));
    const int blocks = work.tiles < b->multiprocessors ? work.tiles : b->multiprocessors;
    const auto kernel = float8_in_turns<F, Y, GELU>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<blocks, F::THREADS, bytes, stream>>>(*f, work, maps);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <int COLUMNS> grt_status launch_columns(const cuda_float8_bulk *b, cudaStream_t stream)
{
    if (b->finish.dtype == GRT_DTYPE_FLOAT16)
        return launch_bulk<turns<COLUMNS, 2>, __half, false>(b, stream);
    if (b->finish.dtype == GRT_DTYPE_BFLOAT16)
        return launch_bulk<turns<COLUMNS, 2>, __nv_bfloat16, false>(b, stream);
    if (b->finish.act.kind == GRT_ACT_GELU_ERF)
        return launch_bulk<turns<COLUMNS, 1>, uint8_t, true>(b, stream);
    return launch_bulk<turns<COLUMNS, 1>, uint8_t, false>(b, stream);
}

template <class F> double float8_bulk_cost(const cuda_float8_bulk *b)
{
    return cost_of_turns<F>(float8_bulk_tiles<F>(b), b->multiprocessors, float8_bulk_stages(b), 1.0,
                            b->finish.act.kind != GRT_ACT_NONE);
}

bool has_activation(const cuda_float8_finish *f)
{
    return f->act.kind == GRT_ACT_NONE || f->act.kind == GRT_ACT_RELU ||
           (f->act.kind == GRT_ACT_GELU_ERF && f->dtype != GRT_DTYPE_FLOAT16 &&
            f->dtype != GRT_DTYPE_BFLOAT16);
}

} // namespace

bool cuda_float8_bulk_fits(const cuda_float8_bulk *b)
{
    const cuda_float8_finish *f = &b->finish;
    return b->encode && float8_bulk_tiles<turns<64, 1>>(b) < INT32_MAX && f->rows < INT32_MAX / 2 &&
           f->columns % LANES_COLUMNS == 0 && f->columns < INT32_MAX / 2 && f->dtype != GRT_DTYPE_FLOAT &&
           has_activation(f);
}

grt_status cuda_float8_bulk_enqueue(const cuda_float8_bulk *b, cudaStream_t stream)
{
    return float8_bulk_cost<turns<64, 1>>(b) < float8_bulk_cost<turns<128, 1>>(b)
               ? launch_columns<64>(b, stream)
               : launch_columns<128>(b, stream);
}

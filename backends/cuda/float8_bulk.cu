/* SPDX-License-Identifier: Apache-2.0 */
/* See float8_bulk.h. The form is that of qgemm_bulk.cu: a block stays for several tiles of 128 rows; one warp
 * has operands fetched, a second one residuals; two warpgroups take turns, so that results of one leave while
 * products of the other run. */
#include "backends/cuda/float8_bulk.h"

#include "backends/cuda/bulk_rows.cuh"
#include "backends/cuda/float8.cuh"
#include "backends/cuda/qgemm_store.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace
{

enum { ROWS = 128, HALF = 64, TURNS = 2, LANE_COLUMNS = 8, LANES_COLUMNS = 32 };

template <int COLUMNS_, int Y_BYTES> struct form {
    enum {
        COLUMNS = COLUMNS_,
        SIZE = Y_BYTES,
        X_STAGE = ROWS * PANEL_ROW,
        W_STAGE = COLUMNS * PANEL_ROW,
        STAGES = COLUMNS == 64  ? 7
                 : Y_BYTES == 1 ? 5
                                : 4,
        LINE = COLUMNS * Y_BYTES < PANEL_ROW ? COLUMNS * Y_BYTES : PANEL_ROW, /* of a panel of results */
        SWIZZLE = LINE / 16 - 1,
        PANELS = COLUMNS * Y_BYTES / LINE,
        PANEL = HALF * LINE,
        OUT = 2 * PANELS * PANEL,
        THREADS = 128 * (TURNS + 1)
    };
};

template <class F> struct bulk_room {
    char x[F::STAGES][F::X_STAGE], w[F::STAGES][F::W_STAGE], out[TURNS][F::OUT];
    alignas(16) float scale[TURNS][F::COLUMNS], bias[TURNS][F::COLUMNS];
    uint64_t full[F::STAGES], empty[F::STAGES], residual_full[TURNS], out_empty[TURNS], summed[TURNS];
};

struct bulk_maps {
    CUtensorMap x, w, residual, y;
};

struct bulk_work {
    int columns, tiles, stages; /* columns: of tiles */
};

template <class F> struct bulk_tile {
    int row, column;
    __device__ __forceinline__ bulk_tile(const bulk_work &work, int tile)
        : row(tile / work.columns * ROWS), column(tile % work.columns * F::COLUMNS)
    {
    }
};

/* ---- what is fetched ---- */

template <class F>
__device__ __forceinline__ void fetch_operands(const bulk_work &work, const bulk_maps &maps,
                                               bulk_room<F> &room)
{
    ring place = {0, 0};
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const bulk_tile<F> t(work, tile);
        for (int c = 0; c < work.stages; c++, place.next(F::STAGES)) {
            barrier_wait(&room.empty[place.at], place.phase ^ 1);
            uint64_t *full = &room.full[place.at];
            barrier_expect(full, F::X_STAGE + F::W_STAGE);
            bulk_fetch_filters(room.w[place.at], &maps.w, c * PANEL_ROW, t.column / LANES_COLUMNS, full);
            bulk_fetch_rows(room.x[place.at], &maps.x, c * PANEL_ROW, t.row, full);
        }
    }
}

template <class F>
__device__ __forceinline__ void fetch_residuals(const bulk_work &work, const bulk_maps &maps,
                                                bulk_room<F> &room)
{
    int turn = 0;
    uint32_t phase = 1;
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const bulk_tile<F> t(work, tile);
        barrier_wait(&room.out_empty[turn], phase);
        barrier_expect(&room.residual_full[turn], F::OUT);
        for (int half = 0; half < 2; half++)
            for (int p = 0; p < F::PANELS; p++)
                bulk_fetch_rows(room.out[turn] + (half * F::PANELS + p) * F::PANEL, &maps.residual,
                                t.column + p * (F::LINE / F::SIZE), t.row + half * HALF,
                                &room.residual_full[turn]);
        turn ^= 1;
        phase ^= turn == 0;
    }
}

/* ---- sums ---- */

#define FLOAT8_C4(c, i)  "+f"((c)[i][0]), "+f"((c)[i][1]), "+f"((c)[i][2]), "+f"((c)[i][3])
#define FLOAT8_C16(c, i) FLOAT8_C4(c, i), FLOAT8_C4(c, (i) + 1), FLOAT8_C4(c, (i) + 2), FLOAT8_C4(c, (i) + 3)

/* c (+)= 64 x 32 by 32 x 64 or 128. */
__device__ __forceinline__ void multiply(float (&c)[8][4], uint64_t a, uint64_t b, int adds)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
                 "%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1;}"
                 : FLOAT8_C16(c, 0), FLOAT8_C16(c, 4)
                 : "l"(a), "l"(b), "r"(adds));
}
__device__ __forceinline__ void multiply(float (&c)[16][4], uint64_t a, uint64_t b, int adds)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " WARPGROUP_R128
                 ", %64, %65, p, 1, 1;}"
                 : FLOAT8_C16(c, 0), FLOAT8_C16(c, 4), FLOAT8_C16(c, 8), FLOAT8_C16(c, 12)
                 : "l"(a), "l"(b), "r"(adds));
}

template <class F>
__device__ __forceinline__ void sum_stages(int stages, ring &place, bulk_room<F> &room, uint64_t *summed,
                                           float (&sum)[2][F::COLUMNS / 8][4])
{
    const auto release = [&](int stage) {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(&room.empty[stage]);
    };
    int before = 0;
    for (int k = 0; k < stages; k++) {
        barrier_wait(&room.full[place.at], place.phase);
        const uint32_t x = shared_address(room.x[place.at]), w = shared_address(room.w[place.at]);
        warpgroup_begin();
#pragma unroll
        for (int p = 0; p < PANEL_ROW / 32; p++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                multiply(sum[half], panel_descriptor(x + half * HALF * PANEL_ROW + p * 32),
                         panel_descriptor(w + p * 32), k > 0 || p > 0);
        warpgroup_commit();
        warpgroup_wait<1>();
        if (k > 0)
            release(before);
        before = place.at;
        place.next(F::STAGES);
    }
    if (threadIdx.x % 128 == 0)
        barrier_arrive(summed);
    warpgroup_wait<0>();
    release(before);
    warpgroup_hold<F::COLUMNS>(sum[0]);
    warpgroup_hold<F::COLUMNS>(sum[1]);
}

/* ---- results ---- */

/* Of a warpgroup alone. */
__device__ __forceinline__ void group_sync(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

template <class F>
__device__ __forceinline__ void fill_columns(const cuda_float8_finish &f, bulk_room<F> &room, int group,
                                             int first)
{
    const int thread = threadIdx.x % 128;
    const int64_t j = min(first + thread, (int)f.columns - 1);
    if (thread >= F::COLUMNS)
        return;
    room.scale[group][thread] = *f.x_scale * f.w_scale[f.w_scale_each ? j : 0];
    room.bias[group][thread] = f.bias ? f.bias[j] : 0.0f;
}

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
__device__ __forceinline__ void take_turns(const cuda_float8_finish &f, const bulk_work &work,
                                           const bulk_maps &maps, bulk_room<F> &room, int group)
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
        const bulk_tile<F> t(work, tile);
        float sum[2][F::COLUMNS / 8][4];
        /* A barrier tells a phase from the next one only: nobody waits for stages that lie a whole ring
         * ahead. */
        if (!is_begin) {
            barrier_wait(&room.summed[group ^ 1], order);
            order ^= 1;
        }
        is_begin = false;
        fill_columns<F>(f, room, group, t.column);
        sum_stages<F>(work.stages, place, room, &room.summed[group], sum);
        group_sync(group);
        if (f.residual)
            barrier_wait(&room.residual_full[group], phase);
        phase ^= 1;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            char *out = room.out[group] + half * F::PANELS * F::PANEL;
            finish_half<F, Y, GELU>(f, room.scale[group], room.bias[group], sum[half], unit, out);
            asm volatile("fence.proxy.async.shared::cta;" ::
                             : "memory"); /* the engine reads what was written */
            group_sync(group);
            if (!first)
                continue;
            for (int p = 0; p < F::PANELS; p++)
                bulk_store_rows(&maps.y, out + p * F::PANEL, t.column + p * (F::LINE / F::SIZE),
                                t.row + half * HALF);
            bulk_store_commit();
        }
        if (first) {
            bulk_store_wait_read();
            barrier_arrive(&room.out_empty[group]);
        }
    }
}

template <class F, class Y, bool GELU>
__global__ void __launch_bounds__(F::THREADS, 1)
    float8_in_turns(const __grid_constant__ cuda_float8_finish f, const __grid_constant__ bulk_work work,
                    const __grid_constant__ bulk_maps maps)
{
    extern __shared__ char raw[];
    bulk_room<F> &room =
        *(bulk_room<F> *)(((uintptr_t)raw + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], 4);
        }
        for (int i = 0; i < TURNS; i++) {
            barrier_init(&room.residual_full[i], 1);
            barrier_init(&room.out_empty[i], 1);
            barrier_init(&room.summed[i], 1);
        }
        barrier_init_done();
    }
    __syncthreads();
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

CUresult map_rows(const cuda_float8_bulk *b, const void *data, int size, int64_t columns, int line, int rows,
                  CUtensorMap *out)
{
    const cuuint64_t dims[] = {(cuuint64_t)columns, (cuuint64_t)b->finish.rows},
                     strides[] = {(cuuint64_t)(columns * size)};
    const cuuint32_t box[] = {(cuuint32_t)(line / size), (cuuint32_t)rows}, steps[] = {1, 1};
    return b->encode(out, size == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
                     (void *)(uintptr_t)data, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                     line == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Rows of weights in such an order that a lane's sums are of eight columns side by side: a row's lowest bit,
 * the next two and the two above are dims. */
CUresult map_weights(const cuda_float8_bulk *b, int columns, CUtensorMap *out)
{
    const cuuint64_t k = (cuuint64_t)b->k,
                     dims[] = {k, 2, 4, 4, (cuuint64_t)(b->finish.columns / LANES_COLUMNS)},
                     strides[] = {k, 8 * k, 2 * k, 32 * k};
    const cuuint32_t box[] = {PANEL_ROW, 2, 4, 4, (cuuint32_t)columns / LANES_COLUMNS},
                     steps[] = {1, 1, 1, 1, 1};
    return b->encode(out, CU_TENSOR_MAP_DATA_TYPE_UINT8, 5, (void *)(uintptr_t)b->w, dims, strides, box,
                     steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

template <class F> int64_t tiles_of_bulk(const cuda_float8_bulk *b)
{
    return (b->finish.rows + ROWS - 1) / ROWS * ((b->finish.columns + F::COLUMNS - 1) / F::COLUMNS);
}

template <class F, class Y, bool GELU> grt_status launch_bulk(const cuda_float8_bulk *b, cudaStream_t stream)
{
    const cuda_float8_finish *f = &b->finish;
    const size_t bytes = sizeof(bulk_room<F>) + PANEL_ALIGNMENT;
    bulk_maps maps = {};
    bulk_work work = {};
    work.columns = (int)((f->columns + F::COLUMNS - 1) / F::COLUMNS);
    work.tiles = (int)tiles_of_bulk<F>(b);
    work.stages = (int)((b->k + PANEL_ROW - 1) / PANEL_ROW);
    CUresult result = map_rows(b, b->x, 1, b->k, PANEL_ROW, ROWS, &maps.x);
    if (result == CUDA_SUCCESS)
        result = map_weights(b, F::COLUMNS, &maps.w);
    if (result == CUDA_SUCCESS)
        result = map_rows(b, f->y, F::SIZE, f->columns, F::LINE, HALF, &maps.y);
    if (result == CUDA_SUCCESS && f->residual)
        result = map_rows(b, f->residual, F::SIZE, f->columns, F::LINE, HALF, &maps.residual);
    if (result != CUDA_SUCCESS)
        return grt_fail(GRT_STATUS_INTERNAL, "the driver refuses a map of a tensor (error %d)", (int)result);
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
        return launch_bulk<form<COLUMNS, 2>, __half, false>(b, stream);
    if (b->finish.dtype == GRT_DTYPE_BFLOAT16)
        return launch_bulk<form<COLUMNS, 2>, __nv_bfloat16, false>(b, stream);
    if (b->finish.act.kind == GRT_ACT_GELU_ERF)
        return launch_bulk<form<COLUMNS, 1>, uint8_t, true>(b, stream);
    return launch_bulk<form<COLUMNS, 1>, uint8_t, false>(b, stream);
}

/* Clocks that the busiest multiprocessor takes, roughly: stages are summed at the tensor cores' rate or
 * fetched at L2's, and results leave meanwhile. */
template <class F> double cost_of_bulk(const cuda_float8_bulk *b)
{
    const int64_t each = (tiles_of_bulk<F>(b) + b->multiprocessors - 1) / b->multiprocessors,
                  stages = (b->k + PANEL_ROW - 1) / PANEL_ROW;
    const double sums = 4.0 * F::COLUMNS, fetches = (F::X_STAGE + F::W_STAGE) / 48.0,
                 loop = (double)stages * (sums > fetches ? sums : fetches),
                 leave = F::COLUMNS * (b->finish.act.kind == GRT_ACT_NONE ? 16.0 : 28.0),
                 in_turns = (double)((each + 1) / 2) * (loop + leave), summed = (double)each * loop + leave;
    return in_turns > summed ? in_turns : summed;
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
    return b->encode && tiles_of_bulk<form<64, 1>>(b) < INT32_MAX && f->rows < INT32_MAX / 2 &&
           f->columns % LANES_COLUMNS == 0 && f->columns < INT32_MAX / 2 && f->dtype != GRT_DTYPE_FLOAT &&
           has_activation(f);
}

grt_status cuda_float8_bulk_enqueue(const cuda_float8_bulk *b, cudaStream_t stream)
{
    return cost_of_bulk<form<64, 1>>(b) < cost_of_bulk<form<128, 1>>(b) ? launch_columns<64>(b, stream)
                                                                        : launch_columns<128>(b, stream);
}

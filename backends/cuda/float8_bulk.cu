/* SPDX-License-Identifier: Apache-2.0 */
/* See float8_bulk.h and bulk_groups.cuh. */
#include "backends/cuda/float8_bulk.h"

#include "backends/cuda/bulk_groups.cuh"
#include "backends/cuda/float8.cuh"
#include "backends/cuda/qgemm_store.cuh"
#include "backends/cuda/warpgroup_bytes.cuh"

namespace
{

template <int N> struct float8_columns {
    float scale[N], bias[N];

    __device__ __forceinline__ void fill(const cuda_float8_finish &f, int first, int at)
    {
        const int64_t j = min(first + at, (int)f.columns - 1);
        scale[at] = *f.x_scale * f.w_scale[f.w_scale_each ? j : 0];
        bias[at] = f.bias ? f.bias[j] : 0.0f;
    }
};

template <class F> using float8_room = group_room<F, float8_columns<F::GROUP_COLUMNS>>;

struct float8_work : group_work {
    int stages; /* of a tile */
};

template <class F>
__device__ __forceinline__ void fetch_operands(const float8_work &work, const group_maps &maps,
                                               float8_room<F> &room)
{
    const group_tile<F> first(work, blockIdx.x);
    /* Weights come while the kernel in front of this one still writes x. */
    int ahead = min(work.stages, (int)F::STAGES);
    for (int k = 0; k < ahead; k++)
        fetch_filters<F>(maps, room, k, k * PANEL_ROW, first.column);
    overlap_wait();
    ring place = {0, 0};
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const group_tile<F> t(work, tile);
        for (int c = 0; c < work.stages; c++, place.next(F::STAGES)) {
            if (--ahead < 0) {
                barrier_wait(&room.empty[place.at], place.phase ^ 1);
                fetch_filters<F>(maps, room, place.at, c * PANEL_ROW, t.column);
            }
            bulk_fetch_rows(room.x[place.at], &maps.x, c * PANEL_ROW, t.row, &room.full[place.at]);
        }
    }
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

/* The sums of a group become results. */
template <class F, class Y, bool GELU>
__device__ __forceinline__ void finish_group(const cuda_float8_finish &f,
                                             const float8_columns<F::GROUP_COLUMNS> &columns,
                                             float (&sum)[F::GROUP_COLUMNS / 8][4], float unit, char *out)
{
    const int eight = (threadIdx.x & 3) * LANE_COLUMNS;
#pragma unroll
    for (int q = 0; q < F::GROUP_COLUMNS / LANES_COLUMNS; q++) {
        const int first = q * LANES_COLUMNS + eight;
        float factor[LANE_COLUMNS], shift[LANE_COLUMNS];
#pragma unroll
        for (int k = 0; k < LANE_COLUMNS; k += 4) {
            *(float4 *)(factor + k) = *(const float4 *)(columns.scale + first + k);
            *(float4 *)(shift + k) = *(const float4 *)(columns.bias + first + k);
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
            store_eight<Y>(f, x, unit, result_place<F>(out, q, k));
        }
    }
}

template <class F, class Y, bool GELU>
__device__ __forceinline__ void sum_and_finish(const cuda_float8_finish &f, const float8_work &work,
                                               float8_room<F> &room, int group)
{
    using product = bytes_product<float8_e4m3, F::GROUP_COLUMNS>;
    const float unit = f.y_scale ? 1.0f / *f.y_scale : 1.0f;
    group_order<F> order(group);
    ring place = {0, 0};
    for_tiles_of_group<F>(work, group, work.stages, place, [&](const ring &out) {
        float sum[F::GROUP_COLUMNS / 8][4];
        sum_group<F, product, whole_lines>(work.stages, place, room, order, sum);
        barrier_wait(&room.ready[group][out.at], out.phase);
        finish_group<F, Y, GELU>(f, room.columns[group][out.at], sum, unit, room.out[group][out.at]);
        results_written(&room.written[group][out.at]);
    });
}

template <class F, class Y, bool GELU>
__global__ void __launch_bounds__(F::THREADS, 1)
    float8_groups(const __grid_constant__ cuda_float8_finish f, const __grid_constant__ float8_work work,
                  const __grid_constant__ group_maps maps, bool is_constant)
{
    extern __shared__ char raw[];
    float8_room<F> &room = group_room_in<float8_room<F>>(raw);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), mover = warp - F::GROUPS * 4 - 1;
    overlap_let_next_begin();
    if (!is_constant)
        overlap_wait();
    begin_groups<F>(maps, room);
    if (warp < F::GROUPS * 4) {
        warpgroup_take_registers<F::REGISTERS>();
        sum_and_finish<F, Y, GELU>(f, work, room, warp >> 2);
    } else {
        warpgroup_leave_registers<F::MOVER_REGISTERS>();
        if (threadIdx.x == F::GROUPS * 128)
            fetch_operands<F>(work, maps, room);
        if (mover >= 0 && f.residual)
            overlap_wait();
        if (mover >= 0)
            move_epilogues<F>(work, maps, room, mover, f.residual != nullptr,
                              [&](float8_columns<F::GROUP_COLUMNS> &columns, int first, int lane) {
                                  for (int j = lane; j < F::GROUP_COLUMNS; j += 32)
                                      columns.fill(f, first, j);
                              });
    }
}

/* ---- launching ---- */

template <class F> grt_status map_matrices(const cuda_float8_bulk *b, group_maps *maps)
{
    const cuda_float8_finish *f = &b->finish;
    const cuda_matrix_view x = {b->x, 1, f->rows, b->k, b->k},
                           y = {f->y, F::SIZE, f->rows, f->columns, f->columns * F::SIZE},
                           residual = {f->residual, F::SIZE, f->rows, f->columns, f->columns * F::SIZE};
    CUDA_TRY(cuda_tensor_map_matrix(b->encode, &x, F::ROWS, PANEL_ROW, &maps->x));
    CUDA_TRY(cuda_tensor_map_filters(b->encode, b->w, f->columns, b->k, F::COLUMNS, &maps->w));
    CUDA_TRY(cuda_tensor_map_matrix(b->encode, &y, GROUP_ROWS, F::LINE, &maps->y));
    if (f->residual)
        CUDA_TRY(cuda_tensor_map_matrix(b->encode, &residual, GROUP_ROWS, F::LINE, &maps->residual));
    return GRT_OK;
}

template <class F> int64_t float8_bulk_tiles(const cuda_float8_bulk *b)
{
    return tiles_of_groups<F>(b->finish.rows, b->finish.columns);
}

int64_t float8_bulk_stages(const cuda_float8_bulk *b)
{
    return (b->k + PANEL_ROW - 1) / PANEL_ROW;
}

template <class F> double float8_bulk_cost(const cuda_float8_bulk *b)
{
    return cost_of_groups<F>(float8_bulk_tiles<F>(b), b->multiprocessors, float8_bulk_stages(b), 1.0,
                             b->finish.act.kind != GRT_ACT_NONE);
}

template <class F, class Y, bool GELU> grt_status launch_bulk(const cuda_float8_bulk *b, cudaStream_t stream)
{
    const cuda_float8_finish *f = &b->finish;
    const size_t bytes = group_room_bytes<float8_room<F>>();
    static_assert(group_room_bytes<float8_room<F>>() <= 227 << 10, "");
    group_maps maps = {};
    float8_work work = {};
    work.columns = (int)((f->columns + F::COLUMNS - 1) / F::COLUMNS);
    work.tiles = (int)float8_bulk_tiles<F>(b);
    work.stages = (int)float8_bulk_stages(b);
    GRT_TRY(map_matrices<F>(b, &maps));
    const int blocks = work.tiles < b->multiprocessors ? work.tiles : b->multiprocessors;
    const auto kernel = float8_groups<F, Y, GELU>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    CUDA_TRY(overlap_launch(true, kernel, blocks, F::THREADS, bytes, stream, *f, work, maps, b->is_constant));
    return GRT_OK;
}

/* As for integers. */
template <class Y, bool GELU> grt_status launch_best(const cuda_float8_bulk *b, cudaStream_t stream)
{
    enum { BYTES = sizeof(Y) };
    using square = square_groups<BYTES>;
    using narrow = narrow_groups<BYTES>;
    using large = large_groups<BYTES>;
    const double of_square = float8_bulk_cost<square>(b), of_narrow = float8_bulk_cost<narrow>(b),
                 of_large = float8_bulk_cost<large>(b);
    if constexpr (BYTES == 2) {
        const double of_wide = float8_bulk_cost<wide_groups<BYTES>>(b);
        if (of_wide < of_large && of_wide < of_square && of_wide < of_narrow)
            return launch_bulk<wide_groups<BYTES>, Y, GELU>(b, stream);
    }
    if (of_large < of_square && of_large < of_narrow)
        return launch_bulk<large, Y, GELU>(b, stream);
    if (of_narrow < of_square)
        return launch_bulk<narrow, Y, GELU>(b, stream);
    return launch_bulk<square, Y, GELU>(b, stream);
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
    return b->encode && float8_bulk_tiles<narrow_groups<1>>(b) < INT32_MAX && f->rows < INT32_MAX / 2 &&
           f->columns % LANES_COLUMNS == 0 && f->columns < INT32_MAX / 2 && f->dtype != GRT_DTYPE_FLOAT &&
           has_activation(f);
}

grt_status cuda_float8_bulk_enqueue(const cuda_float8_bulk *b, cudaStream_t stream)
{
    if (b->finish.dtype == GRT_DTYPE_FLOAT16)
        return launch_best<__half, false>(b, stream);
    if (b->finish.dtype == GRT_DTYPE_BFLOAT16)
        return launch_best<__nv_bfloat16, false>(b, stream);
    if (b->finish.act.kind == GRT_ACT_GELU_ERF)
        return launch_best<uint8_t, true>(b, stream);
    return launch_best<uint8_t, false>(b, stream);
}

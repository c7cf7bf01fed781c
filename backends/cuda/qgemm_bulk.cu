/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_bulk.h and bulk_turns.cuh: rows are pixels, columns are filters. */
#include "backends/cuda/qgemm_bulk.h"

#include "backends/cuda/bulk_turns.cuh"
#include "backends/cuda/qgemm_maps.h"
#include "backends/cuda/qgemm_panels.cuh"

namespace
{

enum { LONG_TURNS = 20000 /* clocks */ };

template <class F> using qgemm_room = turn_room<F, shared_columns<F::COLUMNS>[TURNS]>;

struct qgemm_work : turn_work {
    int per_tap;   /* stages */
    bool in_place; /* rows of x are pixels of y */
    divider line, image;
};

template <class F>
__device__ __forceinline__ void fetch_operands(const cuda_qgemm &g, const qgemm_work &work,
                                               const turn_maps &maps, qgemm_room<F> &room)
{
    const int stages = g.kernel[0] * g.kernel[1] * work.per_tap;
    const turn_tile<F> first(work, blockIdx.x);
    /* Weights come while the kernel in front of this one still writes x. */
    int ahead = min(stages, (int)F::STAGES);
    for (int k = 0; k < ahead; k++) {
        barrier_expect(&room.full[k], F::X_STAGE + F::W_STAGE);
        bulk_fetch_filters(room.w[k], &maps.w,
                           k / work.per_tap * g.chunks * CUDA_QCHUNK + k % work.per_tap * PANEL_ROW,
                           first.column / LANES_COLUMNS, &room.full[k]);
    }
    overlap_wait();
    ring place = {0, 0};
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const turn_tile<F> t(work, tile);
        const int line = work.line(t.row), image = work.image(line),
                  row = (line - image * g.out[0]) * g.stride[0] - g.begin[0],
                  column = (t.row - line * g.out[1]) * g.stride[1] - g.begin[1];
        int at = 0;
        for (int down = 0; down < g.kernel[0]; down++)
            for (int right = 0; right < g.kernel[1]; right++, at += g.chunks * CUDA_QCHUNK)
                for (int c = 0; c < work.per_tap; c++, place.next(F::STAGES)) {
                    uint64_t *full = &room.full[place.at];
                    if (--ahead < 0) {
                        barrier_wait(&room.empty[place.at], place.phase ^ 1);
                        barrier_expect(full, F::X_STAGE + F::W_STAGE);
                        bulk_fetch_filters(room.w[place.at], &maps.w, at + c * PANEL_ROW, t.column / 32,
                                           full);
                    }
                    if (work.in_place)
                        bulk_fetch_rows(room.x[place.at], &maps.x, c * PANEL_ROW, t.row, full);
                    else
                        bulk_fetch_windows(room.x[place.at], &maps.x, c * PANEL_ROW, column, row, image,
                                           right * g.dilation[1], down * g.dilation[0], full);
                }
    }
}

template <bool SIGNED> struct qgemm_panels {
    template <int N>
    static __device__ __forceinline__ void multiply(int32_t (&c)[N][4], uint64_t a, uint64_t b, int adds)
    {
        multiply_panels<SIGNED>(c, a, b, adds);
    }
    template <int N> static __device__ __forceinline__ void hold(int32_t (&c)[N][4])
    {
        hold_panels(c);
    }
};

/* 64 rows of sums become results where their residuals lie. */
template <class F, class Y, bool GELU>
__device__ __forceinline__ void finish_half(const cuda_qgemm &g, const cuda_qhead &h,
                                            const shared_columns<F::COLUMNS> &columns,
                                            int32_t (&sum)[F::COLUMNS / 8][4], char *out)
{
    const int lane = threadIdx.x % 32, eight = (lane & 3) * 8;
    const float unit = 1.0f / h.y_unit;
#pragma unroll
    for (int q = 0; q < F::COLUMNS / quarter::FILTERS; q++) {
        lane_columns each;
        float x[4][4];
        columns.read(q * quarter::FILTERS, &each);
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                x[t][i] = cuda_qscaled(sum[q * 4 + t][i] - each.offset[t * 2 + (i & 1)],
                                       each.scale[t * 2 + (i & 1)], each.bias[t * 2 + (i & 1)]);
                if constexpr (GELU)
                    x[t][i] = cuda_qgelu(x[t][i]) * unit;
            }
        const int column = (q * quarter::FILTERS + eight) * F::SIZE, panel = column / F::LINE;
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int row = threadIdx.x % 128 / 32 * TILE + lane / 4 + 8 * k,
                      at = row * F::LINE + column % F::LINE;
            char *to = out + panel * F::PANEL + (at ^ (at >> 7 & F::SWIZZLE) << 4);
            uint4 residual = make_uint4(0, 0, 0, 0);
            if (g.residual != GRT_DTYPE_NONE) {
                if constexpr (F::SIZE == 1) {
                    const uint2 word = *(const uint2 *)to;
                    residual.x = word.x;
                    residual.y = word.y;
                } else {
                    residual = *(const uint4 *)to;
                }
            }
            if constexpr (F::SIZE == 1)
                store_bytes<quarter>(g, h, x, k, residual, (uint8_t *)to);
            else
                store_halves<Y, quarter>(g, x, k, residual, (Y *)to);
        }
    }
}

template <class F, class Y, bool SIGNED, bool GELU>
__device__ __forceinline__ void take_turns(const cuda_qgemm &g, const cuda_qfinish &finish,
                                           const qgemm_work &work, const turn_maps &maps, qgemm_room<F> &room,
                                           int group)
{
    const int stages = g.kernel[0] * g.kernel[1] * work.per_tap;
    const bool is_narrow = g.chunks * CUDA_QCHUNK <= PANEL_ROW / 2, first = threadIdx.x % 128 == 0;
    const cuda_qhead h = *finish.head;
    ring place = {0, 0};
    uint32_t phase = 0, order = 0;
    int turn = 0;
    bool is_begin = group == 0;
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x, turn ^= 1) {
        if (turn != group) {
            for (int k = 0; k < stages; k++)
                place.next(F::STAGES);
            continue;
        }
        const turn_tile<F> t(work, tile);
        int32_t sum[2][F::COLUMNS / 8][4];
        /* A barrier tells a phase from the next one only: nobody waits for stages that lie a whole ring
         * ahead. */
        if (!is_begin) {
            barrier_wait(&room.summed[group ^ 1], order);
            order ^= 1;
        }
        is_begin = false;
        room.columns[group].fill(finish, t.column, g.n, threadIdx.x % 128);
        if (is_narrow)
            sum_stages<F, qgemm_panels<SIGNED>, 2>(stages, place, room, &room.summed[group], sum);
        else
            sum_stages<F, qgemm_panels<SIGNED>, 4>(stages, place, room, &room.summed[group], sum);
        group_sync(group);
        if (g.residual != GRT_DTYPE_NONE)
            barrier_wait(&room.residual_full[group], phase);
        phase ^= 1;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            char *out = room.out[group] + half * F::PANELS * F::PANEL;
            finish_half<F, Y, GELU>(g, h, room.columns[group], sum[half], out);
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

template <class F, class Y, bool SIGNED, bool GELU>
__global__ void __launch_bounds__(F::THREADS, 1)
    multiply_in_turns(const __grid_constant__ cuda_qgemm g, const __grid_constant__ cuda_qfinish finish,
                      const __grid_constant__ qgemm_work work, const __grid_constant__ turn_maps maps)
{
    extern __shared__ char raw[];
    qgemm_room<F> &room = turn_room_in<qgemm_room<F>>(raw);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    overlap_let_next_begin();
    if (!g.is_constant)
        overlap_wait();
    begin_turns<F>(room);
    if (warp < TURNS * 4) {
        warpgroup_take_registers<232>();
        take_turns<F, Y, SIGNED, GELU>(g, finish, work, maps, room, warp >> 2);
    } else {
        warpgroup_leave_registers<40>();
        if (threadIdx.x == TURNS * 128) {
            fetch_operands<F>(g, work, maps, room);
        } else if (threadIdx.x == TURNS * 128 + 32 && g.residual != GRT_DTYPE_NONE) {
            overlap_wait();
            fetch_residuals<F>(work, maps, room);
        }
    }
}

/* ---- launching ---- */

int64_t bulk_pixels_of(const cuda_qgemm *g)
{
    return (int64_t)g->images * g->out[0] * g->out[1];
}

template <class F> int64_t qgemm_bulk_tiles(const cuda_qgemm *g)
{
    return tiles_of_turns<F>(bulk_pixels_of(g), g->n);
}

template <class F> double qgemm_bulk_cost(const cuda_qgemm *g)
{
    const int64_t bytes = (int64_t)g->chunks * CUDA_QCHUNK,
                  stages = (int64_t)g->kernel[0] * g->kernel[1] * ((bytes + PANEL_ROW - 1) / PANEL_ROW);
    return cost_of_turns<F>(qgemm_bulk_tiles<F>(g), g->multiprocessors, stages,
                            bytes <= PANEL_ROW / 2 ? 0.5 : 1.0, g->act.kind != GRT_ACT_NONE);
}

template <class F, class Y, bool SIGNED, bool GELU>
grt_status launch_turns(const cuda_qgemm *g, const cuda_qfinish *finish, qgemm_work work,
                        const turn_maps &maps, cudaStream_t stream)
{
    const size_t bytes = turn_room_bytes<qgemm_room<F>>();
    work.columns = (g->n + F::COLUMNS - 1) / F::COLUMNS;
    work.tiles = (int)qgemm_bulk_tiles<F>(g);
    const int blocks = work.tiles < g->multiprocessors ? work.tiles : g->multiprocessors;
    const auto kernel = multiply_in_turns<F, Y, SIGNED, GELU>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    /* Two long kernels, one behind the other, take longer if they overlap. */
    const bool overlaps = g->overlaps && qgemm_bulk_cost<F>(g) < LONG_TURNS;
    CUDA_TRY(overlap_launch(overlaps, kernel, blocks, F::THREADS, bytes, stream, *g, *finish, work, maps));
    return GRT_OK;
}

template <class F, class Y, bool GELU>
grt_status prepare_turns(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                         const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    turn_maps maps = {};
    qgemm_work work = {};
    const view v = view_of(g, x, w, residual, finish, y);
    work.line = v.line;
    work.image = v.image;
    work.in_place = v.in_place;
    work.per_tap = (g->chunks * CUDA_QCHUNK + PANEL_ROW - 1) / PANEL_ROW;
    if (v.in_place)
        CUDA_TRY(
            cuda_qgemm_map_rows(g, x, 1, g->chunks * CUDA_QCHUNK, g->x_pixel, PANEL_ROW, TURN_ROWS, &maps.x));
    else
        CUDA_TRY(cuda_qgemm_map_windows(g, x, TURN_ROWS, &maps.x));
    CUDA_TRY(cuda_qgemm_map_filters(g, w, F::COLUMNS, &maps.w));
    CUDA_TRY(cuda_qgemm_map_rows(g, y, F::SIZE, g->n, g->y_pixel * F::SIZE, F::LINE, TURN_HALF, &maps.y));
    if (residual)
        CUDA_TRY(cuda_qgemm_map_rows(g, residual, F::SIZE, g->n, g->y_pixel * F::SIZE, F::LINE, TURN_HALF,
                                     &maps.residual));
    return g->x_signed ? launch_turns<F, Y, true, GELU>(g, finish, work, maps, stream)
                       : launch_turns<F, Y, false, GELU>(g, finish, work, maps, stream);
}

template <int COLUMNS>
grt_status enqueue_columns(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                           const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    if (g->y == GRT_DTYPE_FLOAT16)
        return prepare_turns<turns<COLUMNS, 2>, __half, false>(g, x, w, residual, finish, y, stream);
    if (g->y == GRT_DTYPE_BFLOAT16)
        return prepare_turns<turns<COLUMNS, 2>, __nv_bfloat16, false>(g, x, w, residual, finish, y, stream);
    if (g->act.kind == GRT_ACT_GELU_ERF)
        return prepare_turns<turns<COLUMNS, 1>, uint8_t, true>(g, x, w, residual, finish, y, stream);
    return prepare_turns<turns<COLUMNS, 1>, uint8_t, false>(g, x, w, residual, finish, y, stream);
}

/* What lies outside of images comes as zeros; the engine's limits of windows. */
bool bulk_windows_fit(const cuda_qgemm *g)
{
    bool padded = false, fit = true;
    for (int i = 0; i < 2; i++) {
        const int last = (g->out[i] - 1) * g->stride[i] - g->begin[i],
                  right = (g->kernel[i] - 1) * g->dilation[i], end = last + 1 - g->in[i];
        padded |= g->begin[i] > 0 || last + right >= g->in[i];
        fit &= g->begin[i] <= 127 && g->begin[i] >= -127 && right <= 255 && end >= -128 && end <= 127 &&
               g->stride[i] <= 8;
    }
    /* Half of each box would be empty. */
    const bool is_narrow = g->kernel[0] * g->kernel[1] > 1 && g->chunks * CUDA_QCHUNK <= PANEL_ROW / 2;
    return fit && !is_narrow && (!padded || g->outside_is_zero);
}

} // namespace

bool cuda_qgemm_bulk_fits(const cuda_qgemm *g, const void *residual, const void *y)
{
    /* Few tiles are better made small. */
    const int64_t tiles = qgemm_bulk_tiles<turns<64, 1>>(g);
    const bool dense = g->y_channel == 1 &&
                       (g->images == 1 || g->y_image == (int64_t)g->out[0] * g->out[1] * g->y_pixel),
               acts = g->act.kind == GRT_ACT_NONE || (g->y_size == 1 && g->act.kind == GRT_ACT_GELU_ERF);
    return tiles >= g->multiprocessors / 2 && tiles < INT32_MAX && g->encode_tiled && g->encode_im2col &&
           !g->sums_rows && g->items == 1 && dense && acts && g->y != GRT_DTYPE_FLOAT && g->n % 32 == 0 &&
           bulk_windows_fit(g) && (uintptr_t)y % 16 == 0 && (uintptr_t)residual % 16 == 0;
}

grt_status cuda_qgemm_bulk_enqueue(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                                   const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    if (qgemm_bulk_cost<turns<64, 1>>(g) < qgemm_bulk_cost<turns<128, 1>>(g))
        return enqueue_columns<64>(g, x, w, residual, finish, y, stream);
    return enqueue_columns<128>(g, x, w, residual, finish, y, stream);
}

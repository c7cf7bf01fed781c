/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_bulk.h. A block stays for several tiles. One warp has operands fetched, a second one residuals;
 * two warpgroups take turns, so that results of one leave while products of the other run. */
#include "backends/cuda/qgemm_bulk.h"

#include "backends/cuda/bulk_rows.cuh"
#include "backends/cuda/qgemm_maps.h"
#include "backends/cuda/qgemm_panels.cuh"

namespace
{

enum { BULK_PIXELS = 128, BULK_HALF = 64, BULK_TURNS = 2, LONG_TURNS = 20000 /* clocks */ };

template <int COLUMNS, int Y_BYTES> struct turns {
    enum {
        FILTERS = COLUMNS,
        SIZE = Y_BYTES,
        X_STAGE = BULK_PIXELS * PANEL_ROW,
        W_STAGE = COLUMNS * PANEL_ROW,
        STAGES = COLUMNS == 64  ? 7
                 : Y_BYTES == 1 ? 5
                                : 4,
        LINE = COLUMNS * Y_BYTES < PANEL_ROW ? COLUMNS * Y_BYTES : PANEL_ROW, /* of a panel of results */
        SWIZZLE = LINE / 16 - 1,
        PANELS = COLUMNS * Y_BYTES / LINE,
        PANEL = BULK_HALF * LINE,
        OUT = 2 * PANELS * PANEL,
        THREADS = 128 * (BULK_TURNS + 1)
    };
};

template <class F> struct bulk_room {
    char x[F::STAGES][F::X_STAGE], w[F::STAGES][F::W_STAGE], out[BULK_TURNS][F::OUT];
    alignas(16) shared_columns<F::FILTERS> columns[BULK_TURNS];
    uint64_t full[F::STAGES], empty[F::STAGES], residual_full[BULK_TURNS], out_empty[BULK_TURNS],
        summed[BULK_TURNS];
};

struct bulk_maps {
    CUtensorMap x, w, residual, y;
};

struct bulk_work {
    int columns, tiles;
    int per_tap;   /* stages */
    bool in_place; /* rows of x are pixels of y */
    divider line, image;
};

/* Of a warpgroup alone. */
__device__ __forceinline__ void group_sync(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

/* ---- the three roles ---- */

template <class F> struct bulk_tile {
    int pixel, filter;
    __device__ __forceinline__ bulk_tile(const bulk_work &work, int tile)
        : pixel(tile / work.columns * BULK_PIXELS), filter(tile % work.columns * F::FILTERS)
    {
    }
};

template <class F>
__device__ __forceinline__ void fetch_operands(const cuda_qgemm &g, const bulk_work &work,
                                               const bulk_maps &maps, bulk_room<F> &room)
{
    const int stages = g.kernel[0] * g.kernel[1] * work.per_tap;
    const bulk_tile<F> first(work, blockIdx.x);
    /* Weights come while the kernel in front of this one still writes x. */
    int ahead = min(stages, (int)F::STAGES);
    for (int k = 0; k < ahead; k++) {
        barrier_expect(&room.full[k], F::X_STAGE + F::W_STAGE);
        bulk_fetch_filters(room.w[k], &maps.w,
                           k / work.per_tap * g.chunks * CUDA_QCHUNK + k % work.per_tap * PANEL_ROW,
                           first.filter / 32, &room.full[k]);
    }
    overlap_wait();
    ring place = {0, 0};
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const bulk_tile<F> t(work, tile);
        const int line = work.line(t.pixel), image = work.image(line),
                  row = (line - image * g.out[0]) * g.stride[0] - g.begin[0],
                  column = (t.pixel - line * g.out[1]) * g.stride[1] - g.begin[1];
        int at = 0;
        for (int down = 0; down < g.kernel[0]; down++)
            for (int right = 0; right < g.kernel[1]; right++, at += g.chunks * CUDA_QCHUNK)
                for (int c = 0; c < work.per_tap; c++, place.next(F::STAGES)) {
                    uint64_t *full = &room.full[place.at];
                    if (--ahead < 0) {
                        barrier_wait(&room.empty[place.at], place.phase ^ 1);
                        barrier_expect(full, F::X_STAGE + F::W_STAGE);
                        bulk_fetch_filters(room.w[place.at], &maps.w, at + c * PANEL_ROW, t.filter / 32,
                                           full);
                    }
                    if (work.in_place)
                        bulk_fetch_rows(room.x[place.at], &maps.x, c * PANEL_ROW, t.pixel, full);
                    else
                        bulk_fetch_windows(room.x[place.at], &maps.x, c * PANEL_ROW, column, row, image,
                                           right * g.dilation[1], down * g.dilation[0], full);
                }
    }
}

template <class F>
__device__ __forceinline__ void fetch_residuals(const bulk_work &work, const bulk_maps &maps,
                                                bulk_room<F> &room)
{
    int turn = 0;
    uint32_t phase = 1;
    overlap_wait();
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const bulk_tile<F> t(work, tile);
        barrier_wait(&room.out_empty[turn], phase);
        barrier_expect(&room.residual_full[turn], F::OUT);
        for (int half = 0; half < 2; half++)
            for (int p = 0; p < F::PANELS; p++)
                bulk_fetch_rows(room.out[turn] + (half * F::PANELS + p) * F::PANEL, &maps.residual,
                                t.filter + p * (F::LINE / F::SIZE), t.pixel + half * BULK_HALF,
                                &room.residual_full[turn]);
        turn ^= 1;
        phase ^= turn == 0;
    }
}

/* PARTS: 32s of bytes of a stage that matter. */
template <class F, bool SIGNED, int PARTS>
__device__ __forceinline__ void sum_stages(int stages, ring &place, bulk_room<F> &room, uint64_t *summed,
                                           int32_t (&sum)[2][F::FILTERS / 8][4])
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
        for (int p = 0; p < PARTS; p++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                multiply_panels<SIGNED>(sum[half],
                                        panel_descriptor(x + half * BULK_HALF * PANEL_ROW + p * 32),
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
    hold_panels(sum[0]);
    hold_panels(sum[1]);
}

/* 64 rows of sums become results where their residuals lie. */
template <class F, class Y, bool GELU>
__device__ __forceinline__ void finish_half(const cuda_qgemm &g, const cuda_qhead &h,
                                            const shared_columns<F::FILTERS> &columns,
                                            int32_t (&sum)[F::FILTERS / 8][4], char *out)
{
    const int lane = threadIdx.x % 32, eight = (lane & 3) * 8;
    const float unit = 1.0f / h.y_unit;
#pragma unroll
    for (int q = 0; q < F::FILTERS / quarter::FILTERS; q++) {
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
                                           const bulk_work &work, const bulk_maps &maps, bulk_room<F> &room,
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
        const bulk_tile<F> t(work, tile);
        int32_t sum[2][F::FILTERS / 8][4];
        /* A barrier tells a phase from the next one only: nobody waits for stages that lie a whole ring
         * ahead. */
        if (!is_begin) {
            barrier_wait(&room.summed[group ^ 1], order);
            order ^= 1;
        }
        is_begin = false;
        room.columns[group].fill(finish, t.filter, g.n, threadIdx.x % 128);
        if (is_narrow)
            sum_stages<F, SIGNED, 2>(stages, place, room, &room.summed[group], sum);
        else
            sum_stages<F, SIGNED, 4>(stages, place, room, &room.summed[group], sum);
        group_sync(group);
        if (g.residual != GRT_DTYPE_NONE)
            barrier_wait(&room.residual_full[group], phase);
        phase ^= 1;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            char *out = room.out[group] + half * F::PANELS * F::PANEL;
            finish_half<F, Y, GELU>(g, h, room.columns[group], sum[half], out);
            publish_copies();
            group_sync(group);
            if (!first)
                continue;
            for (int p = 0; p < F::PANELS; p++)
                bulk_store_rows(&maps.y, out + p * F::PANEL, t.filter + p * (F::LINE / F::SIZE),
                                t.pixel + half * BULK_HALF);
            bulk_store_commit();
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
                      const __grid_constant__ bulk_work work, const __grid_constant__ bulk_maps maps)
{
    extern __shared__ char raw[];
    bulk_room<F> &room =
        *(bulk_room<F> *)(((uintptr_t)raw + PANEL_ALIGNMENT - 1) / PANEL_ALIGNMENT * PANEL_ALIGNMENT);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    overlap_let_next_begin();
    if (!g.is_constant)
        overlap_wait();
    if (threadIdx.x == 0) {
        for (int i = 0; i < F::STAGES; i++) {
            barrier_init(&room.full[i], 1);
            barrier_init(&room.empty[i], 4);
        }
        for (int i = 0; i < BULK_TURNS; i++) {
            barrier_init(&room.residual_full[i], 1);
            barrier_init(&room.out_empty[i], 1);
            barrier_init(&room.summed[i], 1);
        }
        barrier_init_done();
    }
    __syncthreads();
    if (warp < BULK_TURNS * 4) {
        warpgroup_take_registers<232>();
        take_turns<F, Y, SIGNED, GELU>(g, finish, work, maps, room, warp >> 2);
    } else {
        warpgroup_leave_registers<40>();
        if (threadIdx.x == BULK_TURNS * 128)
            fetch_operands<F>(g, work, maps, room);
        else if (threadIdx.x == BULK_TURNS * 128 + 32 && g.residual != GRT_DTYPE_NONE)
            fetch_residuals<F>(work, maps, room);
    }
}

/* ---- launching ---- */

int64_t bulk_pixels_of(const cuda_qgemm *g)
{
    return (int64_t)g->images * g->out[0] * g->out[1];
}

/* Clocks that the busiest multiprocessor takes, roughly: stages are summed at the tensor cores' rate or
 * fetched at L2's, and results leave meanwhile. */
template <class F> double cost_of_turns(const cuda_qgemm *g)
{
    const int64_t tiles = (bulk_pixels_of(g) + BULK_PIXELS - 1) / BULK_PIXELS *
                          ((g->n + F::FILTERS - 1) / F::FILTERS),
                  each = (tiles + g->multiprocessors - 1) / g->multiprocessors,
                  bytes = (int64_t)g->chunks * CUDA_QCHUNK,
                  stages = (int64_t)g->kernel[0] * g->kernel[1] * ((bytes + PANEL_ROW - 1) / PANEL_ROW);
    const double sums = 4.0 * F::FILTERS * (bytes <= PANEL_ROW / 2 ? 0.5 : 1.0),
                 fetches = (F::X_STAGE + F::W_STAGE) / 48.0,
                 loop = (double)stages * (sums > fetches ? sums : fetches),
                 leave = F::FILTERS * (g->act.kind == GRT_ACT_NONE ? 16.0 : 28.0),
                 in_turns = (double)((each + 1) / 2) * (loop + leave), summed = (double)each * loop + leave;
    return in_turns > summed ? in_turns : summed;
}

template <class F, class Y, bool SIGNED, bool GELU>
grt_status launch_turns(const cuda_qgemm *g, const cuda_qfinish *finish, bulk_work work,
                        const bulk_maps &maps, cudaStream_t stream)
{
    const size_t bytes = sizeof(bulk_room<F>) + PANEL_ALIGNMENT;
    work.columns = (g->n + F::FILTERS - 1) / F::FILTERS;
    work.tiles = (int)((bulk_pixels_of(g) + BULK_PIXELS - 1) / BULK_PIXELS) * work.columns;
    const int blocks = work.tiles < g->multiprocessors ? work.tiles : g->multiprocessors;
    const auto kernel = multiply_in_turns<F, Y, SIGNED, GELU>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    /* Two long kernels, one behind the other, take longer if they overlap. */
    const bool overlaps = g->overlaps && cost_of_turns<F>(g) < LONG_TURNS;
    CUDA_TRY(overlap_launch(overlaps, kernel, blocks, F::THREADS, bytes, stream, *g, *finish, work, maps));
    return GRT_OK;
}

template <class F, class Y, bool GELU>
grt_status prepare_turns(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                         const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    bulk_maps maps = {};
    bulk_work work = {};
    const view v = view_of(g, x, w, residual, finish, y);
    work.line = v.line;
    work.image = v.image;
    work.in_place = v.in_place;
    work.per_tap = (g->chunks * CUDA_QCHUNK + PANEL_ROW - 1) / PANEL_ROW;
    CUresult result = v.in_place ? cuda_qgemm_map_rows(g, x, 1, g->chunks * CUDA_QCHUNK, g->x_pixel,
                                                       PANEL_ROW, BULK_PIXELS, &maps.x)
                                 : cuda_qgemm_map_windows(g, x, BULK_PIXELS, &maps.x);
    if (result == CUDA_SUCCESS)
        result = cuda_qgemm_map_filters(g, w, F::FILTERS, &maps.w);
    if (result == CUDA_SUCCESS)
        result = cuda_qgemm_map_rows(g, y, F::SIZE, g->n, g->y_pixel * F::SIZE, F::LINE, BULK_HALF, &maps.y);
    if (result == CUDA_SUCCESS && residual)
        result = cuda_qgemm_map_rows(g, residual, F::SIZE, g->n, g->y_pixel * F::SIZE, F::LINE, BULK_HALF,
                                     &maps.residual);
    if (result != CUDA_SUCCESS)
        return grt_fail(GRT_STATUS_INTERNAL, "the driver refuses a map of a tensor (error %d)", (int)result);
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
    const int64_t tiles = (bulk_pixels_of(g) + BULK_PIXELS - 1) / BULK_PIXELS * ((g->n + 63) / 64);
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
    if (cost_of_turns<turns<64, 1>>(g) < cost_of_turns<turns<128, 1>>(g))
        return enqueue_columns<64>(g, x, w, residual, finish, y, stream);
    return enqueue_columns<128>(g, x, w, residual, finish, y, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_bulk.h and bulk_groups.cuh: rows are pixels, columns are filters. */
#include "backends/cuda/qgemm_bulk.h"

#include "backends/cuda/bulk_groups.cuh"
#include "backends/cuda/lane_tables.cuh"
#include "backends/cuda/qgemm_maps.h"
#include "backends/cuda/qgemm_panels.cuh"
#include "backends/cuda/warpgroup_bytes.cuh"

namespace
{

/* Bytes may have what floats have not: rows behind a rounding, and a table. */
template <class F> using qgemm_columns = shared_columns<F::GROUP_COLUMNS, F::SIZE == 1>;
/* The tables of a form that has room for them. */
template <class F> constexpr bool qgemm_has_tables()
{
    return F::SIZE == 1 &&
           group_room_bytes<group_room<F, qgemm_columns<F>>>() + sizeof(lane_tables) <= MOST_SHARED;
}
template <class F, bool TABLES = qgemm_has_tables<F>()> struct qgemm_room : group_room<F, qgemm_columns<F>> {
    static __device__ __forceinline__ void fill(const cuda_qgemm &)
    {
    }
    static __device__ __forceinline__ uint2 looked_up(uint2 word)
    {
        return word;
    }
};
template <class F> struct qgemm_room<F, true> : group_room<F, qgemm_columns<F>> {
    lane_tables tables;

    __device__ __forceinline__ void fill(const cuda_qgemm &g)
    {
        if (g.table)
            tables.fill(g.table, g.table_flip, threadIdx.x, F::THREADS);
    }
    __device__ __forceinline__ uint2 looked_up(uint2 word) const
    {
        const int lane = threadIdx.x % lane_tables::LANES;
        return make_uint2(tables.four(word.x, lane), tables.four(word.y, lane));
    }
};

struct qgemm_work : group_work {
    int stages;    /* of a tile */
    int per_tap;   /* stages */
    int step;      /* bytes of a filter from one tap to the next; in pairs: from a pair to the next */
    bool in_place; /* rows of x are pixels of y */
    bool in_pairs; /* taps of 64 bytes: a stage has two */
    divider line, image;
};

/* A tile's first pixel, as windows see it, and what is fetched of them: 128 channels of a tap, from one on.
 */
struct qgemm_windows {
    int image, row, column, down, right, channel;

    __device__ __forceinline__ qgemm_windows(const cuda_qgemm &g, const qgemm_work &work, int pixel)
        : down(0), right(0), channel(0)
    {
        const int line = work.line(pixel);
        image = work.image(line);
        row = (line - image * g.out[0]) * g.stride[0] - g.begin[0];
        column = (pixel - line * g.out[1]) * g.stride[1] - g.begin[1];
    }
    __device__ __forceinline__ void next_tap(const cuda_qgemm &g)
    {
        if (++right == g.kernel[1]) {
            right = 0;
            down++;
        }
    }
    __device__ __forceinline__ void fetch(const cuda_qgemm &g, const group_maps &maps, void *to,
                                          uint64_t *full) const
    {
        bulk_fetch_windows(to, &maps.x, channel, column, row, image, right * g.dilation[1],
                           down * g.dilation[0], full);
    }
};

template <class F>
__device__ __forceinline__ void fetch_operands(const cuda_qgemm &g, const qgemm_work &work,
                                               const group_maps &maps, qgemm_room<F> &room)
{
    const group_tile<F> first(work, blockIdx.x);
    /* Weights come while the kernel in front of this one still writes x. */
    int ahead = min(work.stages, (int)F::STAGES);
    for (int k = 0; k < ahead; k++)
        fetch_filters<F>(maps, room, k, k / work.per_tap * work.step + k % work.per_tap * PANEL_ROW,
                         first.column);
    overlap_wait();
    ring place = {0, 0};
    for (int tile = blockIdx.x; tile < work.tiles; tile += gridDim.x) {
        const group_tile<F> t(work, tile);
        qgemm_windows windows(g, work, t.row);
        for (int k = 0, at = 0; k < work.stages; k++, place.next(F::STAGES)) {
            char *to = room.x[place.at];
            uint64_t *full = &room.full[place.at];
            if (--ahead < 0) {
                barrier_wait(&room.empty[place.at], place.phase ^ 1);
                fetch_filters<F>(maps, room, place.at, at + windows.channel, t.column);
            }
            if (work.in_place)
                bulk_fetch_rows(to, &maps.x, windows.channel, t.row, full);
            else
                windows.fetch(g, maps, to, full);
            if (work.in_pairs) { /* behind the last tap weights are zeros, as is what lies outside */
                windows.next_tap(g);
                windows.fetch(g, maps, to + F::X_STAGE / 2, full);
            }
            windows.channel += PANEL_ROW;
            if (windows.channel < work.per_tap * PANEL_ROW)
                continue;
            windows.channel = 0;
            at += work.step;
            windows.next_tap(g);
        }
    }
}

template <bool SIGNED> struct qgemm_operand {
    using type = uint8_t;
};
template <> struct qgemm_operand<true> {
    using type = int8_t;
};

/* How sums become bytes. WITHIN: no number is too large for rounding by an addition, and limits are those of
 * the type: conversions that saturate do the rest. */
enum qgemm_end { END_LIMITED, END_WITHIN, END_WITHIN_RESIDUAL, END_WITHIN_SUM, END_WITHIN_ROW };

/* A lane's eight results of a row, which lie where their residuals do. */
template <class F, class Y, int END>
__device__ __forceinline__ void store_eight(const cuda_qgemm &g, const cuda_qhead &h, float (&x)[4][4], int k,
                                            const qgemm_room<F> &room, char *to)
{
    uint4 residual = make_uint4(0, 0, 0, 0);
    if constexpr (sizeof(Y) > 1) {
        if (g.residual != GRT_DTYPE_NONE)
            residual = *(const uint4 *)to;
        store_halves<Y, quarter>(g, x, k, residual, (Y *)to);
        return;
    }
    if (END == END_WITHIN_RESIDUAL || END == END_WITHIN_SUM ||
        (END == END_LIMITED && g.residual != GRT_DTYPE_NONE)) {
        const uint2 word = *(const uint2 *)to;
        residual.x = word.x;
        residual.y = word.y;
    }
    uint2 word;
    if constexpr (END == END_LIMITED)
        word = limit_bytes<quarter>(g, h, x, k, residual);
    else
        word = saturate_bytes < quarter, END == END_WITHIN_RESIDUAL || END == END_WITHIN_SUM,
        END == END_WITHIN_SUM || END == END_WITHIN_ROW > (g, h, x, k, residual);
    if (g.table)
        word = room.looked_up(word);
    *(uint2 *)to = word;
}

/* The sums of a group become results. */
template <class F, class Y, bool GELU, int END>
__device__ __forceinline__ void finish_group(const cuda_qgemm &g, const cuda_qhead &h,
                                             const qgemm_room<F> &room, const qgemm_columns<F> &columns,
                                             int32_t (&sum)[F::GROUP_COLUMNS / 8][4], char *out)
{
    /* Ends that write bytes are loops (copy_quarter); those of 16 bits have neither tables nor saturation,
     * and are written out. */
    constexpr int QUARTERS = F::GROUP_COLUMNS / quarter::FILTERS, AT_ONCE = sizeof(Y) > 1 ? QUARTERS : 1;
    const float half = 0.5f / h.y_unit;
#pragma unroll AT_ONCE
    for (int q = 0; q < QUARTERS; q++) {
        lane_columns each;
        int32_t now[4][4];
        float x[4][4];
        columns.read(q * quarter::FILTERS, &each);
        if constexpr (AT_ONCE == 1)
            copy_quarter<QUARTERS>(sum, q, now);
        else
#pragma unroll
            for (int i = 0; i < 16; i++)
                now[i / 4][i % 4] = sum[q * 4 + i / 4][i % 4];
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = t * 2 + (i & 1);
                const int32_t s = now[t][i] - each.offset[j];
                if constexpr (GELU)
                    x[t][i] = cuda_qgelu_quick(fmaf((float)s, each.scale[j], each.bias[j]), half);
                else
                    x[t][i] = cuda_qscaled(s, each.scale[j], each.bias[j]);
                if (sizeof(Y) == 1 && (END == END_WITHIN_ROW || (END == END_LIMITED && g.row)))
                    x[t][i] = cuda_qsum(h, x[t][i], columns.row_of(q * quarter::FILTERS, j));
            }
#pragma unroll
        for (int k = 0; k < 2; k++)
            store_eight<F, Y, END>(g, h, x, k, room, result_place<F>(out, q, k));
    }
}

template <class Y, bool GELU> __device__ __forceinline__ int end_of(const cuda_qgemm &g, const cuda_qhead &h)
{
    if (sizeof(Y) > 1 || !cuda_qsaturates(g, h))
        return END_LIMITED;
    if (g.row)
        return END_WITHIN_ROW;
    return g.residual == GRT_DTYPE_NONE ? END_WITHIN : g.sum ? END_WITHIN_SUM : END_WITHIN_RESIDUAL;
}

template <class F, class Y, bool GELU>
__device__ __forceinline__ void finish_as(int end, const cuda_qgemm &g, const cuda_qhead &h,
                                          const qgemm_room<F> &room, const qgemm_columns<F> &columns,
                                          int32_t (&sum)[F::GROUP_COLUMNS / 8][4], char *out)
{
    if (sizeof(Y) == 1 && end == END_WITHIN)
        finish_group<F, Y, GELU, END_WITHIN>(g, h, room, columns, sum, out);
    else if (sizeof(Y) == 1 && !GELU && end == END_WITHIN_RESIDUAL)
        finish_group<F, Y, GELU, END_WITHIN_RESIDUAL>(g, h, room, columns, sum, out);
    else if (sizeof(Y) == 1 && !GELU && end == END_WITHIN_SUM)
        finish_group<F, Y, GELU, END_WITHIN_SUM>(g, h, room, columns, sum, out);
    else if (sizeof(Y) == 1 && !GELU && end == END_WITHIN_ROW)
        finish_group<F, Y, GELU, END_WITHIN_ROW>(g, h, room, columns, sum, out);
    else
        finish_group<F, Y, GELU, END_LIMITED>(g, h, room, columns, sum, out);
}

template <class F, class Y, bool SIGNED, bool GELU>
__device__ __forceinline__ void sum_and_finish(const cuda_qgemm &g, const cuda_qfinish &finish,
                                               const qgemm_work &work, qgemm_room<F> &room, int group)
{
    using product = bytes_product<typename qgemm_operand<SIGNED>::type, F::GROUP_COLUMNS>;
    const bool is_narrow = g.chunks * CUDA_QCHUNK <= PANEL_ROW / 2;
    const cuda_qhead h = *finish.head;
    const int end = end_of<Y, GELU>(g, h);
    group_order<F> order(group);
    ring place = {0, 0};
    for_tiles_of_group<F>(work, group, work.stages, place, [&](const ring &out) {
        int32_t sum[F::GROUP_COLUMNS / 8][4];
        if (work.in_pairs)
            sum_group<F, product, two_panels>(work.stages, place, room, order, sum);
        else if (is_narrow)
            sum_group<F, product, half_lines>(work.stages, place, room, order, sum);
        else
            sum_group<F, product, whole_lines>(work.stages, place, room, order, sum);
        barrier_wait(&room.ready[group][out.at], out.phase);
        finish_as<F, Y, GELU>(end, g, h, room, room.columns[group][out.at], sum, room.out[group][out.at]);
        results_written(&room.written[group][out.at]);
    });
}

template <class F, class Y, bool SIGNED, bool GELU>
__global__ void __launch_bounds__(F::THREADS, 1)
    multiply_groups(const __grid_constant__ cuda_qgemm g, const __grid_constant__ cuda_qfinish finish,
                    const __grid_constant__ qgemm_work work, const __grid_constant__ group_maps maps)
{
    extern __shared__ char raw[];
    qgemm_room<F> &room = group_room_in<qgemm_room<F>>(raw);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0), mover = warp - F::GROUPS * 4 - 1;
    overlap_let_next_begin();
    if (!g.is_constant)
        overlap_wait();
    room.fill(g);
    begin_groups<F>(maps, room);
    if (warp < F::GROUPS * 4) {
        warpgroup_take_registers<F::REGISTERS>();
        sum_and_finish<F, Y, SIGNED, GELU>(g, finish, work, room, warp >> 2);
    } else {
        warpgroup_leave_registers<F::MOVER_REGISTERS>();
        const bool has_residual = g.residual != GRT_DTYPE_NONE;
        if (threadIdx.x == F::GROUPS * 128)
            fetch_operands<F>(g, work, maps, room);
        if (mover >= 0 && has_residual)
            overlap_wait();
        if (mover >= 0)
            move_epilogues<F>(
                work, maps, room, mover, has_residual,
                [&](qgemm_columns<F> &columns, int first, int) { columns.fill_by_warp(finish, first, g.n); });
    }
}

/* ---- launching ---- */

int64_t bulk_pixels_of(const cuda_qgemm *g)
{
    return (int64_t)g->images * g->out[0] * g->out[1];
}

template <class F> int64_t qgemm_bulk_tiles(const cuda_qgemm *g)
{
    return tiles_of_groups<F>(bulk_pixels_of(g), g->n);
}

int taps_of(const cuda_qgemm *g)
{
    return g->kernel[0] * g->kernel[1];
}

bool bulk_in_pairs(const cuda_qgemm *g)
{
    return taps_of(g) > 1 && g->chunks * CUDA_QCHUNK == PANEL_ROW / 2;
}

int bulk_stages_of(const cuda_qgemm *g)
{
    return bulk_in_pairs(g) ? (taps_of(g) + 1) / 2
                            : taps_of(g) * ((g->chunks * CUDA_QCHUNK + PANEL_ROW - 1) / PANEL_ROW);
}

template <class F> double qgemm_bulk_cost(const cuda_qgemm *g)
{
    const bool is_narrow = g->chunks * CUDA_QCHUNK <= PANEL_ROW / 2 && !bulk_in_pairs(g);
    return cost_of_groups<F>(qgemm_bulk_tiles<F>(g), g->multiprocessors, bulk_stages_of(g),
                             is_narrow ? 0.5 : 1.0, g->act.kind != GRT_ACT_NONE);
}

template <class F, class Y, bool SIGNED, bool GELU>
grt_status launch_groups(const cuda_qgemm *g, const cuda_qfinish *finish, qgemm_work work,
                         const group_maps &maps, cudaStream_t stream)
{
    const size_t bytes = group_room_bytes<qgemm_room<F>>();
    static_assert(group_room_bytes<qgemm_room<F>>() <= MOST_SHARED, "");
    work.columns = (g->n + F::COLUMNS - 1) / F::COLUMNS;
    work.tiles = (int)qgemm_bulk_tiles<F>(g);
    const int blocks = work.tiles < g->multiprocessors ? work.tiles : g->multiprocessors;
    const auto kernel = multiply_groups<F, Y, SIGNED, GELU>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    CUDA_TRY(overlap_launch(g->overlaps, kernel, blocks, F::THREADS, bytes, stream, *g, *finish, work, maps));
    return GRT_OK;
}

template <class F, class Y, bool GELU>
grt_status prepare_groups(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                          const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    group_maps maps = {};
    qgemm_work work = {};
    const view v = view_of(g, x, w, residual, finish, y);
    work.line = v.line;
    work.image = v.image;
    work.in_place = v.in_place;
    work.in_pairs = bulk_in_pairs(g);
    work.per_tap = (g->chunks * CUDA_QCHUNK + PANEL_ROW - 1) / PANEL_ROW;
    work.step = g->chunks * CUDA_QCHUNK * (work.in_pairs ? 2 : 1);
    work.stages = bulk_stages_of(g);
    if (v.in_place)
        CUDA_TRY(
            cuda_qgemm_map_rows(g, x, 1, g->chunks * CUDA_QCHUNK, g->x_pixel, PANEL_ROW, F::ROWS, &maps.x));
    else
        CUDA_TRY(cuda_qgemm_map_windows(g, x, F::ROWS, work.in_pairs ? PANEL_ROW / 2 : PANEL_ROW, &maps.x));
    CUDA_TRY(cuda_qgemm_map_filters(g, w, F::COLUMNS, &maps.w));
    CUDA_TRY(cuda_qgemm_map_rows(g, y, F::SIZE, g->n, g->y_pixel * F::SIZE, F::LINE, GROUP_ROWS, &maps.y));
    if (residual)
        CUDA_TRY(cuda_qgemm_map_rows(g, residual, F::SIZE, g->n, g->y_pixel * F::SIZE, F::LINE, GROUP_ROWS,
                                     &maps.residual));
    return g->x_signed ? launch_groups<F, Y, true, GELU>(g, finish, work, maps, stream)
                       : launch_groups<F, Y, false, GELU>(g, finish, work, maps, stream);
}

/* INFINITY: the form cannot look up. */
template <class F> double qgemm_bulk_cost_of(const cuda_qgemm *g)
{
    return g->table && !qgemm_has_tables<F>() ? INFINITY : qgemm_bulk_cost<F>(g);
}

template <class Y, bool GELU>
grt_status enqueue_results(const cuda_qgemm *g, const void *x, const void *w, const void *residual,
                           const cuda_qfinish *finish, void *y, cudaStream_t stream)
{
    enum { BYTES = sizeof(Y) };
    using square = square_groups<BYTES>;
    using narrow = narrow_groups<BYTES>;
    using large = large_groups<BYTES>;
    using wide = wide_groups<BYTES>;
    const double of_square = qgemm_bulk_cost_of<square>(g), of_narrow = qgemm_bulk_cost_of<narrow>(g),
                 of_large = qgemm_bulk_cost_of<large>(g), of_wide = qgemm_bulk_cost_of<wide>(g);
    if (of_wide < of_large && of_wide < of_square && of_wide < of_narrow)
        return prepare_groups<wide, Y, GELU>(g, x, w, residual, finish, y, stream);
    if (of_large < of_square && of_large < of_narrow)
        return prepare_groups<large, Y, GELU>(g, x, w, residual, finish, y, stream);
    if (of_narrow < of_square)
        return prepare_groups<narrow, Y, GELU>(g, x, w, residual, finish, y, stream);
    return prepare_groups<square, Y, GELU>(g, x, w, residual, finish, y, stream);
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
    const bool is_narrow = taps_of(g) > 1 && g->chunks * CUDA_QCHUNK <= PANEL_ROW / 2 && !bulk_in_pairs(g);
    return fit && !is_narrow && (!padded || g->outside_is_zero);
}

} // namespace

bool cuda_qgemm_bulk_fits(const cuda_qgemm *g, const void *residual, const void *y)
{
    /* Few tiles are better made small. */
    const int64_t tiles = qgemm_bulk_tiles<narrow_groups<1>>(g);
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
    if (g->y == GRT_DTYPE_FLOAT16)
        return enqueue_results<__half, false>(g, x, w, residual, finish, y, stream);
    if (g->y == GRT_DTYPE_BFLOAT16)
        return enqueue_results<__nv_bfloat16, false>(g, x, w, residual, finish, y, stream);
    if (g->act.kind == GRT_ACT_GELU_ERF)
        return enqueue_results<uint8_t, true>(g, x, w, residual, finish, y, stream);
    return enqueue_results<uint8_t, false>(g, x, w, residual, finish, y, stream);
}

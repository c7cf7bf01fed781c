/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_words.h. A block has some lines of the result; a warpgroup sums 64 pixels of them by 64 filters.
 * A line of filters has four or eight words, one for each tap. Eight are in such an order that the two words
 * that a lane multiplies in a step lie side by side in the image. */
#include "backends/cuda/qgemm_words.h"

#include "backends/cuda/line_tiles.cuh"

namespace
{

enum {
    WORDS_THREADS = 128,
    WORDS_BLOCKS = 4, /* of a multiprocessor */
    MOST_LINES = 4,   /* of a block */
    MOST_BYTES = 54 << 10,
    WORD = 4,
    FEW_TAPS = 4,
    MOST_TAPS = 8,
    MOST_STEPS = 7,
    AT_ONCE = 8 /* loads of a lane */
};

int slots_of(int64_t taps)
{
    return taps <= FEW_TAPS ? FEW_TAPS : MOST_TAPS;
}

/* How a block's part of the image lies in shared memory. */
struct words_form {
    cuda_qlines in;
    int lines, bands, seen; /* of the result, of a block; blocks of an image; lines of it that a block sees */
    int pitch;              /* words from one to the next */
    int chunks;             /* of a line of a filter */
    bool in_eights;         /* as in qgemm.h */
    bool in_runs;           /* a pixel's channels lie side by side */
};

template <int STEPS> struct panels_of_words {
    enum {
        CHUNKS = PANEL_ROW / CUDA_QCHUNK,
        PANELS = (STEPS + 3) / 4,
        BYTES = PANELS * LINE_TILE_FILTERS * PANEL_ROW
    };
};

template <int STEPS>
__device__ __forceinline__ void load_filters(const cuda_qgemm &g, const words_form &f, const uint8_t *w,
                                             int first_filter, uint4 *to)
{
    using F = panels_of_words<STEPS>;
    const int all = g.kernel[0] * f.chunks;
    for (int i = threadIdx.x; i < LINE_TILE_FILTERS * STEPS * 2; i += WORDS_THREADS) {
        const int row = i / (STEPS * 2), chunk = i % (STEPS * 2), filter = first_filter + filter_of(row);
        uint4 *at =
            to + chunk / F::CHUNKS * (LINE_TILE_FILTERS * F::CHUNKS) + place<F>(row, chunk % F::CHUNKS);
        fetch(at, w + ((int64_t)(filter < g.n ? filter : 0) * all + chunk) * CUDA_QCHUNK,
              filter < g.n && chunk < all);
    }
}

/* A pixel's channels, which lie side by side; what is behind them means nothing, as weights are zeros there.
 * No word is read that has none of them. */
__device__ __forceinline__ uint32_t load_run(const words_form &f, const uint8_t *from)
{
    const uint32_t *words = (const uint32_t *)((uintptr_t)from & ~(uintptr_t)3);
    const int skip = (int)((uintptr_t)from & 3);
    const uint32_t low = words[0], high = words[skip + (int)f.in.channels > WORD ? 1 : 0];
    return __funnelshift_r(low, high, (uint32_t)skip * 8);
}

/* The same of planes. */
__device__ __forceinline__ uint32_t load_planes(const words_form &f, const uint8_t *from)
{
    const int64_t step = f.in.step_channel;
    const uint32_t a = from[0], b = from[step], c = from[2 * step], d = from[((int)f.in.channels - 1) * step];
    return a | b << 8 | c << 16 | d << 24;
}

/* By a warp: a line with what is outside of it. No load waits for another one: each reads a pixel. */
template <bool IN_RUNS>
__device__ __forceinline__ void load_line(const words_form &f, const uint8_t *from, uint32_t outside,
                                          uint32_t *to)
{
    const int lane = threadIdx.x % 32, columns = (int)f.in.in;
    for (int first = 0; first < f.pitch; first += AT_ONCE * 32) {
        uint32_t word[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int column = first + k * 32 + lane - (int)f.in.begin;
            const uint8_t *at = from + min(max(column, 0), columns - 1) * (int)f.in.step_pixel;
            word[k] = IN_RUNS ? load_run(f, at) : load_planes(f, at);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int i = first + k * 32 + lane;
            if (i < f.pitch)
                to[i] = (unsigned)(i - (int)f.in.begin) < (unsigned)columns ? word[k] : outside;
        }
    }
}

__device__ __forceinline__ void fill_line(const words_form &f, uint32_t outside, uint32_t *to)
{
    for (int i = threadIdx.x % 32; i < f.pitch; i += 32)
        to[i] = outside;
}

/* By all threads: what the windows of a block see of an image, from line `top` on. */
__device__ __forceinline__ void load_window(const cuda_qgemm &g, const words_form &f, const uint8_t *image,
                                            int top, uint32_t outside, uint32_t *window)
{
    for (int line = threadIdx.x / 32; line < f.seen; line += WORDS_THREADS / 32) {
        uint32_t *to = window + line * f.pitch;
        const uint8_t *from = image + (top + line) * f.in.step_line;
        if ((unsigned)(top + line) >= (unsigned)g.in[0])
            fill_line(f, outside, to);
        else if (f.in_runs)
            load_line<true>(f, from, outside, to);
        else
            load_line<false>(f, from, outside, to);
    }
}

/* The terms of two pixels of a lane, which begin at these words. */
template <int STEPS>
__device__ __forceinline__ void unfold(const cuda_qgemm &g, const words_form &f, const uint32_t *window,
                                       const int (&pixel)[2], uint32_t (&a)[STEPS][4])
{
    const int quad = threadIdx.x & 3, rows = g.kernel[0], step = g.dilation[0] * f.pitch;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const uint32_t *at = window + pixel[k];
        if (f.chunks == 2) {
#pragma unroll
            for (int s = 0; s < STEPS; s++) { /* behind the last line weights are zeros */
                const uint2 pair = *(const uint2 *)(at + min(s, rows - 1) * step + 2 * quad);
                a[s][k] = pair.x;
                a[s][2 + k] = pair.y;
            }
        } else {
#pragma unroll
            for (int i = 0; i < STEPS * 2; i++)
                a[i / 2][i % 2 * 2 + k] = at[min(i, rows - 1) * step + quad];
        }
    }
}

/* The sums of 32 filters leave. WITHIN: as bytes that conversions saturate. */
template <bool WITHIN>
__device__ __forceinline__ void store_quarter(const cuda_qgemm &g, const view &v, const words_form &f,
                                              const cuda_qhead &h, const lane_columns &each,
                                              int32_t (&part)[4][4], const lane_rows &rows, int first)
{
    if constexpr (WITHIN) {
        float x[4][4];
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = t * 2 + (i & 1);
                x[t][i] = cuda_qscaled(part[t][i] - each.offset[j], each.scale[j], each.bias[j]);
            }
        const int filter = first + (int)(threadIdx.x & 3) * 8;
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (rows.there[k] && filter < g.n)
                *(uint2 *)((uint8_t *)v.y + rows.at[k] + filter) =
                    saturate_bytes<quarter, false, false>(g, h, x, k, make_uint4(0, 0, 0, 0));
    } else {
        store_line_quarter(g, v, h, each, part, rows, first, f.in_eights);
    }
}

template <int STEPS, bool SIGNED, bool WITHIN>
__device__ __forceinline__ void multiply_tiles(const cuda_qgemm &g, const view &v, const words_form &f,
                                               const cuda_qhead &h, uint32_t panels, const uint32_t *window,
                                               const shared_columns<LINE_TILE_FILTERS> &columns,
                                               int first_line, int first_pixel, int first_filter)
{
    const int pixels = min(f.lines, g.out[0] - first_line) * g.out[1], stride = (int)f.in.stride;
    for (int tile = 0; tile < pixels; tile += LINE_TILE_PIXELS)
        multiply_line_tile<STEPS, SIGNED>(
            g, v, panels, columns, tile + (int)threadIdx.x / 32 * TILE, pixels, first_pixel, first_filter,
            [&](int line, int column) { return line * g.stride[0] * f.pitch + column * stride; },
            [&](const int(&at)[2], uint32_t(&a)[STEPS][4]) { unfold<STEPS>(g, f, window, at, a); },
            [&](const lane_columns &each, int32_t(&part)[4][4], const lane_rows &rows, int first) {
                store_quarter<WITHIN>(g, v, f, h, each, part, rows, first);
            });
}

template <int STEPS, bool SIGNED>
__global__ void __launch_bounds__(WORDS_THREADS, WORDS_BLOCKS)
    multiply_words(const __grid_constant__ cuda_qgemm g, const __grid_constant__ view v,
                   const __grid_constant__ words_form f)
{
    using F = panels_of_words<STEPS>;
    extern __shared__ uint4 room[];
    __shared__ __align__(16) shared_columns<LINE_TILE_FILTERS> columns;
    const uint32_t skip = (0u - (uint32_t)__cvta_generic_to_shared(room)) % PANEL_ALIGNMENT;
    uint4 *panels = room + skip / CUDA_QCHUNK;
    uint32_t *window = (uint32_t *)((uint8_t *)panels + F::BYTES);
    const int image = blockIdx.x / f.bands, first_line = blockIdx.x % f.bands * f.lines,
              first_filter = blockIdx.y * LINE_TILE_FILTERS, top = first_line * g.stride[0] - g.begin[0];
    overlap_let_next_begin();
    if (!g.is_constant)
        overlap_wait();
    load_filters<STEPS>(g, f, v.w, first_filter, panels);
    commit();
    columns.fill(v.finish, first_filter, g.n, threadIdx.x);
    const cuda_qhead h = *v.finish.head;
    overlap_wait();
    load_window(g, f, v.x + image * f.in.step_image, top, h.outside[0] * 0x01010101u, window);
    wait_for<0>();
    publish_shared();
    __syncthreads();
    const int first_pixel = (image * g.out[0] + first_line) * g.out[1];
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(panels);
    const bool is_within = g.y_size == 1 && g.residual == GRT_DTYPE_NONE && !g.sum && f.in_eights &&
                           g.act.kind == GRT_ACT_NONE && cuda_qsaturates(g, h);
    if (is_within)
        multiply_tiles<STEPS, SIGNED, true>(g, v, f, h, at, window, columns, first_line, first_pixel,
                                            first_filter);
    else
        multiply_tiles<STEPS, SIGNED, false>(g, v, f, h, at, window, columns, first_line, first_pixel,
                                             first_filter);
}

/* ---- launching ---- */

/* Terms come in steps of 32 bytes. */
int words_steps_of(const cuda_qgemm *g, const cuda_qlines *l)
{
    return l->taps <= FEW_TAPS ? (g->kernel[0] + 1) / 2 : g->kernel[0];
}

words_form words_form_of(const cuda_qgemm *g, const cuda_qlines *l, int lines)
{
    words_form f = {};
    f.in = *l;
    f.lines = lines;
    f.bands = (g->out[0] + lines - 1) / lines;
    f.seen = most_int((int64_t)(lines - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1);
    f.chunks = slots_of(l->taps) / FEW_TAPS;
    const int64_t last = (l->out - 1) * l->stride + slots_of(l->taps), image = l->begin + l->in;
    f.pitch = most_int(((last > image ? last : image) + 3) / 4 * 4);
    f.in_runs = l->step_channel == 1;
    return f;
}

size_t words_bytes(const cuda_qgemm *g, const words_form *f)
{
    return (size_t)((words_steps_of(g, &f->in) + 3) / 4 * LINE_TILE_FILTERS * PANEL_ROW + PANEL_ALIGNMENT) +
           (size_t)f->seen * (size_t)f->pitch * WORD;
}

int words_lines_of(const cuda_qgemm *g, const cuda_qlines *l)
{
    return lines_of_block(g, MOST_LINES, [&](int lines) {
        const words_form f = words_form_of(g, l, lines);
        return words_bytes(g, &f) <= MOST_BYTES;
    });
}

template <int STEPS, bool SIGNED>
grt_status launch_words(const cuda_qgemm *g, const view &v, const words_form &f, cudaStream_t stream)
{
    const size_t bytes =
        panels_of_words<STEPS>::BYTES + PANEL_ALIGNMENT + (size_t)f.seen * (size_t)f.pitch * WORD;
    const dim3 grid((unsigned)(g->images * f.bands),
                    (unsigned)((g->n + LINE_TILE_FILTERS - 1) / LINE_TILE_FILTERS));
    const auto kernel = multiply_words<STEPS, SIGNED>;
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_BYTES));
    CUDA_TRY(overlap_launch(g->overlaps, kernel, grid, WORDS_THREADS, bytes, stream, *g, v, f));
    return GRT_OK;
}

template <bool SIGNED>
grt_status launch_words_steps(const cuda_qgemm *g, const view &v, const words_form &f, cudaStream_t stream)
{
    const int steps = words_steps_of(g, &f.in);
    if (steps <= 2)
        return launch_words<2, SIGNED>(g, v, f, stream);
    if (steps <= 4)
        return launch_words<4, SIGNED>(g, v, f, stream);
    return launch_words<MOST_STEPS, SIGNED>(g, v, f, stream);
}

} // namespace

size_t cuda_qwords_bytes(int64_t rows, int64_t taps, int64_t channels)
{
    const bool fits = channels >= 3 && channels <= WORD && taps <= MOST_TAPS && rows <= 2 * MOST_STEPS;
    return fits ? (size_t)(rows * slots_of(taps) * WORD) : 0;
}

void cuda_qwords_pack(const int8_t *packed, int64_t pitch, int64_t filters, int64_t rows, int64_t taps,
                      int64_t channels, int8_t *to)
{
    const int slots = slots_of(taps);
    for (int64_t line = 0; line < filters * rows; line++)
        for (int slot = 0; slot < slots; slot++, to += WORD) {
            const int tap = slots == FEW_TAPS ? slot : slot % FEW_TAPS * 2 + slot / FEW_TAPS;
            for (int64_t c = 0; c < WORD; c++)
                to[c] = tap < taps && c < channels ? packed[line * pitch + tap * channels + c] : 0;
        }
}

bool cuda_qgemm_words_fits(const cuda_qgemm *g, const cuda_qlines *l)
{
    const bool is_paired = l->taps <= FEW_TAPS || l->stride % 2 == 0; /* words of a lane begin at eights */
    return g->has_warpgroups && !g->sums_rows && g->items == 1 && is_paired &&
           cuda_qwords_bytes(g->kernel[0], l->taps, l->channels) > 0 && words_steps_of(g, l) <= MOST_STEPS &&
           l->dilation == 1 && l->begin >= 0 && l->in * l->step_pixel < INT32_MAX &&
           (int64_t)g->images * g->out[0] < INT32_MAX && words_lines_of(g, l) > 0;
}

grt_status cuda_qgemm_words_enqueue(const cuda_qgemm *g, const cuda_qlines *l, const void *x,
                                    const void *words, const void *residual, const cuda_qfinish *finish,
                                    void *y, cudaStream_t stream)
{
    const view v = view_of(g, x, words, residual, finish, y);
    words_form f = words_form_of(g, l, words_lines_of(g, l));
    f.in_eights = cuda_qgemm_in_eights(g, residual, y);
    return g->x_signed ? launch_words_steps<true>(g, v, f, stream)
                       : launch_words_steps<false>(g, v, f, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See qgemm_lines.h. A block has some lines of the result. What its windows see of the image lies in shared
 * memory with channels last, so that a lane finds the terms of a pixel side by side; weights are there as
 * panels. */
#include "backends/cuda/qgemm_lines.h"

#include "backends/cuda/line_tiles.cuh"

namespace
{

enum {
    GROUPS = 2,
    LINES_THREADS = 128 * GROUPS,
    MOST_LINES = 4,       /* of a block */
    MOST_BYTES = 96 << 10 /* of shared memory: two blocks */
};

/* How a block's part of the image lies in shared memory. */
struct lines_form {
    cuda_qlines in;
    int lines;      /* of the result, of a block */
    int bands;      /* blocks of an image */
    int seen;       /* lines of the image that a block sees */
    int pitch;      /* bytes from one to the next */
    int lead;       /* bytes in front of each, so that the image's own begin at a word */
    bool in_words;  /* four pixels of a channel, or four bytes of all, are a word of x */
    bool in_eights; /* as in qgemm.h */
};

template <int STEPS> struct panels_of_lines {
    enum {
        CHUNKS = PANEL_ROW / CUDA_QCHUNK,
        PANELS = (STEPS + 3) / 4,
        BYTES = PANELS * LINE_TILE_FILTERS * PANEL_ROW
    };
};

template <int STEPS>
__device__ __forceinline__ void load_filters(const cuda_qgemm &g, const view &v, int first_filter, uint4 *to)
{
    using F = panels_of_lines<STEPS>;
    const int all = g.kernel[0] * g.chunks;
    for (int i = threadIdx.x; i < LINE_TILE_FILTERS * STEPS * 2; i += LINES_THREADS) {
        const int row = i / (STEPS * 2), chunk = i % (STEPS * 2), filter = first_filter + filter_of(row);
        uint4 *at =
            to + chunk / F::CHUNKS * (LINE_TILE_FILTERS * F::CHUNKS) + place<F>(row, chunk % F::CHUNKS);
        fetch(at, v.w + ((int64_t)(filter < g.n ? filter : 0) * all + chunk) * CUDA_QCHUNK,
              filter < g.n && chunk < all);
    }
}

/* A line of the image, channels last. Four bytes at once, one each where words do not fit. */
__device__ __forceinline__ void load_line(const lines_form &f, const uint8_t *from, uint8_t *to)
{
    const int lane = threadIdx.x % 32, channels = (int)f.in.channels, columns = (int)f.in.in;
    if (f.in_words && f.in.step_channel == 1) {
        for (int i = lane; i < columns * channels / 4; i += 32)
            ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
        return;
    }
    for (int c = 0; c < channels; c++) {
        const uint8_t *line = from + c * f.in.step_channel;
        uint8_t *at = to + c;
        if (f.in_words)
            for (int i = lane; i < columns / 4; i += 32) {
                const uint32_t word = ((const uint32_t *)line)[i];
#pragma unroll
                for (int k = 0; k < 4; k++)
                    at[(i * 4 + k) * channels] = (uint8_t)(word >> 8 * k);
            }
        else
            for (int i = lane; i < columns; i += 32)
                at[i * channels] = line[i * f.in.step_pixel];
    }
}

/* The terms of two pixels of a lane: words at any byte of shared memory. */
template <int STEPS>
__device__ __forceinline__ void unfold(const cuda_qgemm &g, const lines_form &f, const uint8_t *window,
                                       const int (&pixel)[2], uint32_t (&a)[STEPS][4])
{
    const int all = g.kernel[0] * g.chunks;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const uint32_t *words = (const uint32_t *)(window + (pixel[k] & ~3)) + (threadIdx.x & 3);
        const uint32_t shift = (uint32_t)(pixel[k] & 3) * 8;
#pragma unroll
        for (int i = 0; i < STEPS * 2; i++) {
            const int chunk = min(i, all - 1), down = g.chunks == 1 ? chunk : chunk >> 1,
                      right = g.chunks == 1 ? 0 : chunk & 1;
            const uint32_t *at = words + (down * g.dilation[0] * f.pitch >> 2) + right * 4;
            a[i / 2][i % 2 * 2 + k] = __funnelshift_r(at[0], at[1], shift);
        }
    }
}

template <int STEPS, bool SIGNED>
__global__ void __launch_bounds__(LINES_THREADS, 2)
    multiply_lines(const __grid_constant__ cuda_qgemm g, const __grid_constant__ view v,
                   const __grid_constant__ lines_form f)
{
    using F = panels_of_lines<STEPS>;
    extern __shared__ uint4 room[];
    __shared__ __align__(16) shared_columns<LINE_TILE_FILTERS> epilogue;
    const uint32_t skip = (0u - (uint32_t)__cvta_generic_to_shared(room)) % PANEL_ALIGNMENT;
    uint4 *panels = room + skip / CUDA_QCHUNK;
    uint8_t *window = (uint8_t *)panels + F::BYTES;
    const int image = blockIdx.x / f.bands, first_line = blockIdx.x % f.bands * f.lines,
              first_filter = blockIdx.y * LINE_TILE_FILTERS, warp = threadIdx.x / 32,
              group = threadIdx.x / 128;
    overlap_let_next_begin();
    if (!g.is_constant)
        overlap_wait();
    load_filters<STEPS>(g, v, first_filter, panels);
    commit();
    epilogue.fill(v.finish, first_filter, g.n, threadIdx.x);
    const cuda_qhead h = *v.finish.head;
    const uint4 outside = *(const uint4 *)v.finish.head->outside;
    for (int i = threadIdx.x; i < f.seen * f.pitch / CUDA_QCHUNK; i += LINES_THREADS)
        ((uint4 *)window)[i] = outside;
    __syncthreads();
    overlap_wait();
    const int top = first_line * g.stride[0] - g.begin[0];
    for (int line = warp; line < f.seen; line += LINES_THREADS / 32)
        if ((unsigned)(top + line) < (unsigned)g.in[0])
            load_line(f, v.x + image * f.in.step_image + (top + line) * f.in.step_line,
                      window + line * f.pitch + f.lead + f.in.begin * f.in.channels);
    wait_for<0>();
    publish_shared();
    __syncthreads();
    const int pixels = min(f.lines, g.out[0] - first_line) * g.out[1],
              first_pixel = (image * g.out[0] + first_line) * g.out[1],
              step = (int)(f.in.stride * f.in.channels);
    const uint32_t b = (uint32_t)__cvta_generic_to_shared(panels);
    for (int tile = group * LINE_TILE_PIXELS; tile < pixels; tile += GROUPS * LINE_TILE_PIXELS)
        multiply_line_tile<STEPS, SIGNED>(
            g, v, b, epilogue, tile + warp % 4 * TILE, pixels, first_pixel, first_filter,
            [&](int line, int column) { return line * g.stride[0] * f.pitch + f.lead + column * step; },
            [&](const int(&at)[2], uint32_t(&a)[STEPS][4]) { unfold<STEPS>(g, f, window, at, a); },
            [&](const lane_columns &each, int32_t(&part)[4][4], const lane_rows &rows, int first) {
                store_line_quarter(g, v, h, each, part, rows, first, f.in_eights);
            });
}

/* Terms come in steps of 32 bytes. */
int steps_of(const cuda_qgemm *g)
{
    return (g->kernel[0] * g->chunks + 1) / 2;
}

lines_form lines_form_of(const cuda_qgemm *g, const cuda_qlines *l, int lines)
{
    lines_form f = {};
    f.in = *l;
    f.lines = lines;
    f.bands = (g->out[0] + lines - 1) / lines;
    f.seen = most_int((int64_t)(lines - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1);
    f.lead = (int)(-(l->begin * l->channels) & 3);
    const int64_t last = f.lead + (l->out - 1) * l->stride * l->channels + 2 * CUDA_QCHUNK + 4,
                  image = f.lead + (l->begin + l->in) * l->channels;
    f.pitch = most_int(((last > image ? last : image) + CUDA_QCHUNK - 1) / CUDA_QCHUNK * CUDA_QCHUNK);
    return f;
}

size_t lines_bytes(const cuda_qgemm *g, const lines_form *f)
{
    return (size_t)((steps_of(g) + 3) / 4 * LINE_TILE_FILTERS * PANEL_ROW + PANEL_ALIGNMENT) +
           (size_t)f->seen * (size_t)f->pitch;
}

int lines_of(const cuda_qgemm *g, const cuda_qlines *l)
{
    return lines_of_block(g, MOST_LINES, [&](int lines) {
        const lines_form f = lines_form_of(g, l, lines);
        return lines_bytes(g, &f) <= MOST_BYTES;
    });
}

template <int STEPS, bool SIGNED>
grt_status launch_lines(const cuda_qgemm *g, const view &v, const lines_form &f, cudaStream_t stream)
{
    const size_t bytes = panels_of_lines<STEPS>::BYTES + PANEL_ALIGNMENT + (size_t)f.seen * (size_t)f.pitch;
    const dim3 grid((unsigned)(g->images * f.bands),
                    (unsigned)((g->n + LINE_TILE_FILTERS - 1) / LINE_TILE_FILTERS));
    const auto kernel = multiply_lines<STEPS, SIGNED>;
    /* The most that any has: the limit is the kernel's, which other threads launch with other sizes. */
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_BYTES));
    CUDA_TRY(overlap_launch(g->overlaps, kernel, grid, LINES_THREADS, bytes, stream, *g, v, f));
    return GRT_OK;
}

template <bool SIGNED>
grt_status launch_steps(const cuda_qgemm *g, const view &v, const lines_form &f, cudaStream_t stream)
{
    if (steps_of(g) <= 2)
        return launch_lines<2, SIGNED>(g, v, f, stream);
    if (steps_of(g) <= 4)
        return launch_lines<4, SIGNED>(g, v, f, stream);
    return launch_lines<7, SIGNED>(g, v, f, stream);
}

} // namespace

bool cuda_qgemm_lines_fits(const cuda_qgemm *g, const cuda_qlines *l)
{
    return g->has_warpgroups && !g->sums_rows && g->items == 1 && g->chunks <= 2 && steps_of(g) <= 7 &&
           l->dilation == 1 && l->begin >= 0 && (int64_t)g->images * g->out[0] < INT32_MAX &&
           lines_of(g, l) > 0;
}

grt_status cuda_qgemm_lines_enqueue(const cuda_qgemm *g, const cuda_qlines *l, const void *x, const void *w,
                                    const void *residual, const cuda_qfinish *finish, void *y,
                                    cudaStream_t stream)
{
    const view v = view_of(g, x, w, residual, finish, y);
    lines_form f = lines_form_of(g, l, lines_of(g, l));
    f.in_words = ((uintptr_t)x | (uintptr_t)l->step_image | (uintptr_t)l->step_line) % 4 == 0 &&
                 (l->step_channel == 1 ? l->step_pixel == l->channels && l->in * l->channels % 4 == 0
                                       : l->step_pixel == 1 && l->in % 4 == 0 && l->step_channel % 4 == 0);
    f.in_eights = cuda_qgemm_in_eights(g, residual, y);
    return g->x_signed ? launch_steps<true>(g, v, f, stream) : launch_steps<false>(g, v, f, stream);
}

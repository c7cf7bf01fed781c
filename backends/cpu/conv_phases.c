/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_phases.h. Result s * i + r - begin is the sum over m of input i - m times tap r + s * m. The
 * results of one i are a cell, a row of s * channels floats; tap m of all phases r takes rows of inputs to
 * cells m further on. A block of cells stays in a cache while products are added to it; blocks do not depend
 * on the number of threads, so that results do not. */
#include "backends/cpu/conv_phases.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    MOST_CELLS = 192, /* of a block */
    STRIP = 12,
    MOST_COLUMNS = 256,  /* of a product, where a phase has no more */
    LEAST_CHANNELS = 16, /* of the input, and of a cell */
};

typedef struct phases_cut {
    int64_t stride, low, cells; /* low: i of the first cell */
    int64_t block, blocks;      /* cells of a block; blocks of an image */
    int64_t most_taps, full;    /* taps of phase 0; phases with as many: the others have one less */
    int64_t chunk, chunks;      /* phases of a product */
    int64_t slot;               /* floats of a product's weights */
    size_t rooms, own, bytes;   /* of the workspace: a bias for each phase, then each thread's cells */
    bool overflow;
} phases_cut;

static int64_t phases_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static void lay_out(const cpu_conv *c, int threads, phases_cut *k)
{
    cpu_layout layout = {0}, own = {0};
    int64_t columns;
    size_t floats = 0;
    k->overflow = __builtin_mul_overflow(k->chunk, c->out_channels, &columns) ||
                  !grt_gemm_packed_b_floats(c->in_channels, columns, &floats) || floats > INT64_MAX;
    if (k->overflow)
        return;
    k->slot = (int64_t)floats;
    cpu_layout_add(&layout, columns, sizeof(float));
    cpu_layout_add(&own, k->block, (size_t)columns * sizeof(float));
    k->own = own.bytes;
    k->rooms = cpu_layout_add(&layout, threads, own.bytes);
    k->bytes = layout.bytes;
    k->overflow = layout.overflow || own.overflow;
}

static phases_cut phases_make_cut(const cpu_conv *c, int threads)
{
    const int64_t s = c->w.stride[0], begin = c->w.begin[0], taps = c->w.kernel[0];
    phases_cut k = {.stride = s, .most_taps = phases_ceil_div(taps, s)};
    k.low = begin < 0 ? -phases_ceil_div(-begin, s) : 0;
    k.cells = grt_max64(c->w.in[0] + k.most_taps - 1, phases_ceil_div(c->w.out[0] + begin, s)) - k.low;
    k.blocks = phases_ceil_div(k.cells, MOST_CELLS);
    k.block = phases_ceil_div(phases_ceil_div(k.cells, k.blocks), STRIP) * STRIP;
    k.blocks = phases_ceil_div(k.cells, k.block);
    k.full = taps - s * (k.most_taps - 1);
    k.chunk = grt_min64(grt_max64(MOST_COLUMNS / c->out_channels, 1), s);
    k.chunks = phases_ceil_div(k.full, k.chunk) + phases_ceil_div(s - k.full, k.chunk);
    lay_out(c, threads, &k);
    return k;
}

/* Phases [*first, *end) have as many taps, which is the result. */
static int64_t phases_of_chunk(const phases_cut *k, int64_t chunk, int64_t *first, int64_t *end)
{
    const int64_t before = phases_ceil_div(k->full, k->chunk);
    const bool full = chunk < before;
    *first = full ? chunk * k->chunk : k->full + (chunk - before) * k->chunk;
    *end = grt_min64(*first + k->chunk, full ? k->full : k->stride);
    return k->most_taps - !full;
}

bool cpu_conv_phases_fits(const cpu_conv *c)
{
    const cpu_window *w = &c->w;
    return c->last && c->groups == 1 && w->spatial == 1 && w->dilation[0] == 1 && w->stride[0] > 1 &&
           w->kernel[0] >= w->stride[0] && c->in_channels >= LEAST_CHANNELS &&
           c->out_channels >= phases_ceil_div(LEAST_CHANNELS, w->stride[0]);
}

/* Where the weights of tap m are. */
static int64_t phases_slot(const phases_cut *k, int64_t m, int64_t chunk)
{
    return (m * k->chunks + chunk) * k->slot;
}

bool cpu_conv_phases_floats(const cpu_conv *c, size_t *out_floats)
{
    const phases_cut k = phases_make_cut(c, 1);
    return !k.overflow && grt_mul_size((size_t)k.most_taps, (size_t)k.chunks, out_floats) &&
           grt_mul_size(*out_floats, (size_t)k.slot, out_floats) &&
           *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

/* The taps from `w` on, which lie beside each other, as columns of as many phases. */
static void pack_phases(const cpu_conv *c, const float *w, int64_t phases, float *packed)
{
    const int64_t out = c->out_channels, panels = phases_ceil_div(phases * out, GRT_GEMM_PANEL);
    for (int64_t p = 0; p < panels; p++)
        for (int64_t i = 0; i < c->in_channels; i++)
            for (int64_t j = p * GRT_GEMM_PANEL; j < (p + 1) * GRT_GEMM_PANEL; j++)
                *packed++ = j < phases * out ? w[(i * out + j % out) * c->w.taps + j / out] : 0.0f;
}

void cpu_conv_phases_pack(const cpu_conv *c, const float *w, float *packed)
{
    const phases_cut k = phases_make_cut(c, 1);
    for (int64_t chunk = 0, first, end; chunk < k.chunks; chunk++) {
        const int64_t taps = phases_of_chunk(&k, chunk, &first, &end);
        for (int64_t m = 0; m < taps; m++)
            pack_phases(c, w + first + m * k.stride, end - first, packed + phases_slot(&k, m, chunk));
    }
}

bool cpu_conv_phases_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    const phases_cut k = phases_make_cut(c, threads);
    *out_bytes = k.bytes;
    return !k.overflow;
}

/* Cells [first, end) of phases [from, to) of an image. */
typedef struct phases_item {
    const cpu_conv *c;
    const phases_cut *k;
    const float *x, *packed, *bias; /* bias: once for each phase */
    int64_t first, end, chunk, from, to, taps;
    float *cells;
    int64_t pitch; /* floats from one cell to the next */
} phases_item;

/* Cells [*low, *high) of the item's have an input for tap m. */
static void cells_of_tap(const phases_item *it, int64_t m, int64_t *low, int64_t *high)
{
    const int64_t shift = m - it->k->low;
    *low = grt_max64(it->first, shift);
    *high = grt_min64(it->end, shift + it->c->w.in[0]);
}

static void multiply_tap_of_phases(const phases_item *it, int64_t m, bool begins)
{
    const int64_t k = it->c->in_channels;
    int64_t low, high;
    cells_of_tap(it, m, &low, &high);
    const grt_gemm product = {.batch = 1,
                              .m = high - low,
                              .n = (it->to - it->from) * it->c->out_channels,
                              .k = k,
                              .lda = k,
                              .ldc = it->pitch,
                              .b_packed = true,
                              .alpha = 1.0f,
                              .beta = begins ? 0.0f : 1.0f,
                              .bias = begins ? it->bias : NULL};
    if (low < high)
        grt_gemm_run(&product, it->x + (low - m + it->k->low) * k,
                     it->packed + phases_slot(it->k, m, it->chunk), it->cells + (low - it->first) * it->pitch,
                     NULL, 1);
}

/* Cells that no single tap begins. */
static void fill_cells(const phases_item *it)
{
    const size_t bytes = (size_t)((it->to - it->from) * it->c->out_channels) * sizeof(float);
    for (int64_t i = 0; i < it->end - it->first; i++)
        if (it->bias)
            memcpy(it->cells + i * it->pitch, it->bias, bytes);
        else
            memset(it->cells + i * it->pitch, 0, bytes);
}

static void sum_phases(const phases_item *it)
{
    int64_t begun = 0, low, high;
    for (; begun < it->taps; begun++) {
        cells_of_tap(it, begun, &low, &high);
        if (low == it->first && high == it->end)
            break;
    }
    if (begun < it->taps)
        multiply_tap_of_phases(it, begun, true);
    else
        fill_cells(it);
    for (int64_t m = 0; m < it->taps; m++)
        if (m != begun)
            multiply_tap_of_phases(it, m, false);
}

/* The cells' results that the line at y has. */
static void copy_cells(const phases_item *it, int64_t at, float *y)
{
    const int64_t n = it->c->out_channels, width = it->to - it->from;
    for (int64_t i = 0; i < it->end - it->first; i++, at += it->k->stride) {
        const int64_t low = grt_max64(at, 0), high = grt_min64(at + width, it->c->w.out[0]);
        if (low < high)
            memcpy(y + low * n, it->cells + i * it->pitch + (low - at) * n,
                   (size_t)((high - low) * n) * sizeof *y);
    }
}

/* Cells that lie in the line as a whole are made in place. */
static void run_phases(phases_item it, int64_t block, float *y, float *room)
{
    const phases_cut *k = it.k;
    const int64_t n = it.c->out_channels;
    it.first = block * k->block;
    it.end = grt_min64(it.first + k->block, k->cells);
    it.taps = phases_of_chunk(k, it.chunk, &it.from, &it.to);
    const int64_t at = (it.first + k->low) * k->stride + it.from - it.c->w.begin[0],
                  last = at + (it.end - it.first - 1) * k->stride + it.to - it.from;
    const bool inside = at >= 0 && last <= it.c->w.out[0];
    it.cells = inside ? y + at * n : room;
    it.pitch = (inside ? k->stride : it.to - it.from) * n;
    sum_phases(&it);
    if (!inside)
        copy_cells(&it, at, y);
}

void cpu_conv_phases_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                         const float *residual, float *y, void *workspace, int threads)
{
    (void)residual; /* transposed convolutions take none over, and no activation */
    const phases_cut k = phases_make_cut(c, threads);
    const int64_t items = k.blocks * k.chunks, n = c->out_channels;
    float *const biases = (float *)workspace;
    char *const rooms = cpu_workspace_at(workspace, k.rooms);
    for (int64_t i = 0; bias && i < k.chunk; i++)
        memcpy(biases + i * n, bias, (size_t)n * sizeof *bias);
#pragma omp parallel for num_threads(threads) if (threads > 1 && c->batch * items > 1) schedule(dynamic)
    for (int64_t i = 0; i < c->batch * items; i++) {
        const int64_t image = i / items;
        const phases_item it = {.c = c,
                                .k = &k,
                                .x = x + image * c->w.in[0] * c->in_channels,
                                .packed = packed,
                                .bias = bias ? biases : NULL,
                                .chunk = i % items % k.chunks};
        run_phases(it, i % items / k.chunks, y + image * c->w.out[0] * n,
                   (float *)(void *)(rooms + (size_t)cpu_thread() * k.own));
    }
}

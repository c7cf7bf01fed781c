/* SPDX-License-Identifier: Apache-2.0 */
/* See qwinograd.h. A tile is 2 x 2 outputs of 4 x 4 inputs. A block of tiles becomes 16 matrices of int16, a
 * row for each tile. Then, for a group of columns after the other, come 16 products, the transform of their
 * sums and the epilogue. Blocks are the threads' pieces of work. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "backends/cpu/qwinograd.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/qgemm_kernel.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    IN = 4,  /* a tile's inputs, in each dim */
    OUT = 2, /* its outputs, and how far the next tile is */
    TAPS = 3,
    POINTS = IN * IN,
    NR = GRT_QGEMM_NR,
    WIDTH = GRT_QGEMM_WIDTH,
    PAIR = 2,
    SHIFT = 2,    /* sums are 2^SHIFT times what they should be */
    FINISHED = 8, /* tiles whose outputs are finished together */
    /* Tiles of a block: as many as keep it in the second-level cache, but enough to pay for reading weights.
     */
    CACHED_BYTES = 256 << 10,
    LEAST_TILES = 24,
    MOST_TILES = 96,
    PARALLEL_WORK = 400000, /* products below which waking a second thread costs more than it saves */
};

/* ---- geometry ---- */

static int64_t qwinograd_tiles_of(int64_t outputs)
{
    return outputs / OUT + outputs % OUT;
}

static bool qwinograd_is_of_kind(const cpu_window *w)
{
    bool plain = w->spatial == 2;
    for (int32_t i = 0; plain && i < w->spatial; i++)
        plain = w->kernel[i] == TAPS && w->stride[i] == 1 && w->dilation[i] == 1;
    return plain;
}

/* Tiles of few outputs save nothing, and few tiles do not pay for reading weights. */
static bool fills_tiles(const cpu_window *w)
{
    const double least_tiles = 4.0, least_of_a_tile = 2.75;
    if (w->out[0] <= 0 || w->out[1] <= 0)
        return true;
    const double tiles = (double)qwinograd_tiles_of(w->out[0]) * (double)qwinograd_tiles_of(w->out[1]);
    return tiles >= least_tiles && (double)w->out[0] * (double)w->out[1] >= least_of_a_tile * tiles;
}

bool cpu_qwinograd_fits(const grt_qgemm_kernel *kernel, const cpu_window *w, int64_t channels,
                        int64_t filters, cpu_qwinograd *out)
{
    enum { LEAST_CHANNELS = 16, LEAST_FILTERS = 4 }; /* with fewer the transforms cost what they save */
    *out = (cpu_qwinograd){kernel ? kernel : grt_qgemm_kernels()[0], channels, filters};
    return out->kernel->pairs && qwinograd_is_of_kind(w) && fills_tiles(w) && channels >= LEAST_CHANNELS &&
           filters >= LEAST_FILTERS && channels <= INT32_MAX && filters <= INT32_MAX;
}

/* Where the regions of the scratch are, and how work is cut. */
typedef struct qwinograd_cut {
    int64_t across, per_image, tiles; /* of an output line, of an image, in all */
    int64_t block, blocks;            /* tiles of a block; blocks */
    int64_t row, step;                /* int16 from row to row, and from matrix to matrix */
    int threads;
    size_t inputs, sums, outside, own; /* offsets of a thread's regions; bytes of them together */
    bool overflow;
} qwinograd_cut;

static int64_t qwinograd_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Even blocks, of whole strips where there are several. */
static void qwinograd_cut_tiles(const cpu_qwinograd *c, qwinograd_cut *k)
{
    const int64_t strip = c->kernel->pairs->mr,
                  bytes = POINTS * (k->row * (int64_t)sizeof(int16_t) + WIDTH * (int64_t)sizeof(int32_t)),
                  most = grt_max64(grt_min64(CACHED_BYTES / bytes, MOST_TILES), LEAST_TILES);
    int64_t rounds = qwinograd_ceil_div(k->tiles, most);
    if (k->tiles < INT32_MAX)
        rounds = qwinograd_ceil_div(rounds, k->threads) * k->threads;
    k->block = grt_max64(qwinograd_ceil_div(k->tiles, rounds > 0 ? rounds : 1), 1);
    if (k->block < k->tiles)
        k->block = qwinograd_ceil_div(k->block, strip) * strip;
    k->blocks = qwinograd_ceil_div(k->tiles, k->block);
}

static qwinograd_cut qwinograd_make_cut(const cpu_qwinograd *c, const cpu_window *w, int64_t images,
                                        int threads)
{
    qwinograd_cut k = {.across = qwinograd_tiles_of(w->out[1]), .threads = threads < 1 ? 1 : threads};
    k.overflow = __builtin_mul_overflow(qwinograd_tiles_of(w->out[0]), k.across, &k.per_image) ||
                 __builtin_mul_overflow(k.per_image, images, &k.tiles);
    if (k.overflow)
        return k;
    if ((double)k.tiles * POINTS * (double)c->channels * (double)c->filters < PARALLEL_WORK)
        k.threads = 1;
    k.row = qwinograd_ceil_div(c->channels, PAIR) * PAIR;
    qwinograd_cut_tiles(c, &k);
    k.step = k.block * k.row;
    cpu_layout own = {0};
    k.inputs = cpu_layout_add(&own, k.step, POINTS * sizeof(int16_t));
    k.sums = cpu_layout_add(&own, k.block, POINTS * WIDTH * sizeof(int32_t));
    k.outside = cpu_layout_add(&own, c->channels, 1);
    k.own = own.bytes;
    k.overflow = own.overflow;
    return k;
}

bool cpu_qwinograd_scratch_bytes(const cpu_qwinograd *c, const cpu_window *w, int64_t images, int threads,
                                 size_t *out_bytes)
{
    const qwinograd_cut k = qwinograd_make_cut(c, w, images, threads);
    return !k.overflow && grt_mul_size(k.own, (size_t)k.threads, out_bytes);
}

/* ---- weights ---- */

static int64_t qwinograd_panel_bytes(const cpu_qwinograd *c)
{
    return qwinograd_ceil_div(c->channels, PAIR) * GRT_QGEMM_GROUP_BYTES;
}

/* Panels in the order in which they are read: of WIDTH columns all points, and of a point all panels. */
static int64_t qwinograd_panel_at(const cpu_qwinograd *c, int64_t panel, int64_t point)
{
    enum { TOGETHER = WIDTH / NR };
    const int64_t first = panel / TOGETHER * TOGETHER, panels = qwinograd_ceil_div(c->filters, NR);
    return (first * POINTS + point * grt_min64(TOGETHER, panels - first) + panel % TOGETHER) *
           qwinograd_panel_bytes(c);
}

bool cpu_qwinograd_packed_bytes(const cpu_qwinograd *c, size_t *out_bytes)
{
    cpu_layout layout = {0};
    cpu_layout_add(&layout, qwinograd_ceil_div(c->filters, NR), (size_t)qwinograd_panel_bytes(c));
    return !layout.overflow && grt_mul_size(layout.bytes, POINTS, out_bytes) && *out_bytes <= SIZE_MAX / 2;
}

static int32_t qwinograd_number(const uint8_t *data, bool is_signed, int64_t i)
{
    return is_signed ? (int8_t)data[i] : data[i];
}

/* A line of three weights, or of their sums, as four numbers: twice G's rows. */
static void transform_line(const int32_t *from, int64_t step, int32_t *to, int64_t to_step)
{
    const int32_t outer = from[0] + from[2 * step], inner = from[step];
    to[0] = 2 * from[0];
    to[to_step] = outer + inner;
    to[2 * to_step] = outer - inner;
    to[3 * to_step] = 2 * from[2 * step];
}

/* Weights of a filter and a channel, less their zero point, to the same place of 16 panels. */
static void transform_weights(const int32_t *taps, char *to, int64_t step)
{
    int32_t half[TAPS][IN], points[POINTS];
    for (int i = 0; i < TAPS; i++)
        transform_line(taps + i * TAPS, 1, half[i], 1);
    for (int j = 0; j < IN; j++)
        transform_line(half[0] + j, IN, points + j, IN);
    for (int p = 0; p < POINTS; p++) {
        const int16_t v = (int16_t)points[p];
        memcpy(to + p * step, &v, sizeof v);
    }
}

/* Filter f, channel x; adds up its weights and their magnitudes. */
static void pack_place(const cpu_qwinograd *c, const cpu_qwinograd_weights *w, int64_t f, int64_t x,
                       char *packed, int64_t *sum, int64_t *magnitude)
{
    const int32_t zero = w->zero ? qwinograd_number(w->zero, w->is_signed, w->zero_each ? f : 0) : 0;
    const int64_t from = (f * c->channels + x) * TAPS * TAPS;
    int32_t taps[TAPS * TAPS];
    for (int t = 0; t < TAPS * TAPS; t++) {
        taps[t] = qwinograd_number(w->data, w->is_signed, from + t) - zero;
        *sum += taps[t];
        *magnitude += taps[t] < 0 ? -taps[t] : taps[t];
    }
    const int64_t at = qwinograd_panel_at(c, f / NR, 0), step = qwinograd_panel_at(c, f / NR, 1) - at;
    transform_weights(taps,
                      packed + at + x / PAIR * GRT_QGEMM_GROUP_BYTES +
                          (f % NR * PAIR + x % PAIR) * (int64_t)sizeof(int16_t),
                      step);
}

bool cpu_qwinograd_pack(const cpu_qwinograd *c, const cpu_qwinograd_weights *w, void *packed, int32_t *sums)
{
    bool fits = true;
    memset(packed, 0, (size_t)(qwinograd_ceil_div(c->filters, NR) * qwinograd_panel_bytes(c) * POINTS));
    for (int64_t panel = 0; panel < c->filters; panel += NR) {
        const int64_t columns = grt_min64(NR, c->filters - panel);
        int64_t sum[NR] = {0}, magnitude[NR] = {0};
        for (int64_t x = 0; x < c->channels; x++)
            for (int64_t j = 0; j < columns; j++)
                pack_place(c, w, panel + j, x, packed, &sum[j], &magnitude[j]);
        for (int64_t j = 0; j < columns; j++) {
            sums[panel + j] = (int32_t)(uint32_t)(uint64_t)sum[j];
            fits = fits && magnitude[j] <= (INT32_MAX >> SHIFT) / UINT8_MAX;
        }
    }
    return fits;
}

/* ---- run ---- */

/* The 4 x 4 inputs at `from`, n channels of each, to a row of 16 matrices. */
CPU_BODY qwinograd_transform_body(const uint8_t *const *from, uint8_t flip, int16_t *to, int64_t step,
                                  int64_t n)
{
    const uint8_t *const d00 = from[0], *const d01 = from[1], *const d02 = from[2], *const d03 = from[3],
                         *const d10 = from[4], *const d11 = from[5], *const d12 = from[6],
                         *const d13 = from[7], *const d20 = from[8], *const d21 = from[9],
                         *const d22 = from[10], *const d23 = from[11], *const d30 = from[12],
                         *const d31 = from[13], *const d32 = from[14], *const d33 = from[15];
#define AT(d) ((int16_t)(d[j] ^ flip))
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const int16_t column[IN][IN] = {
            {(int16_t)(AT(d00) - AT(d20)), (int16_t)(AT(d01) - AT(d21)), (int16_t)(AT(d02) - AT(d22)),
             (int16_t)(AT(d03) - AT(d23))},
            {(int16_t)(AT(d10) + AT(d20)), (int16_t)(AT(d11) + AT(d21)), (int16_t)(AT(d12) + AT(d22)),
             (int16_t)(AT(d13) + AT(d23))},
            {(int16_t)(AT(d20) - AT(d10)), (int16_t)(AT(d21) - AT(d11)), (int16_t)(AT(d22) - AT(d12)),
             (int16_t)(AT(d23) - AT(d13))},
            {(int16_t)(AT(d10) - AT(d30)), (int16_t)(AT(d11) - AT(d31)), (int16_t)(AT(d12) - AT(d32)),
             (int16_t)(AT(d13) - AT(d33))},
        };
#pragma GCC unroll 4
        for (int i = 0; i < IN; i++) {
            int16_t *row = to + i * IN * step + j;
            row[0] = (int16_t)(column[i][0] - column[i][2]);
            row[step] = (int16_t)(column[i][1] + column[i][2]);
            row[2 * step] = (int16_t)(column[i][2] - column[i][1]);
            row[3 * step] = (int16_t)(column[i][1] - column[i][3]);
        }
    }
#undef AT
}
CPU_DISPATCH(qwinograd_transform,
             (const uint8_t *const *from, uint8_t flip, int16_t *to, int64_t step, int64_t n),
             (from, flip, to, step, n))

/* Sums of `tiles` tiles, `step` apart from matrix to matrix, to as many pairs of pixels of two lines. */
CPU_BODY qwinograd_outputs_body(const int32_t *sums, int64_t step, int64_t tiles, int32_t *first,
                                int32_t *second)
{
    for (int64_t t = 0; t < tiles; t++, sums += WIDTH, first += OUT * WIDTH, second += OUT * WIDTH) {
#pragma omp simd
        for (int j = 0; j < WIDTH; j++) {
            uint32_t left[IN], right[IN];
#pragma GCC unroll 4
            for (int i = 0; i < IN; i++) {
                const int32_t *m = sums + i * IN * step + j;
                left[i] = (uint32_t)m[0] + (uint32_t)m[step] + (uint32_t)m[2 * step];
                right[i] = (uint32_t)m[step] - (uint32_t)m[2 * step] - (uint32_t)m[3 * step];
            }
            first[j] = (int32_t)(left[0] + left[1] + left[2]) >> SHIFT;
            first[WIDTH + j] = (int32_t)(right[0] + right[1] + right[2]) >> SHIFT;
            second[j] = (int32_t)(left[1] - left[2] - left[3]) >> SHIFT;
            second[WIDTH + j] = (int32_t)(right[1] - right[2] - right[3]) >> SHIFT;
        }
    }
}
CPU_DISPATCH(qwinograd_outputs,
             (const int32_t *sums, int64_t step, int64_t tiles, int32_t *first, int32_t *second),
             (sums, step, tiles, first, second))

/* A run. */
typedef struct qwinograd_work {
    const cpu_qwinograd *c;
    const qwinograd_cut *k;
    const cpu_qwindow *q;
    const char *packed;
    const grt_qgemm_finish *finish;
    char *y;
} qwinograd_work;

/* Tile t's place: its image, and the first of its output pixels. */
typedef struct qwinograd_place {
    int64_t image, row, col;
} qwinograd_place;

static qwinograd_place qwinograd_place_of(const qwinograd_cut *k, int64_t t)
{
    const int64_t in_image = t % k->per_image;
    return (qwinograd_place){t / k->per_image, in_image / k->across * OUT, in_image % k->across * OUT};
}

static void qwinograd_gather(const qwinograd_work *w, int64_t tile, const uint8_t *outside, int16_t *to)
{
    const cpu_window *win = w->q->w;
    const int64_t n = w->c->channels;
    const qwinograd_place at = qwinograd_place_of(w->k, tile);
    const uint8_t *image = w->q->x + at.image * win->in_pixels * n, *from[POINTS];
    for (int i = 0; i < IN; i++) {
        const int64_t row = at.row - win->begin[0] + i, col = at.col - win->begin[1];
        const bool inside = row >= 0 && row < win->in[0];
        const uint8_t *line = image + (inside ? row * win->in[1] * n : 0);
        for (int j = 0; j < IN; j++)
            from[i * IN + j] =
                inside && col + j >= 0 && col + j < win->in[1] ? line + (col + j) * n : outside;
    }
    qwinograd_transform(from, w->q->flip, to, w->k->step, n);
    for (int p = 0; p < POINTS && w->k->row > n; p++)
        to[p * w->k->step + n] = 0; /* B has zeros there; but it is read */
}

/* A panel's products. What comes behind it lies in no near cache. */
static void qwinograd_multiply(const qwinograd_work *w, int64_t tiles, const int16_t *inputs, const char *b,
                               int64_t panels, int32_t *sums)
{
    enum { LINE = 64 };
    const grt_qgemm_kernel *kernel = w->c->kernel->pairs;
    const int64_t stride = qwinograd_panel_bytes(w->c), lda = w->k->row * (int64_t)sizeof *inputs,
                  strips = qwinograd_ceil_div(tiles, kernel->mr), each = qwinograd_ceil_div(tiles, strips),
                  ahead = qwinograd_ceil_div(panels * stride, strips * LINE) * LINE;
    const char *next = b + panels * stride;
    for (int64_t i = 0; i < tiles; i += each, next += ahead) {
        for (int64_t x = 0; x < ahead; x += LINE)
            __builtin_prefetch(next + x, 0, 2);
        kernel->block((int)grt_min64(each, tiles - i), (int)panels, w->k->row / PAIR, inputs + i * w->k->row,
                      lda, b, stride, false, sums + i * WIDTH);
    }
}

/* All points of columns [col, col + WIDTH). */
static void qwinograd_multiply_points(const qwinograd_work *w, int64_t tiles, int64_t col,
                                      const int16_t *inputs, int32_t *sums)
{
    const int64_t panels = qwinograd_ceil_div(grt_min64(w->c->filters - col, WIDTH), NR),
                  most = w->c->kernel->pairs->panels;
    for (int point = 0; point < POINTS; point++, inputs += w->k->step, sums += w->k->block * WIDTH)
        for (int64_t p = 0; p < panels; p += most)
            qwinograd_multiply(w, tiles, inputs, w->packed + qwinograd_panel_at(w->c, col / NR + p, point),
                               grt_min64(most, panels - p), sums + p * NR);
}

/* A line of `pixels` outputs from `at` on. */
static void qwinograd_finish_line(const qwinograd_work *w, const qwinograd_place *at, int64_t pixels,
                                  int64_t col, const int32_t *outputs)
{
    const cpu_window *win = w->q->w;
    const grt_qgemm_finish *f = w->finish;
    const int64_t n = w->c->filters, size = f->y_dtype == GRT_DTYPE_FLOAT ? (int64_t)sizeof(float) : 1,
                  pixel = at->image * win->out_pixels + at->row * win->out[1] + at->col;
    const uint8_t *residual = f->residual ? (const uint8_t *)f->residual + pixel * f->ldr + col : NULL;
    w->c->kernel->finish(f, col, (int)pixels, grt_min64(n - col, WIDTH), outputs, NULL, residual,
                         w->y + (pixel * n + col) * size, n);
}

/* Columns from `col` on of tiles [first, end). */
static void qwinograd_finish(const qwinograd_work *w, int64_t first, int64_t end, int64_t col,
                             const int32_t *sums)
{
    _Alignas(64) int32_t outputs[OUT][OUT * FINISHED * WIDTH];
    const cpu_window *win = w->q->w;
    for (int64_t t = first, now; t < end; t += now, sums += now * WIDTH) {
        qwinograd_place at = qwinograd_place_of(w->k, t);
        now = grt_min64(grt_min64(w->k->across - at.col / OUT, end - t), FINISHED);
        const int64_t pixels = grt_min64(OUT * now, win->out[1] - at.col);
        qwinograd_outputs(sums, w->k->block * WIDTH, now, outputs[0], outputs[1]);
        for (int i = 0; i < OUT && at.row < win->out[0]; i++, at.row++)
            qwinograd_finish_line(w, &at, pixels, col, outputs[i]);
    }
}

static void qwinograd_run_block(const qwinograd_work *w, int64_t first, int64_t end, char *own)
{
    int16_t *inputs = (int16_t *)(void *)(own + w->k->inputs);
    int32_t *sums = (int32_t *)(void *)(own + w->k->sums);
    uint8_t *outside = (uint8_t *)own + w->k->outside;
    memset(outside, w->q->zero ^ w->q->flip, (size_t)w->c->channels);
    for (int64_t t = first; t < end; t++)
        qwinograd_gather(w, t, outside, inputs + (t - first) * w->k->row);
    for (int64_t col = 0; col < w->c->filters; col += WIDTH) {
        qwinograd_multiply_points(w, end - first, col, inputs, sums);
        qwinograd_finish(w, first, end, col, sums);
    }
}

void cpu_qwinograd_run(const cpu_qwinograd *c, const cpu_qwindow *window, const void *packed,
                       const grt_qgemm_finish *finish, void *y, void *scratch, int threads)
{
    const qwinograd_cut k = qwinograd_make_cut(c, window->w, window->images, threads);
    const qwinograd_work w = {c, &k, window, packed, finish, y};
    if (k.threads == 1) { /* without any OpenMP construct, so that a caller's parallel region may hold it */
        for (int64_t i = 0; i < k.blocks; i++)
            qwinograd_run_block(&w, i * k.block, grt_min64((i + 1) * k.block, k.tiles), scratch);
        return;
    }
#pragma omp parallel for num_threads(k.threads) schedule(dynamic)
    for (int64_t i = 0; i < k.blocks; i++)
        qwinograd_run_block(&w, i * k.block, grt_min64((i + 1) * k.block, k.tiles),
                            (char *)scratch + (size_t)cpu_thread() * k.own);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd.h. A tile is 2 x 2 outputs of 4 x 4 inputs. A block of tiles goes through all three steps
 * while it is in a cache: inputs to 16 matrices (a row for each tile), 16 products, sums to outputs. Blocks
 * are the threads' pieces of work; each tile is computed alike in any block, so that results depend on
 * neither the number of threads nor the blocks. */
#include "backends/cpu/conv_winograd.h"

#include "backends/cpu/act_apply.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/threads.h"
#include "src/base/int64.h"

#include <math.h>

enum {
    IN = 4,  /* a tile's inputs, in each dim */
    OUT = 2, /* its outputs, and how far the next tile is */
    TAPS = 3,
    POINTS = IN * IN,
    STRIP = 12, /* rows that products take together; the blocks of AVX2's kernel divide it */
    /* Tiles of a block: as many as keep it in the second-level cache, but enough to pay for reading weights.
     */
    CACHED_FLOATS = 8192 * POINTS,
    LEAST_TILES = 8 * STRIP,
    MOST_TILES = 16 * STRIP,
    GAP = 80, /* floats between matrices, so that their rows do not share cache sets */
};

/* Where the regions of the workspace are, and how work is cut. */
typedef struct cut {
    int64_t across, per_image, tiles;         /* of an output line, of an image, in all */
    int64_t block, blocks;                    /* tiles of a block; blocks */
    int64_t in_step, out_step;                /* floats from one matrix to the next */
    int64_t zeros;                            /* in place of a line of a tile outside, or of the bias */
    size_t nothing, spill, inputs, sums, own; /* offsets of a thread's regions; bytes of them together */
    bool overflow;
} cut;

/* ---- geometry ---- */

static bool is_plain_3x3(const cpu_conv *c)
{
    const cpu_window *w = &c->w;
    bool plain = c->last && c->groups == 1 && w->spatial == 2;
    for (int32_t i = 0; plain && i < w->spatial; i++)
        plain = w->kernel[i] == TAPS && w->stride[i] == 1 && w->dilation[i] == 1;
    return plain;
}

static int64_t winograd_tiles_of(int64_t outputs)
{
    return outputs / OUT + outputs % OUT;
}

bool cpu_winograd_fits(const cpu_conv *c)
{
    /* Few channels: the transforms cost more than they save. Few tiles: reading the weights does. */
    enum { LEAST_CHANNELS = 16, LEAST_FILTERS = 512, LEAST_TILES_IN_ALL = 36, MOST_FILTERS_A_TILE = 6000 };
    if (!is_plain_3x3(c) || c->in_channels < LEAST_CHANNELS || c->out_channels < LEAST_CHANNELS)
        return false;
    const double tiles = (double)c->batch * (double)winograd_tiles_of(c->w.out[0]) *
                         (double)winograd_tiles_of(c->w.out[1]),
                 filters = (double)c->in_channels * (double)c->out_channels;
    return filters >= LEAST_FILTERS && tiles >= LEAST_TILES_IN_ALL && filters <= MOST_FILTERS_A_TILE * tiles;
}

/* Tiles of each of `blocks` blocks, in whole strips; one strip where there are no tiles. */
static int64_t strips_of(int64_t tiles, int64_t blocks)
{
    const int64_t even = tiles > 0 ? tiles / blocks + (tiles % blocks != 0) : 1;
    return (even + STRIP - 1) / STRIP * STRIP;
}

static cut make_cut(const cpu_conv *c, int threads)
{
    cut k = {.across = winograd_tiles_of(c->w.out[1])};
    k.overflow = __builtin_mul_overflow(winograd_tiles_of(c->w.out[0]), k.across, &k.per_image) ||
                 __builtin_mul_overflow(k.per_image, c->batch, &k.tiles);
    if (k.overflow)
        return k;
    int64_t most = CACHED_FLOATS / POINTS / (c->in_channels + c->out_channels) / STRIP * STRIP;
    most = most < LEAST_TILES ? LEAST_TILES : most > MOST_TILES ? MOST_TILES : most;
    /* Every thread gets as many blocks, of whole strips. One round fewer of larger blocks may end sooner. */
    const int64_t round = most * threads, rounds = k.tiles / round + (k.tiles % round != 0);
    k.block = strips_of(k.tiles, rounds * threads);
    if (rounds > 1) {
        const int64_t larger = strips_of(k.tiles, (rounds - 1) * threads);
        if (larger <= most + most / 4 && (rounds - 1) * larger < rounds * k.block)
            k.block = larger;
    }
    k.blocks = k.tiles / k.block + (k.tiles % k.block != 0);
    k.in_step = k.block * c->in_channels + GAP;
    k.out_step = k.block * c->out_channels + GAP;
    cpu_layout own = {0};
    k.zeros = grt_max64(IN * c->in_channels, c->out_channels);
    k.nothing = cpu_layout_add(&own, k.zeros, sizeof(float));
    k.spill = cpu_layout_add(&own, c->out_channels, sizeof(float));
    k.inputs = cpu_layout_add(&own, k.in_step * POINTS, sizeof(float));
    k.sums = cpu_layout_add(&own, k.out_step * POINTS, sizeof(float));
    k.own = own.bytes;
    k.overflow = own.overflow;
    return k;
}

bool cpu_winograd_bytes(const cpu_conv *c, int threads, size_t *out_bytes)
{
    const cut k = make_cut(c, threads);
    return !k.overflow && grt_mul_size(k.own, (size_t)threads, out_bytes);
}

/* ---- weights ---- */

bool cpu_winograd_floats(const cpu_conv *c, size_t *out_floats)
{
    return grt_gemm_packed_b_floats(c->in_channels, c->out_channels, out_floats) &&
           grt_mul_size(*out_floats, POINTS, out_floats) && *out_floats <= SIZE_MAX / sizeof(float) / 2;
}

/* A panel's filters of one input channel, `from` floats apart, to the same row of 16 matrices. In double, so
 * that each result is rounded once. */
CPU_BODY transform_filters_body(const float *w, int64_t from, int64_t n, float *to, size_t step)
{
    double taps[TAPS][TAPS][GRT_GEMM_PANEL] = {{{0}}};
    for (int64_t j = 0; j < n; j++)
        for (int t = 0; t < TAPS * TAPS; t++)
            taps[t / TAPS][t % TAPS][j] = w[j * from + t];
#pragma omp simd
    for (int j = 0; j < GRT_GEMM_PANEL; j++) {
        double half[IN][TAPS];
#pragma GCC unroll 3
        for (int x = 0; x < TAPS; x++) {
            const double outer = taps[0][x][j] + taps[2][x][j];
            half[0][x] = taps[0][x][j];
            half[1][x] = 0.5 * (outer + taps[1][x][j]);
            half[2][x] = 0.5 * (outer - taps[1][x][j]);
            half[3][x] = taps[2][x][j];
        }
#pragma GCC unroll 4
        for (int i = 0; i < IN; i++) {
            float *row = to + (size_t)(i * IN) * step + j;
            const double outer = half[i][0] + half[i][2];
            row[0] = (float)half[i][0];
            row[step] = (float)(0.5 * (outer + half[i][1]));
            row[2 * step] = (float)(0.5 * (outer - half[i][1]));
            row[3 * step] = (float)half[i][2];
        }
    }
}
CPU_DISPATCH(transform_filters, (const float *w, int64_t from, int64_t n, float *to, size_t step),
             (w, from, n, to, step))

void cpu_winograd_pack(const cpu_conv *c, const float *w, float *packed)
{
    const int64_t k = c->in_channels, n = c->out_channels;
    size_t step;
    grt_gemm_packed_b_floats(k, n, &step);
    for (int64_t panel = 0; panel < n; panel += GRT_GEMM_PANEL)
        for (int64_t x = 0; x < k; x++)
            transform_filters(w + (panel * k + x) * TAPS * TAPS, k * TAPS * TAPS,
                              n - panel < GRT_GEMM_PANEL ? n - panel : GRT_GEMM_PANEL,
                              packed + panel * k + x * GRT_GEMM_PANEL, step);
}

/* ---- run ---- */

/* The 4 x 4 inputs at `from`, n channels of each, to row `to` of 16 matrices. */
CPU_BODY transform_inputs_body(const float *const *from, float *to, int64_t step, int64_t n)
{
    const float *const d00 = from[0], *const d01 = from[1], *const d02 = from[2], *const d03 = from[3],
                       *const d10 = from[4], *const d11 = from[5], *const d12 = from[6], *const d13 = from[7],
                       *const d20 = from[8], *const d21 = from[9], *const d22 = from[10],
                       *const d23 = from[11], *const d30 = from[12], *const d31 = from[13],
                       *const d32 = from[14], *const d33 = from[15];
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float column[IN][IN] = {
            {d00[j] - d20[j], d01[j] - d21[j], d02[j] - d22[j], d03[j] - d23[j]},
            {d10[j] + d20[j], d11[j] + d21[j], d12[j] + d22[j], d13[j] + d23[j]},
            {d20[j] - d10[j], d21[j] - d11[j], d22[j] - d12[j], d23[j] - d13[j]},
            {d10[j] - d30[j], d11[j] - d31[j], d12[j] - d32[j], d13[j] - d33[j]},
        };
#pragma GCC unroll 4
        for (int i = 0; i < IN; i++) {
            float *row = to + i * IN * step + j;
            row[0] = column[i][0] - column[i][2];
            row[step] = column[i][1] + column[i][2];
            row[2 * step] = column[i][2] - column[i][1];
            row[3 * step] = column[i][1] - column[i][3];
        }
    }
}
CPU_DISPATCH(transform_inputs, (const float *const *from, float *to, int64_t step, int64_t n),
             (from, to, step, n))

/* Neighbours in a line of tiles that read nothing beside the image: inputs of the first are in rows[0..3],
 * those of the next one `moves` floats behind. */
CPU_BODY transform_neighbours_body(const float *const *rows, const int64_t *moves, int64_t tiles, float *to,
                                   int64_t step, int64_t n)
{
    for (int64_t t = 0; t < tiles; t++) {
        const float *from[POINTS];
#pragma GCC unroll 16
        for (int i = 0; i < POINTS; i++)
            from[i] = rows[i / IN] + t * moves[i / IN] + i % IN * n;
        transform_inputs_body(from, to + t * n, step, n);
    }
}
CPU_DISPATCH(transform_neighbours,
             (const float *const *rows, const int64_t *moves, int64_t tiles, float *to, int64_t step,
              int64_t n),
             (rows, moves, tiles, to, step, n))

/* What becomes of a tile's sums. */
typedef struct finish {
    const float *bias;
    const float *residual[4]; /* one for each output; all NULL: none */
    float *to[4];
    grt_act act;
    int64_t n; /* channels */
} finish;

/* Row `from` of 16 matrices to 2 x 2 outputs. */
CPU_BODY transform_sums_body(const float *from, int64_t step, const finish *f)
{
    const float least = f->act.kind == GRT_ACT_RELU ? 0.0f : -INFINITY;
    float *const y0 = f->to[0], *const y1 = f->to[1], *const y2 = f->to[2], *const y3 = f->to[3];
    const float *const bias = f->bias, *const r0 = f->residual[0], *const r1 = f->residual[1],
                       *const r2 = f->residual[2], *const r3 = f->residual[3];
    const int64_t n = f->n;
#define SUMS                                                                                           \
    float left[IN], right[IN];                                                                         \
    _Pragma("GCC unroll 4") for (int i = 0; i < IN; i++)                                               \
    {                                                                                                  \
        const float *m = from + i * IN * step + j;                                                     \
        left[i] = (m[0] + m[step]) + m[2 * step];                                                      \
        right[i] = (m[step] - m[2 * step]) - m[3 * step];                                              \
    }                                                                                                  \
    const float b = bias[j], s0 = ((left[0] + left[1]) + left[2]) + b,                                 \
                s1 = ((right[0] + right[1]) + right[2]) + b, s2 = ((left[1] - left[2]) - left[3]) + b, \
                s3 = ((right[1] - right[2]) - right[3]) + b
    if (r0) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            SUMS;
            y0[j] = grt_act_at_least(s0 + r0[j], least);
            y1[j] = grt_act_at_least(s1 + r1[j], least);
            y2[j] = grt_act_at_least(s2 + r2[j], least);
            y3[j] = grt_act_at_least(s3 + r3[j], least);
        }
    } else {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            SUMS;
            y0[j] = grt_act_at_least(s0, least);
            y1[j] = grt_act_at_least(s1, least);
            y2[j] = grt_act_at_least(s2, least);
            y3[j] = grt_act_at_least(s3, least);
        }
    }
#undef SUMS
    if (f->act.kind != GRT_ACT_NONE && f->act.kind != GRT_ACT_RELU)
        for (int i = 0; i < OUT * OUT; i++)
            cpu_act_apply(f->act, f->to[i], n);
}
CPU_DISPATCH(transform_sums, (const float *from, int64_t step, const finish *f), (from, step, f))

/* Neighbours in a line of tiles, all of whose columns the image has. Outputs of the next one in line i of 2
 * are moves[i] floats behind. */
CPU_BODY finish_neighbours_body(const float *from, int64_t step, const finish *first, const int64_t *moves,
                                int64_t tiles)
{
    finish f = *first;
    for (int64_t t = 0; t < tiles; t++, from += f.n) {
        transform_sums_body(from, step, &f);
        for (int i = 0; i < OUT * OUT; i++) {
            f.to[i] += moves[i / OUT];
            f.residual[i] = f.residual[i] ? f.residual[i] + moves[i / OUT] : NULL;
        }
    }
}
CPU_DISPATCH(finish_neighbours,
             (const float *from, int64_t step, const finish *first, const int64_t *moves, int64_t tiles),
             (from, step, first, moves, tiles))

/* A run; own: the running thread's regions. */
typedef struct work {
    const cpu_conv *c;
    const cut *k;
    const float *x, *packed, *bias, *residual;
    float *y;
} work;

/* Tile t's place: its image, and the first of its output pixels. */
typedef struct place {
    int64_t image, row, col;
} place;

static place winograd_place_of(const cut *k, int64_t t)
{
    const int64_t in_image = t % k->per_image;
    return (place){t / k->per_image, in_image / k->across * OUT, in_image % k->across * OUT};
}

static void gather_tile(const work *w, const place *at, const float *nothing, float *to)
{
    const cpu_window *win = &w->c->w;
    const int64_t n = w->c->in_channels;
    const float *image = w->x + at->image * win->in_pixels * n, *from[POINTS];
    for (int i = 0; i < POINTS; i++) {
        const int64_t row = at->row - win->begin[0] + i / IN, col = at->col - win->begin[1] + i % IN;
        const bool inside = row >= 0 && row < win->in[0] && col >= 0 && col < win->in[1];
        from[i] = inside ? image + (row * win->in[1] + col) * n : nothing;
    }
    transform_inputs(from, to, w->k->in_step, n);
}

/* Tiles from the one at `at` on that transform_neighbours takes, `most` at most. */
static int64_t inner_tiles(const work *w, const place *at, int64_t most)
{
    const int64_t col = at->col - w->c->w.begin[1], room = w->c->w.in[1] - IN - col;
    return col < 0 || room < 0 ? 0 : grt_min64(room / OUT + 1, most);
}

static void gather_neighbours(const work *w, const place *at, int64_t tiles, const float *nothing, float *to)
{
    const cpu_window *win = &w->c->w;
    const int64_t n = w->c->in_channels, col = at->col - win->begin[1];
    const float *rows[IN];
    int64_t moves[IN];
    for (int i = 0; i < IN; i++) {
        const int64_t row = at->row - win->begin[0] + i;
        const bool inside = row >= 0 && row < win->in[0];
        rows[i] = inside ? w->x + (at->image * win->in_pixels + row * win->in[1] + col) * n : nothing;
        moves[i] = inside ? OUT * n : 0;
    }
    transform_neighbours(rows, moves, tiles, to, w->k->in_step, n);
}

/* Tiles [first, end) to rows of the 16 matrices at `to`. */
static void gather_tiles(const work *w, int64_t first, int64_t end, const float *nothing, float *to)
{
    const int64_t n = w->c->in_channels;
    for (int64_t t = first, now; t < end; t += now, to += now * n) {
        const place at = winograd_place_of(w->k, t);
        now = inner_tiles(w, &at, grt_min64(w->k->across - at.col / OUT, end - t));
        if (now > 0) {
            gather_neighbours(w, &at, now, nothing, to);
        } else {
            gather_tile(w, &at, nothing, to);
            now = 1;
        }
    }
}

/* From the tile at `at` on, `tiles` of which the image has all columns, or one. Outputs that the image does
 * not have go to `spill`. */
static void scatter_neighbours(const work *w, const place *at, int64_t tiles, const float *from,
                               const float *nothing, float *spill)
{
    const cpu_window *win = &w->c->w;
    const int64_t n = w->c->out_channels, image = at->image * win->out_pixels * n;
    finish f = {.bias = w->bias ? w->bias : nothing, .act = w->c->act, .n = n};
    int64_t moves[OUT];
    for (int i = 0; i < OUT; i++)
        moves[i] = at->row + i < win->out[0] ? OUT * n : 0;
    for (int i = 0; i < OUT * OUT; i++) {
        const int64_t row = at->row + i / OUT, col = at->col + i % OUT;
        const bool inside = row < win->out[0] && col < win->out[1];
        const int64_t offset = image + (row * win->out[1] + col) * n;
        f.to[i] = inside ? w->y + offset : spill;
        if (w->residual)
            f.residual[i] = inside ? w->residual + offset : spill;
    }
    if (tiles == 1)
        transform_sums(from, w->k->out_step, &f);
    else
        finish_neighbours(from, w->k->out_step, &f, moves, tiles);
}

/* Rows of the 16 matrices at `from` to the outputs of tiles [first, end). */
static void scatter_tiles(const work *w, int64_t first, int64_t end, const float *from, const float *nothing,
                          float *spill)
{
    const int64_t n = w->c->out_channels;
    for (int64_t t = first, now; t < end; t += now, from += now * n) {
        const place at = winograd_place_of(w->k, t);
        const int64_t whole = (w->c->w.out[1] - at.col) / OUT;
        now = whole > 0 ? grt_min64(whole, end - t) : 1;
        scatter_neighbours(w, &at, now, from, nothing, spill);
    }
}

static void run_tiles(const work *w, int64_t first, int64_t end, char *own)
{
    const cpu_conv *c = w->c;
    const cut *k = w->k;
    float *inputs = (float *)(void *)(own + k->inputs), *sums = (float *)(void *)(own + k->sums);
    float *nothing = (float *)(void *)(own + k->nothing);
    size_t step;
    memset(nothing, 0, (size_t)k->zeros * sizeof *nothing);
    grt_gemm_packed_b_floats(c->in_channels, c->out_channels, &step);
    gather_tiles(w, first, end, nothing, inputs);
    const grt_gemm products = {.batch = POINTS,
                               .m = end - first,
                               .n = c->out_channels,
                               .k = c->in_channels,
                               .lda = c->in_channels,
                               .ldc = c->out_channels,
                               .stride_a = k->in_step,
                               .stride_b = (int64_t)step,
                               .stride_c = k->out_step,
                               .b_packed = true,
                               .alpha = 1.0f};
    grt_gemm_run(&products, inputs, w->packed, sums, NULL, 1);
    scatter_tiles(w, first, end, sums, nothing, (float *)(void *)(own + k->spill));
}

void cpu_winograd_run(const cpu_conv *c, const float *x, const float *packed, const float *bias,
                      const float *residual, float *y, void *workspace, int threads)
{
    const cut k = make_cut(c, threads);
    const work w = {c, &k, x, packed, bias, residual, y};
#pragma omp parallel for num_threads(threads) if (threads > 1 && k.blocks > 1) schedule(dynamic)
    for (int64_t i = 0; i < k.blocks; i++) {
        char *own = (char *)workspace + (size_t)cpu_thread() * k.own;
        const int64_t first = i * k.block;
        run_tiles(&w, first, first + k.block < k.tiles ? first + k.block : k.tiles, own);
    }
}

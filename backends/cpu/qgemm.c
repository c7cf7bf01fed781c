/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of 8-bit products: packing, tiles, threads. A tile of Y is computed by one thread: its rows of A
 * are made or found once, and stay in the second-level cache while panels of B go by. The whole of k is
 * summed in registers. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/qgemm.h"

#include "backends/cpu/qgemm_kernel.h"
#include "backends/cpu/qstrassen.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"
#include "src/base/int64.h"

#include <math.h>
#include <string.h>

enum {
    NR = GRT_QGEMM_NR,
    WIDTH = GRT_QGEMM_WIDTH,
    A_BYTES = 256 << 10, /* of a tile's rows */
    MOST_ROWS = 192,
    LEAST_COLUMNS = 64,     /* of a tile, where the columns are cut for threads */
    PARALLEL_WORK = 400000, /* multiply-adds below which waking a second thread costs more than it saves */
};

static int64_t qgemm_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- kernels ---- */

const grt_qgemm_kernel *const *grt_qgemm_kernels(void)
{
    enum { MOST = 7 };
    static const grt_qgemm_kernel *list[MOST];
    static int filled;
    if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) { /* every thread writes the same */
        const grt_qgemm_kernel *const all[] = {grt_qgemm_kernel_amx(),       grt_qgemm_kernel_avx512_vnni(),
                                               grt_qgemm_kernel_avx2_vnni(), grt_qgemm_kernel_avx512(),
                                               grt_qgemm_kernel_avx2(),      &grt_qgemm_kernel_c};
        int n = 0;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i])
                __atomic_store_n(&list[n++], all[i], __ATOMIC_RELAXED);
        __atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
    }
    return list;
}

static const grt_qgemm_kernel *best_kernel(int64_t k)
{
    const grt_qgemm_kernel *kernel = grt_qgemm_kernels()[0];
    return k <= kernel->short_k ? kernel->pairs : kernel;
}

const grt_qgemm_kernel *grt_qgemm_kernel_of_few(void)
{
    const grt_qgemm_kernel *kernel = grt_qgemm_kernels()[0];
    return kernel->few ? kernel->few : kernel;
}

/* Whole blocks of the other kernel's are as fast. */
const grt_qgemm_kernel *grt_qgemm_kernel_of_rows(int64_t rows)
{
    const grt_qgemm_kernel *kernel = grt_qgemm_kernels()[0];
    return kernel->few && rows > 0 && rows < 2 * kernel->mr && rows % kernel->mr ? kernel->few : NULL;
}

static void leave(const grt_qgemm_kernel *kernel)
{
    if (kernel->leave)
        kernel->leave();
}

const char *grt_qgemm_kernel_name(void)
{
    return grt_qgemm_kernels()[0]->name;
}

/* ---- packing ---- */

static int64_t groups_of(const grt_qgemm_kernel *kernel, int64_t k)
{
    return qgemm_ceil_div(qgemm_ceil_div(k, grt_qgemm_panel_group(kernel)), kernel->step) * kernel->step;
}

static int64_t panel_bytes_of(const grt_qgemm_kernel *kernel, int64_t k)
{
    return grt_qgemm_panel_head(kernel) + groups_of(kernel, k) * grt_qgemm_panel_group_bytes(kernel);
}

/* Column sums come first. */
static int64_t sums_bytes(int64_t n)
{
    return grt_qgemm_padded(n) * (int64_t)sizeof(int32_t);
}

bool grt_qgemm_b_init(const grt_qgemm_kernel *kernel, int64_t k, int64_t n, bool is_signed, grt_qgemm_b *out)
{
    cpu_layout layout = {0};
    *out = (grt_qgemm_b){.kernel = kernel ? kernel : best_kernel(k), .k = k, .n = n, .is_signed = is_signed};
    if (k < 0 || n < 0 || k > INT32_MAX || n > INT32_MAX)
        return false;
    cpu_layout_add(&layout, sums_bytes(n), 1);
    cpu_layout_add(&layout, qgemm_ceil_div(n, NR), (size_t)panel_bytes_of(out->kernel, k));
    out->bytes = (int64_t)layout.bytes;
    return !layout.overflow;
}

bool grt_qgemm_b_init_constant(const grt_qgemm_kernel *kernel, int64_t rows, int64_t k, int64_t n,
                               bool is_signed, grt_qgemm_b *out)
{
    return grt_qgemm_b_init(kernel, k, n, is_signed, out) &&
           (!grt_qstrassen_pays(out->kernel, rows, k, n) || grt_qgemm_b_halve(out));
}

bool grt_qgemm_b_halve(grt_qgemm_b *b)
{
    const grt_qstrassen s = grt_qstrassen_of(b->kernel, b->k, b->n);
    size_t bytes;
    if (!grt_qstrassen_packed_bytes(&s, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    b->halves = true;
    b->bytes = sums_bytes(b->n) + (int64_t)bytes;
    return true;
}

/* As crossed groups: what the columns lose goes before them. */
static void pack_crossed(const grt_qgemm_b *b, const uint8_t *from, int64_t step_k, int64_t step_n,
                         int64_t cols, int32_t *sums, char *to)
{
    static const int places[] = {2 * NR, 2 * NR + 1, 0, 1};
    const uint8_t flip = b->is_signed ? 0 : 0x80;
    uint32_t *loses = (uint32_t *)(void *)to;
    int16_t *words = (int16_t *)(void *)(to + NR * sizeof *loses);
    for (int64_t x = 0; x < b->k; x++)
        for (int64_t j = 0; j < cols; j++) {
            int16_t *group = words + x / 4 * 4 * NR + 2 * j;
            const int8_t v = (int8_t)(from[x * step_k + j * step_n] ^ flip);
            sums[j] += v;
            group[places[x % 4]] = v;
            if (x % 4 >= 2)
                loses[j] -= (uint32_t)(v * group[places[x % 4 - 2]]);
        }
}

/* A group of a panel: `cols` columns of `rows` elements, added to sums. */
static inline __attribute__((always_inline)) void pack_group(const uint8_t *from, int64_t step_k,
                                                             int64_t step_n, const int group, int64_t rows,
                                                             int64_t cols, uint8_t flip, int32_t *sums,
                                                             char *to)
{
    int8_t *bytes = (int8_t *)to;
    int16_t *words = (int16_t *)(void *)to;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const int8_t v = (int8_t)(from[i * step_k + j * step_n] ^ flip);
            sums[j] += v;
            if (group == 2)
                words[j * group + i] = v;
            else
                bytes[j * group + i] = v;
        }
}

/* Columns [j, j + cols) as a panel. Whole groups are a loop of known size. */
static inline __attribute__((always_inline)) void qgemm_pack_panel(const grt_qgemm_b *b, const uint8_t *from,
                                                                   int64_t step_k, int64_t step_n,
                                                                   const int group, int64_t cols,
                                                                   int32_t *sums, char *to)
{
    const uint8_t flip = b->is_signed ? 0 : 0x80;
    int64_t x = 0;
    for (; cols == NR && x + group <= b->k; x += group, to += GRT_QGEMM_GROUP_BYTES)
        pack_group(from + x * step_k, step_k, step_n, group, group, NR, flip, sums, to);
    for (; x < b->k; x += group, to += GRT_QGEMM_GROUP_BYTES)
        pack_group(from + x * step_k, step_k, step_n, group, grt_min64(group, b->k - x), cols, flip, sums,
                   to);
}

void grt_qgemm_pack(const grt_qgemm_b *b, const uint8_t *from, int64_t step_k, int64_t step_n, void *packed)
{
    const grt_qgemm_kernel *kernel = b->kernel;
    const int64_t panel_bytes = panel_bytes_of(kernel, b->k);
    int32_t *sums = packed;
    char *to = (char *)packed + sums_bytes(b->n);
    memset(packed, 0, (size_t)b->bytes);
    if (b->halves) {
        const grt_qstrassen s = grt_qstrassen_of(kernel, b->k, b->n);
        grt_qstrassen_pack(&s, from, step_k, step_n, b->is_signed ? 0 : 0x80, sums, to);
        return;
    }
    for (int64_t j = 0; j < b->n; j += NR, sums += NR, to += panel_bytes) {
        const int64_t cols = grt_min64(NR, b->n - j);
        const uint8_t *at = from + j * step_n;
        if (kernel->crossed)
            pack_crossed(b, at, step_k, step_n, cols, sums, to);
        else if (grt_qgemm_panel_group(kernel) == 2)
            qgemm_pack_panel(b, at, step_k, step_n, 2, cols, sums, to);
        else if (step_n == 1)
            qgemm_pack_panel(b, at, step_k, 1, 4, cols, sums, to);
        else
            qgemm_pack_panel(b, at, step_k, step_n, 4, cols, sums, to);
    }
}

static const char *qgemm_panels_of(const grt_qgemm_b *b, const void *packed)
{
    return (const char *)packed + sums_bytes(b->n);
}

/* ---- columns ---- */

static int32_t qgemm_zero_at(const grt_qgemm_b *b, const grt_qgemm_params *p, int64_t j)
{
    const int64_t at = p->b_zero_each ? j : 0;
    const int32_t shift = b->is_signed ? 0 : -128;
    if (!p->b_zero)
        return shift;
    return shift + (b->is_signed ? ((const int8_t *)p->b_zero)[at] : ((const uint8_t *)p->b_zero)[at]);
}

void grt_qgemm_set_columns(const grt_qgemm_b *b, const void *packed, const grt_qgemm_params *p,
                           const grt_qgemm_columns *columns)
{
    const int32_t *sums = packed;
    const int64_t n = b->n, rest = grt_qgemm_padded(n) - n;
    const uint32_t a_zero = (uint32_t)(p->a_zero + (p->a_signed ? 128 : 0)), k = (uint32_t)b->k;
    const float a_scale = p->a_scale, y_scale = p->y_scale;
    if (n <= 0)
        return;
    const float scale = a_scale * p->b_scale[0] / y_scale;
    const int32_t zero = qgemm_zero_at(b, p, 0);
    for (int64_t j = 0; j < n; j++)
        columns->zero[j] = p->b_zero_each ? qgemm_zero_at(b, p, j) : zero;
    for (int64_t j = 0; j < n; j++)
        columns->offset[j] = (int32_t)(a_zero * ((uint32_t)sums[j] - k * (uint32_t)columns->zero[j]));
    for (int64_t j = 0; p->int_bias && j < n; j++)
        columns->offset[j] = (int32_t)((uint32_t)columns->offset[j] - (uint32_t)p->int_bias[j]);
    for (int64_t j = 0; j < n; j++)
        columns->scale[j] = p->b_scale_each ? a_scale * p->b_scale[j] / y_scale : scale;
    for (int64_t j = 0; j < n; j++)
        columns->bias[j] = p->bias ? p->bias[j] / y_scale : 0.0f;
    memset(columns->zero + n, 0, (size_t)rest * sizeof *columns->zero);
    memset(columns->offset + n, 0, (size_t)rest * sizeof *columns->offset);
    memset(columns->scale + n, 0, (size_t)rest * sizeof *columns->scale);
    memset(columns->bias + n, 0, (size_t)rest * sizeof *columns->bias);
}

/* Sums have 31 bits. */
static bool columns_are_bounded(const grt_qgemm_columns *columns, int64_t n)
{
    const float most_scale = 0.25f, most_bias = 1e9f;
    int32_t beyond = 0;
    for (int64_t j = 0; j < n; j++)
        beyond |= !(fabsf(columns->scale[j]) <= most_scale) | !(fabsf(columns->bias[j]) <= most_bias);
    return !beyond;
}

void grt_qgemm_use_columns(const grt_qgemm_b *b, const grt_qgemm_params *p, const grt_qgemm_columns *columns,
                           grt_qgemm_finish *finish)
{
    bool any = false;
    for (int64_t j = 0; j < (p->b_zero_each ? b->n : 1); j++)
        any = any || qgemm_zero_at(b, p, j) != 0;
    finish->offset = columns->offset;
    finish->zero = any ? columns->zero : NULL;
    finish->scale = columns->scale;
    finish->bias = columns->bias;
    finish->bounded = columns_are_bounded(columns, b->n);
}

/* ---- tiles ---- */

typedef struct tiling {
    const grt_qgemm_kernel *kernel;
    int64_t m_block, n_block, mt, nt, groups, lda, wide_lda; /* lda: bytes of a row that is made */
    bool in_place;
    int threads;
    size_t made_at, wide_at, sums_at, quarters_at, thread_bytes;
    grt_qstrassen strassen; /* where B has halves */
} tiling;

/* Tiles small enough to keep every thread busy. Each reads its rows and its columns, so that the longer side
 * is cut. */
static void qgemm_cut(const grt_qgemm *g, tiling *t)
{
    const bool halves = g->b->halves;
    const int mr = halves ? 2 * t->kernel->mr : t->kernel->mr;
    const int64_t n = halves ? t->strassen.n_part : g->b->n,
                  least = halves ? LEAST_COLUMNS / 2 : LEAST_COLUMNS,
                  want = t->threads > 1 ? (int64_t)t->threads * 3 : 1;
    const int64_t rows = halves ? grt_qstrassen_rows(&t->strassen)
                                : grt_min64(grt_max64(A_BYTES / (t->lda ? t->lda : 1), mr), MOST_ROWS);
    /* Even ones: the last of few rows would have all of B read once more. */
    const int64_t m = grt_max64(g->m, 1);
    t->m_block = qgemm_ceil_div(qgemm_ceil_div(m, qgemm_ceil_div(m, rows)), mr) * mr;
    t->n_block = grt_qgemm_padded(n);
    while (qgemm_ceil_div(g->m, t->m_block) * qgemm_ceil_div(n, t->n_block) < want) {
        const bool rows_go = t->m_block > 4 * mr, columns_go = t->n_block > least;
        if (columns_go && (!rows_go || t->n_block >= t->m_block))
            t->n_block = grt_qgemm_padded(t->n_block / 2);
        else if (rows_go)
            t->m_block = qgemm_ceil_div(t->m_block / 2, mr) * mr;
        else
            break;
    }
    t->mt = qgemm_ceil_div(g->m, t->m_block);
    t->nt = qgemm_ceil_div(n, t->n_block);
}

static bool plan_tiles(const grt_qgemm *g, int threads, tiling *t)
{
    const int64_t k = g->b->k, n = g->b->n;
    *t = (tiling){.kernel = g->b->kernel, .threads = threads < 1 ? 1 : threads};
    if ((double)g->m * (double)n * (double)k < PARALLEL_WORK)
        t->threads = 1;
    t->groups = groups_of(t->kernel, k);
    t->lda = (k + 63) / 64 * 64;
    /* A row's last group must not reach past the matrix. Two planes take as much as int16. */
    t->wide_lda = grt_qgemm_row_head(t->kernel) + 2 * t->lda;
    t->in_place =
        g->a && !g->a_signed && !t->kernel->wide && k == t->groups * grt_qgemm_panel_group(t->kernel);
    if (g->b->halves)
        t->strassen = grt_qstrassen_of(t->kernel, k, n);
    qgemm_cut(g, t);
    cpu_layout layout = {0};
    size_t wide = 0, quarters = 0;
    if (g->b->halves)
        layout.overflow = !grt_qstrassen_scratch_bytes(&t->strassen, t->m_block, &wide, &quarters);
    else if (t->kernel->wide)
        layout.overflow = !grt_mul_size((size_t)t->m_block, (size_t)t->wide_lda, &wide);
    t->made_at = cpu_layout_add(&layout, t->in_place ? 0 : t->m_block, (size_t)t->lda);
    t->wide_at = cpu_layout_add(&layout, 1, wide);
    t->sums_at = cpu_layout_add(&layout, t->m_block, sizeof(int32_t));
    t->quarters_at = cpu_layout_add(&layout, 1, quarters);
    t->thread_bytes = layout.bytes;
    return !layout.overflow;
}

bool grt_qgemm_scratch_bytes(const grt_qgemm *g, int threads, size_t *out_bytes)
{
    tiling t;
    return plan_tiles(g, threads, &t) && grt_mul_size(t.thread_bytes, (size_t)t.threads, out_bytes);
}

/* ---- run ---- */

/* A's rows of a tile, as the kernel reads them. */
typedef struct strip {
    const char *a;
    int64_t lda;
    int32_t *sums;
} strip;

static void copy_rows(const grt_qgemm *g, int64_t row, int64_t rows, uint8_t *out, int64_t ld)
{
    const int64_t k = g->b->k;
    const uint8_t flip = g->a_signed ? 0x80 : 0;
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *from = g->a + (row + i) * g->lda;
        if (!flip)
            memcpy(out + i * ld, from, (size_t)k);
        for (int64_t x = 0; flip && x < k; x++)
            out[i * ld + x] = from[x] ^ flip;
    }
}

/* Rows of bytes as a kernel of int16 reads them. */
static strip widen_strip(const grt_qgemm *g, const tiling *t, const uint8_t *bytes, int64_t ld, int64_t rows,
                         uint8_t flip, char *own)
{
    char *wide = own + t->wide_at;
    if (g->b->halves)
        grt_qstrassen_split(&t->strassen, bytes, ld, rows, flip, wide);
    else if (!t->kernel->planes)
        t->kernel->widen(bytes, ld, rows, g->b->k, flip, wide, t->wide_lda);
    else
        for (int64_t i = 0; i < rows; i++)
            t->kernel->split(bytes + i * ld, g->b->k, (uint8_t *)wide + i * t->wide_lda);
    return (strip){.a = wide, .lda = t->wide_lda, .sums = (int32_t *)(void *)(own + t->sums_at)};
}

static strip prepare_rows(const grt_qgemm *g, const tiling *t, int64_t row, int64_t rows, char *own)
{
    strip s = {.sums = (int32_t *)(void *)(own + t->sums_at)};
    uint8_t *made = (uint8_t *)own + t->made_at;
    const bool widened = t->kernel->wide && !t->kernel->planes && !g->finish.zero, /* from where they are */
        found = t->in_place || (g->a && widened);
    const uint8_t *bytes = found ? g->a + row * g->lda : made;
    const int64_t ld = found ? g->lda : t->lda;
    if (!found && g->a)
        copy_rows(g, row, rows, made, ld);
    else if (!found)
        g->fill(g->user, row, rows, made, ld);
    if (g->finish.zero)
        t->kernel->row_sums(bytes, ld, rows, g->b->k, s.sums);
    if (t->kernel->wide)
        return widen_strip(g, t, bytes, ld, rows, found && g->a_signed ? 0x80 : 0, own);
    if (!found) /* B has zeros there; but these bytes are read */
        for (int64_t i = 0; i < rows; i++)
            memset(made + i * ld + g->b->k, 0, (size_t)(ld - g->b->k));
    s.a = (const char *)bytes;
    s.lda = ld;
    return s;
}

/* Sums of a strip of rows and so many panels, of WIDTH columns at most. */
static void multiply_strip_by(const grt_qgemm_kernel *kernel, int rows, int panels, int64_t groups,
                              const char *a, int64_t lda, const char *b, int64_t stride, int32_t *sums)
{
    for (int p = 0, now; p < panels; p += now) {
        now = panels - p < kernel->panels ? panels - p : kernel->panels;
        kernel->block(rows, now, groups, a, lda, b + p * stride, stride, false, sums + p * NR);
    }
}

/* Rows of a tile, and how many of them are multiplied together. */
typedef struct tile_rows {
    const strip *s;
    int64_t row; /* the tile's first one */
    int64_t from, to, each;
} tile_rows;

/* What comes after a part of B, by as many bytes for each strip of rows: it lies in no near cache. */
typedef struct part_ahead {
    const char *at;
    int64_t each;
} part_ahead;

static void fetch_ahead(part_ahead *p)
{
    enum { LINE = 64 };
    for (int64_t i = 0; i < p->each; i += LINE)
        __builtin_prefetch(p->at + i, 0, 3);
    p->at += p->each;
}

/* A part of a panel after the other: it stays in the first-level cache while rows go by, and sums go through
 * memory in between. */
static void sum_by_depth(const grt_qgemm *g, const tiling *t, const tile_rows *r, int64_t col, int panels,
                         int32_t *sums)
{
    const grt_qgemm_kernel *kernel = t->kernel;
    const int64_t stride = panel_bytes_of(kernel, g->b->k),
                  group = grt_qgemm_panel_group(kernel) * (kernel->wide ? 2 : 1);
    const char *b = qgemm_panels_of(g->b, g->packed) + col / NR * stride;
    const int64_t parts = qgemm_ceil_div(t->groups, kernel->depth), depth = qgemm_ceil_div(t->groups, parts);
    for (int p = 0; p < panels; p += kernel->panels)
        for (int64_t x = 0; x < t->groups; x += depth) {
            const int64_t now = grt_min64(depth, t->groups - x);
            const char *of_b = b + p * stride, *of_a = r->s->a;
            if (x > 0) {
                of_a += grt_qgemm_row_head(kernel) + x * group;
                of_b += grt_qgemm_panel_head(kernel) + x * grt_qgemm_panel_group_bytes(kernel);
            }
            const int64_t strips = qgemm_ceil_div(r->to - r->from, r->each),
                          bytes = now * grt_qgemm_panel_group_bytes(kernel);
            part_ahead ahead = {of_b + bytes, qgemm_ceil_div(bytes, strips * 64) * 64};
            for (int64_t i = r->from; i < r->to; i += r->each, fetch_ahead(&ahead))
                kernel->block((int)grt_min64(r->each, r->to - i),
                              panels - p < kernel->panels ? panels - p : kernel->panels, now,
                              of_a + i * r->s->lda, r->s->lda, of_b, stride, x > 0,
                              sums + (i - r->from) * WIDTH + p * NR);
        }
}

static void finish_strip(const grt_qgemm *g, const tiling *t, const tile_rows *r, int64_t i, int rows,
                         int64_t col, int64_t cols, const int32_t *sums)
{
    const grt_qgemm_finish *f = &g->finish;
    const int64_t size = f->y_dtype == GRT_DTYPE_FLOAT ? (int64_t)sizeof(float) : 1, row = r->row + i;
    const uint8_t *residual = f->residual ? (const uint8_t *)f->residual + row * f->ldr + col : NULL;
    t->kernel->finish(f, col, rows, cols, sums, r->s->sums + i, residual,
                      (char *)g->y + (row * g->ldy + col) * size, g->ldy);
}

/* Bytes that leave from registers. */
static void multiply_plainly(const grt_qgemm *g, const tiling *t, const tile_rows *r, int64_t col,
                             int64_t cols)
{
    const int64_t stride = panel_bytes_of(t->kernel, g->b->k), width = (int64_t)t->kernel->panels * NR;
    const char *b = qgemm_panels_of(g->b, g->packed) + col / NR * stride;
    for (int64_t j = col; j < col + cols; j += width, b += t->kernel->panels * stride) {
        const grt_qgemm_plain to = {.finish = &g->finish,
                                    .col = j,
                                    .cols = grt_min64(col + cols - j, width),
                                    .ldy = g->ldy,
                                    .y = (uint8_t *)g->y + (r->row + r->from) * g->ldy + j};
        t->kernel->plain((int)(r->to - r->from), (int)r->each, (int)qgemm_ceil_div(to.cols, NR), t->groups,
                         r->s->a + r->from * r->s->lda, r->s->lda, b, stride, &to);
    }
}

static void multiply_deeply(const grt_qgemm *g, const tiling *t, const tile_rows *r, int64_t col,
                            int64_t cols)
{
    _Alignas(64) int32_t sums[MOST_ROWS * WIDTH];
    memset(sums, 0, (size_t)((r->to - r->from) * WIDTH) * sizeof *sums);
    for (int64_t j = col; j < col + cols; j += WIDTH) {
        const int64_t now = grt_min64(col + cols - j, WIDTH);
        sum_by_depth(g, t, r, j, (int)qgemm_ceil_div(now, NR), sums);
        finish_strip(g, t, r, r->from, (int)(r->to - r->from), j, now, sums);
    }
}

/* Rows [from, to) of a tile that begins at `row`. */
static void multiply_rows(const grt_qgemm *g, const tiling *t, const strip *s, int64_t row, int64_t from,
                          int64_t to, int64_t col, int64_t cols)
{
    const int64_t strips = qgemm_ceil_div(to - from, t->kernel->mr);
    const tile_rows r = {s, row, from, to, qgemm_ceil_div(to - from, strips)};
    if (t->kernel->depth && t->groups > t->kernel->depth && strips > 1) {
        multiply_deeply(g, t, &r, col, cols);
        return;
    }
    if (t->kernel->plain && grt_qgemm_is_plain(&g->finish)) {
        multiply_plainly(g, t, &r, col, cols);
        return;
    }
    _Alignas(64) int32_t sums[GRT_QGEMM_MOST_ROWS * WIDTH];
    const int64_t stride = panel_bytes_of(t->kernel, g->b->k);
    memset(sums, 0, (size_t)t->kernel->mr * WIDTH * sizeof *sums);
    for (int64_t j = col; j < col + cols; j += WIDTH) {
        const int64_t now = grt_min64(col + cols - j, WIDTH);
        const char *b = qgemm_panels_of(g->b, g->packed) + j / NR * stride;
        for (int64_t i = from; i < to; i += r.each) {
            const int strip_rows = (int)grt_min64(r.each, to - i);
            multiply_strip_by(t->kernel, strip_rows, (int)qgemm_ceil_div(now, NR), t->groups,
                              s->a + i * s->lda, s->lda, b, stride, sums);
            finish_strip(g, t, &r, i, strip_rows, j, now, sums);
        }
    }
}

static void multiply_tile(const grt_qgemm *g, const tiling *t, const strip *s, int64_t row, int64_t rows,
                          int64_t col, int64_t cols)
{
    const int64_t whole = t->kernel->leave ? rows / t->kernel->mr * t->kernel->mr : rows;
    if (whole > 0)
        multiply_rows(g, t, s, row, 0, whole, col, cols);
    if (whole < rows) /* by themselves, where another number of rows has the kernel prepare itself again */
        multiply_rows(g, t, s, row, whole, rows, col, cols);
}

/* Of a part of the rows and one of the columns, columns [col, col + cols) of those in `sums`. */
static void finish_quarter(const grt_qgemm *g, const tiling *t, const tile_rows *r, int row_part,
                           int col_part, int64_t col, int64_t cols, const int32_t *sums)
{
    const int64_t first = row_part * grt_qstrassen_part(r->to), n = g->b->n,
                  rows = grt_min64(grt_qstrassen_part(r->to), r->to - first);
    int64_t j = col_part * t->strassen.n_part + col;
    for (int64_t x = 0; rows > 0 && x < cols && j < n; x += WIDTH, j += WIDTH)
        finish_strip(g, t, r, first, (int)rows, j, grt_min64(n - j, WIDTH),
                     grt_qstrassen_block(r->to, cols, row_part, col_part, x, sums));
}

/* Columns [col, col + cols) of both parts. */
static void multiply_halves(const grt_qgemm *g, const tiling *t, const tile_rows *r, int64_t col,
                            int64_t cols, int32_t *sums)
{
    const int64_t most = grt_qstrassen_columns(&t->strassen, t->m_block);
    for (int64_t j = col, now; j < col + cols; j += now) {
        now = grt_min64(most, col + cols - j);
        grt_qstrassen_multiply(&t->strassen, r->to, r->s->a, qgemm_panels_of(g->b, g->packed), j, now, sums);
        for (int i = 0; i < 4; i++)
            finish_quarter(g, t, r, i / 2, i % 2, j, now, sums);
    }
}

/* Neighbouring tiles share rows. *made: the first of the rows that the thread has ready, -1 at first. */
static void qgemm_run_one(const grt_qgemm *g, const tiling *t, int64_t tile, char *own, strip *s,
                          int64_t *made)
{
    const int64_t row = tile / t->nt * t->m_block, col = tile % t->nt * t->n_block;
    const int64_t rows = grt_min64(t->m_block, g->m - row);
    if (*made != row)
        *s = prepare_rows(g, t, row, rows, own);
    *made = row;
    if (g->b->halves) {
        const tile_rows r = {s, row, 0, rows, rows};
        multiply_halves(g, t, &r, col, grt_min64(t->n_block, t->strassen.n_part - col),
                        (int32_t *)(void *)(own + t->quarters_at));
        return;
    }
    multiply_tile(g, t, s, row, rows, col, grt_min64(t->n_block, g->b->n - col));
}

void grt_qgemm_run(const grt_qgemm *g, void *scratch, int threads)
{
    tiling t;
    if (g->m <= 0 || g->b->n <= 0 || !plan_tiles(g, threads, &t))
        return;           /* grt_qgemm_scratch_bytes has refused such sizes */
    if (t.threads == 1) { /* without any OpenMP construct, so that a caller's parallel region may hold it */
        strip s = {0};
        int64_t made = -1;
        for (int64_t i = 0; i < t.mt * t.nt; i++)
            qgemm_run_one(g, &t, i, scratch, &s, &made);
        leave(t.kernel);
        return;
    }
#pragma omp parallel num_threads(t.threads)
    {
        char *own = (char *)scratch + (size_t)cpu_thread() * t.thread_bytes;
        strip s = {0};
        int64_t made = -1;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < t.mt * t.nt; i++)
            qgemm_run_one(g, &t, i, own, &s, &made);
        leave(t.kernel);
    }
}

/* ---- sums alone ---- */

/* No kernel for few rows is crossed: what a row would lose is as much work as a product by few columns. */
int64_t grt_qgemm_row_bytes(int64_t k)
{
    const grt_qgemm_kernel *kernel = grt_qgemm_kernel_of_few();
    return grt_qgemm_row_head(kernel) +
           groups_of(kernel, k) * grt_qgemm_panel_group(kernel) * (kernel->wide ? 2 : 1);
}

void grt_qgemm_put_row(const grt_qgemm_b *b, const uint8_t *from, void *row)
{
    const grt_qgemm_kernel *kernel = grt_qgemm_kernel_of_few();
    const int64_t used = kernel->wide ? grt_qgemm_row_head(kernel) + 2 * b->k : b->k;
    if (kernel->planes) {
        kernel->split(from, b->k, row);
        return;
    }
    if (kernel->wide)
        kernel->widen(from, 0, 1, b->k, 0, row, 0);
    else
        memcpy(row, from, (size_t)b->k);
    memset((char *)row + used, 0, (size_t)(grt_qgemm_row_bytes(b->k) - used));
}

void grt_qgemm_sums(const grt_qgemm_b *b, const void *packed, const void *a, int rows, int64_t col, int64_t n,
                    int32_t *sums)
{
    const grt_qgemm_kernel *kernel = grt_qgemm_kernel_of_few();
    const int64_t groups = groups_of(kernel, b->k), stride = panel_bytes_of(kernel, b->k),
                  lda = grt_qgemm_row_bytes(b->k);
    const char *panel = qgemm_panels_of(b, packed) + col / NR * stride;
    for (int64_t j = 0; j < n; j += WIDTH, sums += rows * WIDTH, panel += WIDTH / NR * stride)
        for (int row = 0; row < rows; row += kernel->mr)
            multiply_strip_by(kernel, (int)grt_min64(kernel->mr, rows - row),
                              (int)qgemm_ceil_div(grt_min64(n - j, WIDTH), NR), groups,
                              (const char *)a + row * lda, lda, panel, stride, sums + row * WIDTH);
    leave(kernel);
}

const int32_t *grt_qgemm_column_sums(const void *packed)
{
    return packed;
}

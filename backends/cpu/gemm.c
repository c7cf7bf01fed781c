/* SPDX-License-Identifier: Apache-2.0 */
/* The GEMM driver: packing, cache blocking, threads. The arithmetic is in the micro-kernels (gemm_kernel.h).
 *
 * A tile of C is computed by one thread: for each block of k, for each strip of rows (which then stays in the
 * first-level cache, while the tile's part of B stays in the second), for each one or two 16-column panels of
 * B. C is so written along its rows; panel by panel, its rows would fall into the same cache sets whenever
 * ldc is a multiple of 1024. Tiles never split k, and the split of k into blocks depends on k alone, so
 * neither the number of threads nor the tile sizes change a result. */
#include "backends/cpu/gemm.h"

#include "backends/cpu/flip.h"
#include "backends/cpu/gemm_kernel.h"
#include "src/base/tensor.h"

#include "backends/cpu/threads.h"
#include "src/base/int64.h"

#include <stdatomic.h>

#define NR           GRT_GEMM_NR
#define K_BLOCK      256 /* a strip is 6 KiB, a panel 16 KiB: both fit a 32 KiB first-level cache */
#define M_BLOCK      192
#define N_BLOCK      128 /* with K_BLOCK: 128 KiB of B, and as much that is fetched ahead */
#define CACHE_LINE   64
#define CACHE_WAY    4096 /* bytes of the first-level cache: addresses so far apart share a set of 8 lines */
#define CACHE_ROWS   8    /* more rows so far apart evict each other's lines */
#define COPY_COLS    64   /* from this many columns on, a copy of the strip costs less than it saves */
#define MOST_ROWS    12   /* of a kernel's block */
#define MOST_QUEUES  64   /* more threads share them */
#define AHEAD_STRIPS 4    /* from this many strips on, they have the time to fetch the next block of B */
#define DIRECT_ROWS  12   /* up to this m, packing B costs more than reading it unpacked */
#define PARALLEL_OPS 400000 /* multiply-adds below which waking a second thread costs more than it saves */

_Static_assert(GRT_GEMM_PANEL == NR, "callers take columns of a packed B by panels");

/* How B reaches the kernels. */
typedef enum b_mode {
    B_PACKED,     /* the caller packed it */
    B_DIRECT,     /* read in place, only a ragged last panel is copied */
    B_PACK_ONCE,  /* packed by all threads together, then used */
    B_PACK_THREAD /* each thread packs and multiplies whole batch items */
} b_mode;

typedef struct plan {
    const grt_gemm_kernel *kernel;
    const grt_gemm_few *few;
    b_mode mode;
    int threads;
    int64_t k_block, m_block, n_block;
    int64_t b_count; /* distinct B matrices */
    size_t a_floats; /* per thread */
    size_t b_floats; /* per packed matrix, or per thread's ragged panel */
} plan;

/* The best of this machine's. */
static const grt_gemm_kernel *pick_kernel(void)
{
    const grt_gemm_kernel *best = grt_gemm_kernel_avx512();
    if (!best)
        best = grt_gemm_kernel_avx2();
    return best ? best : &grt_gemm_kernel_c;
}

/* A machine with AVX-512 has AVX2. */
static const grt_gemm_few *few_of(const grt_gemm_kernel *kernel)
{
    return kernel->few ? kernel->few : grt_gemm_kernel_avx2()->few;
}

const char *grt_gemm_kernel_name(void)
{
    return pick_kernel()->name;
}

/* Divisions take as long as a small product. a is not negative. */
static int64_t gemm_ceil_div(int64_t a, int64_t b)
{
    return a <= b ? a > 0 : a / b + (a % b != 0);
}

bool grt_gemm_packed_b_floats(int64_t k, int64_t n, size_t *out_floats)
{
    int64_t cols, floats;
    if (k < 0 || n < 0 || __builtin_mul_overflow(gemm_ceil_div(n, NR), (int64_t)NR, &cols) ||
        __builtin_mul_overflow(cols, k, &floats) || (uint64_t)floats > SIZE_MAX / sizeof(float))
        return false;
    *out_floats = (size_t)floats;
    return true;
}

static void gemm_pack_panel(int64_t k, int64_t cols, const float *b, int64_t ldb, bool trans_b, float *out)
{
    if (trans_b)
        cpu_flip(sizeof *out, out, NR, b, ldb, k, cols);
    for (int64_t x = 0; x < k && !trans_b; x++)
        memcpy(out + x * NR, b + x * ldb, (size_t)cols * sizeof *out);
    for (int64_t x = 0; x < k && cols < NR; x++)
        memset(out + x * NR + cols, 0, (size_t)(NR - cols) * sizeof *out);
}

static void pack_panels(int64_t first, int64_t last, int64_t k, int64_t n, const float *b, int64_t ldb,
                        bool trans_b, float *packed)
{
    for (int64_t p = first; p < last; p++)
        gemm_pack_panel(k, grt_min64(NR, n - p * NR), b + p * NR * (trans_b ? ldb : 1), ldb, trans_b,
                        packed + p * NR * k);
}

void grt_gemm_pack_b(int64_t k, int64_t n, const float *b, int64_t ldb, bool trans_b, float *packed)
{
    pack_panels(0, gemm_ceil_div(n, NR), k, n, b, ldb, trans_b, packed);
}

void grt_gemm_pack_b_rows(int64_t k, int64_t n, int64_t first, int64_t rows, const float *b, int64_t ldb,
                          float *packed)
{
    for (int64_t j = 0; j < n; j += NR)
        gemm_pack_panel(rows, grt_min64(NR, n - j), b + j, ldb, false, packed + j * k + first * NR);
}

void grt_gemm_unpack_b(int64_t k, int64_t n, const float *packed, bool trans_b, float *b)
{
    for (int64_t p = 0; p < gemm_ceil_div(n, NR); p++)
        for (int64_t x = 0; x < k; x++)
            for (int64_t j = p * NR; j < grt_min64(n, (p + 1) * NR); j++)
                b[trans_b ? j * k + x : x * n + j] = packed[(p * k + x) * NR + j - p * NR];
}

/* Blocks of k as equal as can be: 768 is 3 x 256, 300 is 2 x 152. */
static int64_t split_k(int64_t k)
{
    if (k <= K_BLOCK)
        return k > 0 ? k : 1;
    return (gemm_ceil_div(k, gemm_ceil_div(k, K_BLOCK)) + 7) / 8 * 8;
}

/* Tiles small enough to keep every thread busy to the end. */
static void choose_tiles(const grt_gemm *g, plan *p)
{
    const int64_t want = p->threads > 1 ? (int64_t)p->threads * 4 : 1;
    const int mr = p->kernel->mr;
    /* Equal blocks: a short last one would read all of B for a few rows. */
    const int64_t blocks = (g->m + M_BLOCK / 2) / M_BLOCK;
    p->m_block = gemm_ceil_div(gemm_ceil_div(g->m, blocks > 0 ? blocks : 1), mr) * mr;
    p->n_block = N_BLOCK;
    if (g->m <= p->few->most) {
        const int64_t unit = (int64_t)p->few->panels * NR;
        p->n_block = gemm_ceil_div(gemm_ceil_div(g->n, want), unit) * unit;
        return;
    }
    /* In floating point: sizes that fit no memory are looked at before they are refused. */
    while (want > 1 && (double)g->batch * (double)gemm_ceil_div(g->m, p->m_block) *
                               (double)gemm_ceil_div(g->n, p->n_block) <
                           (double)want) {
        if (p->n_block > 4 * NR)
            p->n_block /= 2;
        else if (p->m_block > 4 * mr)
            p->m_block = p->m_block / 2 / mr * mr;
        else
            break;
    }
}

static plan make_plan(const grt_gemm *g, int threads)
{
    plan p = {.kernel = pick_kernel(), .threads = threads < 1 ? 1 : threads};
    p.few = few_of(p.kernel);
    if ((double)g->batch * (double)g->m * (double)g->n * (double)g->k < PARALLEL_OPS)
        p.threads = 1;
    const bool small = g->m <= p.few->most;
    p.b_count = g->stride_b == 0 ? 1 : g->batch;
    if (g->b_packed)
        p.mode = B_PACKED;
    else if (!g->trans_b && g->m <= DIRECT_ROWS)
        p.mode = B_DIRECT;
    else if (p.b_count >= p.threads && p.b_count > 1)
        p.mode = B_PACK_THREAD;
    else
        p.mode = B_PACK_ONCE;
    p.k_block = small ? (g->k > 0 ? g->k : 1) : split_k(g->k);
    choose_tiles(g, &p);
    p.a_floats = g->trans_a && !small ? (size_t)(p.m_block * p.k_block) : 0;
    return p;
}

/* Rounds to 64 bytes, so that every region of the scratch is aligned. */
static bool round_floats(size_t floats, size_t *out)
{
    if (floats > SIZE_MAX - 15)
        return false;
    *out = (floats + 15) / 16 * 16;
    return true;
}

static bool size_b(const grt_gemm *g, plan *p, size_t *out_count)
{
    *out_count = 0;
    switch (p->mode) {
    case B_PACKED:
        return true;
    case B_DIRECT:
        *out_count = (size_t)p->threads;
        return grt_gemm_packed_b_floats(g->k, g->n % NR, &p->b_floats);
    case B_PACK_ONCE:
        *out_count = (size_t)p->b_count;
        return grt_gemm_packed_b_floats(g->k, g->n, &p->b_floats);
    case B_PACK_THREAD:
        *out_count = (size_t)p->threads;
        return grt_gemm_packed_b_floats(g->k, g->n, &p->b_floats);
    }
    return false;
}

bool grt_gemm_scratch_bytes(const grt_gemm *g, int threads, size_t *out_bytes)
{
    plan p = make_plan(g, threads);
    size_t count, a = 0, b = 0, floats;
    if (!size_b(g, &p, &count) || !round_floats(p.a_floats, &a) || !round_floats(p.b_floats, &b) ||
        __builtin_mul_overflow(b, count, &b) || __builtin_mul_overflow(a, (size_t)p.threads, &a) ||
        __builtin_add_overflow(a, b, &floats))
        return false;
    return !__builtin_mul_overflow(floats, sizeof(float), out_bytes);
}

/* A's rows [row, row + rows) and columns [x, x + len) as strips of mr rows, one column after the other. */
static void pack_a(const grt_gemm *g, const float *a, int64_t row, int64_t rows, int64_t x, int64_t len,
                   int mr, float *out)
{
    for (int64_t i = 0; i < rows; i += mr, out += len * mr) {
        const int64_t now = grt_min64(mr, rows - i);
        for (int64_t y = 0; y < len; y++)
            memcpy(out + y * mr, a + (x + y) * g->lda + row + i, (size_t)now * sizeof *out);
    }
}

/* One batch item's operands, where a tile finds them. */
typedef struct operands {
    const float *a, *b, *ragged; /* ragged: the packed last panel in B_DIRECT, else NULL */
    int64_t ldb, panel_stride, panels;
    float *c;
    const float *bias, *residual;
} operands;

static grt_gemm_store make_store(const grt_gemm *g, const operands *o, bool first, bool last)
{
    grt_gemm_store s = {
        .c = o->c, .ldc = g->ldc, .alpha = g->alpha, .beta = first ? g->beta : 1.0f, .ldr = g->ldr};
    if (last) {
        s.bias = o->bias;
        s.bias_row = g->bias_row;
        s.residual = o->residual;
        s.act = g->act;
    }
    s.simple = (s.beta == 0.0f || s.beta == 1.0f) && !s.bias_row && !s.residual &&
               (s.act.kind == GRT_ACT_NONE || s.act.kind == GRT_ACT_RELU);
    return s;
}

static grt_gemm_store shift_store(const grt_gemm_store *s, int64_t row, int64_t col)
{
    grt_gemm_store t = *s;
    t.c += row * s->ldc + col;
    t.bias = s->bias ? s->bias + col : NULL;
    t.bias_row = s->bias_row ? s->bias_row + row : NULL;
    t.residual = s->residual ? s->residual + row * s->ldr + col : NULL;
    return t;
}

/* Calls the streaming kernel on whole panels, then on the ragged one. */
static void stream_tile(const grt_gemm *g, const plan *p, const operands *o, int64_t col, int64_t cols)
{
    const int64_t rsa = g->trans_a ? 1 : g->lda, csa = g->trans_a ? g->lda : 1;
    const grt_gemm_store s = make_store(g, o, true, true);
    if (p->mode == B_DIRECT && p->few->sweep) {
        const grt_gemm_store t = shift_store(&s, 0, col);
        p->few->sweep((int)g->m, cols, g->k, o->a, rsa, csa, o->b + col, o->ldb, 0, &t);
        return;
    }
    const int64_t in_place = o->ragged && col + cols == g->n ? cols / NR * NR : cols;
    if (in_place > 0) {
        const grt_gemm_store t = shift_store(&s, 0, col);
        p->few->stream((int)g->m, in_place, g->k, o->a, rsa, csa, o->b + col / NR * o->panel_stride, o->ldb,
                       o->panel_stride, &t);
    }
    if (in_place < cols) {
        const grt_gemm_store t = shift_store(&s, 0, col + in_place);
        p->few->stream((int)g->m, cols - in_place, g->k, o->a, rsa, csa, o->ragged, NR, 0, &t);
    }
}

/* Weights of large models come from memory, once for each block of columns. While a strip goes through the
 * panels of one block of B, it asks for its share of the block that is read next: the same columns' next k,
 * or the first k of the next columns. */
typedef struct next_block {
    const float *first; /* of the first panel; NULL: nothing to fetch */
    int64_t panels, lines, share;
} next_block;

static next_block look_ahead(const grt_gemm *g, const plan *p, const operands *o, int64_t strips, int64_t col,
                             int64_t cols, int64_t x)
{
    next_block a = {.first = NULL};
    if (p->mode == B_DIRECT || strips < AHEAD_STRIPS)
        return a;
    int64_t panel = col / NR;
    a.panels = gemm_ceil_div(cols, NR);
    if (x >= g->k) {
        panel += a.panels;
        x = 0;
    }
    if (panel >= o->panels)
        return a;
    a.panels = grt_min64(a.panels, o->panels - panel);
    a.first = o->b + panel * o->panel_stride + x * NR;
    a.lines = grt_min64(p->k_block, g->k - x) * NR / GRT_GEMM_LINE;
    a.share = gemm_ceil_div(a.lines, strips);
    return a;
}

/* What a strip asks for while it multiplies `panels` panels at `b`. */
static grt_gemm_ahead gemm_share_of(const next_block *a, const operands *o, int64_t strip, int64_t panel,
                                    int64_t panels, const float *b)
{
    const int64_t first = strip * a->share, end = grt_min64(first + a->share, a->lines);
    if (!a->first || first >= end || panel + panels > a->panels)
        return (grt_gemm_ahead){b, b};
    const float *from = a->first + panel * o->panel_stride;
    return (grt_gemm_ahead){from + first * GRT_GEMM_LINE, from + (end - 1) * GRT_GEMM_LINE};
}

static bool rows_collide(const grt_gemm *g, int64_t rows, int64_t cols)
{
    return !g->trans_a && rows > CACHE_ROWS && rows <= MOST_ROWS && cols >= COPY_COLS &&
           (uint64_t)g->lda * sizeof(float) % CACHE_WAY == 0;
}

static void copy_strip(int rows, int64_t len, const float *a, int64_t lda, float *out)
{
    for (int i = 0; i < rows; i++)
        memcpy(out + i * len, a + i * lda, (size_t)len * sizeof *out);
}

/* Rows of the next strip, of those that are left. The last two strips share theirs where one of them would
 * have fewer than the kernel wants. A packed A has strips of its own. */
static int64_t strip_of(const grt_gemm *g, const grt_gemm_kernel *kernel, int64_t left)
{
    if (left <= kernel->mr)
        return left;
    return left >= kernel->mr + kernel->least || g->trans_a ? kernel->mr : (left + 1) / 2;
}

static void gemm_run_tile(const grt_gemm *g, const plan *p, const operands *o, int64_t row, int64_t col,
                          float *a_pack)
{
    const int64_t rows = grt_min64(p->m_block, g->m - row), cols = grt_min64(p->n_block, g->n - col);
    const int mr = p->kernel->mr;
    if (g->m <= p->few->most) {
        stream_tile(g, p, o, col, cols);
        return;
    }
    float apart[MOST_ROWS * K_BLOCK]; /* a strip whose rows collide */
    int64_t x = 0;
    do { /* once for k == 0 too: the epilogue is due */
        const int64_t len = grt_min64(p->k_block, g->k - x);
        const grt_gemm_store s = make_store(g, o, x == 0, x + len == g->k);
        const next_block next = look_ahead(g, p, o, gemm_ceil_div(rows, mr), col, cols, x + len);
        if (g->trans_a)
            pack_a(g, o->a, row, rows, x, len, mr, a_pack);
        int64_t strips = 0;
        for (int64_t i = 0, strip; i < rows; i += strip, strips++) {
            strip = strip_of(g, p->kernel, rows - i);
            const float *at = g->trans_a ? a_pack + i * len : o->a + (row + i) * g->lda + x;
            int64_t rsa = g->trans_a ? 1 : g->lda;
            const int64_t csa = g->trans_a ? mr : 1;
            if (rows_collide(g, strip, cols)) {
                copy_strip((int)strip, len, at, g->lda, apart);
                at = apart;
                rsa = len;
            }
            for (int64_t j = 0, now; j < cols; j += now) {
                now = grt_min64((int64_t)p->kernel->panels * NR, cols - j);
                if (o->ragged && now % NR)
                    now = now > NR ? now / NR * NR : now; /* the last panel lies elsewhere */
                const bool ragged = o->ragged && now < NR;
                const int64_t ldb = ragged ? NR : o->ldb;
                const float *b = (ragged ? o->ragged : o->b + (col + j) / NR * o->panel_stride) + x * ldb;
                const grt_gemm_store t = shift_store(&s, row + i, col + j);
                const grt_gemm_ahead ahead =
                    gemm_share_of(&next, o, strips, j / NR, gemm_ceil_div(now, NR), b);
                p->kernel->block((int)strip, now, len, at, rsa, csa, b, ldb, o->panel_stride, &ahead, &t);
            }
        }
        x += len;
    } while (x < g->k);
}

static operands gemm_bind(const grt_gemm *g, const plan *p, int64_t item, const float *a, const float *b,
                          float *c)
{
    operands o = {.a = a + item * g->stride_a, .b = b + item * g->stride_b, .c = c + item * g->stride_c};
    o.bias = g->bias ? g->bias + item * g->stride_bias : NULL;
    o.residual = g->residual ? g->residual + item * g->stride_r : NULL;
    o.ldb = p->mode == B_DIRECT ? g->ldb : NR;
    o.panel_stride = p->mode == B_DIRECT ? NR : NR * (g->packed_k ? g->packed_k : g->k);
    o.panels = gemm_ceil_div(g->n, NR);
    return o;
}

/* A run of one product. `a_pack` and `b_own` are the running thread's; `b_all` is everybody's. */
typedef struct job {
    const grt_gemm *g;
    const plan *p;
    const float *a, *b;
    float *c;
    float *b_all;
    size_t b_step;
    int64_t mt, nt, panels; /* tiles down and across; panels of one B */
} job;

/* B_PACK_THREAD: one batch item as a whole. */
static void run_item(const job *w, int64_t item, float *a_pack, float *b_own)
{
    operands o = gemm_bind(w->g, w->p, item, w->a, w->b, w->c);
    pack_panels(0, w->panels, w->g->k, w->g->n, o.b, w->g->ldb, w->g->trans_b, b_own);
    o.b = b_own;
    for (int64_t t = 0; t < w->mt * w->nt; t++)
        gemm_run_tile(w->g, w->p, &o, t / w->nt * w->p->m_block, t % w->nt * w->p->n_block, a_pack);
}

/* B_PACK_ONCE: one panel of one B. */
static void pack_shared(const job *w, int64_t t)
{
    const grt_gemm *g = w->g;
    const int64_t item = t / w->panels, panel = t % w->panels;
    pack_panels(panel, panel + 1, g->k, g->n, w->b + item * g->stride_b, g->ldb, g->trans_b,
                w->b_all + (size_t)item * w->b_step);
}

/* One tile of one item. *ragged_of: the batch item whose last panel b_own holds, -1 at first. */
static void gemm_run_one(const job *w, int64_t t, float *a_pack, float *b_own, int64_t *ragged_of)
{
    const grt_gemm *g = w->g;
    const plan *p = w->p;
    int64_t item = t, row = 0, col = 0;
    if (w->mt * w->nt > 1) { /* divisions take as long as the products of a batch of small ones */
        /* The larger of the two matrices is walked once: its block stays in a cache while the other's go by.
         */
        const bool down = g->n > g->m;
        item = t / (w->mt * w->nt);
        row = (down ? t % w->mt : t / w->nt % w->mt) * p->m_block;
        col = (down ? t / w->mt % w->nt : t % w->nt) * p->n_block;
    }
    operands o = gemm_bind(g, p, item, w->a, w->b, w->c);
    if (p->mode == B_PACK_ONCE)
        o.b = w->b_all + (p->b_count > 1 ? (size_t)item * w->b_step : 0);
    if (p->mode == B_DIRECT && g->n % NR && col + p->n_block >= g->n) {
        if (*ragged_of != item)
            gemm_pack_panel(g->k, g->n % NR, o.b + g->n / NR * NR, g->ldb, false, b_own);
        *ragged_of = item;
        o.ragged = b_own;
    }
    gemm_run_tile(g, p, &o, row, col, a_pack);
}

/* A batch of products of few rows, each of which is one call of the streaming kernel. */
static bool is_stream(const job *w)
{
    return w->p->mode == B_PACKED && w->g->m <= w->p->few->most && w->nt == 1;
}

static void run_stream(const job *w)
{
    const grt_gemm *g = w->g;
    operands o = gemm_bind(g, w->p, 0, w->a, w->b, w->c);
    const int64_t rsa = g->trans_a ? 1 : g->lda, csa = g->trans_a ? g->lda : 1;
    grt_gemm_store s = make_store(g, &o, true, true);
    for (int64_t i = 0; i < g->batch; i++) {
        w->p->few->stream((int)g->m, g->n, g->k, o.a, rsa, csa, o.b, o.ldb, o.panel_stride, &s);
        o.a += g->stride_a;
        o.b += g->stride_b;
        s.c += g->stride_c;
        s.bias = s.bias ? s.bias + g->stride_bias : NULL;
        s.residual = s.residual ? s.residual + g->stride_r : NULL;
    }
}

/* Without any OpenMP construct: inside a parallel region of the caller's, those would share the work out to
 * its threads. */
static void run_alone(const job *w, float *a_pack, float *b_own)
{
    int64_t ragged_of = -1;
    if (is_stream(w)) {
        run_stream(w);
        return;
    }
    for (int64_t i = 0; w->p->mode == B_PACK_THREAD && i < w->g->batch; i++)
        run_item(w, i, a_pack, b_own);
    if (w->p->mode == B_PACK_THREAD)
        return;
    for (int64_t t = 0; w->p->mode == B_PACK_ONCE && t < w->p->b_count * w->panels; t++)
        pack_shared(w, t);
    for (int64_t t = 0; t < w->g->batch * w->mt * w->nt; t++)
        gemm_run_one(w, t, a_pack, b_own, &ragged_of);
}

/* A part of the tiles or items, in order. Its thread takes the next one, so that what was fetched ahead is
 * what it reads next, and at the next run the same weights are in its core's cache; a thread that has
 * finished its own takes from others. */
typedef struct queue {
    _Alignas(CACHE_LINE) atomic_llong next;
    int64_t end;
} queue;

static void fill_queues(queue *queues, int n, int64_t total)
{
    for (int i = 0; i < n; i++) {
        atomic_init(&queues[i].next, total / n * i + total % n * i / n);
        queues[i].end = total / n * (i + 1) + total % n * (i + 1) / n;
    }
}

/* The next tile of any queue from `*at` on; -1: all are taken. */
static int64_t gemm_take(queue *queues, int n, int *at, int *empty)
{
    for (; *empty < n; (*empty)++, *at = (*at + 1) % n) {
        const int64_t t = atomic_fetch_add_explicit(&queues[*at].next, 1, memory_order_relaxed);
        if (t < queues[*at].end)
            return t;
    }
    return -1;
}

static void run_together(const job *w, queue *queues, int n, float *a_pack, float *b_own)
{
    if (w->p->mode == B_PACK_ONCE) {
#pragma omp for schedule(static)
        for (int64_t t = 0; t < w->p->b_count * w->panels; t++)
            pack_shared(w, t);
    }
    int64_t ragged_of = -1;
    int at = cpu_thread() % n, empty = 0;
    for (int64_t t; (t = gemm_take(queues, n, &at, &empty)) >= 0;)
        if (w->p->mode == B_PACK_THREAD)
            run_item(w, t, a_pack, b_own);
        else
            gemm_run_one(w, t, a_pack, b_own, &ragged_of);
}

void grt_gemm_run(const grt_gemm *g, const float *a, const float *b, float *c, void *scratch, int threads)
{
    plan p = make_plan(g, threads);
    size_t count = 0, a_step = 0, b_step = 0;
    if (g->batch <= 0 || g->m <= 0 || g->n <= 0)
        return;
    if (!size_b(g, &p, &count) || !round_floats(p.a_floats, &a_step) || !round_floats(p.b_floats, &b_step))
        return; /* grt_gemm_scratch_bytes has refused these sizes */
    float *a_all = scratch ? scratch : (void *)grt_nothing, *b_all = a_all + a_step * (size_t)p.threads;
    const job work = {.g = g,
                      .p = &p,
                      .a = a,
                      .b = b,
                      .c = c,
                      .b_all = b_all,
                      .b_step = b_step,
                      .mt = gemm_ceil_div(g->m, p.m_block),
                      .nt = gemm_ceil_div(g->n, p.n_block),
                      .panels = gemm_ceil_div(g->n, NR)};
    if (p.threads == 1) {
        run_alone(&work, a_all, b_all);
        return;
    }
    queue queues[MOST_QUEUES];
    const int n = p.threads < MOST_QUEUES ? p.threads : MOST_QUEUES;
    fill_queues(queues, n, p.mode == B_PACK_THREAD ? g->batch : g->batch * work.mt * work.nt);
#pragma omp parallel num_threads(p.threads)
    {
        const size_t me = (size_t)cpu_thread();
        run_together(&work, queues, n, a_step ? a_all + me * a_step : NULL,
                     b_step ? b_all + me * b_step : NULL);
    }
}

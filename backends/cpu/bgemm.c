/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of products of bfloat16: packing, cache blocking, threads. The arithmetic is in the kernels
 * (bgemm_kernel.h).
 *
 * A thread takes a tile of C: it rounds the tile's rows of A into scratch, and then multiplies them by two
 * panels of B at a time, a block of k after the other, so that a block of the panels stays in the first-level
 * cache while all strips of rows go by. The sums of the two panels stay in scratch until k is at its end. k
 * is split in the same places for every size and number of threads. */
#include "backends/cpu/bgemm.h"

#include "backends/cpu/amx.h"
#include "backends/cpu/bgemm_kernel.h"
#include "backends/cpu/convert.h"
#include "backends/cpu/gemm_kernel.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"
#include "src/base/float.h"
#include "src/base/int64.h"

#include <string.h>

enum {
    NR = GRT_BGEMM_NR,
    COLS = GRT_BGEMM_COLS,
    K_BLOCK = 512,         /* two panels of it are 32 KiB */
    MOST_ROWS = 512,       /* of a tile */
    A_BYTES = 768 << 10,   /* of a tile's rows: half of a second-level cache */
    PARALLEL_OPS = 400000, /* multiply-adds below which a second thread costs more than it saves */
    PACK_COLUMNS = 256,
};

/* On an Intel Xeon with AMX, dot products of pairs ran at 0.6 of the speed of float32's. AMD's are taken to
 * be faster; that has not been measured. */
static const grt_bgemm_kernel *pairs_kernel(void)
{
#ifdef CPU_HAS_AVX512_COPY
    return __builtin_cpu_is("amd") ? grt_bgemm_kernel_avx512_bf16() : NULL;
#else
    return NULL;
#endif
}

/* The first of the machine's is the fastest. */
static const grt_bgemm_kernel *bgemm_kernel(void)
{
    const grt_bgemm_kernel *const of_machine[] = {grt_bgemm_kernel_amx(), pairs_kernel(),
                                                  grt_bgemm_kernel_avx512(), grt_bgemm_kernel_avx2()};
    for (size_t i = 0; i < sizeof of_machine / sizeof *of_machine; i++)
        if (of_machine[i])
            return of_machine[i];
    return &grt_bgemm_kernel_c;
}

const char *grt_bgemm_kernel_name(void)
{
    return bgemm_kernel()->name;
}

static int64_t bgemm_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* k with what pads it. */
static int64_t bgemm_padded(int64_t k)
{
    return bgemm_ceil_div(k, GRT_BGEMM_K) * GRT_BGEMM_K;
}

bool grt_bgemm_packed_bytes(int64_t k, int64_t n, size_t *out_bytes)
{
    if (k < 0 || n < 0 || k > INT64_MAX / 4 || n > INT64_MAX / 4)
        return false;
    return grt_mul_size((size_t)bgemm_ceil_div(n, NR) * NR * sizeof(uint16_t), (size_t)bgemm_padded(k),
                        out_bytes);
}

/* ---- packing ---- */

static void bgemm_pack_run(grt_dtype dtype, const void *from, int64_t at, int64_t n, uint16_t *out)
{
    if (dtype == GRT_DTYPE_BFLOAT16) {
        memcpy(out, (const uint16_t *)from + at, (size_t)n * sizeof *out);
        return;
    }
    cpu_narrow(GRT_DTYPE_BFLOAT16, (const float *)from + at, n, out, 0, (cpu_convert_options){0});
}

/* Columns [j, j + n) of B from its rows x and, if there is one, x + 1. */
static void bgemm_pack_two_rows(int64_t k, grt_dtype dtype, const void *b, int64_t ldb, int64_t x, int64_t j,
                                int64_t n, uint16_t *packed)
{
    uint16_t rows[2][PACK_COLUMNS] = {{0}};
    bgemm_pack_run(dtype, b, x * ldb + j, n, rows[0]);
    if (x + 1 < k)
        bgemm_pack_run(dtype, b, (x + 1) * ldb + j, n, rows[1]);
    for (int64_t i = 0; i < n; i++) {
        uint16_t *to = packed + (j + i) / NR * NR * bgemm_padded(k) + x * NR + (j + i) % NR * 2;
        to[0] = rows[0][i];
        to[1] = rows[1][i];
    }
}

/* Column j of B, which is stored as a row. */
static void bgemm_pack_column(int64_t k, grt_dtype dtype, const void *b, int64_t ldb, int64_t j,
                              uint16_t *packed)
{
    uint16_t run[PACK_COLUMNS];
    uint16_t *panel = packed + j / NR * NR * bgemm_padded(k) + j % NR * 2;
    for (int64_t x = 0; x < k; x += PACK_COLUMNS) {
        const int64_t n = grt_min64(PACK_COLUMNS, k - x);
        bgemm_pack_run(dtype, b, j * ldb + x, n, run);
        for (int64_t i = 0; i < n; i++)
            panel[(x + i) / 2 * 2 * NR + (x + i) % 2] = run[i];
    }
}

void grt_bgemm_pack(int64_t k, int64_t n, grt_dtype dtype, const void *b, int64_t ldb, bool trans_b,
                    uint16_t *packed)
{
    size_t bytes = 0;
    if (!grt_bgemm_packed_bytes(k, n, &bytes))
        return; /* such sizes were refused */
    memset(packed, 0, bytes);
    for (int64_t j = 0; trans_b && j < n; j++)
        bgemm_pack_column(k, dtype, b, ldb, j, packed);
    for (int64_t x = 0; !trans_b && x < k; x += 2)
        for (int64_t j = 0; j < n; j += PACK_COLUMNS)
            bgemm_pack_two_rows(k, dtype, b, ldb, x, j, grt_min64(PACK_COLUMNS, n - j), packed);
}

void grt_bgemm_unpack(int64_t k, int64_t n, const uint16_t *packed, bool trans_b, grt_dtype dtype, void *b)
{
    for (int64_t x = 0; x < k; x++)
        for (int64_t j = 0; j < n; j++) {
            const uint16_t number =
                packed[j / NR * NR * bgemm_padded(k) + x / 2 * 2 * NR + j % NR * 2 + x % 2];
            const int64_t at = trans_b ? j * k + x : x * n + j;
            if (dtype == GRT_DTYPE_BFLOAT16)
                ((uint16_t *)b)[at] = number;
            else
                ((float *)b)[at] = grt_bfloat16_to_float(number);
        }
}

/* ---- a run ---- */

/* How the product is cut. */
typedef struct bgemm_plan {
    const grt_bgemm_kernel *kernel;
    int threads;
    int64_t k, m_block, n_block; /* k: padded; n_block: a multiple of two panels */
    size_t a_bytes, thread_bytes;
} bgemm_plan;

static void bgemm_cut(const grt_bgemm *g, bgemm_plan *p)
{
    const int64_t size = p->kernel->wide_a ? sizeof(float) : sizeof(uint16_t), mr = p->kernel->rows,
                  want = p->threads > 1 ? (int64_t)p->threads * 4 : 1;
    int64_t most = A_BYTES / (p->k * size) / mr * mr;
    most = grt_min64(MOST_ROWS / mr * mr, most < 2 * mr ? 2 * mr : most);
    /* Equal blocks: a short last one would read all of B for a few rows. */
    p->m_block = bgemm_ceil_div(bgemm_ceil_div(g->m, bgemm_ceil_div(g->m, most)), mr) * mr;
    int64_t tiles = bgemm_ceil_div(g->m, p->m_block);
    while (tiles < want && tiles > 1 && p->m_block > 4 * mr) {
        p->m_block = p->m_block / 2 / mr * mr;
        tiles = bgemm_ceil_div(g->m, p->m_block);
    }
    p->n_block = bgemm_ceil_div(bgemm_ceil_div(g->n, bgemm_ceil_div(want, tiles)), COLS) * COLS;
}

static bool bgemm_make_plan(const grt_bgemm *g, int threads, bgemm_plan *p)
{
    size_t sums;
    *p = (bgemm_plan){.kernel = bgemm_kernel(), .threads = threads < 1 ? 1 : threads};
    if (g->k < 0 || g->k > INT64_MAX / 64 || g->m > INT64_MAX / 64 || g->n > INT64_MAX / 64)
        return false;
    if (g->m <= 0 || g->n <= 0)
        return true; /* nothing is computed */
    if ((double)g->m * (double)g->n * (double)g->k < PARALLEL_OPS)
        p->threads = 1;
    p->k = bgemm_padded(g->k);
    if (p->k == 0)
        p->k = GRT_BGEMM_K;
    bgemm_cut(g, p);
    return grt_mul_size((size_t)p->m_block * (size_t)p->k,
                        p->kernel->wide_a ? sizeof(float) : sizeof(uint16_t), &p->a_bytes) &&
           grt_mul_size((size_t)p->m_block, COLS * sizeof(float), &sums) &&
           grt_add_size(grt_align_up(p->a_bytes, 64), sums, &p->thread_bytes) &&
           p->thread_bytes < SIZE_MAX / 4;
}

bool grt_bgemm_scratch_bytes(const grt_bgemm *g, int threads, size_t *out_bytes)
{
    bgemm_plan p;
    return bgemm_make_plan(g, threads, &p) && grt_mul_size(p.thread_bytes, (size_t)p.threads, out_bytes);
}

/* A run of one product. */
typedef struct bgemm_job {
    const grt_bgemm *g;
    const bgemm_plan *p;
    const void *a;
    const uint16_t *b;
    void *c;
} bgemm_job;

/* A row of A as float32 whose numbers are bfloat16's. */
static void bgemm_round_row(const float *from, int64_t n, float *to)
{
    uint16_t narrow[PACK_COLUMNS];
    for (int64_t i = 0; i < n; i += PACK_COLUMNS) {
        const int64_t now = grt_min64(PACK_COLUMNS, n - i);
        cpu_narrow(GRT_DTYPE_BFLOAT16, from + i, now, narrow, 0, (cpu_convert_options){0});
        cpu_widen(GRT_DTYPE_BFLOAT16, narrow, 0, now, to + i);
    }
}

/* Row i of A, as the kernel reads it. */
static void bgemm_take_row(const grt_bgemm *g, const void *a, int64_t i, bool wide, void *out)
{
    const float *from = (const float *)a + i * g->lda;
    if (g->a_dtype == GRT_DTYPE_BFLOAT16 && wide)
        cpu_widen(GRT_DTYPE_BFLOAT16, a, i * g->lda, g->k, out);
    else if (g->a_dtype == GRT_DTYPE_BFLOAT16)
        memcpy(out, (const uint16_t *)a + i * g->lda, (size_t)g->k * sizeof(uint16_t));
    else if (wide)
        bgemm_round_row(from, g->k, out);
    else
        cpu_narrow(GRT_DTYPE_BFLOAT16, from, g->k, out, 0, (cpu_convert_options){0});
}

/* The tile's rows, padded: what pads k is multiplied by zeros, and must be a number. */
static void bgemm_take_rows(const bgemm_job *j, int64_t row, int64_t rows, char *out)
{
    const grt_bgemm *g = j->g;
    const bool wide = j->p->kernel->wide_a;
    const int64_t size = wide ? sizeof(float) : sizeof(uint16_t), step = j->p->k * size, used = g->k * size;
    for (int64_t i = 0; i < rows && used < step; i++)
        memset(out + i * step + used, 0, (size_t)(step - used));
    if (g->rows) {
        g->rows(g->user, row, rows, wide ? GRT_DTYPE_FLOAT : GRT_DTYPE_BFLOAT16, out, j->p->k);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        bgemm_take_row(g, j->a, row + i, wide, out + i * step);
}

/* Sums of rows x cols at C's [row, col], by way of scratch where C is bfloat16. */
static void bgemm_leave(const bgemm_job *j, int64_t row, int64_t rows, int64_t col, int64_t cols, float *sums)
{
    const grt_bgemm *g = j->g;
    const bool narrow = g->c_dtype == GRT_DTYPE_BFLOAT16;
    const int64_t at = row * g->ldc + col, at_r = row * g->ldr + col;
    float added[CPU_AMX_BLOCK_ROWS * COLS];
    grt_gemm_store s = {.c = narrow ? sums : (float *)j->c + at,
                        .ldc = narrow ? COLS : g->ldc,
                        .alpha = g->alpha,
                        .bias = g->bias ? g->bias + col : NULL,
                        .act = g->act};
    if (g->residual) {
        s.residual = narrow ? added : (const float *)g->residual + at_r;
        s.ldr = narrow ? COLS : g->ldr;
    }
    for (int64_t i = 0; i < rows && g->residual && narrow; i++)
        cpu_widen(GRT_DTYPE_BFLOAT16, g->residual, at_r + i * g->ldr, cols, added + i * COLS);
    j->p->kernel->finish((int)rows, cols, sums, &s);
    for (int64_t i = 0; i < rows && narrow; i++)
        cpu_narrow(GRT_DTYPE_BFLOAT16, sums + i * COLS, cols, j->c, at + i * g->ldc,
                   (cpu_convert_options){0});
}

/* Two panels of B by all rows of a tile. */
static void bgemm_run_panels(const bgemm_job *j, const char *a, int64_t row, int64_t rows, int64_t col,
                             float *sums)
{
    const bgemm_plan *p = j->p;
    const int64_t size = p->kernel->wide_a ? sizeof(float) : sizeof(uint16_t), mr = p->kernel->rows,
                  cols = grt_min64(COLS, j->g->n - col), strips = bgemm_ceil_div(rows, mr);
    grt_bgemm_block b = {.panels = cols > NR ? 2 : 1, .lda = p->k, .panel_stride = NR * p->k};
    for (int64_t x = 0; x < p->k; x += K_BLOCK) {
        b.k = grt_min64(K_BLOCK, p->k - x);
        b.adds = x > 0;
        b.b = j->b + col * p->k + x * NR;
        for (int64_t i = 0; i < strips; i++) {
            b.rows = (int)grt_min64(mr, rows - i * mr);
            b.a = a + (i * mr * p->k + x) * size;
            b.sums = sums + i * mr * COLS;
            p->kernel->block(&b);
            if (x + b.k >= p->k)
                bgemm_leave(j, row + i * mr, b.rows, col, cols, b.sums);
        }
    }
}

static void bgemm_run_tiles(const bgemm_job *j, char *scratch, int64_t first, int64_t end, int64_t across,
                            int64_t *holds)
{
    const grt_bgemm *g = j->g;
    const bgemm_plan *p = j->p;
    float *sums = (float *)(void *)(scratch + grt_align_up(p->a_bytes, 64));
    for (int64_t t = first; t < end; t++) {
        const int64_t row = t / across * p->m_block, rows = grt_min64(p->m_block, g->m - row),
                      from = t % across * p->n_block, to = grt_min64(from + p->n_block, g->n);
        if (*holds != row)
            bgemm_take_rows(j, row, rows, scratch);
        *holds = row;
        for (int64_t col = from; col < to; col += COLS)
            bgemm_run_panels(j, scratch, row, rows, col, sums);
    }
}

void grt_bgemm_run(const grt_bgemm *g, const void *a, const uint16_t *packed, void *c, void *scratch,
                   int threads)
{
    bgemm_plan p;
    if (!bgemm_make_plan(g, threads, &p) || g->m <= 0 || g->n <= 0)
        return; /* grt_bgemm_scratch_bytes has refused these sizes */
    const bgemm_job job = {g, &p, a, packed, c};
    const int64_t across = bgemm_ceil_div(g->n, p.n_block), tiles = bgemm_ceil_div(g->m, p.m_block) * across;
#pragma omp parallel num_threads(p.threads) if (p.threads > 1)
    {
        int64_t holds = -1; /* the tile whose rows of A are in the thread's scratch */
        char *mine = (char *)scratch + (size_t)cpu_thread() * p.thread_bytes;
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < tiles; t++)
            bgemm_run_tiles(&job, mine, t, t + 1, across, &holds);
        if (p.kernel->end)
            p.kernel->end();
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Products by weights of few bits. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "backends/cpu/wgemm.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include <stdlib.h>
#include <string.h>

enum {
    NR = GRT_WGEMM_NR,
    FEW = 4,                 /* rows that are multiplied in registers */
    STRIP_BYTES = 512 << 10, /* of weights as float32 */
    PARALLEL_WORK = 100000,
};

typedef float floats __attribute__((vector_size(NR * sizeof(float)), aligned(4)));
typedef int32_t ints __attribute__((vector_size(NR * sizeof(int32_t))));

static int64_t wgemm_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t panels_of(const grt_wgemm *w)
{
    return (w->n + NR - 1) / NR;
}

/* Consecutive numbers of a column in a word. */
static int64_t per_word(const grt_wgemm *w)
{
    return 32 / w->bits;
}

static int64_t panel_words(const grt_wgemm *w)
{
    return w->blocks * w->groups * NR;
}

/* ---- packing ---- */

bool grt_wgemm_allocate(grt_wgemm *w)
{
    size_t numbers, scales;
    w->blocks = (w->k - 1) / w->block + 1;
    w->groups = ((w->block < w->k ? w->block : w->k) - 1) / per_word(w) + 1;
    if (!grt_mul_size((size_t)panels_of(w) * sizeof(uint32_t), (size_t)panel_words(w), &numbers) ||
        !grt_mul_size((size_t)panels_of(w), (size_t)w->blocks * NR * sizeof(float), &scales))
        return false;
    w->numbers = calloc(1, numbers + 1);
    w->scales = calloc(1, scales + 1);
    w->zeros = calloc(1, scales / sizeof(float) + 1);
    return w->numbers && w->scales && w->zeros;
}

void grt_wgemm_release(grt_wgemm *w)
{
    free(w->numbers);
    free(w->scales);
    free(w->zeros);
}

void grt_wgemm_put_column(grt_wgemm *w, int64_t column, const uint8_t *numbers)
{
    const int64_t per = per_word(w);
    uint32_t *panel = w->numbers + column / NR * panel_words(w) + column % NR;
    for (int64_t b = 0, x = 0; b < w->blocks; b++) {
        uint32_t *to = panel + b * w->groups * NR;
        for (const int64_t end = wgemm_min64(x + w->block, w->k); x < end; to += NR) {
            uint32_t word = 0;
            for (int64_t i = 0; i < per && x < end; i++, x++)
                word |= (uint32_t)numbers[x] << (i * w->bits);
            *to = word;
        }
    }
}

void grt_wgemm_put_row(grt_wgemm *w, int64_t x, const uint8_t *numbers)
{
    const int64_t in_block = x % w->block, per = per_word(w), step = panel_words(w);
    const int64_t shift = in_block % per * w->bits;
    uint32_t *to = w->numbers + (x / w->block * w->groups + in_block / per) * NR;
    for (int64_t j = 0; j < w->n; j += NR, to += step)
        for (int64_t i = 0; i < wgemm_min64(NR, w->n - j); i++)
            to[i] |= (uint32_t)numbers[j + i] << shift;
}

/* ---- registers ---- */

typedef struct panel {
    const uint32_t *numbers;
    const uint8_t *zeros;
    const float *scales;
} panel;

static panel panel_at(const grt_wgemm *w, int64_t i)
{
    return (panel){w->numbers + i * panel_words(w), w->zeros + i * w->blocks * NR,
                   w->scales + i * w->blocks * NR};
}

#define INLINE static inline __attribute__((always_inline))

INLINE void load_block(const panel *p, int64_t block, floats *zero, floats *scale)
{
    for (int j = 0; j < NR; j++)
        (*zero)[j] = (float)p->zeros[block * NR + j];
    memcpy(scale, p->scales + block * NR, sizeof *scale);
}

typedef struct numbers {
    int bits;
    bool is_float8;
} numbers;

/* The value of e4m3fn codes: 8 and more have their exponent moved to float32's; below, they are multiples of
 * 2^-9; the last is NaN. */
INLINE void read_float8(ints code, floats *out)
{
    const ints size = code & 127, few = size < 8, none = size == 127;
    const floats small = __builtin_convertvector(size, floats) * 0x1p-9f;
    ints bits = (size << 20) + (120 << 23);
    bits = (few & (ints)small) | (~few & bits) | (none & 0x7fc00000) | (code & 128) << 24;
    *out = (floats)bits;
}

/* Number i of a group's words. */
INLINE void take_numbers(const ints *words, const numbers kind, const int i, floats *out)
{
    const ints code = (*words >> (kind.bits * i)) & ((1 << kind.bits) - 1);
    if (kind.is_float8)
        read_float8(code, out);
    else
        *out = __builtin_convertvector(code, floats);
}

/* `count` numbers of a group times those of each row's a. Two sums a row, as an addition waits for the one
 * before. */
INLINE void add_group(const uint32_t *from, const numbers kind, const int rows, const int count,
                      const floats *zero, const float *a, int64_t lda, floats (*part)[2])
{
    ints words;
    memcpy(&words, from, sizeof words);
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        floats v;
        take_numbers(&words, kind, i, &v);
        v -= *zero;
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            part[r][i % 2] += v * a[r * lda + i];
    }
}

/* rows and kind are constants where this is inlined. sums: rows x 16. */
INLINE void multiply_few(const grt_wgemm *w, const numbers kind, const int rows, const panel *p,
                         const float *a, float *sums)
{
    const int per = 32 / kind.bits;
    floats sum[FEW];
    for (int r = 0; r < rows; r++)
        sum[r] = (floats){0};
    for (int64_t b = 0, x = 0; b < w->blocks; b++) {
        const uint32_t *from = p->numbers + b * w->groups * NR;
        const int64_t end = wgemm_min64(x + w->block, w->k);
        floats zero, scale, part[FEW][2];
        load_block(p, b, &zero, &scale);
        for (int r = 0; r < rows; r++)
            part[r][0] = part[r][1] = (floats){0};
        for (; x + per <= end; x += per, from += NR)
            add_group(from, kind, rows, per, &zero, a + x, w->k, part);
        if (x < end)
            add_group(from, kind, rows, (int)(end - x), &zero, a + x, w->k, part);
        x = end;
        for (int r = 0; r < rows; r++)
            sum[r] += (part[r][0] + part[r][1]) * scale;
    }
    for (int r = 0; r < rows; r++)
        memcpy(sums + r * NR, &sum[r], sizeof sum[r]);
}

CPU_BODY few_body(const grt_wgemm *w, int rows, const panel *p, const float *a, float *sums)
{
#define ROWS(R)                                                  \
    case R:                                                      \
        if (w->bits == 4)                                        \
            multiply_few(w, (numbers){4, false}, R, p, a, sums); \
        else if (w->is_float8)                                   \
            multiply_few(w, (numbers){8, true}, R, p, a, sums);  \
        else                                                     \
            multiply_few(w, (numbers){8, false}, R, p, a, sums); \
        break;
    switch (rows) {
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
    }
#undef ROWS
}
CPU_DISPATCH(few, (const grt_wgemm *w, int rows, const panel *p, const float *a, float *sums),
             (w, rows, p, a, sums))

static void run_few(const grt_wgemm *w, int64_t m, int64_t i, const float *a, const float *bias, float *y)
{
    float sums[FEW * NR];
    const panel p = panel_at(w, i);
    const int64_t cols = wgemm_min64(NR, w->n - i * NR);
    few(w, (int)m, &p, a, sums);
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < cols; j++)
            y[r * w->n + i * NR + j] = sums[r * NR + j] + (bias ? bias[i * NR + j] : 0.0f);
}

/* ---- strips ---- */

/* A group of a panel as the float32 product has it: rows of 16. */
INLINE void widen_group(const uint32_t *from, const numbers kind, const int count, const floats *zero,
                        const floats *scale, float *out)
{
    ints words;
    memcpy(&words, from, sizeof words);
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        floats v;
        take_numbers(&words, kind, i, &v);
        v = (v - *zero) * *scale;
        memcpy(out + i * NR, &v, sizeof v);
    }
}

INLINE void widen_panel(const grt_wgemm *w, const numbers kind, const panel *p, float *out)
{
    const int per = 32 / kind.bits;
    for (int64_t b = 0, x = 0; b < w->blocks; b++) {
        const uint32_t *from = p->numbers + b * w->groups * NR;
        const int64_t end = wgemm_min64(x + w->block, w->k);
        floats zero, scale;
        load_block(p, b, &zero, &scale);
        for (; x + per <= end; x += per, from += NR)
            widen_group(from, kind, per, &zero, &scale, out + x * NR);
        if (x < end)
            widen_group(from, kind, (int)(end - x), &zero, &scale, out + x * NR);
        x = end;
    }
}

CPU_BODY widen_body(const grt_wgemm *w, const panel *p, float *out)
{
    if (w->bits == 4)
        widen_panel(w, (numbers){4, false}, p, out);
    else if (w->is_float8)
        widen_panel(w, (numbers){8, true}, p, out);
    else
        widen_panel(w, (numbers){8, false}, p, out);
}
CPU_DISPATCH(widen, (const grt_wgemm *w, const panel *p, float *out), (w, p, out))

static int64_t strip_panels(const grt_wgemm *w)
{
    const int64_t n = STRIP_BYTES / (NR * (int64_t)sizeof(float) * (w->k > 0 ? w->k : 1)) / 2 * 2;
    return wgemm_min64(n < 2 ? 2 : n, panels_of(w) > 0 ? panels_of(w) : 1);
}

/* Columns from panel `first` on. */
static grt_gemm strip_product(const grt_wgemm *w, int64_t m, int64_t first, int64_t panels)
{
    const int64_t n = wgemm_min64(panels * NR, w->n - first * NR);
    return (grt_gemm){.batch = 1,
                      .m = m,
                      .n = n,
                      .k = w->k,
                      .lda = w->k,
                      .ldb = n,
                      .ldc = w->n,
                      .b_packed = true,
                      .alpha = 1.0f};
}

static bool wgemm_sizes(const grt_wgemm *w, int64_t m, size_t *out_strip, size_t *out_gemm)
{
    const int64_t panels = strip_panels(w);
    const grt_gemm g = strip_product(w, m, 0, panels);
    *out_gemm = 0;
    return grt_mul_size((size_t)panels * NR * sizeof(float), (size_t)w->k, out_strip) &&
           grt_gemm_scratch_bytes(&g, 1, out_gemm);
}

bool grt_wgemm_scratch_bytes(const grt_wgemm *w, int64_t m, int threads, size_t *out_bytes)
{
    size_t strip, gemm;
    cpu_layout layout = {0};
    *out_bytes = 0;
    if (m <= FEW)
        return true;
    if (!wgemm_sizes(w, m, &strip, &gemm))
        return false;
    cpu_layout_add(&layout, 1, strip);
    cpu_layout_add(&layout, 1, gemm);
    return !layout.overflow && grt_mul_size(layout.bytes, (size_t)threads, out_bytes);
}

static void wgemm_run_strip(const grt_wgemm *w, int64_t m, int64_t first, const float *a, const float *bias,
                            float *y, char *scratch)
{
    size_t strip, gemm;
    wgemm_sizes(w, m, &strip, &gemm);
    const int64_t panels = wgemm_min64(strip_panels(w), panels_of(w) - first);
    grt_gemm g = strip_product(w, m, first, panels);
    float *wide = (float *)(void *)scratch;
    for (int64_t i = 0; i < panels; i++) {
        const panel p = panel_at(w, first + i);
        widen(w, &p, wide + i * NR * w->k);
    }
    g.bias = bias ? bias + first * NR : NULL;
    grt_gemm_run(&g, a, wide, y + first * NR, scratch + grt_align_up(strip, 64), 1);
}

/* ---- run ---- */

void grt_wgemm_run(const grt_wgemm *w, int64_t m, const float *a, const float *bias, float *y, void *scratch,
                   int threads)
{
    const bool is_few = m <= FEW;
    const int64_t step = is_few ? 1 : strip_panels(w), count = (panels_of(w) + step - 1) / step;
    size_t bytes = 0;
    if (!grt_wgemm_scratch_bytes(w, m, 1, &bytes) || m <= 0)
        return; /* such sizes were refused */
#pragma omp parallel for num_threads(threads) \
    schedule(dynamic) if ((double)m * (double)w->n * (double)w->k > PARALLEL_WORK)
    for (int64_t i = 0; i < count; i++) {
        if (is_few)
            run_few(w, m, i, a, bias, y);
        else
            wgemm_run_strip(w, m, i * step, a, bias, y, (char *)scratch + (size_t)cpu_thread() * bytes);
    }
}

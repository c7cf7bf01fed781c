/* SPDX-License-Identifier: Apache-2.0 */
/* Products by weights of few bits. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "backends/cpu/wgemm.h"

#include "backends/cpu/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/wgemm_bytes.h"
#include "backends/cpu/workspace.h"

#include <stdlib.h>
#include <string.h>

enum {
    NR = GRT_WGEMM_NR,
    STRIP_BYTES = 512 << 10, /* of weights as float32 */
    PARALLEL_WORK = 100000,
    LEAST_ROUNDED = 4, /* rows: fewer wait for memory, which float32 does as well */
};

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

/* Numbers, scales and zero points lie behind each other; each is a multiple of 16 elements. */
bool grt_wgemm_size(grt_wgemm *w, size_t *out_bytes)
{
    size_t numbers, scales;
    w->blocks = (w->k - 1) / w->block + 1;
    w->groups = ((w->block < w->k ? w->block : w->k) - 1) / per_word(w) + 1;
    return grt_mul_size((size_t)panels_of(w) * sizeof(uint32_t), (size_t)panel_words(w), &numbers) &&
           grt_mul_size((size_t)panels_of(w), (size_t)w->blocks * NR * sizeof(float), &scales) &&
           grt_add_size(numbers, scales, &numbers) &&
           grt_add_size(numbers, scales / sizeof(float), out_bytes);
}

void grt_wgemm_place(grt_wgemm *w, void *memory)
{
    const size_t panels = (size_t)panels_of(w), scales = panels * (size_t)w->blocks * NR;
    w->numbers = memory;
    w->scales = (float *)(w->numbers + panels * (size_t)panel_words(w));
    w->zeros = (uint8_t *)(w->scales + scales);
    memset(memory, 0, (size_t)((char *)(w->zeros + scales) - (char *)memory));
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

static const grt_wgemm_kernel *wgemm_kernel(void)
{
#ifdef CPU_HAS_AVX512_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX512)
        return grt_wgemm_kernel_avx512();
#endif
#ifdef CPU_HAS_AVX2_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        return grt_wgemm_kernel_avx2();
#endif
    return grt_wgemm_kernel_c();
}

/* How many rows are multiplied in registers. */
static int64_t wgemm_few_rows(void)
{
    return wgemm_kernel()->few_rows;
}

static grt_wgemm_panel panel_at(const grt_wgemm *w, int64_t i)
{
    return (grt_wgemm_panel){w->numbers + i * panel_words(w), w->zeros + i * w->blocks * NR,
                             w->scales + i * w->blocks * NR};
}

static void run_few(const grt_wgemm *w, int64_t m, int64_t i, const float *a, const float *bias, float *y)
{
    float sums[GRT_WGEMM_FEW * NR];
    const grt_wgemm_panel p = panel_at(w, i);
    const int64_t cols = wgemm_min64(NR, w->n - i * NR);
    wgemm_kernel()->few(w, (int)m, &p, a, sums);
    for (int64_t r = 0; r < m; r++)
        for (int64_t j = 0; j < cols; j++)
            y[r * w->n + i * NR + j] = sums[r * NR + j] + (bias ? bias[i * NR + j] : 0.0f);
}

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

static const grt_wgemm_byte_kernel *byte_kernel_for(const grt_wgemm *w, int64_t m)
{
    return w->may_round && m >= LEAST_ROUNDED ? grt_wgemm_byte_kernel_of(w) : NULL;
}

bool grt_wgemm_scratch_bytes(const grt_wgemm *w, int64_t m, int threads, size_t *out_bytes)
{
    size_t strip, gemm;
    cpu_layout layout = {0};
    *out_bytes = 0;
    if (byte_kernel_for(w, m))
        return grt_wgemm_rounded_bytes(w, m, out_bytes);
    if (m <= wgemm_few_rows())
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
        const grt_wgemm_panel p = panel_at(w, first + i);
        wgemm_kernel()->widen(w, &p, wide + i * NR * w->k);
    }
    g.bias = bias ? bias + first * NR : NULL;
    grt_gemm_run(&g, a, wide, y + first * NR, scratch + grt_align_up(strip, 64), 1);
}

/* ---- rounded rows ---- */

static bool wgemm_is_parallel(const grt_wgemm *w, int64_t m)
{
    return (double)m * (double)w->n * (double)w->k > PARALLEL_WORK;
}

/* Strips of rows by a panel, whose sums have no other place. */
static void run_rounded(const grt_wgemm *w, const grt_wgemm_byte_kernel *kernel, const grt_wgemm_rounded *x,
                        int64_t m, int64_t i, const float *bias, float *y)
{
    float sums[GRT_WGEMM_BYTE_ROWS * NR];
    const grt_wgemm_panel p = panel_at(w, i);
    const int64_t cols = wgemm_min64(NR, w->n - i * NR);
    for (int64_t r = 0; r < m; r += kernel->rows) {
        const grt_wgemm_rounded at = grt_wgemm_rounded_from(w, x, r);
        const int64_t rows = wgemm_min64(kernel->rows, m - r);
        kernel->multiply(w, rows, &p, &at, sums);
        for (int64_t a = 0; a < rows; a++)
            for (int64_t j = 0; j < cols; j++)
                y[(r + a) * w->n + i * NR + j] = sums[a * NR + j] + (bias ? bias[i * NR + j] : 0.0f);
    }
}

static void run_all_rounded(const grt_wgemm *w, const grt_wgemm_byte_kernel *kernel, int64_t m,
                            const float *a, const float *bias, float *y, void *scratch, int threads)
{
    const grt_wgemm_rounded x = grt_wgemm_rounded_at(w, m, scratch);
    const int64_t panels = panels_of(w);
#pragma omp parallel num_threads(threads) if (wgemm_is_parallel(w, m))
    {
#pragma omp for
        for (int64_t r = 0; r < m; r++)
            grt_wgemm_round_row(w, &x, r, a + r * w->k);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < panels; i++)
            run_rounded(w, kernel, &x, m, i, bias, y);
    }
}

void grt_wgemm_run(const grt_wgemm *w, int64_t m, const float *a, const float *bias, float *y, void *scratch,
                   int threads)
{
    const bool is_few = m <= wgemm_few_rows();
    const int64_t step = is_few ? 1 : strip_panels(w), count = (panels_of(w) + step - 1) / step;
    const grt_wgemm_byte_kernel *rounding = byte_kernel_for(w, m);
    size_t bytes = 0;
    if (!grt_wgemm_scratch_bytes(w, m, 1, &bytes) || m <= 0)
        return; /* such sizes were refused */
    if (rounding) {
        run_all_rounded(w, rounding, m, a, bias, y, scratch, threads);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (wgemm_is_parallel(w, m))
    for (int64_t i = 0; i < count; i++) {
        if (is_few)
            run_few(w, m, i, a, bias, y);
        else
            wgemm_run_strip(w, m, i * step, a, bias, y, (char *)scratch + (size_t)cpu_thread() * bytes);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM micro-kernels for AVX2 with FMA: blocks of 6 x 16 for matrices, up to four of them side by side, 1 x
 * 64, 2 x 32 and 3 x 32 for a few rows. The functions carry their own target attribute; the file needs no
 * special compiler flag, and nothing here runs before grt_gemm_kernel_avx2 has asked cpu_isa_best. */
#include "backends/cpu/gemm_kernel.h"
#include "backends/cpu/isa.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include "backends/cpu/act_avx2.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define LOAD   _mm256_loadu_ps
#define PUT    _mm256_storeu_ps

/* Lists of rows, so that the accumulators are named variables and stay in registers. */
#define ROWS_1(X) X(0)
#define ROWS_2(X) ROWS_1(X) X(1)
#define ROWS_3(X) ROWS_2(X) X(2)
#define ROWS_4(X) ROWS_3(X) X(3)
#define ROWS_5(X) ROWS_4(X) X(4)
#define ROWS_6(X) ROWS_5(X) X(5)

#define DECLARE(i)                                     \
    __m256 lo##i = _mm256_setzero_ps(), hi##i = lo##i; \
    const float *a##i = a + (i)*rsa;
#define STEP(i)                                         \
    {                                                   \
        const __m256 v = _mm256_broadcast_ss(a##i + x); \
        lo##i = _mm256_fmadd_ps(v, b0, lo##i);          \
        hi##i = _mm256_fmadd_ps(v, b1, hi##i);          \
    }
#define STEP_STRIDED(i)                                       \
    {                                                         \
        const __m256 v = _mm256_broadcast_ss(a##i + x * csa); \
        lo##i = _mm256_fmadd_ps(v, b0, lo##i);                \
        hi##i = _mm256_fmadd_ps(v, b1, hi##i);                \
    }
#define STORE_SIMPLE(i)                                                                     \
    {                                                                                       \
        float *c = s->c + (i)*s->ldc;                                                       \
        if (s->alpha != 1.0f) {                                                             \
            const __m256 alpha = _mm256_set1_ps(s->alpha);                                  \
            lo##i = _mm256_mul_ps(lo##i, alpha);                                            \
            hi##i = _mm256_mul_ps(hi##i, alpha);                                            \
        }                                                                                   \
        if (s->beta != 0.0f) {                                                              \
            lo##i = _mm256_add_ps(lo##i, LOAD(c));                                          \
            hi##i = _mm256_add_ps(hi##i, LOAD(c + 8));                                      \
        }                                                                                   \
        lo##i = _mm256_add_ps(lo##i, bias0);                                                \
        hi##i = _mm256_add_ps(hi##i, bias1);                                                \
        if (s->act.kind == GRT_ACT_RELU) { /* max(0, x) gives its second operand for NaN */ \
            lo##i = _mm256_max_ps(_mm256_setzero_ps(), lo##i);                              \
            hi##i = _mm256_max_ps(_mm256_setzero_ps(), hi##i);                              \
        }                                                                                   \
        PUT(c, lo##i);                                                                      \
        PUT(c + 8, hi##i);                                                                  \
    }
#define SPILL(i)                       \
    PUT(acc + (i)*GRT_GEMM_NR, lo##i); \
    PUT(acc + (i)*GRT_GEMM_NR + 8, hi##i);

/* Lanes of a row of 16 that exist when there are `cols` columns. */
TARGET static inline __m256i lanes(int64_t cols)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int n = cols < 0 ? 0 : cols > 8 ? 8 : (int)cols;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), index);
}

/* The first n of eight. Stores with a mask are microcode on AMD's processors, as long as ten others. */
TARGET static inline __attribute__((always_inline)) void put_first(float *to, __m256 v, int64_t n)
{
    __m128 part = _mm256_castps256_ps128(v);
    if (n >= 8) {
        PUT(to, v);
        return;
    }
    if (n & 4) {
        _mm_storeu_ps(to, part);
        part = _mm256_extractf128_ps(v, 1);
        to += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)to, part);
        part = _mm_movehl_ps(part, part);
        to += 2;
    }
    if (n & 1)
        _mm_store_ss(to, part);
}

/* Sums to C: two rows of eight with everything but the costlier activations applied. */
typedef struct finisher {
    int64_t cols;
    __m256i low, high; /* lanes that exist */
    __m256 alpha, beta, bias0, bias1;
    bool whole;
} finisher;

TARGET static inline __attribute__((always_inline)) __m256 get(const finisher *f, const float *from,
                                                               bool high)
{
    return f->whole ? LOAD(from + 8 * high) : _mm256_maskload_ps(from + 8 * high, high ? f->high : f->low);
}

TARGET static inline __attribute__((always_inline)) void gemm_avx2_put(const finisher *f, float *to,
                                                                       bool high, __m256 v)
{
    if (f->whole)
        PUT(to + 8 * high, v);
    else if (!high || f->cols > 8)
        put_first(to + 8 * high, v, f->cols - 8 * high);
}

/* The general epilogue on up to 16 columns of `acc`. The costlier activations run over all rows at once,
 * where neighbours hide each other's latency. */
TARGET static void gemm_avx2_finish(int rows, int64_t cols, float *acc, int64_t acc_ld,
                                    const grt_gemm_store *s)
{
    finisher f = {.cols = cols,
                  .low = lanes(cols),
                  .high = lanes(cols - 8),
                  .alpha = _mm256_set1_ps(s->alpha),
                  .beta = _mm256_set1_ps(s->beta),
                  .whole = cols >= GRT_GEMM_NR};
    f.bias0 = s->bias ? get(&f, s->bias, false) : _mm256_setzero_ps();
    f.bias1 = s->bias ? get(&f, s->bias, true) : _mm256_setzero_ps();
    const bool later = s->act.kind != GRT_ACT_NONE && s->act.kind != GRT_ACT_RELU;
    float dense[6 * GRT_GEMM_NR];
    for (int i = 0; i < rows; i++) {
        float *c = s->c + i * s->ldc;
        __m256 lo = _mm256_mul_ps(LOAD(acc + i * acc_ld), f.alpha),
               hi = _mm256_mul_ps(LOAD(acc + i * acc_ld + 8), f.alpha);
        if (s->beta != 0.0f) {
            lo = _mm256_fmadd_ps(f.beta, get(&f, c, false), lo);
            hi = _mm256_fmadd_ps(f.beta, get(&f, c, true), hi);
        }
        lo = _mm256_add_ps(lo, f.bias0);
        hi = _mm256_add_ps(hi, f.bias1);
        if (s->bias_row) {
            const __m256 v = _mm256_broadcast_ss(s->bias_row + i);
            lo = _mm256_add_ps(lo, v);
            hi = _mm256_add_ps(hi, v);
        }
        if (s->residual) {
            const float *r = s->residual + i * s->ldr;
            lo = _mm256_add_ps(lo, get(&f, r, false));
            hi = _mm256_add_ps(hi, get(&f, r, true));
        }
        if (later) {
            PUT(dense + i * GRT_GEMM_NR, lo);
            PUT(dense + i * GRT_GEMM_NR + 8, hi);
            continue;
        }
        if (s->act.kind == GRT_ACT_RELU) {
            lo = _mm256_max_ps(_mm256_setzero_ps(), lo);
            hi = _mm256_max_ps(_mm256_setzero_ps(), hi);
        }
        gemm_avx2_put(&f, c, false, lo);
        gemm_avx2_put(&f, c, true, hi);
    }
    if (!later)
        return;
    act_avx2_apply(s->act, dense, rows * GRT_GEMM_NR);
    for (int i = 0; i < rows; i++) {
        gemm_avx2_put(&f, s->c + i * s->ldc, false, LOAD(dense + i * GRT_GEMM_NR));
        gemm_avx2_put(&f, s->c + i * s->ldc, true, LOAD(dense + i * GRT_GEMM_NR + 8));
    }
}

#define STEPS(R, STEP_OF)                                \
    for (; x < k; x++, row += ldb) {                     \
        const __m256 b0 = LOAD(row), b1 = LOAD(row + 8); \
        ROWS_##R(STEP_OF)                                \
    }
#define STEPS_AHEAD(R, STEP_OF)                                           \
    grt_gemm_ahead ask = ahead;                                           \
    for (; x + GRT_GEMM_AHEAD_STEPS <= k;) {                              \
        grt_gemm_fetch(&ask, 1, 0);                                       \
        for (int u = 0; u < GRT_GEMM_AHEAD_STEPS; u++, x++, row += ldb) { \
            const __m256 b0 = LOAD(row), b1 = LOAD(row + 8);              \
            ROWS_##R(STEP_OF)                                             \
        }                                                                 \
    }                                                                     \
    STEPS(R, STEP_OF)
/* Adding a zero bias costs one instruction and saves a second set of stores. */
#define SUM_AND_STORE(R, STEPS_OF)                                              \
    int64_t x = 0;                                                              \
    const float *row = b;                                                       \
    ROWS_##R(DECLARE) if (csa == 1)                                             \
    {                                                                           \
        STEPS_OF(R, STEP)                                                       \
    }                                                                           \
    else                                                                        \
    {                                                                           \
        STEPS_OF(R, STEP_STRIDED)                                               \
    }                                                                           \
    if (s->simple && cols >= GRT_GEMM_NR) {                                     \
        const __m256 bias0 = s->bias ? LOAD(s->bias) : _mm256_setzero_ps();     \
        const __m256 bias1 = s->bias ? LOAD(s->bias + 8) : _mm256_setzero_ps(); \
        ROWS_##R(STORE_SIMPLE)                                                  \
    } else {                                                                    \
        float acc[(R)*GRT_GEMM_NR];                                             \
        ROWS_##R(SPILL) gemm_avx2_finish(R, cols, acc, GRT_GEMM_NR, s);         \
    }

/* The store of the next panel's sums. */
static inline void next_panel(grt_gemm_store *s)
{
    s->c += GRT_GEMM_NR;
    s->bias = s->bias ? s->bias + GRT_GEMM_NR : NULL;
    s->residual = s->residual ? s->residual + GRT_GEMM_NR : NULL;
}

/* One function per number of rows. Panel by panel, without a way back to the driver: where k is short, calls
 * would take a tenth of the time. */
#define DEFINE_BLOCK(R)                                                                             \
    TARGET static void block_##R(int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa, \
                                 const float *b, int64_t ldb, int64_t panel_stride,                 \
                                 const grt_gemm_ahead *asked, const grt_gemm_store *store)          \
    {                                                                                               \
        grt_gemm_ahead ahead = *asked;                                                              \
        grt_gemm_store t = *store;                                                                  \
        const grt_gemm_store *const s = &t;                                                         \
        for (; cols > 0; cols -= GRT_GEMM_NR, b += panel_stride, next_panel(&t)) {                  \
            SUM_AND_STORE(R, STEPS_AHEAD)                                                           \
            ahead.next += panel_stride;                                                             \
            ahead.last += panel_stride;                                                             \
        }                                                                                           \
    }
/* A batch of small products is little else: asking ahead would take longer than it saves. */
#define DEFINE_FEW(R)                                                                             \
    TARGET static void few_##R(int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa, \
                               const float *b, int64_t ldb, const grt_gemm_store *s)              \
    {                                                                                             \
        SUM_AND_STORE(R, STEPS)                                                                   \
    }

DEFINE_BLOCK(1)
DEFINE_BLOCK(2)
DEFINE_BLOCK(3)
DEFINE_BLOCK(4)
DEFINE_BLOCK(5)
DEFINE_BLOCK(6)
DEFINE_FEW(1)
DEFINE_FEW(2)
DEFINE_FEW(3)

static void gemm_avx2_block(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                            const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_ahead *ahead,
                            const grt_gemm_store *s)
{
    typedef void of_rows(int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t, int64_t,
                         const grt_gemm_ahead *, const grt_gemm_store *);
    static of_rows *const blocks[] = {block_1, block_2, block_3, block_4, block_5, block_6};
    blocks[rows - 1](cols, k, a, rsa, csa, b, ldb, panel_stride, ahead, s);
}

/* One row against four panels: eight independent sums hide the latency of FMA, and B is only ever streamed.
 */
TARGET static void stream_1x64(int64_t k, const float *a, int64_t csa, const float *b, int64_t ldb,
                               int64_t panel_stride, float *acc)
{
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    const float *p0 = b, *p1 = b + panel_stride, *p2 = p1 + panel_stride, *p3 = p2 + panel_stride;
    for (int64_t x = 0; x < k; x++) {
        const __m256 v = _mm256_broadcast_ss(a + x * csa);
        const int64_t at = x * ldb;
        s0 = _mm256_fmadd_ps(v, LOAD(p0 + at), s0);
        s1 = _mm256_fmadd_ps(v, LOAD(p0 + at + 8), s1);
        s2 = _mm256_fmadd_ps(v, LOAD(p1 + at), s2);
        s3 = _mm256_fmadd_ps(v, LOAD(p1 + at + 8), s3);
        s4 = _mm256_fmadd_ps(v, LOAD(p2 + at), s4);
        s5 = _mm256_fmadd_ps(v, LOAD(p2 + at + 8), s5);
        s6 = _mm256_fmadd_ps(v, LOAD(p3 + at), s6);
        s7 = _mm256_fmadd_ps(v, LOAD(p3 + at + 8), s7);
    }
    PUT(acc, s0);
    PUT(acc + 8, s1);
    PUT(acc + 16, s2);
    PUT(acc + 24, s3);
    PUT(acc + 32, s4);
    PUT(acc + 40, s5);
    PUT(acc + 48, s6);
    PUT(acc + 56, s7);
}

#define DECLARE_PAIR(i)                                                                            \
    __m256 s##i##0 = _mm256_setzero_ps(), s##i##1 = s##i##0, s##i##2 = s##i##0, s##i##3 = s##i##0; \
    const float *a##i = a + (i)*rsa;
#define STEP_PAIR(i)                                          \
    {                                                         \
        const __m256 v = _mm256_broadcast_ss(a##i + x * csa); \
        s##i##0 = _mm256_fmadd_ps(v, b0, s##i##0);            \
        s##i##1 = _mm256_fmadd_ps(v, b1, s##i##1);            \
        s##i##2 = _mm256_fmadd_ps(v, b2, s##i##2);            \
        s##i##3 = _mm256_fmadd_ps(v, b3, s##i##3);            \
    }
#define SPILL_PAIR(i)                \
    PUT(acc + (i)*32, s##i##0);      \
    PUT(acc + (i)*32 + 8, s##i##1);  \
    PUT(acc + (i)*32 + 16, s##i##2); \
    PUT(acc + (i)*32 + 24, s##i##3);
#define DEFINE_PAIR(R)                                                                                      \
    TARGET static void stream_##R##x32(int64_t k, const float *a, int64_t rsa, int64_t csa, const float *b, \
                                       int64_t ldb, int64_t panel_stride, float *acc)                       \
    {                                                                                                       \
        ROWS_##R(DECLARE_PAIR) for (int64_t x = 0; x < k; x++)                                              \
        {                                                                                                   \
            const float *p = b + x * ldb, *q = p + panel_stride;                                            \
            const __m256 b0 = LOAD(p), b1 = LOAD(p + 8), b2 = LOAD(q), b3 = LOAD(q + 8);                    \
            ROWS_##R(STEP_PAIR)                                                                             \
        }                                                                                                   \
        ROWS_##R(SPILL_PAIR)                                                                                \
    }

DEFINE_PAIR(1)
DEFINE_PAIR(2)
DEFINE_PAIR(3)

/* Up to three rows against up to four panels. Sums of one column are made in the same order on every path. */
TARGET static void gemm_avx2_stream(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa,
                                    int64_t csa, const float *b, int64_t ldb, int64_t panel_stride,
                                    const grt_gemm_store *store)
{
    if (cols <= GRT_GEMM_NR) {
        (rows == 1 ? few_1 : rows == 2 ? few_2 : few_3)(cols, k, a, rsa, csa, b, ldb, store);
        return;
    }
    float acc[3 * 4 * GRT_GEMM_NR];
    grt_gemm_store s = *store;
    while (cols > 0) {
        int64_t width = GRT_GEMM_NR;
        if (rows == 1 && cols > 3 * GRT_GEMM_NR) {
            width = 4 * GRT_GEMM_NR;
            stream_1x64(k, a, csa, b, ldb, panel_stride, acc);
        } else if (cols > GRT_GEMM_NR) {
            width = 2 * GRT_GEMM_NR;
            if (rows == 1)
                stream_1x32(k, a, rsa, csa, b, ldb, panel_stride, acc);
            else if (rows == 2)
                stream_2x32(k, a, rsa, csa, b, ldb, panel_stride, acc);
            else
                stream_3x32(k, a, rsa, csa, b, ldb, panel_stride, acc);
        } else {
            (rows == 1 ? few_1 : rows == 2 ? few_2 : few_3)(cols, k, a, rsa, csa, b, ldb, &s);
            return;
        }
        const int64_t now = cols < width ? cols : width;
        for (int64_t at = 0; at < now; at += GRT_GEMM_NR) {
            const int64_t panel = now - at < GRT_GEMM_NR ? now - at : GRT_GEMM_NR;
            gemm_avx2_finish(rows, panel, acc + at, width, &s);
            s.c += panel;
            s.bias = s.bias ? s.bias + panel : NULL;
            s.residual = s.residual ? s.residual + panel : NULL;
        }
        b += width / GRT_GEMM_NR * panel_stride;
        cols -= now;
    }
}

enum { SWEEP_COLS = 1024, SWEEP_ROWS = 8, SWEEP_MOST = 3 };

/* acc[0, cols) += a[0] * b[0] + ... of `n` rows of B, each product rounded in that order. */
TARGET static inline __attribute__((always_inline)) void
add_rows(const int n, const float *a, int64_t csa, const float *b, int64_t ldb, int64_t cols, float *acc)
{
    __m256 v[SWEEP_ROWS];
#pragma GCC unroll 8
    for (int x = 0; x < n; x++)
        v[x] = _mm256_broadcast_ss(a + x * csa);
    int64_t j = 0;
    for (; j + 8 <= cols; j += 8) {
        __m256 sum = LOAD(acc + j);
#pragma GCC unroll 8
        for (int x = 0; x < n; x++)
            sum = _mm256_fmadd_ps(v[x], LOAD(b + x * ldb + j), sum);
        PUT(acc + j, sum);
    }
    const __m256i rest = lanes(cols - j);
    if (j < cols) {
        __m256 sum = LOAD(acc + j);
        for (int x = 0; x < n; x++)
            sum = _mm256_fmadd_ps(v[x], _mm256_maskload_ps(b + x * ldb + j, rest), sum);
        PUT(acc + j, sum);
    }
}

/* Few rows times plain B: its rows are read in order, eight at a time. */
TARGET static void sweep(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                         const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_store *store)
{
    (void)panel_stride;
    float acc[SWEEP_MOST][SWEEP_COLS];
    grt_gemm_store s = *store;
    for (int64_t first = 0; first < cols; first += SWEEP_COLS) {
        const int64_t now = cols - first < SWEEP_COLS ? cols - first : SWEEP_COLS;
        for (int i = 0; i < rows; i++)
            memset(acc[i], 0, sizeof acc[i]);
        int64_t x = 0;
        for (; x + SWEEP_ROWS <= k; x += SWEEP_ROWS)
            for (int i = 0; i < rows; i++)
                add_rows(SWEEP_ROWS, a + i * rsa + x * csa, csa, b + x * ldb + first, ldb, now, acc[i]);
        for (; x < k; x++)
            for (int i = 0; i < rows; i++)
                add_rows(1, a + i * rsa + x * csa, csa, b + x * ldb + first, ldb, now, acc[i]);
        for (int64_t at = 0; at < now; at += GRT_GEMM_NR) {
            const int64_t panel = now - at < GRT_GEMM_NR ? now - at : GRT_GEMM_NR;
            gemm_avx2_finish(rows, panel, acc[0] + at, SWEEP_COLS, &s);
            s.c += panel;
            s.bias = s.bias ? s.bias + panel : NULL;
            s.residual = s.residual ? s.residual + panel : NULL;
        }
    }
}

static const grt_gemm_few few = {SWEEP_MOST, 4, gemm_avx2_stream, sweep};
enum { ROWS = 6, LEAST = 4, PANELS = 4 };

static const grt_gemm_kernel kernel = {"avx2", ROWS, LEAST, PANELS, gemm_avx2_block, &few};

const grt_gemm_kernel *grt_gemm_kernel_avx2(void)
{
    return cpu_isa_best() >= CPU_ISA_AVX2 ? &kernel : NULL;
}

#else

const grt_gemm_kernel *grt_gemm_kernel_avx2(void)
{
    return NULL;
}

#endif

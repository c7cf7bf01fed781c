/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM micro-kernels for AVX-512: blocks of 12 x 32, two panels of B at a time. A few rows are a matter of
 * memory and not of arithmetic: AVX2's kernels serve. Each sum is made in the same order there and here, so
 * that both give the same bits. Nothing here runs before grt_gemm_kernel_avx512 has asked cpu_isa_best. */
#include "backends/cpu/gemm_kernel.h"
#include "backends/cpu/isa.h"

#ifdef CPU_HAS_AVX512_COPY

#include <immintrin.h>

enum { ROWS = 12, PANELS = 2, WIDTH = PANELS * GRT_GEMM_NR };

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
#define INLINE static inline __attribute__((always_inline))

/* What is added to sums before the activation, and where they go. */
typedef struct finisher {
    const grt_gemm_store *s;
    __mmask16 lanes[PANELS]; /* columns that exist */
    __m512 alpha, beta, bias[PANELS];
} finisher;

TARGET INLINE finisher make_finisher(const grt_gemm_store *s, int64_t cols)
{
    finisher f = {.s = s, .alpha = _mm512_set1_ps(s->alpha), .beta = _mm512_set1_ps(s->beta)};
    const uint32_t lanes = cols >= WIDTH ? UINT32_MAX : (UINT32_C(1) << cols) - 1;
#pragma GCC unroll 2
    for (int p = 0; p < PANELS; p++) {
        f.lanes[p] = (__mmask16)(lanes >> p * GRT_GEMM_NR);
        f.bias[p] =
            s->bias ? _mm512_maskz_loadu_ps(f.lanes[p], s->bias + p * GRT_GEMM_NR) : _mm512_setzero_ps();
    }
    return f;
}

/* Everything but the costlier activations. */
TARGET INLINE __m512 finish(const finisher *f, int row, int panel, __m512 sum)
{
    const grt_gemm_store *s = f->s;
    const int64_t at = panel * GRT_GEMM_NR;
    if (s->alpha != 1.0f)
        sum = _mm512_mul_ps(sum, f->alpha);
    if (s->beta != 0.0f)
        sum = _mm512_fmadd_ps(f->beta, _mm512_maskz_loadu_ps(f->lanes[panel], s->c + row * s->ldc + at), sum);
    sum = _mm512_add_ps(sum, f->bias[panel]);
    if (s->bias_row)
        sum = _mm512_add_ps(sum, _mm512_set1_ps(s->bias_row[row]));
    if (s->residual)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(f->lanes[panel], s->residual + row * s->ldr + at));
    if (s->act.kind == GRT_ACT_RELU) /* max(0, x) gives its second operand for NaN */
        sum = _mm512_max_ps(_mm512_setzero_ps(), sum);
    return sum;
}

/* `rows` and `panels` are constants where this is inlined, and the sums stay in registers. */
TARGET INLINE void multiply(const int rows, const int panels, int64_t cols, int64_t k, const float *a,
                            int64_t rsa, int64_t csa, const float *b, int64_t ldb, int64_t panel_stride,
                            const grt_gemm_store *s)
{
    __m512 sum[ROWS][PANELS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[i][p] = _mm512_setzero_ps();
    for (int64_t x = 0; x < k; x++, b += ldb, a += csa) {
        __m512 of_b[PANELS];
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            of_b[p] = _mm512_loadu_ps(b + p * panel_stride);
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++) {
            const __m512 v = _mm512_set1_ps(a[i * rsa]);
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[i][p] = _mm512_fmadd_ps(v, of_b[p], sum[i][p]);
        }
    }
    const finisher f = make_finisher(s, cols);
    const bool later = s->act.kind != GRT_ACT_NONE && s->act.kind != GRT_ACT_RELU;
    float dense[ROWS * WIDTH];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++) {
            const __m512 v = finish(&f, i, p, sum[i][p]);
            if (later)
                _mm512_storeu_ps(dense + i * WIDTH + p * GRT_GEMM_NR, v);
            else
                _mm512_mask_storeu_ps(s->c + i * s->ldc + p * GRT_GEMM_NR, f.lanes[p], v);
        }
    if (!later)
        return;
    /* All rows at once, where neighbours hide each other's latency. */
    for (int i = 0; i < rows && panels < PANELS; i++)
        memset(dense + i * WIDTH + GRT_GEMM_NR, 0, GRT_GEMM_NR * sizeof *dense);
    grt_act_apply(s->act, dense, rows * WIDTH);
    for (int i = 0; i < rows; i++)
        memcpy(s->c + i * s->ldc, dense + i * WIDTH, (size_t)cols * sizeof *dense);
}

#define BLOCK(R)                                                                                             \
    TARGET static void block_##R(int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,          \
                                 const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_store *s) \
    {                                                                                                        \
        if (cols > GRT_GEMM_NR)                                                                              \
            multiply(R, 2, cols, k, a, rsa, csa, b, ldb, panel_stride, s);                                   \
        else                                                                                                 \
            multiply(R, 1, cols, k, a, rsa, csa, b, ldb, panel_stride, s);                                   \
    }
BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)
BLOCK(7)
BLOCK(8)
BLOCK(9)
BLOCK(10)
BLOCK(11)
BLOCK(12)

static void block(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa, const float *b,
                  int64_t ldb, int64_t panel_stride, const grt_gemm_store *s)
{
    typedef void of_rows(int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t, int64_t,
                         const grt_gemm_store *);
    static of_rows *const blocks[ROWS] = {block_1, block_2, block_3, block_4,  block_5,  block_6,
                                          block_7, block_8, block_9, block_10, block_11, block_12};
    blocks[rows - 1](cols, k, a, rsa, csa, b, ldb, panel_stride, s);
}

const grt_gemm_kernel *grt_gemm_kernel_avx512(void)
{
    static const grt_gemm_kernel kernel = {"avx512", ROWS, PANELS, block, NULL};
    return cpu_isa_best() >= CPU_ISA_AVX512 ? &kernel : NULL;
}

#else

const grt_gemm_kernel *grt_gemm_kernel_avx512(void)
{
    return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM micro-kernels for AVX-512: blocks of 12 x 32, two panels of B at a time. A few rows are a matter of
 * memory and not of arithmetic: AVX2's kernels serve. Each sum is made in the same order there and here, so
 * that both give the same bits. Nothing here runs before grt_gemm_kernel_avx512 has asked cpu_isa_best. */
#include "backends/cpu/gemm_kernel.h"
#include "backends/cpu/isa.h"

#ifdef CPU_HAS_AVX512_COPY

#include "backends/cpu/act_avx512.h"

#include <immintrin.h>
#include <math.h>

enum { ROWS = 12, LEAST = 4, PANELS = 2, WIDTH = PANELS * GRT_GEMM_NR, GROUP = 3, GROUPS = ROWS / GROUP };
enum { CALL_PANELS = 4 }; /* that one call takes at most, two at a time */

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
#define INLINE static inline __attribute__((always_inline))

/* Sums of two panels, or of what is left of them, to C: the general epilogue. `kind` is a constant where this
 * is inlined; kinds that act_avx512.h does not have are left to be applied later, and the sums stay where
 * they are. */
TARGET INLINE void finish_kind(const grt_act_kind kind, const bool later, int rows, int64_t cols, float *sums,
                               const grt_gemm_store *s)
{
    const uint32_t lanes = cols >= WIDTH ? UINT32_MAX : (UINT32_C(1) << cols) - 1;
    for (int p = 0; p < PANELS; p++) {
        const __mmask16 now = (__mmask16)(lanes >> p * GRT_GEMM_NR);
        const int64_t at = p * GRT_GEMM_NR;
        const __m512 alpha = _mm512_set1_ps(s->alpha), beta = _mm512_set1_ps(s->beta);
        const __m512 bias = s->bias && now ? _mm512_maskz_loadu_ps(now, s->bias + at) : _mm512_setzero_ps();
        for (int i = 0; i < rows && now; i++) {
            __m512 v = _mm512_mul_ps(_mm512_load_ps(sums + i * WIDTH + at), alpha);
            if (s->beta != 0.0f)
                v = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(now, s->c + i * s->ldc + at), v);
            v = _mm512_add_ps(v, bias);
            if (s->bias_row)
                v = _mm512_add_ps(v, _mm512_set1_ps(s->bias_row[i]));
            if (s->residual)
                v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(now, s->residual + i * s->ldr + at));
            if (kind == GRT_ACT_RELU) /* max(0, x) gives its second operand for NaN */
                v = _mm512_max_ps(_mm512_setzero_ps(), v);
            if (later)
                _mm512_store_ps(sums + i * WIDTH + at, v);
            else
                _mm512_mask_storeu_ps(s->c + i * s->ldc + at, now, act_avx512_of(kind, s->act.a, v));
        }
    }
}

#define FINISH(KIND)                                   \
    case KIND:                                         \
        finish_kind(KIND, false, rows, cols, sums, s); \
        return

/* `cols` are all that the call has left, of which two panels are at hand: the sums of earlier steps of the
 * others are still in C. */
TARGET static void gemm_avx512_finish(int rows, int64_t cols, float *sums, const grt_gemm_store *s)
{
    const int64_t here = cols < WIDTH ? cols : WIDTH;
    switch (s->act.kind) {
        FINISH(GRT_ACT_NONE);
        FINISH(GRT_ACT_RELU);
        FINISH(GRT_ACT_SIGMOID);
        FINISH(GRT_ACT_TANH);
        FINISH(GRT_ACT_SILU);
        FINISH(GRT_ACT_GELU_ERF);
        FINISH(GRT_ACT_GELU_TANH);
    default:
        break;
    }
    finish_kind(GRT_ACT_NONE, true, rows, cols, sums, s);
    grt_act_apply(s->act, sums, rows * WIDTH);
    for (int i = 0; i < rows; i++)
        memcpy(s->c + i * s->ldc, sums + i * WIDTH, (size_t)here * sizeof *sums);
}

/* Adding a zero bias costs one instruction and saves a second set of stores; so does a mask of all lanes. */
TARGET INLINE void store_simple(const int rows, const int panels, int64_t cols, __m512 sum[ROWS][PANELS],
                                const grt_gemm_store *s)
{
    const uint32_t all = cols >= WIDTH ? UINT32_MAX : (UINT32_C(1) << cols) - 1;
    const __mmask16 lanes[PANELS] = {(__mmask16)all, (__mmask16)(all >> GRT_GEMM_NR)};
    const __m512 alpha = _mm512_set1_ps(s->alpha),
                 least = _mm512_set1_ps(s->act.kind == GRT_ACT_RELU ? 0.0f : -INFINITY);
    __m512 bias[PANELS];
#pragma GCC unroll 2
    for (int p = 0; p < panels; p++)
        bias[p] = s->bias ? _mm512_maskz_loadu_ps(lanes[p], s->bias + p * GRT_GEMM_NR) : _mm512_setzero_ps();
    if (s->alpha != 1.0f)
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[i][p] = _mm512_mul_ps(sum[i][p], alpha);
    if (s->beta != 0.0f)
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[i][p] = _mm512_add_ps(
                    sum[i][p], _mm512_maskz_loadu_ps(lanes[p], s->c + i * s->ldc + p * GRT_GEMM_NR));
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++) /* max gives its second operand for NaN */
            _mm512_mask_storeu_ps(s->c + i * s->ldc + p * GRT_GEMM_NR, lanes[p],
                                  _mm512_max_ps(least, _mm512_add_ps(sum[i][p], bias[p])));
}

/* Rows of A in groups of three, whose addresses are a pointer and once or twice a distance in bytes: twelve
 * rows then take five registers, and none is reloaded in the loop. */
typedef struct rows_of_a {
    const char *group[GROUPS];
    int64_t row;
} rows_of_a;

TARGET INLINE rows_of_a group_rows(const int rows, const float *a, int64_t rsa)
{
    rows_of_a r = {.row = rsa * (int64_t)sizeof *a};
#pragma GCC unroll 4
    for (int i = 0; i * GROUP < rows; i++) {
        r.group[i] = (const char *)(a + i * GROUP * rsa);
        __asm__("" : "+r"(r.group[i])); /* the compiler would make all of them from one again */
    }
    return r;
}

TARGET INLINE void multiply_step(const int rows, const int panels, rows_of_a *a, int64_t to_next,
                                 const float *b, int64_t panel_stride, __m512 sum[ROWS][PANELS])
{
    __m512 of_b[PANELS];
#pragma GCC unroll 2
    for (int p = 0; p < panels; p++)
        of_b[p] = _mm512_loadu_ps(b + p * panel_stride);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        const void *at = a->group[i / GROUP] + i % GROUP * a->row;
        const __m512 v = _mm512_set1_ps(*(const float *)at);
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[i][p] = _mm512_fmadd_ps(v, of_b[p], sum[i][p]);
    }
#pragma GCC unroll 4
    for (int i = 0; i * GROUP < rows; i++)
        a->group[i] += to_next;
}

/* `rows`, `panels` and `packed` are constants where this is inlined, and the sums stay in registers. packed:
 * B is, and A's columns are neighbours. */
TARGET INLINE void multiply(const int rows, const int panels, const bool packed, int64_t cols, int64_t k,
                            const float *a, int64_t rsa, int64_t csa, const float *b, int64_t ldb,
                            int64_t panel_stride, grt_gemm_ahead ahead, const grt_gemm_store *s)
{
    __m512 sum[ROWS][PANELS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[i][p] = _mm512_setzero_ps();
    rows_of_a of_a = group_rows(rows, a, rsa);
    for (; packed && k >= GRT_GEMM_AHEAD_STEPS; k -= GRT_GEMM_AHEAD_STEPS) {
        grt_gemm_fetch(&ahead, panels, panel_stride);
#pragma GCC unroll 4
        for (int u = 0; u < GRT_GEMM_AHEAD_STEPS; u++, b += GRT_GEMM_NR)
            multiply_step(rows, panels, &of_a, sizeof *a, b, panel_stride, sum);
    }
    for (; k > 0; k--, b += ldb)
        multiply_step(rows, panels, &of_a, csa * (int64_t)sizeof *a, b, panel_stride, sum);
    if (s->simple) {
        store_simple(rows, panels, cols, sum, s);
        return;
    }
    float dense[ROWS * WIDTH] __attribute__((aligned(64)));
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < PANELS; p++)
            _mm512_store_ps(dense + i * WIDTH + p * GRT_GEMM_NR,
                            p < panels ? sum[i][p] : _mm512_setzero_ps());
    gemm_avx512_finish(rows, cols, dense, s);
}

/* The store of the next two panels' sums. */
TARGET INLINE void move_store(grt_gemm_store *s)
{
    s->c += WIDTH;
    s->bias = s->bias ? s->bias + WIDTH : NULL;
    s->residual = s->residual ? s->residual + WIDTH : NULL;
}

/* Two panels at a time, without a way back to the driver: where k is short, calls would take an eighth of the
 * time. */
#define BLOCK(R)                                                                                    \
    TARGET static void block_##R(int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa, \
                                 const float *b, int64_t ldb, int64_t panel_stride,                 \
                                 const grt_gemm_ahead *asked, const grt_gemm_store *store)          \
    {                                                                                               \
        const bool packed = csa == 1 && ldb == GRT_GEMM_NR;                                         \
        grt_gemm_store s = *store;                                                                  \
        grt_gemm_ahead ahead = *asked;                                                              \
        for (; cols > 0; cols -= WIDTH, b += PANELS * panel_stride, move_store(&s)) {               \
            if (packed && cols > GRT_GEMM_NR)                                                       \
                multiply(R, 2, true, cols, k, a, rsa, 1, b, GRT_GEMM_NR, panel_stride, ahead, &s);  \
            else if (packed)                                                                        \
                multiply(R, 1, true, cols, k, a, rsa, 1, b, GRT_GEMM_NR, panel_stride, ahead, &s);  \
            else if (cols > GRT_GEMM_NR)                                                            \
                multiply(R, 2, false, cols, k, a, rsa, csa, b, ldb, panel_stride, ahead, &s);       \
            else                                                                                    \
                multiply(R, 1, false, cols, k, a, rsa, csa, b, ldb, panel_stride, ahead, &s);       \
            ahead.next += PANELS * panel_stride;                                                    \
            ahead.last += PANELS * panel_stride;                                                    \
        }                                                                                           \
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

static void gemm_avx512_block(int rows, int64_t cols, int64_t k, const float *a, int64_t rsa, int64_t csa,
                              const float *b, int64_t ldb, int64_t panel_stride, const grt_gemm_ahead *ahead,
                              const grt_gemm_store *s)
{
    typedef void of_rows(int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t, int64_t,
                         const grt_gemm_ahead *, const grt_gemm_store *);
    static of_rows *const blocks[ROWS] = {block_1, block_2, block_3, block_4,  block_5,  block_6,
                                          block_7, block_8, block_9, block_10, block_11, block_12};
    blocks[rows - 1](cols, k, a, rsa, csa, b, ldb, panel_stride, ahead, s);
}

const grt_gemm_kernel *grt_gemm_kernel_avx512(void)
{
    static const grt_gemm_kernel kernel = {"avx512", ROWS, LEAST, CALL_PANELS, gemm_avx512_block, NULL};
    return cpu_isa_best() >= CPU_ISA_AVX512 ? &kernel : NULL;
}

#else

const grt_gemm_kernel *grt_gemm_kernel_avx512(void)
{
    return NULL;
}

#endif

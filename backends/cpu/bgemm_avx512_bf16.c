/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16 by AVX512-BF16's dot products of pairs. They take numbers that are too small to be
 * normal as zeros. */
#include "backends/cpu/bgemm_kernel.h"
#include "backends/cpu/isa.h"

#include <stddef.h>
#include <string.h>

#ifdef CPU_HAS_AVX512_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma,bmi,bmi2,prefer-vector-width=512")

#include <immintrin.h>

enum { ROWS = 12, PANELS = GRT_BGEMM_PANELS };

#define INLINE static inline __attribute__((always_inline))

/* rows and panels are constants where this is inlined, and the sums stay in registers. */
INLINE void multiply_pairs(const int rows, const int panels, const grt_bgemm_block *at)
{
    const uint16_t *a = at->a;
    __m512 sum[ROWS][PANELS];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[r][p] = at->adds ? _mm512_loadu_ps(at->sums + r * GRT_BGEMM_COLS + p * GRT_BGEMM_NR)
                                 : _mm512_setzero_ps();
    for (int64_t x = 0; x < at->k; x += 2) {
        __m512i of_b[PANELS];
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            of_b[p] = _mm512_loadu_si512(at->b + p * at->panel_stride + x * GRT_BGEMM_NR);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            int32_t pair;
            memcpy(&pair, a + r * at->lda + x, sizeof pair);
            const __m512i v = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[r][p] = _mm512_dpbf16_ps(sum[r][p], (__m512bh)v, (__m512bh)of_b[p]);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            _mm512_storeu_ps(at->sums + r * GRT_BGEMM_COLS + p * GRT_BGEMM_NR, sum[r][p]);
}

#define OF_ROWS(n)                                   \
    static void pairs_##n(const grt_bgemm_block *at) \
    {                                                \
        if (at->panels == PANELS)                    \
            multiply_pairs(n, PANELS, at);           \
        else                                         \
            multiply_pairs(n, 1, at);                \
    }
OF_ROWS(1)
OF_ROWS(2)
OF_ROWS(3)
OF_ROWS(4)
OF_ROWS(5)
OF_ROWS(6)
OF_ROWS(7)
OF_ROWS(8)
OF_ROWS(9)
OF_ROWS(10)
OF_ROWS(11)
OF_ROWS(12)

static void pairs_block(const grt_bgemm_block *at)
{
    static void (*const of_rows[ROWS])(const grt_bgemm_block *) = {pairs_1, pairs_2,  pairs_3,  pairs_4,
                                                                   pairs_5, pairs_6,  pairs_7,  pairs_8,
                                                                   pairs_9, pairs_10, pairs_11, pairs_12};
    of_rows[at->rows - 1](at);
}

const grt_bgemm_kernel *grt_bgemm_kernel_avx512_bf16(void)
{
    static const grt_bgemm_kernel kernel = {"avx512_bf16",           ROWS, false, pairs_block,
                                            grt_bgemm_finish_avx512, NULL};
    return cpu_isa_has_avx512_bf16() ? &kernel : NULL;
}

#else

const grt_bgemm_kernel *grt_bgemm_kernel_avx512_bf16(void)
{
    return NULL;
}

#endif

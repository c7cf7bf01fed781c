/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of 8-bit products for AVX2: blocks of 6 x 16 of crossed int16 pairs, whose products and sums
 * are exact modulo 2^32, and of few rows by B's bytes. The instruction on bytes, vpmaddubsw, saturates. */
#include "backends/cpu/isa.h"
#include "backends/cpu/qgemm_kernel.h"

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx2,fma,bmi,bmi2")
#include "backends/cpu/qgemm_loops.inc"

#include <immintrin.h>

#define VECTORS     2
#define VECTOR      __m256i
#define ROWS        6
#define PANELS      1
#define ZERO        _mm256_setzero_si256
#define LOAD(p)     _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define SPREAD(v)   _mm256_set1_epi32(v)
#define ADD         _mm256_add_epi32
#define CROSS(s, odd, r, even, t) \
    ADD(s, _mm256_madd_epi16(_mm256_add_epi16(odd, r), _mm256_add_epi16(even, t)))
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_finish_avx2.inc"

#define QGEMM_WIDE
#define TAPS_DOT(s, a, b) _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
#include "backends/cpu/qgemm_taps.inc"

/* Elements 1, 3, 2 and 4 of each four; before them what the row loses. */
static void cross_row(const uint8_t *from, int64_t n, int16_t *to)
{
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1, 4, 5,
                                           2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    __m256i pairs = _mm256_setzero_si256(); /* in every other sum of 32 bits */
    for (int64_t i = 0; i < n; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        const __m256i v = _mm256_shuffle_epi8(_mm256_cvtepu8_epi16(bytes), order);
        pairs = _mm256_add_epi32(pairs, _mm256_madd_epi16(v, _mm256_srli_epi64(v, 32)));
        _mm256_storeu_si256((__m256i *)(void *)(to + 4 + i), v);
    }
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    const int32_t loses[2] = {(int32_t)(0 - (uint32_t)_mm_cvtsi128_si32(sum)), 0};
    memcpy(to, loses, sizeof loses);
}

/* Before the elements what all columns have too much, as their bytes are unsigned. */
static void widen_behind_sum(const uint8_t *from, int64_t n, int16_t *to)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += from[i];
    const uint32_t head[2] = {128 * sum, 0};
    memcpy(to, head, sizeof head);
    widen_bytes(from, n, to + 4);
}

/* Upper bytes of words. As a shuffle it is left to a port of its own on processors with one port for shifts
 * and products. */
static inline __attribute__((always_inline)) __m256i upper_bytes(__m256i words)
{
    const __m256i places = _mm256_setr_epi8(1, -1, 3, -1, 5, -1, 7, -1, 9, -1, 11, -1, 13, -1, 15, -1, 1, -1,
                                            3, -1, 5, -1, 7, -1, 9, -1, 11, -1, 13, -1, 15, -1);
    return _mm256_shuffle_epi8(words, places);
}

/* `rows` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void multiply_few(const int rows, int64_t groups, const char *a,
                                                               int64_t lda, const char *b, int32_t *sums)
{
    const __m256i lower = _mm256_set1_epi16(0xff);
    const int at_once = rows < 3 ? 4 : 2; /* elements: as many as there are registers for */
    __m256i left[ROWS], right[ROWS];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        left[i] = right[i] = _mm256_sub_epi32(_mm256_setzero_si256(), spread_word(a + i * lda));
    a += 4 * sizeof(int16_t);
    for (int64_t x = 0; x < 4 * groups; x += at_once) {
        if (rows < 3) /* they wait for B */
            _mm_prefetch(b + 2048, _MM_HINT_T0);
#pragma GCC unroll 2
        for (int h = 0; h < at_once; h += 2, a += 2 * sizeof(int16_t), b += 2 * GRT_QGEMM_NR) {
            const __m256i both = LOAD(b), of_left = _mm256_and_si256(both, lower),
                          of_right = upper_bytes(both);
#pragma GCC unroll 6
            for (int i = 0; i < rows; i++) {
                const __m256i v = spread_word(a + i * lda);
                left[i] = ADD(left[i], _mm256_madd_epi16(v, of_left));
                right[i] = ADD(right[i], _mm256_madd_epi16(v, of_right));
            }
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        STORE(sums + i * WIDTH, left[i]);
        STORE(sums + i * WIDTH + 8, right[i]);
    }
}

static void multiply_few_rows(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                              int64_t panel_stride, int32_t *sums)
{
    (void)panels;
    (void)panel_stride;
    switch (rows) {
    case 1:
        multiply_few(1, groups, a, lda, b, sums);
        break;
    case 2:
        multiply_few(2, groups, a, lda, b, sums);
        break;
    case 3:
        multiply_few(3, groups, a, lda, b, sums);
        break;
    case 4:
        multiply_few(4, groups, a, lda, b, sums);
        break;
    case 5:
        multiply_few(5, groups, a, lda, b, sums);
        break;
    default:
        multiply_few(ROWS, groups, a, lda, b, sums);
    }
}

const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void)
{
    static const grt_qgemm_kernel few = {.name = "avx2, few rows",
                                         .mr = ROWS,
                                         .panels = PANELS,
                                         .wide = true,
                                         .halved = true,
                                         .step = 1,
                                         .block = multiply_few_rows,
                                         .finish = finish_rows,
                                         .widen = widen_behind_sum,
                                         .row_sums = sum_rows};
    static const grt_qgemm_kernel kernel = {.name = "avx2",
                                            .mr = ROWS,
                                            .panels = PANELS,
                                            .wide = true,
                                            .crossed = true,
                                            .few = &few,
                                            .step = 1,
                                            .block = multiply_block,
                                            .finish = finish_rows,
                                            .windows = sum_windows,
                                            .widen = cross_row,
                                            .row_sums = sum_rows};
    return cpu_isa_best() >= CPU_ISA_AVX2 ? &kernel : NULL;
}

#else

const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void)
{
    return NULL;
}

#endif

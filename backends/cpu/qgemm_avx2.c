/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of 8-bit products for AVX2: blocks of 4 x 16 of crossed int16 pairs, whose products and sums
 * are exact modulo 2^32, and of few rows by two planes of half bytes, as vpmaddubsw saturates. */
#include "backends/cpu/isa.h"
#include "backends/cpu/qgemm_kernel.h"

#ifdef CPU_HAS_AVX2_COPY

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx2,fma,bmi,bmi2")
#include "backends/cpu/qgemm_loops.inc"

#include <immintrin.h>

#define VECTORS     2
#define VECTOR      __m256i
#define ROWS        4
#define PANELS      1
#define ZERO        _mm256_setzero_si256
#define LOAD(p)     _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define SPREAD(v)   _mm256_set1_epi32(v)
#define ADD         _mm256_add_epi32
#define SUB         _mm256_sub_epi32

/* Left to itself, the compiler keeps more products than registers. */
static inline __attribute__((always_inline)) __m256i add_crossed(__m256i sum, __m256i odd, __m256i r,
                                                                 __m256i even, __m256i t)
{
    __m256i a, b;
    __asm__("vpaddw %4, %3, %1\n\t"
            "vpaddw %6, %5, %2\n\t"
            "vpmaddwd %1, %2, %1\n\t"
            "vpaddd %1, %0, %0"
            : "+x"(sum), "=&x"(a), "=&x"(b)
            : "x"(odd), "x"(r), "x"(even), "x"(t));
    return sum;
}

#define CROSS add_crossed
#include "backends/cpu/qgemm_finish_avx2.inc"
#include "backends/cpu/qgemm_rows_avx2.inc"
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_plain.inc"

#define QGEMM_WIDE
#define TAPS_DOT(s, a, b) _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
#include "backends/cpu/qgemm_taps.inc"

/* Sums in every other 32 bits of v's elements, what it loses. */
static inline __attribute__((always_inline)) int32_t crossed_loss(__m256i pairs)
{
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    return (int32_t)(0 - (uint32_t)_mm_cvtsi128_si32(sum));
}

/* A row's numbers behind what it loses. */
static inline __attribute__((always_inline)) void cross_row(const uint8_t *from, int64_t k, __m128i flip,
                                                            const uint8_t *end, int16_t *to)
{
    enum { BYTES = sizeof(__m128i), HEAD = 4 };
    __m256i pairs = _mm256_setzero_si256(); /* in every other sum of 32 bits */
    for (int64_t i = 0; i < k; i += BYTES) {
        const __m256i v = _mm256_cvtepu8_epi16(load_bytes(from + i, k - i, flip, end));
        pairs = _mm256_add_epi32(pairs, _mm256_madd_epi16(v, _mm256_srli_epi64(v, 32)));
        _mm256_storeu_si256((__m256i *)(void *)(to + HEAD + i), v);
    }
    const int32_t loses[2] = {crossed_loss(pairs), 0};
    memcpy(to, loses, sizeof loses);
}

/* k: a multiple of four. */
static void lose_rows(void *rows, int64_t lda, int64_t n, int64_t k)
{
    enum { LANES_16 = sizeof(__m256i) / sizeof(int16_t), HEAD = 4 };
    for (int64_t i = 0; i < n; i++) {
        char *row = (char *)rows + i * lda;
        const int16_t *from = (const int16_t *)(const void *)row + HEAD;
        __m256i pairs = _mm256_setzero_si256();
        int64_t x = 0;
        for (; x + LANES_16 <= k; x += LANES_16) {
            const __m256i v = LOAD(from + x);
            pairs = _mm256_add_epi32(pairs, _mm256_madd_epi16(v, _mm256_srli_epi64(v, 32)));
        }
        uint32_t loss = (uint32_t)crossed_loss(pairs);
        for (; x < k; x += 4)
            loss -= (uint32_t)(from[x] * from[x + 2]) + (uint32_t)(from[x + 1] * from[x + 3]);
        const uint32_t loses[2] = {loss, 0};
        memcpy(row, loses, sizeof loses);
    }
}

static void cross_rows(const uint8_t *from, int64_t ld, int64_t rows, int64_t k, uint8_t flip, void *to,
                       int64_t ldt)
{
    const uint8_t *end = from + (rows - 1) * ld + k;
    const __m128i flips = _mm_set1_epi8((char)flip);
    for (int64_t i = 0; i < rows; i++)
        cross_row(from + i * ld, k, flips, end, (int16_t *)(void *)((char *)to + i * ldt));
}

static void split_row(const uint8_t *from, int64_t k, uint8_t *to)
{
    const int64_t groups = (k + 3) / 4;
    uint8_t *low = to, *high = to + 4 * groups;
    for (int64_t i = 0; i < k; i++) {
        low[i] = from[i] & 15;
        high[i] = from[i] >> 4;
    }
    for (int64_t i = k; i < 4 * groups; i++)
        low[i] = high[i] = 0;
}

enum {
    A_FEW = 4, /* bytes of a group of a plane */
    FEW_ROWS = 6,
    FEW_TOGETHER = 2, /* rows whose sums have registers */
    FEW_GROUPS = 8    /* 8 * 2 * 15 * 128 fits 16 bits */
};

/* Sums of planes, in 16 bits. */
typedef struct few_sums {
    __m256i low[FEW_TOGETHER][VECTORS], high[FEW_TOGETHER][VECTORS];
} few_sums;

/* Left to itself, the compiler adds up a tree of more products than registers. */
static inline __attribute__((always_inline)) __m256i add_byte_pairs(__m256i sum, __m256i a, __m256i b)
{
    __m256i products;
    __asm__("vpmaddubsw %3, %2, %1\n\t"
            "vpaddw %1, %0, %0"
            : "+x"(sum), "=&x"(products)
            : "x"(a), "x"(b));
    return sum;
}

/* Adds `groups` groups, at most FEW_GROUPS, to sum. rows, groups and ahead (B comes from afar) are constants
 * where this is inlined. */
static inline __attribute__((always_inline)) void add_few_groups(const int rows, const int groups,
                                                                 const bool ahead, const char *a, int64_t lda,
                                                                 int64_t plane, const char *b,
                                                                 __m256i sum[FEW_TOGETHER][VECTORS])
{
    enum { AHEAD = 2048 };
    few_sums s;
#pragma GCC unroll 8
    for (int g = 0; g < groups; g++, a += A_FEW, b += GRT_QGEMM_GROUP_BYTES) {
        const __m256i of_b[VECTORS] = {LOAD(b), LOAD(b + sizeof(__m256i))};
        if (ahead)
            _mm_prefetch(b + AHEAD, _MM_HINT_T0);
#pragma GCC unroll 2
        for (int i = 0; i < rows; i++) {
            const __m256i low = spread_word(a + i * lda), high = spread_word(a + i * lda + plane);
#pragma GCC unroll 2
            for (int p = 0; p < VECTORS; p++) {
                s.low[i][p] =
                    g ? add_byte_pairs(s.low[i][p], low, of_b[p]) : _mm256_maddubs_epi16(low, of_b[p]);
                s.high[i][p] =
                    g ? add_byte_pairs(s.high[i][p], high, of_b[p]) : _mm256_maddubs_epi16(high, of_b[p]);
            }
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < VECTORS; p++) {
            sum[i][p] = ADD(sum[i][p], _mm256_madd_epi16(s.low[i][p], _mm256_set1_epi16(1)));
            sum[i][p] = ADD(sum[i][p], _mm256_madd_epi16(s.high[i][p], _mm256_set1_epi16(16)));
        }
}

static inline __attribute__((always_inline)) void multiply_few(const int rows, const bool ahead,
                                                               int64_t groups, const char *a, int64_t lda,
                                                               const char *b, int32_t *sums)
{
    __m256i sum[FEW_TOGETHER][VECTORS];
    const int64_t plane = 4 * groups;
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < VECTORS; p++)
            sum[i][p] = ZERO();
    int64_t x = 0;
    for (; x + FEW_GROUPS <= groups; x += FEW_GROUPS)
        add_few_groups(rows, FEW_GROUPS, ahead, a + x * A_FEW, lda, plane, b + x * GRT_QGEMM_GROUP_BYTES,
                       sum);
    for (; x < groups; x++)
        add_few_groups(rows, 1, ahead, a + x * A_FEW, lda, plane, b + x * GRT_QGEMM_GROUP_BYTES, sum);
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < VECTORS; p++)
            STORE(sums + i * WIDTH + p * 8, sum[i][p]);
}

static void multiply_few_rows(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                              int64_t panel_stride, bool onto, int32_t *sums)
{
    (void)onto;
    (void)panels;
    (void)panel_stride;
    if (rows == 1) {
        multiply_few(1, true, groups, a, lda, b, sums);
        return;
    }
    multiply_few(2, true, groups, a, lda, b, sums);
    int i = 2; /* the panel is near now */
    for (; i + 2 <= rows; i += 2)
        multiply_few(2, false, groups, (const char *)a + i * lda, lda, b, sums + i * WIDTH);
    if (i < rows)
        multiply_few(1, false, groups, (const char *)a + i * lda, lda, b, sums + i * WIDTH);
}

const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void)
{
    static const grt_qgemm_kernel few = {.name = "avx2, few rows",
                                         .mr = FEW_ROWS,
                                         .panels = PANELS,
                                         .wide = true,
                                         .planes = true,
                                         .step = 1,
                                         .block = multiply_few_rows,
                                         .finish = finish_rows,
                                         .split = split_row,
                                         .row_sums = sum_rows};
    static const grt_qgemm_kernel kernel = {.name = "avx2",
                                            .mr = ROWS,
                                            .panels = PANELS,
                                            .wide = true,
                                            .crossed = true,
                                            .few = &few,
                                            .pairs = &grt_qgemm_kernel_avx2_pairs,
                                            .short_k = 32,
                                            .depth = 96,
                                            .step = 1,
                                            .block = multiply_block,
                                            .plain = multiply_block_plain,
                                            .finish = finish_rows,
                                            .windows = sum_windows,
                                            .widen = cross_rows,
                                            .lose = lose_rows,
                                            .row_sums = sum_rows};
    return cpu_isa_best() >= CPU_ISA_AVX2 ? &kernel : NULL;
}

#else

const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void)
{
    return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of 8-bit products for AVX2: blocks of 4 x 16 of crossed int16 pairs, whose products and sums
 * are exact modulo 2^32, and of few rows by two planes of bytes, as vpmaddubsw saturates. */
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

/* Elements 1, 3, 2 and 4 of each four; before them what the row loses. */
static inline __attribute__((always_inline)) void cross_row(const uint8_t *from, int64_t k, __m128i flip,
                                                            const uint8_t *end, int16_t *to)
{
    enum { BYTES = sizeof(__m128i), HEAD = 4 };
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1, 4, 5,
                                           2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    __m256i pairs = _mm256_setzero_si256(); /* in every other sum of 32 bits */
    for (int64_t i = 0; i < k; i += BYTES) {
        const __m256i v =
            _mm256_shuffle_epi8(_mm256_cvtepu8_epi16(load_bytes(from + i, k - i, flip, end)), order);
        pairs = _mm256_add_epi32(pairs, _mm256_madd_epi16(v, _mm256_srli_epi64(v, 32)));
        _mm256_storeu_si256((__m256i *)(void *)(to + HEAD + i), v);
    }
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    const int32_t loses[2] = {(int32_t)(0 - (uint32_t)_mm_cvtsi128_si32(sum)), 0};
    memcpy(to, loses, sizeof loses);
}

static void cross_rows(const uint8_t *from, int64_t ld, int64_t rows, int64_t k, uint8_t flip, void *to,
                       int64_t ldt)
{
    const uint8_t *end = from + (rows - 1) * ld + k;
    const __m128i flips = _mm_set1_epi8((char)flip);
    for (int64_t i = 0; i < rows; i++)
        cross_row(from + i * ld, k, flips, end, (int16_t *)(void *)((char *)to + i * ldt));
}

static void split_row(const uint8_t *from, int64_t k, const void *panel, uint8_t *to)
{
    const int64_t groups = (k + 3) / 4;
    uint8_t *first = to, *second = to + 4 * groups;
    memset(to, 0, (size_t)(8 * groups));
    if (((const grt_qgemm_planes_head *)panel)->both)
        for (int64_t i = 0; i < k; i++) {
            first[i] = from[i] < 127 ? from[i] : 127;
            second[i] = (uint8_t)(from[i] - first[i]);
        }
    else
        for (int64_t i = 0; i < k; i++) {
            first[i] = (uint8_t)(from[i] < 128 ? 128 - from[i] : from[i] - 128);
            second[i] = from[i] ^ 0x80;
        }
}

enum {
    A_FEW = 4, /* bytes of a group of a plane */
    FEW_ROWS = 6
};

/* Adds pairs of pairs of products; A's bytes have no sign. */
static inline __attribute__((always_inline)) __m256i add_byte_pairs(__m256i sum, __m256i a, __m256i b)
{
    return ADD(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}

/* A group of both planes of A. `rows` and `both` are constants where this is inlined. */
static inline __attribute__((always_inline)) void add_group_of_planes(const int rows, const bool both,
                                                                      const char *a, int64_t lda,
                                                                      int64_t plane, const char *b,
                                                                      __m256i sum[FEW_ROWS][VECTORS])
{
    const __m256i of_b[VECTORS] = {LOAD(b), LOAD(b + sizeof(__m256i))};
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        const __m256i first = spread_word(a + i * lda), second = spread_word(a + i * lda + plane);
#pragma GCC unroll 2
        for (int p = 0; p < VECTORS; p++) {
            if (both)
                sum[i][p] = add_byte_pairs(add_byte_pairs(sum[i][p], first, of_b[p]), second, of_b[p]);
            else
                sum[i][p] = add_byte_pairs(sum[i][p], first, _mm256_sign_epi8(of_b[p], second));
        }
    }
}

static inline __attribute__((always_inline)) void multiply_few(const int rows, const bool both,
                                                               int64_t groups, const char *a, int64_t lda,
                                                               const char *b, int32_t *sums)
{
    enum { UNROLLED = 4, AHEAD = 2048 };
    const int at_once = rows < 3 ? UNROLLED : 1;
    __m256i sum[FEW_ROWS][VECTORS];
    const int64_t plane = 4 * groups;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < VECTORS; p++)
            sum[i][p] = LOAD(b + p * (int)sizeof(__m256i));
    b += sizeof(grt_qgemm_planes_head);
    int64_t x = 0;
    for (; x + at_once <= groups; x += at_once, a += at_once * A_FEW, b += at_once * GRT_QGEMM_GROUP_BYTES)
#pragma GCC unroll 4
        for (int g = 0; g < at_once; g++) {
            if (rows < 3) /* they wait for B */
                _mm_prefetch(b + g * GRT_QGEMM_GROUP_BYTES + AHEAD, _MM_HINT_T0);
            add_group_of_planes(rows, both, a + g * A_FEW, lda, plane, b + g * GRT_QGEMM_GROUP_BYTES, sum);
        }
    for (; at_once > 1 && x < groups; x++, a += A_FEW, b += GRT_QGEMM_GROUP_BYTES)
        add_group_of_planes(rows, both, a, lda, plane, b, sum);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int p = 0; p < VECTORS; p++)
            STORE(sums + i * WIDTH + p * 8, sum[i][p]);
}

/* `rows` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void
multiply_planes(const int rows, int64_t groups, const char *a, int64_t lda, const char *b, int32_t *sums)
{
    if (((const grt_qgemm_planes_head *)(const void *)b)->both)
        multiply_few(rows, true, groups, a, lda, b, sums);
    else
        multiply_few(rows, false, groups, a, lda, b, sums);
}

static void multiply_few_rows(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                              int64_t panel_stride, bool onto, int32_t *sums)
{
    (void)onto;
    (void)panels;
    (void)panel_stride;
    switch (rows) {
    case 1:
        multiply_planes(1, groups, a, lda, b, sums);
        break;
    case 2:
        multiply_planes(2, groups, a, lda, b, sums);
        break;
    case 3:
        multiply_planes(3, groups, a, lda, b, sums);
        break;
    case 4:
        multiply_planes(4, groups, a, lda, b, sums);
        break;
    case 5:
        multiply_planes(5, groups, a, lda, b, sums);
        break;
    default:
        multiply_planes(FEW_ROWS, groups, a, lda, b, sums);
    }
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
                                            .row_sums = sum_rows};
    return cpu_isa_best() >= CPU_ISA_AVX2 ? &kernel : NULL;
}

#else

const grt_qgemm_kernel *grt_qgemm_kernel_avx2(void)
{
    return NULL;
}

#endif

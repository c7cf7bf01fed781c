/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernel of products of int16 for AVX2: blocks of 6 x 16 of pairs. */
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
#define LOAD(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define SPREAD(v)   _mm256_set1_epi32(v)
#define ADD         _mm256_add_epi32
#define SUB         _mm256_sub_epi32

/* Left to itself, the compiler keeps more products than registers. */
static inline __attribute__((always_inline)) __m256i add_pairs(__m256i sum, __m256i a, __m256i b)
{
    __m256i product;
    __asm__("vpmaddwd %3, %2, %1\n\t"
            "vpaddd %1, %0, %0"
            : "+x"(sum), "=&x"(product)
            : "x"(a), "x"(b));
    return sum;
}

#define DOT add_pairs
#include "backends/cpu/qgemm_finish_avx2.inc"
#include "backends/cpu/qgemm_rows_avx2.inc"
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_plain.inc"

static void widen_bytes(const uint8_t *from, int64_t ld, int64_t rows, int64_t k, uint8_t flip, void *to,
                        int64_t ldt)
{
    enum { BYTES = sizeof(__m128i) };
    const uint8_t *end = from + (rows - 1) * ld + k;
    const __m128i flips = _mm_set1_epi8((char)flip);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t x = 0; x < k; x += BYTES)
            STORE((char *)to + i * ldt + x * (int64_t)sizeof(int16_t),
                  _mm256_cvtepu8_epi16(load_bytes(from + i * ld + x, k - x, flips, end)));
}

const grt_qgemm_kernel grt_qgemm_kernel_avx2_pairs = {.name = "avx2, pairs",
                                                      .mr = ROWS,
                                                      .panels = PANELS,
                                                      .wide = true,
                                                      .step = 1,
                                                      .block = multiply_block,
                                                      .plain = multiply_block_plain,
                                                      .finish = finish_rows,
                                                      .widen = widen_bytes,
                                                      .row_sums = sum_rows};

#endif

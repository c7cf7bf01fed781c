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
#include "backends/cpu/qgemm_block.inc"
#include "backends/cpu/qgemm_plain.inc"

const grt_qgemm_kernel grt_qgemm_kernel_avx2_pairs = {
    .name = "avx2, pairs", .mr = ROWS, .panels = PANELS, .wide = true, .step = 1, .block = multiply_block,
                                                      .plain = multiply_block_plain,
                                                      .finish = finish_rows,
                                                      .widen = widen_rows,
                                                      .row_sums = sum_rows};

#endif

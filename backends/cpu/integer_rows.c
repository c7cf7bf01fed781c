/* SPDX-License-Identifier: Apache-2.0 */
/* See integer_rows.h. AVX2 multiplies pairs of 16-bit numbers and adds the two products in 32 bits, which two
 * bytes and two differences of bytes cannot exceed: two steps of k at once, 16 columns by up to 4 rows in
 * registers. */
#include "backends/cpu/integer_rows.h"

#include "backends/cpu/isa.h"

#include <string.h>

/* Columns from..n of all rows, by plain loops. */
static void plain(const int16_t *a, int64_t stride, int rows, const uint8_t *b, bool b_signed, int64_t k,
                  int64_t n, int64_t from, int32_t *sums)
{
    for (int row = 0; row < rows; row++) {
        uint32_t *out = (uint32_t *)sums + row * n;
        memset(out + from, 0, (size_t)(n - from) * sizeof *out);
        for (int64_t i = 0; i < k; i++) {
            const uint32_t factor = (uint32_t)(int32_t)a[row * stride + i];
            const uint8_t *line = b + i * n;
            if (!factor)
                continue;
            for (int64_t j = from; j < n; j++)
                out[j] += factor * (b_signed ? (uint32_t)(int32_t)(int8_t)line[j] : line[j]);
        }
    }
}

#ifdef CPU_HAS_AVX2_COPY
#include <immintrin.h>

enum { COLUMNS = 16 };
#define TARGET __attribute__((target("avx2")))

TARGET static inline __attribute__((always_inline)) __m256i widened(__m128i bytes, bool b_signed)
{
    return b_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

/* 16 columns of `rows` rows; both are known where this is called. */
TARGET static inline __attribute__((always_inline)) void tile(const int16_t *a, int64_t stride,
                                                              const int rows, const uint8_t *b,
                                                              const bool b_signed, int64_t k, int64_t n,
                                                              int32_t *sums)
{
    __m256i sum[CPU_INTEGER_ROWS][2];
    for (int row = 0; row < rows; row++)
        sum[row][0] = sum[row][1] = _mm256_setzero_si256();
    for (int64_t i = 0; i < k; i += 2) {
        const __m128i even = _mm_loadu_si128((const __m128i *)(b + i * n));
        const __m128i odd =
            i + 1 < k ? _mm_loadu_si128((const __m128i *)(b + (i + 1) * n)) : _mm_setzero_si128();
        const __m256i left = widened(_mm_unpacklo_epi8(even, odd), b_signed),
                      right = widened(_mm_unpackhi_epi8(even, odd), b_signed);
        for (int row = 0; row < rows; row++) {
            int32_t pair;
            memcpy(&pair, a + row * stride + i, sizeof pair);
            const __m256i factors = _mm256_set1_epi32(pair);
            sum[row][0] = _mm256_add_epi32(sum[row][0], _mm256_madd_epi16(factors, left));
            sum[row][1] = _mm256_add_epi32(sum[row][1], _mm256_madd_epi16(factors, right));
        }
    }
    for (int row = 0; row < rows; row++) {
        _mm256_storeu_si256((__m256i *)(sums + row * n), sum[row][0]);
        _mm256_storeu_si256((__m256i *)(sums + row * n + COLUMNS / 2), sum[row][1]);
    }
}

/* All whole tiles; the number of columns that are done. */
TARGET static int64_t tiles(const int16_t *a, int64_t stride, int rows, const uint8_t *b, bool b_signed,
                            int64_t k, int64_t n, int32_t *sums)
{
    int64_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS) {
        if (rows == CPU_INTEGER_ROWS && b_signed)
            tile(a, stride, CPU_INTEGER_ROWS, b + j, true, k, n, sums + j);
        else if (rows == CPU_INTEGER_ROWS)
            tile(a, stride, CPU_INTEGER_ROWS, b + j, false, k, n, sums + j);
        else
            for (int row = 0; row < rows; row++)
                tile(a + row * stride, stride, 1, b + j, b_signed, k, n, sums + row * n + j);
    }
    return j;
}
#endif

void cpu_integer_rows(int16_t *a, int64_t stride, int rows, const void *b, bool b_signed, int64_t k,
                      int64_t n, int32_t *sums)
{
    int64_t done = 0;
    for (int row = 0; row < rows; row++)
        a[row * stride + k] = 0; /* the other of the last pair, if k is odd */
#ifdef CPU_HAS_AVX2_COPY
    if (cpu_isa_best() >= CPU_ISA_AVX2)
        done = tiles(a, stride, rows, b, b_signed, k, n, sums);
#endif
    if (done < n)
        plain(a, stride, rows, b, b_signed, k, n, done, sums);
}

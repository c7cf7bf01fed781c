/* SPDX-License-Identifier: Apache-2.0 */
/* See byte_table.h. Processors with AVX-512 VBMI keep the table in four registers; AVX2 looks 16 bytes up at
 * once, in each of the table's 16 rows. */
#include "backends/cpu/byte_table.h"

#include "backends/cpu/isa.h"

#ifdef CPU_HAS_AVX512_COPY

#include <immintrin.h>

/* Each permutation looks 7 bits up; the eighth chooses between the two. */
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) static void
look_up_in_registers(const uint8_t *table, const uint8_t *x, int64_t n, uint8_t *y)
{
    enum { BYTES = 64 };
    const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64),
                  c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
    for (int64_t i = 0; i < n; i += BYTES) {
        const __mmask64 inside = n - i < BYTES ? ~0ull >> (BYTES - (n - i)) : ~0ull;
        const __m512i at = _mm512_maskz_loadu_epi8(inside, x + i), low = _mm512_permutex2var_epi8(a, at, b),
                      high = _mm512_permutex2var_epi8(c, at, d);
        _mm512_mask_storeu_epi8(y + i, inside, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
    }
}

static int has_registers(void)
{
    return cpu_isa_best() >= CPU_ISA_AVX512 && __builtin_cpu_supports("avx512vbmi");
}

/* A byte of row R takes the differences of all rows up to R: those of later rows have an index below zero,
 * for which the instruction gives 0. Each half of the table has its own rows, as an index has 7 bits. */
__attribute__((target("avx2"))) static void look_up_by_rows(const uint8_t *table, const uint8_t *x, int64_t n,
                                                            uint8_t *y)
{
    enum { BYTES = 32, ROW = 16, ROWS = 8 };
    __m256i rows[2][ROWS];
    for (int h = 0; h < 2; h++) {
        __m128i before = _mm_setzero_si128();
        for (int r = 0; r < ROWS; r++) {
            const __m128i row =
                _mm_loadu_si128((const __m128i *)(const void *)(table + (h * ROWS + r) * ROW));
            rows[h][r] = _mm256_broadcastsi128_si256(_mm_xor_si128(row, before));
            before = row;
        }
    }
    const __m256i step = _mm256_set1_epi8(ROW), top = _mm256_set1_epi8((char)0x80);
    for (int64_t i = 0; i < n; i += BYTES) {
        const __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(x + i));
        __m256i low = at, high = _mm256_xor_si256(at, top), of_low = _mm256_setzero_si256(), of_high = of_low;
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            of_low = _mm256_xor_si256(of_low, _mm256_shuffle_epi8(rows[0][r], low));
            of_high = _mm256_xor_si256(of_high, _mm256_shuffle_epi8(rows[1][r], high));
            low = _mm256_sub_epi8(low, step);
            high = _mm256_sub_epi8(high, step);
        }
        _mm256_storeu_si256((__m256i *)(void *)(y + i), _mm256_blendv_epi8(of_low, of_high, at));
    }
}

/* How many of n bytes look_up_by_rows takes: 0 where making its rows costs more than it saves. */
static int64_t bytes_by_rows(int64_t n)
{
    enum { BYTES = 32, LEAST = 4 * BYTES };
    return n >= LEAST && cpu_isa_best() >= CPU_ISA_AVX2 ? n / BYTES * BYTES : 0;
}

#else

static void look_up_by_rows(const uint8_t *table, const uint8_t *x, int64_t n, uint8_t *y)
{
    (void)table, (void)x, (void)n, (void)y;
}

static int64_t bytes_by_rows(int64_t n)
{
    (void)n;
    return 0;
}

static void look_up_in_registers(const uint8_t *table, const uint8_t *x, int64_t n, uint8_t *y)
{
    (void)table, (void)x, (void)n, (void)y;
}

static int has_registers(void)
{
    return 0;
}

#endif

void cpu_byte_table(const uint8_t *table, const uint8_t *x, int64_t n, uint8_t *y)
{
    if (has_registers()) {
        look_up_in_registers(table, x, n, y);
        return;
    }
    const int64_t done = bytes_by_rows(n);
    look_up_by_rows(table, x, done, y);
    for (int64_t i = done; i < n; i++)
        y[i] = table[x[i]];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See byte_table.h. Processors with AVX-512 VBMI keep the table in four registers. */
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

#else

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
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

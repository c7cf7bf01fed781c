/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16 in tiles (amx.h): up to two by two of sums, each 16 by 16. Tiles take numbers below
 * 2^-126 as zeros. */
#include "backends/cpu/amx_instructions.h"
#include "backends/cpu/bgemm_kernel.h"
#include "backends/cpu/isa.h"

#include <stddef.h>

#ifdef CPU_HAS_AVX512_COPY

enum {
    ROWS = CPU_AMX_BLOCK_ROWS,
    UPPER = CPU_AMX_TILE_ROWS,
    LINE = CPU_AMX_ROW_BYTES,
    OF_SUMS = GRT_BGEMM_COLS * sizeof(float) /* bytes of a row */
};

_Static_assert(GRT_BGEMM_K * sizeof(uint16_t) == LINE, "a tile's row of A is what k is padded to");
_Static_assert(GRT_BGEMM_NR * sizeof(float) == LINE, "a tile's row of sums is a panel's");

/* `lower` and `right` are constants where this is inlined: rows behind the first 16, and a second panel. */
static inline __attribute__((always_inline)) void bgemm_amx_multiply(const bool lower, const bool right,
                                                                     const grt_bgemm_block *at)
{
    const uint16_t *a = at->a, *below = a + (lower ? UPPER * at->lda : 0), *b = at->b,
                   *second = b + (right ? at->panel_stride : 0);
    const int64_t lda = at->lda * (int64_t)sizeof *a;
    float *sums = at->sums, *lower_sums = sums + (lower ? UPPER * GRT_BGEMM_COLS : 0);
    const char *ahead = at->ahead;
    if (at->adds) {
        TILE_LOAD(0, sums, OF_SUMS);
        if (right)
            TILE_LOAD(1, sums + GRT_BGEMM_NR, OF_SUMS);
        if (lower)
            TILE_LOAD(2, lower_sums, OF_SUMS);
        if (lower && right)
            TILE_LOAD(3, lower_sums + GRT_BGEMM_NR, OF_SUMS);
    } else {
        TILE_ZERO(0);
        if (right)
            TILE_ZERO(1);
        if (lower)
            TILE_ZERO(2);
        if (lower && right)
            TILE_ZERO(3);
    }
    for (int64_t x = 0; x < at->k; x += GRT_BGEMM_K) {
        TILE_LOAD(6, b + x * GRT_BGEMM_NR, LINE);
        TILE_LOAD(4, a + x, lda);
        TILE_DOT_BF16(0, 4, 6);
        if (right) {
            TILE_LOAD(7, second + x * GRT_BGEMM_NR, LINE);
            TILE_DOT_BF16(1, 4, 7);
        }
        if (lower) {
            TILE_LOAD(5, below + x, lda);
            TILE_DOT_BF16(2, 5, 6);
        }
        if (lower && right)
            TILE_DOT_BF16(3, 5, 7);
        for (int64_t i = 0; i < at->lines; i++, ahead += LINE)
            __builtin_prefetch(ahead, 0, 2);
    }
    TILE_STORE(0, sums, OF_SUMS);
    if (right)
        TILE_STORE(1, sums + GRT_BGEMM_NR, OF_SUMS);
    if (lower)
        TILE_STORE(2, lower_sums, OF_SUMS);
    if (lower && right)
        TILE_STORE(3, lower_sums + GRT_BGEMM_NR, OF_SUMS);
}

static void bgemm_amx_block(const grt_bgemm_block *at)
{
    const bool lower = at->rows > UPPER, right = at->panels > 1;
    TILE_SHAPE(at->rows);
    if (lower && right)
        bgemm_amx_multiply(true, true, at);
    else if (lower)
        bgemm_amx_multiply(true, false, at);
    else if (right)
        bgemm_amx_multiply(false, true, at);
    else
        bgemm_amx_multiply(false, false, at);
}

const grt_bgemm_kernel *grt_bgemm_kernel_amx(void)
{
    static const grt_bgemm_kernel kernel = {
        "amx", ROWS, false, bgemm_amx_block, grt_bgemm_finish_avx512, cpu_amx_release};
    return cpu_isa_has_amx_bf16() ? &kernel : NULL;
}

#else

const grt_bgemm_kernel *grt_bgemm_kernel_amx(void)
{
    return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The portable micro-kernel of 8-bit products, which the others are tested against. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/qgemm_loops.inc"

enum { ROWS = 4, NR = GRT_QGEMM_NR };

static void multiply_block(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                           int64_t panel_stride, int32_t *sums)
{
    (void)panels;
    (void)panel_stride;
    for (int i = 0; i < rows; i++) {
        const int16_t *from = (const int16_t *)((const char *)a + i * lda), *by = b;
        uint32_t s[NR] = {0};
        for (int64_t x = 0; x < groups; x++, from += 2, by += 2 * NR)
            for (int j = 0; j < NR; j++)
                s[j] += (uint32_t)(from[0] * by[2 * j] + from[1] * by[2 * j + 1]);
        memcpy(sums + i * WIDTH, s, sizeof s);
    }
}

static void sum_taps(int64_t taps, const uint8_t *const *x, int64_t channel, const void *w, int32_t *sums)
{
    memset(sums, 0, WIDTH * sizeof *sums);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < WIDTH; c++) {
            int16_t v;
            memcpy(&v, (const char *)w + grt_qgemm_tap_at(&grt_qgemm_kernel_c, t, c), sizeof v);
            sums[c] += x[t][channel + c] * v;
        }
}

const grt_qgemm_kernel grt_qgemm_kernel_c = {
    .name = "c", .mr = ROWS, .panels = 1, .wide = true, .block = multiply_block, QGEMM_LOOPS};

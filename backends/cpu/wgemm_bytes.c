/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are rounded to 8 bits for products by weights of few bits. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "backends/cpu/wgemm_bytes.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/workspace.h"

#include <math.h>
#include <string.h>

const grt_wgemm_byte_kernel *grt_wgemm_byte_kernel_of(const grt_wgemm *w)
{
    const grt_wgemm_byte_kernel *best = grt_wgemm_byte_kernel_avx512_vnni();
    if (!best)
        best = grt_wgemm_byte_kernel_avx2();
    const bool fits = best && !w->floats && (w->bits == 4 || w->bits == 8) && w->bits <= best->bits;
    return fits ? best : NULL;
}

static int64_t row_bytes(const grt_wgemm *w)
{
    return w->blocks * w->groups * (32 / w->bits);
}

static cpu_layout rounded_layout(const grt_wgemm *w, int64_t m, size_t *out_scales, size_t *out_sums)
{
    cpu_layout layout = {0};
    cpu_layout_add(&layout, m, (size_t)row_bytes(w));
    *out_scales = cpu_layout_add(&layout, m, (size_t)w->blocks * sizeof(float));
    *out_sums = cpu_layout_add(&layout, m, (size_t)w->blocks * sizeof(int32_t));
    return layout;
}

bool grt_wgemm_rounded_bytes(const grt_wgemm *w, int64_t m, size_t *out_bytes)
{
    size_t scales, sums;
    const cpu_layout layout = rounded_layout(w, m, &scales, &sums);
    *out_bytes = layout.bytes;
    return !layout.overflow;
}

grt_wgemm_rounded grt_wgemm_rounded_at(const grt_wgemm *w, int64_t m, void *memory)
{
    size_t scales, sums;
    rounded_layout(w, m, &scales, &sums);
    return (grt_wgemm_rounded){.ld = row_bytes(w),
                               .numbers = memory,
                               .scales = (float *)(void *)((char *)memory + scales),
                               .sums = (int32_t *)(void *)((char *)memory + sums)};
}

/* Blocks without a number above `least` are zeros. One that is not finite makes the block's scale NaN. */
CPU_BODY round_block_body(const float *x, int64_t n, int8_t *out, float *out_scale, int32_t *out_sum)
{
    const float least = 1e-30f;
    float most = 0, none = 0;
    int32_t sum = 0;
#pragma omp simd reduction(max : most) reduction(+ : none)
    for (int64_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        most = size > most ? size : most;
        none += x[i] * 0.0f;
    }
    const float to_bytes = most > least ? 127.0f / most : 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * to_bytes;
        v = v > -127.0f ? v : -127.0f; /* NaN: that */
        v = v < 127.0f ? v : 127.0f;
        v = (v + 12582912.0f) - 12582912.0f; /* to the nearest integer, ties to even */
        const int32_t number = (int32_t)v;
        out[i] = (int8_t)number;
        sum += number;
    }
    *out_scale = most / 127.0f + none;
    *out_sum = sum;
}
CPU_DISPATCH(round_block, (const float *x, int64_t n, int8_t *out, float *out_scale, int32_t *out_sum),
             (x, n, out, out_scale, out_sum))

/* Of each eight, even ones first. */
static void put_even_first(int8_t *numbers, int64_t n)
{
    for (int8_t *p = numbers; p < numbers + n; p += 8) {
        const int8_t by[] = {p[0], p[2], p[4], p[6], p[1], p[3], p[5], p[7]};
        memcpy(p, by, sizeof by);
    }
}

void grt_wgemm_round_row(const grt_wgemm *w, const grt_wgemm_rounded *x, int64_t row, const float *from)
{
    const grt_wgemm_rounded at = grt_wgemm_rounded_from(w, x, row);
    const int64_t block_bytes = w->groups * (32 / w->bits);
    for (int64_t b = 0; b < w->blocks; b++) {
        const int64_t begin = b * w->block, n = w->k - begin < w->block ? w->k - begin : w->block;
        int8_t *to = at.numbers + b * block_bytes;
        round_block(from + begin, n, to, at.scales + b, at.sums + b);
        memset(to + n, 0, (size_t)(block_bytes - n));
        if (w->bits == 4)
            put_even_first(to, block_bytes);
    }
}

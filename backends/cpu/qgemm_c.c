/* SPDX-License-Identifier: Apache-2.0 */
/* The portable micro-kernel of 8-bit products, which the others are tested against. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/qgemm_loops.inc"

enum { ROWS = 4, NR = GRT_QGEMM_NR };

/* Adding 1.5 * 2^23 rounds to the nearest integer, ties to even, and leaves it in the low mantissa bits. */
static inline int32_t round_small(float v)
{
    const float shifted = v + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits - 0x4B400000;
}

static inline void scale_sums(const grt_qgemm_finish *f, int64_t col, const int32_t *sums, int32_t row_sum,
                              float *v)
{
    const int32_t *offset = f->offset + col;
    const float *scale = f->scale + col, *bias = f->bias + col;
    uint32_t s[WIDTH];
    for (int j = 0; j < WIDTH; j++)
        s[j] = (uint32_t)sums[j] - (uint32_t)offset[j];
    if (f->zero)
        for (int j = 0; j < WIDTH; j++)
            s[j] -= (uint32_t)row_sum * (uint32_t)f->zero[col + j];
    for (int j = 0; j < WIDTH; j++)
        v[j] = (float)(int32_t)s[j] * scale[j] + bias[j];
}

/* Of a block that may be narrower than its rows in memory. */
static inline void add_residual(const grt_qgemm_finish *f, const uint8_t *from, int64_t cols, float *v)
{
    const int32_t zero = f->r_zero, flip = f->r_dtype == GRT_DTYPE_INT8 ? 0x80 : 0;
    const float scale = f->r_scale;
    uint8_t r[WIDTH];
    if (cols == WIDTH) {
        memcpy(r, from, WIDTH);
    } else {
        memset(r, 0, WIDTH);
        memcpy(r, from, (size_t)cols);
    }
    for (int j = 0; j < WIDTH; j++)
        v[j] += (float)((int32_t)(r[j] ^ flip) - flip - zero) * scale;
}

static inline void store_bytes(const grt_qgemm_finish *f, const float *v, int64_t cols, uint8_t *y)
{
    const float low = f->low, high = f->high;
    const int32_t zero = f->y_zero;
    uint8_t out[WIDTH];
    for (int j = 0; j < WIDTH; j++) {
        float x = v[j] > low ? v[j] : low; /* NaN: low */
        x = x < high ? x : high;
        out[j] = (uint8_t)(round_small(x) + zero);
    }
    if (cols == WIDTH)
        memcpy(y, out, WIDTH);
    else
        memcpy(y, out, (size_t)cols);
}

static void finish_rows(const grt_qgemm_finish *f, int64_t col, int rows, int64_t cols, const int32_t *sums,
                        const int32_t *row_sums, const void *residual, void *y, int64_t ldy)
{
    for (int i = 0; i < rows; i++, sums += WIDTH) {
        float v[WIDTH];
        scale_sums(f, col, sums, f->zero ? row_sums[i] : 0, v);
        if (residual)
            add_residual(f, (const uint8_t *)residual + i * f->ldr, cols, v);
        if (f->y_dtype == GRT_DTYPE_FLOAT) {
            grt_act_apply(f->act, v, WIDTH);
            memcpy((float *)y + i * ldy, v, (size_t)cols * sizeof *v);
        } else {
            store_bytes(f, v, cols, (uint8_t *)y + i * ldy);
        }
    }
}

static void multiply_block(int rows, int panels, int64_t groups, const void *a, int64_t lda, const void *b,
                           int64_t panel_stride, bool onto, int32_t *sums)
{
    (void)onto;
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

static void add_tap(const uint8_t *x, const void *w, int64_t tap, int32_t *sums)
{
    for (int64_t c = 0; c < WIDTH; c++) {
        int16_t v;
        memcpy(&v, (const char *)w + grt_qgemm_tap_at(&grt_qgemm_kernel_c, tap, c), sizeof v);
        sums[c] += x[c] * v;
    }
}

static void sum_windows(const grt_qgemm_strip *s, const uint8_t *const *x, int64_t channel, const void *w,
                        void *mixed, int32_t *sums)
{
    const int64_t padded =
        grt_qgemm_line_groups(&grt_qgemm_kernel_c, s->lines) * grt_qgemm_group(&grt_qgemm_kernel_c);
    (void)mixed;
    for (int64_t i = 0; i < s->count; i++, sums += WIDTH) {
        memset(sums, 0, WIDTH * sizeof *sums);
        for (int64_t k = 0; k < s->columns; k++)
            for (int64_t line = 0; line < s->lines; line++)
                add_tap(x[(i * s->step + k * s->gap) * s->lines + line] + channel, w, k * padded + line,
                        sums);
    }
}

const grt_qgemm_kernel grt_qgemm_kernel_c = {.name = "c",
                                             .mr = ROWS,
                                             .panels = 1,
                                             .wide = true,
                                             .step = 1,
                                             .pairs = &grt_qgemm_kernel_c,
                                             .block = multiply_block,
                                             QGEMM_LOOPS};

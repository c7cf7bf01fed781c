/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QAdd, QMul and QTable: element-wise steps on 8-bit tensors. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/byte_table.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/shared/quantised.h"

#include "src/base/activation.h"
#include "src/base/tensor.h"
#include "src/base/int64.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 4096, TABLE_BLOCK = 32768 };

/* y = limit((a + a_add) * a_scale + (b + b_add) * b_scale), or of the product with a_scale; a and b being
 * bytes that `flip` makes unsigned. */
typedef struct binary {
    bool multiplies;
    uint8_t a_flip, b_flip;
    float a_zero, b_zero, a_scale, b_scale, low, high;
    int32_t y_zero;
} binary;

/* Adding 1.5 * 2^23 rounds to the nearest integer, ties to even, and leaves it in the low mantissa bits. */
static inline __attribute__((always_inline)) uint8_t qpointwise_quantise(const binary *q, float v)
{
    v = v > q->low ? v : q->low;
    v = v < q->high ? v : q->high;
    const float shifted = v + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (uint8_t)(bits - 0x4B400000 + q->y_zero);
}

static inline __attribute__((always_inline)) float qpointwise_real(uint8_t v, uint8_t flip, float zero)
{
    return (float)(v ^ flip) - zero;
}

/* step: 1, or 0 where b is one element. */
CPU_BODY combine_body(const binary *shared, const uint8_t *a, const uint8_t *b, int64_t step, int64_t n,
                      uint8_t *y)
{
    const binary own = *shared, *q = &own;
    const float b0 = n > 0 ? qpointwise_real(b[0], q->b_flip, q->b_zero) : 0.0f;
    if (q->multiplies && step)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =
            qpointwise_quantise(q, qpointwise_real(a[i], q->a_flip, q->a_zero) *
                                       qpointwise_real(b[i], q->b_flip, q->b_zero) * q->a_scale);
    else if (q->multiplies)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =
            qpointwise_quantise(q, qpointwise_real(a[i], q->a_flip, q->a_zero) * b0 * q->a_scale);
    else if (step)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =
            qpointwise_quantise(q, qpointwise_real(a[i], q->a_flip, q->a_zero) * q->a_scale +
                                       qpointwise_real(b[i], q->b_flip, q->b_zero) * q->b_scale);
    else
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = qpointwise_quantise(
            q, qpointwise_real(a[i], q->a_flip, q->a_zero) * q->a_scale + b0 * q->b_scale);
}
CPU_DISPATCH(combine,
             (const binary *shared, const uint8_t *a, const uint8_t *b, int64_t step, int64_t n, uint8_t *y),
             (shared, a, b, step, n, y))

static int32_t byte_of(const grt_tensor *t)
{
    return t->dtype == GRT_DTYPE_INT8 ? *(const int8_t *)t->data : *(const uint8_t *)t->data;
}

static float float_of(const grt_tensor *t)
{
    return *(const float *)t->data;
}

/* The zero point after bytes were made unsigned. */
static float shifted_zero(const grt_tensor *zero)
{
    return (float)(byte_of(zero) + (zero->dtype == GRT_DTYPE_INT8 ? 128 : 0));
}

static binary read_binary(const grt_run *r)
{
    const grt_tensor *const *in = r->in;
    grt_act act;
    grt_act_read(r->desc, &act, NULL);
    const bool is_signed = r->out[0]->dtype == GRT_DTYPE_INT8;
    const float y_scale = float_of(in[QB_Y_SCALE]);
    binary q = {.multiplies = !strcmp(r->desc->op, "QMul"),
                .a_flip = in[QB_A]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0,
                .b_flip = in[QB_B]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0,
                .a_zero = shifted_zero(in[QB_A_ZERO]),
                .b_zero = shifted_zero(in[QB_B_ZERO]),
                .a_scale = float_of(in[QB_A_SCALE]) / y_scale,
                .b_scale = float_of(in[QB_B_SCALE]) / y_scale,
                .y_zero = byte_of(in[QB_Y_ZERO])};
    if (q.multiplies)
        q.a_scale *= float_of(in[QB_B_SCALE]);
    const float least = (float)((is_signed ? INT8_MIN : 0) - q.y_zero),
                most = (float)((is_signed ? INT8_MAX : UINT8_MAX) - q.y_zero);
    const float low = act.kind == GRT_ACT_RELU   ? 0.0f
                      : act.kind == GRT_ACT_CLIP ? act.a / y_scale
                                                 : -INFINITY,
                high = act.kind == GRT_ACT_CLIP ? act.b / y_scale : INFINITY;
    q.low = fminf(fmaxf(low, least), most);
    q.high = fmaxf(fminf(high, most), least);
    return q;
}

/* Elements [from, to) of the result. b repeats. */
static void combine_range(const grt_run *r, const binary *q, int64_t from, int64_t to)
{
    const uint8_t *a = r->in[QB_A]->data, *b = r->in[QB_B]->data;
    const int64_t n = grt_tensor_elements(r->in[QB_B]);
    uint8_t *y = r->out[0]->data;
    if (n == 1) {
        combine(q, a + from, b, 0, to - from, y + from);
        return;
    }
    for (int64_t i = from; i < to;) {
        const int64_t at = i % n, now = grt_min64(n - at, to - i);
        combine(q, a + i, b + at, 1, now, y + i);
        i += now;
    }
}

static grt_status run_binary(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->out[0]), blocks = (n + BLOCK - 1) / BLOCK;
    if (!n)
        return GRT_OK;
    const binary q = read_binary(r);
#pragma omp parallel for num_threads(r->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < blocks; i++)
        combine_range(r, &q, i * BLOCK, grt_min64(n, (i + 1) * BLOCK));
    return GRT_OK;
}

static grt_status run_table(const grt_run *r)
{
    const uint8_t *x = r->in[0]->data, *table = r->in[1]->data;
    const uint8_t flip = r->in[0]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0;
    uint8_t *y = r->out[0]->data, by_bits[256];
    const int64_t n = grt_tensor_elements(r->out[0]), blocks = (n + TABLE_BLOCK - 1) / TABLE_BLOCK;
    for (int i = 0; i < 256; i++)
        by_bits[i] = table[i ^ flip];
#pragma omp parallel for num_threads(r->threads) if (n > 4 * TABLE_BLOCK)
    for (int64_t i = 0; i < blocks; i++)
        cpu_byte_table(by_bits, x + i * TABLE_BLOCK, grt_min64(TABLE_BLOCK, n - i * TABLE_BLOCK),
                       y + i * TABLE_BLOCK);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QAdd",
     .flags = GRT_KERNEL_IN_PLACE(QB_A),
     .supports = grt_qbinary_supports,
     .reshape = grt_qbinary_reshape,
     .run = run_binary},
    {.domain = "graphrt",
     .op = "QMul",
     .flags = GRT_KERNEL_IN_PLACE(QB_A),
     .supports = grt_qbinary_supports,
     .reshape = grt_qbinary_reshape,
     .run = run_binary},
    {.domain = "graphrt",
     .op = "QTable",
     .types = {GRT_SET_BYTES, GRT_SET_BYTES},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = grt_qtable_reshape,
     .run = run_table},
};
CPU_KERNELS(qpointwise, rows);

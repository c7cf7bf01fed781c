/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QAdd, QMul and QTable: element-wise steps on 8-bit tensors. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#include "backends/cpu/byte_rounding.h"
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
    float a_zero, b_zero, a_scale, b_scale;
    cpu_byte_rounding y;
} binary;

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
            cpu_round_to_byte(&q->y, qpointwise_real(a[i], q->a_flip, q->a_zero) *
                                         qpointwise_real(b[i], q->b_flip, q->b_zero) * q->a_scale);
    else if (q->multiplies)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =
            cpu_round_to_byte(&q->y, qpointwise_real(a[i], q->a_flip, q->a_zero) * b0 * q->a_scale);
    else if (step)
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] =
            cpu_round_to_byte(&q->y, qpointwise_real(a[i], q->a_flip, q->a_zero) * q->a_scale +
                                         qpointwise_real(b[i], q->b_flip, q->b_zero) * q->b_scale);
    else
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = cpu_round_to_byte(
            &q->y, qpointwise_real(a[i], q->a_flip, q->a_zero) * q->a_scale + b0 * q->b_scale);
}
CPU_DISPATCH(combine,
             (const binary *shared, const uint8_t *a, const uint8_t *b, int64_t step, int64_t n, uint8_t *y),
             (shared, a, b, step, n, y))

static float float_of(const grt_tensor *t)
{
    return *(const float *)t->data;
}

/* The zero point after bytes were made unsigned. */
static float shifted_zero(const grt_tensor *zero)
{
    return (float)(cpu_byte_of(zero) + (zero->dtype == GRT_DTYPE_INT8 ? 128 : 0));
}

static binary read_binary(const grt_run *r)
{
    const grt_tensor *const *in = r->in;
    grt_act act;
    grt_act_read(r->desc, &act, NULL);
    const float y_scale = float_of(in[QB_Y_SCALE]);
    binary q = {.multiplies = !strcmp(r->desc->op, "QMul"),
                .a_flip = in[QB_A]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0,
                .b_flip = in[QB_B]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0,
                .a_zero = shifted_zero(in[QB_A_ZERO]),
                .b_zero = shifted_zero(in[QB_B_ZERO]),
                .a_scale = float_of(in[QB_A_SCALE]) / y_scale,
                .b_scale = float_of(in[QB_B_SCALE]) / y_scale,
                .y = cpu_byte_rounding_of(in[QB_Y_ZERO])};
    if (q.multiplies)
        q.a_scale *= float_of(in[QB_B_SCALE]);
    const float least = q.y.low, most = q.y.high;
    const float low = act.kind == GRT_ACT_RELU   ? 0.0f
                      : act.kind == GRT_ACT_CLIP ? act.a / y_scale
                                                 : -INFINITY,
                high = act.kind == GRT_ACT_CLIP ? act.b / y_scale : INFINITY;
    q.y.low = fminf(fmaxf(low, least), most);
    q.y.high = fmaxf(fminf(high, most), least);
    return q;
}

/* Elements [from, to) of the result. */
static void combine_range(const grt_run *r, const binary *q, const grt_qrepeat *repeat, int64_t from,
                          int64_t to)
{
    const uint8_t *a = r->in[QB_A]->data, *b = r->in[QB_B]->data;
    const int64_t inner = repeat->inner, each = repeat->inner > 1 ? inner : repeat->repeats,
                  step = inner > 1 ? 1 : 0, rows = repeat->repeats * inner;
    uint8_t *y = r->out[0]->data;
    for (int64_t i = from; i < to;) {
        const int64_t at = i % each, now = grt_min64(each - at, to - i);
        combine(q, a + i, b + i / rows * inner + (step ? at : 0), step, now, y + i);
        i += now;
    }
}

static grt_qrepeat joined_repeat(grt_qrepeat repeat)
{
    if (repeat.repeats == 1) /* nothing is repeated */
        return (grt_qrepeat){1, 1, repeat.outer * repeat.inner};
    return repeat;
}

static grt_status run_binary(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->out[0]), blocks = (n + BLOCK - 1) / BLOCK;
    grt_qrepeat repeat;
    if (!n)
        return GRT_OK;
    grt_qrepeat_read(r->in[QB_A], r->in[QB_B], &repeat); /* reshape has seen that it does */
    repeat = joined_repeat(repeat);
    const binary q = read_binary(r);
#pragma omp parallel for num_threads(r->threads) if (n > CPU_GRAIN)
    for (int64_t i = 0; i < blocks; i++)
        combine_range(r, &q, &repeat, i * BLOCK, grt_min64(n, (i + 1) * BLOCK));
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

/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QAdd, QMul and QTable: element-wise steps on bytes, sixteen a thread where they lie so. */
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/qtable.h"
#include "backends/cuda/walk.h"
#include "backends/shared/quantised.h"
#include "src/base/tensor.h"

namespace
{

enum { EACH = 16 };

struct binary {
    const uint8_t *a, *b;
    const float *a_scale, *b_scale, *y_scale;
    const void *a_zero, *b_zero, *y_zero;
    uint8_t *y;
    bool multiplies, a_signed, b_signed, y_signed;
    grt_act act;
    int64_t n;
    grt_qrepeat b_repeat; /* outer 1 and repeats 1: b has an element for each of a's */

    /* Of the element of b, or the pack of so many, that belongs to the i-th of a. */
    __device__ __forceinline__ int64_t in_b(int64_t i, int64_t repeats, int64_t inner) const
    {
        if (b_repeat.repeats == 1)
            return i;
        const int64_t at = inner == 1 ? 0 : i % inner;
        return b_repeat.outer == 1 ? at : i / (repeats * inner) * inner + at;
    }
};

__device__ __forceinline__ int32_t level_of(const void *zero, bool is_signed)
{
    return is_signed ? *(const int8_t *)zero : *(const uint8_t *)zero;
}

/* What a thread needs of the numbers that are equal for all elements. */
struct levels {
    float a_scale, b_scale;
    int32_t a_zero, b_zero;
    cuda_qhead head;

    __device__ __forceinline__ void load(const binary &q)
    {
        const float y_scale = *q.y_scale;
        head.y_zero = level_of(q.y_zero, q.y_signed);
        a_zero = level_of(q.a_zero, q.a_signed);
        b_zero = level_of(q.b_zero, q.b_signed);
        a_scale = *q.a_scale / y_scale;
        b_scale = *q.b_scale / y_scale;
        if (q.multiplies)
            a_scale *= *q.b_scale;
        const float least = (float)((q.y_signed ? -128 : 0) - head.y_zero),
                    most = (float)((q.y_signed ? 127 : 255) - head.y_zero);
        const bool clip = q.act.kind == GRT_ACT_CLIP;
        const float low = clip                         ? q.act.a / y_scale
                          : q.act.kind == GRT_ACT_RELU ? 0.0f
                                                       : -INFINITY,
                    high = clip ? q.act.b / y_scale : INFINITY;
        head.low = fminf(fmaxf(low, least), most);
        head.high = fmaxf(fminf(high, most), least);
    }
    __device__ __forceinline__ uint32_t combine(const binary &q, uint32_t a, uint32_t b, int i) const
    {
        const float x = (float)(cuda_qwhole(a, i, q.a_signed) - a_zero),
                    y = (float)(cuda_qwhole(b, i, q.b_signed) - b_zero);
        return cuda_qlimits(head, false)
                   .byte(q.multiplies ? __fmul_rn(__fmul_rn(x, y), a_scale)
                                      : __fadd_rn(__fmul_rn(x, a_scale), __fmul_rn(y, b_scale))) &
               0xFF;
    }
};

__global__ void __launch_bounds__(CUDA_BLOCK) combine_all(const __grid_constant__ binary q)
{
    levels l;
    l.load(q);
    CUDA_ITEMS (i, q.n)
        q.y[i] = (uint8_t)l.combine(q, q.a[i], q.b[q.in_b(i, q.b_repeat.repeats, q.b_repeat.inner)], 0);
}

__global__ void __launch_bounds__(CUDA_BLOCK) combine_wide(const __grid_constant__ binary q)
{
    levels l;
    l.load(q);
    CUDA_ITEMS (i, q.n / EACH) {
        const uint4 a = ((const uint4 *)q.a)[i];
        uint4 b, y;
        if (q.b_repeat.repeats > 1 && q.b_repeat.inner == 1) {
            const uint32_t word = q.b[q.in_b(i, q.b_repeat.repeats / EACH, 1)] * 0x01010101u;
            b = make_uint4(word, word, word, word);
        } else {
            b = ((const uint4 *)q.b)[q.in_b(i, q.b_repeat.repeats, q.b_repeat.inner / EACH)];
        }
        const uint32_t *wa = &a.x, *wb = &b.x;
        uint32_t *wy = &y.x;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            uint32_t word = 0;
#pragma unroll
            for (int k = 0; k < 4; k++)
                word |= l.combine(q, wa[w], wb[w], k) << (8 * k);
            wy[w] = word;
        }
        ((uint4 *)q.y)[i] = y;
    }
}

/* True if packs of a belong to one element of b each, or to packs of b. */
bool combines_wide(const binary &q)
{
    const bool each = q.b_repeat.repeats > 1 && q.b_repeat.inner == 1;
    return q.n % EACH == 0 && cuda_aligned(q.a, EACH) && cuda_aligned(q.y, EACH) &&
           (each ? q.b_repeat.repeats % EACH == 0 || q.b_repeat.outer == 1
                 : (q.b_repeat.inner % EACH == 0 || q.b_repeat.repeats == 1) && cuda_aligned(q.b, EACH));
}

grt_status cuda_qpointwise_run_binary(const grt_run *r)
{
    const grt_tensor *const *in = r->in;
    binary q = {};
    q.a = (const uint8_t *)in[QB_A]->data;
    q.b = (const uint8_t *)in[QB_B]->data;
    q.y = (uint8_t *)r->out[0]->data;
    q.a_scale = (const float *)in[QB_A_SCALE]->data;
    q.b_scale = (const float *)in[QB_B_SCALE]->data;
    q.y_scale = (const float *)in[QB_Y_SCALE]->data;
    q.a_zero = in[QB_A_ZERO]->data;
    q.b_zero = in[QB_B_ZERO]->data;
    q.y_zero = in[QB_Y_ZERO]->data;
    q.multiplies = !strcmp(r->desc->op, "QMul");
    q.a_signed = in[QB_A]->dtype == GRT_DTYPE_INT8;
    q.b_signed = in[QB_B]->dtype == GRT_DTYPE_INT8;
    q.y_signed = r->out[0]->dtype == GRT_DTYPE_INT8;
    q.n = grt_tensor_elements(r->out[0]);
    grt_qrepeat_read(in[QB_A], in[QB_B], &q.b_repeat); /* reshape has seen that it does */
    grt_act_read(r->desc, &q.act, NULL);
    if (q.n <= 0)
        return GRT_OK;
    if (combines_wide(q))
        combine_wide<<<cuda_grid(q.n / EACH), CUDA_BLOCK, 0, cuda_stream(r)>>>(q);
    else
        combine_all<<<cuda_grid(q.n), CUDA_BLOCK, 0, cuda_stream(r)>>>(q);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_qpointwise_run_table(const grt_run *r)
{
    return cuda_qtable_enqueue((const cuda_device *)r->device, r->in[0]->data,
                               (const uint8_t *)r->in[1]->data, r->in[0]->dtype == GRT_DTYPE_INT8 ? 0x80 : 0,
                               r->out[0]->data, grt_tensor_elements(r->out[0]), cuda_stream(r));
}

#define BINARY                                                                                            \
    .flags = GRT_KERNEL_IN_PLACE(QB_A), .supports = grt_qbinary_supports, .reshape = grt_qbinary_reshape, \
    .run = cuda_qpointwise_run_binary

const grt_kernel_row rows[] = {
    {.domain = "graphrt", .op = "QAdd", BINARY},
    {.domain = "graphrt", .op = "QMul", BINARY},
    {.domain = "graphrt",
     .op = "QTable",
     .types = {GRT_SET_BYTES, GRT_SET_BYTES},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = grt_qtable_reshape,
     .run = cuda_qpointwise_run_table},
};

} // namespace
CUDA_KERNELS(qpointwise, rows);

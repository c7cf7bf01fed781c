/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues of quantised products and convolutions, from the inputs of their steps. */
#include "backends/cpu/qproduct.h"

#include "src/base/checked.h"

#include <math.h>

bool cpu_qproduct_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    if (!grt_act_read(node->desc, &act, why))
        return false;
    if (grt_node_has(node, QP_SUM_SCALE) || grt_node_has(node, QP_TABLE)) {
        if (why)
            grt_text_add(why, "sums and tables behind a rounded result are steps of their own");
        return false;
    }
    const bool bytes = !grt_node_has(node, QP_RESIDUAL) ||
                       grt_dtype_in(node->in[QP_RESIDUAL].dtype, GRT_SET_BYTES),
               bounded = grt_act_is_limit(act) || !grt_node_has(node, QP_Y_SCALE);
    if (grt_qproduct_types_fit(node) && bytes && bounded &&
        grt_attr_int(node->desc, "output_dtype", GRT_DTYPE_FLOAT) == GRT_DTYPE_FLOAT)
        return true;
    if (why)
        grt_text_add(why, "8-bit tensors with float32 scales are needed, and Relu, Clip or no activation in "
                          "front of a quantised result");
    return false;
}

static int32_t qproduct_zero_of(const grt_run *run, int32_t i)
{
    const grt_tensor *t = grt_run_in(run, i);
    if (!t)
        return 0;
    return t->dtype == GRT_DTYPE_INT8 ? *(const int8_t *)t->data : *(const uint8_t *)t->data;
}

static float qproduct_scale_of(const grt_run *run, int32_t i)
{
    const grt_tensor *t = grt_run_in(run, i);
    return t ? *(const float *)t->data : 1.0f;
}

void cpu_qproduct_params(const grt_run *run, int64_t from, grt_qgemm_params *out)
{
    const grt_tensor *w_scale = run->in[QP_W_SCALE], *w_zero = grt_run_in(run, QP_W_ZERO),
                     *bias = grt_run_in(run, QP_BIAS);
    *out = (grt_qgemm_params){.a_zero = qproduct_zero_of(run, QP_X_ZERO),
                              .a_signed = run->in[QP_X]->dtype == GRT_DTYPE_INT8,
                              .a_scale = qproduct_scale_of(run, QP_X_SCALE),
                              .b_scale = w_scale->data,
                              .b_scale_each = grt_tensor_elements(w_scale) > 1,
                              .y_scale = qproduct_scale_of(run, QP_Y_SCALE)};
    if (out->b_scale_each)
        out->b_scale += from;
    if (w_zero) {
        out->b_zero_each = grt_tensor_elements(w_zero) > 1;
        out->b_zero = (const char *)w_zero->data + (out->b_zero_each ? from : 0);
    }
    if (bias && bias->dtype == GRT_DTYPE_INT32)
        out->int_bias = (const int32_t *)bias->data + from;
    else if (bias)
        out->bias = (const float *)bias->data + from;
}

static void set_limits(const grt_op_desc *desc, float scale, int32_t least, int32_t most,
                       grt_qgemm_finish *out)
{
    grt_act act;
    grt_act_read(desc, &act, NULL);
    out->low = (float)(least - out->y_zero);
    out->high = (float)(most - out->y_zero);
    if (act.kind == GRT_ACT_RELU || act.kind == GRT_ACT_CLIP) {
        const float low = act.kind == GRT_ACT_CLIP ? act.a / scale : 0.0f,
                    high = act.kind == GRT_ACT_CLIP ? act.b / scale : INFINITY;
        const float type_low = out->low, type_high = out->high;
        out->low = fminf(fmaxf(low, type_low), type_high);
        out->high = fmaxf(fminf(high, type_high), type_low);
        out->low = fminf(out->low, out->high); /* the upper limit wins */
    }
}

void cpu_qproduct_finish(const grt_run *run, int64_t ldr, grt_qgemm_finish *out)
{
    const grt_tensor *residual = grt_run_in(run, QP_RESIDUAL);
    const float y_scale = qproduct_scale_of(run, QP_Y_SCALE);
    *out = (grt_qgemm_finish){.y_dtype = run->out[0]->dtype, .y_zero = qproduct_zero_of(run, QP_Y_ZERO)};
    if (out->y_dtype == GRT_DTYPE_FLOAT)
        grt_act_read(run->desc, &out->act, NULL);
    else
        set_limits(run->desc, y_scale, out->y_dtype == GRT_DTYPE_INT8 ? INT8_MIN : 0,
                   out->y_dtype == GRT_DTYPE_INT8 ? INT8_MAX : UINT8_MAX, out);
    if (residual) {
        out->residual = residual->data;
        out->ldr = ldr;
        out->r_dtype = residual->dtype;
        out->r_zero = qproduct_zero_of(run, QP_R_ZERO);
        out->r_scale = qproduct_scale_of(run, QP_R_SCALE) / y_scale;
    }
}

enum { ARRAYS = 4 };

int64_t cpu_qproduct_columns_bytes(int64_t n)
{
    return ARRAYS * grt_qgemm_padded(n) * (int64_t)sizeof(float);
}

grt_qgemm_columns cpu_qproduct_columns(void *memory, int64_t n)
{
    const int64_t padded = grt_qgemm_padded(n);
    int32_t *ints = memory;
    float *floats = (float *)(void *)(ints + 2 * padded);
    return (grt_qgemm_columns){ints, ints + padded, floats, floats + padded};
}

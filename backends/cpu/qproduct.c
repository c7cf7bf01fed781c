/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues of quantised products and convolutions, from the inputs of their steps. */
#include "backends/cpu/qproduct.h"

#include "src/base/checked.h"

#include <math.h>

#define BYTES (GRT_BIT(UINT8) | GRT_BIT(INT8))

static bool has(const grt_kernel_node *node, int32_t i, grt_dtype_set types)
{
    return grt_node_has(node, i) && grt_dtype_in(node->in[i].dtype, types);
}

static bool omitted_or(const grt_kernel_node *node, int32_t i, grt_dtype_set types)
{
    return !grt_node_has(node, i) || has(node, i, types);
}

bool cpu_qproduct_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    const bool quantised = grt_node_has(node, QP_Y_SCALE);
    if (!grt_act_read(node->desc, &act, why))
        return false;
    const bool bounded =
        act.kind == GRT_ACT_NONE || act.kind == GRT_ACT_RELU || act.kind == GRT_ACT_CLIP || !quantised;
    if (has(node, QP_X, BYTES) && has(node, QP_W, BYTES) && has(node, QP_X_SCALE, GRT_BIT(FLOAT)) &&
        has(node, QP_W_SCALE, GRT_BIT(FLOAT)) && omitted_or(node, QP_X_ZERO, BYTES) &&
        omitted_or(node, QP_W_ZERO, BYTES) && omitted_or(node, QP_Y_SCALE, GRT_BIT(FLOAT)) &&
        omitted_or(node, QP_Y_ZERO, BYTES) && omitted_or(node, QP_BIAS, GRT_BIT(FLOAT) | GRT_BIT(INT32)) &&
        omitted_or(node, QP_RESIDUAL, BYTES) && omitted_or(node, QP_R_SCALE, GRT_BIT(FLOAT)) &&
        omitted_or(node, QP_R_ZERO, BYTES) && bounded)
        return true;
    if (why)
        grt_text_add(why, "8-bit tensors with float32 scales are needed, and Relu, Clip or no activation in "
                          "front of a quantised result");
    return false;
}

static grt_status qproduct_check_count(const grt_reshape *r, int32_t i, int64_t n, const char *what)
{
    const int64_t found = i < r->n_in && r->in[i] ? grt_tensor_elements(r->in[i]) : 1;
    if (found == 1 || found == n)
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "%s has %lld elements; expected 1%s%lld", what,
                       (long long)found, n == 1 ? ", not " : " or ", (long long)(n == 1 ? found : n));
}

grt_status cpu_qproduct_check(const grt_reshape *r, int64_t n)
{
    static const char *const of_one[] = {
        [QP_X_SCALE] = "the input's scale",    [QP_X_ZERO] = "the input's zero point",
        [QP_Y_SCALE] = "the result's scale",   [QP_Y_ZERO] = "the result's zero point",
        [QP_R_SCALE] = "the residual's scale", [QP_R_ZERO] = "the residual's zero point"};
    for (int32_t i = 0; i < (int32_t)(sizeof of_one / sizeof *of_one); i++)
        if (of_one[i])
            GRT_TRY(qproduct_check_count(r, i, 1, of_one[i]));
    GRT_TRY(qproduct_check_count(r, QP_W_SCALE, n, "the weight's scale"));
    GRT_TRY(qproduct_check_count(r, QP_W_ZERO, n, "the weight's zero point"));
    const grt_tensor *bias = r->n_in > QP_BIAS ? r->in[QP_BIAS] : NULL;
    if (bias && grt_tensor_elements(bias) != n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias has %lld elements; expected %lld",
                           (long long)grt_tensor_elements(bias), (long long)n);
    const grt_tensor *residual = r->n_in > QP_RESIDUAL ? r->in[QP_RESIDUAL] : NULL, *y = r->out[0];
    if (residual && !grt_dims_equal(residual->dims, residual->rank, y->dims, y->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the residual must have the result's dims");
    return GRT_OK;
}

static int32_t qproduct_zero_of(const grt_run *run, int32_t i)
{
    const grt_tensor *t = cpu_qproduct_input(run, i);
    if (!t)
        return 0;
    return t->dtype == GRT_DTYPE_INT8 ? *(const int8_t *)t->data : *(const uint8_t *)t->data;
}

static float qproduct_scale_of(const grt_run *run, int32_t i)
{
    const grt_tensor *t = cpu_qproduct_input(run, i);
    return t ? *(const float *)t->data : 1.0f;
}

void cpu_qproduct_params(const grt_run *run, int64_t from, grt_qgemm_params *out)
{
    const grt_tensor *w_scale = run->in[QP_W_SCALE], *w_zero = cpu_qproduct_input(run, QP_W_ZERO),
                     *bias = cpu_qproduct_input(run, QP_BIAS);
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
    }
}

void cpu_qproduct_finish(const grt_run *run, int64_t ldr, grt_qgemm_finish *out)
{
    const grt_tensor *residual = cpu_qproduct_input(run, QP_RESIDUAL);
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

/* ---- columns ---- */

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

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/quantised.h"

#include "src/base/checked.h"
#include "src/base/tensor.h"

static bool has_type(const grt_kernel_node *node, int32_t i, grt_dtype_set types)
{
    return grt_node_has(node, i) && grt_dtype_in(node->in[i].dtype, types);
}

bool grt_qbytes_fit(const grt_kernel_node *node, uint32_t scales, grt_text *why)
{
    bool fits = true;
    for (int32_t i = 0; i < node->n_in; i++)
        fits = fits && grt_dtype_in(node->in[i].dtype, scales >> i & 1 ? GRT_BIT(FLOAT) : GRT_SET_BYTES);
    if (!fits && why)
        grt_text_add(why, "8-bit tensors with float32 scales are needed");
    return fits;
}

bool grt_qproduct_types_fit(const grt_kernel_node *node)
{
    static const grt_dtype_set optional[QP_INPUTS] = {[QP_X_ZERO] = GRT_SET_BYTES,
                                                      [QP_W_ZERO] = GRT_SET_BYTES,
                                                      [QP_Y_ZERO] = GRT_SET_BYTES,
                                                      [QP_R_ZERO] = GRT_SET_BYTES,
                                                      [QP_SUM_ZERO] = GRT_SET_BYTES,
                                                      [QP_Y_SCALE] = GRT_BIT(FLOAT),
                                                      [QP_R_SCALE] = GRT_BIT(FLOAT),
                                                      [QP_SUM_SCALE] = GRT_BIT(FLOAT),
                                                      [QP_BIAS] = GRT_BIT(FLOAT) | GRT_BIT(INT32)};
    bool fit = has_type(node, QP_X, GRT_SET_BYTES) && has_type(node, QP_W, GRT_SET_BYTES) &&
               has_type(node, QP_X_SCALE, GRT_BIT(FLOAT)) && has_type(node, QP_W_SCALE, GRT_BIT(FLOAT));
    for (int32_t i = 0; i < QP_INPUTS; i++)
        fit = fit && (!optional[i] || !grt_node_has(node, i) || has_type(node, i, optional[i]));
    return fit;
}

/* How many elements of a level there may be but one, in a product of n columns. */
static int64_t qproduct_levels(int32_t i, int64_t n)
{
    return i == QP_W_SCALE || i == QP_W_ZERO ? n : 1;
}

bool grt_qproduct_constants_fit(const grt_kernel_node *node, int64_t n)
{
    static const int32_t levels[] = {QP_X_SCALE, QP_X_ZERO,  QP_W_SCALE, QP_W_ZERO,    QP_Y_SCALE,
                                     QP_Y_ZERO,  QP_R_SCALE, QP_R_ZERO,  QP_SUM_SCALE, QP_SUM_ZERO};
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        const int32_t i = levels[k];
        if (!grt_node_has(node, i) || !node->in[i].data)
            continue;
        const int64_t found = grt_tensor_elements(&node->in[i]);
        if (found != 1 && found != qproduct_levels(i, n))
            return false;
    }
    return !grt_node_has(node, QP_BIAS) || !node->in[QP_BIAS].data ||
           grt_tensor_elements(&node->in[QP_BIAS]) == n;
}

static grt_status qproduct_check_count(const grt_reshape *r, int32_t i, int64_t n, const char *what)
{
    const grt_tensor *t = grt_reshape_in(r, i);
    const int64_t found = t ? grt_tensor_elements(t) : 1;
    if (found == 1 || found == n)
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "%s has %lld elements; expected 1%s%lld", what,
                       (long long)found, n == 1 ? ", not " : " or ", (long long)(n == 1 ? found : n));
}

grt_status grt_qproduct_check_columns(const grt_reshape *r, int64_t n)
{
    static const char *const names[QP_INPUTS] = {
        [QP_X_SCALE] = "the input's scale",    [QP_X_ZERO] = "the input's zero point",
        [QP_W_SCALE] = "the weight's scale",   [QP_W_ZERO] = "the weight's zero point",
        [QP_Y_SCALE] = "the result's scale",   [QP_Y_ZERO] = "the result's zero point",
        [QP_R_SCALE] = "the residual's scale", [QP_R_ZERO] = "the residual's zero point",
        [QP_SUM_SCALE] = "the sum's scale",    [QP_SUM_ZERO] = "the sum's zero point"};
    for (int32_t i = 0; i < QP_INPUTS; i++)
        if (names[i])
            GRT_TRY(qproduct_check_count(r, i, qproduct_levels(i, n), names[i]));
    const grt_tensor *bias = grt_reshape_in(r, QP_BIAS);
    if (bias && grt_tensor_elements(bias) != n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias has %lld elements; expected %lld",
                           (long long)grt_tensor_elements(bias), (long long)n);
    return GRT_OK;
}

grt_status grt_qproduct_check(const grt_reshape *r, int64_t n)
{
    const grt_tensor *residual = grt_reshape_in(r, QP_RESIDUAL), *y = r->out[0];
    GRT_TRY(grt_qproduct_check_columns(r, n));
    if (residual && !grt_dims_equal(residual->dims, residual->rank, y->dims, y->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the residual must have the result's dims");
    return GRT_OK;
}

bool grt_qconv_has_filters(const grt_kernel_node *node)
{
    const int64_t groups = grt_attr_int(node->desc, "group", 1);
    const grt_tensor *w = &node->in[QP_W], *zero = &node->in[QP_W_ZERO];
    if (!w->data || w->rank < 3 || grt_tensor_elements(w) <= 0 || groups <= 0 || w->dims[0] % groups)
        return false;
    return !grt_node_has(node, QP_W_ZERO) ||
           (zero->data && zero->rank >= 0 &&
            (grt_tensor_elements(zero) == 1 || grt_tensor_elements(zero) == w->dims[0]));
}

grt_status grt_qconv_fit(const grt_reshape *r, bool channels_last, int64_t channels, cpu_window *out)
{
    const grt_tensor *x = r->in[QP_X], *w = r->in[QP_W];
    const int32_t at = channels_last ? 1 : 2, channel = channels_last ? x->rank - 1 : 1;
    char x_text[GRT_TYPE_TEXT_SIZE], w_text[GRT_TYPE_TEXT_SIZE];
    if (x->rank != w->rank || x->dims[channel] != channels)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input is %s and the weights %s; expected an input of the weights' rank with "
                           "%lld channels",
                           grt_tensor_text(x, x_text), grt_tensor_text(w, w_text), (long long)channels);
    cpu_window_read(r->desc, x->rank - 2, x->dims + at, r->out[0]->dims + at, w->dims + 2, false, out);
    return grt_qproduct_check(r, w->dims[0]);
}

bool grt_qrepeat_read(const grt_tensor *a, const grt_tensor *b, grt_qrepeat *out)
{
    enum { BEFORE, WITHIN, BEHIND } now = BEFORE;
    *out = (grt_qrepeat){1, 1, 1};
    if (b->rank > a->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++) {
        const int32_t k = i - (a->rank - b->rank);
        const int64_t n = a->dims[i], of_b = k < 0 ? 1 : b->dims[k];
        const bool repeats = of_b == 1 && n != 1;
        if ((!repeats && of_b != n && of_b >= 0 && n >= 0) || (repeats && now == BEHIND))
            return false;
        if (n == 1)
            continue;
        now = repeats ? WITHIN : now == BEFORE ? BEFORE : BEHIND;
        int64_t *part = now == BEFORE ? &out->outer : now == WITHIN ? &out->repeats : &out->inner;
        *part = grt_mul_saturated(*part, n); /* dims may be what a plan claims */
    }
    return true;
}

bool grt_qbinary_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_qrepeat repeat;
    grt_act act;
    if (!grt_act_read(node->desc, &act, why))
        return false;
    const grt_tensor *a = &node->in[QB_A], *b = &node->in[QB_B];
    bool fits = grt_act_is_limit(act) && (a->rank < 0 || b->rank < 0 || grt_qrepeat_read(a, b, &repeat));
    for (int32_t i = 0; i < QB_INPUTS; i++) {
        const bool scale = i == QB_A_SCALE || i == QB_B_SCALE || i == QB_Y_SCALE;
        fits = fits && has_type(node, i, scale ? GRT_BIT(FLOAT) : GRT_SET_BYTES);
    }
    if (!fits && why)
        grt_text_add(
            why, "8-bit tensors with float32 scales are needed, and Relu, Clip or no activation; the second "
                 "input must have the first one's dims, or 1 for some that are neighbours");
    return fits;
}

grt_status grt_qbinary_reshape(grt_reshape *r)
{
    grt_qrepeat repeat;
    bool fits = grt_qrepeat_read(r->in[QB_A], r->in[QB_B], &repeat);
    for (int32_t i = 0; i < r->n_in; i++)
        fits = fits && (i == QB_A || i == QB_B || grt_tensor_elements(r->in[i]) == 1);
    if (fits)
        return GRT_OK;
    return grt_fail_op(
        r->desc, GRT_STATUS_INVALID_ARGUMENT,
        "the second input must have the first one's dims, or 1 for some that are neighbours, and "
        "scales and zero points one element each");
}

grt_status grt_qtable_reshape(grt_reshape *r)
{
    const int64_t n = grt_tensor_elements(r->in[1]);
    if (n == 256)
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the table has %lld elements; expected 256",
                       (long long)n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/norm.h"

#include <string.h>

/* True if t has exactly the normalised dims, perhaps behind dims of 1. */
static bool norm_is_row(const grt_tensor *t, const grt_tensor *x, int32_t axis)
{
    const int32_t trailing = x->rank - axis;
    if (t->rank < trailing)
        return false;
    for (int32_t i = 0; i < t->rank - trailing; i++)
        if (t->dims[i] != 1)
            return false;
    return grt_dims_equal(t->dims + t->rank - trailing, trailing, x->dims + axis, trailing);
}

static grt_status fit_factor(const grt_reshape *r, int32_t i, int32_t axis, grt_norm_factor *f)
{
    const grt_tensor *x = r->in[0], *t = grt_reshape_in(r, i);
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    int64_t out[GRT_MAX_RANK];
    int32_t rank;
    f->is_row = !t || norm_is_row(t, x, axis);
    if (!t)
        return GRT_OK;
    if (!grt_dims_broadcast(t->dims, t->rank, x->dims, x->rank, out, &rank) ||
        !grt_dims_equal(out, rank, x->dims, x->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "%s is %s, which does not broadcast to the input %s",
                           i == GRT_NORM_SCALE ? "the scale" : "the bias", grt_tensor_text(t, found),
                           grt_tensor_text(x, wanted));
    grt_broadcast_strides(t->dims, t->rank, x->rank, f->strides);
    return GRT_OK;
}

grt_status grt_layer_norm_fit(const grt_reshape *r, grt_layer_norm *n)
{
    const grt_tensor *x = r->in[0];
    const int32_t axis = x->rank ? (int32_t)grt_axis(grt_attr_int(r->desc, "axis", -1), x->rank) : 0;
    *n = (grt_layer_norm){.rows = grt_dims_product(x->dims, 0, axis),
                          .size = grt_dims_product(x->dims, axis, x->rank),
                          .epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f),
                          .rms = !strcmp(r->desc->op, "RMSNormalization") || grt_attr_int(r->desc, "rms", 0),
                          .rank = x->rank};
    memcpy(n->dims, x->dims, sizeof n->dims);
    GRT_TRY(fit_factor(r, GRT_NORM_SCALE, axis, &n->scale));
    return fit_factor(r, GRT_NORM_BIAS, axis, &n->bias);
}

static grt_status norm_check_channels(const grt_reshape *r, int32_t from, int32_t to, int64_t channels)
{
    char found[GRT_TYPE_TEXT_SIZE];
    for (int32_t i = from; i <= to; i++)
        if (grt_tensor_elements(r->in[i]) != channels)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "input %d is %s; expected %lld elements, one per channel", i,
                               grt_tensor_text(r->in[i], found), (long long)channels);
    return GRT_OK;
}

grt_status grt_group_norm_fit(const grt_reshape *r, grt_group_norm *n)
{
    const grt_tensor *x = r->in[0];
    const bool last = grt_channels_last(r->desc);
    const int64_t channels = x->dims[last ? x->rank - 1 : 1];
    const int64_t groups =
        !strcmp(r->desc->op, "GroupNormalization") ? grt_attr_int(r->desc, "num_groups", 1) : channels;
    *n = (grt_group_norm){.rows = x->dims[0] * groups,
                          .groups = groups,
                          .channels = groups > 0 ? channels / groups : 0,
                          .pixels = last ? grt_dims_product(x->dims, 1, x->rank - 1)
                                         : grt_dims_product(x->dims, 2, x->rank),
                          .epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f),
                          .last = last};
    return norm_check_channels(r, GRT_NORM_SCALE, GRT_NORM_BIAS, channels);
}

grt_status grt_batch_norm_fit(const grt_reshape *r, grt_batch_norm *n)
{
    const grt_tensor *x = r->in[0];
    *n = (grt_batch_norm){.batch = x->rank ? x->dims[0] : 1,
                          .channels = x->rank > 1 ? x->dims[1] : 1,
                          .inner = x->rank > 2 ? grt_dims_product(x->dims, 2, x->rank) : 1,
                          .epsilon = (double)grt_attr_float(r->desc, "epsilon", 1e-5f),
                          .momentum = (double)grt_attr_float(r->desc, "momentum", 0.9f),
                          .training = grt_attr_int(r->desc, "training_mode", 0) != 0};
    return norm_check_channels(r, GRT_NORM_SCALE, GRT_NORM_VARIANCE, n->channels);
}

void grt_lrn_fit(const grt_reshape *r, grt_lrn *n)
{
    const grt_tensor *x = r->in[0];
    const int64_t size = grt_attr_int(r->desc, "size", 1), before = (size - 1) / 2;
    *n = (grt_lrn){.batch = x->dims[0],
                   .channels = x->dims[1],
                   .pixels = grt_dims_product(x->dims, 2, x->rank),
                   .before = before,
                   .after = size - 1 - before,
                   .alpha = grt_attr_float(r->desc, "alpha", 1e-4f) / (float)size,
                   .beta = grt_attr_float(r->desc, "beta", 0.75f),
                   .bias = grt_attr_float(r->desc, "bias", 1.0f)};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose; graphrt::ConvTranspose has an attribute layout: "NHWC" if input and output have
 * their channels last. */
#include "graph/ir/flops.h"
#include "graph/ops/window.h"

/* Kernel sizes: the weight's, which an attribute kernel_shape may only repeat. */
static grt_status kernel_sizes(const infer *inf, const ir_type *w, int32_t spatial)
{
    const int64_t *shape;
    GRT_TRY(window_attr(inf, "kernel_shape", spatial, &shape));
    for (int32_t i = 0; i < spatial; i++) {
        int64_t size;
        if (!infer_const(inf, w->dims[2 + i], &size))
            continue;
        if (size < 1)
            return infer_fail(inf, "the weight has a spatial dim of %lld; it must be at least 1",
                              (long long)size);
        if (shape && shape[i] != size)
            return infer_fail(inf,
                              "attribute kernel_shape says %lld at index %d, but the weight has %lld there",
                              (long long)shape[i], i, (long long)size);
    }
    return GRT_OK;
}

static grt_status check_ranks(const infer *inf, const ir_type *x, const ir_type *w)
{
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    if (x->rank >= 0 && x->rank < 3)
        return infer_fail(
            inf, "the input has rank %d; it must be batch, channels and at least one spatial dim", x->rank);
    if (x->rank >= 0 && w->rank >= 0 && x->rank != w->rank)
        return infer_fail(inf, "the input has rank %d and the weight rank %d; they must be equal", x->rank,
                          w->rank);
    return GRT_OK;
}

static grt_status conv_check_dim(const infer *inf, const char *what, grt_dim found, grt_dim expected)
{
    int64_t a, b;
    if (infer_const(inf, found, &a) && infer_const(inf, expected, &b) && a != b)
        return infer_fail(inf, "%s is %lld; expected %lld", what, (long long)a, (long long)b);
    return GRT_OK;
}

static grt_status conv_check_bias(const infer *inf, grt_dim channels)
{
    if (!infer_has(inf, 2) || inf->in[2]->rank < 0)
        return GRT_OK;
    if (inf->in[2]->rank != 1)
        return infer_fail(inf, "the bias has rank %d; expected 1", inf->in[2]->rank);
    return conv_check_dim(inf, "the bias's length", inf->in[2]->dims[0], channels);
}

grt_status infer_conv(infer *inf)
{
    const ir_type *x = inf->in[0], *w = inf->in[1];
    GRT_TRY(check_ranks(inf, x, w));
    if (x->rank < 0 || w->rank < 0) {
        if (x->rank >= 0)
            infer_set_fresh(inf, 0, x->dtype, x->rank);
        else
            infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    const int32_t spatial = x->rank - 2;
    const bool last = grt_channels_last(inf->desc);
    const int64_t groups = grt_attr_int(inf->desc, "group", 1);
    int64_t channels;
    GRT_TRY(kernel_sizes(inf, w, spatial));
    GRT_TRY(conv_check_dim(inf, "the weight's dim 1 times attribute group",
                           grt_dim_mulc(inf->dims, w->dims[1], groups), x->dims[last ? x->rank - 1 : 1]));
    if (infer_const(inf, w->dims[0], &channels) && channels % groups)
        return infer_fail(inf, "the weight's dim 0 is %lld, which attribute group (%lld) does not divide",
                          (long long)channels, (long long)groups);
    GRT_TRY(conv_check_bias(inf, w->dims[0]));
    grt_dim *dims = infer_dims(inf, x->rank);
    if (!dims)
        return GRT_OK;
    dims[0] = x->dims[0];
    dims[last ? x->rank - 1 : 1] = w->dims[0];
    GRT_TRY(window_sizes(inf, spatial, x->dims + (last ? 1 : 2), w->dims + 2, dims + (last ? 1 : 2)));
    infer_set(inf, 0, x->dtype, x->rank, dims);
    return GRT_OK;
}

static grt_status infer_conv_transpose(infer *inf)
{
    const ir_type *x = inf->in[0], *w = inf->in[1];
    GRT_TRY(check_ranks(inf, x, w));
    if (x->rank < 0 || w->rank < 0) {
        if (x->rank >= 0)
            infer_set_fresh(inf, 0, x->dtype, x->rank);
        else
            infer_set_unknown(inf, 0, x->dtype);
        return GRT_OK;
    }
    const bool last = grt_channels_last(inf->desc);
    const int32_t at = last ? 1 : 2, channel = last ? x->rank - 1 : 1;
    const int64_t groups = grt_attr_int(inf->desc, "group", 1);
    int64_t channels;
    GRT_TRY(kernel_sizes(inf, w, x->rank - 2));
    GRT_TRY(conv_check_dim(inf, "the weight's dim 0", w->dims[0], x->dims[channel]));
    if (infer_const(inf, w->dims[0], &channels) && channels % groups)
        return infer_fail(inf, "the weight's dim 0 is %lld, which attribute group (%lld) does not divide",
                          (long long)channels, (long long)groups);
    grt_dim *dims = infer_dims(inf, x->rank);
    if (!dims)
        return GRT_OK;
    dims[0] = x->dims[0];
    dims[channel] = grt_dim_mulc(inf->dims, w->dims[1], groups);
    GRT_TRY(conv_check_bias(inf, dims[channel]));
    GRT_TRY(window_transposed_sizes(inf, x->rank - 2, x->dims + at, w->dims + 2, dims + at));
    infer_set(inf, 0, x->dtype, x->rank, dims);
    return GRT_OK;
}

static const op_attr conv_attrs[] = {CONV_ATTRS, {NULL, 0, false}};
static const op_attr transpose_attrs[] = {CONV_ATTRS,
                                          {"output_padding", GRT_ATTR_INTS, false},
                                          {"output_shape", GRT_ATTR_INTS, false},
                                          {NULL, 0, false}};
static const op_attr transpose_last_attrs[] = {CONV_ATTRS,
                                               {"output_padding", GRT_ATTR_INTS, false},
                                               {"output_shape", GRT_ATTR_INTS, false},
                                               {"layout", GRT_ATTR_STRING, false},
                                               {NULL, 0, false}};

static const op_row rows[] = {
    {.name = "Conv",
     .domain = "",
     .since = 22,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = conv_attrs,
     .ranges = window_ranges,
     .precision = OP_NARROW,
     .flags = OP_TF32 | OP_FILTERS | OP_TAKES_EPILOGUE,
     .layout = OP_LAYOUT_CONV,
     .flops = flops_conv,
     .infer = infer_conv},
    {.name = "ConvTranspose",
     .domain = "",
     .since = 22,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = transpose_attrs,
     .ranges = window_ranges,
     .precision = OP_NARROW,
     .flags = OP_TF32 | OP_FILTERS,
     .layout = OP_LAYOUT_FORM,
     .flops = flops_conv_transpose,
     .infer = infer_conv_transpose},
    {.name = "ConvTranspose",
     .domain = "graphrt",
     .since = 1,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = transpose_last_attrs,
     .ranges = window_ranges,
     .precision = OP_NARROW,
     .flops = flops_conv_transpose,
     .infer = infer_conv_transpose},
};
OP_TABLE(conv, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::PixelFilter: a convolution whose filters differ from pixel to pixel (involution, dynamic local
 * filters).
 *
 * y[n, c, p] = sum over taps t of x[n, c, what t of p's window reads] * w[n, c / (channels / groups) * taps +
 * t, p]: inputs x [batch, channels, height, width] and w [batch, groups * taps, height of y, width of y],
 * attributes as Conv's, with kernel_shape. Attribute layout: "NHWC" if all have their channels last. */
#include "graph/ops/window.h"

enum { RANK = 4, SPATIAL = 2 };

static grt_status pixel_filter_check_dim(const infer *inf, const char *what, grt_dim found, grt_dim expected)
{
    int64_t a, b;
    if (infer_const(inf, found, &a) && infer_const(inf, expected, &b) && a != b)
        return infer_fail(inf, "%s of the filters is %lld; expected %lld", what, (long long)a, (long long)b);
    return GRT_OK;
}

static grt_status pixel_filter_check_groups(const infer *inf, grt_dim channels, grt_dim filters, int64_t taps)
{
    int64_t n, numbers;
    if (!infer_const(inf, channels, &n) || !infer_const(inf, filters, &numbers))
        return GRT_OK;
    if (numbers < 1 || numbers % taps || n % (numbers / taps))
        return infer_fail(inf,
                          "the filters have %lld numbers a pixel; expected %lld taps for each of some groups "
                          "that divide %lld channels",
                          (long long)numbers, (long long)taps, (long long)n);
    return GRT_OK;
}

static grt_status infer_pixel_filter(infer *inf)
{
    const ir_type *x = inf->in[0], *w = inf->in[1];
    const int64_t *kernel;
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    if (x->rank != RANK || w->rank != RANK)
        return infer_fail(inf, "the input has rank %d and the filters have rank %d; both must be %d", x->rank,
                          w->rank, RANK);
    GRT_TRY(window_attr(inf, "kernel_shape", SPATIAL, &kernel));
    if (!kernel)
        return infer_fail(inf, "attribute kernel_shape is missing");
    const bool last = grt_channels_last(inf->desc);
    const int32_t at = last ? 1 : 2, channel = last ? 3 : 1;
    const grt_dim taps[] = {grt_dim_const(inf->dims, kernel[0]), grt_dim_const(inf->dims, kernel[1])};
    grt_dim *dims = infer_dims(inf, RANK);
    if (!dims)
        return GRT_OK;
    dims[0] = x->dims[0];
    dims[channel] = x->dims[channel];
    GRT_TRY(window_sizes(inf, SPATIAL, x->dims + at, taps, dims + at));
    GRT_TRY(pixel_filter_check_groups(inf, x->dims[channel], w->dims[channel], kernel[0] * kernel[1]));
    GRT_TRY(pixel_filter_check_dim(inf, "the batch", w->dims[0], x->dims[0]));
    GRT_TRY(pixel_filter_check_dim(inf, "the height", w->dims[at], dims[at]));
    GRT_TRY(pixel_filter_check_dim(inf, "the width", w->dims[at + 1], dims[at + 1]));
    infer_set(inf, 0, x->dtype, RANK, dims);
    return GRT_OK;
}

static const op_attr pixel_filter_attrs[] = {{"auto_pad", GRT_ATTR_STRING, false},
                                             {"dilations", GRT_ATTR_INTS, false},
                                             {"kernel_shape", GRT_ATTR_INTS, true},
                                             {"pads", GRT_ATTR_INTS, false},
                                             {"strides", GRT_ATTR_INTS, false},
                                             {"layout", GRT_ATTR_STRING, false},
                                             {0}};

static const op_row rows[] = {
    {.name = "PixelFilter",
     .domain = "graphrt",
     .since = 1,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = pixel_filter_attrs,
     .ranges = window_ranges,
     .precision = OP_NARROW,
     .layout = OP_LAYOUT_PAIR,
     .infer = infer_pixel_filter},
};
OP_TABLE(pixel_filter, rows);

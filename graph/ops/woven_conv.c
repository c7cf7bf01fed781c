/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WovenConv(x, w, bias?, part...): a convolution of images with channels last, each of whose results
 * is block[0] x block[1] pixels, line by line, beside further channels of these pixels:
 *
 *   y = Concat(..., DepthToSpace of act(Conv(x, w) + bias), ...) along the channels
 *
 * Attributes are those of graphrt::Conv, whose layout is "NHWC"; block; and place, which says how many of the
 * parts come first. */
#include "graph/ir/flops.h"
#include "graph/ops/window.h"

#include <string.h>

enum { PARTS = 3, RANK = 4, HEIGHT = 1, WIDTH = 2, CHANNELS = 3 };

static grt_status woven_read_block(const infer *inf, const int64_t **out_block)
{
    size_t n = 0;
    const int64_t *block = grt_attr_ints(inf->desc, "block", &n);
    const int64_t place = grt_attr_int(inf->desc, "place", 0),
                  parts = inf->n_in > PARTS ? inf->n_in - PARTS : 0;
    if (n != 2 || block[0] < 1 || block[1] < 1 || block[0] > INT16_MAX || block[1] > INT16_MAX)
        return infer_fail(inf, "attribute block must be two sizes from 1 to %d", INT16_MAX);
    if (place < 0 || place > parts)
        return infer_fail(inf, "attribute place is %lld; there are %lld further parts", (long long)place,
                          (long long)parts);
    if (strcmp(grt_attr_string(inf->desc, "layout", ""), "NHWC") != 0)
        return infer_fail(inf, "attribute layout must be NHWC");
    *out_block = block;
    return GRT_OK;
}

/* The convolution's result as pixels. */
static grt_status woven_pixels(const infer *inf, const ir_type *conv, const int64_t *block, grt_dim *dims)
{
    int64_t channels;
    if (conv->rank != RANK)
        return infer_fail(inf, "the input has rank %d; expected images", conv->rank);
    if (infer_const(inf, conv->dims[CHANNELS], &channels) && channels % (block[0] * block[1]))
        return infer_fail(inf, "%lld channels cannot be %lld x %lld pixels", (long long)channels,
                          (long long)block[0], (long long)block[1]);
    dims[0] = conv->dims[0];
    dims[HEIGHT] = grt_dim_mulc(inf->dims, conv->dims[HEIGHT], block[0]);
    dims[WIDTH] = grt_dim_mulc(inf->dims, conv->dims[WIDTH], block[1]);
    dims[CHANNELS] =
        grt_dim_divide_exact(inf->dims, conv->dims[CHANNELS], grt_dim_const(inf->dims, block[0] * block[1]));
    return GRT_OK;
}

static grt_status woven_join(const infer *inf, int32_t i, grt_dim *dims)
{
    const ir_type *part = inf->in[i];
    int64_t x, y;
    if (!part || part->rank != RANK)
        return infer_fail(inf, "input %d must have rank %d", i, RANK);
    GRT_TRY(infer_same_dtype(inf, 0, i));
    for (int32_t k = 0; k < CHANNELS; k++)
        if (infer_const(inf, dims[k], &x) && infer_const(inf, part->dims[k], &y) && x != y)
            return infer_fail(inf, "dim %d of input %d is %lld; expected %lld", k, i, (long long)y,
                              (long long)x);
    dims[CHANNELS] = grt_dim_add(inf->dims, dims[CHANNELS], part->dims[CHANNELS]);
    return GRT_OK;
}

static grt_status infer_woven_conv(infer *inf)
{
    ir_type result = {.kind = GRT_KIND_TENSOR, .rank = -1};
    const int64_t *block;
    infer conv = *inf;
    conv.out = &result;
    conv.n_in = inf->n_in < PARTS ? inf->n_in : PARTS;
    GRT_TRY(woven_read_block(inf, &block));
    GRT_TRY(infer_conv(&conv));
    if (result.rank < 0) {
        infer_set_unknown(inf, 0, inf->in[0]->dtype);
        return GRT_OK;
    }
    grt_dim *dims = infer_dims(inf, RANK);
    if (!dims)
        return grt_fail_memory(0);
    GRT_TRY(woven_pixels(inf, &result, block, dims));
    for (int32_t i = PARTS; i < inf->n_in; i++)
        GRT_TRY(woven_join(inf, i, dims));
    infer_set(inf, 0, inf->in[0]->dtype, RANK, dims);
    return GRT_OK;
}

static const op_attr attrs[] = {CONV_ATTRS,
                                {"layout", GRT_ATTR_STRING, true},
                                {"activation", GRT_ATTR_STRING, false},
                                {"alpha", GRT_ATTR_FLOAT, false},
                                {"beta", GRT_ATTR_FLOAT, false},
                                {"block", GRT_ATTR_INTS, true},
                                {"place", GRT_ATTR_INT, false},
                                {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "WovenConv",
     .since = 1,
     .min_in = 2,
     .max_in = 64,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .ranges = window_ranges,
     .precision = OP_NARROW,
     .flags = OP_TF32,
     .flops = flops_woven_conv,
     .infer = infer_woven_conv},
};
OP_TABLE(woven_conv, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows: output sizes of convolutions and pools. */
#include "graph/ops/window.h"

#include <string.h>

/* Negative padding crops; only convolutions' exporters write it, and it is well defined. Products of two of
 * these and sums of such products fit into int64_t. */
const op_range window_ranges[] = {
    {"kernel_shape", 1, INT32_MAX},  {"strides", 1, INT32_MAX},        {"dilations", 1, INT32_MAX},
    {"pads", -INT32_MAX, INT32_MAX}, {"output_padding", 0, INT32_MAX}, {"output_shape", 0, INT64_MAX},
    {"group", 1, INT32_MAX},         {"offset_group", 1, INT32_MAX},   {0}};

grt_status window_attr(const infer *inf, const char *name, int32_t n, const int64_t **out)
{
    size_t found;
    *out = grt_attr_ints(inf->desc, name, &found);
    if (!*out)
        return GRT_OK;
    if (found != (size_t)n)
        return infer_fail(inf, "attribute %s has %zu values; this input needs %d", name, found, n);
    return GRT_OK;
}

/* dilation * (kernel - 1) + 1 */
static grt_dim extent(const infer *inf, grt_dim kernel, const int64_t *dilations, int32_t i)
{
    return grt_dim_addc(
        inf->dims, grt_dim_mulc(inf->dims, grt_dim_addc(inf->dims, kernel, -1), dilations ? dilations[i] : 1),
        1);
}

typedef struct window_attrs {
    const int64_t *strides, *dilations, *pads;
    bool same, explicit_pads;
} window_attrs;

static grt_status read_attrs(const infer *inf, int32_t spatial, window_attrs *a)
{
    const char *mode = grt_attr_string(inf->desc, "auto_pad", "NOTSET");
    GRT_TRY(window_attr(inf, "strides", spatial, &a->strides));
    GRT_TRY(window_attr(inf, "dilations", spatial, &a->dilations));
    GRT_TRY(window_attr(inf, "pads", 2 * spatial, &a->pads));
    a->same = !strcmp(mode, "SAME_UPPER") || !strcmp(mode, "SAME_LOWER");
    a->explicit_pads = !strcmp(mode, "NOTSET") || !*mode;
    if (!a->same && !a->explicit_pads && strcmp(mode, "VALID"))
        return infer_fail(
            inf, "attribute auto_pad is '%s'; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
    if (!a->explicit_pads)
        a->pads = NULL;
    return GRT_OK;
}

grt_status window_sizes(const infer *inf, int32_t spatial, const grt_dim *in, const grt_dim *kernel,
                        grt_dim *out)
{
    window_attrs a;
    GRT_TRY(read_attrs(inf, spatial, &a));
    const bool ceil_mode = grt_attr_int(inf->desc, "ceil_mode", 0) != 0 && a.explicit_pads;
    for (int32_t i = 0; i < spatial; i++) {
        grt_dim stride = grt_dim_const(inf->dims, a.strides ? a.strides[i] : 1);
        if (a.same) {
            out[i] = grt_dim_make(inf->dims, GRT_DIM_CEILDIV, in[i], stride);
            continue;
        }
        int64_t begin = a.pads ? a.pads[i] : 0, end = a.pads ? a.pads[spatial + i] : 0, left, size;
        grt_dim reach = extent(inf, kernel[i], a.dilations, i);
        grt_dim room = grt_dim_sub(inf->dims, grt_dim_addc(inf->dims, in[i], begin + end), reach);
        /* With ceil_mode, less than one stride may be missing: the window begins in the input. */
        const int64_t missing = ceil_mode ? 1 - (a.strides ? a.strides[i] : 1) : 0;
        if (infer_const(inf, room, &left) && left < missing && infer_const(inf, in[i], &size))
            return infer_fail(inf,
                              "spatial dim %d of the input is %lld, with padding %lld and %lld; the window, "
                              "dilation included, is "
                              "%lld longer than that",
                              i, (long long)size, (long long)begin, (long long)end, (long long)-left);
        out[i] = grt_dim_addc(
            inf->dims, grt_dim_make(inf->dims, ceil_mode ? GRT_DIM_CEILDIV : GRT_DIM_FLOORDIV, room, stride),
            1);
        /* Windows that would start in the padding at the end do not count. */
        if (ceil_mode)
            out[i] = grt_dim_make(
                inf->dims, GRT_DIM_MIN, out[i],
                grt_dim_make(inf->dims, GRT_DIM_CEILDIV, grt_dim_addc(inf->dims, in[i], begin), stride));
    }
    return GRT_OK;
}

grt_status window_transposed_sizes(const infer *inf, int32_t spatial, const grt_dim *in,
                                   const grt_dim *kernel, grt_dim *out)
{
    window_attrs a;
    const int64_t *extra;
    size_t n_shape;
    const int64_t *shape = grt_attr_ints(inf->desc, "output_shape", &n_shape);
    GRT_TRY(read_attrs(inf, spatial, &a));
    GRT_TRY(window_attr(inf, "output_padding", spatial, &extra));
    if (shape && n_shape != (size_t)spatial && n_shape != (size_t)spatial + 2)
        return infer_fail(inf, "attribute output_shape has %zu values; expected the %d spatial ones", n_shape,
                          spatial);
    for (int32_t i = 0; i < spatial; i++) {
        int64_t stride = a.strides ? a.strides[i] : 1, size;
        if (shape) {
            out[i] = grt_dim_const(inf->dims, shape[n_shape - (size_t)spatial + (size_t)i]);
        } else if (a.same) {
            out[i] = grt_dim_mulc(inf->dims, in[i], stride);
        } else {
            int64_t fixed = (extra ? extra[i] : 0) - (a.pads ? a.pads[i] + a.pads[spatial + i] : 0);
            out[i] = grt_dim_mulc(inf->dims, grt_dim_addc(inf->dims, in[i], -1), stride);
            out[i] = grt_dim_add(inf->dims, out[i], extent(inf, kernel[i], a.dilations, i));
            out[i] = grt_dim_addc(inf->dims, out[i], fixed);
        }
        if (infer_const(inf, out[i], &size) && size < 0)
            return infer_fail(
                inf, "spatial dim %d of the output would be %lld; the padding is larger than the result", i,
                (long long)size);
    }
    return GRT_OK;
}

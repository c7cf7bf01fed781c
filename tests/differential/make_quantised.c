/* SPDX-License-Identifier: Apache-2.0 */
/* Products and convolutions of 8-bit numbers. Scales put results all over the range of bytes. */
#include "tests/differential/makers.h"
#include "tools/element.h"

#include <math.h>
#include <string.h>

static grt_dtype draw_byte(void)
{
    return draw(0, 1) ? GRT_DTYPE_UINT8 : GRT_DTYPE_INT8;
}

/* All values that the type has. */
static grt_tensor *add_bytes(node *n, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_tensor *t = add_input(n, dtype, rank, dims);
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        element_set(t, i, (double)(dtype == GRT_DTYPE_INT8 ? draw(-128, 127) : draw(0, 255)));
    return t;
}

static void add_scales(node *n, int64_t count, double most, bool constant)
{
    grt_tensor *t = add_input(n, GRT_DTYPE_FLOAT, count > 1 ? 1 : 0, &count);
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        element_set(t, i, most * (0.25 + 0.75 * draw_real()));
    n->constant[n->n_in - 1] = constant;
}

/* Near the middle of the type, or of weights most often there. */
static void add_zero(node *n, grt_dtype dtype, int64_t count, bool centred, bool constant)
{
    grt_tensor *t = add_input(n, dtype, count > 1 ? 1 : 0, &count);
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        element_set(t, i, (dtype == GRT_DTYPE_INT8 ? 0 : 128) + (double)(centred ? 0 : draw(-40, 40)));
    n->constant[n->n_in - 1] = constant;
}

/* Inputs of QLinearConv and QLinearMatMul, whose sums have `terms` products. plain: signed ones of x are
 * their own levels. */
static void add_quantised(node *n, const grt_tensor *x, const grt_tensor *w, int64_t columns, int64_t terms,
                          bool plain)
{
    const grt_dtype of_x = draw_byte(), of_w = draw(0, 3) ? GRT_DTYPE_INT8 : GRT_DTYPE_UINT8;
    const bool each = columns > 1 && draw(0, 1), known = draw(0, 3) != 0, centred = draw(0, 3) != 0;
    n->out = draw_byte();
    add_bytes(n, of_x, x->rank, x->dims);
    add_scales(n, 1, 0.02, known);
    add_zero(n, of_x, 1, plain, known);
    add_bytes(n, of_w, w->rank, w->dims);
    n->constant[3] = draw(0, 3) != 0;
    add_scales(n, each ? columns : 1, 0.01, known);
    add_zero(n, of_w, each ? columns : 1, centred, true);
    add_scales(n, 1, 0.02 * 0.01 * 60 * sqrt((double)terms), known);
    add_zero(n, n->out, 1, false, known);
}

void make_qlinear_conv(node *n)
{
    const bool image = draw(0, 5) == 0; /* few channels, large windows */
    const int64_t unit = draw(0, 1) ? 16 : 1, depthwise = !image && draw(0, 3) == 0,
                  group = depthwise             ? unit * draw(1, 6)
                          : image || draw(0, 2) ? 1
                                                : draw(2, 4),
                  channels = depthwise ? 1
                             : image   ? draw(1, 4)
                                       : unit * draw(1, 5);
    const bool transformed = !image && !depthwise && draw(0, 3) == 0; /* by Winograd, where a level does */
    const int64_t least = transformed ? 3 : 1,
                  most = transformed ? 3
                         : image     ? 8
                                     : 4,
                  far = transformed ? 1 : 2, kernel[2] = {draw(least, most), draw(least, most)},
                  dilation[2] = {draw(1, far), draw(1, far)};
    const int32_t spatial = transformed || draw(0, 4) ? 2 : 1, skip = 2 - spatial;
    grt_tensor x = {.rank = 2 + spatial, .dims = {draw(1, 3), group * channels}},
               w = {.rank = 2 + spatial,
                    .dims = {group * (depthwise ? 1 : draw(1, 2) * draw(1, 40)), channels}};
    int64_t pads[4], strides[2];
    for (int32_t k = 0; k < spatial; k++) {
        w.dims[2 + k] = kernel[k + skip];
        x.dims[2 + k] = (kernel[k + skip] - 1) * dilation[k + skip] + draw(1, image ? 90 : 14);
        strides[k] = draw(1, image ? 4 : far);
        pads[k] = draw(0, kernel[k + skip] - 1);
        pads[spatial + k] = draw(0, kernel[k + skip] - 1);
    }
    add_quantised(n, &x, &w, w.dims[0], channels * kernel[1] * (skip ? 1 : kernel[0]), false);
    n->constant[3] = true;
    if (draw(0, 1)) {
        grt_tensor *bias = add_input(n, GRT_DTYPE_INT32, 1, w.dims);
        for (int64_t i = 0; i < grt_tensor_elements(bias); i++)
            element_set(bias, i, (double)draw(-30000, 30000));
        n->constant[8] = true;
    }
    set_int(n, "group", group);
    set_ints(n, "strides", strides, spatial);
    set_ints(n, "pads", pads, 2 * spatial);
    set_ints(n, "dilations", dilation + skip, spatial);
}

/* So many pixels and filters that every multiprocessor has tiles, and windows whose taps fill 64 or 128
 * bytes.
 */
void make_qlinear_tiles(node *n)
{
    const bool windows = draw(0, 1);
    const int64_t taps = windows ? 3 : 1, channels = windows ? 64 * draw(1, 2) : 16 * draw(1, 12),
                  filters = 32 * draw(2, 8), size = draw(45, 62), pad = windows ? draw(0, 1) : 0,
                  stride = draw(0, 3) ? 1 : 2, pads[] = {pad, pad, pad, pad}, strides[] = {stride, stride};
    grt_tensor x = {.rank = 4, .dims = {2 * stride * stride, channels, size, size}},
               w = {.rank = 4, .dims = {filters, channels, taps, taps}};
    add_quantised(n, &x, &w, filters, channels * taps * taps, draw(0, 3) != 0);
    n->constant[3] = true;
    set_ints(n, "pads", pads, 4);
    set_ints(n, "strides", strides, 2);
}

void make_qlinear_matmul(node *n)
{
    const bool tall = draw(0, 15) == 0,  /* so that every multiprocessor has several tiles, of any form */
        deep = !tall && draw(0, 7) == 0; /* so that blocks share a tile's terms */
    const int64_t unit = draw(0, 1) ? 16 : 1,
                  m = tall         ? draw(5000, 40000)
                      : draw(0, 2) ? draw_dim()
                                   : draw(100, 300),
                  k = unit * (deep ? draw(40, 300) : draw(1, tall ? 8 : 40)),
                  c = draw(0, 1) && !tall ? draw_dim() : 8 * draw(1, 40);
    const int32_t lead = tall ? 0 : (int32_t)draw(0, 2);
    grt_tensor a = {.rank = lead + 2}, b = {.rank = lead + 2};
    for (int32_t i = 0; i < lead; i++) {
        a.dims[i] = b.dims[i] = draw(1, 4);
        if (draw(0, 1))
            *(draw(0, 1) ? &a.dims[i] : &b.dims[i]) = 1;
    }
    a.dims[lead] = m;
    a.dims[lead + 1] = b.dims[lead] = k;
    b.dims[lead + 1] = c;
    add_quantised(n, &a, &b, lead ? 1 : c, k, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over images: convolutions, pools, resizing. */
#include "tests/differential/makers.h"
#include "tools/element.h"

#include <math.h>

#include <string.h>

/* Convolutions and pools share their window. */
static int32_t draw_window(node *n, int64_t *kernel, int64_t *dims, bool dilates)
{
    int64_t strides[3], dilations[3], pads[6];
    int32_t spatial = (int32_t)draw(1, 3);
    for (int32_t k = 0; k < spatial; k++) {
        kernel[k] = draw(1, 4);
        strides[k] = draw(1, 3);
        dilations[k] = dilates ? draw(1, 2) : 1;
        pads[k] = draw(0, kernel[k] - 1);
        pads[spatial + k] = draw(0, kernel[k] - 1);
        dims[2 + k] = draw((kernel[k] - 1) * dilations[k] + 1, 12);
    }
    set_ints(n, "kernel_shape", kernel, spatial);
    set_ints(n, "strides", strides, spatial);
    set_ints(n, "pads", pads, 2 * spatial);
    if (dilates)
        set_ints(n, "dilations", dilations, spatial);
    return spatial;
}

/* Windows that tile the image, as in vision transformers. */
static void make_patches(node *n)
{
    const int64_t kernel = draw(2, 8), channels = draw(1, 4), images = draw(1, 2);
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    add_input(n, n->out, 4, (int64_t[]){images, channels, kernel * draw(1, 4), kernel * draw(1, 4)});
    add_input(n, n->out, 4, (int64_t[]){8 * draw(1, 4), channels, kernel, kernel});
    n->constant[1] = true;
    set_ints(n, "strides", (int64_t[]){kernel, kernel}, 2);
}

/* First convolutions of image models, with as many pixels as a GPU's kernel for few channels wants: at least
 * two blocks of 128 for each of 132 multiprocessors. */
static void make_stem(node *n)
{
    const int64_t side = draw(5, 8), channels = draw(1, 4), stride = draw(1, 2), pad = draw(0, side / 2);
    const int64_t w[4] = {8 * draw(1, 9), channels, side, draw(5, 8)};
    n->out = GRT_DTYPE_FLOAT16;
    n->wide = true;
    add_input(n, n->out, 4,
              (int64_t[]){3 * stride, channels, stride * draw(133, 150), stride * draw(129, 150)});
    grt_tensor *weight = add_input(n, n->out, 4, w);
    for (int64_t i = 0; i < grt_tensor_elements(weight); i++)
        element_set(weight, i, element_get(weight, i) / sqrt((double)(w[1] * w[2] * w[3])));
    add_input(n, n->out, 1, w);
    n->constant[1] = n->constant[2] = true;
    set_ints(n, "strides", (int64_t[]){stride, stride}, 2);
    set_ints(n, "pads", (int64_t[]){pad, draw(0, 4), draw(0, 4), draw(0, 4)}, 4);
    set_ints(n, "dilations", (int64_t[]){1, 1}, 2);
}

void make_conv(node *n)
{
    if (draw(0, 5) == 0) {
        make_patches(n);
        return;
    }
    if (draw(0, 30) == 0) {
        make_stem(n);
        return;
    }
    int64_t kernel[3], x[5], w[5], group = draw(0, 1) ? 1 : draw(1, 4);
    n->out = draw(0, 3) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    int32_t spatial = draw_window(n, kernel, x, true);
    set_int(n, "group", group);
    x[0] = draw(1, 3);
    w[1] = draw(1, 9);
    x[1] = w[1] * group;
    w[0] = draw(1, 9) * group;
    memcpy(w + 2, kernel, (size_t)spatial * sizeof *kernel);
    add_input(n, n->out, spatial + 2, x);
    add_input(n, n->out, spatial + 2, w);
    n->constant[1] = draw(0, 3) != 0;
    if (draw(0, 1)) {
        add_input(n, n->out, 1, w);
        n->constant[2] = n->constant[1];
    }
}

/* Windows of 16 taps and more in groups of many channels, as in speech models; of every other one, about half
 * of the columns reach the padding at the end. Sums stay about 1. */
void make_long_taps(node *n)
{
    const bool narrow = draw(0, 1);
    const int64_t group = draw(2, 4), channels = (narrow ? 8 : 4) * draw(2, 7), taps = draw(16, 70),
                  square = draw(0, 3);
    const int64_t stride = draw(1, 2), pad = draw(0, 40), length = taps + draw(0, 90),
                  even = length - taps + pad + 2, end = draw(0, 1) && even <= 40 ? even : draw(0, 40);
    const int64_t w[4] = {2 * draw(1, 40) * group, channels, square ? 1 : 5, square ? taps : 5};
    n->out = narrow ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->precision = narrow ? NULL : "tf32";
    add_input(n, n->out, 4, (int64_t[]){draw(1, 2), channels * group, square ? draw(1, 2) : 9, length});
    grt_tensor *weight = add_input(n, n->out, 4, w);
    for (int64_t i = 0; i < grt_tensor_elements(weight); i++)
        element_set(weight, i, element_get(weight, i) / sqrt((double)(w[1] * w[2] * w[3])));
    n->constant[1] = true;
    set_int(n, "group", group);
    set_ints(n, "strides", (int64_t[]){1, stride}, 2);
    set_ints(n, "pads", (int64_t[]){0, pad, 0, end}, 4);
    set_ints(n, "dilations", (int64_t[]){1, 1}, 2);
}

/* Weights that keep sums of `terms` products at about 1, and a bias or none. */
static void add_weights_of_rank(node *n, int32_t rank, const int64_t *dims, int64_t terms)
{
    grt_tensor *weight = add_input(n, n->out, rank, dims);
    for (int64_t i = 0; i < grt_tensor_elements(weight); i++)
        element_set(weight, i, element_get(weight, i) / sqrt((double)terms));
    if (draw(0, 3))
        add_input(n, n->out, 1, dims);
    n->constant[1] = n->constant[2] = true;
}

static void add_weights(node *n, const int64_t *dims, int64_t terms)
{
    add_weights_of_rank(n, 4, dims, terms);
}

/* One filter a channel or a few, in squares and in other windows, of a few pixels and of many; channels that
 * are whole vectors, and others. */
void make_depthwise(node *n)
{
    const bool square = draw(0, 4) != 0, many = draw(0, 3) == 0;
    const int64_t side = 1 + 2 * draw(1, 3), whole = 8 * draw(1, many ? 24 : 6),
                  channels = draw(0, 2) ? whole : whole - draw(1, 6), filters = draw(0, 2) ? 1 : draw(2, 3),
                  stride = draw(1, 2), dilation = square ? 1 : draw(1, 2), other = square ? side : draw(1, 6),
                  most = many ? 60 : 14;
    const int64_t w[4] = {channels * filters, 1, side, other};
    n->out = draw(0, 2) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->wide = true;
    n->then = draw(0, 1) ? PICK("Relu", "Sigmoid", "HardSwish", "Softplus") : NULL;
    add_input(n, n->out, 4,
              (int64_t[]){many ? draw(4, 12) : draw(1, 3), channels, dilation * side + draw(0, most),
                          dilation * other + draw(0, most)});
    add_weights(n, w, side * other);
    set_int(n, "group", channels);
    set_ints(n, "strides", (int64_t[]){stride, square ? stride : draw(1, 3)}, 2);
    set_ints(n, "pads", (int64_t[]){draw(0, side - 1), draw(0, other - 1), draw(0, 3), draw(0, 3)}, 4);
    set_ints(n, "dilations", (int64_t[]){dilation, dilation}, 2);
}

/* Small windows in groups of few channels, as many out as in: in whole vectors and odd ones. */
void make_groups(node *n)
{
    static const int64_t widths[] = {4, 8, 16, 24, 32, 40, 56, 64, 3, 12};
    const int64_t width = widths[draw(0, 9)], groups = draw(2, width > 16 ? 4 : 20),
                  side = 1 + 2 * draw(0, 2), dilation = draw(0, 3) ? 1 : 2, stride = draw(1, 3),
                  reach = (side - 1) * dilation + 1;
    const int64_t w[4] = {width * groups, width, side, draw(0, 2) ? side : draw(1, 3)};
    n->out = draw(0, 4) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->wide = true;
    n->then = draw(0, 1) ? PICK("Relu", "Sigmoid", "HardSwish", "Softplus") : NULL;
    add_input(n, n->out, 4, (int64_t[]){draw(1, 3), w[0], reach + draw(0, 20), 5 + draw(0, 20)});
    add_weights(n, w, width * side * w[3]);
    set_int(n, "group", groups);
    set_ints(n, "strides", (int64_t[]){stride, draw(0, 3) ? stride : draw(1, 2)}, 2);
    set_ints(n, "pads", (int64_t[]){draw(0, side - 1), draw(0, 2), draw(0, 2), draw(0, 2)}, 4);
    set_ints(n, "dilations", (int64_t[]){dilation, draw(0, 1) ? dilation : 1}, 2);
}

/* Filters that the run computes, in groups, as where each image of a batch has its own. */
void make_computed_filters(node *n)
{
    n->op = draw_op();
    const bool transposed = !strcmp(n->op, "ConvTranspose");
    const int64_t groups = draw(1, 6), in = draw(6, 40), out = draw(1, 40), side = draw(1, 4),
                  other = draw(1, 4), dilation = draw(1, 2), images = draw(0, 3) ? 1 : 2;
    const int64_t w[4] = {(transposed ? in : out) * groups, transposed ? out : in, side, other};
    n->out = draw(0, 2) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->wide = true;
    add_input(
        n, n->out, 4,
        (int64_t[]){images, in * groups, dilation * side + draw(0, 20), dilation * other + draw(0, 20)});
    add_weights(n, w, in * side * other);
    n->constant[1] = n->constant[2] = false;
    set_int(n, "group", groups);
    set_ints(n, "strides", (int64_t[]){draw(1, 3), draw(1, 3)}, 2);
    set_ints(n, "pads",
             (int64_t[]){draw(0, side - 1), draw(0, other - 1), draw(0, side - 1), draw(0, other - 1)}, 4);
    set_ints(n, "dilations", (int64_t[]){dilation, draw(1, dilation)}, 2);
}

/* Three spatial dims, channels in vectors of each width: a filter a channel, or a pool. */
void make_volumes(node *n)
{
    static const int64_t units[] = {8, 4, 2, 1};
    n->op = draw_op();
    const bool conv = !strcmp(n->op, "Conv");
    const int64_t channels = conv ? units[draw(0, 3)] * draw(1, 9) : 8 * draw(1, 4), stride = draw(1, 2),
                  dilation = draw(0, 2) ? 1 : 2;
    int64_t w[5] = {channels, 1, draw(1, 3), draw(1, 3), draw(0, 1) ? 3 : draw(1, 4)},
            x[5] = {draw(1, 2), channels};
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->wide = true;
    for (int k = 2; k < 5; k++)
        x[k] = dilation * w[k] + draw(0, 9);
    add_input(n, n->out, 5, x);
    if (conv) {
        add_input(n, n->out, 5, w);
        n->constant[1] = true;
        if (draw(0, 1))
            add_input(n, n->out, 1, w);
        n->constant[2] = true;
        set_int(n, "group", channels);
        n->then = draw(0, 1) ? PICK("Relu", "Sigmoid", "HardSwish", "Softplus") : NULL;
    } else {
        set_ints(n, "kernel_shape", w + 2, 3);
    }
    set_ints(n, "strides", (int64_t[]){draw(1, 2), stride, draw(0, 3) ? 1 : stride}, 3);
    set_ints(n, "pads",
             (int64_t[]){w[2] - 1, draw(0, w[3] - 1), draw(0, w[4] - 1), draw(0, w[2] - 1), 0, w[4] - 1}, 6);
    set_ints(n, "dilations", (int64_t[]){1, draw(1, dilation), draw(0, 1) ? 1 : dilation}, 3);
}

/* The first convolution of a video model: three spatial dims, few channels, as many results as make_stem's.
 */
static void make_volume_stem(node *n)
{
    const int64_t deep = draw(1, 5), high = draw(3, 7), stride = draw(1, 2), step = draw(1, 2);
    const int64_t w[5] = {8 * draw(1, 9), draw(1, 4), deep, high, draw(5, 7)};
    n->out = GRT_DTYPE_FLOAT16;
    n->wide = true;
    add_input(
        n, n->out, 5,
        (int64_t[]){draw(1, 2), w[1], step * draw(3, 5), stride * draw(90, 99), stride * draw(120, 132)});
    add_weights_of_rank(n, 5, w, w[1] * w[2] * w[3] * w[4]);
    set_ints(n, "strides", (int64_t[]){step, stride, stride}, 3);
    set_ints(n, "pads",
             (int64_t[]){deep / 2, draw(0, high - 1), draw(0, 4), deep / 2, draw(0, 2), draw(0, 4)}, 6);
}

/* Three spatial dims, all channels for all: windows of a plane, along depth alone, and of both. */
void make_dense_volumes(node *n)
{
    if (draw(0, 4) == 0) {
        make_volume_stem(n);
        return;
    }
    const bool narrow = draw(0, 1), plane = draw(0, 2) == 0, line = !plane && draw(0, 1),
               odd = draw(0, 2) == 0;
    const int64_t in = odd ? draw(3, 40) : 8 * draw(1, 12), out = odd ? draw(2, 40) : 8 * draw(1, 12),
                  w[5] = {out, in, plane ? 1 : draw(1, 4), line ? 1 : draw(1, 4), line ? 1 : draw(1, 4)};
    n->out = narrow ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->precision = narrow || draw(0, 1) ? NULL : "tf32";
    n->wide = true;
    n->then = draw(0, 1) ? PICK("Relu", "Sigmoid", "HardSwish", "Softplus") : NULL;
    add_input(n, n->out, 5,
              (int64_t[]){draw(1, 3), in, w[2] + draw(0, 7), w[3] + draw(0, 11), w[4] + draw(0, 11)});
    add_weights_of_rank(n, 5, w, in * w[2] * w[3] * w[4]);
    set_ints(n, "strides", (int64_t[]){draw(0, 2) ? 1 : 2, draw(0, 2) ? 1 : 2, draw(0, 2) ? 1 : 2}, 3);
    set_ints(n, "pads",
             (int64_t[]){draw(0, w[2] - 1), draw(0, w[3] - 1), draw(0, w[4] - 1), draw(0, w[2] - 1),
                         draw(0, w[3] - 1), draw(0, w[4] - 1)},
             6);
}

/* Overlapping windows added up again. */
void make_fold(node *n)
{
    const bool plane = draw(0, 3) != 0;
    const int32_t spatial = plane ? 2 : (int32_t)draw(1, 3);
    int64_t image[3], block[3], strides[3], dilations[3], pads[6], places = 1, volume = 1;
    for (int32_t k = 0; k < spatial; k++) {
        block[k] = draw(1, 4);
        strides[k] = draw(1, 4);
        dilations[k] = draw(0, 3) ? 1 : 2;
        pads[k] = draw(0, 2);
        pads[spatial + k] = draw(0, 2);
        image[k] = dilations[k] * (block[k] - 1) + draw(1, 12);
        places *=
            (image[k] + pads[k] + pads[spatial + k] - dilations[k] * (block[k] - 1) - 1) / strides[k] + 1;
        volume *= block[k];
    }
    n->out = draw_float();
    add_input(n, n->out, 3, (int64_t[]){draw(1, 3), draw(1, 5) * volume, places});
    add_list(n, image, spatial);
    add_list(n, block, spatial);
    set_ints(n, "strides", strides, spatial);
    set_ints(n, "dilations", dilations, spatial);
    set_ints(n, "pads", pads, 2 * spatial);
}

/* 1 x 1: of one pixel and of many, channels in whole vectors and odd ones, with what may follow inside. */
void make_pixels(node *n)
{
    const int64_t side = draw(0, 2) ? draw(2, 40) : 1, unit = draw(0, 2) ? 8 : draw(1, 2),
                  images = draw(1, side > 1 ? 6 : 40);
    const int64_t w[4] = {unit * draw(1, 30), unit * draw(1, 16), 1, 1};
    n->out = draw(0, 3) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT;
    n->wide = true;
    n->then = draw(0, 3) ? PICK("Sigmoid", "HardSwish", "Softplus", "Relu") : NULL;
    add_input(n, n->out, 4, (int64_t[]){images, w[1], side, side > 1 ? draw(1, 40) : 1});
    add_weights(n, w, w[1]);
}

/* Scores of heads that are mixed in front of a softmax. */
void make_mixed_heads(node *n)
{
    const int64_t heads = draw(1, 32), keys = draw(0, 3) ? draw(1, 40) : 2 * draw(20, 300);
    const int64_t w[4] = {draw(1, 32), heads, 1, 1};
    n->out = draw_float();
    n->wide = true;
    n->then = "Softmax";
    add_input(n, n->out, 4, (int64_t[]){draw(1, 3), heads, draw(1, 20), keys});
    add_weights(n, w, heads);
}

void make_pool(node *n)
{
    int64_t kernel[3], x[5];
    n->op = draw_op();
    n->out = draw_float();
    int32_t spatial = draw_window(n, kernel, x, strcmp(n->op, "LpPool") != 0);
    x[0] = draw(1, 3);
    x[1] = draw(1, 9);
    add_input(n, n->out, spatial + 2, x);
}

/* Batch and channels whole; rows and columns of which a part may lie outside. */
static void add_roi(node *n)
{
    float *roi = add_input(n, GRT_DTYPE_FLOAT, 1, (int64_t[]){8})->data;
    for (int k = 0; k < 4; k++) {
        roi[k] = k < 2 ? 0 : (float)draw(-2, 3) / 4;
        roi[4 + k] = k < 2 ? 1 : roi[k] + (float)draw(1, 6) / 4;
    }
}

void make_resize(node *n)
{
    int64_t dims[4], sizes[4];
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    for (int k = 0; k < 4; k++) {
        dims[k] = draw(k < 2 ? 1 : 2, k < 2 ? 3 : 9);
        sizes[k] = k < 2 ? dims[k] : draw(1, 14);
    }
    const bool crops = !draw(0, 3);
    add_input(n, n->out, 4, dims);
    if (crops)
        add_roi(n);
    else
        n->omitted[n->n_in++] = true;
    n->omitted[n->n_in++] = true;
    add_list(n, sizes, 4);
    set_text(n, "mode", PICK("linear", "cubic"));
    if (crops) {
        set_text(n, "coordinate_transformation_mode", "tf_crop_and_resize");
        set_real(n, "extrapolation_value", 7);
        return;
    }
    set_text(n, "coordinate_transformation_mode",
             PICK("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"));
    set_int(n, "antialias", draw(0, 1));
}

/* Windows that do not overlap, of a transposed convolution whose result lies beside a skip connection. */
void make_woven_pixels(node *n)
{
    const bool narrow = draw(0, 1), many = draw(0, 2) == 0;
    const int64_t vector = narrow ? 8 : 4, in = draw(0, 4) ? vector * draw(1, 24) : draw(1, 60),
                  block = draw(2, 3), out = draw(0, 4) ? vector * draw(1, 12) : draw(4, 60),
                  x[4] = {draw(1, 3), in, draw(1, many ? 60 : 9), draw(1, many ? 60 : 9)},
                  w[4] = {in, out, block, block};
    n->out = !narrow ? GRT_DTYPE_FLOAT : draw(0, 1) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_BFLOAT16;
    n->precision = narrow || draw(0, 1) ? NULL : "tf32";
    n->wide = true;
    n->then = draw(0, 1) ? PICK("Relu", "HardSwish") : NULL;
    n->joined = draw(0, 4) != 0;
    n->joined_first = draw(0, 1);
    n->joined_axis = 1;
    add_input(n, n->out, 4, x);
    grt_tensor *weight = add_input(n, n->out, 4, w);
    for (int64_t i = 0; i < grt_tensor_elements(weight); i++)
        element_set(weight, i, element_get(weight, i) / sqrt((double)in));
    add_input(n, n->out, 1, &out);
    n->constant[1] = n->constant[2] = true;
    set_ints(n, "strides", (int64_t[]){block, block}, 2);
    if (n->joined)
        add_input(
            n, n->out, 4,
            (int64_t[]){x[0], draw(0, 4) ? vector * draw(1, 12) : draw(1, 60), x[2] * block, x[3] * block});
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pixel filters: filters for each pixel (involution, dynamic local filters) are exported as windows that are
 * copied out of the image, a product with the filters, and a sum over taps. They become graphrt::PixelFilter,
 * which reads the image in place: the copies are as many times larger as a window has taps.
 *
 * Windows are copied by a Gather of rows, one of columns, each by a constant [taps, positions], and a
 * Transpose to [batch, channels, taps down, taps across, height, width]; then come reshapes. */
#include "graph/ir/constant.h"
#include "graph/passes/rewrite.h"

#include <string.h>

enum { PLANE = 2, RANK = 4, UNFOLDED = 6 };

typedef struct unfolded {
    ir_value *x; /* the image */
    int64_t kernel[PLANE], stride[PLANE], dilation[PLANE], out[PLANE];
    int64_t pads[2 * PLANE]; /* of Conv */
} unfolded;

/* Positions tap * dilation + place * stride of as many places as there are. */
static bool read_positions(const ir_value *index, grt_dim size, unfolded *u, int32_t d)
{
    const grt_tensor *t = index ? index->type.data : NULL;
    int64_t in;
    if (!t || t->dtype != GRT_DTYPE_INT64 || t->rank != 2 || t->dims[0] < 1 || t->dims[1] < 1 ||
        !grt_dim_is_const(index->graph->module->dims, size, &in) || in > INT32_MAX)
        return false;
    const int64_t *at = t->data, taps = t->dims[0], places = t->dims[1];
    for (int64_t i = 0; i < taps * places; i++)
        if (at[i] < 0 || at[i] >= in)
            return false;
    const int64_t dilation = taps > 1 ? at[places] - at[0] : 1, stride = places > 1 ? at[1] - at[0] : 1;
    if (dilation < 1 || stride < 1 || dilation > in || stride > in)
        return false;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t o = 0; o < places; o++)
            if (at[k * places + o] != k * dilation + o * stride)
                return false;
    u->kernel[d] = taps;
    u->out[d] = places;
    u->stride[d] = stride;
    u->dilation[d] = dilation;
    const int64_t reach = dilation * (taps - 1) + 1;
    return in >= reach && (in - reach) / stride + 1 == places;
}

static bool is_zero(const ir_value *value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    if (!value)
        return true;
    const unsigned char *bytes = t ? t->data : NULL;
    for (size_t i = 0; t && i < grt_tensor_bytes(t); i++)
        if (bytes[i])
            return false;
    return t != NULL;
}

/* Zeros round the image are the window's padding. */
static void read_zero_border(unfolded *u)
{
    const ir_node *pad = rewrite_producer(u->x, "Pad");
    const int64_t *pads;
    int64_t n;
    if (!pad || strcmp(grt_attr_string(&pad->desc, "mode", "constant"), "constant") != 0 ||
        !ir_const_ints(ir_in(pad, 1), &pads, &n) || n != 2 * RANK || ir_in(pad, 3) || !is_zero(ir_in(pad, 2)))
        return;
    for (int32_t i = 0; i < 2 * RANK; i++)
        if (pads[i] < 0 || pads[i] > INT32_MAX || (i % RANK < 2 && pads[i]))
            return;
    for (int32_t d = 0; d < PLANE; d++) {
        u->pads[d] = pads[2 + d];
        u->pads[PLANE + d] = pads[RANK + 2 + d];
    }
    u->x = ir_in(pad, 0);
}

static const ir_value *before_reshapes(const ir_value *value)
{
    while (value && value->producer && rewrite_is_reshape(value->producer) &&
           ir_in(value->producer, 0)->graph == value->graph)
        value = ir_in(value->producer, 0);
    return value;
}

static bool read_unfolded(const ir_value *value, unfolded *u)
{
    static const int64_t order[] = {0, 1, 2, 4, 3, 5};
    const ir_node *turn = rewrite_producer(before_reshapes(value), "Transpose");
    size_t n;
    const int64_t *perm = turn ? grt_attr_ints(&turn->desc, "perm", &n) : NULL;
    if (!perm || n != UNFOLDED || memcmp(perm, order, sizeof order) != 0)
        return false;
    const ir_node *across = rewrite_producer(ir_in(turn, 0), "Gather"),
                  *down = across ? rewrite_producer(ir_in(across, 0), "Gather") : NULL;
    if (!down || ir_in(down, 0)->type.rank != RANK || grt_attr_int(&down->desc, "axis", 0) != 2 ||
        grt_attr_int(&across->desc, "axis", 0) != 4)
        return false;
    *u = (unfolded){.x = ir_in(down, 0)};
    if (!read_positions(ir_in(down, 1), u->x->type.dims[2], u, 0) ||
        !read_positions(ir_in(across, 1), u->x->type.dims[3], u, 1))
        return false;
    read_zero_border(u);
    return true;
}

/* True if the value's dims from `from` up to `to` have the product n. */
static bool is_product(const ir_value *value, int32_t from, int32_t to, int64_t n)
{
    int64_t product = 1, size;
    for (int32_t i = from; i < to; i++)
        if (!grt_dim_is_const(value->graph->module->dims, value->type.dims[i], &size) || size < 1 ||
            (product *= size) > n)
            return false;
    return product == n;
}

/* windows are [batch, groups..., channels of a group..., taps, places...], filters the same with ones for the
 * channels of a group. */
static bool read_groups(const ir_value *windows, const ir_value *filters, const unfolded *u, int32_t axis,
                        int64_t *out_groups)
{
    const grt_dims *dims = windows->graph->module->dims;
    const int32_t rank = windows->type.rank;
    int64_t channels, size;
    if (filters->type.rank != rank || axis < 2 || axis >= rank - 1 ||
        !grt_dim_is_const(dims, u->x->type.dims[1], &channels) ||
        windows->type.dims[0] != u->x->type.dims[0] || filters->type.dims[0] != u->x->type.dims[0] ||
        !is_product(windows, 1, axis, channels) ||
        !is_product(windows, axis, axis + 1, u->kernel[0] * u->kernel[1]) ||
        !is_product(windows, axis + 1, rank, u->out[0] * u->out[1]))
        return false;
    int32_t i = 1;
    *out_groups = 1;
    for (; i < axis && filters->type.dims[i] == windows->type.dims[i]; i++)
        if (grt_dim_is_const(dims, windows->type.dims[i], &size))
            *out_groups *= size;
    for (; i < axis; i++)
        if (!grt_dim_equals(dims, filters->type.dims[i], 1))
            return false;
    for (; i < rank; i++)
        if (filters->type.dims[i] != windows->type.dims[i])
            return false;
    return true;
}

/* The filters as [batch, groups * taps, height, width]. */
static ir_value *filters_of_pixels(ir_node *node, ir_value *filters, const unfolded *u, int64_t groups)
{
    grt_dims *dims = node->graph->module->dims;
    const grt_dim wanted[] = {u->x->type.dims[0], grt_dim_const(dims, groups * u->kernel[0] * u->kernel[1]),
                              grt_dim_const(dims, u->out[0]), grt_dim_const(dims, u->out[1])};
    const ir_type type = {
        .kind = GRT_KIND_TENSOR, .dtype = filters->type.dtype, .rank = RANK, .dims = wanted};
    for (ir_value *v = filters; rewrite_is_reshape(v->producer); v = ir_in(v->producer, 0))
        if (rewrite_same_shape(&ir_in(v->producer, 0)->type, &type) &&
            ir_in(v->producer, 0)->graph == node->graph)
            return ir_in(v->producer, 0);
    return rewrite_reshaped(node, filters, RANK, wanted);
}

static ir_node *pixel_filters_make(ir_node *sum, ir_value *filters, const unfolded *u)
{
    ir_value *in[] = {u->x, filters};
    ir_node *made =
        filters ? ir_node_create(sum->graph, sum, "graphrt", "PixelFilter", sum->desc.name, 2, in, 1) : NULL;
    if (!made)
        return NULL;
    ir_attr_set_ints(made, "kernel_shape", u->kernel, PLANE);
    ir_attr_set_ints(made, "strides", u->stride, PLANE);
    ir_attr_set_ints(made, "dilations", u->dilation, PLANE);
    ir_attr_set_ints(made, "pads", u->pads, 2 * PLANE);
    return made;
}

static bool pixel_filters_replace(pass_context *context, ir_node *sum)
{
    const ir_node *product =
        rewrite_is(sum, "ReduceSum") && sum->out[0] ? rewrite_producer(ir_in(sum, 0), "Mul") : NULL;
    const int64_t *axes;
    int64_t n, groups;
    unfolded u;
    if (!product || ir_in(sum, 0)->n_uses != 1 || !ir_const_ints(ir_in(sum, 1), &axes, &n) || n != 1)
        return false;
    const int32_t axis = (int32_t)grt_axis(axes[0], ir_in(sum, 0)->type.rank);
    const int32_t at = read_unfolded(ir_in(product, 0), &u) ? 0 : 1;
    if ((at && !read_unfolded(ir_in(product, 1), &u)) ||
        !read_groups(ir_in(product, at), ir_in(product, 1 - at), &u, axis, &groups))
        return false;
    ir_node *made = pixel_filters_make(sum, filters_of_pixels(sum, ir_in(product, 1 - at), &u, groups), &u);
    const ir_type *type = &sum->out[0]->type;
    ir_value *out = made && op_infer_node(made) == GRT_OK && rewrite_supported(context, made, NULL)
                        ? rewrite_reshaped(sum, made->out[0], type->rank, type->dims)
                        : NULL;
    return out && rewrite_take_over_node(sum, out);
}

static void pixel_filters_visit(pass_context *context, ir_node *node)
{
    context->changed += pixel_filters_replace(context, node);
}

grt_status pass_pixel_filters(pass_context *context)
{
    return rewrite_each_node(context, pixel_filters_visit);
}

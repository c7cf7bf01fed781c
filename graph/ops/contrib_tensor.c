/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: operators that ai.onnx got later, or has in another form. */
#include "graph/ops/foreign.h"

#include <string.h>

static const op_attr trilu_attrs[] = {{"upper", GRT_ATTR_INT, false}, {0}};
static const op_attr pad_attrs[] = {{"mode", GRT_ATTR_STRING, false}, {0}};
static const op_attr crop_attrs[] = {
    {"extrapolation_value", GRT_ATTR_FLOAT, false}, {"mode", GRT_ATTR_STRING, false}, {0}};
static const op_attr sample_attrs[] = {{"align_corners", GRT_ATTR_INT, false},
                                       {"mode", GRT_ATTR_STRING, false},
                                       {"padding_mode", GRT_ATTR_STRING, false},
                                       {0}};
static const op_attr distance_attrs[] = {{"metric", GRT_ATTR_STRING, false}, {0}};

static ir_value *as_scalar(ir_node *node, ir_value *x)
{
    return x ? put_reshape(node, x, NULL, 0) : NULL;
}

static ir_value *as_list(ir_node *node, ir_value *x)
{
    static const int64_t flat[] = {-1};
    return put_reshape(node, x, flat, 1);
}

/* (start, limit, delta), each a scalar or one element */
static grt_status rewrite_range(ir_node *node)
{
    GRT_TRY(foreign_need(node, 0, "start"));
    GRT_TRY(foreign_need(node, 1, "limit"));
    ir_value *delta = as_scalar(node, ir_in(node, 2));
    if (!delta && !ir_in(node, 0)->type.dtype)
        return foreign_unsupported(node, "the dtype of input 0 (start) must be known to the compiler");
    if (!delta)
        delta = put_scalar(node, ir_in(node, 0)->type.dtype, 1);
    return foreign_done1(
        node, put3(node, "Range", as_scalar(node, ir_in(node, 0)), as_scalar(node, ir_in(node, 1)), delta));
}

static grt_status rewrite_trilu(ir_node *node)
{
    return foreign_done1(node,
                         with_attr_of(put2(node, "Trilu", ir_in(node, 0), ir_in(node, 1)), node, "upper"));
}

/* (values, which value each element is, how often each occurs), in the order of their first occurrence */
static grt_status rewrite_unique(ir_node *node)
{
    ir_node *unique = ir_node_create(node->graph, node, "", "Unique", node->desc.name, 1,
                                     (ir_value *[]){ir_in(node, 0)}, 4);
    if (!unique)
        return grt_fail_memory(0);
    ir_attr_set_int(unique, "sorted", 0);
    return foreign_done(node, 3, (ir_value *[]){unique->out[0], unique->out[2], unique->out[3]});
}

/* (x, axis) */
static grt_status rewrite_expand_dims(ir_node *node)
{
    GRT_TRY(foreign_need(node, 1, "axis"));
    ir_value *axis = as_list(node, put_cast(node, ir_in(node, 1), GRT_DTYPE_INT64));
    return foreign_done1(node, put2(node, "Unsqueeze", ir_in(node, 0), axis));
}

/* (data, pads, value): pads may be a row, the value one element */
static grt_status rewrite_pad(ir_node *node)
{
    ir_value *y =
        put3(node, "Pad", ir_in(node, 0), as_list(node, ir_in(node, 1)), as_scalar(node, ir_in(node, 2)));
    return foreign_done1(node, with_attr_of(y, node, "mode"));
}

static grt_status rewrite_same(ir_node *node)
{
    return foreign_done1(node, put2(node, node->desc.op, ir_in(node, 0), ir_in(node, 1)));
}

/* (weight, indices, ...): what else there is concerns training */
static grt_status rewrite_embedding(ir_node *node)
{
    return foreign_done1(node, put2(node, "Gather", ir_in(node, 0), ir_in(node, 1)));
}

/* Modes of today by their names of before. */
static const char *sample_mode(const char *mode)
{
    return !strcmp(mode, "bilinear") ? "linear" : !strcmp(mode, "bicubic") ? "cubic" : mode;
}

static grt_status rewrite_grid_sample(ir_node *node)
{
    ir_value *y = put2(node, "GridSample", ir_in(node, 0), ir_in(node, 1));
    if (y)
        ir_attr_set_string(y->producer, "mode",
                           sample_mode(grt_attr_string(&node->desc, "mode", "bilinear")));
    return foreign_done1(node, with_attr_of(with_attr_of(y, node, "align_corners"), node, "padding_mode"));
}

/* Distances between the rows of two matrices. */
static grt_status rewrite_distance(ir_node *node)
{
    static const int64_t first[] = {1}, second[] = {0}, last[] = {2};
    const char *metric = grt_attr_string(&node->desc, "metric", "sqeuclidean");
    if (strcmp(metric, "sqeuclidean") != 0 && strcmp(metric, "euclidean") != 0)
        return foreign_unsupported(node, "attribute metric is '%s'; supported are euclidean and sqeuclidean",
                                   metric);
    ir_value *difference = put2(node, "Sub", put_unsqueeze(node, ir_in(node, 0), first, 1),
                                put_unsqueeze(node, ir_in(node, 1), second, 1));
    ir_value *axes = put_ints(node, last, 1);
    ir_value *y = with_int(
        put2(node, strcmp(metric, "euclidean") != 0 ? "ReduceSumSquare" : "ReduceL2", difference, axes),
        "keepdims", 0);
    return foreign_done1(node, y);
}

/* Coordinates of one axis, from -1 to 1 over the image, [boxes, size]: from the box's edge `low` to `high`,
 * columns of the boxes; in its middle if one is wanted. */
static ir_value *crop_axis(ir_node *node, ir_value *boxes, int64_t low, int64_t high, ir_value *size,
                           grt_dtype dtype)
{
    ir_value *from = put_part(node, boxes, 1, low, low + 1), *to = put_part(node, boxes, 1, high, high + 1);
    ir_value *steps = put_cast(node, put_range(node, as_scalar(node, size)), dtype);
    ir_value *one = put_ints(node, (int64_t[]){1}, 1);
    ir_value *gaps = put2(node, "Max", put2(node, "Sub", size, one), one);
    ir_value *extent = put2(node, "Sub", to, from);
    gaps = with_int(put1(node, "Cast", gaps), "to", dtype);
    ir_value *many = put2(
        node, "Add", from,
        put2(node, "Div", put2(node, "Mul", with_int(put1(node, "Cast", steps), "to", dtype), extent), gaps));
    ir_value *middle = put2(node, "Mul", put2(node, "Add", from, to), put_scalar(node, dtype, 0.5));
    ir_value *at = put3(node, "Where", put2(node, "Equal", size, one), middle, many);
    return put2(node, "Sub", put2(node, "Mul", at, put_scalar(node, dtype, 2)), put_scalar(node, dtype, 1));
}

static ir_value *contrib_tensor_inside(ir_node *node, ir_value *at, grt_dtype dtype)
{
    return put2(node, "LessOrEqual", put1(node, "Abs", at), put_scalar(node, dtype, 1));
}

/* (x, boxes [y1, x1, y2, x2], their images, size) */
static grt_status contrib_tensor_rewrite_crop(ir_node *node)
{
    static const int64_t rows[] = {2}, columns[] = {1}, last[] = {-1}, channel[] = {1};
    for (int32_t i = 0; i < 4; i++)
        GRT_TRY(foreign_need(node, i, "an operand"));
    const grt_dtype dtype = ir_in(node, 0)->type.dtype;
    if (!dtype)
        return foreign_unsupported(node, "the dtype of input 0 (X) must be known to the compiler");
    const char *mode = grt_attr_string(&node->desc, "mode", "bilinear");
    ir_value *boxes = ir_in(node, 1), *size = put_cast(node, ir_in(node, 3), GRT_DTYPE_INT64);
    ir_value *height = put_part(node, size, 0, 0, 1), *width = put_part(node, size, 0, 1, 2);
    ir_value *y = put_unsqueeze(node, crop_axis(node, boxes, 0, 2, height, dtype), rows, 1);
    ir_value *x = put_unsqueeze(node, crop_axis(node, boxes, 1, 3, width, dtype), columns, 1);
    ir_value *shown =
        put2(node, "And", contrib_tensor_inside(node, y, dtype), contrib_tensor_inside(node, x, dtype));
    ir_value *all = put1(node, "Shape", shown);
    ir_value *grid = put_concat(node, -1, 2,
                                (ir_value *[]){put_unsqueeze(node, put2(node, "Expand", x, all), last, 1),
                                               put_unsqueeze(node, put2(node, "Expand", y, all), last, 1)});
    ir_value *crops = put2(node, "GridSample", put2(node, "Gather", ir_in(node, 0), ir_in(node, 2)), grid);
    if (crops) {
        ir_attr_set_string(crops->producer, "mode", sample_mode(mode));
        ir_attr_set_string(crops->producer, "padding_mode", "border");
    }
    with_int(crops, "align_corners", 1);
    ir_value *other = put_scalar(node, dtype, (double)grt_attr_float(&node->desc, "extrapolation_value", 0));
    return foreign_done1(node, put3(node, "Where", put_unsqueeze(node, shown, channel, 1), crops, other));
}

static const op_row rows[] = {
    FOREIGN(MS, "Range", 2, 3, 1, 1, NULL, rewrite_range),
    FOREIGN(MS, "Trilu", 1, 2, 1, 1, trilu_attrs, rewrite_trilu),
    FOREIGN(MS, "Unique", 1, 1, 3, 3, NULL, rewrite_unique),
    FOREIGN(MS, "ExpandDims", 2, 2, 1, 1, NULL, rewrite_expand_dims),
    FOREIGN(MS, "Pad", 2, 3, 1, 1, pad_attrs, rewrite_pad),
    FOREIGN(MS, "GatherND", 2, 2, 1, 1, NULL, rewrite_same),
    FOREIGN(MS, "TorchEmbedding", 2, 4, 1, 1, NULL, rewrite_embedding),
    FOREIGN(MS, "GridSample", 2, 2, 1, 1, sample_attrs, rewrite_grid_sample),
    FOREIGN(MS, "CDist", 2, 2, 1, 1, distance_attrs, rewrite_distance),
    FOREIGN(MS, "CropAndResize", 4, 4, 1, 1, crop_attrs, contrib_tensor_rewrite_crop),
};
OP_TABLE(contrib_tensor, rows);

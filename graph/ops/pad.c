/* SPDX-License-Identifier: Apache-2.0 */
/* Pad: a border of constants, of the edge, or of reflected or repeated content. */
#include "graph/ops/moves.h"

#include <string.h>

static grt_status pad_check_mode(const infer *inf)
{
    static const char *const known[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = grt_attr_string(inf->desc, "mode", "constant");
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(mode, known[k]))
            return GRT_OK;
    return infer_fail(inf, "attribute mode is '%s'; expected constant, reflect, edge or wrap", mode);
}

static grt_status infer_pad(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *pads;
    const int64_t *axes = NULL;
    int64_t n, n_axes = data->rank, v;
    GRT_TRY(pad_check_mode(inf));
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    bool known = infer_elems(inf, 1, &pads, &n) && (!infer_has(inf, 3) || infer_ints(inf, 3, &axes, &n_axes));
    if (!known) {
        infer_set_fresh(inf, 0, data->dtype, data->rank);
        return GRT_OK;
    }
    if (n != 2 * n_axes)
        return infer_fail(inf, "pads has %lld entries; %lld axes need %lld", (long long)n, (long long)n_axes,
                          (long long)(2 * n_axes));
    grt_dim *dims = infer_dims(inf, data->rank);
    bool used[GRT_MAX_RANK] = {false};
    for (int32_t k = 0; dims && k < data->rank; k++)
        dims[k] = data->dims[k];
    for (int64_t k = 0; dims && k < n_axes; k++) {
        int32_t axis;
        GRT_TRY(infer_axis(inf, "an entry of axes", axes ? axes[k] : k, data->rank, &axis));
        if (used[axis])
            return infer_fail(inf, "axes names axis %d twice", axis);
        used[axis] = true;
        dims[axis] = grt_dim_add(inf->dims, dims[axis], grt_dim_add(inf->dims, pads[k], pads[k + n_axes]));
        if (infer_const(inf, dims[axis], &v) && v < 0)
            return infer_fail(inf, "axis %d would have size %lld after padding", axis, (long long)v);
    }
    infer_set(inf, 0, data->dtype, data->rank, dims);
    return GRT_OK;
}

/* The old forms have pads (first called paddings) and the constant as attributes. */
static grt_status upgrade_pad(ir_node *node, int32_t opset)
{
    if (opset >= 11)
        return GRT_OK;
    moves_attr_to_input(node, opset < 2 ? "paddings" : "pads", 1);
    float value = grt_attr_float(&node->desc, "value", 0);
    ir_attr_remove(node, "value");
    ir_value *data = ir_in(node, 0);
    if (value == 0 || !data)
        return GRT_OK;
    grt_dtype dtype = data->type.dtype;
    ir_value *constant =
        ir_constant_scalar(node->graph, "value", dtype ? dtype : GRT_DTYPE_FLOAT, (double)value);
    if (!dtype) { /* not known before inference: let the data decide */
        ir_value *in[] = {constant, data};
        constant = ir_node_out(ir_node_create(node->graph, node, "", "CastLike", node->desc.name, 2, in, 1));
    }
    if (!constant)
        return grt_fail_memory(0);
    moves_put_input(node, 2, constant);
    return GRT_OK;
}

static const op_attr pad_attrs[] = {{"mode", GRT_ATTR_STRING, false}, {0}};

static grt_status infer_center_crop_pad(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *shape;
    int64_t n;
    size_t n_axes;
    const int64_t *axes = grt_attr_ints(inf->desc, "axes", &n_axes);
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (!infer_elems(inf, 1, &shape, &n)) {
        infer_set_fresh(inf, 0, data->dtype, data->rank);
        return GRT_OK;
    }
    int64_t wanted = axes ? (int64_t)n_axes : data->rank;
    if (n != wanted)
        return infer_fail(inf, "shape has %lld entries for %lld axes", (long long)n, (long long)wanted);
    grt_dim *dims = infer_dims(inf, data->rank);
    bool used[GRT_MAX_RANK] = {false};
    for (int32_t k = 0; dims && k < data->rank; k++)
        dims[k] = data->dims[k];
    for (int64_t k = 0; dims && k < n; k++) {
        int32_t axis;
        int64_t v;
        GRT_TRY(infer_axis(inf, "an entry of axes", axes ? axes[k] : k, data->rank, &axis));
        if (used[axis])
            return infer_fail(inf, "axes names axis %d twice", axis);
        if (infer_const(inf, shape[k], &v) && v < 0)
            return infer_fail(inf, "shape[%lld] is %lld; expected a size", (long long)k, (long long)v);
        used[axis] = true;
        dims[axis] = shape[k];
    }
    infer_set(inf, 0, data->dtype, data->rank, dims);
    return GRT_OK;
}

static const op_attr crop_attrs[] = {{"axes", GRT_ATTR_INTS, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Pad",
     .since = 25,
     .min_in = 2,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = pad_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .layout = OP_LAYOUT_PAD,
     .infer = infer_pad,
     .upgrade = upgrade_pad},
    {.domain = "",
     .name = "CenterCropPad",
     .since = 18,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = crop_attrs,
     .precision = OP_WIDE,
     .infer = infer_center_crop_pad},
};
OP_TABLE(pad, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* Resize, and Upsample which it replaced. */
#include "graph/ops/moves.h"

#include <math.h>
#include <string.h>

static bool resize_one_of(const char *text, const char *const *known)
{
    for (; *known; known++)
        if (!strcmp(text, *known))
            return true;
    return false;
}

static grt_status resize_check_attrs(const infer *inf)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
        "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL};
    static const char *const rounding[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    const char *mode = grt_attr_string(inf->desc, "mode", "nearest");
    const char *coordinate = grt_attr_string(inf->desc, "coordinate_transformation_mode", "half_pixel");
    const char *nearest = grt_attr_string(inf->desc, "nearest_mode", "round_prefer_floor");
    const char *policy = grt_attr_string(inf->desc, "keep_aspect_ratio_policy", "stretch");
    if (!resize_one_of(mode, modes))
        return infer_fail(inf, "attribute mode is '%s'; expected nearest, linear or cubic", mode);
    if (!resize_one_of(coordinate, coordinates))
        return infer_fail(inf, "attribute coordinate_transformation_mode is '%s', which is not known",
                          coordinate);
    if (!resize_one_of(nearest, rounding))
        return infer_fail(inf, "attribute nearest_mode is '%s', which is not known", nearest);
    if (!resize_one_of(policy, policies))
        return infer_fail(
            inf, "attribute keep_aspect_ratio_policy is '%s'; expected stretch, not_larger or not_smaller",
            policy);
    return GRT_OK;
}

/* Input i if it has elements: an empty list stands for an omitted input. */
static const ir_type *row_resize_given(const infer *inf, int32_t i)
{
    int64_t n;
    const ir_type *type = infer_has(inf, i) ? inf->in[i] : NULL;
    return type && type->rank == 1 && infer_const(inf, type->dims[0], &n) && n == 0 ? NULL : type;
}

/* Content of a constant list of floats of any width; false if it is not known. */
static bool resize_floats(const ir_type *type, int64_t n, double *out_values)
{
    if (!type || !type->data || !type->data->data || !grt_dtype_in(type->data->dtype, GRT_SET_FLOATS) ||
        grt_tensor_elements(type->data) != n)
        return false;
    for (int64_t k = 0; k < n; k++)
        out_values[k] = grt_tensor_double(type->data, k);
    return true;
}

/* What a tensor can have as a size; anything else is left to the run, which refuses it. */
static bool resize_is_size(double size)
{
    return size >= 0 && size < 0x1p62;
}

/* floor(dim * scale), computed in float32 as the shape rules of ONNX do. They have no roi in it, nor has ONNX
 * Runtime; only the standard's text has. */
static grt_dim resize_scaled(const infer *inf, grt_dim dim, double scale)
{
    int64_t v;
    if (infer_const(inf, dim, &v)) {
        float size = floorf((float)v * (float)scale);
        return resize_is_size((double)size) ? grt_dim_const(inf->dims, (int64_t)size)
                                            : grt_dim_fresh(inf->dims);
    }
    double inverse = 1 / scale;
    if (scale > 0 && scale == floor(scale) && scale < 0x1p31)
        return grt_dim_mulc(inf->dims, dim, (int64_t)scale);
    if (inverse > 0 && inverse == floor(inverse) && inverse < 0x1p31)
        return grt_dim_floordiv(inf->dims, dim, grt_dim_const(inf->dims, (int64_t)inverse));
    return grt_dim_fresh(inf->dims);
}

/* Which axes the entries of scales, sizes and roi speak of. */
static grt_status resized_axes(const infer *inf, int32_t rank, int32_t *out_axes, int32_t *out_n)
{
    size_t n;
    const int64_t *axes = grt_attr_ints(inf->desc, "axes", &n);
    bool used[GRT_MAX_RANK] = {false};
    *out_n = axes ? (int32_t)n : rank;
    if (axes && n > GRT_MAX_RANK)
        return infer_fail(inf, "axes has %zu entries; the input's rank is %d", n, rank);
    for (int32_t k = 0; k < *out_n; k++) {
        out_axes[k] = k;
        if (axes)
            GRT_TRY(infer_axis(inf, "an entry of axes", axes[k], rank, &out_axes[k]));
        if (used[out_axes[k]])
            return infer_fail(inf, "axes names axis %d twice", out_axes[k]);
        used[out_axes[k]] = true;
    }
    return GRT_OK;
}

/* Sizes that keep the aspect ratio: one scale for all axes, the least or the greatest. */
static void keep_ratio(const infer *inf, const ir_type *data, const int32_t *axes, int32_t n,
                       const grt_dim *sizes, bool least, grt_dim *dims)
{
    double scale = least ? INFINITY : 0;
    int64_t from, to;
    for (int32_t k = 0; k < n; k++) {
        dims[axes[k]] = grt_dim_fresh(inf->dims);
        if (!infer_const(inf, data->dims[axes[k]], &from) || !infer_const(inf, sizes[k], &to)) {
            scale = NAN;
        } else if (!isnan(scale)) {
            const double ratio = (double)to / (double)from;
            scale = least ? fmin(scale, ratio) : fmax(scale, ratio);
        }
    }
    for (int32_t k = 0; isfinite(scale) && k < n; k++)
        if (infer_const(inf, data->dims[axes[k]], &from) && resize_is_size(floor((double)from * scale + 0.5)))
            dims[axes[k]] = grt_dim_const(inf->dims, (int64_t)floor((double)from * scale + 0.5));
}

static grt_status infer_resize(infer *inf)
{
    const ir_type *data = inf->in[0], *scales = row_resize_given(inf, 2), *sizes = row_resize_given(inf, 3);
    int32_t axes[GRT_MAX_RANK], n;
    GRT_TRY(resize_check_attrs(inf));
    if (!scales == !sizes)
        return infer_fail(inf, "exactly one of the inputs scales and sizes must be given");
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    GRT_TRY(resized_axes(inf, data->rank, axes, &n));
    grt_dim *dims = infer_dims(inf, data->rank);
    if (!dims)
        return GRT_OK;
    for (int32_t k = 0; k < data->rank; k++)
        dims[k] = data->dims[k];
    const grt_dim *wanted;
    double factor[GRT_MAX_RANK];
    int64_t n_wanted;
    const ir_type *list = scales ? scales : sizes;
    if (list->rank >= 0 && (list->rank != 1 || (infer_const(inf, list->dims[0], &n_wanted) && n_wanted != n)))
        return infer_fail(inf, "%s must be a list of %d entries, one an axis", scales ? "scales" : "sizes",
                          n);
    const char *policy = grt_attr_string(inf->desc, "keep_aspect_ratio_policy", "stretch");
    if (sizes && infer_elems(inf, 3, &wanted, &n_wanted) && n_wanted == n) {
        for (int32_t k = 0; k < n; k++) {
            int64_t v;
            if (infer_const(inf, wanted[k], &v) && v < 0)
                return infer_fail(inf, "sizes[%d] is %lld; expected a size", k, (long long)v);
            dims[axes[k]] = wanted[k];
        }
        if (strcmp(policy, "stretch"))
            keep_ratio(inf, data, axes, n, wanted, !strcmp(policy, "not_larger"), dims);
    } else if (scales && resize_floats(scales, n, factor)) {
        for (int32_t k = 0; k < n; k++) {
            if (!(factor[k] > 0))
                return infer_fail(inf, "scales[%d] is %g; it must be positive", k, factor[k]);
            dims[axes[k]] = resize_scaled(inf, data->dims[axes[k]], factor[k]);
        }
    } else {
        for (int32_t k = 0; k < n; k++)
            dims[axes[k]] = grt_dim_fresh(inf->dims);
    }
    infer_set(inf, 0, data->dtype, data->rank, dims);
    return GRT_OK;
}

static ir_value *resize_constant_floats(ir_graph *graph, const float *values, size_t n)
{
    grt_arena *arena = graph->module->arena;
    grt_tensor *t = GRT_ARENA_NEW(arena, grt_tensor);
    void *data = grt_arena_memdup(arena, values, n * sizeof *values);
    if (!t || !data)
        return NULL;
    *t = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {(int64_t)n}, .data = data};
    return ir_constant(graph, NULL, t);
}

/* Until 10, coordinates were not shifted, and nearest meant the pixel before; when shrinking, the one after.
 */
static void set_old_coordinates(ir_node *node, const ir_value *scales)
{
    const grt_tensor *t = scales ? scales->type.data : NULL;
    bool shrinks = false;
    for (int64_t k = 0; t && t->dtype == GRT_DTYPE_FLOAT && k < grt_tensor_elements(t); k++)
        shrinks |= ((const float *)t->data)[k] < 1;
    ir_attr_set_string(node, "coordinate_transformation_mode", "asymmetric");
    ir_attr_set_string(node, "nearest_mode", shrinks ? "ceil" : "floor");
}

static grt_status upgrade_resize(ir_node *node, int32_t opset)
{
    if (opset >= 11)
        return GRT_OK;
    ir_value *scales = ir_in(node, 1);
    if (!scales)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL, "input 1, the scales, is missing");
    ir_node_set_input(node, 1, NULL);
    moves_put_input(node, 2, scales);
    set_old_coordinates(node, scales);
    return GRT_OK;
}

static grt_status upgrade_upsample(ir_node *node, int32_t opset)
{
    size_t n;
    ir_value *scales = opset >= 9 ? ir_in(node, 1) : NULL;
    const float *listed = grt_attr_floats(&node->desc, "scales", &n);
    const float rows_and_columns[] = {1, 1, grt_attr_float(&node->desc, "height_scale", 1),
                                      grt_attr_float(&node->desc, "width_scale", 1)};
    if (opset < 7)
        scales = resize_constant_floats(node->graph, rows_and_columns, 4);
    else if (opset < 9)
        scales = resize_constant_floats(node->graph, listed, n);
    if (!scales)
        return opset >= 9 ? GRT_OK : grt_fail_memory(0);
    ir_attr_remove(node, "scales");
    ir_attr_remove(node, "height_scale");
    ir_attr_remove(node, "width_scale");
    /* "bilinear" was the name at first */
    if (strcmp(grt_attr_string(&node->desc, "mode", "nearest"), "nearest"))
        ir_attr_set_string(node, "mode", "linear");
    ir_node_become(node, "", "Resize");
    ir_node_drop_inputs(node, 1);
    moves_put_input(node, 2, scales);
    set_old_coordinates(node, scales);
    return GRT_OK;
}

static const op_attr resize_attrs[] = {{"antialias", GRT_ATTR_INT, false},
                                       {"axes", GRT_ATTR_INTS, false},
                                       {"coordinate_transformation_mode", GRT_ATTR_STRING, false},
                                       {"cubic_coeff_a", GRT_ATTR_FLOAT, false},
                                       {"exclude_outside", GRT_ATTR_INT, false},
                                       {"extrapolation_value", GRT_ATTR_FLOAT, false},
                                       {"keep_aspect_ratio_policy", GRT_ATTR_STRING, false},
                                       {"mode", GRT_ATTR_STRING, false},
                                       {"nearest_mode", GRT_ATTR_STRING, false},
                                       {0}};
static const op_attr upsample_attrs[] = {{"mode", GRT_ATTR_STRING, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Resize",
     .since = 19,
     .min_in = 1,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = resize_attrs,
     .precision = OP_FOLLOWS_FIRST,
     .layout = OP_LAYOUT_RESIZE,
     .infer = infer_resize,
     .upgrade = upgrade_resize},
    {.domain = "",
     .name = "Upsample",
     .since = 10,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = upsample_attrs,
     .upgrade = upgrade_upsample},
};
OP_TABLE(resize, rows);

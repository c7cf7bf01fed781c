/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of 2017 that were experimental in ai.onnx and never became standard, in files of old converters.
 */
#include "graph/ops/foreign.h"

static const op_attr affine_attrs[] = {
    {"alpha", GRT_ATTR_FLOAT, false}, {"beta", GRT_ATTR_FLOAT, false}, {0}};
static const op_attr scaler_attrs[] = {
    {"bias", GRT_ATTR_FLOATS, false}, {"scale", GRT_ATTR_FLOAT, false}, {0}};
static const op_attr crop_attrs[] = {{"border", GRT_ATTR_INTS, true}, {"scale", GRT_ATTR_INTS, false}, {0}};

static grt_status old_image_need_dtype(const ir_node *node, grt_dtype *out)
{
    GRT_TRY(foreign_need(node, 0, "the input"));
    *out = ir_in(node, 0)->type.dtype;
    return *out ? GRT_OK : foreign_unsupported(node, "the dtype of input 0 must be known to the compiler");
}

/* first(a * second(b * x)), where NULL is no function */
static grt_status old_image_scaled(ir_node *node, const char *function, float outer, float inner, float shift)
{
    grt_dtype dtype;
    GRT_TRY(old_image_need_dtype(node, &dtype));
    ir_value *y = put2(node, "Mul", ir_in(node, 0), put_scalar(node, dtype, (double)inner));
    if (function)
        y = put2(node, "Mul", put1(node, function, y), put_scalar(node, dtype, (double)outer));
    if (shift != 0)
        y = put2(node, "Add", y, put_scalar(node, dtype, (double)shift));
    return foreign_done1(node, y);
}

static float alpha_of(const ir_node *node)
{
    return grt_attr_float(&node->desc, "alpha", 1);
}

static grt_status rewrite_affine(ir_node *node)
{
    return old_image_scaled(node, NULL, 1, alpha_of(node), grt_attr_float(&node->desc, "beta", 0));
}

static grt_status rewrite_scaled_tanh(ir_node *node)
{
    return old_image_scaled(node, "Tanh", alpha_of(node), grt_attr_float(&node->desc, "beta", 1), 0);
}

static grt_status rewrite_parametric_softplus(ir_node *node)
{
    return old_image_scaled(node, "Softplus", alpha_of(node), grt_attr_float(&node->desc, "beta", 1), 0);
}

/* x * scale, and a bias per channel */
static grt_status rewrite_scaler(ir_node *node)
{
    size_t n;
    const float *bias = grt_attr_floats(&node->desc, "bias", &n);
    grt_dtype dtype;
    GRT_TRY(old_image_need_dtype(node, &dtype));
    ir_value *y = put2(node, "Mul", ir_in(node, 0),
                       put_scalar(node, dtype, (double)grt_attr_float(&node->desc, "scale", 1)));
    if (n) {
        const grt_tensor t = {
            .dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {(int64_t)n, 1, 1}, .data = (void *)(uintptr_t)bias};
        const grt_tensor *kept = grt_arena_memdup(node->graph->module->arena, &t, sizeof t);
        y = put2(node, "Add", y, put_cast(node, kept ? ir_constant(node->graph, NULL, kept) : NULL, dtype));
    }
    return foreign_done1(node, y);
}

/* border: left, top, right, bottom; scale: height and width of what is kept, from the left and top border on
 */
static grt_status old_image_rewrite_crop(ir_node *node)
{
    static const int64_t spatial[] = {2, 3};
    size_t n, n_scale;
    const int64_t *border = grt_attr_ints(&node->desc, "border", &n),
                  *scale = grt_attr_ints(&node->desc, "scale", &n_scale);
    if (n != 4 || border[0] < 0 || border[1] < 0 || border[2] < 0 || border[3] < 0 ||
        (n_scale && n_scale != 2))
        return foreign_invalid(node, "border must be four numbers that are not negative, scale none or two");
    const int64_t from[] = {border[1], border[0]};
    int64_t to[] = {border[3] ? -border[3] : INT64_MAX, border[2] ? -border[2] : INT64_MAX};
    for (int i = 0; i < 2 && n_scale; i++)
        if (scale[i] < 1 || from[i] > INT64_MAX - scale[i])
            return foreign_invalid(node, "scale is %lld x %lld; it must be positive", (long long)scale[0],
                                   (long long)scale[1]);
        else
            to[i] = from[i] + scale[i];
    ir_value *in[] = {ir_in(node, 0), put_ints(node, from, 2), put_ints(node, to, 2),
                      put_ints(node, spatial, 2)};
    return foreign_done1(node, put(node, "Slice", 4, in));
}

static const op_row rows[] = {
    FOREIGN("", "Affine", 1, 1, 1, 1, affine_attrs, rewrite_affine),
    FOREIGN("", "ScaledTanh", 1, 1, 1, 1, affine_attrs, rewrite_scaled_tanh),
    FOREIGN("", "ParametricSoftplus", 1, 1, 1, 1, affine_attrs, rewrite_parametric_softplus),
    FOREIGN("", "ImageScaler", 1, 1, 1, 1, scaler_attrs, rewrite_scaler),
    FOREIGN("", "Crop", 1, 1, 1, 1, crop_attrs, old_image_rewrite_crop),
};
OP_TABLE(old_image, rows);

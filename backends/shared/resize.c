/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/resize.h"

#include "src/base/element.h"

#include <string.h>

static int resize_choose(const grt_op_desc *desc, const char *attr, const char *const *names, int n)
{
    const char *value = grt_attr_string(desc, attr, names[0]);
    for (int k = 0; k < n; k++)
        if (!strcmp(value, names[k]))
            return k;
    return 0;
}

void grt_resize_read(const grt_op_desc *desc, grt_resize *resize)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const ways[] = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                       "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                       "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const char *const aspects[] = {"stretch", "not_larger", "not_smaller"};
    size_t n;
    const int64_t *axes = grt_attr_ints(desc, "axes", &n);
    *resize = (grt_resize){
        .mode = (grt_resize_mode)resize_choose(desc, "mode", modes, 3),
        .coordinates = (grt_resize_coordinates)resize_choose(desc, "coordinate_transformation_mode", ways, 7),
        .rounding = (grt_resize_rounding)resize_choose(desc, "nearest_mode", roundings, 4),
        .aspect = (grt_resize_aspect)resize_choose(desc, "keep_aspect_ratio_policy", aspects, 3),
        .antialias = grt_attr_int(desc, "antialias", 0) != 0,
        .exclude_outside = grt_attr_int(desc, "exclude_outside", 0) != 0,
        .cubic_a = (double)grt_attr_float(desc, "cubic_coeff_a", -0.75f),
        .outside = (double)grt_attr_float(desc, "extrapolation_value", 0),
        .n_axes = axes ? (int32_t)n : -1,
    };
    for (size_t k = 0; axes && k < n && k < GRT_MAX_RANK; k++)
        resize->axes[k] = axes[k];
}

bool grt_resize_supports(const grt_kernel_node *node, grt_text *why)
{
    bool nearest = !strcmp(grt_attr_string(node->desc, "mode", "nearest"), "nearest");
    if (nearest || grt_dtype_in(node->in[0].dtype, GRT_SET_NUMBERS))
        return true;
    if (why)
        grt_text_add(why, "linear and cubic are for numbers, not %s", grt_dtype_name(node->in[0].dtype));
    return false;
}

static const grt_tensor *shared_resize_given(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in && in[i] && grt_tensor_elements(in[i]) > 0 ? in[i] : NULL;
}

grt_status grt_resize_plan(const grt_resize *s, const grt_op_desc *desc, const grt_tensor *const *in,
                           int32_t n_in, const grt_tensor *out, grt_resize_axis *axes)
{
    const grt_tensor *x = in[0], *roi = shared_resize_given(in, n_in, 1),
                     *scales = shared_resize_given(in, n_in, 2), *sizes = shared_resize_given(in, n_in, 3);
    const grt_tensor *list = scales ? scales : sizes;
    const bool crops = s->coordinates == GRT_RESIZE_CROP;
    const int32_t n = s->n_axes < 0 ? x->rank : s->n_axes;
    double common = s->aspect == GRT_RESIZE_NOT_LARGER ? (double)INFINITY : 0;
    if (n && (!list || grt_tensor_elements(list) != n))
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT, "scales or sizes must be a list of %d entries",
                           n);
    if (crops && (!roi || grt_tensor_elements(roi) != 2 * n))
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT, "tf_crop_and_resize needs a roi of %d entries",
                           2 * n);
    if ((n && !list->data) || (crops && !roi->data))
        return grt_fail_op(desc, GRT_STATUS_UNSUPPORTED,
                           "inputs roi, scales and sizes must be known before the run");
    for (int32_t k = 0; k < x->rank; k++)
        axes[k] = (grt_resize_axis){x->dims[k], out->dims[k], 1, 0, 1, false};
    for (int32_t k = 0; k < n; k++) {
        grt_resize_axis *p = &axes[grt_axis(s->n_axes < 0 ? k : s->axes[k], x->rank)];
        p->scale = scales ? grt_element_get(scales, k) : grt_element_get(sizes, k) / (double)p->in;
        if (crops) {
            p->roi_start = grt_element_get(roi, k);
            p->roi_end = grt_element_get(roi, n + k);
        }
        common = s->aspect == GRT_RESIZE_NOT_LARGER ? fmin(common, p->scale) : fmax(common, p->scale);
        p->active = true;
    }
    for (int32_t k = 0; k < x->rank; k++) {
        grt_resize_axis *p = &axes[k];
        if (p->active && sizes && !scales && s->aspect != GRT_RESIZE_STRETCH)
            p->scale = common;
        if (p->out > 0 && (p->in == 0 || !(p->scale > 0x1p-40)))
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axis %d of size %lld cannot be scaled by %g", k, (long long)p->in, p->scale);
        p->active = p->active && !(p->scale == 1 && p->in == p->out && p->roi_start == 0 && p->roi_end == 1);
    }
    return GRT_OK;
}

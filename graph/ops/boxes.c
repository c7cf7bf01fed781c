/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes in images: Col2Im, RoiAlign, NonMaxSuppression. */
#include "graph/ops/moves.h"

#include <string.h>

/* `wanted`: entries for one axis; n_image: -1 where the number of axes is not known. */
static grt_status check_fold_list(const infer *inf, const char *name, int64_t n_image, int64_t wanted,
                                  int64_t least)
{
    size_t n;
    const int64_t *list = grt_attr_ints(inf->desc, name, &n);
    if (list && n_image >= 0 && n != (size_t)(n_image * wanted))
        return infer_fail(inf, "attribute %s has %zu entries, expected %lld", name, n,
                          (long long)(n_image * wanted));
    for (size_t k = 0; list && k < n; k++)
        if (list[k] < least || list[k] > INT32_MAX)
            return infer_fail(inf, "attribute %s[%zu] is %lld; it must be in [%lld, %d]", name, k,
                              (long long)list[k], (long long)least, INT32_MAX);
    return GRT_OK;
}

static grt_status infer_col2im(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *image, *block;
    int64_t n_image, n_block;
    int32_t length;
    bool known_image = infer_elems(inf, 1, &image, &n_image),
         known_block = infer_elems(inf, 2, &block, &n_block);
    if (data->rank >= 0 && data->rank != 3)
        return infer_fail(inf, "the input must have rank 3, found rank %d", data->rank);
    GRT_TRY(check_fold_list(inf, "dilations", known_image ? n_image : -1, 1, 1));
    GRT_TRY(check_fold_list(inf, "strides", known_image ? n_image : -1, 1, 1));
    GRT_TRY(check_fold_list(inf, "pads", known_image ? n_image : -1, 2, -INT32_MAX));
    if (data->rank < 0 || !known_image || !known_block) {
        if (known_image)
            infer_set_fresh(inf, 0, data->dtype, (int32_t)n_image + 2);
        else if (moves_length(inf, 1, &length) && length + 2 <= GRT_MAX_RANK)
            infer_set_fresh(inf, 0, data->dtype, length + 2);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (n_image != n_block || n_image < 1)
        return infer_fail(inf, "image_shape has %lld entries and block_shape %lld", (long long)n_image,
                          (long long)n_block);
    GRT_TRY(moves_check_rank(inf, n_image + 2));
    grt_dim *dims = infer_dims(inf, (int32_t)n_image + 2);
    if (!dims)
        return GRT_OK;
    grt_dim volume = infer_product(inf, block, 0, (int32_t)n_block);
    int64_t rows, v;
    if (infer_const(inf, data->dims[1], &rows) && infer_const(inf, volume, &v) && (v <= 0 || rows % v))
        return infer_fail(inf,
                          "dim 1 of the input is %lld, which is no multiple of the block's %lld elements",
                          (long long)rows, (long long)v);
    dims[0] = data->dims[0];
    dims[1] = grt_dim_divide_exact(inf->dims, data->dims[1], volume);
    for (int64_t k = 0; k < n_image; k++) {
        if (infer_const(inf, image[k], &v) && v < 0)
            return infer_fail(inf, "image_shape[%lld] is %lld; expected a size", (long long)k, (long long)v);
        dims[k + 2] = image[k];
    }
    infer_set(inf, 0, data->dtype, (int32_t)n_image + 2, dims);
    return GRT_OK;
}

static grt_status infer_roi_align(infer *inf)
{
    const ir_type *data = inf->in[0], *rois = inf->in[1];
    int64_t height = grt_attr_int(inf->desc, "output_height", 1),
            width = grt_attr_int(inf->desc, "output_width", 1);
    const char *mode = grt_attr_string(inf->desc, "mode", "avg");
    if (strcmp(mode, "avg") && strcmp(mode, "max"))
        return infer_fail(inf, "attribute mode is '%s'; expected avg or max", mode);
    if (height < 1 || width < 1)
        return infer_fail(inf, "output_height is %lld and output_width %lld; they must be positive",
                          (long long)height, (long long)width);
    if ((data->rank >= 0 && data->rank != 4) || (rois->rank >= 0 && rois->rank != 2))
        return infer_fail(inf, "X must have rank 4 and rois rank 2, found ranks %d and %d", data->rank,
                          rois->rank);
    grt_dim *dims = infer_dims(inf, 4);
    if (!dims)
        return GRT_OK;
    dims[0] = rois->rank == 2 ? rois->dims[0] : grt_dim_fresh(inf->dims);
    dims[1] = data->rank == 4 ? data->dims[1] : grt_dim_fresh(inf->dims);
    dims[2] = grt_dim_const(inf->dims, height);
    dims[3] = grt_dim_const(inf->dims, width);
    infer_set(inf, 0, data->dtype, 4, dims);
    return GRT_OK;
}

/* Before 16 coordinates were not shifted by half a pixel. */
static grt_status upgrade_roi_align(ir_node *node, int32_t opset)
{
    if (opset < 16)
        ir_attr_set_string(node, "coordinate_transformation_mode", "output_half_pixel");
    return GRT_OK;
}

static grt_status infer_nms(infer *inf)
{
    for (int32_t i = 0; i < 2; i++)
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != 3)
            return infer_fail(inf, "boxes and scores must have rank 3, input %d has rank %d", i,
                              inf->in[i]->rank);
    grt_dim *dims = infer_dims(inf, 2);
    if (dims) {
        dims[0] = grt_dim_fresh(inf->dims);
        dims[1] = grt_dim_const(inf->dims, 3);
    }
    infer_set(inf, 0, GRT_DTYPE_INT64, 2, dims);
    return GRT_OK;
}

static const op_attr col2im_attrs[] = {{"dilations", GRT_ATTR_INTS, false},
                                       {"pads", GRT_ATTR_INTS, false},
                                       {"strides", GRT_ATTR_INTS, false},
                                       {0}};

static const op_attr roi_attrs[] = {{"coordinate_transformation_mode", GRT_ATTR_STRING, false},
                                    {"mode", GRT_ATTR_STRING, false},
                                    {"output_height", GRT_ATTR_INT, false},
                                    {"output_width", GRT_ATTR_INT, false},
                                    {"sampling_ratio", GRT_ATTR_INT, false},
                                    {"spatial_scale", GRT_ATTR_FLOAT, false},
                                    {0}};

static const op_attr nms_attrs[] = {{"center_point_box", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Col2Im",
     .since = 18,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = col2im_attrs,
     .precision = OP_WIDE,
     .infer = infer_col2im},
    {.domain = "",
     .name = "RoiAlign",
     .since = 22,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = roi_attrs,
     .precision = OP_WIDE,
     .infer = infer_roi_align,
     .upgrade = upgrade_roi_align},
    {.domain = "",
     .name = "NonMaxSuppression",
     .since = 11,
     .min_in = 2,
     .max_in = 5,
     .min_out = 1,
     .max_out = 1,
     .attrs = nms_attrs,
     .precision = OP_WIDE,
     .infer = infer_nms},
};
OP_TABLE(boxes, rows);

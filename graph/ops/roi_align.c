/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign. */
#include "graph/ir/ir.h"

#include <string.h>

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

static const op_attr roi_attrs[] = {{"coordinate_transformation_mode", GRT_ATTR_STRING, false},
                                    {"mode", GRT_ATTR_STRING, false},
                                    {"output_height", GRT_ATTR_INT, false},
                                    {"output_width", GRT_ATTR_INT, false},
                                    {"sampling_ratio", GRT_ATTR_INT, false},
                                    {"spatial_scale", GRT_ATTR_FLOAT, false},
                                    {0}};

static const op_row rows[] = {
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
};
OP_TABLE(roi_align, rows);

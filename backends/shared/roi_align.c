/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/roi_align.h"

#include <string.h>

grt_roi_align grt_roi_align_read(const grt_op_desc *desc)
{
    const char *where = grt_attr_string(desc, "coordinate_transformation_mode", "half_pixel");
    return (grt_roi_align){
        .max = !strcmp(grt_attr_string(desc, "mode", "avg"), "max"),
        .shifted = !strcmp(where, "half_pixel"),
        .ratio = grt_attr_int(desc, "sampling_ratio", 0),
        .scale = (double)grt_attr_float(desc, "spatial_scale", 1),
    };
}

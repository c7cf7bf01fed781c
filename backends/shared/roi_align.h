/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of RoiAlign. */
#ifndef GRT_BACKENDS_SHARED_ROI_ALIGN_H
#define GRT_BACKENDS_SHARED_ROI_ALIGN_H

#include "src/base/op_desc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_roi_align {
    bool max, shifted; /* shifted: by half a pixel */
    int64_t ratio;
    double scale;
} grt_roi_align;

grt_roi_align grt_roi_align_read(const grt_op_desc *desc);

#ifdef __cplusplus
}
#endif
#endif

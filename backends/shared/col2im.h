/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im over concrete sizes: the window that slides over an image, and the columns that it makes. */
#ifndef GRT_BACKENDS_SHARED_COL2IM_H
#define GRT_BACKENDS_SHARED_COL2IM_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_col2im {
    int64_t dilations[GRT_MAX_RANK], strides[GRT_MAX_RANK], pads[2 * GRT_MAX_RANK];
    int32_t spatial;
    int64_t kernel[GRT_MAX_RANK], steps[GRT_MAX_RANK]; /* the window's size and its positions in each dim */
    int64_t taps, places;                              /* their products */
} grt_col2im;

void grt_col2im_read_attributes(const grt_op_desc *desc, grt_col2im *c);
/* Kernel and positions from the input block_shape, in host memory, and from the image. Errors:
 * INVALID_ARGUMENT if `in` has not as many rows and columns as these ask for. */
grt_status grt_col2im_fit(const grt_op_desc *desc, const grt_tensor *in, const grt_tensor *block,
                          const grt_tensor *out, grt_col2im *c);

#ifdef __cplusplus
}
#endif
#endif

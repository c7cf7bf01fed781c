/* SPDX-License-Identifier: Apache-2.0 */
/* MeanVarianceNormalization: the axes that are walked. */
#ifndef GRT_BACKENDS_SHARED_MVN_H
#define GRT_BACKENDS_SHARED_MVN_H

#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Some of a tensor's axes, walked as one flat index (grt_strided_offset). */
typedef struct grt_axes_walk {
    int32_t rank;
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK], total;
} grt_axes_walk;

/* MeanVarianceNormalization: the axes that share a mean and a variance, and the others. */
typedef struct grt_mvn {
    grt_axes_walk kept, over;
} grt_mvn;

/* For kernel rows: the shape is a grt_mvn, released with free. */
grt_status grt_mvn_reshape(grt_reshape *reshape);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Resize of planes: up to two neighbouring axes, each result from a neighbourhood of fixed size. */
#ifndef GRT_BACKENDS_CUDA_RESIZE_PLANES_H
#define GRT_BACKENDS_CUDA_RESIZE_PLANES_H

#include "backends/cuda/cuda.h"
#include "backends/shared/resize.h"

/* [outer, rows, columns, inner], of which rows and columns are resized. */
struct cuda_resize_planes {
    grt_resize resize;
    grt_dtype dtype;
    int64_t outer, inner;
    grt_resize_axis rows, columns; /* of one row if only one axis is resized */
};

/* False if these axes are not such planes: the general kernel takes them. */
bool cuda_resize_planes_plan(cuda_resize_planes *p, const grt_resize *resize, const grt_tensor *in,
                             const grt_resize_axis *axes);
/* Nothing is done with an empty result. */
void cuda_resize_planes_run(const cuda_resize_planes *p, const void *x, void *y, cudaStream_t stream);

#endif

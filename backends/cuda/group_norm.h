/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of groups of channels over many blocks: moments of shares of a group, joined, applied, with
 * an activation. */
#ifndef GRT_BACKENDS_CUDA_GROUP_NORM_H
#define GRT_BACKENDS_CUDA_GROUP_NORM_H

#include "backends/cuda/cuda.h"
#include "src/base/activation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_group_norm {
    bool last; /* channels last */
    int64_t batch, groups, per_group, pixels;
    float epsilon;
    int scale_dtype, bias_dtype;
    grt_act act;    /* of the result */
    int64_t shares; /* of a group's elements or, with channels last, of an image's pixels; set by
                       cuda_group_norm_plan */
} cuda_group_norm;

/* False if type or sizes are not for these kernels, or so small that a block a group serves them better. */
bool cuda_group_norm_plan(cuda_group_norm *g, grt_dtype dtype, int multiprocessors);
size_t cuda_group_norm_workspace(const cuda_group_norm *g);
/* False, and nothing is enqueued, if x or y is not aligned to 16 bytes. */
bool cuda_group_norm_run(const cuda_group_norm *g, grt_dtype dtype, const void *x, const void *scale,
                         const void *bias, void *y, void *workspace, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif

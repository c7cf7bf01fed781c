/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped convolutions with many taps, channels last, on tensor cores: what cuDNN has for them is slow. */
#ifndef GRT_BACKENDS_CUDA_GROUPED_TAPS_H
#define GRT_BACKENDS_CUDA_GROUPED_TAPS_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_grouped_taps {
    grt_dtype dtype;                            /* FLOAT16, BFLOAT16, or FLOAT to be multiplied as TF32 */
    int64_t batch, groups, in_group, out_group; /* channels of a group */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    int64_t splits; /* of the sums; more than 1: joined by a second kernel. Set by cuda_grouped_taps_plan */
} cuda_grouped_taps;

/* False if this kernel is not for it, or cuDNN better. */
bool cuda_grouped_taps_plan(cuda_grouped_taps *g, int multiprocessors);
size_t cuda_grouped_taps_workspace(const cuda_grouped_taps *g);
/* w: [groups * out_group, window, in_group]. y is the bare sum. False, and nothing is enqueued, if a pointer
 * is not aligned to 16 bytes. */
bool cuda_grouped_taps_run(const cuda_grouped_taps *g, const void *x, const void *w, void *y, void *workspace,
                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped convolutions with small windows and 24, 40, 48 or 56 channels a group, channels last, on tensor
 * cores: RegNet's. Vendors' engines take two to four times as long; not so for powers of two. */
#ifndef GRT_BACKENDS_CUDA_GROUPED_WINDOWS_H
#define GRT_BACKENDS_CUDA_GROUPED_WINDOWS_H

#include "backends/cuda/epilogue.h"

/* y = act(conv(x, w) + bias + residual), as many channels out as in. */
struct cuda_grouped_windows {
    grt_dtype dtype;              /* FLOAT16, BFLOAT16, or FLOAT to be multiplied as TF32; sums are float32 */
    int64_t batch, groups, group; /* group: channels of one */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    grt_act act;
    /* Set by cuda_grouped_windows_plan: channels and halves (of 8 x 8 pixels) of a block. */
    int block_channels, halves;
};

/* False if this kernel is not for it. */
bool cuda_grouped_windows_plan(cuda_grouped_windows *c, int multiprocessors);
/* w: [groups * group, window, group]; bias and residual may be NULL. False, and nothing is enqueued, if a
 * pointer is not aligned to 16 bytes. */
bool cuda_grouped_windows_run(const cuda_grouped_windows *c, const void *x, const void *w, const void *bias,
                              const void *residual, void *y, cudaStream_t stream);

#endif

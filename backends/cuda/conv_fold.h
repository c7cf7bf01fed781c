/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of volumes with channels last that are convolutions of planes: windows of one plane, and
 * windows along depth alone. */
#ifndef GRT_BACKENDS_CUDA_CONV_FOLD_H
#define GRT_BACKENDS_CUDA_CONV_FOLD_H

#include "src/base/checked.h"

enum { CUDA_CONV_DIMS = 3 };

/* Depth, height, width; leading ones of size 1. */
typedef struct cuda_conv_windows {
    int64_t in[CUDA_CONV_DIMS], out[CUDA_CONV_DIMS], kernel[CUDA_CONV_DIMS], stride[CUDA_CONV_DIMS],
        dilation[CUDA_CONV_DIMS], begin[CUDA_CONV_DIMS];
} cuda_conv_windows;

/* True if a result has what it reads at its own place along dim d. */
static inline bool cuda_conv_stays(const cuda_conv_windows *c, int d)
{
    return c->kernel[d] == 1 && c->stride[d] == 1 && c->begin[d] == 0 && c->in[d] == c->out[d];
}

static inline bool cuda_conv_is_plane(const cuda_conv_windows *c)
{
    return c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 && c->begin[0] == 0;
}

/* Planes of a volume become images of the batch, or lines of a plane one line. */
static inline void cuda_conv_fold(cuda_conv_windows *c, int64_t *batch)
{
    int64_t images, line;
    if (cuda_conv_stays(c, 0) && grt_mul_i64(*batch, c->in[0], &images)) {
        *batch = images;
        c->in[0] = c->out[0] = 1;
    } else if (cuda_conv_stays(c, 1) && cuda_conv_stays(c, 2) && grt_mul_i64(c->in[1], c->in[2], &line)) {
        c->in[2] = c->out[2] = line;
        int64_t *const all[] = {c->in, c->out, c->kernel, c->stride, c->dilation, c->begin};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            all[i][1] = all[i][0];
            all[i][0] = 1;
        }
        c->begin[0] = 0;
    }
}

#endif

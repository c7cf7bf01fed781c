/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of vision transformers: windows that tile the image become channels by a copy, and the convolution
 * a product. */
#ifndef GRT_BACKENDS_CUDA_CONV_PATCHES_H
#define GRT_BACKENDS_CUDA_CONV_PATCHES_H

#include <stdbool.h>
#include <stdint.h>

enum { CUDA_PATCH_CHANNELS = 32 /* at most */ };

/* Of n spatial dims; a convolution of one group with channels last. */
static inline bool cuda_conv_tiles(int n, int64_t channels, const int64_t *in, const int64_t *out,
                                   const int64_t *kernel, const int64_t *stride, const int64_t *dilation,
                                   const int64_t *begin)
{
    int64_t taps = 1;
    for (int d = 0; d < n; d++) {
        if (out[d] <= 0 || stride[d] != kernel[d] || begin[d] != 0 || in[d] != out[d] * kernel[d] ||
            (kernel[d] > 1 && dilation[d] != 1))
            return false;
        taps *= kernel[d];
    }
    return taps > 1 && channels <= CUDA_PATCH_CHANNELS;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* 1 x 1 convolutions with channels last and an activation that vendors' engines do not apply, or with
 * channels that are no multiples of 8: in one pass, where a pass behind theirs would read and write the
 * result again. Few channels in, so that memory is the limit. */
#ifndef GRT_BACKENDS_CUDA_PIXEL_PRODUCT_H
#define GRT_BACKENDS_CUDA_PIXEL_PRODUCT_H

#include "backends/cuda/epilogue.h"

/* y = act(x w' + bias): x is [pixels, channels], w [out_channels, channels]. */
struct cuda_pixel_product {
    grt_dtype dtype; /* FLOAT16 or BFLOAT16; sums are float32 */
    int64_t pixels, channels, out_channels;
    grt_act act;
    int multiprocessors;
};

/* Channels are multiples of 8, so that they are read and written by 16 bytes; otherwise by 4. */
bool cuda_pixel_product_is_whole(const cuda_pixel_product *p);
/* Channels must be even; if they are not whole vectors, there must be enough pixels to fill the GPU. */
bool cuda_pixel_product_fits(const cuda_pixel_product *p);
/* bias may be NULL. False, with nothing done, if a pointer is not aligned to 16 bytes. */
bool cuda_pixel_product_run(const cuda_pixel_product *p, const void *x, const void *w, const void *bias,
                            void *y, cudaStream_t stream);

#endif

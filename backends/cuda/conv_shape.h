/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution on the GPU: what its node says, its sizes at one combination of dims, and who computes it.
 * Some kernel of ours (conv_own.cu), a library (conv_library.cu), or the plain kernel of ops/conv.cu. */
#ifndef GRT_BACKENDS_CUDA_CONV_SHAPE_H
#define GRT_BACKENDS_CUDA_CONV_SHAPE_H

#include "backends/cuda/conv_fold.h"
#include "backends/cuda/conv_products.h"
#include "backends/cuda/conv_weights.h"
#include "backends/cuda/copy.h"
#include "backends/cuda/depthwise.h"
#include "backends/cuda/depthwise_volume.h"
#include "backends/cuda/dnn_conv.h"
#include "backends/cuda/few_channels.h"
#include "backends/cuda/few_pixels.h"
#include "backends/cuda/gemm_node.h"
#include "backends/cuda/grouped_taps.h"
#include "backends/cuda/grouped_windows.h"
#include "backends/cuda/pixel_product.h"
#include "backends/shared/conv.h"

/* Inputs, and spatial dims. */
enum { BIAS = GRT_CONV_BIAS, RESIDUAL = GRT_CONV_RESIDUAL, SPATIAL = CUDA_DNN_SPATIAL };

typedef struct cuda_conv_state {
    bool last, transposed;
    bool tf32;
    bool computed; /* weights are no constant */
    int64_t groups;
    grt_act act;
    cuda_conv_weights weights;
} cuda_conv_state;

/* Three spatial dims always, leading ones of size 1. */
typedef struct cuda_conv_geometry : cuda_conv_windows {
    bool last, transposed;
    bool turned;                                         /* weights have channels last */
    int64_t batch, in_channels, out_channels, groups, n; /* n: results */
} cuda_conv_geometry;

typedef struct cuda_conv_shape {
    cuda_conv_geometry g;
    bool is_depthwise; /* by our own kernel */
    cuda_depthwise depthwise;
    bool is_volume; /* that of three spatial dims */
    cuda_depthwise_volume volume;
    bool is_few; /* few input channels: by our own kernel, too */
    cuda_few_channels few;
    bool is_grouped; /* with many taps: by our own kernel, too */
    cuda_grouped_taps grouped;
    bool is_windows; /* with small windows: by our own kernel, too */
    cuda_grouped_windows windows;
    bool is_few_pixels, is_product; /* 1 x 1, by our own kernels */
    cuda_few_pixels few_pixels;
    cuda_pixel_product product;
    bool is_gemm; /* 16-bit numbers and TF32 on Hopper: by our own kernel, too */
    cuda_gemm_conv gemm;
    cuda_conv_products products; /* of computed filters; products.plan is NULL: not so */
    cuda_dnn_plan *plan;         /* NULL: plain kernel */
    bool patches;  /* windows that tile the image: a copy makes them pixels of a 1 x 1 convolution */
    cuda_copy cut; /* that copy */
    bool bias, residual, act; /* what the plan includes */
    bool copy;                /* the input is padded into the workspace */
    int64_t padded[SPATIAL], n_padded;
    size_t copy_bytes;
} cuda_conv_shape;

/* True if one of our kernels takes it, which s then says. */
bool cuda_conv_find_own(const grt_reshape *r, cuda_conv_shape *s);
/* Plans s by a library, if one takes it. */
grt_status cuda_conv_plan_by_library(const grt_reshape *r, cuda_conv_shape *s);

/* Windows that tile the image, which a copy makes pixels of a 1 x 1 convolution; and that copy. */
bool cuda_conv_is_patches(const cuda_conv_geometry *g);
void cuda_conv_plan_cut(cuda_conv_shape *s, grt_dtype dtype);

/* The last two spatial dims, which are all of a plane. */
template <class C> static void cuda_conv_copy_plane(const cuda_conv_geometry *g, C *to)
{
    for (int k = 0; k < 2; k++) {
        to->in[k] = g->in[k + 1];
        to->out[k] = g->out[k + 1];
        to->kernel[k] = g->kernel[k + 1];
        to->stride[k] = g->stride[k + 1];
        to->dilation[k] = g->dilation[k + 1];
        to->begin[k] = g->begin[k + 1];
    }
}

#endif

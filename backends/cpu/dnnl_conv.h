/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as the shim over oneDNN takes it. */
#ifndef GRT_BACKENDS_CPU_DNNL_CONV_H
#define GRT_BACKENDS_CPU_DNNL_CONV_H

#include "backends/cpu/act.h"
#include "backends/cpu/dnnl_filter.h"

#define GRT_DNNL_MAX_POST 4

typedef enum grt_dnnl_layout { GRT_DNNL_CHANNELS_FIRST, GRT_DNNL_CHANNELS_LAST } grt_dnnl_layout;

typedef enum grt_dnnl_post_kind {
    GRT_DNNL_POST_ACT,
    GRT_DNNL_POST_SUM, /* adds what dst held before the run: the residual lives in dst's memory */
    GRT_DNNL_POST_ADD /* adds a tensor of dst's shape and layout, passed to run as `residual`; once at most */
} grt_dnnl_post_kind;

typedef struct grt_dnnl_post {
    grt_dnnl_post_kind kind;
    grt_act act;
} grt_dnnl_post;

/* Convolution, or with `transposed` its transpose. Weights as in ONNX: [M, C/groups, k...]; transposed [C,
 * M/groups, k...]. */
typedef struct grt_dnnl_conv {
    int spatial; /* 1 to 3 */
    bool transposed, bias;
    grt_dnnl_layout src_layout, dst_layout;
    int64_t batch, groups, in_channels, out_channels;
    int64_t in[GRT_DNNL_MAX_SPATIAL], out[GRT_DNNL_MAX_SPATIAL], kernel[GRT_DNNL_MAX_SPATIAL];
    int64_t stride[GRT_DNNL_MAX_SPATIAL], dilation[GRT_DNNL_MAX_SPATIAL]; /* dilation 1: none */
    int64_t pad_begin[GRT_DNNL_MAX_SPATIAL], pad_end[GRT_DNNL_MAX_SPATIAL];
    int post_count;
    grt_dnnl_post post[GRT_DNNL_MAX_POST];
} grt_dnnl_conv;

#endif

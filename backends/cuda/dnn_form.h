/* SPDX-License-Identifier: Apache-2.0 */
/* What a convolution is to cuDNN. */
#ifndef GRT_BACKENDS_CUDA_DNN_FORM_H
#define GRT_BACKENDS_CUDA_DNN_FORM_H

#include "src/base/tensor.h"

enum { CUDA_DNN_SPATIAL = 3 };

/* y = relu?(conv(x, w) + residual? + bias?). transposed: x is the gradient that a convolution from y to x
 * would get; the window is that convolution's. Padding is the same on both sides. */
typedef struct cuda_dnn_conv {
    grt_dtype dtype; /* FLOAT, FLOAT16 or BFLOAT16, of everything; sums are float32 */
    int32_t spatial; /* 2 or 3 */
    bool last;       /* channels last; then w is laid out out-channel, window, in-channel */
    bool transposed, bias, residual, relu;
    bool tf32;    /* float32 may be multiplied as TF32 */
    bool compile; /* engines compiled at run time may be used too */
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[CUDA_DNN_SPATIAL], out[CUDA_DNN_SPATIAL], kernel[CUDA_DNN_SPATIAL];
    int64_t stride[CUDA_DNN_SPATIAL], dilation[CUDA_DNN_SPATIAL], padding[CUDA_DNN_SPATIAL];
    size_t workspace_cap;
} cuda_dnn_conv;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes gemm.h takes: of 16-bit numbers and float32. One rule says so
 * when libraries are expected, when kernels are created and when they are planned. */
#ifndef GRT_BACKENDS_CUDA_GEMM_NODE_H
#define GRT_BACKENDS_CUDA_GEMM_NODE_H

#include "backends/cuda/gemm.h"
#include "backends/cuda/window_rows.h"
#include "backends/shared/matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True for a device that has such kernels. */
bool cuda_gemm_on(const struct cudaDeviceProp *prop);

/* All dims are concrete; `multiprocessors` of such a device. False: another kernel takes it. An activation
 * that out does not name is left to a pass. */
bool cuda_gemm_of_matmul(const grt_reshape *r, const grt_matmul *m, int multiprocessors, cuda_gemm *out);
/* Of a convolution with channels last and weights that are constant. */
typedef struct cuda_gemm_conv {
    cuda_gemm product;
    bool cuts;             /* windows tile the image (conv_patches.h): a copy makes rows of them */
    bool gathers;          /* channels are no whole vectors: windows become rows */
    cuda_window_rows rows; /* then */
} cuda_gemm_conv;

bool cuda_gemm_of_conv(const grt_reshape *r, int multiprocessors, cuda_gemm_conv *out);
/* Of the rows of such a convolution's weights, if windows become rows; else 0. */
int64_t cuda_gemm_row_length(const grt_tensor *w);

/* True for 16-bit numbers and float32. */
bool cuda_gemm_has_type(grt_dtype dtype);

/* True for a MatMul, Gemm or convolution that will be taken on such a device. */
bool cuda_gemm_takes(const grt_kernel_node *node);

#ifdef __cplusplus
}
#endif
#endif

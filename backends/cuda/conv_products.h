/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of one image in many groups whose filters are computed in the run, as where each picture of a
 * batch has filters of its own: windows unfolded into columns, then a product for each group. Channels first.
 */
#ifndef GRT_BACKENDS_CUDA_CONV_PRODUCTS_H
#define GRT_BACKENDS_CUDA_CONV_PRODUCTS_H

#include "backends/cuda/lt_matmul.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_conv_products {
    grt_dtype dtype;
    bool tf32, transposed;
    int64_t groups, in_group, out_group; /* channels of a group */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
    /* Set by cuda_conv_products_plan. */
    int64_t together; /* groups of a call */
    cuda_lt_plan *plan;
} cuda_conv_products;

/* True if it gains by it. */
bool cuda_conv_products_fits(const cuda_conv_products *c);
/* plan stays NULL if cuBLASLt has no algorithm for it. */
grt_status cuda_conv_products_plan(cuda_device *device, const grt_op_desc *desc, grt_algo_trial *trial,
                                   cuda_conv_products *c);
size_t cuda_conv_products_workspace(const cuda_conv_products *c);
/* workspace: aligned to CUDA_LT_WORKSPACE_ALIGNMENT. */
grt_status cuda_conv_products_run(const cuda_conv_products *c, const grt_op_desc *desc, const void *x,
                                  const void *w, void *y, void *workspace, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Products of e4m3fn matrices by wgmma with everything that follows in the epilogue, for compute capability
 * 9.0. */
#ifndef GRT_BACKENDS_CUDA_FLOAT8_BULK_H
#define GRT_BACKENDS_CUDA_FLOAT8_BULK_H

#include "backends/cuda/float8_product.h"
#include "backends/cuda/tensor_map.h"

/* The finish's sums are not used. x: [rows, k], w: [columns, k]. Addresses of matrices are multiples of 16.
 */
typedef struct cuda_float8_bulk {
    const uint8_t *x, *w;
    int64_t k; /* a multiple of 16 */
    cuda_float8_finish finish;
    int multiprocessors;
    bool is_constant; /* scales and bias are not made by a kernel in front of the product */
    cuda_tensor_map_encoder encode;
} cuda_float8_bulk;

/* True for sizes, types and epilogues that it has; addresses are not looked at. `encode` NULL: the device is
 * another. */
bool cuda_float8_bulk_fits(const cuda_float8_bulk *b);
grt_status cuda_float8_bulk_enqueue(const cuda_float8_bulk *b, cudaStream_t stream);

#endif

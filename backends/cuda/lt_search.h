/* SPDX-License-Identifier: Apache-2.0 */
/* All that cuBLASLt has for one product, beyond what its heuristic answers: for tuning. */
#ifndef GRT_BACKENDS_CUDA_LT_SEARCH_H
#define GRT_BACKENDS_CUDA_LT_SEARCH_H

#include "backends/cuda/libraries.h"

/* The library's descriptors of the product; they belong to the caller. */
typedef struct cuda_lt_product {
    const cuda_blas *blas;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t first, second, result;
    cublasComputeType_t compute;
    cudaDataType scale, type;
    size_t workspace_cap;
} cuda_lt_product;

/* Does the library take this algorithm for the product, on this device, within the workspace? Then what it
 * wants of that. */
bool cuda_lt_takes(const cuda_lt_product *product, const cublasLtMatmulAlgo_t *algo, size_t *out_workspace);

/* Algorithms that the library takes, until `each` returns false: the given ones' relatives first, then every
 * kind of algorithm in every size of tile. The same may come twice. */
void cuda_lt_search(const cuda_lt_product *product, const cublasLtMatmulHeuristicResult_t *seeds, int n_seeds,
                    bool (*each)(void *user, const cublasLtMatmulAlgo_t *algo), void *user);

#endif

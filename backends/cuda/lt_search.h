/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of cuBLASLt for one product, beyond its heuristic's answers: for tuning. */
#ifndef GRT_BACKENDS_CUDA_LT_SEARCH_H
#define GRT_BACKENDS_CUDA_LT_SEARCH_H

#include "backends/cuda/libraries.h"

/* The library's descriptors of the product; they belong to the caller. */
typedef struct cuda_lt_product {
    const cuda_blas *blas;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t first, second, result;
    cublasComputeType_t compute;
    cudaDataType scale, first_type, second_type, type; /* type: of the result */
    size_t workspace_cap;
} cuda_lt_product;

/* True if the library accepts this algorithm for the product, device and workspace; then the workspace it
 * needs. */
bool cuda_lt_takes(const cuda_lt_product *product, const cublasLtMatmulAlgo_t *algo, size_t *out_workspace);

/* Enumerates accepted algorithms until `each` returns false: variations of the given ones, then every kind of
 * algorithm with every tile size. Duplicates are possible. */
void cuda_lt_search(const cuda_lt_product *product, const cublasLtMatmulHeuristicResult_t *seeds, int n_seeds,
                    bool (*each)(void *user, const cublasLtMatmulAlgo_t *algo), void *user);

#endif

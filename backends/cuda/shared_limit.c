/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/shared_limit.h"

cudaError_t cuda_allow_shared(const void *kernel)
{
    struct cudaFuncAttributes has;
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&has, kernel);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     most - (int)has.sharedSizeBytes);
    return error;
}

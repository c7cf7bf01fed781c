/* SPDX-License-Identifier: Apache-2.0 */
/* Small kernels whose callers do not know the device: they begin early where it can (overlap.cuh). */
#ifndef GRT_BACKENDS_CUDA_OVERLAP_DEVICE_CUH
#define GRT_BACKENDS_CUDA_OVERLAP_DEVICE_CUH

#include "backends/cuda/overlap.cuh"

/* Of the current device. */
static inline bool overlap_is_possible()
{
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           major >= 9;
}

#endif

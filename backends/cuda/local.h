/* SPDX-License-Identifier: Apache-2.0 */
/* Per-context state of the backend, created on first use: a cuDNN handle and a record of faults in data. One
 * run at a time uses it. */
#ifndef GRT_BACKENDS_CUDA_LOCAL_H
#define GRT_BACKENDS_CUDA_LOCAL_H

#include "backends/cuda/libraries.h"
#include "backends/cuda/watch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_local {
    cuda_libraries *libraries;
    cudnnHandle_t dnn; /* NULL before the first convolution */
    cuda_fault *fault; /* page-locked, written by kernels; NULL before the first that may */
} cuda_local;

/* The run's context's; *out_local is NULL for a run without a context. */
grt_status cuda_local_get(const grt_run *run, cuda_local **out_local);

/* Entries of the device's table. */
grt_status cuda_local_check(grt_device *device, void *local);
void cuda_local_release(grt_device *device, void *local);

#ifdef __cplusplus
}
#endif
#endif

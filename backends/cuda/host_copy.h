/* SPDX-License-Identifier: Apache-2.0 */
/* Small copies between page-locked memory of the host and the device as part of a graph: by a kernel, which
 * starts sooner behind another one than a copy engine does. Kernels have the priority of their stream; a copy
 * engine serves all streams in turn, so that a small copy waits there for a neighbour's large ones. */
#ifndef GRT_BACKENDS_CUDA_HOST_COPY_H
#define GRT_BACKENDS_CUDA_HOST_COPY_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if the stream is being captured and kernels can reach `host`, where they are the better choice. */
bool cuda_host_copy_fits(const void *host, size_t bytes, cudaStream_t stream);
cudaError_t cuda_host_copy(void *dst, const void *src, size_t bytes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif

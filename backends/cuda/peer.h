/* SPDX-License-Identifier: Apache-2.0 */
/* What uploads to several GPUs at once need: fences across devices, copies between devices, page-locked host
 * memory. */
#ifndef GRT_BACKENDS_CUDA_PEER_H
#define GRT_BACKENDS_CUDA_PEER_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

grt_status cuda_fence_create(grt_device *device, void **out_fence);
void cuda_fence_release(grt_device *device, void *fence);
grt_status cuda_fence_record(grt_device *device, void *fence, void *stream);
grt_status cuda_fence_wait(grt_device *device, void *fence);
grt_status cuda_stream_wait_fence(grt_device *device, void *stream, void *fence);
bool cuda_peer_can(grt_device *device, grt_device *from);
grt_status cuda_peer_enable(grt_device *device, grt_device *from);
grt_status cuda_peer_copy(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                          void *stream);
grt_status cuda_pin(grt_device *device, void *data, size_t bytes);
void cuda_unpin(grt_device *device, void *data);

#ifdef __cplusplus
}
#endif
#endif

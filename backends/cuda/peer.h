/* SPDX-License-Identifier: Apache-2.0 */
/* What uploads to several GPUs at once need: fences across devices, copies between devices, page-locked host
 * memory. */
#ifndef GRT_BACKENDS_CUDA_PEER_H
#define GRT_BACKENDS_CUDA_PEER_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const grt_fence_api cuda_fences;
extern const grt_peer_api cuda_peers;
grt_status cuda_pin(grt_device *device, void *data, size_t bytes);
void cuda_unpin(grt_device *device, void *data);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Fences across GPUs, and copies between them. */
#include "backends/cuda/current.h"
#include "backends/cuda/tables.h"

static grt_status fence_create(grt_device *device, void **out_fence)
{
    cudaEvent_t event;
    CUDA_ON(device, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    *out_fence = event;
    return GRT_OK;
}

static void fence_release(grt_device *device, void *fence)
{
    CUDA_ON_QUIETLY(device, cudaEventDestroy(fence));
}

static grt_status fence_record(grt_device *device, void *fence, void *stream)
{
    CUDA_ON(device, cudaEventRecord(fence, stream));
    return GRT_OK;
}

static grt_status fence_wait(grt_device *device, void *fence)
{
    CUDA_ON(device, cudaEventSynchronize(fence));
    return GRT_OK;
}

static grt_status stream_wait_fence(grt_device *device, void *stream, void *fence)
{
    CUDA_ON(device, cudaStreamWaitEvent(stream, fence, 0));
    return GRT_OK;
}

const grt_fence_api cuda_fences = {.create = fence_create,
                                   .release = fence_release,
                                   .record = fence_record,
                                   .wait = fence_wait,
                                   .stream_wait = stream_wait_fence};

static bool peer_can(grt_device *device, grt_device *from)
{
    int can = 0;
    return device->index != from->index &&
           cudaDeviceCanAccessPeer(&can, device->index, from->index) == cudaSuccess && can;
}

static cudaError_t enable(int from)
{
    const cudaError_t error = cudaDeviceEnablePeerAccess(from, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled)
        return error;
    cudaGetLastError(); /* somebody else did it: not an error to be found later */
    return cudaSuccess;
}

/* About 3 ms for a pair: uploads enable those that they use. */
static grt_status peer_enable(grt_device *device, grt_device *from)
{
    CUDA_ON(device, enable(from->index));
    return GRT_OK;
}

static grt_status peer_copy(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                            void *stream)
{
    CUDA_ON(device, cudaMemcpyPeerAsync(dst, device->index, src, from->index, bytes, stream));
    return GRT_OK;
}

const grt_peer_api cuda_peers = {.can = peer_can, .enable = peer_enable, .copy = peer_copy};

/* See peer.h. */
#include "backends/cuda/peer.h"

grt_status cuda_fence_create(grt_device *device, void **out_fence)
{
    cudaEvent_t event;
    CUDA_TRY(cudaSetDevice(device->index));
    CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    *out_fence = event;
    return GRT_OK;
}

void cuda_fence_release(grt_device *device, void *fence)
{
    if (cudaSetDevice(device->index) == cudaSuccess)
        cudaEventDestroy(fence);
}

grt_status cuda_fence_record(grt_device *device, void *fence, void *stream)
{
    CUDA_TRY(cudaSetDevice(device->index));
    CUDA_TRY(cudaEventRecord(fence, stream));
    return GRT_OK;
}

grt_status cuda_fence_wait(grt_device *device, void *fence)
{
    CUDA_TRY(cudaSetDevice(device->index));
    CUDA_TRY(cudaEventSynchronize(fence));
    return GRT_OK;
}

grt_status cuda_stream_wait_fence(grt_device *device, void *stream, void *fence)
{
    CUDA_TRY(cudaSetDevice(device->index));
    CUDA_TRY(cudaStreamWaitEvent(stream, fence, 0));
    return GRT_OK;
}

bool cuda_peer_can(grt_device *device, grt_device *from)
{
    int can = 0;
    return device->index != from->index &&
           cudaDeviceCanAccessPeer(&can, device->index, from->index) == cudaSuccess && can;
}

/* About 3 ms for a pair: uploads enable those that they use. */
grt_status cuda_peer_enable(grt_device *device, grt_device *from)
{
    CUDA_TRY(cudaSetDevice(device->index));
    const cudaError_t error = cudaDeviceEnablePeerAccess(from->index, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError(); /* somebody else did it: not an error to be found later */
        return GRT_OK;
    }
    CUDA_TRY(error);
    return GRT_OK;
}

grt_status cuda_peer_copy(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                          void *stream)
{
    CUDA_TRY(cudaSetDevice(device->index));
    CUDA_TRY(cudaMemcpyPeerAsync(dst, device->index, src, from->index, bytes, stream));
    return GRT_OK;
}

grt_status cuda_pin(grt_device *device, void *data, size_t bytes)
{
    CUDA_TRY(cudaSetDevice(device->index));
    CUDA_TRY(cudaHostRegister(data, bytes, cudaHostRegisterPortable));
    return GRT_OK;
}

void cuda_unpin(grt_device *device, void *data)
{
    if (cudaSetDevice(device->index) == cudaSuccess)
        cudaHostUnregister(data);
}

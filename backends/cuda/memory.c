/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU, copies, and page-locked memory of the host. */
#include "backends/cuda/current.h"
#include "backends/cuda/host_copy.h"
#include "backends/cuda/tables.h"

static grt_status alloc_here(grt_device *device, size_t bytes, void **out_data)
{
    void *data = NULL;
    cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, total = 0;
        cudaGetLastError(); /* not sticky: the process stays usable */
        cudaMemGetInfo(&free_bytes, &total);
        return grt_fail(GRT_STATUS_OUT_OF_MEMORY,
                        "cuda:%d is out of memory: %zu bytes wanted, %zu of %zu free", device->index, bytes,
                        free_bytes, total);
    }
    CUDA_TRY(error);
    *out_data = data;
    return GRT_OK;
}

/* Memory of a device; OUT_OF_MEMORY says how much is free. cudaFree gives it back. */
static grt_status cuda_alloc(grt_device *device, size_t bytes, void **out_data)
{
    bool switched;
    GRT_TRY(cuda_enter(device, &switched));
    const grt_status status = alloc_here(device, bytes, out_data);
    cuda_leave(device, switched);
    return status;
}

grt_status cuda_upload_now(grt_device *device, void *dst, const void *src, size_t bytes)
{
    const cudaStream_t stream = ((cuda_device *)device)->stream;
    CUDA_ON(device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream));
    CUDA_ON(device, cudaStreamSynchronize(stream));
    return GRT_OK;
}

grt_status cuda_keep(const grt_kernel_node *node, const void *host, size_t bytes, void **out_data)
{
    const grt_status status = grt_account_take(node->account, GRT_ACCOUNT_KERNELS, bytes);
    if (status != GRT_OK)
        return grt_fail_op(node->desc, status, "%s", grt_last_error());
    GRT_TRY(cuda_alloc(node->device, bytes, out_data));
    return host && bytes ? cuda_upload_now(node->device, *out_data, host, bytes) : GRT_OK;
}

static void free_memory(grt_device *device, void *data)
{
    CUDA_ON_QUIETLY(device, cudaFree(data));
}

static cudaError_t cuda_memory_copy_host(void *dst, const void *src, const void *host, size_t bytes,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return cuda_host_copy_fits(host, bytes, stream) ? cuda_host_copy(dst, src, bytes, stream)
                                                    : cudaMemcpyAsync(dst, src, bytes, kind, stream);
}

static grt_status cuda_memory_upload(grt_device *device, void *dst, const void *src, size_t bytes,
                                     void *stream)
{
    CUDA_ON(device, cuda_memory_copy_host(dst, src, src, bytes, cudaMemcpyHostToDevice, stream));
    return GRT_OK;
}

static grt_status download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    CUDA_ON(device, cuda_memory_copy_host(dst, src, dst, bytes, cudaMemcpyDeviceToHost, stream));
    return GRT_OK;
}

static grt_status cuda_memory_copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    CUDA_ON(device, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream));
    return GRT_OK;
}

static grt_status alloc_pinned(grt_device *device, size_t bytes, void **out_data)
{
    CUDA_ON(device, cudaHostAlloc(out_data, bytes, cudaHostAllocPortable));
    return GRT_OK;
}

static void free_pinned(grt_device *device, void *data)
{
    CUDA_ON_QUIETLY(device, cudaFreeHost(data));
}

static grt_status pin(grt_device *device, void *data, size_t bytes)
{
    CUDA_ON(device, cudaHostRegister(data, bytes, cudaHostRegisterPortable));
    return GRT_OK;
}

static void unpin(grt_device *device, void *data)
{
    CUDA_ON_QUIETLY(device, cudaHostUnregister(data));
}

static grt_status check_pointer(grt_device *device, const void *data)
{
    struct cudaPointerAttributes found;
    CUDA_ON(device, cudaPointerGetAttributes(&found, data));
    if (found.type == cudaMemoryTypeManaged ||
        (found.type == cudaMemoryTypeDevice && found.device == device->index))
        return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%p is %s; memory of cuda:%d is wanted", data,
                    found.type == cudaMemoryTypeDevice ? "memory of another device"
                    : found.type == cudaMemoryTypeHost ? "pinned host memory"
                                                       : "host memory that CUDA does not know",
                    device->index);
}

static grt_status in_use(grt_device *device, size_t *out_bytes)
{
    size_t free_bytes = 0, total = 0;
    CUDA_ON(device, cudaMemGetInfo(&free_bytes, &total));
    *out_bytes = total - free_bytes;
    return GRT_OK;
}

const grt_memory_api cuda_memory = {
    .alloc = cuda_alloc, .free = free_memory, .check = check_pointer, .in_use = in_use};
const grt_copy_api cuda_copies = {
    .upload = cuda_memory_upload, .download = download, .copy = cuda_memory_copy};
const grt_pinned_api cuda_pinned = {.alloc = alloc_pinned, .free = free_pinned, .pin = pin, .unpin = unpin};

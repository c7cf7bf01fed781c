/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/host_copy.h"

#include "backends/cuda/overlap.cuh"

namespace
{

/* As much as a graph of a run and its copies has (src/exec/round_trip.c). */
enum { THREADS = 256, MOST_BYTES = 1 << 20 };

template <class T>
__global__ void __launch_bounds__(THREADS) cuda_host_copy_copy_host(T *dst, const T *src, unsigned n)
{
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    overlap_let_next_begin();
    overlap_wait();
    if (i < n)
        dst[i] = src[i];
}

template <class T>
cudaError_t cuda_host_copy_launch(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    const unsigned n = (unsigned)(bytes / sizeof(T));
    int device = 0, major = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess)
        return cudaGetLastError();
    return overlap_launch(major >= 9, cuda_host_copy_copy_host<T>, dim3((n + THREADS - 1) / THREADS),
                          dim3(THREADS), 0, stream, (T *)dst, (const T *)src, n);
}

} // namespace

bool cuda_host_copy_fits(const void *host, size_t bytes, cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaPointerAttributes found;
    if (bytes == 0 || bytes > MOST_BYTES)
        return false;
    const bool fits = cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
                      status == cudaStreamCaptureStatusActive &&
                      cudaPointerGetAttributes(&found, host) == cudaSuccess &&
                      found.type == cudaMemoryTypeHost && found.devicePointer == host;
    (void)cudaGetLastError();
    return fits;
}

cudaError_t cuda_host_copy(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    const size_t all = (uintptr_t)dst | (uintptr_t)src | bytes;
    return all % 16 == 0  ? cuda_host_copy_launch<uint4>(dst, src, bytes, stream)
           : all % 4 == 0 ? cuda_host_copy_launch<unsigned>(dst, src, bytes, stream)
                          : cuda_host_copy_launch<unsigned char>(dst, src, bytes, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One thread per item, for kernels that are rarely hot: elements of any dtype as double, functions as
 * lambdas. Hot ops have typed kernels. */
#ifndef GRT_BACKENDS_CUDA_EACH_CUH
#define GRT_BACKENDS_CUDA_EACH_CUH

#include "backends/cuda/walk.h"
#include "src/base/element.h"
#include "src/base/tensor.h"

/* A tensor's elements in device code; copied into kernels by value. */
struct cuda_any {
    void *data;
    grt_dtype dtype;

    __device__ __forceinline__ double get(int64_t i) const
    {
        return grt_element_load(dtype, data, i);
    }
    __device__ __forceinline__ void put(int64_t i, double v) const
    {
        grt_element_store(dtype, data, i, v);
    }
    __device__ __forceinline__ int64_t whole(int64_t i) const
    {
        return dtype == GRT_DTYPE_INT64   ? ((const int64_t *)data)[i]
               : dtype == GRT_DTYPE_INT32 ? ((const int32_t *)data)[i]
                                          : (int64_t)get(i);
    }
    __host__ __device__ explicit operator bool() const
    {
        return data != nullptr;
    }
};

static inline cuda_any cuda_any_of(const grt_tensor *t)
{
    return t ? cuda_any{t->data, t->dtype} : cuda_any{nullptr, GRT_DTYPE_FLOAT};
}
static inline cuda_any cuda_any_in(const grt_run *r, int32_t i)
{
    return cuda_any_of(i < r->n_in ? r->in[i] : NULL);
}
static inline cuda_any cuda_any_out(const grt_run *r, int32_t i)
{
    return cuda_any_of(i < r->n_out ? r->out[i] : NULL);
}

/* Dims and the like for device code. */
struct cuda_dims {
    int32_t rank;
    int64_t d[GRT_MAX_RANK];

    __host__ __device__ int64_t &operator[](int32_t i)
    {
        return d[i];
    }
    __host__ __device__ const int64_t &operator[](int32_t i) const
    {
        return d[i];
    }
};

static inline cuda_dims cuda_dims_of(const grt_tensor *t, int32_t from = 0)
{
    cuda_dims dims = {};
    for (int32_t i = from; i < t->rank; i++)
        dims.d[dims.rank++] = t->dims[i];
    return dims;
}

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK) cuda_each_kernel(int64_t n, const __grid_constant__ F f)
{
    CUDA_ITEMS (i, n)
        f(i);
}

/* f(i) for every i below n. */
template <typename F> static grt_status cuda_each(const grt_run *r, int64_t n, const F &f)
{
    if (n <= 0)
        return GRT_OK;
    cuda_each_kernel<F><<<cuda_grid(n), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, f);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* f(i, thread, threads) for every i below n, by a block each: the threads share one item's work. */
template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK) cuda_each_block_kernel(int64_t n, const __grid_constant__ F f)
{
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        f(i, (int)threadIdx.x, (int)blockDim.x);
        __syncthreads();
    }
}
template <typename F> static grt_status cuda_each_block(const grt_run *r, int64_t n, const F &f)
{
    if (n <= 0)
        return GRT_OK;
    cuda_each_block_kernel<F><<<(unsigned)(n < 65536 ? n : 65536), CUDA_BLOCK, 0, cuda_stream(r)>>>(n, f);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* A sum over the threads of a block, for all of them. */
static __device__ inline double cuda_block_sum(double v)
{
    __shared__ double part[32];
    __syncthreads();
    for (int step = 16; step; step >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (unsigned k = 0; k < blockDim.x / 32; k++)
        v += part[k];
    return v;
}
/* What dynamic kernels read back. */
template <typename T> static grt_status cuda_read(const grt_run *r, const void *device, T *out, int64_t n = 1)
{
    CUDA_TRY(cudaMemcpyAsync(out, device, sizeof(T) * (size_t)n, cudaMemcpyDeviceToHost, cuda_stream(r)));
    CUDA_TRY(cudaStreamSynchronize(cuda_stream(r)));
    return GRT_OK;
}

#endif

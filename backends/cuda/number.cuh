/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, conversions and reductions of our own kernels. Arithmetic is float32, or double for double.
 */
#ifndef GRT_BACKENDS_CUDA_NUMBER_CUH
#define GRT_BACKENDS_CUDA_NUMBER_CUH

#include "backends/cuda/cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T> struct cuda_wide {
    using type = float;
};
template <> struct cuda_wide<double> {
    using type = double;
};

template <class T> __device__ __forceinline__ typename cuda_wide<T>::type cuda_widen(T v)
{
    return v;
}
template <> __device__ __forceinline__ float cuda_widen<__half>(__half v)
{
    return __half2float(v);
}
template <> __device__ __forceinline__ float cuda_widen<__nv_bfloat16>(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}

template <class T, class W> __device__ __forceinline__ T cuda_narrow(W v)
{
    return (T)v;
}
template <> __device__ __forceinline__ __half cuda_narrow<__half, float>(float v)
{
    return __float2half_rn(v);
}
template <> __device__ __forceinline__ __half cuda_narrow<__half, double>(double v)
{
    return __double2half(v);
}
template <> __device__ __forceinline__ __nv_bfloat16 cuda_narrow<__nv_bfloat16, float>(float v)
{
    return __float2bfloat16_rn(v);
}
template <> __device__ __forceinline__ __nv_bfloat16 cuda_narrow<__nv_bfloat16, double>(double v)
{
    return __double2bfloat16(v);
}

/* 16 bytes of elements, moved at once. */
template <class T> struct alignas(16) cuda_vector {
    enum { N = 16 / sizeof(T) };
    T v[N];
};

static inline bool cuda_is_vector(const void *data)
{
    return ((uintptr_t)data & 15) == 0;
}

/* Element i of a floating-point tensor whose type is known at run time only. */
template <class W> __device__ __forceinline__ W cuda_load(const void *data, int dtype, int64_t i)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return (W)__half2float(((const __half *)data)[i]);
    case GRT_DTYPE_BFLOAT16:
        return (W)__bfloat162float(((const __nv_bfloat16 *)data)[i]);
    case GRT_DTYPE_DOUBLE:
        return (W)((const double *)data)[i];
    default:
        return (W)((const float *)data)[i];
    }
}

template <class W> __device__ __forceinline__ void cuda_store(void *data, int dtype, int64_t i, W v)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        ((__half *)data)[i] = cuda_narrow<__half, W>(v);
        break;
    case GRT_DTYPE_BFLOAT16:
        ((__nv_bfloat16 *)data)[i] = cuda_narrow<__nv_bfloat16, W>(v);
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)data)[i] = (double)v;
        break;
    default:
        ((float *)data)[i] = (float)v;
    }
}

/* Run the statements with T the C++ type of a floating-point dtype. */
#define CUDA_FOR_FLOATS(dtype, T, ...) \
    switch (dtype) {                   \
    case GRT_DTYPE_FLOAT: {            \
        using T = float;               \
        __VA_ARGS__;                   \
    } break;                           \
    case GRT_DTYPE_DOUBLE: {           \
        using T = double;              \
        __VA_ARGS__;                   \
    } break;                           \
    case GRT_DTYPE_FLOAT16: {          \
        using T = __half;              \
        __VA_ARGS__;                   \
    } break;                           \
    case GRT_DTYPE_BFLOAT16: {         \
        using T = __nv_bfloat16;       \
        __VA_ARGS__;                   \
    } break;                           \
    default:                           \
        break;                         \
    }

/* Return f<T>(r), T the C++ type of a dtype of numbers; that of bool is uint8_t. */
#define CUDA_RETURN_BY_NUMBER(dtype, f, r) \
    switch (dtype) {                       \
    case GRT_DTYPE_FLOAT:                  \
        return f<float>(r);                \
    case GRT_DTYPE_DOUBLE:                 \
        return f<double>(r);               \
    case GRT_DTYPE_FLOAT16:                \
        return f<__half>(r);               \
    case GRT_DTYPE_BFLOAT16:               \
        return f<__nv_bfloat16>(r);        \
    case GRT_DTYPE_INT8:                   \
        return f<int8_t>(r);               \
    case GRT_DTYPE_INT16:                  \
        return f<int16_t>(r);              \
    case GRT_DTYPE_INT32:                  \
        return f<int32_t>(r);              \
    case GRT_DTYPE_INT64:                  \
        return f<int64_t>(r);              \
    case GRT_DTYPE_UINT16:                 \
        return f<uint16_t>(r);             \
    case GRT_DTYPE_UINT32:                 \
        return f<uint32_t>(r);             \
    case GRT_DTYPE_UINT64:                 \
        return f<uint64_t>(r);             \
    default:                               \
        return f<uint8_t>(r);              \
    }

/* Blocks of a grid-stride loop over n > 0 elements. */
static inline unsigned cuda_blocks(int64_t n, int64_t per_block)
{
    const int64_t most = (int64_t)1 << 20, blocks = (n + per_block - 1) / per_block;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

#define CUDA_EACH(i, n)                                                       \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
         i += (int64_t)gridDim.x * blockDim.x)

struct cuda_sum {
    template <class W> static __device__ __forceinline__ W join(W a, W b)
    {
        return a + b;
    }
};
/* NaN wins. */
struct cuda_top {
    template <class W> static __device__ __forceinline__ W join(W a, W b)
    {
        return a > b || a != a ? a : b;
    }
};

template <class Op, class W> __device__ __forceinline__ W cuda_warp_reduce(W v)
{
    for (int step = 16; step > 0; step >>= 1)
        v = Op::join(v, __shfl_xor_sync(0xffffffffu, v, step));
    return v;
}

/* Over the THREADS (a multiple of 32) threads of one row; every thread gets the result. More than a warp: the
 * whole block. */
template <int THREADS, class Op, class W> __device__ __forceinline__ W cuda_row_reduce(W v, W neutral)
{
    v = cuda_warp_reduce<Op, W>(v);
    if (THREADS == 32)
        return v;
    __shared__ W part[32];
    __syncthreads(); /* the previous reduction may still read the array */
    if ((threadIdx.x & 31) == 0)
        part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = (threadIdx.x & 31) < THREADS / 32 ? part[threadIdx.x & 31] : neutral;
    return cuda_warp_reduce<Op, W>(v);
}

#endif

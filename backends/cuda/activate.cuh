/* SPDX-License-Identifier: Apache-2.0 */
/* The activations of epilogues on the device. */
#ifndef GRT_BACKENDS_CUDA_ACTIVATE_CUH
#define GRT_BACKENDS_CUDA_ACTIVATE_CUH

#include "backends/cuda/number.cuh"
#include "src/base/activation.h"

static __device__ __forceinline__ float cuda_exponential(float x)
{
    return expf(x);
}
static __device__ __forceinline__ double cuda_exponential(double x)
{
    return exp(x);
}

template <class W> __device__ __forceinline__ W cuda_bounded(W x, W low, W high)
{
    x = x < low ? low : x; /* NaN goes through */
    return x > high ? high : x;
}

template <class W> __device__ __forceinline__ W cuda_sigmoid(W x)
{
    return 1 / (1 + cuda_exponential(-x));
}

template <class W> __device__ __forceinline__ W cuda_activate(grt_act act, W x)
{
    const W a = act.a, b = act.b;
    switch (act.kind) {
    case GRT_ACT_RELU:
        return x < 0 ? (W)0 : x;
    case GRT_ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case GRT_ACT_CLIP:
        return cuda_bounded<W>(x, a, b);
    case GRT_ACT_ELU:
        return x < 0 ? a * (W)expm1((W)x) : x;
    case GRT_ACT_SIGMOID:
        return cuda_sigmoid<W>(x);
    case GRT_ACT_TANH:
        return tanh(x);
    case GRT_ACT_SILU:
        return x * cuda_sigmoid<W>(a * x);
    case GRT_ACT_GELU_ERF:
        return x * (W)normcdf((W)x);
    case GRT_ACT_GELU_TANH:
        return x * cuda_sigmoid<W>((W)1.5957691216057308 * (x + (W)0.044715 * x * x * x));
    case GRT_ACT_HARD_SIGMOID:
        return cuda_bounded<W>(a * x + b, 0, 1);
    case GRT_ACT_HARD_SWISH:
        return x * cuda_bounded<W>(x * (W)(1.0 / 6.0) + (W)0.5, 0, 1);
    case GRT_ACT_SOFTPLUS:
        return (x > 0 ? x : (W)0) + (W)log1p(cuda_exponential(x > 0 ? -x : x));
    default:
        return x;
    }
}

#endif

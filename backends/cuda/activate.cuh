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

/* For results of 16 bits: the hardware's exponential and quotient, whose errors these do not show. */
template <class T> __device__ __forceinline__ float cuda_sigmoid_of(float x)
{
    if constexpr (sizeof(T) == 2)
        return __fdividef(1.0f, 1.0f + __expf(-x));
    else
        return cuda_sigmoid<float>(x);
}

/* x * Phi(x). For results of 16 bits with Phi to 1e-7, by Abramowitz and Stegun's 7.1.26, whose factor keeps
 * what is left of large negative numbers. */
template <class T> __device__ __forceinline__ float cuda_gelu_of(float x)
{
    if constexpr (sizeof(T) == 2) {
        const float z = fabsf(x) * 0.70710678f, t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
        float p = 1.061405429f;
        p = fmaf(p, t, -1.453152027f);
        p = fmaf(p, t, 1.421413741f);
        p = fmaf(p, t, -0.284496736f);
        p = fmaf(p, t, 0.254829592f);
        const float tail = 0.5f * p * t * __expf(-z * z);
        return x * (x < 0 ? tail : 1.0f - tail);
    } else {
        return 0.5f * x * erfcf(-x * 0.70710678f);
    }
}

/* Called, so that the rare ones' code lies in one place. */
static __device__ __noinline__ float cuda_activate_rare(grt_act act, float x)
{
    return cuda_activate<float>(act, x);
}

/* All numbers of a thread, for results of type T. The kind is asked for once: a case for each number would be
 * code that every block meets for the first time. */
template <class T, int N> __device__ __forceinline__ void cuda_activate_all(grt_act act, float (&x)[N])
{
    switch (act.kind) {
    case GRT_ACT_NONE:
        break;
    case GRT_ACT_RELU:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = x[i] < 0 ? 0.0f : x[i];
        break;
    case GRT_ACT_CLIP:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = cuda_bounded<float>(x[i], act.a, act.b);
        break;
    case GRT_ACT_SILU:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] *= cuda_sigmoid_of<T>(act.a * x[i]);
        break;
    case GRT_ACT_GELU_ERF:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = cuda_gelu_of<T>(x[i]);
        break;
    case GRT_ACT_GELU_TANH:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] *= cuda_sigmoid_of<T>(1.5957691216057308f * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
        break;
    case GRT_ACT_HARD_SWISH:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] *= cuda_bounded<float>(x[i] * (1.0f / 6.0f) + 0.5f, 0, 1);
        break;
    default:
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = cuda_activate_rare(act, x[i]);
    }
}

#endif

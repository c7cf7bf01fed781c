/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of pointwise.def as device code: one switch for floating types, one for integers and bool.
 * Called with a constant opcode only that function remains. */
#ifndef GRT_BACKENDS_CUDA_POINTWISE_EVAL_H
#define GRT_BACKENDS_CUDA_POINTWISE_EVAL_H

#include "src/base/pointwise.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <climits>
#include <type_traits>

#include "backends/cuda/pointwise_language.h"

template <typename T> using pw_vocabulary = pw_vocabulary_of<T, std::is_floating_point<T>::value>;

/* Integers: sums and products wrap around; division by 0 gives 0. */
template <typename T> struct pw_vocabulary_of<T, false> {
    typedef double P;
    /* What no int64 holds becomes the lowest one, as on the CPU. */
    static __device__ __forceinline__ T from(P x)
    {
        return (T)(x >= -0x1p63 && x < 0x1p63 ? (long long)x : LLONG_MIN);
    }
    typedef typename std::conditional<sizeof(T) == 8, uint64_t, uint32_t>::type W;
    static __device__ __forceinline__ T add(T a, T b)
    {
        return (T)((W)a + (W)b);
    }
    static __device__ __forceinline__ T sub(T a, T b)
    {
        return (T)((W)a - (W)b);
    }
    static __device__ __forceinline__ T mul(T a, T b)
    {
        return (T)((W)a * (W)b);
    }
    static __device__ __forceinline__ T neg(T a)
    {
        return (T)((W)0 - (W)a);
    }
    static __device__ __forceinline__ bool negative(T a)
    {
        return std::is_signed<T>::value && a < T(0);
    }
    static __device__ __forceinline__ bool minus_one(T a)
    {
        return std::is_signed<T>::value && a == (T)-1;
    }
    static __device__ __forceinline__ T absolute(T a)
    {
        return negative(a) ? neg(a) : a;
    }
    static __device__ __forceinline__ T div(T a, T b)
    {
        return b == 0 ? T(0) : minus_one(b) ? neg(a) : (T)(a / b);
    }
    static __device__ __forceinline__ T fmod(T a, T b)
    {
        return b == 0 || minus_one(b) ? T(0) : (T)(a % b);
    }
    static __device__ __forceinline__ T mod(T a, T b)
    {
        T r = fmod(a, b);
        return r != 0 && negative(r) != negative(b) ? (T)(r + b) : r;
    }
    static __device__ __forceinline__ T clip(T a, T b, T c)
    {
        return a < b ? (b > c ? c : b) : (a > c ? c : a);
    }
    /* Shifts by a negative amount or by the width and more leave what sign extension leaves. */
    static __device__ __forceinline__ bool beyond(T b)
    {
        return negative(b) || (uint64_t)b >= 8 * sizeof(T);
    }
    static __device__ __forceinline__ T shift_left(T a, T b)
    {
        return beyond(b) ? T(0) : (T)((W)a << b);
    }
    static __device__ __forceinline__ T shift_right(T a, T b)
    {
        return beyond(b) ? (negative(a) ? (T)-1 : T(0)) : (T)(a >> b);
    }
};

#define PW_CASE(name, expr) \
    case PW_##name:         \
        return (T)(expr);
#define PW(name, since, arity, kind, n_params, s0, d0, s1, d1, expr) PW_CASE_##kind(name, expr)

#pragma nv_diagnostic push
#pragma nv_diag_suppress 186 /* expressions for all integers compare unsigned ones with 0 */

/* Floats. Truth is 1 and 0; a condition is whatever is not 0. */
#define PW_CASE_FLOAT   PW_CASE
#define PW_CASE_SIGNED  PW_CASE
#define PW_CASE_NUMBER  PW_CASE
#define PW_CASE_COMPARE PW_CASE
#define PW_CASE_EQUAL   PW_CASE
#define PW_CASE_TEST    PW_CASE
#define PW_CASE_LOGIC   PW_CASE
#define PW_CASE_SELECT  PW_CASE
#define PW_CASE_INT(name, expr)
template <typename T>
static __device__ __forceinline__ T pw_eval_float(int opcode, T a, T b, T c, typename pw_vocabulary<T>::P p0,
                                                  typename pw_vocabulary<T>::P p1)
{
    typedef typename pw_vocabulary<T>::P P;
    switch (opcode) {
#include "src/base/pointwise.def"
    default:
        return a;
    }
}
#undef PW_CASE_FLOAT
#undef PW_CASE_TEST
#undef PW_CASE_INT

/* Integers and bool. */
#define PW_CASE_FLOAT(name, expr)
#define PW_CASE_TEST(name, expr)
#define PW_CASE_INT PW_CASE
template <typename T>
static __device__ __forceinline__ T pw_eval_int(int opcode, T a, T b, T c, typename pw_vocabulary<T>::P p0,
                                                typename pw_vocabulary<T>::P p1)
{
    typedef typename pw_vocabulary<T>::P P;
    switch (opcode) {
#include "src/base/pointwise.def"
    default:
        return a;
    }
}

#pragma nv_diagnostic pop

#undef PW
#undef PW_CASE
#undef PW_CASE_FLOAT
#undef PW_CASE_SIGNED
#undef PW_CASE_NUMBER
#undef PW_CASE_COMPARE
#undef PW_CASE_EQUAL
#undef PW_CASE_TEST
#undef PW_CASE_LOGIC
#undef PW_CASE_SELECT
#undef PW_CASE_INT
#undef K
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef NEG
#undef m_negative
#undef m_from
#undef m_abs
#undef m_fmod
#undef m_mod
#undef m_clip
#undef m_sigmoid
#undef m_mish
#undef m_unit
#undef m_pow
#undef m_shift_left
#undef m_shift_right

template <typename T>
static __device__ __forceinline__ T pw_eval(int opcode, T a, T b, T c, typename pw_vocabulary<T>::P p0,
                                            typename pw_vocabulary<T>::P p1)
{
    if constexpr (std::is_floating_point<T>::value)
        return pw_eval_float<T>(opcode, a, b, c, p0, p1);
    else
        return pw_eval_int<T>(opcode, a, b, c, p0, p1);
}

/* One copy for all callers that know the opcode only at run time. */
template <typename T>
static __device__ __noinline__ T pw_eval_any(int opcode, T a, T b, T c, typename pw_vocabulary<T>::P p0,
                                             typename pw_vocabulary<T>::P p1)
{
    return pw_eval<T>(opcode, a, b, c, p0, p1);
}

/* ---- storage ----
 * 16-bit floats are computed in float32. */

template <typename S> struct pw_storage {
    typedef S T;
};
template <> struct pw_storage<__half> {
    typedef float T;
};
template <> struct pw_storage<__nv_bfloat16> {
    typedef float T;
};

template <typename S> static __device__ __forceinline__ typename pw_storage<S>::T pw_widen(S x)
{
    return x;
}
template <> __device__ __forceinline__ float pw_widen<__half>(__half x)
{
    return __half2float(x);
}
template <> __device__ __forceinline__ float pw_widen<__nv_bfloat16>(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
template <typename S> static __device__ __forceinline__ S pw_narrow(typename pw_storage<S>::T x)
{
    return x;
}
template <> __device__ __forceinline__ __half pw_narrow<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ __nv_bfloat16 pw_narrow<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

#endif

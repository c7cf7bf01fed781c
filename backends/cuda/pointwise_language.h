/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary of the expressions of pointwise.def as device code: m_* and ADD SUB MUL ... for floating types.
 * Includes no header: this file is also part of the source of generated kernels (pointwise_source.c), whose
 * compiler has none. */

#define PW_UNARY(name, f32, f64)                                \
    static __device__ __forceinline__ float m_##name(float x)   \
    {                                                           \
        return f32(x);                                          \
    }                                                           \
    static __device__ __forceinline__ double m_##name(double x) \
    {                                                           \
        return f64(x);                                          \
    }
PW_UNARY(sqrt, sqrtf, sqrt)
PW_UNARY(exp, expf, exp)
PW_UNARY(expm1, expm1f, expm1)
PW_UNARY(log, logf, log)
PW_UNARY(log1p, log1pf, log1p)
PW_UNARY(floor, floorf, floor)
PW_UNARY(ceil, ceilf, ceil)
PW_UNARY(rint, rintf, rint)
PW_UNARY(erf, erff, erf)
PW_UNARY(sin, sinf, sin)
PW_UNARY(cos, cosf, cos)
PW_UNARY(tan, tanf, tan)
PW_UNARY(asin, asinf, asin)
PW_UNARY(acos, acosf, acos)
PW_UNARY(atan, atanf, atan)
PW_UNARY(sinh, sinhf, sinh)
PW_UNARY(cosh, coshf, cosh)
PW_UNARY(asinh, asinhf, asinh)
PW_UNARY(acosh, acoshf, acosh)
PW_UNARY(atanh, atanhf, atanh)
PW_UNARY(tanh, tanhf, tanh)
PW_UNARY(abs, fabsf, fabs)
#undef PW_UNARY

static __device__ __forceinline__ float m_gelu(float x)
{
    return 0.5f * x * erfcf(-x * 0.707106781186547524f);
}
static __device__ __forceinline__ double m_gelu(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}
static __device__ __forceinline__ float m_power(float a, float b)
{
    return b == 2.0f ? a * a : b == 3.0f ? a * a * a : powf(a, b);
}
static __device__ __forceinline__ double m_power(double a, double b)
{
    return pow(a, b);
}
static __device__ __forceinline__ float m_remainder(float a, float b)
{
    return fmodf(a, b);
}
static __device__ __forceinline__ double m_remainder(double a, double b)
{
    return fmod(a, b);
}

template <typename T, bool FLOAT> struct pw_vocabulary_of;

template <typename T> struct pw_vocabulary_of<T, true> {
    typedef T P;
    static __device__ __forceinline__ T from(P x)
    {
        return x;
    }
    static __device__ __forceinline__ T add(T a, T b)
    {
        return a + b;
    }
    static __device__ __forceinline__ T sub(T a, T b)
    {
        return a - b;
    }
    static __device__ __forceinline__ T mul(T a, T b)
    {
        return a * b;
    }
    static __device__ __forceinline__ T div(T a, T b)
    {
        return a / b;
    }
    static __device__ __forceinline__ T neg(T a)
    {
        return -a;
    }
    static __device__ __forceinline__ bool negative(T a)
    {
        return a < T(0);
    }
    static __device__ __forceinline__ T absolute(T a)
    {
        return m_abs(a);
    }
    static __device__ __forceinline__ T fmod(T a, T b)
    {
        return m_remainder(a, b);
    }
    static __device__ __forceinline__ T mod(T a, T b)
    {
        T r = m_remainder(a, b);
        if (r == T(0))
            return copysign(T(0), b);
        return (r < T(0)) != (b < T(0)) ? r + b : r;
    }
    static __device__ __forceinline__ T clip(T x, T low, T high)
    {
        x = x < low ? low : x;
        return x > high ? high : x;
    }
    static __device__ __forceinline__ T sigmoid(T x)
    {
        return T(1) / (T(1) + m_exp(-x));
    }
    static __device__ __forceinline__ T mish(T x)
    {
        T w = m_exp(x < T(20) ? x : T(20)),
          n = w * (w + T(2)); /* from there on the fraction is 1 in float32 */
        return sizeof(T) == 8 && x >= T(20) ? x * m_tanh(x) : x * (n / (n + T(2)));
    }
};

/* pw_vocabulary<T> is the vocabulary of T; who includes this file says which it is. */
#define K(x)          ((T)(x))
#define ADD(a, b)     pw_vocabulary<T>::add(a, b)
#define SUB(a, b)     pw_vocabulary<T>::sub(a, b)
#define MUL(a, b)     pw_vocabulary<T>::mul(a, b)
#define DIV(a, b)     pw_vocabulary<T>::div(a, b)
#define NEG(a)        pw_vocabulary<T>::neg(a)
#define m_negative    pw_vocabulary<T>::negative
#define m_from        pw_vocabulary<T>::from
#define m_abs         pw_vocabulary<T>::absolute
#define m_fmod        pw_vocabulary<T>::fmod
#define m_mod         pw_vocabulary<T>::mod
#define m_clip        pw_vocabulary<T>::clip
#define m_sigmoid     pw_vocabulary<T>::sigmoid
#define m_mish        pw_vocabulary<T>::mish
#define m_unit(a)     pw_vocabulary<T>::clip(a, T(0), T(1))
#define m_pow         m_power
#define m_shift_left  pw_vocabulary<T>::shift_left
#define m_shift_right pw_vocabulary<T>::shift_right

/* SPDX-License-Identifier: Apache-2.0 */
/* The pointwise loops of every element type but float32: float64 through the C library's functions, integers
 * with wraparound, bool. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "backends/cpu/isa.h"
#include "backends/cpu/pointwise_loops.h"

#include <math.h>

#define R              uint8_t
#define PW_HAS_COMPARE 1
#define PW_HAS_EQUAL   1
#define PW_HAS_SELECT  0

static inline double clip_f64(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}
static inline double mod_f64(double a, double b)
{
    double r = fmod(a, b);
    if (r == 0.0)
        return copysign(0.0, b);
    return (r < 0.0) != (b < 0.0) ? r + b : r;
}
static inline double mish_f64(double x)
{
    double w = exp(x < 40.0 ? x : 40.0), n = w * (w + 2.0);
    return x * (n / (n + 2.0));
}
static inline double gelu_f64(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

#define T             double
#define P             double
#define K(x)          ((double)(x))
#define LOOP(name)    f64_##name
#define PW_HAS_FLOAT  1
#define PW_HAS_SIGNED 1
#define PW_HAS_NUMBER 1
#define PW_HAS_TEST   1
#define PW_HAS_LOGIC  0
#define PW_HAS_INT    0
#define ADD(a, b)     ((a) + (b))
#define SUB(a, b)     ((a) - (b))
#define MUL(a, b)     ((a) * (b))
#define DIV(a, b)     ((a) / (b))
#define NEG(a)        (-(a))
#define m_negative(a) ((a) < 0.0)
#define m_from(x)     (x)
#define m_abs         fabs
#define m_sqrt        sqrt
#define m_exp         exp
#define m_expm1       expm1
#define m_log         log
#define m_log1p       log1p
#define m_floor       floor
#define m_ceil        ceil
#define m_rint        rint
#define m_erf         erf
#define m_sin         sin
#define m_cos         cos
#define m_tan         tan
#define m_asin        asin
#define m_acos        acos
#define m_atan        atan
#define m_sinh        sinh
#define m_cosh        cosh
#define m_asinh       asinh
#define m_acosh       acosh
#define m_atanh       atanh
#define m_tanh        tanh
#define m_sigmoid(a)  (1.0 / (1.0 + exp(-(a))))
#define m_gelu        gelu_f64
#define m_mish        mish_f64
#define m_unit(a)     clip_f64(a, 0.0, 1.0)
#define m_pow         pow
#define m_fmod        fmod
#define m_mod         mod_f64
#define m_clip        clip_f64
#include "backends/cpu/pointwise_template.inc"
#include "src/base/int64.h"
#undef T
#undef P
#undef K
#undef LOOP
#undef PW_HAS_FLOAT
#undef PW_HAS_SIGNED
#undef PW_HAS_NUMBER
#undef PW_HAS_TEST
#undef PW_HAS_LOGIC
#undef PW_HAS_INT
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

/* ---- integers and bool ----
 * W is an unsigned type in which sums and products of T wrap without overflow; results are cut back to T. */

#define P            double
#define K(x)         ((T)(x))
#define PW_HAS_FLOAT 0
#define PW_HAS_TEST  0
#define m_from(x)    ((T)grt_int64_of(x))
#define ADD(a, b)    ((T)((W)(a) + (W)(b)))
#define SUB(a, b)    ((T)((W)(a) - (W)(b)))
#define MUL(a, b)    ((T)((W)(a) * (W)(b)))
#define NEG(a)       ((T)(0 - (W)(a)))
#define m_abs(a)     (m_negative(a) ? NEG(a) : (a))
#define DIV(a, b)    ((b) == 0 ? (T)0 : m_minus_one(b) ? NEG(a) : (T)((a) / (b)))
#define m_fmod(a, b) ((b) == 0 || m_minus_one(b) ? (T)0 : (T)((a) % (b)))
#define m_mod(a, b) \
    (m_fmod(a, b) != 0 && m_negative(m_fmod(a, b)) != m_negative(b) ? (T)(m_fmod(a, b) + (b)) : m_fmod(a, b))
#define m_clip(a, b, c) ((a) < (b) ? ((b) > (c) ? (c) : (b)) : ((a) > (c) ? (c) : (a)))
/* Shifts by a negative amount or by the width and more leave what sign extension leaves. */
#define m_beyond(b)         (m_negative(b) || (uint64_t)(b) >= 8 * sizeof(T))
#define m_shift_left(a, b)  (m_beyond(b) ? (T)0 : (T)((W)(a) << (b)))
#define m_shift_right(a, b) (m_beyond(b) ? (m_negative(a) ? (T)-1 : (T)0) : (T)((a) >> (b)))

#define PW_HAS_NUMBER 1
#define PW_HAS_LOGIC  0
#define PW_HAS_INT    1

#define PW_HAS_SIGNED  1
#define m_negative(a)  ((a) < 0)
#define m_minus_one(b) ((b) == -1)

#define T          int8_t
#define W          uint32_t
#define LOOP(name) i8_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#define T          int16_t
#define LOOP(name) i16_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#define T          int32_t
#define LOOP(name) i32_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#undef W
#define T          int64_t
#define W          uint64_t
#define LOOP(name) i64_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#undef W

#undef PW_HAS_SIGNED
#undef m_negative
#undef m_minus_one
#define PW_HAS_SIGNED  0
#define m_negative(a)  0
#define m_minus_one(b) 0

#define T          uint8_t
#define W          uint32_t
#define LOOP(name) u8_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#define T          uint16_t
#define LOOP(name) u16_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#define T          uint32_t
#define LOOP(name) u32_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP
#undef W
#define T          uint64_t
#define W          uint64_t
#define LOOP(name) u64_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP

#undef PW_HAS_NUMBER
#undef PW_HAS_LOGIC
#undef PW_HAS_INT
#undef PW_HAS_COMPARE
#define PW_HAS_NUMBER  0
#define PW_HAS_LOGIC   1
#define PW_HAS_INT     0
#define PW_HAS_COMPARE 0
#define T              uint8_t
#define LOOP(name)     bool_##name
#include "backends/cpu/pointwise_template.inc"
#undef T
#undef LOOP

const pw_f32_tables *cpu_pw_f32(void)
{
    switch (cpu_isa_best()) {
#ifdef CPU_HAS_AVX512_COPY
    case CPU_ISA_AVX512:
    case CPU_ISA_AMX:
        return &cpu_pw_f32_avx512;
#endif
#ifdef CPU_HAS_AVX2_COPY
    case CPU_ISA_AVX2:
        return &cpu_pw_f32_avx2;
#endif
    default:
        return &cpu_pw_f32_base;
    }
}

pw_table cpu_pw_table(grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        return cpu_pw_f32()->typed;
    case GRT_DTYPE_DOUBLE:
        return f64_table;
    case GRT_DTYPE_INT8:
        return i8_table;
    case GRT_DTYPE_INT16:
        return i16_table;
    case GRT_DTYPE_INT32:
        return i32_table;
    case GRT_DTYPE_INT64:
        return i64_table;
    case GRT_DTYPE_UINT8:
        return u8_table;
    case GRT_DTYPE_UINT16:
        return u16_table;
    case GRT_DTYPE_UINT32:
        return u32_table;
    case GRT_DTYPE_UINT64:
        return u64_table;
    case GRT_DTYPE_BOOL:
        return bool_table;
    default:
        return NULL;
    }
}

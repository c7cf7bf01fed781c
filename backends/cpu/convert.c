/* SPDX-License-Identifier: Apache-2.0 */
/* Converting runs of elements between any two numeric dtypes. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "backends/cpu/convert.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/pointwise_loops.h"
#include "src/base/element.h"
#include "src/base/int64.h"

#include <math.h>
#include <string.h>

grt_dtype cpu_plain_dtype(grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_UINT4:
    case GRT_DTYPE_UINT2:
        return GRT_DTYPE_UINT8;
    case GRT_DTYPE_INT4:
    case GRT_DTYPE_INT2:
        return GRT_DTYPE_INT8;
    default:
        return grt_dtype_in(dtype,
                            GRT_SET_FLOAT8 | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16) | GRT_BIT(FLOAT4E2M1))
                   ? GRT_DTYPE_FLOAT
                   : dtype;
    }
}

/* ---- plain to plain ----
 * A float goes to a narrow integer by way of int64, so that all values that fit there wrap like integers do.
 */

static inline uint64_t uint64_of(double x)
{
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)grt_int64_of(x);
}
static inline int32_t int32_of(float x)
{
    return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : (int32_t)grt_int64_of((double)x);
}

#define SAME(T, x)           ((T)(x))
#define TRUTH(T, x)          ((T)((x) != 0))
#define FROM_FLOAT(T, x)     ((T)grt_int64_of((double)(x)))
#define FROM_FLOAT_U64(T, x) ((T)uint64_of((double)(x)))
#define FROM_FLOAT_I32(T, x) ((T)int32_of((float)(x)))

#define LOOP(U, T, how)                                                           \
    {                                                                             \
        const U *x = in;                                                          \
        T *o = out;                                                               \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) o[i] = how(T, x[i]); \
        break;                                                                    \
    }

/* To T from every plain type; `how32` and `how64` are the ways from float32 and float64. */
#define CONVERT_BODY(T, how, how32, how64) \
    {                                      \
        switch (from) {                    \
        case GRT_DTYPE_FLOAT:              \
            LOOP(float, T, how32)          \
        case GRT_DTYPE_DOUBLE:             \
            LOOP(double, T, how64)         \
        case GRT_DTYPE_INT8:               \
            LOOP(int8_t, T, how)           \
        case GRT_DTYPE_INT16:              \
            LOOP(int16_t, T, how)          \
        case GRT_DTYPE_INT32:              \
            LOOP(int32_t, T, how)          \
        case GRT_DTYPE_INT64:              \
            LOOP(int64_t, T, how)          \
        case GRT_DTYPE_UINT16:             \
            LOOP(uint16_t, T, how)         \
        case GRT_DTYPE_UINT32:             \
            LOOP(uint32_t, T, how)         \
        case GRT_DTYPE_UINT64:             \
            LOOP(uint64_t, T, how)         \
        default: /* UINT8, BOOL */         \
            LOOP(uint8_t, T, how)          \
        }                                  \
    }
#define CONVERT_TO(T, name, how, how32, how64)                                  \
    static void to_##name(grt_dtype from, const void *in, void *out, int64_t n) \
        CONVERT_BODY(T, how, how32, how64)

/* The types that models compute in and index with have a copy for each instruction set. */
CPU_BODY to_f32_body(grt_dtype from, const void *in, void *out, int64_t n) CONVERT_BODY(float, SAME, SAME,
                                                                                        SAME)
    CPU_DISPATCH(to_f32, (grt_dtype from, const void *in, void *out, int64_t n), (from, in, out, n)) CPU_BODY
    to_i32_body(grt_dtype from, const void *in, void *out, int64_t n)
        CONVERT_BODY(int32_t, SAME, FROM_FLOAT_I32, FROM_FLOAT)
            CPU_DISPATCH(to_i32, (grt_dtype from, const void *in, void *out, int64_t n),
                         (from, in, out, n)) CPU_BODY
    to_i64_body(grt_dtype from, const void *in, void *out, int64_t n)
        CONVERT_BODY(int64_t, SAME, FROM_FLOAT, FROM_FLOAT)
            CPU_DISPATCH(to_i64, (grt_dtype from, const void *in, void *out, int64_t n), (from, in, out, n))
                CONVERT_TO(double, f64, SAME, SAME, SAME) CONVERT_TO(int8_t, i8, SAME, FROM_FLOAT, FROM_FLOAT)
                    CONVERT_TO(int16_t, i16, SAME, FROM_FLOAT, FROM_FLOAT)
                        CONVERT_TO(uint8_t, u8, SAME, FROM_FLOAT, FROM_FLOAT)
                            CONVERT_TO(uint16_t, u16, SAME, FROM_FLOAT, FROM_FLOAT)
                                CONVERT_TO(uint32_t, u32, SAME, FROM_FLOAT, FROM_FLOAT)
                                    CONVERT_TO(uint64_t, u64, SAME, FROM_FLOAT_U64, FROM_FLOAT_U64)
                                        CONVERT_TO(uint8_t, bool, TRUTH, TRUTH, TRUTH)

    /* ---- as long as an int32 holds all of a block: the same bits, by vector code ---- */

    CPU_BODY fits_body(const float *x, int64_t n, int32_t *out_wild)
{
    int32_t wild = 0;
#pragma omp simd reduction(| : wild)
    for (int64_t i = 0; i < n; i++)
        wild |= !(fabsf(x[i]) < 0x1p31f);
    *out_wild = wild;
}
CPU_DISPATCH(fits, (const float *x, int64_t n, int32_t *out_wild), (x, n, out_wild))

/* float32 that fits to narrow integers. */
#define SMALL_TO(bits)                                                                            \
    CPU_BODY small_##bits##_body(const float *x, uint##bits##_t *o, int64_t n)                    \
    {                                                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) o[i] = (uint##bits##_t)(int32_t)x[i]; \
    }                                                                                             \
    CPU_DISPATCH(small_##bits, (const float *x, uint##bits##_t *o, int64_t n), (x, o, n))
SMALL_TO(8)
SMALL_TO(16)

/* To integers as wide, in one pass. *out_wild: some did not fit. */
#define SMALL_TO_WIDE(bits)                                                                       \
    CPU_BODY small_##bits##_body(const float *x, uint##bits##_t *o, int64_t n, int32_t *out_wild) \
    {                                                                                             \
        int32_t wild = 0;                                                                         \
        _Pragma("omp simd reduction(| : wild)") for (int64_t i = 0; i < n; i++)                   \
        {                                                                                         \
            const bool fits = fabsf(x[i]) < 0x1p31f;                                              \
            wild |= !fits;                                                                        \
            o[i] = (uint##bits##_t)(int32_t)(fits ? x[i] : 0.0f);                                 \
        }                                                                                         \
        *out_wild = wild;                                                                         \
    }                                                                                             \
    CPU_DISPATCH(small_##bits, (const float *x, uint##bits##_t *o, int64_t n, int32_t *out_wild), \
                 (x, o, n, out_wild))
SMALL_TO_WIDE(32)
SMALL_TO_WIDE(64)

/* int64 to float32, for which AVX2 has no instruction. */
CPU_BODY small_long_body(const int64_t *x, float *o, int64_t n, int32_t *out_wild)
{
    uint64_t high = 0;
#pragma omp simd reduction(| : high)
    for (int64_t i = 0; i < n; i++)
        high |= (uint64_t)x[i] + 0x80000000u;
    *out_wild = high >> 32 != 0;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = (float)(int32_t)x[i];
}
CPU_DISPATCH(small_long, (const int64_t *x, float *o, int64_t n, int32_t *out_wild), (x, o, n, out_wild))

CPU_BODY truths_body(const float *x, uint8_t *o, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = x[i] != 0.0f;
}
CPU_DISPATCH(truths, (const float *x, uint8_t *o, int64_t n), (x, o, n))

/* False: not of this kind. */
static bool convert_small(grt_dtype from, const void *x, grt_dtype to, void *out, int64_t n)
{
    int32_t wild = 0;
    if (from == GRT_DTYPE_INT64 && to == GRT_DTYPE_FLOAT) {
        small_long(x, out, n, &wild);
        return !wild;
    }
    if (from != GRT_DTYPE_FLOAT)
        return false;
    if (to == GRT_DTYPE_BOOL) {
        truths(x, out, n);
        return true;
    }
    if (!grt_dtype_in(to, GRT_SET_INTS))
        return false;
    const size_t size = grt_dtype_size(to);
    if (size == 4) {
        small_32(x, out, n, &wild);
    } else if (size == 8) {
        small_64(x, out, n, &wild);
    } else {
        fits(x, n, &wild);
        if (!wild)
            size == 1 ? small_8(x, out, n) : small_16(x, out, n);
    }
    return !wild;
}

void cpu_convert_plain(grt_dtype from, const void *in, grt_dtype to, void *out, int64_t n)
{
    if (convert_small(from, in, to, out, n))
        return;
    switch (to) {
    case GRT_DTYPE_FLOAT:
        to_f32(from, in, out, n);
        break;
    case GRT_DTYPE_DOUBLE:
        to_f64(from, in, out, n);
        break;
    case GRT_DTYPE_INT8:
        to_i8(from, in, out, n);
        break;
    case GRT_DTYPE_INT16:
        to_i16(from, in, out, n);
        break;
    case GRT_DTYPE_INT32:
        to_i32(from, in, out, n);
        break;
    case GRT_DTYPE_INT64:
        to_i64(from, in, out, n);
        break;
    case GRT_DTYPE_UINT8:
        to_u8(from, in, out, n);
        break;
    case GRT_DTYPE_UINT16:
        to_u16(from, in, out, n);
        break;
    case GRT_DTYPE_UINT32:
        to_u32(from, in, out, n);
        break;
    case GRT_DTYPE_UINT64:
        to_u64(from, in, out, n);
        break;
    default:
        to_bool(from, in, out, n);
    }
}

static void packed_put(uint8_t *data, int64_t i, int bits, uint8_t value)
{
    int per_byte = 8 / bits, shift = (int)(i % per_byte) * bits;
    uint8_t low = (uint8_t)((value & ((1 << bits) - 1)) << shift);
    data[i / per_byte] =
        shift ? (uint8_t)(data[i / per_byte] | low) : low; /* the first of a byte clears the rest */
}

void cpu_widen(grt_dtype dtype, const void *in, int64_t begin, int64_t n, void *out)
{
    const uint8_t *bytes = (const uint8_t *)in + begin;
    const uint16_t *halves = (const uint16_t *)in + begin;
    float *f = out;
    uint8_t *u = out;
    int8_t *s = out;
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        cpu_pw_f32()->from_half(n, halves, out);
        break;
    case GRT_DTYPE_BFLOAT16:
        cpu_pw_f32()->from_bfloat16(n, halves, out);
        break;
    case GRT_DTYPE_FLOAT8E8M0:
        for (int64_t i = 0; i < n; i++)
            f[i] = grt_float8e8m0_to_float(bytes[i]);
        break;
    case GRT_DTYPE_FLOAT4E2M1:
        for (int64_t i = 0; i < n; i++)
            f[i] = grt_float4_to_float(grt_packed_get(in, begin + i, 4));
        break;
    case GRT_DTYPE_UINT4:
    case GRT_DTYPE_UINT2:
        for (int64_t i = 0; i < n; i++)
            u[i] = grt_packed_get(in, begin + i, dtype == GRT_DTYPE_UINT4 ? 4 : 2);
        break;
    case GRT_DTYPE_INT4: /* move the sign bit up and back */
        for (int64_t i = 0; i < n; i++)
            s[i] = (int8_t)((int8_t)(grt_packed_get(in, begin + i, 4) << 4) >> 4);
        break;
    case GRT_DTYPE_INT2:
        for (int64_t i = 0; i < n; i++)
            s[i] = (int8_t)((int8_t)(grt_packed_get(in, begin + i, 2) << 6) >> 6);
        break;
    default:
        if (grt_dtype_in(dtype, GRT_SET_FLOAT8)) {
            grt_float8_format format = grt_float8_format_of(dtype);
            for (int64_t i = 0; i < n; i++)
                f[i] = grt_float8_to_float(bytes[i], format);
        } else {
            size_t size = grt_dtype_size(dtype);
            memcpy(out, (const char *)in + (size_t)begin * size, (size_t)n * size);
        }
    }
}

void cpu_narrow(grt_dtype dtype, const void *in, int64_t n, void *out, int64_t begin,
                cpu_convert_options options)
{
    uint8_t *bytes = (uint8_t *)out + begin;
    uint16_t *halves = (uint16_t *)out + begin;
    const float *f = in;
    const uint8_t *u = in;
    int bits = (int)grt_dtype_bits(dtype);
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        cpu_pw_f32()->to_half(n, f, halves);
        break;
    case GRT_DTYPE_BFLOAT16:
        cpu_pw_f32()->to_bfloat16(n, f, halves);
        break;
    case GRT_DTYPE_FLOAT8E8M0:
        for (int64_t i = 0; i < n; i++)
            bytes[i] = grt_float_to_float8e8m0(f[i], options.rounding, options.saturate);
        break;
    case GRT_DTYPE_FLOAT4E2M1:
        for (int64_t i = 0; i < n; i++)
            packed_put(out, begin + i, bits, grt_float_to_float4(f[i]));
        break;
    case GRT_DTYPE_UINT4:
    case GRT_DTYPE_UINT2:
    case GRT_DTYPE_INT4:
    case GRT_DTYPE_INT2:
        for (int64_t i = 0; i < n; i++)
            packed_put(out, begin + i, bits, u[i]);
        break;
    default:
        if (grt_dtype_in(dtype, GRT_SET_FLOAT8)) {
            grt_float8_format format = grt_float8_format_of(dtype);
            for (int64_t i = 0; i < n; i++)
                bytes[i] = grt_float_to_float8(f[i], format, options.saturate);
        } else {
            size_t size = grt_dtype_size(dtype);
            memcpy((char *)out + (size_t)begin * size, in, (size_t)n * size);
        }
    }
}

void cpu_convert(grt_dtype from, const void *in, grt_dtype to, void *out, int64_t begin, int64_t n,
                 cpu_convert_options options)
{
    union {
        float f[CONVERT_BLOCK];
        double d[CONVERT_BLOCK];
    } wide, plain;
    grt_dtype from_plain = cpu_plain_dtype(from), to_plain = cpu_plain_dtype(to);
    const void *source = (const char *)in + (size_t)begin * grt_dtype_size(from);
    void *target = (char *)out + (size_t)begin * grt_dtype_size(to);
    if (from != from_plain) {
        cpu_widen(from, in, begin, n, to == from_plain ? target : wide.f);
        if (to == from_plain)
            return;
        source = wide.f;
    }
    if (to == to_plain) {
        cpu_convert_plain(from_plain, source, to, target, n);
        return;
    }
    if (from_plain == GRT_DTYPE_DOUBLE && to_plain == GRT_DTYPE_FLOAT) {
        const double *d = source;
        for (int64_t i = 0; i < n; i++) /* rounded twice, so the first time to odd */
            plain.f[i] = grt_double_to_float_odd(d[i]);
        source = plain.f;
    } else if (from_plain != to_plain) {
        cpu_convert_plain(from_plain, source, to_plain, plain.d, n);
        source = plain.d;
    }
    cpu_narrow(to, source, n, out, begin, options);
}

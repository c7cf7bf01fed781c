/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of reductions, at most a strip at a time, from and to their types. Inline, as a run may be as
 * short as one element. */
#ifndef GRT_BACKENDS_CPU_REDUCE_ELEMENTS_H
#define GRT_BACKENDS_CPU_REDUCE_ELEMENTS_H

#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/reduction.h"
#include "src/base/float.h"

#define LOAD_CASE(NAME, type, field, convert)                \
    case GRT_DTYPE_##NAME:                                   \
        for (int64_t i = 0; i < n; i++)                      \
            to->field[i] = convert(((const type *)from)[i]); \
        break;

static inline void cpu_reduce_load_reals(grt_dtype dtype, cpu_reduce_strip *to, const void *from, int64_t n)
{
    switch (dtype) {
        LOAD_CASE(FLOAT, float, real, (double))
        LOAD_CASE(FLOAT16, uint16_t, real, (double)grt_half_to_float)
        LOAD_CASE(BFLOAT16, uint16_t, real, (double)grt_bfloat16_to_float)
        LOAD_CASE(INT8, int8_t, real, (double))
        LOAD_CASE(UINT8, uint8_t, real, (double))
        LOAD_CASE(INT16, int16_t, real, (double))
        LOAD_CASE(UINT16, uint16_t, real, (double))
        LOAD_CASE(INT32, int32_t, real, (double))
        LOAD_CASE(UINT32, uint32_t, real, (double))
        LOAD_CASE(INT64, int64_t, real, (double))
        LOAD_CASE(UINT64, uint64_t, real, (double))
        LOAD_CASE(DOUBLE, double, real, (double))
    default:
        break;
    }
}

/* Integers are folded without sign, as they wrap; storing drops the upper bits again. For maxima and minima
 * of signed types the sign bit is flipped while they are in this form, which keeps their order. */
static inline void cpu_reduce_load_ints(grt_dtype dtype, cpu_reduce_strip *to, const void *from, int64_t n,
                                        uint64_t flip)
{
    switch (dtype) {
        LOAD_CASE(INT8, int8_t, whole, flip ^ (uint64_t)(int64_t))
        LOAD_CASE(INT16, int16_t, whole, flip ^ (uint64_t)(int64_t))
        LOAD_CASE(INT32, int32_t, whole, flip ^ (uint64_t)(int64_t))
        LOAD_CASE(INT64, int64_t, whole, flip ^ (uint64_t))
        LOAD_CASE(BOOL, uint8_t, whole, 0 !=)
        LOAD_CASE(UINT8, uint8_t, whole, (uint64_t))
        LOAD_CASE(UINT16, uint16_t, whole, (uint64_t))
        LOAD_CASE(UINT32, uint32_t, whole, (uint64_t))
        LOAD_CASE(UINT64, uint64_t, whole, (uint64_t))
    default:
        break;
    }
}

static inline void reduce_put_real(grt_dtype dtype, void *to, int64_t i, double v)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)to)[i] = (float)v;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)to)[i] = v;
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)to)[i] = grt_float_to_half((float)v);
        break;
    default:
        ((uint16_t *)to)[i] = grt_float_to_bfloat16((float)v);
        break;
    }
}

static inline void reduce_put_int(size_t size, void *to, int64_t i, uint64_t v)
{
    switch (size) {
    case 8:
        ((uint64_t *)to)[i] = v;
        break;
    case 4:
        ((uint32_t *)to)[i] = (uint32_t)v;
        break;
    case 2:
        ((uint16_t *)to)[i] = (uint16_t)v;
        break;
    default:
        ((uint8_t *)to)[i] = (uint8_t)v;
        break;
    }
}

/* A real number converted to an integer type: truncated, within int64. */
static inline uint64_t reduce_real_to_int(double v)
{
    return v >= 0x1p63   ? (uint64_t)INT64_MAX
           : v > -0x1p63 ? (uint64_t)(int64_t)v
           : v != v      ? 0
                         : (uint64_t)INT64_MIN;
}

/* Result i, out of `real` or, where j->ints, `whole`. */
static inline void cpu_reduce_store(const cpu_reduce *j, int64_t i, double real, uint64_t whole, double shift)
{
    bool is_int = !grt_dtype_in(j->dtype, GRT_SET_FLOATS);
    bool is_signed = grt_dtype_in(j->dtype, GRT_SET_SIGNED);
    if (j->ints && j->finish == FINISH_NONE) {
        reduce_put_int(j->size, j->out, i, whole ^ j->flip);
        return;
    }
    if (j->ints && j->finish == FINISH_MEAN && j->count > 0) {
        uint64_t n = (uint64_t)j->count;
        reduce_put_int(j->size, j->out, i, is_signed ? (uint64_t)((int64_t)whole / (int64_t)n) : whole / n);
        return;
    }
    if (j->ints)
        real = is_signed ? (double)(int64_t)whole : (double)whole;
    switch (j->finish) {
    case FINISH_MEAN:
        real /= j->count;
        break;
    case FINISH_SQRT:
        real = sqrt(real);
        break;
    case FINISH_LOG:
        real = log(real) + shift;
        break;
    default:
        break;
    }
    if (is_int)
        reduce_put_int(j->size, j->out, i, reduce_real_to_int(real));
    else
        reduce_put_real(j->dtype, j->out, i, real);
}

/* Results i to i + n of reals; log of none, as that has a shift of its own. */
static inline void cpu_reduce_store_reals(const cpu_reduce *j, int64_t i, const double *values, int64_t n)
{
    float *to = (float *)j->out + i;
    if (j->dtype != GRT_DTYPE_FLOAT || j->finish == FINISH_LOG) {
        for (int64_t k = 0; k < n; k++)
            cpu_reduce_store(j, i + k, values[k], 0, 0);
        return;
    }
    for (int64_t k = 0; k < n && j->finish == FINISH_NONE; k++)
        to[k] = (float)values[k];
    for (int64_t k = 0; k < n && j->finish == FINISH_MEAN; k++)
        to[k] = (float)(values[k] / j->count);
    for (int64_t k = 0; k < n && j->finish == FINISH_SQRT; k++)
        to[k] = (float)sqrt(values[k]);
}

/* Lowest or greatest number of the type for maxima and minima. */
static inline uint64_t cpu_reduce_start_int(const cpu_reduce *j)
{
    size_t bits = j->dtype == GRT_DTYPE_BOOL ? 1 : 8 * j->size;
    uint64_t top = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    bool is_signed = j->flip != 0;
    uint64_t least = is_signed ? j->flip ^ (0 - (top / 2 + 1)) : 0,
             most = is_signed ? j->flip ^ (top / 2) : top;
    return j->how == FOLD_PROD ? 1 : j->how == FOLD_MAX ? least : j->how == FOLD_MIN ? most : 0;
}

/* e^(v - shift) of at most a strip, in float32: the largest is about 1. step: 0, or 1 with a shift each. */
static inline void cpu_reduce_exps(const float *v, int64_t m, const double *shift, int64_t step, float *out)
{
    const void *in[] = {out};
    const uint8_t scalar[] = {0};
    const float none[2] = {0};
    for (int64_t i = 0; i < m; i++)
        out[i] = (float)((double)v[i] - shift[i * step]);
    cpu_pw_f32()->typed[PW_Exp](m, out, in, scalar, none);
}

#undef LOAD_CASE
#endif

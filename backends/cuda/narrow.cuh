/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every numeric type, those of 8-bit floats and of less than a byte among them. One thread writes
 * a whole byte. */
#ifndef GRT_BACKENDS_CUDA_NARROW_CUH
#define GRT_BACKENDS_CUDA_NARROW_CUH

#include "backends/cuda/each.cuh"

#include <climits>

/* An element of any numeric type. */
struct cuda_number_any {
    double real;
    uint64_t whole; /* two's complement */
    bool is_whole, is_signed;
};

static __device__ __forceinline__ cuda_number_any cuda_real(double v)
{
    return {v, 0, false, true};
}
static __device__ __forceinline__ cuda_number_any cuda_whole(int64_t v)
{
    return {0, (uint64_t)v, true, true};
}

static __device__ inline cuda_number_any cuda_any_load(grt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
    case GRT_DTYPE_DOUBLE:
    case GRT_DTYPE_FLOAT16:
    case GRT_DTYPE_BFLOAT16:
        return cuda_real(grt_element_load(dtype, data, i));
    case GRT_DTYPE_INT64:
        return cuda_whole(((const int64_t *)data)[i]);
    case GRT_DTYPE_UINT64:
        return {0, ((const uint64_t *)data)[i], true, false};
    case GRT_DTYPE_FLOAT8E8M0:
        return cuda_real(grt_float8e8m0_to_float(((const uint8_t *)data)[i]));
    case GRT_DTYPE_FLOAT8E4M3FN:
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
    case GRT_DTYPE_FLOAT8E5M2:
    case GRT_DTYPE_FLOAT8E5M2FNUZ:
        return cuda_real(grt_float8_to_float(((const uint8_t *)data)[i], grt_float8_format_of(dtype)));
    case GRT_DTYPE_FLOAT4E2M1:
        return cuda_real(grt_float4_to_float(grt_packed_get(data, i, 4)));
    case GRT_DTYPE_UINT4:
        return cuda_whole(grt_packed_get(data, i, 4));
    case GRT_DTYPE_UINT2:
        return cuda_whole(grt_packed_get(data, i, 2));
    case GRT_DTYPE_INT4:
        return cuda_whole((int8_t)(grt_packed_get(data, i, 4) << 4) >> 4);
    case GRT_DTYPE_INT2:
        return cuda_whole((int8_t)(grt_packed_get(data, i, 2) << 6) >> 6);
    default:
        return cuda_whole((int64_t)grt_element_load(dtype, data, i));
    }
}

/* Rounded once; what is rounded again afterwards was rounded to odd. */
static __device__ inline float cuda_to_float(cuda_number_any x)
{
    if (x.is_whole)
        return x.is_signed ? (float)(int64_t)x.whole : (float)x.whole;
    return grt_double_to_float_odd(x.real);
}

static __device__ inline double cuda_to_double(cuda_number_any x)
{
    return !x.is_whole ? x.real : x.is_signed ? (double)(int64_t)x.whole : (double)x.whole;
}

/* Integers wrap; floats that no 64-bit integer holds give the lowest one. */
static __device__ inline uint64_t cuda_to_whole(cuda_number_any x, bool is_signed)
{
    if (x.is_whole)
        return x.whole;
    if (!is_signed && x.real >= 0x1p63 && x.real < 0x1p64)
        return (uint64_t)x.real;
    return x.real >= -0x1p63 && x.real < 0x1p63 ? (uint64_t)(int64_t)x.real : (uint64_t)INT64_MIN;
}

struct cuda_rounding {
    bool saturate;
    grt_rounding rounding;
};

/* The code of x in a type of 8 bits or less. */
static __device__ inline uint8_t cuda_code_of(grt_dtype dtype, cuda_number_any x, cuda_rounding how)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT8E8M0:
        return grt_float_to_float8e8m0(cuda_to_float(x), how.rounding, how.saturate);
    case GRT_DTYPE_FLOAT8E4M3FN:
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
    case GRT_DTYPE_FLOAT8E5M2:
    case GRT_DTYPE_FLOAT8E5M2FNUZ:
        return grt_float_to_float8(cuda_to_float(x), grt_float8_format_of(dtype), how.saturate);
    case GRT_DTYPE_FLOAT4E2M1:
        return grt_float_to_float4(cuda_to_float(x));
    case GRT_DTYPE_BOOL:
        return x.is_whole ? x.whole != 0 : x.real != 0;
    default: /* 2, 4 and 8 bits of an integer */
        return (uint8_t)cuda_to_whole(x, true);
    }
}

static __device__ inline void cuda_any_store(grt_dtype dtype, void *data, int64_t i, cuda_number_any x,
                                             cuda_rounding how)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)data)[i] = x.is_whole ? cuda_to_float(x) : (float)x.real;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)data)[i] = cuda_to_double(x);
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)data)[i] = grt_float_to_half(cuda_to_float(x));
        break;
    case GRT_DTYPE_BFLOAT16:
        ((uint16_t *)data)[i] = grt_float_to_bfloat16(cuda_to_float(x));
        break;
    case GRT_DTYPE_INT16:
    case GRT_DTYPE_UINT16:
        ((uint16_t *)data)[i] = (uint16_t)cuda_to_whole(x, true);
        break;
    case GRT_DTYPE_INT32:
    case GRT_DTYPE_UINT32:
        ((uint32_t *)data)[i] = (uint32_t)cuda_to_whole(x, true);
        break;
    case GRT_DTYPE_INT64:
    case GRT_DTYPE_UINT64:
        ((uint64_t *)data)[i] = cuda_to_whole(x, dtype == GRT_DTYPE_INT64);
        break;
    default:
        ((uint8_t *)data)[i] = cuda_code_of(dtype, x, how);
    }
}

/* element(i) for all n elements of the output, which may be less than bytes: one thread writes a whole byte,
 * padded with 0. */
template <typename F>
grt_status cuda_make(const grt_run *r, const grt_tensor *out, cuda_rounding how, const F &element)
{
    grt_dtype dtype = out->dtype;
    void *data = out->data;
    int64_t n = grt_tensor_elements(out);
    int bits = (int)grt_dtype_bits(dtype), per = 8 / (bits < 8 ? bits : 8);
    if (bits >= 8)
        return cuda_each(r, n,
                         [=] __device__(int64_t i) { cuda_any_store(dtype, data, i, element(i), how); });
    return cuda_each(r, n / per + (n % per != 0), [=] __device__(int64_t byte) {
        uint8_t all = 0;
        for (int k = 0; k < per && byte * per + k < n; k++)
            all |= (uint8_t)((cuda_code_of(dtype, element(byte * per + k), how) & ((1 << bits) - 1))
                             << (k * bits));
        ((uint8_t *)data)[byte] = all;
    });
}

#define CUDA_CODES (GRT_SET_NUMBERS | GRT_BIT(BOOL) | GRT_SET_FLOAT8 | GRT_SET_SUBBYTE)

static inline bool cuda_makes_codes(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_out > 0 && grt_dtype_in(node->out[0].dtype, CUDA_CODES))
        return true;
    if (why)
        grt_text_add(why, "the result must be a number or bool");
    return false;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike, QuantizeLinear and DequantizeLinear where 8-bit floats or elements of less than a byte take
 * part, or blocks of scales, or types that cast.cu has no kernel for; BitCast; DynamicQuantizeLinear. One
 * thread per byte of the output. */
#include "backends/cuda/each.cuh"

#include <climits>

namespace
{

/* An element of any numeric type. */
struct number {
    double real;
    uint64_t whole; /* two's complement */
    bool is_whole, is_signed;
};

__device__ __forceinline__ number real_number(double v)
{
    return {v, 0, false, true};
}
__device__ __forceinline__ number whole_number(int64_t v)
{
    return {0, (uint64_t)v, true, true};
}

__device__ number load(grt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
    case GRT_DTYPE_DOUBLE:
    case GRT_DTYPE_FLOAT16:
    case GRT_DTYPE_BFLOAT16:
        return real_number(grt_element_load(dtype, data, i));
    case GRT_DTYPE_INT64:
        return whole_number(((const int64_t *)data)[i]);
    case GRT_DTYPE_UINT64:
        return {0, ((const uint64_t *)data)[i], true, false};
    case GRT_DTYPE_FLOAT8E8M0:
        return real_number(grt_float8e8m0_to_float(((const uint8_t *)data)[i]));
    case GRT_DTYPE_FLOAT8E4M3FN:
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
    case GRT_DTYPE_FLOAT8E5M2:
    case GRT_DTYPE_FLOAT8E5M2FNUZ:
        return real_number(grt_float8_to_float(((const uint8_t *)data)[i], grt_float8_format_of(dtype)));
    case GRT_DTYPE_FLOAT4E2M1:
        return real_number(grt_float4_to_float(grt_packed_get(data, i, 4)));
    case GRT_DTYPE_UINT4:
        return whole_number(grt_packed_get(data, i, 4));
    case GRT_DTYPE_UINT2:
        return whole_number(grt_packed_get(data, i, 2));
    case GRT_DTYPE_INT4:
        return whole_number((int8_t)(grt_packed_get(data, i, 4) << 4) >> 4);
    case GRT_DTYPE_INT2:
        return whole_number((int8_t)(grt_packed_get(data, i, 2) << 6) >> 6);
    default:
        return whole_number((int64_t)grt_element_load(dtype, data, i));
    }
}

/* Rounded once; what is rounded again afterwards was rounded to odd. */
__device__ float to_float(number x)
{
    if (x.is_whole)
        return x.is_signed ? (float)(int64_t)x.whole : (float)x.whole;
    return grt_double_to_float_odd(x.real);
}

__device__ double to_double(number x)
{
    return !x.is_whole ? x.real : x.is_signed ? (double)(int64_t)x.whole : (double)x.whole;
}

/* Integers wrap; floats that no 64-bit integer holds give the lowest one. */
__device__ uint64_t to_whole(number x, bool is_signed)
{
    if (x.is_whole)
        return x.whole;
    if (!is_signed && x.real >= 0x1p63 && x.real < 0x1p64)
        return (uint64_t)x.real;
    return x.real >= -0x1p63 && x.real < 0x1p63 ? (uint64_t)(int64_t)x.real : (uint64_t)INT64_MIN;
}

struct way {
    bool saturate;
    grt_rounding rounding;
};

/* The code of x in a type of 8 bits or less. */
__device__ uint8_t code_of(grt_dtype dtype, number x, way how)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT8E8M0:
        return grt_float_to_float8e8m0(to_float(x), how.rounding, how.saturate);
    case GRT_DTYPE_FLOAT8E4M3FN:
    case GRT_DTYPE_FLOAT8E4M3FNUZ:
    case GRT_DTYPE_FLOAT8E5M2:
    case GRT_DTYPE_FLOAT8E5M2FNUZ:
        return grt_float_to_float8(to_float(x), grt_float8_format_of(dtype), how.saturate);
    case GRT_DTYPE_FLOAT4E2M1:
        return grt_float_to_float4(to_float(x));
    case GRT_DTYPE_BOOL:
        return x.is_whole ? x.whole != 0 : x.real != 0;
    default: /* 2, 4 and 8 bits of an integer */
        return (uint8_t)to_whole(x, true);
    }
}

__device__ void store(grt_dtype dtype, void *data, int64_t i, number x, way how)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)data)[i] = x.is_whole ? to_float(x) : (float)x.real;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)data)[i] = to_double(x);
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)data)[i] = grt_float_to_half(to_float(x));
        break;
    case GRT_DTYPE_BFLOAT16:
        ((uint16_t *)data)[i] = grt_float_to_bfloat16(to_float(x));
        break;
    case GRT_DTYPE_INT16:
    case GRT_DTYPE_UINT16:
        ((uint16_t *)data)[i] = (uint16_t)to_whole(x, true);
        break;
    case GRT_DTYPE_INT32:
    case GRT_DTYPE_UINT32:
        ((uint32_t *)data)[i] = (uint32_t)to_whole(x, true);
        break;
    case GRT_DTYPE_INT64:
    case GRT_DTYPE_UINT64:
        ((uint64_t *)data)[i] = to_whole(x, dtype == GRT_DTYPE_INT64);
        break;
    default:
        ((uint8_t *)data)[i] = code_of(dtype, x, how);
    }
}

/* element(i) for all n elements of the output, which may be less than bytes: one thread writes a whole byte,
 * padded with 0. */
template <typename F> grt_status make(const grt_run *r, const grt_tensor *out, way how, const F &element)
{
    grt_dtype dtype = out->dtype;
    void *data = out->data;
    int64_t n = grt_tensor_elements(out);
    int bits = (int)grt_dtype_bits(dtype), per = 8 / (bits < 8 ? bits : 8);
    if (bits >= 8)
        return cuda_each(r, n, [=] __device__(int64_t i) { store(dtype, data, i, element(i), how); });
    return cuda_each(r, n / per + (n % per != 0), [=] __device__(int64_t byte) {
        uint8_t all = 0;
        for (int k = 0; k < per && byte * per + k < n; k++)
            all |=
                (uint8_t)((code_of(dtype, element(byte * per + k), how) & ((1 << bits) - 1)) << (k * bits));
        ((uint8_t *)data)[byte] = all;
    });
}

/* ---- casting ---- */

struct cast_state {
    way how;
};

grt_status create_cast(const grt_kernel_node *node, void **out_state)
{
    const char *mode = grt_attr_string(node->desc, "round_mode", "up");
    cast_state *s;
    GRT_TRY(cuda_state(&s));
    s->how.saturate = grt_attr_int(node->desc, "saturate", 1) != 0;
    s->how.rounding = !strcmp(mode, "down")      ? GRT_ROUND_DOWN
                      : !strcmp(mode, "nearest") ? GRT_ROUND_NEAREST
                                                 : GRT_ROUND_UP;
    *out_state = s;
    return GRT_OK;
}

#define CODES (GRT_SET_NUMBERS | GRT_BIT(BOOL) | GRT_SET_FLOAT8 | GRT_SET_SUBBYTE)

bool supports_result(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_out > 0 && grt_dtype_in(node->out[0].dtype, CODES))
        return true;
    if (why)
        grt_text_add(why, "the result must be a number or bool");
    return false;
}

grt_status copy(const grt_run *r)
{
    size_t bytes = grt_tensor_bytes(r->in[0]);
    if (bytes && r->in[0]->data != r->out[0]->data)
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
    return GRT_OK;
}

grt_status run_cast(const grt_run *r)
{
    grt_dtype from = r->in[0]->dtype;
    const void *in = r->in[0]->data;
    if (from == r->out[0]->dtype)
        return copy(r);
    return make(r, r->out[0], ((const cast_state *)r->state)->how,
                [=] __device__(int64_t i) { return load(from, in, i); });
}

/* ---- quantizing ---- */

struct quantize_state {
    int64_t axis, block;
    bool saturate;
    grt_dtype precision; /* of the division; NONE: the scale's */
};

/* Which scale element i uses: the input is [outer, length, inner] around the axis, the scale [outer or 1,
 * steps, inner or 1]. */
struct quantize_shape {
    bool single, blocked;
    int64_t inner, length, steps, block;

    __device__ int64_t scale(int64_t i) const
    {
        if (single)
            return 0;
        int64_t at = i % inner, k = i / inner % length, outer = i / inner / length;
        return blocked ? (outer * steps + k / block) * inner + at : k;
    }
};

grt_status create_quantize(const grt_kernel_node *node, void **out_state)
{
    quantize_state *s;
    GRT_TRY(cuda_state(&s));
    s->axis = grt_attr_int(node->desc, "axis", 1);
    s->block = grt_attr_int(node->desc, "block_size", 0);
    s->saturate = grt_attr_int(node->desc, "saturate", 1) != 0;
    s->precision = (grt_dtype)grt_attr_int(node->desc, "precision", 0);
    *out_state = s;
    return GRT_OK;
}

grt_status reshape_quantize(grt_reshape *r)
{
    const quantize_state *s = (const quantize_state *)r->state;
    const grt_tensor *x = r->in[0], *scale = r->in[1], *zero = r->n_in > 2 ? r->in[2] : NULL;
    int64_t n = grt_tensor_elements(scale), axis = grt_axis(x->rank == 1 ? 0 : s->axis, x->rank);
    quantize_shape sh = {};
    sh.single = n == 1 && !s->block;
    sh.blocked = s->block > 0;
    sh.inner = sh.length = sh.steps = sh.block = 1;
    if (!sh.single && axis >= 0) {
        sh.inner = grt_dims_product(x->dims, (int32_t)axis + 1, x->rank);
        sh.length = x->dims[axis];
        sh.block = sh.blocked ? s->block : 1;
        sh.steps = sh.blocked && scale->rank == x->rank ? scale->dims[axis] : sh.length;
    }
    int64_t outer = axis >= 0 ? grt_dims_product(x->dims, 0, (int32_t)axis) : 1;
    bool blocks = scale->rank == x->rank && n == outer * sh.steps * sh.inner &&
                  (sh.length + sh.block - 1) / sh.block <= sh.steps;
    bool fits = sh.single || (axis >= 0 && (sh.blocked ? blocks : n == sh.length));
    if (!fits || (zero && grt_tensor_elements(zero) != n))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "scale, zero point and axis do not fit the input");
    quantize_shape *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = sh;
    r->shape = kept;
    return GRT_OK;
}

__device__ float rounded(grt_dtype dtype, float x)
{
    return dtype == GRT_DTYPE_FLOAT16    ? grt_half_to_float(grt_float_to_half(x))
           : dtype == GRT_DTYPE_BFLOAT16 ? grt_bfloat16_to_float(grt_float_to_bfloat16(x))
                                         : x;
}

struct operands {
    const void *x, *scale, *zero;
    grt_dtype x_type, scale_type, zero_type;
    quantize_shape sh;
};

operands operands_of(const grt_run *r)
{
    const grt_tensor *zero = r->n_in > 2 ? r->in[2] : NULL;
    return {r->in[0]->data,
            r->in[1]->data,
            zero ? zero->data : NULL,
            r->in[0]->dtype,
            r->in[1]->dtype,
            zero ? zero->dtype : GRT_DTYPE_FLOAT,
            *(const quantize_shape *)r->shape};
}

grt_status run_quantize(const grt_run *r)
{
    const quantize_state *s = (const quantize_state *)r->state;
    operands o = operands_of(r);
    grt_dtype to = r->out[0]->dtype, precision = s->precision ? s->precision : o.scale_type;
    bool whole = grt_dtype_in(to, GRT_SET_INTS | (GRT_SET_SUBBYTE & ~GRT_BIT(FLOAT4E2M1)));
    bool is_signed = grt_dtype_in(to, GRT_SET_SIGNED | GRT_BIT(INT4) | GRT_BIT(INT2)),
         shifts = whole || to == GRT_DTYPE_FLOAT4E2M1;
    float span = ldexpf(1.0f, (int)grt_dtype_bits(to)), low = is_signed ? -span / 2 : 0,
          high = low + span - 1;
    return make(r, r->out[0], way{s->saturate, GRT_ROUND_NEAREST}, [=] __device__(int64_t i) {
        int64_t k = o.sh.scale(i);
        float x = rounded(precision, to_float(load(o.x_type, o.x, i)));
        x = rounded(precision, x / to_float(load(o.scale_type, o.scale, k)));
        float zero = shifts && o.zero ? to_float(load(o.zero_type, o.zero, k)) : 0.0f;
        if (!whole)
            return real_number(shifts ? x + zero : x);
        float y = rintf(x) + zero;
        y = y > low ? y : low;
        return whole_number((int64_t)(y < high ? y : high));
    });
}

grt_status run_dequantize(const grt_run *r)
{
    operands o = operands_of(r);
    return make(r, r->out[0], way{true, GRT_ROUND_NEAREST}, [=] __device__(int64_t i) {
        int64_t k = o.sh.scale(i);
        float zero = o.zero ? to_float(load(o.zero_type, o.zero, k)) : 0.0f;
        return real_number((to_float(load(o.x_type, o.x, i)) - zero) *
                           to_float(load(o.scale_type, o.scale, k)));
    });
}

/* ---- DynamicQuantizeLinear: the range by one block, the rest by all ---- */

grt_status run_dynamic(const grt_run *r)
{
    const float *x = (const float *)r->in[0]->data;
    uint8_t *y = (uint8_t *)r->out[0]->data;
    float *scale = (float *)r->out[1]->data;
    uint8_t *zero = (uint8_t *)r->out[2]->data;
    int64_t n = grt_tensor_elements(r->in[0]);
    GRT_TRY(cuda_each_block(r, 1, [=] __device__(int64_t, int thread, int threads) {
        double low = 0, high = 0; /* the range always holds 0 */
        for (int64_t i = thread; i < n; i += threads) {
            low = x[i] < low ? x[i] : low;
            high = x[i] > high ? x[i] : high;
        }
        low = -cuda_block_max(-low);
        high = cuda_block_max(high);
        float s = ((float)high - (float)low) / 255.0f;
        s = s > 0.0f ? s : 1.0f; /* all zeros: any scale is right */
        float z = rintf(-(float)low / s);
        if (thread == 0) {
            *scale = s;
            *zero = (uint8_t)(z < 0.0f ? 0.0f : z > 255.0f ? 255.0f : z);
        }
    }));
    return cuda_each(r, n, [=] __device__(int64_t i) {
        float q = rintf(x[i] / *scale) + (float)*zero;
        q = q > 0.0f ? q : 0.0f;
        y[i] = (uint8_t)(q < 255.0f ? q : 255.0f);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Cast",
     .types = {CODES},
     .supports = supports_result,
     .create = create_cast,
     .destroy = free,
     .run = run_cast},
    {.domain = "",
     .op = "CastLike",
     .types = {CODES},
     .supports = supports_result,
     .create = create_cast,
     .destroy = free,
     .run = run_cast},
    {.domain = "",
     .op = "BitCast",
     .types = {GRT_SET_ALL & ~GRT_BIT(STRING)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .run = copy},
    {.domain = "",
     .op = "QuantizeLinear",
     .types = {CODES, CODES, CODES},
     .supports = supports_result,
     .create = create_quantize,
     .destroy = free,
     .reshape = reshape_quantize,
     .release_shape = free,
     .run = run_quantize},
    {.domain = "",
     .op = "DequantizeLinear",
     .types = {CODES, CODES, CODES},
     .supports = supports_result,
     .create = create_quantize,
     .destroy = free,
     .reshape = reshape_quantize,
     .release_shape = free,
     .run = run_dequantize},
    {.domain = "", .op = "DynamicQuantizeLinear", .types = {GRT_BIT(FLOAT)}, .run = run_dynamic},
};

} // namespace
CUDA_KERNELS(cast_narrow, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike among floats, integers and bool; QuantizeLinear and DequantizeLinear between floats and
 * 8- or 16-bit integers, with one scale or one per step of an axis. */
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"

#include <climits>

namespace
{

/* ---- converting one element ----
 * A float goes to an integer by way of int64, so that all values that fit there wrap like integers do; what
 * fits in no 64-bit integer gives the lowest one. */

struct truth {
    uint8_t value;
};

__device__ __forceinline__ int64_t int64_of(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

template <typename TO> struct narrowing {
    template <typename FROM> static __device__ __forceinline__ TO of(FROM x)
    {
        if constexpr (std::is_same<FROM, double>::value || std::is_same<FROM, float>::value) {
            if constexpr (std::is_floating_point<TO>::value)
                return (TO)x;
            else if constexpr (std::is_same<TO, uint64_t>::value)
                return x >= (FROM)0x1p63 && x < (FROM)0x1p64 ? (uint64_t)x : (uint64_t)int64_of((double)x);
            else
                return (TO)int64_of((double)x);
        } else {
            return (TO)x;
        }
    }
};
template <> struct narrowing<truth> {
    template <typename FROM> static __device__ __forceinline__ truth of(FROM x)
    {
        return {(uint8_t)(x != FROM(0))};
    }
};
/* To 16-bit floats a double is rounded twice, so the first time to odd. */
__device__ __forceinline__ float float_odd(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t bits = __float_as_uint(f);
    if (back == d || f != f || (bits & 0x7fffffffu) == 0x7f800000u || (bits & 1u))
        return f;
    bool away = (back < d) == (d > 0.0);
    return __uint_as_float(away ? bits + 1u : bits - 1u);
}
template <typename FROM> __device__ __forceinline__ float float_of(FROM x)
{
    if constexpr (std::is_same<FROM, double>::value)
        return float_odd(x);
    else
        return (float)x;
}
template <> struct narrowing<__half> {
    template <typename FROM> static __device__ __forceinline__ __half of(FROM x)
    {
        return __float2half_rn(float_of(x));
    }
};
template <> struct narrowing<__nv_bfloat16> {
    template <typename FROM> static __device__ __forceinline__ __nv_bfloat16 of(FROM x)
    {
        return __float2bfloat16_rn(float_of(x));
    }
};

template <typename FROM, typename TO, int V>
__global__ void __launch_bounds__(CUDA_BLOCK) cast_kernel(int64_t n, const FROM *in, TO *out)
{
    CUDA_ITEMS (i, n) {
        cuda_pack<FROM, V> from = ((const cuda_pack<FROM, V> *)in)[i];
        cuda_pack<TO, V> to;
#pragma unroll
        for (int j = 0; j < V; j++)
            to.v[j] = narrowing<TO>::of(pw_widen<FROM>(from.v[j]));
        ((cuda_pack<TO, V> *)out)[i] = to;
    }
}

template <typename FROM, typename TO> grt_status cast(const grt_run *r, int64_t n)
{
    const FROM *in = (const FROM *)r->in[0]->data;
    TO *out = (TO *)r->out[0]->data;
    constexpr int V = 4;
    constexpr bool usual = sizeof(FROM) <= 8 && sizeof(TO) <= 8;
    int64_t done = 0;
    if (usual && cuda_aligned(in, V * sizeof(FROM) > 16 ? 16 : V * sizeof(FROM)) &&
        cuda_aligned(out, V * sizeof(TO) > 16 ? 16 : V * sizeof(TO)) && n >= V && sizeof(FROM) <= 4 &&
        sizeof(TO) <= 4) {
        done = n / V * V;
        cast_kernel<FROM, TO, sizeof(FROM) <= 4 && sizeof(TO) <= 4 ? V : 1>
            <<<cuda_grid(n / V), CUDA_BLOCK, 0, cuda_stream(r)>>>(n / V, in, out);
        CUDA_LAUNCHED();
    }
    if (done < n) {
        cast_kernel<FROM, TO, 1>
            <<<cuda_grid(n - done), CUDA_BLOCK, 0, cuda_stream(r)>>>(n - done, in + done, out + done);
        CUDA_LAUNCHED();
    }
    return GRT_OK;
}

template <typename FROM> grt_status cast_from(const grt_run *r, int64_t n)
{
    switch (r->out[0]->dtype) {
    case GRT_DTYPE_FLOAT:
        return cast<FROM, float>(r, n);
    case GRT_DTYPE_DOUBLE:
        return cast<FROM, double>(r, n);
    case GRT_DTYPE_FLOAT16:
        return cast<FROM, __half>(r, n);
    case GRT_DTYPE_BFLOAT16:
        return cast<FROM, __nv_bfloat16>(r, n);
    case GRT_DTYPE_INT8:
        return cast<FROM, int8_t>(r, n);
    case GRT_DTYPE_INT16:
        return cast<FROM, int16_t>(r, n);
    case GRT_DTYPE_INT32:
        return cast<FROM, int32_t>(r, n);
    case GRT_DTYPE_INT64:
        return cast<FROM, int64_t>(r, n);
    case GRT_DTYPE_UINT8:
        return cast<FROM, uint8_t>(r, n);
    case GRT_DTYPE_UINT16:
        return cast<FROM, uint16_t>(r, n);
    case GRT_DTYPE_UINT32:
        return cast<FROM, uint32_t>(r, n);
    case GRT_DTYPE_UINT64:
        return cast<FROM, uint64_t>(r, n);
    default:
        return cast<FROM, truth>(r, n);
    }
}

grt_status run_cast(const grt_run *r)
{
    int64_t n = grt_tensor_elements(r->in[0]);
    if (n <= 0)
        return GRT_OK;
    if (r->in[0]->dtype == r->out[0]->dtype) {
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, grt_tensor_bytes(r->in[0]),
                                 cudaMemcpyDeviceToDevice, cuda_stream(r)));
        return GRT_OK;
    }
    switch (r->in[0]->dtype) {
    case GRT_DTYPE_FLOAT:
        return cast_from<float>(r, n);
    case GRT_DTYPE_DOUBLE:
        return cast_from<double>(r, n);
    case GRT_DTYPE_FLOAT16:
        return cast_from<__half>(r, n);
    case GRT_DTYPE_BFLOAT16:
        return cast_from<__nv_bfloat16>(r, n);
    case GRT_DTYPE_INT8:
        return cast_from<int8_t>(r, n);
    case GRT_DTYPE_INT16:
        return cast_from<int16_t>(r, n);
    case GRT_DTYPE_INT32:
        return cast_from<int32_t>(r, n);
    case GRT_DTYPE_INT64:
        return cast_from<int64_t>(r, n);
    case GRT_DTYPE_UINT16:
        return cast_from<uint16_t>(r, n);
    case GRT_DTYPE_UINT32:
        return cast_from<uint32_t>(r, n);
    case GRT_DTYPE_UINT64:
        return cast_from<uint64_t>(r, n);
    default: /* UINT8, BOOL */
        return cast_from<uint8_t>(r, n);
    }
}

#define CASTABLE (GRT_SET_NUMBERS | GRT_BIT(BOOL))

bool supports_cast(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_out > 0 && grt_dtype_in(node->out[0].dtype, CASTABLE))
        return true;
    if (why)
        grt_text_add(why, "the result must be a float, integer or bool of whole bytes");
    return false;
}

/* ---- quantizing ---- */

struct quantize_state {
    int64_t axis;
};

struct quantize_shape {
    int64_t n, inner, length; /* length 1: one scale */
};

struct quantize_operands {
    const void *in, *scale, *zero;
    void *out;
    int64_t n, inner, length;
};

template <typename S, typename Q>
__global__ void __launch_bounds__(CUDA_BLOCK) quantize_kernel(quantize_operands o)
{
    constexpr float low = std::is_signed<Q>::value ? -(float)(1 << (8 * sizeof(Q) - 1)) : 0.0f;
    constexpr float high = low + (float)((1 << (8 * sizeof(Q))) - 1);
    CUDA_ITEMS (i, o.n) {
        int64_t k = o.length == 1 ? 0 : i / o.inner % o.length;
        float x = pw_widen<S>(((const S *)o.in)[i]), scale = pw_widen<S>(((const S *)o.scale)[k]);
        float q = x / scale;
        if constexpr (sizeof(S) == 2)
            q = pw_widen<S>(pw_narrow<S>(q));
        q = rintf(q) + (o.zero ? (float)((const Q *)o.zero)[k] : 0.0f);
        q = q > low ? q : low;
        ((Q *)o.out)[i] = (Q)(q < high ? q : high);
    }
}

template <typename S, typename Q>
__global__ void __launch_bounds__(CUDA_BLOCK) dequantize_kernel(quantize_operands o)
{
    CUDA_ITEMS (i, o.n) {
        int64_t k = o.length == 1 ? 0 : i / o.inner % o.length;
        float q = (float)((const Q *)o.in)[i], scale = pw_widen<S>(((const S *)o.scale)[k]);
        float zero = o.zero ? (float)((const Q *)o.zero)[k] : 0.0f;
        ((S *)o.out)[i] = pw_narrow<S>((q - zero) * scale);
    }
}

template <typename S, typename Q>
grt_status quantize(const quantize_operands &o, bool back, cudaStream_t stream)
{
    if (back)
        dequantize_kernel<S, Q><<<cuda_grid(o.n), CUDA_BLOCK, 0, stream>>>(o);
    else
        quantize_kernel<S, Q><<<cuda_grid(o.n), CUDA_BLOCK, 0, stream>>>(o);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S>
grt_status quantize_to(const quantize_operands &o, grt_dtype q, bool back, cudaStream_t stream)
{
    switch (q) {
    case GRT_DTYPE_INT8:
        return quantize<S, int8_t>(o, back, stream);
    case GRT_DTYPE_INT16:
        return quantize<S, int16_t>(o, back, stream);
    case GRT_DTYPE_UINT16:
        return quantize<S, uint16_t>(o, back, stream);
    default:
        return quantize<S, uint8_t>(o, back, stream);
    }
}

grt_status run_either(const grt_run *r, bool back)
{
    const quantize_shape *sh = (const quantize_shape *)r->shape;
    if (sh->n <= 0)
        return GRT_OK;
    quantize_operands o = {r->in[0]->data,  r->in[1]->data, r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL,
                           r->out[0]->data, sh->n,          sh->inner,
                           sh->length};
    grt_dtype q = back ? r->in[0]->dtype : r->out[0]->dtype;
    switch (r->in[1]->dtype) {
    case GRT_DTYPE_FLOAT16:
        return quantize_to<__half>(o, q, back, cuda_stream(r));
    case GRT_DTYPE_BFLOAT16:
        return quantize_to<__nv_bfloat16>(o, q, back, cuda_stream(r));
    default:
        return quantize_to<float>(o, q, back, cuda_stream(r));
    }
}

grt_status run_quantize(const grt_run *r)
{
    return run_either(r, false);
}

grt_status run_dequantize(const grt_run *r)
{
    return run_either(r, true);
}

#define REALS  (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))
#define LEVELS (GRT_BIT(INT8) | GRT_BIT(UINT8) | GRT_BIT(INT16) | GRT_BIT(UINT16))

bool supports_quantize(const grt_kernel_node *node, grt_text *why)
{
    bool back = !strcmp(node->desc->op, "DequantizeLinear");
    grt_dtype real = back ? node->out[0].dtype : node->in[0].dtype,
              level = back ? node->in[0].dtype : node->out[0].dtype;
    grt_dtype scale = grt_node_has(node, 1) ? node->in[1].dtype : GRT_DTYPE_NONE;
    int64_t precision = grt_attr_int(node->desc, "precision", 0);
    if (real == scale && grt_dtype_in(level, LEVELS) &&
        (!grt_node_has(node, 2) || node->in[2].dtype == level) &&
        (precision == 0 || precision == (int64_t)scale) && grt_attr_int(node->desc, "block_size", 0) == 0)
        return true;
    if (why)
        grt_text_add(why, "8- and 16-bit integers, with a scale of the other type, per tensor or per axis");
    return false;
}

grt_status create_quantize(const grt_kernel_node *node, void **out_state)
{
    quantize_state *s;
    GRT_TRY(cuda_state(&s));
    s->axis = grt_attr_int(node->desc, "axis", 1);
    *out_state = s;
    return GRT_OK;
}

grt_status reshape_quantize(grt_reshape *r)
{
    const quantize_state *s = (const quantize_state *)r->state;
    const grt_tensor *x = r->in[0];
    int64_t n_scales = grt_tensor_elements(r->in[1]);
    int64_t axis = grt_axis(x->rank == 1 ? 0 : s->axis, x->rank);
    bool zero = r->n_in > 2 && r->in[2];
    if ((n_scales != 1 && (axis < 0 || n_scales != x->dims[axis])) ||
        (zero && grt_tensor_elements(r->in[2]) != n_scales))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "scale, zero point and axis do not fit the input");
    quantize_shape *sh;
    GRT_TRY(cuda_state(&sh));
    sh->n = grt_tensor_elements(x);
    sh->length = n_scales;
    sh->inner = n_scales == 1 ? 1 : grt_dims_product(x->dims, (int32_t)axis + 1, x->rank);
    r->shape = sh;
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "", .op = "Cast", .types = {CASTABLE}, .supports = supports_cast, .run = run_cast},
    {.domain = "", .op = "CastLike", .types = {CASTABLE}, .supports = supports_cast, .run = run_cast},
    {.domain = "",
     .op = "QuantizeLinear",
     .types = {REALS, REALS},
     .supports = supports_quantize,
     .create = create_quantize,
     .destroy = free,
     .reshape = reshape_quantize,
     .release_shape = free,
     .run = run_quantize},
    {.domain = "",
     .op = "DequantizeLinear",
     .types = {LEVELS, REALS},
     .supports = supports_quantize,
     .create = create_quantize,
     .destroy = free,
     .reshape = reshape_quantize,
     .release_shape = free,
     .run = run_dequantize},
};

} // namespace
CUDA_KERNELS(cast, rows);

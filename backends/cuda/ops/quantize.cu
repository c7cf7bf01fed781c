/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear between floats and 8- or 16-bit integers, with one scale or one per
 * step of an axis. */
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/quantiser.cuh"
#include "backends/cuda/walk.h"

namespace
{

enum { PACK = 8, MANY = 1 << 21 /* elements: more than all threads of a GPU have at once */ };

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
    bool overlaps; /* kernels may begin before the one in front of them has ended */
};

/* Quotients are rounded to the scale's type. */
template <typename S, typename Q> __device__ __forceinline__ Q quantized(float x, float scale, float zero)
{
    constexpr float low = std::is_signed<Q>::value ? -(float)(1 << (8 * sizeof(Q) - 1)) : 0.0f;
    constexpr float high = low + (float)((1 << (8 * sizeof(Q))) - 1);
    float q = x / scale;
    if constexpr (sizeof(S) == 2)
        q = pw_widen<S>(pw_narrow<S>(q));
    q = rintf(q) + zero;
    q = q > low ? q : low;
    return (Q)(q < high ? q : high);
}

template <typename X, typename S, typename Q>
__global__ void __launch_bounds__(CUDA_BLOCK) quantize_kernel(quantize_operands o)
{
    CUDA_ITEMS (i, o.n) {
        int64_t k = o.length == 1 ? 0 : i / o.inner % o.length;
        ((Q *)o.out)[i] =
            quantized<S, Q>(pw_widen<X>(((const X *)o.in)[i]), pw_widen<S>(((const S *)o.scale)[k]),
                            o.zero ? (float)((const Q *)o.zero)[k] : 0.0f);
    }
}

/* One scale, elements in packs, of which a thread has two under way. */
template <typename X, typename S, typename Q>
__global__ void __launch_bounds__(CUDA_BLOCK) quantize_packs(quantize_operands o)
{
    overlap_let_next_begin();
    overlap_wait();
    const int64_t packs = o.n / PACK, step = (int64_t)gridDim.x * CUDA_BLOCK;
    float scale = pw_widen<S>(*(const S *)o.scale), zero = o.zero ? (float)*(const Q *)o.zero : 0.0f;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < packs; i += 2 * step) {
        const bool has_second = i + step < packs;
        cuda_pack<X, PACK> x[2];
        x[0] = ((const cuda_pack<X, PACK> *)o.in)[i];
        x[1] = ((const cuda_pack<X, PACK> *)o.in)[has_second ? i + step : i];
        /* Not computed with before: the scale is waited for together with x. */
        asm volatile("" : "+f"(scale), "+f"(zero));
        const cuda_quantiser rounds(scale, (int32_t)zero, 8 * sizeof(Q), std::is_signed<Q>::value);
#pragma unroll
        for (int which = 0; which < 2; which++) {
            cuda_pack<Q, PACK> y;
#pragma unroll
            for (int k = 0; k < PACK; k++) {
                if constexpr (sizeof(S) == 4)
                    y.v[k] = (Q)rounds(pw_widen<X>(x[which].v[k]));
                else
                    y.v[k] = quantized<S, Q>(pw_widen<X>(x[which].v[k]), scale, zero);
            }
            if (which == 0 || has_second)
                ((cuda_pack<Q, PACK> *)o.out)[which ? i + step : i] = y;
        }
    }
}

template <typename Y, typename S, typename Q>
__global__ void __launch_bounds__(CUDA_BLOCK) dequantize_kernel(quantize_operands o)
{
    CUDA_ITEMS (i, o.n) {
        int64_t k = o.length == 1 ? 0 : i / o.inner % o.length;
        float q = (float)((const Q *)o.in)[i], scale = pw_widen<S>(((const S *)o.scale)[k]);
        float zero = o.zero ? (float)((const Q *)o.zero)[k] : 0.0f;
        ((Y *)o.out)[i] = pw_narrow<Y>((q - zero) * scale);
    }
}

/* One scale, elements in packs. */
template <typename Y, typename S, typename Q>
__global__ void __launch_bounds__(CUDA_BLOCK) dequantize_packs(quantize_operands o)
{
    overlap_let_next_begin();
    overlap_wait();
    const float scale = pw_widen<S>(*(const S *)o.scale), zero = o.zero ? (float)*(const Q *)o.zero : 0.0f;
    CUDA_ITEMS (i, o.n / PACK) {
        const cuda_pack<Q, PACK> x = ((const cuda_pack<Q, PACK> *)o.in)[i];
        cuda_pack<Y, PACK> y;
#pragma unroll
        for (int k = 0; k < PACK; k++)
            y.v[k] = pw_narrow<Y>(((float)x.v[k] - zero) * scale);
        ((cuda_pack<Y, PACK> *)o.out)[i] = y;
    }
}

/* X: the floats, which are results on the way back. */
template <typename X, typename S, typename Q>
grt_status cuda_quantize(const quantize_operands &o, bool back, cudaStream_t stream)
{
    const size_t in_size = (back ? sizeof(Q) : sizeof(X)) * PACK,
                 out_size = (back ? sizeof(X) : sizeof(Q)) * PACK;
    const bool packs =
        o.length == 1 && o.n % PACK == 0 && cuda_aligned(o.in, in_size) && cuda_aligned(o.out, out_size);
    if (back && packs)
        overlap_launch(o.overlaps, dequantize_packs<X, S, Q>, cuda_grid(o.n / PACK), CUDA_BLOCK, 0, stream,
                       o);
    else if (back)
        dequantize_kernel<X, S, Q><<<cuda_grid(o.n), CUDA_BLOCK, 0, stream>>>(o);
    else if (packs)
        overlap_launch(o.overlaps, quantize_packs<X, S, Q>,
                       cuda_grid(o.n > MANY ? o.n / PACK / 2 : o.n / PACK), CUDA_BLOCK, 0, stream, o);
    else
        quantize_kernel<X, S, Q><<<cuda_grid(o.n), CUDA_BLOCK, 0, stream>>>(o);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename X, typename S>
grt_status quantize_to(const quantize_operands &o, grt_dtype q, bool back, cudaStream_t stream)
{
    switch (q) {
    case GRT_DTYPE_INT8:
        return cuda_quantize<X, S, int8_t>(o, back, stream);
    case GRT_DTYPE_INT16:
        return cuda_quantize<X, S, int16_t>(o, back, stream);
    case GRT_DTYPE_UINT16:
        return cuda_quantize<X, S, uint16_t>(o, back, stream);
    default:
        return cuda_quantize<X, S, uint8_t>(o, back, stream);
    }
}

grt_status run_either(const grt_run *r, bool back)
{
    const quantize_shape *sh = (const quantize_shape *)r->shape;
    if (sh->n <= 0)
        return GRT_OK;
    quantize_operands o = {r->in[0]->data,
                           r->in[1]->data,
                           r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL,
                           r->out[0]->data,
                           sh->n,
                           sh->inner,
                           sh->length,
                           ((const cuda_device *)r->device)->prop.major >= 9};
    const grt_dtype q = back ? r->in[0]->dtype : r->out[0]->dtype,
                    real = back ? r->out[0]->dtype : r->in[0]->dtype;
    switch (r->in[1]->dtype) {
    case GRT_DTYPE_FLOAT16:
        return quantize_to<__half, __half>(o, q, back, cuda_stream(r));
    case GRT_DTYPE_BFLOAT16:
        return quantize_to<__nv_bfloat16, __nv_bfloat16>(o, q, back, cuda_stream(r));
    default:
        break;
    }
    if (real == GRT_DTYPE_FLOAT16)
        return quantize_to<__half, float>(o, q, back, cuda_stream(r));
    if (real == GRT_DTYPE_BFLOAT16)
        return quantize_to<__nv_bfloat16, float>(o, q, back, cuda_stream(r));
    return quantize_to<float, float>(o, q, back, cuda_stream(r));
}

grt_status cuda_run_quantize(const grt_run *r)
{
    return run_either(r, false);
}

grt_status cuda_run_dequantize(const grt_run *r)
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
    const bool fits = real == scale || (scale == GRT_DTYPE_FLOAT && (back || precision == GRT_DTYPE_FLOAT) &&
                                        grt_dtype_in(real, REALS));
    if (fits && grt_dtype_in(level, LEVELS) && (!grt_node_has(node, 2) || node->in[2].dtype == level) &&
        (precision == 0 || precision == (int64_t)scale) && grt_attr_int(node->desc, "block_size", 0) == 0)
        return true;
    if (why)
        grt_text_add(why, "8- and 16-bit integers, with a scale of the other type, per tensor or per axis");
    return false;
}

grt_status cuda_create_quantize(const grt_kernel_node *node, void **out_state)
{
    quantize_state *s;
    GRT_TRY(cuda_state(&s));
    s->axis = grt_attr_int(node->desc, "axis", 1);
    *out_state = s;
    return GRT_OK;
}

grt_status cuda_quantize_fail_scale(const grt_reshape *r)
{
    char input[GRT_TYPE_TEXT_SIZE], scale[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(
        r->desc, GRT_STATUS_INVALID_ARGUMENT,
        "the scale is %s and the input %s; expected one element, or one for each index of axis "
        "%lld, and as many zero points",
        grt_tensor_text(r->in[1], scale), grt_tensor_text(r->in[0], input),
        (long long)((const quantize_state *)r->state)->axis);
}

grt_status cuda_reshape_quantize(grt_reshape *r)
{
    const quantize_state *s = (const quantize_state *)r->state;
    const grt_tensor *x = r->in[0];
    int64_t n_scales = grt_tensor_elements(r->in[1]);
    int64_t axis = grt_axis(x->rank == 1 ? 0 : s->axis, x->rank);
    bool zero = r->n_in > 2 && r->in[2];
    if ((n_scales != 1 && (axis < 0 || n_scales != x->dims[axis])) ||
        (zero && grt_tensor_elements(r->in[2]) != n_scales))
        return cuda_quantize_fail_scale(r);
    quantize_shape *sh;
    GRT_TRY(cuda_state(&sh));
    sh->n = grt_tensor_elements(x);
    sh->length = n_scales;
    sh->inner = n_scales == 1 ? 1 : grt_dims_product(x->dims, (int32_t)axis + 1, x->rank);
    r->shape = sh;
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "QuantizeLinear",
     .types = {REALS, REALS},
     .supports = supports_quantize,
     .create = cuda_create_quantize,
     .destroy = free,
     .reshape = cuda_reshape_quantize,
     .release_shape = free,
     .run = cuda_run_quantize},
    {.domain = "",
     .op = "DequantizeLinear",
     .types = {LEVELS, REALS},
     .supports = supports_quantize,
     .create = cuda_create_quantize,
     .destroy = free,
     .reshape = cuda_reshape_quantize,
     .release_shape = free,
     .run = cuda_run_dequantize},
};

} // namespace
CUDA_KERNELS(quantize, rows);

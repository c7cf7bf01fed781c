/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear where 8-bit floats or elements of less than a byte take part, or blocks
 * of scales, or types that quantize.cu has no kernel for. */
#include "backends/cuda/narrow.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/quantiser.cuh"

namespace
{

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

grt_status cuda_create_narrow_quantize(const grt_kernel_node *node, void **out_state)
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

grt_status cuda_fail_narrow_scale(const grt_reshape *r)
{
    const quantize_state *s = (const quantize_state *)r->state;
    char input[GRT_TYPE_TEXT_SIZE], scale[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(
        r->desc, GRT_STATUS_INVALID_ARGUMENT,
        "the scale is %s and the input %s; expected one element, one for each index of axis %lld, "
        "or one for each block of %lld, and as many zero points",
        grt_tensor_text(r->in[1], scale), grt_tensor_text(r->in[0], input), (long long)s->axis,
        (long long)s->block);
}

grt_status cuda_reshape_narrow_quantize(grt_reshape *r)
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
        return cuda_fail_narrow_scale(r);
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

enum { FLOAT8_PACK = 8, FLOAT8_THREADS = 256 };

/* One scale, eight numbers a thread. */
template <class X>
__global__ void __launch_bounds__(FLOAT8_THREADS)
    quantize_float8(const X *x, const float *scale, uint8_t *y, int64_t packs, bool is_e5m2)
{
    struct alignas(16) pack {
        X v[FLOAT8_PACK];
    };
    overlap_let_next_begin();
    overlap_wait();
    const cuda_quotient quotient(*scale);
    const int64_t i = (int64_t)blockIdx.x * FLOAT8_THREADS + threadIdx.x;
    if (i >= packs)
        return;
    const pack from = ((const pack *)x)[i];
    uint32_t word[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const X *v = from.v + 4 * k;
        word[k] = cuda_float8_pair(quotient(cuda_widen(v[0])), quotient(cuda_widen(v[1])), is_e5m2) |
                  cuda_float8_pair(quotient(cuda_widen(v[2])), quotient(cuda_widen(v[3])), is_e5m2) << 16;
    }
    ((uint2 *)y)[i] = make_uint2(word[0], word[1]);
}

template <class X> void launch_float8(const grt_run *r, int64_t packs)
{
    const int64_t blocks = (packs + FLOAT8_THREADS - 1) / FLOAT8_THREADS;
    const bool overlaps = ((const cuda_device *)r->device)->prop.major >= 9;
    overlap_launch(overlaps, quantize_float8<X>, (unsigned)blocks, FLOAT8_THREADS, 0, cuda_stream(r),
                   (const X *)r->in[0]->data, (const float *)r->in[1]->data, (uint8_t *)r->out[0]->data,
                   packs, r->out[0]->dtype == GRT_DTYPE_FLOAT8E5M2);
}

/* What steps of float8 read, by a kernel of its own. False: it is another form. */
bool run_float8(const grt_run *r, const quantize_state *s, grt_dtype precision)
{
    const int64_t n = grt_tensor_elements(r->out[0]), packs = n / FLOAT8_PACK;
    const grt_dtype from = r->in[0]->dtype;
    if (!grt_dtype_in(r->out[0]->dtype, GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E5M2)) || !s->saturate ||
        !((const quantize_shape *)r->shape)->single || r->in[1]->dtype != GRT_DTYPE_FLOAT ||
        precision != GRT_DTYPE_FLOAT || n % FLOAT8_PACK || !n || packs > INT32_MAX ||
        !cuda_is_vector(r->in[0]->data) || !cuda_is_vector(r->out[0]->data))
        return false;
    if (from == GRT_DTYPE_FLOAT)
        launch_float8<float>(r, packs);
    else if (from == GRT_DTYPE_FLOAT16)
        launch_float8<__half>(r, packs);
    else if (from == GRT_DTYPE_BFLOAT16)
        launch_float8<__nv_bfloat16>(r, packs);
    else
        return false;
    return true;
}

grt_status cuda_run_narrow_quantize(const grt_run *r)
{
    const quantize_state *s = (const quantize_state *)r->state;
    operands o = operands_of(r);
    grt_dtype to = r->out[0]->dtype, precision = s->precision ? s->precision : o.scale_type;
    if (run_float8(r, s, precision)) {
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    bool whole = grt_dtype_in(to, GRT_SET_INTS | (GRT_SET_SUBBYTE & ~GRT_BIT(FLOAT4E2M1)));
    bool is_signed = grt_dtype_in(to, GRT_SET_SIGNED | GRT_BIT(INT4) | GRT_BIT(INT2)),
         shifts = whole || to == GRT_DTYPE_FLOAT4E2M1;
    float span = ldexpf(1.0f, (int)grt_dtype_bits(to)), low = is_signed ? -span / 2 : 0,
          high = low + span - 1;
    return cuda_make(r, r->out[0], cuda_rounding{s->saturate, GRT_ROUND_NEAREST}, [=] __device__(int64_t i) {
        int64_t k = o.sh.scale(i);
        float x = rounded(precision, cuda_to_float(cuda_any_load(o.x_type, o.x, i)));
        x = rounded(precision, x / cuda_to_float(cuda_any_load(o.scale_type, o.scale, k)));
        float zero = shifts && o.zero ? cuda_to_float(cuda_any_load(o.zero_type, o.zero, k)) : 0.0f;
        if (!whole)
            return cuda_real(shifts ? x + zero : x);
        float y = rintf(x) + zero;
        y = y > low ? y : low;
        return cuda_whole((int64_t)(y < high ? y : high));
    });
}

grt_status cuda_run_narrow_dequantize(const grt_run *r)
{
    operands o = operands_of(r);
    return cuda_make(r, r->out[0], cuda_rounding{true, GRT_ROUND_NEAREST}, [=] __device__(int64_t i) {
        int64_t k = o.sh.scale(i);
        float zero = o.zero ? cuda_to_float(cuda_any_load(o.zero_type, o.zero, k)) : 0.0f;
        return cuda_real((cuda_to_float(cuda_any_load(o.x_type, o.x, i)) - zero) *
                         cuda_to_float(cuda_any_load(o.scale_type, o.scale, k)));
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "QuantizeLinear",
     .types = {CUDA_CODES, CUDA_CODES, CUDA_CODES},
     .supports = cuda_makes_codes,
     .create = cuda_create_narrow_quantize,
     .destroy = free,
     .reshape = cuda_reshape_narrow_quantize,
     .release_shape = free,
     .run = cuda_run_narrow_quantize},
    {.domain = "",
     .op = "DequantizeLinear",
     .types = {CUDA_CODES, CUDA_CODES, CUDA_CODES},
     .supports = cuda_makes_codes,
     .create = cuda_create_narrow_quantize,
     .destroy = free,
     .reshape = cuda_reshape_narrow_quantize,
     .release_shape = free,
     .run = cuda_run_narrow_dequantize},
};

} // namespace
CUDA_KERNELS(quantize_narrow, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: in float32, block by block. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/qlinear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
    int64_t axis, block;
    bool saturate;
    grt_dtype precision; /* of the division; NONE: the scale's */
} state;

/* Which scale element i of the input uses. The input is [outer, length, inner] around the axis, the scale
 * [outer or 1, steps, inner or 1], each step being `block` long. */
typedef struct shape {
    bool single; /* one scale for everything */
    bool blocked;
    int64_t n, inner, length, steps, block;
    size_t n_scales;
    float *scale, *zero; /* as float32; zero NULL: none */
} shape;

static grt_status quantize_create(const grt_kernel_node *node, void **out_state)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->axis = grt_attr_int(node->desc, "axis", 1);
    s->block = grt_attr_int(node->desc, "block_size", 0);
    s->saturate = grt_attr_int(node->desc, "saturate", 1) != 0;
    s->precision = (grt_dtype)grt_attr_int(node->desc, "precision", 0);
    *out_state = s;
    return GRT_OK;
}

static void quantize_release(void *object)
{
    shape *sh = object;
    if (sh) {
        grt_account_free(sh->scale);
        grt_account_free(sh->zero);
    }
    free(sh);
}

static grt_status quantize_reshape(grt_reshape *r)
{
    const state *s = r->state;
    const grt_tensor *x = r->in[0], *scale = r->in[1];
    shape *sh = calloc(1, sizeof *sh);
    if (!sh)
        return grt_fail_memory(sizeof *sh);
    int64_t n_scales = grt_tensor_elements(scale);
    int64_t axis = grt_axis(x->rank == 1 ? 0 : s->axis, x->rank);
    sh->n = grt_tensor_elements(x);
    sh->single = n_scales == 1 && !s->block;
    sh->blocked = s->block > 0;
    sh->n_scales = (size_t)n_scales;
    sh->inner = sh->length = sh->steps = sh->block = 1;
    if (!sh->single && axis >= 0) {
        sh->inner = grt_dims_product(x->dims, (int32_t)axis + 1, x->rank);
        sh->length = x->dims[axis];
        sh->block = sh->blocked ? s->block : 1;
        sh->steps = sh->blocked ? scale->dims[axis] : sh->length;
    }
    const bool zeros = r->n_in > 2 && r->in[2];
    const size_t bytes = sh->n_scales * sizeof *sh->scale;
    grt_status status = grt_reshape_alloc(r, bytes, (void **)&sh->scale);
    if (status == GRT_OK && zeros)
        status = grt_reshape_alloc(r, bytes, (void **)&sh->zero);
    int64_t outer = axis >= 0 ? grt_dims_product(x->dims, 0, (int32_t)axis) : 1;
    bool fits =
        sh->single ||
        (axis >= 0 && (sh->blocked ? scale->rank == x->rank && n_scales == outer * sh->steps * sh->inner &&
                                         sh->length / s->block + (sh->length % s->block != 0) <= sh->steps
                                   : n_scales == sh->length));
    if (status == GRT_OK && (!fits || (zeros && grt_tensor_elements(r->in[2]) != n_scales)))
        status = grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                             "scale, zero point and axis do not fit the input");
    if (status != GRT_OK) {
        quantize_release(sh);
        return status;
    }
    r->shape = sh;
    return GRT_OK;
}

/* All of a tensor as float32. */
static void load_all(const grt_tensor *t, float *out)
{
    cpu_convert_options none = {true, GRT_ROUND_NEAREST};
    int64_t n = grt_tensor_elements(t);
    for (int64_t begin = 0; begin < n; begin += CONVERT_BLOCK) {
        int64_t count = n - begin < CONVERT_BLOCK ? n - begin : CONVERT_BLOCK;
        if (t->dtype == GRT_DTYPE_FLOAT)
            memcpy(out + begin, (const float *)t->data + begin, (size_t)count * sizeof *out);
        else
            cpu_convert(t->dtype, t->data, GRT_DTYPE_FLOAT, out, begin, count, none);
    }
}

/* Scale and zero point of the elements begin.. . */
static void quantize_gather(const shape *sh, int64_t begin, int64_t n, float *scale, float *zero)
{
    int64_t row = sh->length * sh->inner;
    int64_t outer = begin / row, k = begin % row / sh->inner, i = begin % sh->inner;
    for (int64_t at = 0; at < n;) {
        int64_t run = sh->inner - i < n - at ? sh->inner - i : n - at;
        if (sh->blocked) {
            int64_t from = (outer * sh->steps + k / sh->block) * sh->inner + i;
            for (int64_t j = 0; j < run; j++) {
                scale[at + j] = sh->scale[from + j];
                zero[at + j] = sh->zero ? sh->zero[from + j] : 0.0f;
            }
        } else {
            float s = sh->scale[k], z = sh->zero ? sh->zero[k] : 0.0f;
            for (int64_t j = 0; j < run; j++) {
                scale[at + j] = s;
                zero[at + j] = z;
            }
        }
        at += run;
        i = 0;
        if (++k == sh->length) {
            k = 0;
            outer++;
        }
    }
}

typedef struct range {
    float low, high;
} range;

static range cpu_quantize_range_of(grt_dtype dtype)
{
    float half = ldexpf(1.0f, (int)grt_dtype_bits(dtype) - 1);
    bool is_signed = grt_dtype_in(dtype, GRT_SET_SIGNED | GRT_BIT(INT4) | GRT_BIT(INT2));
    return is_signed ? (range){-half, half - 1.0f} : (range){0.0f, 2.0f * half - 1.0f};
}

/* rintf for |x| < 2^22, without a call. */
static inline float round_even(float x)
{
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

/* Whole numbers within the plain type's range. */
static void store_integers(grt_dtype plain, int64_t n, const float *x, void *out)
{
    if (plain == GRT_DTYPE_INT8 || plain == GRT_DTYPE_UINT8)
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = (uint8_t)(int32_t)x[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)out)[i] = (uint16_t)(int32_t)x[i];
}

static bool is_integer(grt_dtype dtype)
{
    return grt_dtype_in(dtype, GRT_SET_INTS | (GRT_SET_SUBBYTE & ~GRT_BIT(FLOAT4E2M1)));
}

/* Round values to a 16-bit float type and back. */
static void quantize_round_to(grt_dtype dtype, int64_t n, float *x)
{
    uint16_t bits[CONVERT_BLOCK];
    if (dtype != GRT_DTYPE_FLOAT16 && dtype != GRT_DTYPE_BFLOAT16)
        return;
    cpu_narrow(dtype, x, n, bits, 0, (cpu_convert_options){0});
    cpu_widen(dtype, bits, 0, n, x);
}

/* float32 and 8-bit numbers with one scale. */
static bool is_byte_pair(const grt_run *r, const shape *sh, const grt_tensor *real, const grt_tensor *bytes)
{
    const state *s = r->state;
    return sh->single && real->dtype == GRT_DTYPE_FLOAT && r->in[1]->dtype == GRT_DTYPE_FLOAT &&
           (!s->precision || s->precision == GRT_DTYPE_FLOAT) &&
           grt_dtype_in(bytes->dtype, GRT_BIT(UINT8) | GRT_BIT(INT8));
}

static void quantize_block(const grt_run *r, const shape *sh, int64_t begin, int64_t n)
{
    if (is_byte_pair(r, sh, r->in[0], r->out[0])) {
        cpu_quantise_bytes((const float *)r->in[0]->data + begin, n, sh->scale[0],
                           sh->zero ? (int32_t)sh->zero[0] : 0, r->out[0]->dtype == GRT_DTYPE_INT8,
                           (uint8_t *)r->out[0]->data + begin);
        return;
    }
    const state *s = r->state;
    float x[CONVERT_BLOCK], scale[CONVERT_BLOCK], zero[CONVERT_BLOCK];
    cpu_convert_options options = {s->saturate, GRT_ROUND_NEAREST};
    grt_dtype dtype = r->out[0]->dtype, plain = cpu_plain_dtype(dtype);
    grt_dtype precision = s->precision ? s->precision : r->in[1]->dtype;
    if (cpu_plain_dtype(r->in[0]->dtype) == GRT_DTYPE_FLOAT)
        cpu_widen(r->in[0]->dtype, r->in[0]->data, begin, n, x);
    else
        cpu_convert_plain(r->in[0]->dtype, (const int32_t *)r->in[0]->data + begin, GRT_DTYPE_FLOAT, x, n);
    if (!sh->single)
        quantize_gather(sh, begin, n, scale, zero);
    quantize_round_to(precision, n, x);
    if (sh->single) {
        float divisor = sh->scale[0];
        for (int64_t i = 0; i < n; i++)
            x[i] /= divisor;
    } else {
        for (int64_t i = 0; i < n; i++)
            x[i] /= scale[i];
    }
    quantize_round_to(precision, n, x);
    if (is_integer(dtype)) {
        range limits = cpu_quantize_range_of(dtype);
        float shift = sh->single && sh->zero ? sh->zero[0] : 0.0f;
        for (int64_t i = 0; i < n; i++) {
            float y =
                x[i] > -0x1p20f ? x[i] : -0x1p20f; /* far beyond every range: keeps the rounding exact */
            y = round_even(y < 0x1p20f ? y : 0x1p20f) + (sh->single ? shift : zero[i]);
            y = y > limits.low ? y : limits.low;
            x[i] = y < limits.high ? y : limits.high;
        }
        uint16_t whole[CONVERT_BLOCK];
        store_integers(plain, n, x, whole);
        cpu_narrow(dtype, whole, n, r->out[0]->data, begin, options);
        return;
    }
    if (dtype == GRT_DTYPE_FLOAT4E2M1 && sh->zero)
        for (int64_t i = 0; i < n; i++)
            x[i] += sh->single ? sh->zero[0] : zero[i];
    cpu_narrow(dtype, x, n, r->out[0]->data, begin, options);
}

static void dequantize_block(const grt_run *r, const shape *sh, int64_t begin, int64_t n)
{
    if (is_byte_pair(r, sh, r->out[0], r->in[0])) {
        cpu_dequantise_bytes((const uint8_t *)r->in[0]->data + begin, n, sh->scale[0],
                             sh->zero ? (int32_t)sh->zero[0] : 0, r->in[0]->dtype == GRT_DTYPE_INT8,
                             (float *)r->out[0]->data + begin);
        return;
    }
    float x[CONVERT_BLOCK], scale[CONVERT_BLOCK], zero[CONVERT_BLOCK];
    cpu_convert_options options = {true, GRT_ROUND_NEAREST};
    grt_dtype dtype = r->in[0]->dtype, plain = cpu_plain_dtype(dtype), to = r->out[0]->dtype;
    if (plain == GRT_DTYPE_FLOAT) {
        cpu_widen(dtype, r->in[0]->data, begin, n, x);
    } else if (plain != dtype) {
        uint8_t bytes[CONVERT_BLOCK];
        cpu_widen(dtype, r->in[0]->data, begin, n, bytes);
        cpu_convert_plain(plain, bytes, GRT_DTYPE_FLOAT, x, n);
    } else {
        cpu_convert_plain(plain, (const char *)r->in[0]->data + (size_t)begin * grt_dtype_size(dtype),
                          GRT_DTYPE_FLOAT, x, n);
    }
    if (sh->single) {
        float factor = sh->scale[0], shift = sh->zero ? sh->zero[0] : 0.0f;
        for (int64_t i = 0; i < n; i++)
            x[i] = (x[i] - shift) * factor;
    } else {
        quantize_gather(sh, begin, n, scale, zero);
        for (int64_t i = 0; i < n; i++)
            x[i] = (x[i] - zero[i]) * scale[i];
    }
    if (to == GRT_DTYPE_DOUBLE)
        cpu_convert_plain(GRT_DTYPE_FLOAT, x, to, (double *)r->out[0]->data + begin, n);
    else
        cpu_narrow(to, x, n, r->out[0]->data, begin, options);
}

static int64_t block_size(int64_t n, int64_t block)
{
    const int64_t left = n - block * CONVERT_BLOCK;
    return left < CONVERT_BLOCK ? left : CONVERT_BLOCK;
}

static void quantize_run_blocks(const grt_run *r,
                                void (*block)(const grt_run *r, const shape *sh, int64_t begin, int64_t n))
{
    shape *sh = r->shape;
    load_all(r->in[1], sh->scale);
    if (sh->zero)
        load_all(r->in[2], sh->zero);
    int64_t blocks = (sh->n + CONVERT_BLOCK - 1) / CONVERT_BLOCK;
    int32_t useful = sh->n < CPU_GRAIN ? 1 : r->threads;
#pragma omp parallel for num_threads(useful) if (useful > 1) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t begin = b * CONVERT_BLOCK,
                count = sh->n - begin < CONVERT_BLOCK ? sh->n - begin : CONVERT_BLOCK;
        block(r, sh, begin, count);
    }
}

static grt_status run_quantize(const grt_run *r)
{
    quantize_run_blocks(r, quantize_block);
    return GRT_OK;
}

static grt_status run_dequantize(const grt_run *r)
{
    quantize_run_blocks(r, dequantize_block);
    return GRT_OK;
}

static grt_status run_dynamic(const grt_run *r)
{
    const float *x = r->in[0]->data;
    uint8_t *y = r->out[0]->data;
    int64_t n = grt_tensor_elements(r->in[0]);
    float low = 0.0f, high = 0.0f; /* the range always holds 0 */
    const int64_t blocks = (n + CONVERT_BLOCK - 1) / CONVERT_BLOCK;
#pragma omp parallel for num_threads(r->threads) if (n >= CPU_GRAIN) reduction(min                  \
                                                                               : low) reduction(max \
                                                                                                : high)
    for (int64_t b = 0; b < blocks; b++)
        cpu_widen_range(x + b * CONVERT_BLOCK, block_size(n, b), &low, &high);
    float scale = (high - low) / 255.0f;
    scale = scale > 0.0f ? scale : 1.0f; /* all zeros: any scale is right */
    float zero = rintf(-low / scale);
    zero = zero > 0.0f ? fminf(zero, 255.0f) : 0.0f; /* 0 also if infinities gave NaN */
    *(float *)r->out[1]->data = scale;
    *(uint8_t *)r->out[2]->data = (uint8_t)zero;
#pragma omp parallel for num_threads(r->threads) if (n >= CPU_GRAIN)
    for (int64_t b = 0; b < blocks; b++)
        cpu_quantise_bytes(x + b * CONVERT_BLOCK, block_size(n, b), scale, (int32_t)zero, false,
                           y + b * CONVERT_BLOCK);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "QuantizeLinear",
     .create = quantize_create,
     .destroy = free,
     .reshape = quantize_reshape,
     .release_shape = quantize_release,
     .run = run_quantize},
    {.domain = "",
     .op = "DequantizeLinear",
     .create = quantize_create,
     .destroy = free,
     .reshape = quantize_reshape,
     .release_shape = quantize_release,
     .run = run_dequantize},
    {.domain = "", .op = "DynamicQuantizeLinear", .types = {GRT_BIT(FLOAT)}, .run = run_dynamic},
};
CPU_KERNELS(quantize, rows);

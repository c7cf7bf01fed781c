/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and graphrt::MatMul by our own kernel (gemm.h), else on cuBLASLt (lt_matmul.h).
 *
 * Batch dims become one strided batch as far as both inputs allow; an odometer on the host walks the rest.
 * float32 is strict unless the node's attribute math says "tf32". */
#include "backends/cuda/epilogue.h"
#include "backends/cuda/gemm_node.h"
#include "backends/cuda/lt_matmul.h"
#include "backends/cuda/lt_start.h"
#include "backends/cuda/number.cuh"
#include "backends/shared/matmul.h"

#include <stdlib.h>

typedef struct matmul_state {
    bool is_gemm, tf32;
    float alpha, beta;
    grt_act act;
    size_t workspace_cap;
} matmul_state;

/* How bias, residual and Gemm's C reach the result. */
typedef struct matmul_shape {
    bool is_own; /* by our own kernel */
    cuda_gemm own;
    cuda_lt_plan *plan; /* NULL: nothing to multiply, or our own kernel does */
    grt_matmul m;
    grt_dtype dtype;
    bool spread_c;                       /* Gemm's C is first spread over the result */
    bool fused_bias, fused_act, fused_c; /* by the library: bias, activation, residual or C through beta */
} matmul_shape;

static bool cuda_matmul_same_types(const grt_kernel_node *node, grt_text *why)
{
    for (int32_t i = 1; i < node->n_in; i++)
        if (grt_node_has(node, i) && node->in[i].dtype != node->in[0].dtype) {
            if (why)
                grt_text_add(why, "input %d is %s and input 0 is %s; supported are inputs of one type", i,
                             grt_dtype_name(node->in[i].dtype), grt_dtype_name(node->in[0].dtype));
            return false;
        }
    return true;
}

static bool cuda_matmul_fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return cuda_matmul_same_types(node, why) && grt_act_read(node->desc, &act, why);
}

static grt_status cuda_matmul_create(const grt_kernel_node *node, void **out_state)
{
    cuda_device *device = (cuda_device *)node->device;
    const cuda_blas *blas; /* fail now if cuBLASLt is missing */
    const bool tf32 = !strcmp(grt_attr_string(node->desc, "math", ""), "tf32");
    if (!cuda_gemm_on(&device->prop) || !cuda_gemm_takes(node)) {
        cuda_lt_start_type(device, node->in[0].dtype, tf32);
        GRT_TRY(cuda_blas_get(device->libraries, &blas));
    }
    matmul_state *state = (matmul_state *)calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->is_gemm = grt_op_is(desc, "", "Gemm");
    state->tf32 = tf32;
    state->alpha = grt_attr_float(desc, state->is_gemm ? "alpha" : "scale", 1.0f);
    state->beta = state->is_gemm ? grt_attr_float(desc, "beta", 1.0f) : 1.0f;
    if (grt_op_is(desc, "graphrt", "MatMul"))
        grt_act_read(desc, &state->act, NULL);
    state->workspace_cap = (size_t)(device->prop.major >= 9 ? 32 : 4) << 20;
    *out_state = state;
    return GRT_OK;
}

static void cuda_matmul_release_shape(void *data)
{
    matmul_shape *s = (matmul_shape *)data;
    if (s)
        cuda_lt_plan_release(s->plan);
    free(s);
}

/* Alignment: the largest power of two up to 16 that divides all strides between calls. */
static int64_t common_alignment(const matmul_shape *s)
{
    const int64_t size = (int64_t)grt_dtype_size(s->dtype);
    int64_t bits = 16;
    if (s->m.calls > 1)
        bits |= s->m.call_c * size;
    for (int32_t i = 0; i < s->m.outer_rank; i++)
        bits |=
            s->m.step_a[i] * grt_matrix_size(s->m.a) * size | s->m.step_b[i] * grt_matrix_size(s->m.b) * size;
    return bits & -bits;
}

/* The part of the epilogue that the library can do. */
static void choose_fusions(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const bool wide = s->dtype == GRT_DTYPE_DOUBLE, bias = grt_reshape_in(r, GRT_MATMUL_BIAS);
    s->fused_bias =
        bias && !wide &&
        (!state->is_gemm || (state->beta == 1.0f && s->m.c.rows == 1 && s->m.c.cols == s->m.n && s->m.m > 1));
    /* The library has the tanh form of GELU. It differs from the exact one by at most 5e-4, the rounding of
     * float16 at 1. */
    const bool narrow = s->dtype == GRT_DTYPE_FLOAT16 || s->dtype == GRT_DTYPE_BFLOAT16;
    s->fused_act = !wide && (state->act.kind == GRT_ACT_RELU || state->act.kind == GRT_ACT_GELU_TANH ||
                             (narrow && state->act.kind == GRT_ACT_GELU_ERF));
    /* A bias that the library does not add must come before the activation. */
    s->fused_act = s->fused_act && (!bias || s->fused_bias);
    if (state->is_gemm && bias && !s->fused_bias && state->beta != 0.0f) {
        s->fused_c = true;
        s->spread_c = s->m.c.rows != s->m.m || s->m.c.cols != s->m.n;
    }
    if (grt_reshape_in(r, GRT_MATMUL_RESIDUAL))
        s->fused_c = true;
}

static grt_status cuda_matmul_try_plan(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    cuda_lt_matmul m = {};
    m.dtype = s->dtype;
    m.tf32 = state->tf32;
    m.trans_a = s->m.trans_a;
    m.trans_b = s->m.trans_b;
    m.m = s->m.m;
    m.n = s->m.n;
    m.k = s->m.k;
    m.batch = s->m.batch;
    m.stride_a = s->m.stride_a * grt_matrix_size(s->m.a);
    m.stride_b = s->m.stride_b * grt_matrix_size(s->m.b);
    m.bias = s->fused_bias;
    m.stride_bias = s->m.bias_rows ? s->m.n : 0;
    if (s->fused_act)
        m.act = state->act.kind == GRT_ACT_RELU ? CUDA_LT_RELU : CUDA_LT_GELU;
    m.adds_c = s->fused_c;
    m.alignment = common_alignment(s);
    m.workspace_cap = state->workspace_cap;
    return cuda_lt_plan_create((cuda_device *)r->device, r->desc, &m, r->trial, &s->plan);
}

/* With all that the library can add, else bare. */
static grt_status cuda_matmul_plan(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    choose_fusions(r, s);
    GRT_TRY(cuda_matmul_try_plan(r, s));
    if (!s->plan && (s->fused_bias || s->fused_act)) {
        if (state->is_gemm && s->fused_bias) {
            s->fused_c = true;
            s->spread_c = s->m.c.rows != s->m.m;
        }
        s->fused_bias = s->fused_act = false;
        GRT_TRY(cuda_matmul_try_plan(r, s));
    }
    if (!s->plan)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "cuBLASLt has no algorithm for a %s product of %lld x %lld x %lld, batch %lld",
                           grt_dtype_name(s->dtype), (long long)s->m.m, (long long)s->m.k, (long long)s->m.n,
                           (long long)s->m.batch);
    return GRT_OK;
}

static grt_status cuda_matmul_choose(const grt_reshape *r, matmul_shape *s)
{
    const cudaDeviceProp *prop = &((const cuda_device *)r->device)->prop;
    s->is_own = cuda_gemm_on(prop) && cuda_gemm_of_matmul(r, &s->m, prop->multiProcessorCount, &s->own);
    if (!s->is_own)
        return cuda_matmul_plan(r, s);
    cuda_gemm_bind(&s->own);
    return GRT_OK;
}

static grt_status cuda_matmul_reshape(grt_reshape *r)
{
    matmul_shape *s = (matmul_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->dtype = r->in[0]->dtype;
    grt_status status = grt_matmul_fit(r, &s->m);
    if (status == GRT_OK && s->m.n_c > 0 && s->m.k > 0)
        status = cuda_matmul_choose(r, s);
    if (status != GRT_OK) {
        cuda_matmul_release_shape(s);
        return status;
    }
    if (s->plan && cuda_lt_plan_workspace(s->plan))
        r->workspace_bytes = cuda_lt_plan_workspace(s->plan) + CUDA_LT_WORKSPACE_ALIGNMENT;
    r->shape = s;
    return GRT_OK;
}

template <class T> __global__ void spread(const T *c, T *y, int64_t m, int64_t n, int64_t rows, int64_t cols)
{
    CUDA_EACH(i, m * n) y[i] = c[(rows > 1 ? i / n * cols : 0) + (cols > 1 ? i % n : 0)];
}

template <class T> __global__ void scale(T *y, int64_t n, float factor)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, n) y[i] = cuda_narrow<T, W>(cuda_widen(y[i]) * (W)factor);
}

template <class T>
static void launch_spread(const matmul_shape *s, const void *c, void *y, cudaStream_t stream)
{
    spread<T><<<cuda_blocks(s->m.n_c, 256), 256, 0, stream>>>((const T *)c, (T *)y, s->m.m, s->m.n,
                                                              s->m.c.rows, s->m.c.cols);
}

template <class T> static void launch_scale(const matmul_shape *s, void *y, float factor, cudaStream_t stream)
{
    scale<T><<<cuda_blocks(s->m.n_c, 256), 256, 0, stream>>>((T *)y, s->m.n_c, factor);
}

static const char *cuda_matmul_advance(const void *data, int64_t elements, size_t size)
{
    return (const char *)data + elements * (int64_t)size;
}

static grt_status cuda_matmul_multiply(const grt_run *r, const matmul_shape *s, const void *bias,
                                       const void *c)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const size_t size = grt_dtype_size(s->dtype);
    const uintptr_t aligned = CUDA_LT_WORKSPACE_ALIGNMENT - 1;
    char *y = (char *)r->out[0]->data;
    cuda_lt_args args = {};
    args.alpha = state->alpha;
    args.beta = state->beta;
    args.workspace = (void *)(((uintptr_t)r->workspace + aligned) & ~aligned);
    for (int64_t call = 0; call < s->m.calls; call++) {
        int64_t at_a, at_b;
        grt_matmul_find(&s->m, call, &at_a, &at_b);
        args.a = cuda_matmul_advance(r->in[0]->data, at_a * grt_matrix_size(s->m.a), size);
        args.b = cuda_matmul_advance(r->in[1]->data, at_b * grt_matrix_size(s->m.b), size);
        args.bias =
            bias && s->m.bias_rows ? cuda_matmul_advance(bias, call * s->m.batch * s->m.n, size) : bias;
        args.c = c ? cuda_matmul_advance(c, call * s->m.call_c, size) : NULL;
        args.y = y + call * s->m.call_c * (int64_t)size;
        GRT_TRY(cuda_lt_plan_run(s->plan, r->desc, &args, (cudaStream_t)r->stream));
    }
    return GRT_OK;
}

static grt_status cuda_matmul_run_own(const grt_run *r, const matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const void *bias = grt_run_data(r, GRT_MATMUL_BIAS);
    const bool adds_c = state->is_gemm && s->own.has_residual;
    const cuda_gemm_args args = {r->in[0]->data, r->in[1]->data, adds_c ? NULL : bias,
                                 adds_c ? bias : grt_run_data(r, GRT_MATMUL_RESIDUAL), r->out[0]->data};
    return cuda_gemm_run(&s->own, &args, (cudaStream_t)r->stream);
}

static grt_status cuda_matmul_run(const grt_run *r)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const matmul_shape *s = (const matmul_shape *)r->shape;
    cudaStream_t stream = (cudaStream_t)r->stream;
    void *y = r->out[0]->data;
    const void *bias = grt_run_data(r, GRT_MATMUL_BIAS), *residual = grt_run_data(r, GRT_MATMUL_RESIDUAL),
               *c = state->is_gemm ? bias : residual;
    if (s->m.n_c == 0)
        return GRT_OK;
    if (s->is_own)
        return cuda_matmul_run_own(r, s);
    if (s->m.k == 0) { /* an empty sum: only what is added is left */
        CUDA_TRY(cudaMemsetAsync(y, 0, grt_tensor_bytes(r->out[0]), stream));
        if (state->is_gemm && bias && state->beta != 0.0f) {
            CUDA_FOR_FLOATS(s->dtype, T, launch_spread<T>(s, bias, y, stream));
            CUDA_FOR_FLOATS(s->dtype, T, launch_scale<T>(s, y, state->beta, stream));
            CUDA_LAUNCHED();
        }
    } else {
        if (s->spread_c) {
            CUDA_FOR_FLOATS(s->dtype, T, launch_spread<T>(s, bias, y, stream));
            CUDA_LAUNCHED();
            c = y;
        }
        GRT_TRY(cuda_matmul_multiply(r, s, s->fused_bias ? bias : NULL, s->fused_c ? c : NULL));
    }
    if (state->is_gemm)
        return GRT_OK;
    cuda_epilogue e = {};
    e.dtype = s->dtype;
    e.n = s->m.n_c;
    e.bias = s->fused_bias && s->m.k > 0 ? NULL : bias;
    e.channels = s->m.n;
    e.inner = 1;
    e.matrix = s->m.bias_rows ? s->m.m * s->m.n : 0;
    e.residual = s->fused_c && s->m.k > 0 ? NULL : residual;
    e.act = state->act;
    if (s->fused_act)
        e.act.kind = GRT_ACT_NONE;
    return cuda_epilogue_run(&e, y, stream);
}

#define LIFE                                                                       \
    .create = cuda_matmul_create, .destroy = free, .reshape = cuda_matmul_reshape, \
    .release_shape = cuda_matmul_release_shape, .run = cuda_matmul_run

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "MatMul",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES,
     .supports = cuda_matmul_same_types,
     LIFE},
    {.domain = "",
     .op = "Gemm",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES,
     .supports = cuda_matmul_same_types,
     LIFE},
    {.domain = "graphrt",
     .op = "MatMul",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES,
     .supports = cuda_matmul_fused_supports,
     LIFE},
};
CUDA_KERNELS(matmul, rows);

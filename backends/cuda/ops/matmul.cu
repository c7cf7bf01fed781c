/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and graphrt::MatMul on cuBLASLt (lt_matmul.h).
 *
 * Batch dims become one strided batch as far as both inputs allow; an odometer on the host walks the rest.
 * float32 is strict unless the node's attribute math says "tf32". */
#include "backends/cuda/epilogue.h"
#include "backends/cuda/lt_matmul.h"
#include "backends/cuda/number.cuh"

#include <stdlib.h>

typedef struct matmul_state {
    bool is_gemm, trans_a, trans_b, tf32;
    float alpha, beta;
    grt_act act;
    size_t workspace_cap;
} matmul_state;

/* How bias, residual and Gemm's C reach the result. */
typedef struct matmul_shape {
    cuda_lt_plan *plan; /* NULL: nothing to multiply */
    bool bias_rows;     /* each matrix of the batch has a bias of its own */
    grt_dtype dtype;
    int64_t m, n, k, batch, stride_a, stride_b; /* strides of the batch, in elements */
    int32_t outer_rank;
    int64_t outer[GRT_MAX_RANK], step_a[GRT_MAX_RANK], step_b[GRT_MAX_RANK]; /* in elements */
    int64_t calls, call_c, n_c;
    int64_t c_rows, c_cols;              /* of Gemm's C */
    bool spread_c;                       /* Gemm's C is first spread over the result */
    bool fused_bias, fused_act, fused_c; /* by the library: bias, activation, residual or C through beta */
} matmul_shape;

enum { BIAS = 2, RESIDUAL = 3 };

/* ---- create ---- */

static bool same_types(const grt_kernel_node *node, grt_text *why)
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

static bool fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return same_types(node, why) && grt_act_read(node->desc, &act, why);
}

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    const cuda_device *device = (const cuda_device *)node->device;
    const cuda_blas *blas; /* who has no cuBLASLt hears of it now */
    GRT_TRY(cuda_blas_get(device->libraries, &blas));
    matmul_state *state = (matmul_state *)calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->is_gemm = grt_op_is(desc, "", "Gemm");
    state->trans_a = grt_attr_int(desc, "transA", 0) != 0;
    state->trans_b = grt_attr_int(desc, "transB", 0) != 0;
    state->tf32 = !strcmp(grt_attr_string(desc, "math", ""), "tf32");
    state->alpha = grt_attr_float(desc, state->is_gemm ? "alpha" : "scale", 1.0f);
    state->beta = state->is_gemm ? grt_attr_float(desc, "beta", 1.0f) : 1.0f;
    if (grt_op_is(desc, "graphrt", "MatMul"))
        grt_act_read(desc, &state->act, NULL);
    state->workspace_cap = (size_t)(device->prop.major >= 9 ? 32 : 4) << 20;
    *out_state = state;
    return GRT_OK;
}

/* ---- reshape: sizes ---- */

static int32_t batch_rank(const grt_tensor *t)
{
    return t->rank > 2 ? t->rank - 2 : 0;
}

static void split_batch(const grt_tensor *a, const grt_tensor *b, const grt_tensor *c, int64_t matrix_a,
                        int64_t matrix_b, matmul_shape *s)
{
    const int32_t rank = batch_rank(a) > batch_rank(b) ? batch_rank(a) : batch_rank(b);
    int64_t size_a = matrix_a, size_b = matrix_b;
    bool open = true;
    s->batch = s->calls = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t ia = i - (rank - batch_rank(a)), ib = i - (rank - batch_rank(b));
        const int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib], d = c->dims[i];
        const int64_t sa = da == 1 ? 0 : size_a, sb = db == 1 ? 0 : size_b;
        size_a *= da;
        size_b *= db;
        if (d == 1)
            continue;
        if (open && s->batch == 1) {
            s->batch = d;
            s->stride_a = sa;
            s->stride_b = sb;
        } else if (open && sa == s->stride_a * s->batch && sb == s->stride_b * s->batch) {
            s->batch *= d;
        } else {
            open = false;
            s->outer[s->outer_rank] = d;
            s->step_a[s->outer_rank] = sa;
            s->step_b[s->outer_rank++] = sb;
            s->calls *= d;
        }
    }
}

static void fit(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const grt_tensor *a = r->in[0], *b = r->in[1], *c = r->out[0];
    const int64_t rows_a = a->rank > 1 ? a->dims[a->rank - 2] : 1,
                  cols_a = a->rank ? a->dims[a->rank - 1] : 1;
    const int64_t rows_b = b->rank > 1 ? b->dims[b->rank - 2] : b->rank ? b->dims[0] : 1;
    const int64_t cols_b = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    s->m = state->trans_a ? cols_a : rows_a;
    s->k = state->trans_a ? rows_a : cols_a;
    s->n = state->trans_b ? rows_b : cols_b;
    s->n_c = grt_tensor_elements(c);
    split_batch(a, b, c, rows_a * cols_a, rows_b * cols_b, s);
    s->bias_rows = !state->is_gemm && r->n_in > BIAS && r->in[BIAS] && r->in[BIAS]->rank > 1;
    /* One B for many A's in a row: one tall product. */
    if (!s->bias_rows && !state->trans_a && s->stride_b == 0 && s->stride_a == rows_a * cols_a &&
        s->batch > 1) {
        s->m *= s->batch;
        s->batch = 1;
        s->stride_a = 0;
    }
    s->call_c = s->batch * s->m * s->n;
}

/* One row for each matrix. */
static bool fits_rows(const grt_tensor *bias, const grt_tensor *out)
{
    grt_tensor rows = *out;
    if (rows.rank > 1)
        rows.dims[rows.rank - 2] = 1;
    return grt_dims_equal(bias->dims, bias->rank, rows.dims, rows.rank);
}

static grt_status check_epilogue(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const grt_tensor *bias = r->n_in > BIAS ? r->in[BIAS] : NULL,
                     *residual = r->n_in > RESIDUAL ? r->in[RESIDUAL] : NULL;
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (state->is_gemm && bias) {
        s->c_cols = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1;
        s->c_rows = bias->rank > 1 ? bias->dims[bias->rank - 2] : 1;
        if (bias->rank > 2 || (s->c_rows != 1 && s->c_rows != s->m) || (s->c_cols != 1 && s->c_cols != s->n))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "C is %s, which does not broadcast to the result %s",
                               grt_tensor_text(bias, found), grt_tensor_text(r->out[0], wanted));
    }
    if (s->bias_rows && !fits_rows(bias, r->out[0]))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the bias is %s; expected one row for each matrix of the result, %s",
                           grt_tensor_text(bias, found), grt_tensor_text(r->out[0], wanted));
    if (!state->is_gemm && bias && !s->bias_rows && grt_tensor_elements(bias) != s->n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)s->n);
    if (residual && !grt_dims_equal(residual->dims, residual->rank, r->out[0]->dims, r->out[0]->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the residual is %s; expected the result's dims, %s",
                           grt_tensor_text(residual, found), grt_tensor_text(r->out[0], wanted));
    return GRT_OK;
}

/* ---- reshape: the plan ---- */

static void release_shape(void *data)
{
    matmul_shape *s = (matmul_shape *)data;
    if (s)
        cuda_lt_plan_release(s->plan);
    free(s);
}

/* Largest power of two, 16 at most, that divides the distances between what the calls work on. */
static int64_t common_alignment(const matmul_shape *s)
{
    const int64_t size = (int64_t)grt_dtype_size(s->dtype);
    int64_t bits = 16;
    if (s->calls > 1)
        bits |= s->call_c * size;
    for (int32_t i = 0; i < s->outer_rank; i++)
        bits |= s->step_a[i] * size | s->step_b[i] * size;
    return bits & -bits;
}

/* What the library may do beside the product. */
static void choose_fusions(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const bool wide = s->dtype == GRT_DTYPE_DOUBLE, bias = r->n_in > BIAS && r->in[BIAS];
    s->fused_bias =
        bias && !wide &&
        (!state->is_gemm || (state->beta == 1.0f && s->c_rows == 1 && s->c_cols == s->n && s->m > 1));
    /* The library's GELU is the one by tanh. Against the exact one it is off by 5e-4 at most, the rounding of
     * float16 at 1. */
    const bool narrow = s->dtype == GRT_DTYPE_FLOAT16 || s->dtype == GRT_DTYPE_BFLOAT16;
    s->fused_act = !wide && (state->act.kind == GRT_ACT_RELU || state->act.kind == GRT_ACT_GELU_TANH ||
                             (narrow && state->act.kind == GRT_ACT_GELU_ERF));
    /* A bias that the library does not add must come before the activation. */
    s->fused_act = s->fused_act && (!bias || s->fused_bias);
    if (state->is_gemm && bias && !s->fused_bias && state->beta != 0.0f) {
        s->fused_c = true;
        s->spread_c = s->c_rows != s->m || s->c_cols != s->n;
    }
    if (r->n_in > RESIDUAL && r->in[RESIDUAL])
        s->fused_c = true;
}

static grt_status try_plan(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    cuda_lt_matmul m = {};
    m.dtype = s->dtype;
    m.tf32 = state->tf32;
    m.trans_a = state->trans_a;
    m.trans_b = state->trans_b;
    m.m = s->m;
    m.n = s->n;
    m.k = s->k;
    m.batch = s->batch;
    m.stride_a = s->stride_a;
    m.stride_b = s->stride_b;
    m.bias = s->fused_bias;
    m.stride_bias = s->bias_rows ? s->n : 0;
    if (s->fused_act)
        m.act = state->act.kind == GRT_ACT_RELU ? CUDA_LT_RELU : CUDA_LT_GELU;
    m.adds_c = s->fused_c;
    m.alignment = common_alignment(s);
    m.workspace_cap = state->workspace_cap;
    return cuda_lt_plan_create((cuda_device *)r->device, r->desc, &m, r->trial, &s->plan);
}

/* With all that the library can add, else bare. */
static grt_status plan(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    choose_fusions(r, s);
    GRT_TRY(try_plan(r, s));
    if (!s->plan && (s->fused_bias || s->fused_act)) {
        if (state->is_gemm && s->fused_bias) {
            s->fused_c = true;
            s->spread_c = s->c_rows != s->m;
        }
        s->fused_bias = s->fused_act = false;
        GRT_TRY(try_plan(r, s));
    }
    if (!s->plan)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "cuBLASLt has no algorithm for a %s product of %lld x %lld x %lld, batch %lld",
                           grt_dtype_name(s->dtype), (long long)s->m, (long long)s->k, (long long)s->n,
                           (long long)s->batch);
    return GRT_OK;
}

static grt_status reshape(grt_reshape *r)
{
    matmul_shape *s = (matmul_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->dtype = r->in[0]->dtype;
    fit(r, s);
    grt_status status = check_epilogue(r, s);
    if (status == GRT_OK && s->n_c > 0 && s->k > 0)
        status = plan(r, s);
    if (status != GRT_OK) {
        release_shape(s);
        return status;
    }
    if (s->plan && cuda_lt_plan_workspace(s->plan))
        r->workspace_bytes = cuda_lt_plan_workspace(s->plan) + CUDA_LT_WORKSPACE_ALIGNMENT;
    r->shape = s;
    return GRT_OK;
}

/* ---- run ---- */

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
    spread<T><<<cuda_blocks(s->n_c, 256), 256, 0, stream>>>((const T *)c, (T *)y, s->m, s->n, s->c_rows,
                                                            s->c_cols);
}

template <class T> static void launch_scale(const matmul_shape *s, void *y, float factor, cudaStream_t stream)
{
    scale<T><<<cuda_blocks(s->n_c, 256), 256, 0, stream>>>((T *)y, s->n_c, factor);
}

static const void *data_of(const grt_run *r, int32_t i)
{
    return i < r->n_in && r->in[i] ? r->in[i]->data : NULL;
}

static const char *advance(const void *data, int64_t elements, size_t size)
{
    return (const char *)data + elements * (int64_t)size;
}

static grt_status multiply(const grt_run *r, const matmul_shape *s, const void *bias, const void *c)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const size_t size = grt_dtype_size(s->dtype);
    const uintptr_t aligned = CUDA_LT_WORKSPACE_ALIGNMENT - 1;
    char *y = (char *)r->out[0]->data;
    int64_t index[GRT_MAX_RANK] = {0};
    cuda_lt_args args = {};
    args.alpha = state->alpha;
    args.beta = state->beta;
    args.workspace = (void *)(((uintptr_t)r->workspace + aligned) & ~aligned);
    for (int64_t call = 0; call < s->calls; call++) {
        int64_t at_a = 0, at_b = 0;
        for (int32_t i = 0; i < s->outer_rank; i++) {
            at_a += index[i] * s->step_a[i];
            at_b += index[i] * s->step_b[i];
        }
        args.a = advance(r->in[0]->data, at_a, size);
        args.b = advance(r->in[1]->data, at_b, size);
        args.bias = bias && s->bias_rows ? advance(bias, call * s->batch * s->n, size) : bias;
        args.c = c ? advance(c, call * s->call_c, size) : NULL;
        args.y = y + call * s->call_c * (int64_t)size;
        GRT_TRY(cuda_lt_plan_run(s->plan, r->desc, &args, (cudaStream_t)r->stream));
        for (int32_t i = 0; i < s->outer_rank && ++index[i] == s->outer[i]; i++)
            index[i] = 0;
    }
    return GRT_OK;
}

static grt_status run(const grt_run *r)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const matmul_shape *s = (const matmul_shape *)r->shape;
    cudaStream_t stream = (cudaStream_t)r->stream;
    void *y = r->out[0]->data;
    const void *bias = data_of(r, BIAS), *residual = data_of(r, RESIDUAL),
               *c = state->is_gemm ? bias : residual;
    if (s->n_c == 0)
        return GRT_OK;
    if (s->k == 0) { /* an empty sum: only what is added is left */
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
        GRT_TRY(multiply(r, s, s->fused_bias ? bias : NULL, s->fused_c ? c : NULL));
    }
    if (state->is_gemm)
        return GRT_OK;
    cuda_epilogue e = {};
    e.dtype = s->dtype;
    e.n = s->n_c;
    e.bias = s->fused_bias && s->k > 0 ? NULL : bias;
    e.channels = s->n;
    e.inner = 1;
    e.matrix = s->bias_rows ? s->m * s->n : 0;
    e.residual = s->fused_c && s->k > 0 ? NULL : residual;
    e.act = state->act;
    if (s->fused_act)
        e.act.kind = GRT_ACT_NONE;
    return cuda_epilogue_run(&e, y, stream);
}

#define LIFE .create = create, .destroy = free, .reshape = reshape, .release_shape = release_shape, .run = run

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "MatMul",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES,
     .supports = same_types,
     LIFE},
    {.domain = "",
     .op = "Gemm",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES,
     .supports = same_types,
     LIFE},
    {.domain = "graphrt",
     .op = "MatMul",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .flags = GRT_KERNEL_TUNES,
     .supports = fused_supports,
     LIFE},
};
CUDA_KERNELS(matmul, rows);

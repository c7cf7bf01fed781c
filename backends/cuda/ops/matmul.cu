/* MatMul, Gemm and graphrt::MatMul on cuBLASLt.
 *
 * Our matrices are row-major and cuBLASLt's column-major: the product is asked for as C' = B' A', with B first. Batch dims become
 * one strided batch as far as both inputs allow; an odometer on the host walks the rest. float32 is strict unless the node's
 * attribute math says "tf32". */
#include "backends/cuda/epilogue.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/number.cuh"

#include <stdlib.h>

typedef struct matmul_state {
    const cuda_blas *blas;
    bool is_gemm, trans_a, trans_b, tf32;
    float alpha, beta;
    cuda_act act;
    size_t workspace;
} matmul_state;

/* How bias, residual and Gemm's C reach the result. */
typedef struct matmul_shape {
    const cuda_blas *blas;
    grt_dtype dtype;
    int64_t m, n, k, batch, stride_a, stride_b; /* strides of the batch, in elements */
    int32_t outer_rank;
    int64_t outer[GRT_MAX_RANK], step_a[GRT_MAX_RANK], step_b[GRT_MAX_RANK]; /* in elements */
    int64_t calls, call_c, n_c;
    int64_t c_rows, c_cols; /* of Gemm's C */
    bool spread_c;          /* Gemm's C is first spread over the result */
    bool fused_bias, fused_act, fused_c; /* by the library: bias, activation, residual or C through beta */
    int64_t alignment;                   /* of all pointers, as the heuristics were told */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c; /* ours */
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
} matmul_shape;

enum { BIAS = 2, RESIDUAL = 3, WORKSPACE_ALIGNMENT = 256 };

#define BLAS_TRY(desc, expression)                                                                                     \
    do {                                                                                                               \
        cublasStatus_t blas_try_ = (expression);                                                                       \
        if (blas_try_ != CUBLAS_STATUS_SUCCESS)                                                                        \
            return grt_fail_op(desc, GRT_STATUS_DEVICE, "cuBLASLt status %d from %s", (int)blas_try_, #expression);    \
    } while (0)

static cudaDataType data_type(grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return CUDA_R_16F;
    case GRT_DTYPE_BFLOAT16:
        return CUDA_R_16BF;
    case GRT_DTYPE_DOUBLE:
        return CUDA_R_64F;
    default:
        return CUDA_R_32F;
    }
}

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
    cuda_act act;
    return same_types(node, why) && cuda_act_read(node->desc, &act, why);
}

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    const cuda_device *device = (const cuda_device *)node->device;
    const cuda_blas *blas;
    GRT_TRY(cuda_blas_get(device->libraries, &blas));
    matmul_state *state = (matmul_state *)calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->blas = blas;
    state->is_gemm = grt_op_is(desc, "", "Gemm");
    state->trans_a = grt_attr_int(desc, "transA", 0) != 0;
    state->trans_b = grt_attr_int(desc, "transB", 0) != 0;
    state->tf32 = !strcmp(grt_attr_string(desc, "math", ""), "tf32");
    state->alpha = grt_attr_float(desc, state->is_gemm ? "alpha" : "scale", 1.0f);
    state->beta = state->is_gemm ? grt_attr_float(desc, "beta", 1.0f) : 1.0f;
    if (grt_op_is(desc, "graphrt", "MatMul"))
        cuda_act_read(desc, &state->act, NULL);
    state->workspace = (size_t)(device->prop.major >= 9 ? 32 : 4) << 20;
    *out_state = state;
    return GRT_OK;
}

/* ---- reshape: sizes ---- */

static int32_t batch_rank(const grt_tensor *t)
{
    return t->rank > 2 ? t->rank - 2 : 0;
}

static void split_batch(const grt_tensor *a, const grt_tensor *b, const grt_tensor *c, int64_t matrix_a, int64_t matrix_b,
                        matmul_shape *s)
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
    const int64_t rows_a = a->rank > 1 ? a->dims[a->rank - 2] : 1, cols_a = a->rank ? a->dims[a->rank - 1] : 1;
    const int64_t rows_b = b->rank > 1 ? b->dims[b->rank - 2] : b->rank ? b->dims[0] : 1;
    const int64_t cols_b = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    s->m = state->trans_a ? cols_a : rows_a;
    s->k = state->trans_a ? rows_a : cols_a;
    s->n = state->trans_b ? rows_b : cols_b;
    s->n_c = grt_tensor_elements(c);
    split_batch(a, b, c, rows_a * cols_a, rows_b * cols_b, s);
    /* One B for many A's in a row: one tall product. */
    if (!state->trans_a && s->stride_b == 0 && s->stride_a == rows_a * cols_a && s->batch > 1) {
        s->m *= s->batch;
        s->batch = 1;
        s->stride_a = 0;
    }
    s->call_c = s->batch * s->m * s->n;
}

static grt_status check_epilogue(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const grt_tensor *bias = r->n_in > BIAS ? r->in[BIAS] : NULL, *residual = r->n_in > RESIDUAL ? r->in[RESIDUAL] : NULL;
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (state->is_gemm && bias) {
        s->c_cols = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1;
        s->c_rows = bias->rank > 1 ? bias->dims[bias->rank - 2] : 1;
        if (bias->rank > 2 || (s->c_rows != 1 && s->c_rows != s->m) || (s->c_cols != 1 && s->c_cols != s->n))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "C is %s, which does not broadcast to the result %s",
                               grt_tensor_text(bias, found), grt_tensor_text(r->out[0], wanted));
    }
    if (!state->is_gemm && bias && grt_tensor_elements(bias) != s->n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)s->n);
    if (residual && !grt_dims_equal(residual->dims, residual->rank, r->out[0]->dims, r->out[0]->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the residual is %s; expected the result's dims, %s",
                           grt_tensor_text(residual, found), grt_tensor_text(r->out[0], wanted));
    return GRT_OK;
}

/* ---- reshape: the library's descriptors ---- */

static void release_shape(void *data)
{
    matmul_shape *s = (matmul_shape *)data;
    if (!s)
        return;
    if (s->a)
        s->blas->cublasLtMatrixLayoutDestroy(s->a);
    if (s->b)
        s->blas->cublasLtMatrixLayoutDestroy(s->b);
    if (s->c)
        s->blas->cublasLtMatrixLayoutDestroy(s->c);
    if (s->desc)
        s->blas->cublasLtMatmulDescDestroy(s->desc);
    free(s);
}

/* A row-major matrix rows x cols, batched. */
static grt_status make_layout(const grt_op_desc *desc, const matmul_shape *s, int64_t rows, int64_t cols, int64_t stride,
                              cublasLtMatrixLayout_t *out)
{
    const cuda_blas *blas = s->blas;
    BLAS_TRY(desc, blas->cublasLtMatrixLayoutCreate(out, data_type(s->dtype), (uint64_t)cols, (uint64_t)rows, cols));
    if (s->batch > 1) {
        const int32_t batch = (int32_t)s->batch;
        BLAS_TRY(desc, blas->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
        BLAS_TRY(desc, blas->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                              sizeof stride));
    }
    return GRT_OK;
}

static grt_status set_epilogue(const grt_op_desc *desc, matmul_shape *s, cublasLtEpilogue_t epilogue)
{
    BLAS_TRY(desc, s->blas->cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS) {
        /* The heuristics look at the type; the pointer comes with each run. */
        const cudaDataType type = data_type(s->dtype);
        BLAS_TRY(desc, s->blas->cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    }
    return GRT_OK;
}

/* Ask for an algorithm; *found false if there is none. */
static grt_status choose(const grt_op_desc *desc, matmul_shape *s, size_t workspace, bool *found)
{
    const cuda_blas *blas = s->blas;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result;
    int n = 0;
    BLAS_TRY(desc, blas->cublasLtMatmulPreferenceCreate(&preference));
    const uint64_t bytes = workspace;
    const uint32_t alignment = (uint32_t)s->alignment;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    blas->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned; i++)
        blas->cublasLtMatmulPreferenceSetAttribute(preference, aligned[i], &alignment, sizeof alignment);
    memset(&result, 0, sizeof result);
    const cublasStatus_t status =
        blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, s->desc, s->b, s->a, s->c, s->c, preference, 1, &result, &n);
    blas->cublasLtMatmulPreferenceDestroy(preference);
    *found = status == CUBLAS_STATUS_SUCCESS && n > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    if (*found) {
        s->algo = result.algo;
        s->workspace = result.workspaceSize;
    }
    return GRT_OK;
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

static grt_status describe(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const grt_op_desc *desc = r->desc;
    const bool wide = s->dtype == GRT_DTYPE_DOUBLE, bias = r->n_in > BIAS && r->in[BIAS];
    const cublasOperation_t turn = CUBLAS_OP_T;
    BLAS_TRY(desc, s->blas->cublasLtMatmulDescCreate(&s->desc, wide                                            ? CUBLAS_COMPUTE_64F
                                                     : state->tf32 && s->dtype == GRT_DTYPE_FLOAT ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                                                  : CUBLAS_COMPUTE_32F,
                                                     wide ? CUDA_R_64F : CUDA_R_32F));
    if (state->trans_b)
        BLAS_TRY(desc, s->blas->cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof turn));
    if (state->trans_a)
        BLAS_TRY(desc, s->blas->cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_TRANSB, &turn, sizeof turn));
    GRT_TRY(make_layout(desc, s, state->trans_a ? s->k : s->m, state->trans_a ? s->m : s->k, s->stride_a, &s->a));
    GRT_TRY(make_layout(desc, s, state->trans_b ? s->n : s->k, state->trans_b ? s->k : s->n, s->stride_b, &s->b));
    GRT_TRY(make_layout(desc, s, s->m, s->n, s->m * s->n, &s->c));
    s->alignment = common_alignment(s);
    s->fused_bias = bias && !wide && (!state->is_gemm || (state->beta == 1.0f && s->c_rows == 1 && s->c_cols == s->n && s->m > 1));
    /* The library's GELU is the one by tanh. Against the exact one it is off by 5e-4 at most, the rounding of float16 at 1. */
    const bool narrow = s->dtype == GRT_DTYPE_FLOAT16 || s->dtype == GRT_DTYPE_BFLOAT16;
    s->fused_act = !wide && (state->act.kind == CUDA_ACT_RELU || state->act.kind == CUDA_ACT_GELU_TANH ||
                             (narrow && state->act.kind == CUDA_ACT_GELU));
    /* A bias that the library does not add must come before the activation. */
    s->fused_act = s->fused_act && (!bias || s->fused_bias);
    if (state->is_gemm && bias && !s->fused_bias && state->beta != 0.0f) {
        s->fused_c = true;
        s->spread_c = s->c_rows != s->m || s->c_cols != s->n;
    }
    if (r->n_in > RESIDUAL && r->in[RESIDUAL])
        s->fused_c = true;
    bool found = false;
    if (s->fused_bias || s->fused_act) {
        const bool relu = state->act.kind == CUDA_ACT_RELU;
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        if (s->fused_act && s->fused_bias)
            epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
        else if (s->fused_act)
            epilogue = relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
        GRT_TRY(set_epilogue(desc, s, epilogue));
        GRT_TRY(choose(desc, s, state->workspace, &found));
    }
    if (!found) {
        if (state->is_gemm && s->fused_bias) {
            s->fused_c = true;
            s->spread_c = s->c_rows != s->m;
        }
        s->fused_bias = s->fused_act = false;
        GRT_TRY(set_epilogue(desc, s, CUBLASLT_EPILOGUE_DEFAULT));
        GRT_TRY(choose(desc, s, state->workspace, &found));
    }
    if (!found)
        return grt_fail_op(desc, GRT_STATUS_UNSUPPORTED,
                           "cuBLASLt has no algorithm for a %s product of %lld x %lld x %lld, batch %lld", grt_dtype_name(s->dtype),
                           (long long)s->m, (long long)s->k, (long long)s->n, (long long)s->batch);
    return GRT_OK;
}

static grt_status reshape(grt_reshape *r)
{
    const matmul_state *state = (const matmul_state *)r->state;
    matmul_shape *s = (matmul_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->blas = state->blas;
    s->dtype = r->in[0]->dtype;
    fit(r, s);
    grt_status status = check_epilogue(r, s);
    if (status == GRT_OK && s->n_c > 0 && s->k > 0)
        status = describe(r, s);
    if (status != GRT_OK) {
        release_shape(s);
        return status;
    }
    if (s->workspace)
        r->workspace_bytes = s->workspace + WORKSPACE_ALIGNMENT;
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
    spread<T><<<cuda_blocks(s->n_c, 256), 256, 0, stream>>>((const T *)c, (T *)y, s->m, s->n, s->c_rows, s->c_cols);
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

static grt_status multiply(const grt_run *r, const matmul_shape *s, const void *c)
{
    const matmul_state *state = (const matmul_state *)r->state;
    const cuda_blas *blas = s->blas;
    const size_t size = grt_dtype_size(s->dtype);
    const double alpha_wide = state->alpha, beta_wide = c ? state->beta : 0.0;
    const float alpha = state->alpha, beta = c ? state->beta : 0.0f;
    const bool wide = s->dtype == GRT_DTYPE_DOUBLE;
    void *workspace = (void *)(((uintptr_t)r->workspace + WORKSPACE_ALIGNMENT - 1) & ~(uintptr_t)(WORKSPACE_ALIGNMENT - 1));
    char *y = (char *)r->out[0]->data;
    const uintptr_t addresses = (uintptr_t)r->in[0]->data | (uintptr_t)r->in[1]->data | (uintptr_t)y | (uintptr_t)c;
    /* What was chosen relies on alignment; without that, let the library choose again. */
    const cublasLtMatmulAlgo_t *algo = addresses % (uintptr_t)s->alignment == 0 ? &s->algo : NULL;
    int64_t index[GRT_MAX_RANK] = {0};
    for (int64_t call = 0; call < s->calls; call++) {
        int64_t at_a = 0, at_b = 0;
        for (int32_t i = 0; i < s->outer_rank; i++) {
            at_a += index[i] * s->step_a[i];
            at_b += index[i] * s->step_b[i];
        }
        char *to = y + call * s->call_c * (int64_t)size;
        const void *from = c ? advance(c, call * s->call_c, size) : to;
        BLAS_TRY(r->desc, blas->cublasLtMatmul(blas->handle, s->desc, wide ? (const void *)&alpha_wide : &alpha,
                                               advance(r->in[1]->data, at_b, size), s->b, advance(r->in[0]->data, at_a, size), s->a,
                                               wide ? (const void *)&beta_wide : &beta, from, s->c, to, s->c, algo,
                                               s->workspace ? workspace : NULL, s->workspace, (cudaStream_t)r->stream));
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
    const void *bias = data_of(r, BIAS), *residual = data_of(r, RESIDUAL), *c = state->is_gemm ? bias : residual;
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
        if (s->fused_bias)
            BLAS_TRY(r->desc, s->blas->cublasLtMatmulDescSetAttribute(s->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
        GRT_TRY(multiply(r, s, s->fused_c ? c : NULL));
    }
    if (state->is_gemm)
        return GRT_OK;
    cuda_epilogue e = {s->dtype, s->n_c, s->fused_bias ? NULL : bias, s->n, 1, s->fused_c && s->k > 0 ? NULL : residual, state->act};
    if (s->fused_act)
        e.act.kind = CUDA_ACT_NONE;
    return cuda_epilogue_run(&e, y, stream);
}

#define LIFE .create = create, .destroy = free, .reshape = reshape, .release_shape = release_shape, .run = run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "MatMul", .types = {GRT_SET_FLOATS, GRT_SET_FLOATS}, .supports = same_types, LIFE},
    {.domain = "", .op = "Gemm", .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS}, .supports = same_types, LIFE},
    {.domain = "graphrt", .op = "MatMul", .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = fused_supports, LIFE},
};
CUDA_KERNELS(matmul, rows);

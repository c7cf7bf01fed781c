/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on cuBLASLt.
 *
 * Our matrices are row-major and cuBLASLt's column-major: the product is asked for as Y' = B' A', with B
 * first. An algorithm is 64 bytes that mean something to one version of the library only; they are checked by
 * it before they are used again. */
#include "backends/cuda/lt_matmul.h"

#include "backends/cuda/lt_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ANSWERS = 32, ALGO_BYTES = sizeof(cublasLtMatmulAlgo_t) };

struct cuda_lt_plan {
    const cuda_blas *blas;
    cuda_lt_matmul m;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y; /* ours */
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
};

#define BLAS_TRY(desc, expression)                                                                    \
    do {                                                                                              \
        cublasStatus_t blas_try_ = (expression);                                                      \
        if (blas_try_ != CUBLAS_STATUS_SUCCESS)                                                       \
            return grt_fail_op(desc, GRT_STATUS_DEVICE, "cuBLASLt status %d from %s", (int)blas_try_, \
                               #expression);                                                          \
    } while (0)

static cudaDataType lt_matmul_data_type(grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return CUDA_R_16F;
    case GRT_DTYPE_BFLOAT16:
        return CUDA_R_16BF;
    case GRT_DTYPE_DOUBLE:
        return CUDA_R_64F;
    case GRT_DTYPE_FLOAT8E4M3FN:
        return CUDA_R_8F_E4M3;
    case GRT_DTYPE_FLOAT8E5M2:
        return CUDA_R_8F_E5M2;
    default:
        return CUDA_R_32F;
    }
}

static grt_dtype dtype_of_a(const cuda_lt_matmul *m)
{
    return m->of_a ? m->of_a : m->dtype;
}

static grt_dtype dtype_of_b(const cuda_lt_matmul *m)
{
    return m->of_b ? m->of_b : m->dtype;
}

static cublasComputeType_t compute_type(const cuda_lt_matmul *m)
{
    if (m->dtype == GRT_DTYPE_DOUBLE)
        return CUBLAS_COMPUTE_64F;
    return m->tf32 && m->dtype == GRT_DTYPE_FLOAT ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* A row-major matrix rows x cols, batched. */
static grt_status make_layout(const grt_op_desc *desc, const cuda_lt_plan *p, grt_dtype dtype, int64_t rows,
                              int64_t cols, int64_t stride, cublasLtMatrixLayout_t *out)
{
    const cuda_blas *blas = p->blas;
    BLAS_TRY(desc, blas->cublasLtMatrixLayoutCreate(out, lt_matmul_data_type(dtype), (uint64_t)cols,
                                                    (uint64_t)rows, cols));
    if (p->m.batch > 1) {
        const int32_t batch = (int32_t)p->m.batch;
        BLAS_TRY(desc, blas->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                              &batch, sizeof batch));
        BLAS_TRY(desc, blas->cublasLtMatrixLayoutSetAttribute(
                           *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    }
    return GRT_OK;
}

static cudaDataType scale_type(const cuda_lt_matmul *m)
{
    return m->dtype == GRT_DTYPE_DOUBLE ? CUDA_R_64F : CUDA_R_32F;
}

static cublasLtEpilogue_t epilogue_of(const cuda_lt_matmul *m)
{
    switch (m->act) {
    case CUDA_LT_RELU:
        return m->bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case CUDA_LT_GELU:
        return m->bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
        return m->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
}

static grt_status set_scales(const grt_op_desc *desc, const cuda_lt_plan *p, const float *a, const float *b)
{
    const cuda_blas *blas = p->blas;
    BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &b,
                                                        sizeof b));
    BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &a,
                                                        sizeof a));
    return GRT_OK;
}

/* Sums stay in the tensor cores' own accuracy, about 14 bits of the largest term: numbers of 4 bits need no
 * more. */
static grt_status describe_float8(const grt_op_desc *desc, const cuda_lt_plan *p)
{
    const cuda_blas *blas = p->blas;
    const int8_t fast = 1;
    const float *somewhere = (const float *)(uintptr_t)CUDA_LT_WORKSPACE_ALIGNMENT;
    BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                                        sizeof fast));
    return set_scales(desc, p, somewhere, somewhere);
}

static grt_status lt_matmul_describe(const grt_op_desc *desc, cuda_lt_plan *p)
{
    const cuda_blas *blas = p->blas;
    const cuda_lt_matmul *m = &p->m;
    const cublasOperation_t turn = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = epilogue_of(m);
    BLAS_TRY(desc, blas->cublasLtMatmulDescCreate(&p->desc, compute_type(m), scale_type(m)));
    if (m->trans_b)
        BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn,
                                                            sizeof turn));
    if (m->trans_a)
        BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &turn,
                                                            sizeof turn));
    BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                        sizeof epilogue));
    if (m->bias) { /* pointers come with each run; choosing and checking algorithms needs a valid one */
        const cudaDataType type = lt_matmul_data_type(m->dtype);
        const void *somewhere = (const void *)(uintptr_t)CUDA_LT_WORKSPACE_ALIGNMENT;
        BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                            &somewhere, sizeof somewhere));
        BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                            &type, sizeof type));
        BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                                                            &m->stride_bias, sizeof m->stride_bias));
    }
    if (m->of_a)
        GRT_TRY(describe_float8(desc, p));
    GRT_TRY(make_layout(desc, p, dtype_of_a(m), m->trans_a ? m->k : m->m, m->trans_a ? m->m : m->k,
                        m->stride_a, &p->a));
    GRT_TRY(make_layout(desc, p, dtype_of_b(m), m->trans_b ? m->n : m->k, m->trans_b ? m->k : m->n,
                        m->stride_b, &p->b));
    return make_layout(desc, p, m->dtype, m->m, m->n, m->m * m->n, &p->y);
}

/* The key: all that the choice depends on. Leading dims follow from the sizes, as matrices are dense. */
static void lt_matmul_add_key(const cuda_blas *blas, const cuda_lt_matmul *m, grt_text *key)
{
    static const char *const acts[] = {
        [CUDA_LT_NO_ACT] = "", [CUDA_LT_RELU] = "relu", [CUDA_LT_GELU] = "gelu"};
    grt_text_add(key, "cublaslt=%zu;type=%s;math=%s;m=%lld;n=%lld;k=%lld;transposed=%s%s;",
                 blas->cublasLtGetVersion(), grt_dtype_name(m->dtype),
                 compute_type(m) == CUBLAS_COMPUTE_32F_FAST_TF32 ? "tf32" : "own", (long long)m->m,
                 (long long)m->n, (long long)m->k, m->trans_a ? "a" : "", m->trans_b ? "b" : "");
    grt_text_add(key, "batch=%lld;strides=%lld,%lld;epilogue=%s%s%s;alignment=%lld;workspace=%zu;",
                 (long long)m->batch, (long long)m->stride_a, (long long)m->stride_b,
                 m->adds_c ? "residual," : "", m->bias ? "bias," : "", acts[m->act], (long long)m->alignment,
                 m->workspace_cap);
    if (m->of_a)
        grt_text_add(key, "operands=%s,%s;", grt_dtype_name(m->of_a), grt_dtype_name(m->of_b));
    if (m->stride_bias)
        grt_text_add(key, "bias_stride=%lld;", (long long)m->stride_bias);
}

/* "1 lt " and the algorithm's bytes in hexadecimal, or no_algorithm. The 1 is this format's version, the word
 * says whose algorithm it is. */
static const char no_algorithm[] = "1 none", library[] = "1 lt ";
enum { PREFIX = sizeof library - 1, DATA_SIZE = PREFIX + 2 * ALGO_BYTES + 1 };

static size_t write_data(const cublasLtMatmulAlgo_t *algo, char out[DATA_SIZE])
{
    unsigned char bytes[ALGO_BYTES];
    memcpy(bytes, algo, sizeof bytes);
    memcpy(out, library, sizeof library);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + PREFIX + 2 * i, 3, "%02x", bytes[i]);
    return DATA_SIZE - 1;
}

static int lt_matmul_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_data(const char *data, size_t size, cublasLtMatmulAlgo_t *out_algo)
{
    unsigned char bytes[ALGO_BYTES];
    if (size != DATA_SIZE - 1 || memcmp(data, library, PREFIX) != 0)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        const int high = lt_matmul_digit(data[PREFIX + 2 * i]),
                  low = lt_matmul_digit(data[PREFIX + 1 + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    memcpy(out_algo, bytes, sizeof bytes);
    return true;
}

static cuda_lt_product product_of(const cuda_lt_plan *p)
{
    return (cuda_lt_product){.blas = p->blas,
                             .desc = p->desc,
                             .first = p->b,
                             .second = p->a,
                             .result = p->y,
                             .compute = compute_type(&p->m),
                             .scale = scale_type(&p->m),
                             .first_type = lt_matmul_data_type(dtype_of_b(&p->m)),
                             .second_type = lt_matmul_data_type(dtype_of_a(&p->m)),
                             .type = lt_matmul_data_type(p->m.dtype),
                             .workspace_cap = p->m.workspace_cap};
}

static bool accept(cuda_lt_plan *p, const cublasLtMatmulAlgo_t *algo)
{
    const cuda_lt_product product = product_of(p);
    if (!cuda_lt_takes(&product, algo, &p->workspace))
        return false;
    p->algo = *algo;
    return true;
}

/* The recorded choice, if it is still valid; *out_found false: none recorded. */
static bool lt_matmul_recall(cuda_device *device, grt_algo_trial *trial, const char *key, cuda_lt_plan *p,
                             bool *out_found)
{
    size_t size;
    cublasLtMatmulAlgo_t algo;
    bool known = false;
    *out_found = false;
    for (char *data; !known && (data = grt_device_algo_find(&device->base, trial, key, &size)); free(data)) {
        *out_found = read_data(data, size, &algo) && accept(p, &algo);
        known = *out_found || !strcmp(data, no_algorithm);
        if (!known)
            grt_device_algo_reject(&device->base, trial, key);
    }
    return known;
}

/* The heuristics' answers, best first; their number. */
static int answers(const cuda_lt_plan *p, int most, cublasLtMatmulHeuristicResult_t *results)
{
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const cuda_blas *blas = p->blas;
    const uint64_t bytes = p->m.workspace_cap;
    const uint32_t alignment = (uint32_t)p->m.alignment;
    cublasLtMatmulPreference_t preference = NULL;
    int n = 0;
    if (blas->cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
        return 0;
    blas->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                               sizeof bytes);
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned; i++)
        blas->cublasLtMatmulPreferenceSetAttribute(preference, aligned[i], &alignment, sizeof alignment);
    memset(results, 0, (size_t)most * sizeof *results);
    if (blas->cublasLtMatmulAlgoGetHeuristic(blas->handle, p->desc, p->b, p->a, p->y, p->y, preference, most,
                                             results, &n) != CUBLAS_STATUS_SUCCESS)
        n = 0;
    blas->cublasLtMatmulPreferenceDestroy(preference);
    return n;
}

typedef struct offering {
    grt_algo_trial *trial;
    const char *key;
} offering;

static bool lt_matmul_offer(void *user, const cublasLtMatmulAlgo_t *algo)
{
    const offering *o = user;
    char data[DATA_SIZE];
    const size_t size = write_data(algo, data);
    return grt_algo_trial_offer(o->trial, o->key, data, size);
}

static bool serves(const cuda_lt_plan *p, const cublasLtMatmulHeuristicResult_t *answer)
{
    return answer->state == CUBLAS_STATUS_SUCCESS && answer->workspaceSize <= p->m.workspace_cap;
}

/* The heuristic's answers, then what else there is. */
static void offer_all(const cuda_lt_plan *p, const cublasLtMatmulHeuristicResult_t *results, int n,
                      offering *o)
{
    const cuda_lt_product product = product_of(p);
    for (int i = 0; i < n; i++)
        if (serves(p, &results[i]) && !lt_matmul_offer(o, &results[i].algo))
            return;
    cuda_lt_search(&product, results, n, lt_matmul_offer, o);
}

/* Ask, and keep the answer; when candidates are wanted, offer them all. */
static bool lt_matmul_ask(cuda_device *device, grt_algo_trial *trial, const char *key, cuda_lt_plan *p)
{
    cublasLtMatmulHeuristicResult_t results[MOST_ANSWERS];
    const bool lists = grt_algo_trial_lists(trial);
    const int n = answers(p, lists ? MOST_ANSWERS : 1, results);
    char data[DATA_SIZE];
    int i = 0;
    while (i < n && !serves(p, &results[i]))
        i++;
    if (i == n) {
        grt_device_algo_store(&device->base, trial, key, no_algorithm, sizeof no_algorithm - 1);
        return false;
    }
    p->algo = results[i].algo;
    p->workspace = results[i].workspaceSize;
    if (lists)
        offer_all(p, results, n, &(offering){trial, key});
    const size_t size = write_data(&p->algo, data);
    grt_device_algo_store(&device->base, trial, key, data, size);
    return true;
}

static grt_status lt_matmul_choose(cuda_device *device, grt_algo_trial *trial, cuda_lt_plan *p,
                                   bool *out_found)
{
    grt_text key = {0};
    grt_device_algo_key(&device->base, "MatMul", &key);
    lt_matmul_add_key(p->blas, &p->m, &key);
    if (key.failed) {
        grt_text_release(&key);
        return grt_fail_memory(key.size);
    }
    if (!lt_matmul_recall(device, trial, grt_text_get(&key), p, out_found))
        *out_found = lt_matmul_ask(device, trial, grt_text_get(&key), p);
    grt_text_release(&key);
    return GRT_OK;
}

grt_status cuda_lt_plan_create(cuda_device *device, const grt_op_desc *desc, const cuda_lt_matmul *matmul,
                               grt_algo_trial *trial, cuda_lt_plan **out_plan)
{
    const cuda_blas *blas;
    bool found = false;
    *out_plan = NULL;
    if (matmul->batch > INT32_MAX) /* cuBLASLt counts in 32 bits: a kernel of our own takes it */
        return GRT_OK;
    GRT_TRY(cuda_blas_get(device->libraries, &blas));
    cuda_lt_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return grt_fail_memory(sizeof *plan);
    plan->blas = blas;
    plan->m = *matmul;
    grt_status status = lt_matmul_describe(desc, plan);
    if (status == GRT_OK)
        status = lt_matmul_choose(device, trial, plan, &found);
    if (found)
        *out_plan = plan;
    else
        cuda_lt_plan_release(plan);
    return status;
}

void cuda_lt_ask(cuda_device *device, const cuda_lt_matmul *matmul)
{
    static const grt_op_desc desc = {.op = "MatMul", .domain = "", .name = ""};
    cublasLtMatmulHeuristicResult_t result;
    const cuda_blas *blas;
    cuda_lt_plan *plan = calloc(1, sizeof *plan);
    if (plan && cuda_blas_get(device->libraries, &blas) == GRT_OK) {
        plan->blas = blas;
        plan->m = *matmul;
        if (lt_matmul_describe(&desc, plan) == GRT_OK)
            (void)answers(plan, 1, &result);
    }
    cuda_lt_plan_release(plan);
}

void cuda_lt_plan_release(cuda_lt_plan *plan)
{
    if (!plan)
        return;
    if (plan->a)
        plan->blas->cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b)
        plan->blas->cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->y)
        plan->blas->cublasLtMatrixLayoutDestroy(plan->y);
    if (plan->desc)
        plan->blas->cublasLtMatmulDescDestroy(plan->desc);
    free(plan);
}

size_t cuda_lt_plan_workspace(const cuda_lt_plan *plan)
{
    return plan->workspace;
}

grt_status cuda_lt_plan_run(cuda_lt_plan *plan, const grt_op_desc *desc, const cuda_lt_args *args,
                            cudaStream_t stream)
{
    const cuda_blas *blas = plan->blas;
    const bool wide = plan->m.dtype == GRT_DTYPE_DOUBLE;
    const double beta_wide = plan->m.adds_c ? args->beta : 0.0;
    const float alpha = (float)args->alpha, beta = (float)beta_wide;
    const void *c = plan->m.adds_c ? args->c : args->y;
    const uintptr_t bias = plan->m.bias ? (uintptr_t)args->bias : 0;
    const uintptr_t addresses =
        (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)c | (uintptr_t)args->y | bias;
    /* The algorithm relies on alignment; without that the library chooses again. */
    const cublasLtMatmulAlgo_t *algo = addresses % (uintptr_t)plan->m.alignment == 0 ? &plan->algo : NULL;
    if (plan->m.bias)
        BLAS_TRY(desc, blas->cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                            &args->bias, sizeof args->bias));
    if (plan->m.of_a)
        GRT_TRY(set_scales(desc, plan, args->a_scale, args->b_scale));
    BLAS_TRY(desc, blas->cublasLtMatmul(
                       blas->handle, plan->desc, wide ? (const void *)&args->alpha : &alpha, args->b, plan->b,
                       args->a, plan->a, wide ? (const void *)&beta_wide : &beta, c, plan->y, args->y,
                       plan->y, algo, plan->workspace ? args->workspace : NULL, plan->workspace, stream));
    return GRT_OK;
}

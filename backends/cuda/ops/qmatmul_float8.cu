/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QMatMul of float8 numbers by constant weights: large products of e4m3fn by our kernel
 * (float8_bulk.cu), others by cuBLASLt, whose float32 sums a kernel behind it finishes. Where the library has
 * no products of float8 (before compute capability 8.9) the operands are widened to float32, which TF32
 * products take without rounding. */
#include "backends/cuda/float8_bulk.h"
#include "backends/cuda/lt_matmul.h"
#include "backends/cuda/qproduct.h"
#include "backends/cuda/walk.h"
#include "backends/shared/quantised.h"
#include "src/base/tensor.h"

namespace
{

#define OPERANDS (GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E5M2))
#define RESULTS  (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))

enum { STEP = 16 /* dims of weights are multiples */, ALIGNMENT = CUDA_LT_WORKSPACE_ALIGNMENT };

struct qmatmul_state {
    int64_t k, n;
    grt_dtype dtype; /* of the weights */
    grt_act act;
    bool is_constant; /* scales and bias */
    size_t workspace_cap;
    uint8_t *weights;               /* [n, k] in device memory; NULL on a device that is only described */
    cuda_tensor_map_encoder encode; /* NULL: not of compute capability 9.0 */
};

struct qmatmul_shape {
    cuda_lt_plan *plan; /* NULL: the product is our kernel's, or there are no rows */
    int64_t rows;
    bool is_bulk; /* our kernel's */
    bool is_widened;
    size_t x_at, w_at, sums_at; /* in the workspace; x and w of widened operands */
};

/* ---- what there is ---- */

bool is_of_float8(const grt_tensor *t)
{
    return grt_dtype_in(t->dtype, OPERANDS);
}

bool fits_weights(const grt_kernel_node *node)
{
    const grt_tensor *w = &node->in[QP_W], *scale = &node->in[QP_W_SCALE];
    if (w->rank != 2 || !w->data || w->dims[0] < 1 || w->dims[0] % STEP || w->dims[1] < 1 ||
        w->dims[1] % STEP)
        return false;
    const int64_t n = w->dims[grt_attr_int(node->desc, "transB", 0) ? 0 : 1],
                  scales = scale->rank < 0 ? -1 : grt_tensor_elements(scale);
    return scales == 1 || scales == n;
}

/* Zero points of float8 are 0; their types are the numbers'. */
bool fits_levels(const grt_kernel_node *node)
{
    static const int32_t scales[] = {QP_X_SCALE, QP_W_SCALE, QP_Y_SCALE};
    for (int32_t i : scales)
        if (grt_node_has(node, i) && node->in[i].dtype != GRT_DTYPE_FLOAT)
            return false;
    for (int32_t i : {QP_X_ZERO, QP_W_ZERO, QP_Y_ZERO})
        if (grt_node_has(node, i) && !is_of_float8(&node->in[i]))
            return false;
    return true;
}

bool fits_result(const grt_kernel_node *node, const grt_act *act)
{
    const grt_dtype y = node->out[0].dtype;
    if (grt_node_has(node, QP_SUM_SCALE) ||
        (grt_node_has(node, QP_BIAS) && node->in[QP_BIAS].dtype != GRT_DTYPE_FLOAT))
        return false;
    if (grt_node_has(node, QP_Y_SCALE))
        return grt_dtype_in(y, OPERANDS) && !grt_node_has(node, QP_RESIDUAL);
    return grt_dtype_in(y, RESULTS) && (!grt_node_has(node, QP_RESIDUAL) ||
                                        (node->in[QP_RESIDUAL].dtype == y && act->kind == GRT_ACT_NONE &&
                                         !grt_node_has(node, QP_R_SCALE)));
}

bool supports_qmatmul(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    if (!grt_act_read(node->desc, &act, why))
        return false;
    const grt_tensor *x = &node->in[QP_X], *w = &node->in[QP_W];
    const bool fits = !grt_node_has(node, QP_TABLE) && is_of_float8(x) && is_of_float8(w) &&
                      (x->dtype == GRT_DTYPE_FLOAT8E4M3FN || w->dtype == GRT_DTYPE_FLOAT8E4M3FN) &&
                      fits_weights(node) && fits_levels(node) && fits_result(node, &act);
    if (!fits && why)
        grt_text_add(why, "or float8, one of both e4m3fn, by constant weights whose dims are multiples of %d",
                     STEP);
    return fits;
}

/* ---- weights ---- */

/* [k, n] as [n, k]. */
void turn_weights(const uint8_t *from, int64_t k, int64_t n, uint8_t *to)
{
    enum { TILE = 64 };
    for (int64_t i = 0; i < k; i += TILE)
        for (int64_t j = 0; j < n; j += TILE)
            for (int64_t c = j; c < j + TILE && c < n; c++)
                for (int64_t r = i; r < i + TILE && r < k; r++)
                    to[c * k + r] = from[r * n + c];
}

grt_status upload_float8_weights(const grt_kernel_node *node, qmatmul_state *state, bool trans_b)
{
    const size_t bytes = (size_t)(state->k * state->n);
    const uint8_t *from = (const uint8_t *)node->in[QP_W].data;
    uint8_t *turned = NULL;
    void *memory = NULL;
    if (!trans_b) {
        turned = (uint8_t *)malloc(bytes);
        if (!turned)
            return grt_fail_memory(bytes);
        turn_weights(from, state->k, state->n, turned);
        from = turned;
    }
    const grt_status status = cuda_keep(node, from, bytes, &memory);
    state->weights = (uint8_t *)memory;
    free(turned);
    return status;
}

void destroy_float8_product(void *data)
{
    qmatmul_state *state = (qmatmul_state *)data;
    if (state)
        cudaFree(state->weights);
    free(state);
}

grt_status create_float8_product(const grt_kernel_node *node, void **out_state)
{
    const cuda_device *device = (const cuda_device *)node->device;
    const cuda_blas *blas; /* fail now if cuBLASLt is missing */
    const grt_tensor *w = &node->in[QP_W];
    const bool trans_b = grt_attr_int(node->desc, "transB", 0) != 0;
    qmatmul_state *state;
    GRT_TRY(cuda_blas_get(device->libraries, &blas));
    GRT_TRY(cuda_state(&state));
    state->k = w->dims[trans_b ? 1 : 0];
    state->n = w->dims[trans_b ? 0 : 1];
    state->dtype = w->dtype;
    state->workspace_cap = (size_t)(device->prop.major >= 9 ? 32 : 4) << 20;
    if (device->prop.major == 9 && device->prop.minor == 0)
        state->encode = cuda_tensor_map_find();
    state->is_constant = cuda_qproduct_is_constant(node);
    grt_act_read(node->desc, &state->act, NULL);
    const grt_status status =
        cuda_is_described(node->device) ? GRT_OK : upload_float8_weights(node, state, trans_b);
    if (status != GRT_OK) {
        destroy_float8_product(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

/* ---- shapes ---- */

void release_float8_shape(void *data)
{
    qmatmul_shape *s = (qmatmul_shape *)data;
    if (s)
        cuda_lt_plan_release(s->plan);
    free(s);
}

/* What our kernel asks of a product, without its data. */
cuda_float8_bulk bulk_form_of(const qmatmul_state *state, const grt_device *device, int64_t rows,
                              const grt_tensor *x, const grt_tensor *y)
{
    cuda_float8_bulk b = {};
    b.k = state->k;
    b.multiprocessors = ((const cuda_device *)device)->prop.multiProcessorCount;
    if (x->dtype == GRT_DTYPE_FLOAT8E4M3FN && state->dtype == GRT_DTYPE_FLOAT8E4M3FN)
        b.encode = state->encode;
    b.finish.rows = rows;
    b.finish.columns = state->n;
    b.is_constant = state->is_constant;
    b.finish.act = state->act;
    b.finish.dtype = y->dtype;
    return b;
}

grt_status plan_float8_product(const grt_reshape *r, qmatmul_shape *s)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    cuda_device *device = (cuda_device *)r->device;
    cuda_lt_matmul m = {};
    m.dtype = GRT_DTYPE_FLOAT;
    m.of_a = r->in[QP_X]->dtype;
    m.of_b = state->dtype;
    m.trans_b = true;
    m.m = s->rows;
    m.n = state->n;
    m.k = state->k;
    m.batch = 1;
    m.alignment = STEP;
    m.workspace_cap = state->workspace_cap;
    GRT_TRY(cuda_lt_plan_create(device, r->desc, &m, r->trial, &s->plan));
    if (s->plan)
        return GRT_OK;
    s->is_widened = true;
    m.of_a = m.of_b = GRT_DTYPE_NONE;
    m.tf32 = true;
    GRT_TRY(cuda_lt_plan_create(device, r->desc, &m, r->trial, &s->plan));
    return s->plan ? GRT_OK
                   : grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                                 "cuBLASLt has no algorithm for a TF32 product of %lld x %lld x %lld",
                                 (long long)m.m, (long long)m.k, (long long)m.n);
}

size_t padded_workspace(int64_t bytes)
{
    return (size_t)((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

/* The library's own scratch, operands that are widened, sums. */
void place_workspace(grt_reshape *r, qmatmul_shape *s)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    const int64_t size = sizeof(float);
    s->x_at = padded_workspace((int64_t)cuda_lt_plan_workspace(s->plan));
    s->w_at = s->x_at + (s->is_widened ? padded_workspace(s->rows * state->k * size) : 0);
    s->sums_at = s->w_at + (s->is_widened ? padded_workspace(state->n * state->k * size) : 0);
    r->workspace_bytes = s->sums_at + padded_workspace(s->rows * state->n * size) + ALIGNMENT;
}

grt_status reshape_float8_product(grt_reshape *r)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    const grt_tensor *x = r->in[QP_X];
    char x_text[GRT_TYPE_TEXT_SIZE], w_text[GRT_TYPE_TEXT_SIZE];
    qmatmul_shape *s;
    if (x->rank < 2 || x->dims[x->rank - 1] != state->k)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "matrices %s and %s do not fit: the inner dims must be equal",
                           grt_tensor_text(x, x_text), grt_tensor_text(r->in[QP_W], w_text));
    GRT_TRY(grt_qproduct_check(r, state->n));
    GRT_TRY(cuda_state(&s));
    s->rows = grt_tensor_elements(x) / state->k;
    const cuda_float8_bulk bulk = bulk_form_of(state, r->device, s->rows, x, r->out[0]);
    s->is_bulk = s->rows > 0 && cuda_float8_bulk_fits(&bulk);
    const grt_status status = s->rows > 0 && !s->is_bulk ? plan_float8_product(r, s) : GRT_OK;
    if (status != GRT_OK) {
        release_float8_shape(s);
        return status;
    }
    if (s->plan)
        place_workspace(r, s);
    r->shape = s;
    return GRT_OK;
}

/* ---- running ---- */

void set_finish_data(const grt_run *r, cuda_float8_finish *f)
{
    f->x_scale = (const float *)r->in[QP_X_SCALE]->data;
    f->w_scale = (const float *)r->in[QP_W_SCALE]->data;
    f->w_scale_each = grt_tensor_elements(r->in[QP_W_SCALE]) > 1;
    f->y_scale = (const float *)grt_run_data(r, QP_Y_SCALE);
    f->bias = (const float *)grt_run_data(r, QP_BIAS);
    f->residual = grt_run_data(r, QP_RESIDUAL);
    f->y = r->out[0]->data;
}

grt_status run_bulk(const grt_run *r, cuda_float8_bulk *b)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    b->x = (const uint8_t *)r->in[QP_X]->data;
    b->w = state->weights;
    for (const void *data : {(const void *)b->x, b->finish.residual, (const void *)b->finish.y})
        if (!cuda_aligned(data, STEP))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "a matrix lies at %p; expected an address that is a multiple of %d bytes",
                               data, STEP);
    return cuda_float8_bulk_enqueue(b, cuda_stream(r));
}

grt_status run_float8_product(const grt_run *r)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    const qmatmul_shape *s = (const qmatmul_shape *)r->shape;
    const cudaStream_t stream = cuda_stream(r);
    cuda_float8_bulk bulk = bulk_form_of(state, r->device, s->rows, r->in[QP_X], r->out[0]);
    set_finish_data(r, &bulk.finish);
    if (s->is_bulk)
        return run_bulk(r, &bulk);
    if (!s->plan)
        return GRT_OK;
    char *room = (char *)(((uintptr_t)r->workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    cuda_lt_args args = {};
    args.alpha = 1;
    args.a = r->in[QP_X]->data;
    args.b = state->weights;
    args.y = room + s->sums_at;
    args.workspace = room;
    if (s->is_widened) {
        float *x = (float *)(room + s->x_at), *w = (float *)(room + s->w_at);
        GRT_TRY(cuda_float8_widen_enqueue(args.a, r->in[QP_X]->dtype, x, s->rows * state->k, stream));
        GRT_TRY(cuda_float8_widen_enqueue(args.b, state->dtype, w, state->n * state->k, stream));
        args.a = x;
        args.b = w;
    }
    GRT_TRY(cuda_lt_plan_run(s->plan, r->desc, &args, stream));
    bulk.finish.sums = (const float *)args.y;
    return cuda_float8_finish_enqueue(&bulk.finish, stream);
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QMatMul",
     .flags = GRT_KERNEL_TUNES,
     .supports = supports_qmatmul,
     .create = create_float8_product,
     .destroy = destroy_float8_product,
     .reshape = reshape_float8_product,
     .release_shape = release_float8_shape,
     .run = run_float8_product},
};

} // namespace
CUDA_KERNELS(qmatmul_float8, rows);

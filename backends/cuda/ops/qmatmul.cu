/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QMatMul: products of matrices of bytes with scale, bias, activation and requantisation. Constant
 * weights are laid out when the session is made, others in each run. */
#include "backends/cuda/libraries.h"
#include "backends/cuda/qgemm.h"
#include "backends/cuda/qpack.h"
#include "backends/cuda/qtable.h"
#include "backends/cuda/walk.h"
#include "src/base/tensor.h"

namespace
{

enum { ALIGNMENT = 256 };

struct qmatmul_state {
    bool trans_b, has_zeros, is_constant; /* is_constant: the weights are */
    bool has_row;                         /* the residual is a row, and in the epilogue */
    int64_t columns;                      /* of constant weights */
    void *weights;                        /* device copies of constants; NULL: made in each run */
    void *sums, *finish;
};

struct qmatmul_shape {
    cuda_qgemm g;
    cuda_qrows x_rows, w_rows;
    bool copied;
    int64_t k, columns;
    size_t sums_at, x_at, w_at;
};

size_t cuda_qmatmul_aligned_bytes(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void destroy_qmatmul(void *data)
{
    qmatmul_state *state = (qmatmul_state *)data;
    if (!state)
        return;
    cudaFree(state->weights);
    cudaFree(state->sums);
    cudaFree(state->finish);
    free(state);
}

/* Columns of all matrices as rows. */
cuda_qrows column_rows(const grt_tensor *w, bool transposed)
{
    const int64_t rows = w->dims[w->rank - 2], cols = w->dims[w->rank - 1],
                  matrices = grt_dims_product(w->dims, 0, w->rank - 2), k = transposed ? cols : rows,
                  n = transposed ? rows : cols;
    return {{matrices, n, 1}, k, {k * n, transposed ? k : 1, 0, transposed ? 1 : n}};
}

/* True if the weights are laid out when the session is made. */
bool has_constant_weights(const grt_kernel_node *node)
{
    const grt_tensor *w = &node->in[QP_W];
    return w->data && w->rank >= 2 && grt_tensor_elements(w) > 0;
}

/* True if the residual is a constant row of the only matrix of constant weights. */
bool has_row(const grt_kernel_node *node, bool transposed)
{
    const grt_tensor *w = &node->in[QP_W];
    if (!has_constant_weights(node))
        return false;
    const cuda_qrows rows = column_rows(w, transposed);
    return rows.count[0] == 1 && cuda_qproduct_has_row(node, rows.count[1]);
}

cuda_qsource cuda_qmatmul_source_of(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                                    const cuda_qrows *w, bool of_row)
{
    cuda_qsource s = cuda_qproduct_source(desc, in, n_in);
    s.row = of_row ? in[QP_RESIDUAL]->data : NULL;
    s.levels = w->count[1];
    s.columns = w->count[0] * w->count[1];
    s.depth = w->width;
    s.filled = cuda_qrow_bytes(w->width) - w->width;
    return s;
}

grt_status cuda_qmatmul_upload_finish(const grt_kernel_node *node, const cuda_qsource *source,
                                      const int32_t *sums, qmatmul_state *state)
{
    const size_t bytes = cuda_qfinish_bytes(source->columns);
    void *memory = calloc(1, bytes);
    if (!memory)
        return grt_fail_memory(bytes);
    cuda_qfinish_fill(source, sums, memory);
    const grt_status status = cuda_keep(node, memory, bytes, &state->finish);
    free(memory);
    return status;
}

grt_status cuda_qmatmul_upload_weights(const grt_kernel_node *node, const cuda_qrows *rows,
                                       const cuda_qsource *source, qmatmul_state *state)
{
    const grt_tensor *w = &node->in[QP_W];
    const int64_t columns = rows->count[0] * rows->count[1];
    const size_t bytes = (size_t)(columns * cuda_qrow_bytes(rows->width)),
                 sum_bytes = (size_t)columns * sizeof(int32_t);
    void *packed = calloc(1, bytes);
    int32_t *sums = (int32_t *)calloc(1, sum_bytes);
    grt_status status = packed && sums ? GRT_OK : grt_fail_memory(bytes);
    if (status == GRT_OK) {
        cuda_qweights_pack(rows, w->data, w->dtype == GRT_DTYPE_INT8, packed, sums);
        status = cuda_keep(node, packed, bytes, &state->weights);
    }
    if (status == GRT_OK)
        status = cuda_keep(node, sums, sum_bytes, &state->sums);
    if (status == GRT_OK && cuda_qproduct_is_constant(node))
        status = cuda_qmatmul_upload_finish(node, source, sums, state);
    free(packed);
    free(sums);
    return status;
}

/* What constant weights decide. Their zero points may be no constants: then their sums are needed. */
grt_status create_constant(const grt_kernel_node *node, qmatmul_state *state)
{
    const grt_tensor *in[QP_INPUTS], *w = &node->in[QP_W];
    const int32_t n_in = node->n_in < QP_INPUTS ? node->n_in : QP_INPUTS;
    for (int32_t i = 0; i < n_in; i++)
        in[i] = grt_node_has(node, i) ? &node->in[i] : NULL;
    const cuda_qrows rows = column_rows(w, state->trans_b);
    const cuda_qsource source =
        cuda_qmatmul_source_of(node->desc, in, n_in, &rows, has_row(node, state->trans_b));
    state->is_constant = true;
    state->columns = source.columns;
    state->has_row = has_row(node, state->trans_b);
    state->has_zeros =
        (grt_node_has(node, QP_W_ZERO) && !node->in[QP_W_ZERO].data) || cuda_qproduct_has_zeros(&source);
    return cuda_is_described(node->device) ? GRT_OK
                                           : cuda_qmatmul_upload_weights(node, &rows, &source, state);
}

grt_status create_qmatmul(const grt_kernel_node *node, void **out_state)
{
    const grt_tensor *w = &node->in[QP_W];
    qmatmul_state *state;
    GRT_TRY(cuda_state(&state));
    state->trans_b = grt_attr_int(node->desc, "transB", 0) != 0;
    state->has_zeros = grt_node_has(node, QP_W_ZERO) || w->dtype == GRT_DTYPE_UINT8;
    const grt_status status = has_constant_weights(node) ? create_constant(node, state) : GRT_OK;
    if (status != GRT_OK) {
        destroy_qmatmul(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

grt_status fail_fit(const grt_reshape *r)
{
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "matrices %s and %s do not fit: the inner dims must be equal and the leading ones "
                       "broadcast",
                       grt_tensor_text(r->in[QP_X], a), grt_tensor_text(r->in[QP_W], b));
}

/* Rows are pixels of one line. */
grt_status fit_matrices(const grt_reshape *r, qmatmul_shape *s)
{
    const grt_tensor *a = r->in[QP_X], *b = r->in[QP_W];
    cuda_qgemm *g = &s->g;
    const int32_t lead_a = a->rank - 2, lead_b = b->rank - 2;
    if (a->rank < 2 || b->rank < 2)
        return fail_fit(r);
    s->w_rows = column_rows(b, ((const qmatmul_state *)r->state)->trans_b);
    s->k = s->w_rows.width;
    s->columns = s->w_rows.count[0] * s->w_rows.count[1];
    if (a->dims[a->rank - 1] != s->k ||
        !grt_dims_broadcast(a->dims, lead_a, b->dims, lead_b, g->dims, &g->lead))
        return fail_fit(r);
    grt_broadcast_strides(a->dims, lead_a, g->lead, g->x_strides);
    grt_broadcast_strides(b->dims, lead_b, g->lead, g->w_strides);
    const int64_t matrices = grt_dims_product(a->dims, 0, lead_a), n = s->w_rows.count[1];
    int64_t m = a->dims[a->rank - 2];
    g->items = grt_dims_product(g->dims, 0, g->lead);
    if (s->w_rows.count[0] == 1 && matrices == g->items) { /* one tall product */
        m *= g->items;
        g->items = 1;
        g->lead = 0;
    }
    if (m > INT32_MAX / 2 || n > INT32_MAX / 2 || s->k > INT32_MAX / 2)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "matrices of more than 2^30 rows are not supported");
    s->x_rows = {{matrices, a->dims[a->rank - 2], 1}, s->k, {a->dims[a->rank - 2] * s->k, s->k, 0, 1}};
    g->images = 1;
    g->in[1] = g->out[1] = (int32_t)m;
    g->n = (int32_t)n;
    g->chunks = (int32_t)(cuda_qrow_bytes(s->k) / CUDA_QCHUNK);
    g->x_pixel = cuda_qrow_bytes(s->k);
    g->x_image = g->x_item = g->x_pixel * m;
    g->y_pixel = n;
    g->y_channel = 1;
    g->y_image = g->y_item = m * n;
    return g->row ? grt_qproduct_check_columns(r, n) : grt_qproduct_check(r, n);
}

/* Of results in front of a table. */
grt_dtype rounded_type(const grt_reshape *r)
{
    const grt_tensor *y = grt_reshape_in(r, QP_Y_ZERO), *sum = grt_reshape_in(r, QP_SUM_ZERO);
    if (!grt_reshape_in(r, QP_TABLE))
        return r->out[0]->dtype;
    return sum ? sum->dtype : y->dtype;
}

grt_status describe_qmatmul(grt_reshape *r, qmatmul_shape *s)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    const grt_tensor *residual = grt_reshape_in(r, QP_RESIDUAL);
    cuda_qgemm *g = &s->g;
    g->x_signed = r->in[QP_X]->dtype == GRT_DTYPE_INT8;
    g->sums_rows = state->has_zeros;
    g->y = rounded_type(r);
    g->table_flip = g->y == GRT_DTYPE_INT8 ? 0x80 : 0;
    g->row = state->has_row;
    g->y_size = (int32_t)grt_dtype_size(g->y);
    g->sum = grt_reshape_in(r, QP_SUM_SCALE) != NULL;
    g->residual = residual && !g->row ? residual->dtype : GRT_DTYPE_NONE;
    g->act = cuda_qproduct_activation(r->desc, g->y);
    g->in[0] = g->out[0] = 1;
    for (int i = 0; i < 2; i++)
        g->kernel[i] = g->stride[i] = g->dilation[i] = 1;
    cuda_qgemm_set_device(g, (const cuda_device *)r->device);
    g->is_constant = state->finish != NULL;
    GRT_TRY(fit_matrices(r, s));
    s->copied = s->k % CUDA_QCHUNK != 0;
    if (!cuda_qgemm_fits(g))
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "the matrices are too large");
    const size_t finish = cuda_qmatmul_aligned_bytes(cuda_qfinish_bytes(s->columns)),
                 sums = cuda_qmatmul_aligned_bytes((size_t)s->columns * sizeof(int32_t)),
                 x = s->copied ? cuda_qmatmul_aligned_bytes(
                                     (size_t)(s->x_rows.count[0] * s->x_rows.count[1] * g->x_pixel))
                               : 0,
                 w = state->is_constant ? 0 : (size_t)(s->columns * g->x_pixel);
    s->sums_at = finish;
    s->x_at = s->sums_at + sums;
    s->w_at = s->x_at + x;
    r->workspace_bytes = s->w_at + w;
    return GRT_OK;
}

grt_status reshape_qmatmul(grt_reshape *r)
{
    qmatmul_shape *s;
    GRT_TRY(cuda_state(&s));
    const grt_status status = describe_qmatmul(r, s);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

/* Weights and epilogue, those that are not constant made now. */
grt_status prepare_weights(const grt_run *r, const void **out_weights, cuda_qfinish *out_finish)
{
    const qmatmul_state *state = (const qmatmul_state *)r->state;
    const qmatmul_shape *s = (const qmatmul_shape *)r->shape;
    char *room = (char *)r->workspace;
    const int32_t *sums = (const int32_t *)state->sums;
    *out_weights = state->weights;
    if (!state->is_constant) {
        sums = (const int32_t *)(room + s->sums_at);
        *out_weights = room + s->w_at;
        GRT_TRY(cuda_qweights_enqueue(&s->w_rows, r->in[QP_W]->data, r->in[QP_W]->dtype == GRT_DTYPE_INT8,
                                      room + s->w_at, (int32_t *)(room + s->sums_at), cuda_stream(r)));
    }
    if (!state->finish) {
        const cuda_qsource source =
            cuda_qmatmul_source_of(r->desc, r->in, r->n_in, &s->w_rows, state->has_row);
        GRT_TRY(cuda_qfinish_enqueue(&source, sums, room, cuda_stream(r)));
    }
    *out_finish = cuda_qfinish_at(state->finish ? state->finish : room, s->columns);
    return GRT_OK;
}

grt_status run_qmatmul(const grt_run *r)
{
    const qmatmul_shape *s = (const qmatmul_shape *)r->shape;
    const grt_tensor *zero = grt_run_in(r, QP_X_ZERO), *other = grt_run_in(r, QP_RESIDUAL);
    const void *x = r->in[QP_X]->data, *weights, *residual = other && !s->g.row ? other->data : NULL;
    void *y = r->out[0]->data;
    cuda_qgemm g = s->g;
    cuda_qfinish finish;
    g.table = (const uint8_t *)grt_run_data(r, QP_TABLE);
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    GRT_TRY(prepare_weights(r, &weights, &finish));
    if (s->copied) {
        void *to = (char *)r->workspace + s->x_at;
        GRT_TRY(cuda_qrows_copy(&s->x_rows, x, zero ? zero->data : NULL, to, cuda_stream(r)));
        x = to;
    }
    if (!cuda_aligned(x, CUDA_QCHUNK))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the first matrix lies at %p; expected an address that is a multiple of %d bytes",
                           x, CUDA_QCHUNK);
    GRT_TRY(cuda_qgemm_enqueue(&g, x, weights, residual, &finish, y, cuda_stream(r)));
    if (!g.table || cuda_qgemm_looks_up(&g, residual, y))
        return GRT_OK;
    return cuda_qtable_enqueue((const cuda_device *)r->device, y, g.table, g.table_flip, y,
                               grt_tensor_elements(r->out[0]), cuda_stream(r));
}

/* A table of constant levels behind a rounding, and a constant residual that is a row or has y's dims. */
bool cuda_qmatmul_fits(const grt_kernel_node *node, grt_text *why)
{
    const grt_tensor *residual = &node->in[QP_RESIDUAL], *table = &node->in[QP_TABLE], *y = &node->out[0];
    const bool transposed = grt_attr_int(node->desc, "transB", 0) != 0;
    if (!cuda_qproduct_supports(node, why))
        return false;
    if (has_constant_weights(node) &&
        !grt_qproduct_constants_fit(node, column_rows(&node->in[QP_W], transposed).count[1])) {
        if (why)
            grt_text_add(why,
                         "constant scales and zero points must have one element, or those of weights one "
                         "for each column, and so must a bias");
        return false;
    }
    const bool row = has_row(node, transposed),
               fits_residual = !grt_node_has(node, QP_RESIDUAL) || !residual->data || row ||
                               grt_dims_equal(residual->dims, residual->rank, y->dims, y->rank),
               fits_table = !grt_node_has(node, QP_TABLE) ||
                            (grt_node_has(node, QP_Y_ZERO) && table->data &&
                             grt_dtype_in(table->dtype, GRT_SET_BYTES) && grt_tensor_elements(table) == 256);
    if (fits_residual && fits_table)
        return true;
    if (why)
        grt_text_add(why, "a constant residual must be a row of y or have its dims, and a table of a rounded "
                          "result 256 constant bytes");
    return false;
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QMatMul",
     .supports = cuda_qmatmul_fits,
     .create = create_qmatmul,
     .destroy = destroy_qmatmul,
     .reshape = reshape_qmatmul,
     .release_shape = free,
     .run = run_qmatmul},
};

} // namespace
CUDA_KERNELS(qmatmul, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QMatMul: products of 8-bit matrices with scale, bias, activation and requantisation. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/qproduct.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include "src/base/checked.h"
#include "src/base/tensor.h"

#include <stdlib.h>

typedef struct qmatmul_state {
    bool trans_b;
    int64_t matrices;
    grt_qgemm_b b;
    char *packed; /* a constant B, all its matrices; else NULL */
} qmatmul_state;

typedef struct qmatmul_shape {
    grt_qgemm_b b;
    int64_t m, matrix_a, batch;
    int32_t lead;                                                    /* leading dims of the result */
    int64_t dims[GRT_MAX_RANK], a[GRT_MAX_RANK], at_b[GRT_MAX_RANK]; /* strides in matrices */
    int64_t b_matrices;
    size_t columns_at, packed_at, scratch_at, scratch_each;
    bool whole_batches; /* a thread computes matrices of the batch */
} qmatmul_shape;

/* Columns of B, and terms of a sum. */
static int64_t qmatmul_n(const grt_tensor *b, bool trans)
{
    return b->dims[b->rank - (trans ? 2 : 1)];
}

static int64_t qmatmul_k(const grt_tensor *b, bool trans)
{
    return b->dims[b->rank - (trans ? 1 : 2)];
}

static void pack_matrix(const grt_qgemm_b *b, bool trans, const void *data, int64_t matrix, char *packed)
{
    const uint8_t *from = (const uint8_t *)data + matrix * b->k * b->n;
    grt_qgemm_pack(b, from, trans ? 1 : b->n, trans ? b->k : 1, packed + matrix * b->bytes);
}

/* Of a product by weights, which all rows of A meet; -1 while it is not known. */
static int64_t qmatmul_rows(const grt_tensor *a)
{
    int64_t rows = 1;
    for (int32_t i = 0; i < a->rank - 1; i++) {
        if (a->dims[i] < 0)
            return -1;
        rows = grt_mul_saturated(rows, a->dims[i]);
    }
    return a->rank > 1 ? rows : -1;
}

static void qmatmul_destroy(void *data)
{
    qmatmul_state *state = data;
    if (state)
        grt_account_free(state->packed);
    free(state);
}

static grt_status pack_constant(const grt_kernel_node *node, qmatmul_state *state)
{
    const grt_tensor *b = &node->in[QP_W];
    size_t bytes = 0;
    state->matrices = grt_dims_product(b->dims, 0, b->rank - 2);
    const int64_t rows = state->matrices == 1 ? qmatmul_rows(&node->in[QP_X]) : -1;
    const struct grt_qgemm_kernel *kernel = grt_qgemm_kernel_of_rows(rows);
    if (!grt_qgemm_b_init_constant(kernel, rows, qmatmul_k(b, state->trans_b), qmatmul_n(b, state->trans_b),
                                   b->dtype == GRT_DTYPE_INT8, &state->b) ||
        !grt_mul_size((size_t)state->b.bytes, (size_t)state->matrices, &bytes) || bytes > SIZE_MAX / 2)
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->packed));
    for (int64_t i = 0; i < state->matrices; i++)
        pack_matrix(&state->b, state->trans_b, b->data, i, state->packed);
    return GRT_OK;
}

static grt_status qmatmul_create(const grt_kernel_node *node, void **out_state)
{
    qmatmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->trans_b = grt_attr_int(node->desc, "transB", 0) != 0;
    const grt_tensor *b = &node->in[QP_W];
    const grt_status status =
        b->data && b->rank >= 2 && grt_tensor_elements(b) > 0 ? pack_constant(node, state) : GRT_OK;
    if (status != GRT_OK) {
        qmatmul_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static grt_status qmatmul_misfit(const grt_reshape *r)
{
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "matrices %s and %s do not fit: the inner dims must be equal and the leading ones "
                       "broadcast",
                       grt_tensor_text(r->in[QP_X], a), grt_tensor_text(r->in[QP_W], b));
}

static grt_status qmatmul_fit(const grt_reshape *r, qmatmul_shape *s)
{
    const qmatmul_state *state = r->state;
    const grt_tensor *a = r->in[QP_X], *b = r->in[QP_W];
    if (a->rank < 2 || b->rank < 2)
        return qmatmul_misfit(r);
    if (state->packed)
        s->b = state->b;
    else if (!grt_qgemm_b_init(NULL, qmatmul_k(b, state->trans_b), qmatmul_n(b, state->trans_b),
                               b->dtype == GRT_DTYPE_INT8, &s->b))
        return grt_fail_memory(SIZE_MAX);
    const int32_t lead_a = a->rank - 2, lead_b = b->rank - 2;
    if (a->dims[a->rank - 1] != s->b.k ||
        !grt_dims_broadcast(a->dims, lead_a, b->dims, lead_b, s->dims, &s->lead))
        return qmatmul_misfit(r);
    grt_broadcast_strides(a->dims, lead_a, s->lead, s->a);
    grt_broadcast_strides(b->dims, lead_b, s->lead, s->at_b);
    s->m = a->dims[a->rank - 2];
    s->batch = grt_dims_product(s->dims, 0, s->lead);
    s->b_matrices = grt_dims_product(b->dims, 0, lead_b);
    if (s->b_matrices == 1 && grt_dims_product(a->dims, 0, lead_a) == s->batch) { /* one tall product */
        s->m *= s->batch;
        s->batch = 1;
    }
    s->matrix_a = s->m * s->b.k;
    return grt_qproduct_check(r, s->b.n);
}

static grt_qgemm qmatmul_describe(const qmatmul_shape *s, bool a_signed)
{
    return (grt_qgemm){.m = s->m, .lda = s->b.k, .a_signed = a_signed, .b = &s->b, .ldy = s->b.n};
}

static grt_status qmatmul_size_workspace(grt_reshape *r, qmatmul_shape *s)
{
    const qmatmul_state *state = r->state;
    static const uint8_t any;
    grt_qgemm g = qmatmul_describe(s, r->in[QP_X]->dtype == GRT_DTYPE_INT8);
    cpu_layout layout = {0};
    g.a = &any;
    s->whole_batches = s->batch > 1;
    layout.overflow = !grt_qgemm_scratch_bytes(&g, s->whole_batches ? 1 : r->threads, &s->scratch_each);
    s->columns_at = cpu_layout_add(&layout, s->b_matrices, (size_t)cpu_qproduct_columns_bytes(s->b.n));
    s->packed_at = cpu_layout_add(&layout, state->packed ? 0 : s->b_matrices, (size_t)s->b.bytes);
    s->scratch_at = cpu_layout_add(&layout, s->whole_batches ? r->threads : 1, s->scratch_each);
    r->workspace_bytes = layout.bytes;
    return layout.overflow ? grt_fail_memory(SIZE_MAX) : GRT_OK;
}

static grt_status qmatmul_reshape(grt_reshape *r)
{
    qmatmul_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_status status = qmatmul_fit(r, s);
    if (status == GRT_OK)
        status = qmatmul_size_workspace(r, s);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

typedef struct job {
    const grt_run *run;
    const qmatmul_shape *s;
    grt_qgemm g;
    grt_qgemm_params params;
    char *packed;
} job;

static grt_qgemm_columns qmatmul_columns_of(const job *w, int64_t matrix)
{
    char *memory = cpu_workspace_at(w->run->workspace, w->s->columns_at);
    return cpu_qproduct_columns(memory + matrix * cpu_qproduct_columns_bytes(w->s->b.n), w->s->b.n);
}

/* Matrix i of B, packed if it was not, and its columns. */
static void prepare_matrix(const job *w, int64_t i)
{
    const qmatmul_state *state = w->run->state;
    const grt_qgemm_columns columns = qmatmul_columns_of(w, i);
    if (!state->packed)
        pack_matrix(&w->s->b, state->trans_b, w->run->in[QP_W]->data, i, w->packed);
    grt_qgemm_set_columns(&w->s->b, w->packed + i * w->s->b.bytes, &w->params, &columns);
}

static void multiply_item(const job *w, int64_t item, char *scratch, int threads)
{
    const qmatmul_shape *s = w->s;
    grt_qgemm g = w->g;
    const int64_t size = (int64_t)grt_dtype_size(w->run->out[0]->dtype);
    const int64_t at_a = s->batch == 1 ? 0 : grt_strided_offset(s->dims, s->lead, s->a, item),
                  at_b = s->batch == 1 ? 0 : grt_strided_offset(s->dims, s->lead, s->at_b, item);
    const grt_qgemm_columns columns = qmatmul_columns_of(w, at_b);
    g.a = (const uint8_t *)w->run->in[QP_X]->data + at_a * s->matrix_a;
    g.packed = w->packed + at_b * s->b.bytes;
    g.y = (char *)w->run->out[0]->data + item * s->m * s->b.n * size;
    if (g.finish.residual)
        g.finish.residual = (const char *)g.finish.residual + item * s->m * s->b.n;
    grt_qgemm_use_columns(&s->b, &w->params, &columns, &g.finish);
    grt_qgemm_run(&g, scratch, threads);
}

static grt_status qmatmul_run(const grt_run *r)
{
    const qmatmul_state *state = r->state;
    const qmatmul_shape *s = r->shape;
    job w = {.run = r, .s = s, .packed = state->packed};
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    w.g = qmatmul_describe(s, r->in[QP_X]->dtype == GRT_DTYPE_INT8);
    if (!w.packed)
        w.packed = cpu_workspace_at(r->workspace, s->packed_at);
    cpu_qproduct_params(r, 0, &w.params);
    cpu_qproduct_finish(r, s->b.n, &w.g.finish);
    char *scratch = cpu_workspace_at(r->workspace, s->scratch_at);
#pragma omp parallel for num_threads(r->threads) if (!state->packed && s->b_matrices > 1)
    for (int64_t i = 0; i < s->b_matrices; i++)
        prepare_matrix(&w, i);
    if (!s->whole_batches) {
        multiply_item(&w, 0, scratch, r->threads);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(r->threads) if (s->batch * s->m * s->b.n * s->b.k > 12 * CPU_GRAIN)
    for (int64_t i = 0; i < s->batch; i++)
        multiply_item(&w, i, scratch + (size_t)cpu_thread() * s->scratch_each, 1);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QMatMul",
     .supports = cpu_qproduct_supports,
     .create = qmatmul_create,
     .destroy = qmatmul_destroy,
     .reshape = qmatmul_reshape,
     .release_shape = free,
     .run = qmatmul_run},
};
CPU_KERNELS(qmatmul, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and their fused form graphrt::MatMul. float32 runs on the packed product of gemm.h, 16-bit
 * floats do after widening, other types on plain loops (matmul_typed.c). */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/epilogue_attrs.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/matmul_typed.h"
#include "backends/cpu/packing.h"
#include "backends/cpu/workspace.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct matmul_state {
    bool is_gemm, trans_a, trans_b;
    float alpha, beta;
    grt_act act;
    const float *packed; /* constant B, all its matrices, or NULL */
    float *own;          /* `packed` where it was packed here, not in the plan */
    size_t packed_floats;
} matmul_state;

/* Batches that one call of the product cannot stride over are walked by an odometer. */
typedef struct matmul_shape {
    grt_gemm g;
    int64_t matrix_a, matrix_b; /* elements of one stored matrix */
    int32_t outer_rank;
    int64_t outer[GRT_MAX_RANK], step_a[GRT_MAX_RANK], step_b[GRT_MAX_RANK]; /* steps in matrices */
    int64_t calls, call_c;                                                   /* C elements per call */
    int64_t n_a, n_b, n_c;                                                   /* elements in all */
    size_t scratch, wide_a, wide_b, wide_c;                                  /* workspace offsets */
    int64_t c_rows, c_cols; /* of Gemm's C: each 1 or the result's */
} matmul_shape;

enum { BIAS = 2, RESIDUAL = 3 };

static bool is_half(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

/* ---- create ---- */

static void matrix_dims(const grt_tensor *b, bool trans, int64_t *k, int64_t *n)
{
    const int64_t rows = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0],
                  cols = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    *k = trans ? cols : rows;
    *n = trans ? rows : cols;
}

/* Floats of one packed matrix of a constant B, and how many matrices there are. False: B is not packed (there
 * is none, or it is empty, or its type has no packed form). */
static bool packs(const grt_kernel_node *node, bool trans_b, size_t *floats, int64_t *matrices)
{
    const grt_tensor *b = &node->in[1];
    int64_t k, n, count = b->data && b->rank >= 1 ? grt_tensor_elements(b) : 0;
    size_t bytes;
    if (count <= 0 || (b->dtype != GRT_DTYPE_FLOAT && !is_half(b->dtype)))
        return false;
    matrix_dims(b, trans_b, &k, &n);
    *matrices = count / (k * n);
    return grt_gemm_packed_b_floats(k, n, floats) &&
           grt_mul_size(*floats, (size_t)*matrices * sizeof(float), &bytes) && bytes <= SIZE_MAX / 2;
}

static grt_status pack_b(const grt_tensor *b, bool trans_b, size_t floats, int64_t matrices,
                         float **out_packed)
{
    int64_t k, n;
    matrix_dims(b, trans_b, &k, &n);
    const size_t bytes = grt_align_up(floats * (size_t)matrices * sizeof(float), 64);
    float *packed = aligned_alloc(64, bytes);
    float *wide = is_half(b->dtype) ? malloc((size_t)(k * n) * sizeof *wide) : NULL;
    if (!packed || (is_half(b->dtype) && !wide)) {
        free(packed);
        free(wide);
        return grt_fail_memory(bytes);
    }
    for (int64_t i = 0; i < matrices; i++) {
        const float *from = (const float *)b->data + i * k * n;
        if (wide) {
            cpu_widen(b->dtype, b->data, i * k * n, k * n, wide);
            from = wide;
        }
        grt_gemm_pack_b(k, n, from, trans_b ? k : n, trans_b, packed + (size_t)i * floats);
    }
    free(wide);
    *out_packed = packed;
    return GRT_OK;
}

/* 16-bit weights stay as they are in a plan: packed ones are twice their size. */
static grt_status pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing, void **out_data)
{
    const bool trans_b = grt_attr_int(node->desc, "transB", 0) != 0;
    size_t floats;
    int64_t matrices;
    float *packed;
    if (i != 1 || node->in[1].dtype != GRT_DTYPE_FLOAT || !packs(node, trans_b, &floats, &matrices) ||
        !grt_packing_is_worth(grt_tensor_bytes(&node->in[1]), floats * (size_t)matrices * sizeof *packed))
        return GRT_OK;
    GRT_TRY(pack_b(&node->in[1], trans_b, floats, matrices, &packed));
    strcpy(out_packing->format, cpu_packing_matrix(trans_b));
    out_packing->bytes = floats * (size_t)matrices * sizeof *packed;
    *out_data = packed;
    return GRT_OK;
}

static void destroy(void *data)
{
    matmul_state *state = data;
    if (state)
        free(state->own);
    free(state);
}

static grt_status bind_constant(const grt_kernel_node *node, matmul_state *state)
{
    int64_t matrices;
    if (!packs(node, state->trans_b, &state->packed_floats, &matrices))
        return GRT_OK;
    const grt_packing *packing = grt_node_packing(node, 1);
    if (!packing) {
        GRT_TRY(pack_b(&node->in[1], state->trans_b, state->packed_floats, matrices, &state->own));
        state->packed = state->own;
        return GRT_OK;
    }
    const char *format = cpu_packing_matrix(state->trans_b);
    const size_t bytes = state->packed_floats * (size_t)matrices * sizeof(float);
    if (node->in[1].dtype != GRT_DTYPE_FLOAT || strcmp(packing->format, format) || packing->bytes != bytes)
        return grt_fail_op(
            node->desc, GRT_STATUS_INVALID_PLAN,
            "B is packed as '%s' in %zu bytes; expected '%s' in %zu; make the plan again with graphc "
            "optimize",
            packing->format, packing->bytes, format, bytes);
    state->packed = node->in[1].data;
    return GRT_OK;
}

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    matmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->is_gemm = grt_op_is(desc, "", "Gemm");
    state->trans_a = grt_attr_int(desc, "transA", 0) != 0;
    state->trans_b = grt_attr_int(desc, "transB", 0) != 0;
    state->alpha = grt_attr_float(desc, state->is_gemm ? "alpha" : "scale", 1.0f);
    state->beta = state->is_gemm ? grt_attr_float(desc, "beta", 1.0f) : 1.0f;
    if (!state->is_gemm)
        grt_act_read(desc, &state->act, NULL);
    grt_status status = bind_constant(node, state);
    if (status != GRT_OK) {
        destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static bool fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return grt_act_read(node->desc, &act, why);
}

/* ---- reshape ---- */

static int32_t batch_rank(const grt_tensor *t)
{
    return t->rank > 2 ? t->rank - 2 : 0;
}

/* Merges the batch dims, last first, into one strided batch as far as both inputs allow; the rest is the
 * odometer's. */
static void split_batch(const grt_tensor *a, const grt_tensor *b, const grt_tensor *c, int32_t rank,
                        matmul_shape *s, int64_t *stride_a, int64_t *stride_b)
{
    int64_t size_a = 1, size_b = 1;
    bool open = true;
    *stride_a = *stride_b = 0;
    s->g.batch = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t ia = i - (rank - batch_rank(a)), ib = i - (rank - batch_rank(b));
        const int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib], d = c->dims[i];
        const int64_t sa = da == 1 ? 0 : size_a, sb = db == 1 ? 0 : size_b;
        size_a *= da;
        size_b *= db;
        if (d == 1)
            continue;
        if (open && s->g.batch == 1) {
            s->g.batch = d;
            *stride_a = sa;
            *stride_b = sb;
        } else if (open && sa == *stride_a * s->g.batch && sb == *stride_b * s->g.batch) {
            s->g.batch *= d;
        } else {
            open = false;
            s->outer[s->outer_rank] = d;
            s->step_a[s->outer_rank] = sa;
            s->step_b[s->outer_rank++] = sb;
            s->calls *= d;
        }
    }
}

/* Is the fused bias one row for each matrix of the batch? */
static bool has_rows(const matmul_state *state, const grt_reshape *r)
{
    return !state->is_gemm && r->n_in > BIAS && r->in[BIAS] && r->in[BIAS]->rank > 1;
}

static bool check_rows(const grt_tensor *bias, const grt_tensor *out)
{
    grt_tensor rows = *out;
    if (rows.rank > 1)
        rows.dims[rows.rank - 2] = 1;
    return grt_dims_equal(bias->dims, bias->rank, rows.dims, rows.rank);
}

static void fit(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = r->state;
    const grt_tensor *a = r->in[0], *b = r->in[1], *c = r->out[0];
    const int32_t rank = batch_rank(a) > batch_rank(b) ? batch_rank(a) : batch_rank(b);
    grt_gemm *g = &s->g;
    const int64_t rows = a->rank > 1 ? a->dims[a->rank - 2] : 1, cols = a->dims[a->rank - 1];
    int64_t stride_a, stride_b;
    g->m = state->trans_a ? cols : rows;
    matrix_dims(b, state->trans_b, &g->k, &g->n);
    g->lda = cols;
    g->ldb = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    g->trans_a = state->trans_a;
    g->trans_b = state->trans_b;
    s->calls = 1;
    s->matrix_a = rows * cols;
    s->matrix_b = g->k * g->n;
    s->n_a = grt_tensor_elements(a);
    s->n_b = grt_tensor_elements(b);
    s->n_c = grt_tensor_elements(c);
    split_batch(a, b, c, rank, s, &stride_a, &stride_b);
    /* One B for many A's in a row: one tall product. */
    if (!g->trans_a && stride_b == 0 && stride_a == 1 && !has_rows(state, r)) {
        g->m *= g->batch;
        g->batch = 1;
    }
    g->stride_a = stride_a * s->matrix_a;
    g->stride_b = stride_b * s->matrix_b;
    g->ldc = g->ldr = g->n;
    g->stride_c = g->stride_r = g->m * g->n;
    s->call_c = g->batch * g->m * g->n;
    g->alpha = state->alpha;
    g->act = state->act;
}

static bool check_c(const grt_tensor *c, const matmul_shape *s, int64_t *rows, int64_t *cols)
{
    *cols = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    *rows = c->rank > 1 ? c->dims[c->rank - 2] : 1;
    return c->rank <= 2 && (*rows == 1 || *rows == s->g.m) && (*cols == 1 || *cols == s->g.n);
}

static grt_status check_epilogue(const grt_reshape *r, matmul_shape *s)
{
    const matmul_state *state = r->state;
    const grt_tensor *bias = r->n_in > BIAS ? r->in[BIAS] : NULL,
                     *residual = r->n_in > RESIDUAL ? r->in[RESIDUAL] : NULL;
    char found[GRT_TYPE_TEXT_SIZE], wanted[GRT_TYPE_TEXT_SIZE];
    if (state->is_gemm && bias && !check_c(bias, s, &s->c_rows, &s->c_cols))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "C is %s, which does not broadcast to the result %s", grt_tensor_text(bias, found),
                           grt_tensor_text(r->out[0], wanted));
    if (has_rows(state, r) && !check_rows(bias, r->out[0]))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the bias is %s; expected one row for each matrix of the result, %s",
                           grt_tensor_text(bias, found), grt_tensor_text(r->out[0], wanted));
    s->g.stride_bias = has_rows(state, r) ? s->g.n : 0;
    if (!state->is_gemm && bias && !s->g.stride_bias && grt_tensor_elements(bias) != s->g.n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the bias is %s; expected %lld elements",
                           grt_tensor_text(bias, found), (long long)s->g.n);
    if (residual && !grt_dims_equal(residual->dims, residual->rank, r->out[0]->dims, r->out[0]->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the residual is %s; expected the result's dims, %s",
                           grt_tensor_text(residual, found), grt_tensor_text(r->out[0], wanted));
    return GRT_OK;
}

static grt_status reshape(grt_reshape *r)
{
    const matmul_state *state = r->state;
    matmul_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    fit(r, s);
    grt_status status = check_epilogue(r, s);
    const grt_dtype dtype = r->in[0]->dtype;
    if (status == GRT_OK && (dtype == GRT_DTYPE_FLOAT || is_half(dtype))) {
        cpu_layout layout = {0};
        size_t bytes = 0;
        s->g.b_packed = state->packed != NULL;
        if (state->packed)
            s->g.stride_b = s->g.stride_b ? s->g.stride_b / s->matrix_b * (int64_t)state->packed_floats : 0;
        layout.overflow = !grt_gemm_scratch_bytes(&s->g, r->threads, &bytes) || bytes > INT64_MAX;
        s->scratch = cpu_layout_add(&layout, layout.overflow ? 0 : (int64_t)bytes, 1);
        if (is_half(dtype)) {
            s->wide_a = cpu_layout_add(&layout, s->n_a, sizeof(float));
            s->wide_b = cpu_layout_add(&layout, state->packed ? 0 : s->n_b, sizeof(float));
            s->wide_c = cpu_layout_add(&layout, s->n_c, sizeof(float));
        }
        r->workspace_bytes = layout.bytes;
        if (layout.overflow)
            status = grt_fail_memory(SIZE_MAX);
    }
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

/* ---- run ---- */

/* beta * C, broadcast, into y. */
static void spread_c(const grt_tensor *c, const matmul_shape *s, float beta, float *y)
{
    const float *from = c->data;
    for (int64_t i = 0; i < s->g.m; i++)
        for (int64_t j = 0; j < s->g.n; j++) {
            const int64_t at = (s->c_rows > 1 ? i * s->c_cols : 0) + (s->c_cols > 1 ? j : 0);
            const float v = c->dtype == GRT_DTYPE_FLOAT ? from[at] : (float)grt_tensor_double(c, at);
            y[i * s->g.n + j] = beta * v;
        }
}

static void bind_c(const grt_tensor *c, const matmul_shape *s, float beta, grt_gemm *g, float *y)
{
    const bool plain = beta == 1.0f && c->dtype == GRT_DTYPE_FLOAT;
    if (beta == 0.0f)
        return;
    if (plain && s->c_rows == 1 && s->c_cols == s->g.n) {
        g->bias = c->data;
    } else if (plain && s->c_rows == s->g.m && s->c_cols == s->g.n) {
        g->residual = c->data;
    } else {
        spread_c(c, s, beta, y);
        g->beta = 1.0f;
    }
}

static const float *widened(const grt_tensor *t, int64_t n, void *wide)
{
    if (t->dtype == GRT_DTYPE_FLOAT)
        return t->data;
    cpu_widen(t->dtype, t->data, 0, n, wide);
    return wide;
}

static grt_status run_float(const grt_run *run)
{
    const matmul_state *state = run->state;
    const matmul_shape *s = run->shape;
    const grt_tensor *c = run->n_in > BIAS ? run->in[BIAS] : NULL,
                     *residual = run->n_in > RESIDUAL ? run->in[RESIDUAL] : NULL;
    const bool half = run->in[0]->dtype != GRT_DTYPE_FLOAT;
    grt_gemm g = s->g;
    float *y = half ? cpu_at(run->workspace, s->wide_c) : run->out[0]->data;
    const float *a = widened(run->in[0], s->n_a, half ? cpu_at(run->workspace, s->wide_a) : NULL);
    const float *b = state->packed;
    if (!b)
        b = widened(run->in[1], s->n_b, half ? cpu_at(run->workspace, s->wide_b) : NULL);
    if (c && state->is_gemm)
        bind_c(c, s, state->beta, &g, y);
    else if (c)
        g.bias = c->data;
    int64_t index[GRT_MAX_RANK] = {0};
    const int64_t unit_b = state->packed ? (int64_t)state->packed_floats : s->matrix_b;
    for (int64_t call = 0; call < s->calls; call++) {
        int64_t at_a = 0, at_b = 0;
        for (int32_t i = 0; i < s->outer_rank; i++) {
            at_a += index[i] * s->step_a[i];
            at_b += index[i] * s->step_b[i];
        }
        if (residual)
            g.residual = (const float *)residual->data + call * s->call_c;
        if (g.stride_bias)
            g.bias = (const float *)c->data + call * g.batch * g.stride_bias;
        grt_gemm_run(&g, a + at_a * s->matrix_a, b + at_b * unit_b, y + call * s->call_c,
                     cpu_at(run->workspace, s->scratch), run->threads);
        for (int32_t i = 0; i < s->outer_rank && ++index[i] == s->outer[i]; i++)
            index[i] = 0;
    }
    if (half)
        cpu_narrow(run->out[0]->dtype, y, s->n_c, run->out[0]->data, 0, (cpu_convert_options){0});
    return GRT_OK;
}

static grt_status run_typed(const grt_run *run)
{
    const matmul_state *state = run->state;
    const matmul_shape *s = run->shape;
    const grt_dtype dtype = run->in[0]->dtype;
    const int64_t size = (int64_t)grt_dtype_size(dtype);
    cpu_matmul m = {.m = s->g.m, .n = s->g.n, .k = s->g.k, .threads = run->threads};
    m.row_a = s->g.trans_a ? 1 : s->g.lda;
    m.col_a = s->g.trans_a ? s->g.lda : 1;
    m.row_b = s->g.trans_b ? 1 : s->g.ldb;
    m.col_b = s->g.trans_b ? s->g.ldb : 1;
    int64_t index[GRT_MAX_RANK] = {0};
    for (int64_t call = 0; call < s->calls; call++) {
        int64_t at_a = 0, at_b = 0;
        for (int32_t i = 0; i < s->outer_rank; i++) {
            at_a += index[i] * s->step_a[i];
            at_b += index[i] * s->step_b[i];
        }
        for (int64_t j = 0; j < s->g.batch; j++)
            cpu_matmul_typed(dtype, &m,
                             (const char *)run->in[0]->data + (at_a * s->matrix_a + j * s->g.stride_a) * size,
                             (const char *)run->in[1]->data + (at_b * s->matrix_b + j * s->g.stride_b) * size,
                             (char *)run->out[0]->data + (call * s->call_c + j * s->g.stride_c) * size);
        for (int32_t i = 0; i < s->outer_rank && ++index[i] == s->outer[i]; i++)
            index[i] = 0;
    }
    if (state->is_gemm)
        cpu_matmul_add_c(run->out[0], &m, state->alpha, state->beta, run->n_in > BIAS ? run->in[BIAS] : NULL,
                         s->c_rows, s->c_cols);
    return GRT_OK;
}

static grt_status run(const grt_run *r)
{
    const matmul_shape *s = r->shape;
    const grt_dtype dtype = r->in[0]->dtype;
    if (s->n_c == 0)
        return GRT_OK;
    return dtype == GRT_DTYPE_FLOAT || is_half(dtype) ? run_float(r) : run_typed(r);
}

#define TYPES (GRT_SET_FLOATS | GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(UINT32) | GRT_BIT(UINT64))
#define LIFE \
    .pack = pack, .create = create, .destroy = destroy, .reshape = reshape, .release_shape = free, .run = run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "MatMul", .types = {TYPES, TYPES}, LIFE},
    {.domain = "", .op = "Gemm", .types = {TYPES, TYPES, TYPES}, LIFE},
    {.domain = "graphrt",
     .op = "MatMul",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)},
     .supports = fused_supports,
     LIFE},
};
CPU_KERNELS(matmul, rows);

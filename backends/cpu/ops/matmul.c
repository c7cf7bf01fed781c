/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and their fused form graphrt::MatMul. float32 runs on the packed product of gemm.h, 16-bit
 * floats do after widening, other types on plain loops (matmul_typed.c). */
#include "backends/cpu/bmatmul.h"
#include "backends/cpu/act.h"
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/gemm_dots.h"
#include "backends/cpu/matmul_typed.h"
#include "backends/cpu/packing.h"
#include "backends/cpu/workspace.h"
#include "backends/shared/matmul.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct matmul_state {
    bool is_gemm, trans_b;
    float alpha, beta;
    grt_act act;
    const float *packed; /* constant B, all its matrices, or NULL */
    float *own;          /* `packed` where it was packed here, not in the plan */
    size_t packed_floats;
} matmul_state;

typedef struct matmul_shape {
    grt_matmul m;
    grt_gemm g;
    int64_t n_a, n_b;                       /* elements in all */
    size_t scratch, wide_a, wide_b, wide_c; /* workspace offsets */
} matmul_shape;

static bool is_half(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16;
}

static void matrix_dims(const grt_tensor *b, bool trans, int64_t *k, int64_t *n)
{
    const grt_matrix matrix = grt_matrix_of(b, true);
    *k = trans ? matrix.cols : matrix.rows;
    *n = trans ? matrix.rows : matrix.cols;
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

static grt_status pack_b(const grt_tensor *b, bool trans_b, size_t floats, int64_t matrices, float *packed)
{
    int64_t k, n;
    matrix_dims(b, trans_b, &k, &n);
    float *wide = NULL;
    if (is_half(b->dtype))
        GRT_TRY(grt_account_alloc(NULL, GRT_ACCOUNT_KERNELS, (size_t)(k * n) * sizeof *wide, (void **)&wide));
    for (int64_t i = 0; i < matrices; i++) {
        const float *from = (const float *)b->data + i * k * n;
        if (wide) {
            cpu_widen(b->dtype, b->data, i * k * n, k * n, wide);
            from = wide;
        }
        grt_gemm_pack_b(k, n, from, trans_b ? k : n, trans_b, packed + (size_t)i * floats);
    }
    grt_account_free(wide);
    return GRT_OK;
}

/* 16-bit weights stay as they are in a plan: packed ones are twice their size. */
static grt_status matmul_pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing,
                              void **out_data)
{
    const bool trans_b = grt_attr_int(node->desc, "transB", 0) != 0;
    size_t floats;
    int64_t matrices;
    if (i != 1 || node->in[1].dtype != GRT_DTYPE_FLOAT || !packs(node, trans_b, &floats, &matrices) ||
        !grt_packing_is_worth(grt_tensor_bytes(&node->in[1]), floats * (size_t)matrices * sizeof(float)))
        return GRT_OK;
    out_packing->bytes = floats * (size_t)matrices * sizeof(float);
    *out_data = aligned_alloc(64, grt_align_up(out_packing->bytes, 64));
    if (!*out_data)
        return grt_fail_memory(out_packing->bytes);
    strcpy(out_packing->format, cpu_packing_matrix(trans_b));
    return pack_b(&node->in[1], trans_b, floats, matrices, *out_data);
}

static void matmul_destroy(void *data)
{
    matmul_state *state = data;
    if (state)
        grt_account_free(state->own);
    free(state);
}

static grt_status bind_constant(const grt_kernel_node *node, matmul_state *state)
{
    int64_t matrices;
    if (!packs(node, state->trans_b, &state->packed_floats, &matrices))
        return GRT_OK;
    const grt_packing *packing = grt_node_packing(node, 1);
    const size_t bytes = state->packed_floats * (size_t)matrices * sizeof(float);
    if (!packing) {
        GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->own));
        state->packed = state->own;
        return pack_b(&node->in[1], state->trans_b, state->packed_floats, matrices, state->own);
    }
    const char *format = cpu_packing_matrix(state->trans_b);
    if (node->in[1].dtype != GRT_DTYPE_FLOAT || strcmp(packing->format, format) || packing->bytes != bytes)
        return grt_fail_op(
            node->desc, GRT_STATUS_INVALID_PLAN,
            "B is packed as '%s' in %zu bytes; expected '%s' in %zu; make the plan again with graphc "
            "optimize",
            packing->format, packing->bytes, format, bytes);
    state->packed = node->in[1].data;
    return GRT_OK;
}

static grt_status matmul_create(const grt_kernel_node *node, void **out_state)
{
    matmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_op_desc *desc = node->desc;
    state->is_gemm = grt_op_is(desc, "", "Gemm");
    state->trans_b = grt_attr_int(desc, "transB", 0) != 0;
    state->alpha = grt_attr_float(desc, state->is_gemm ? "alpha" : "scale", 1.0f);
    state->beta = state->is_gemm ? grt_attr_float(desc, "beta", 1.0f) : 1.0f;
    if (!state->is_gemm)
        grt_act_read(desc, &state->act, NULL);
    grt_status status = bind_constant(node, state);
    if (status != GRT_OK) {
        matmul_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static bool matmul_fused_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return grt_act_read(node->desc, &act, why);
}

static void fit_gemm(const matmul_state *state, matmul_shape *s)
{
    const grt_matmul *m = &s->m;
    grt_gemm *g = &s->g;
    g->m = m->m;
    g->n = m->n;
    g->k = m->k;
    g->batch = m->batch;
    g->lda = m->a.cols;
    g->ldb = m->b.cols;
    g->trans_a = m->trans_a;
    g->trans_b = m->trans_b;
    g->b_packed = state->packed != NULL;
    g->stride_a = m->stride_a * grt_matrix_size(m->a);
    g->stride_b = m->stride_b * (state->packed ? (int64_t)state->packed_floats : grt_matrix_size(m->b));
    g->stride_bias = m->bias_rows ? m->n : 0;
    g->ldc = g->ldr = m->n;
    g->stride_c = g->stride_r = m->m * m->n;
    g->alpha = state->alpha;
    g->act = state->act;
}

static bool matmul_lay_out(const grt_reshape *r, const matmul_state *state, matmul_shape *s,
                           size_t *out_bytes)
{
    cpu_layout layout = {0};
    size_t bytes = 0;
    layout.overflow = !grt_gemm_scratch_bytes(&s->g, r->threads, &bytes) || bytes > INT64_MAX;
    s->scratch = cpu_layout_add(&layout, layout.overflow ? 0 : (int64_t)bytes, 1);
    if (is_half(r->in[0]->dtype)) {
        s->wide_a = cpu_layout_add(&layout, s->n_a, sizeof(float));
        s->wide_b = cpu_layout_add(&layout, state->packed ? 0 : s->n_b, sizeof(float));
        s->wide_c = cpu_layout_add(&layout, s->m.n_c, sizeof(float));
    }
    *out_bytes = layout.bytes;
    return !layout.overflow;
}

static grt_status matmul_reshape(grt_reshape *r)
{
    const matmul_state *state = r->state;
    const grt_dtype dtype = r->in[0]->dtype;
    matmul_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->n_a = grt_tensor_elements(r->in[0]);
    s->n_b = grt_tensor_elements(r->in[1]);
    grt_status status = grt_matmul_fit(r, &s->m);
    fit_gemm(state, s);
    if (status == GRT_OK && (dtype == GRT_DTYPE_FLOAT || is_half(dtype)) &&
        !matmul_lay_out(r, state, s, &r->workspace_bytes))
        status = grt_fail_memory(SIZE_MAX);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

/* beta * C, broadcast, into y. */
static void spread_c(const grt_tensor *c, const matmul_shape *s, float beta, float *y)
{
    const float *from = c->data;
    const grt_matrix *stored = &s->m.c;
    for (int64_t i = 0; i < s->g.m; i++)
        for (int64_t j = 0; j < s->g.n; j++) {
            const int64_t at = (stored->rows > 1 ? i * stored->cols : 0) + (stored->cols > 1 ? j : 0);
            const float v = c->dtype == GRT_DTYPE_FLOAT ? from[at] : (float)grt_tensor_double(c, at);
            y[i * s->g.n + j] = beta * v;
        }
}

static void bind_c(const grt_tensor *c, const matmul_shape *s, float beta, grt_gemm *g, float *y)
{
    const bool plain = beta == 1.0f && c->dtype == GRT_DTYPE_FLOAT;
    if (beta == 0.0f)
        return;
    if (plain && s->m.c.rows == 1 && s->m.c.cols == s->g.n) {
        g->bias = c->data;
    } else if (plain && s->m.c.rows == s->g.m && s->m.c.cols == s->g.n) {
        g->residual = c->data;
    } else {
        spread_c(c, s, beta, y);
        g->beta = 1.0f;
    }
}

static const float *matmul_widened(const grt_tensor *t, int64_t n, void *wide)
{
    if (t->dtype == GRT_DTYPE_FLOAT)
        return t->data;
    cpu_widen(t->dtype, t->data, 0, n, wide);
    return wide;
}

static grt_status matmul_run_float(const grt_run *run)
{
    const matmul_state *state = run->state;
    const matmul_shape *s = run->shape;
    const grt_tensor *c = grt_run_in(run, GRT_MATMUL_BIAS), *residual = grt_run_in(run, GRT_MATMUL_RESIDUAL);
    const bool half = run->in[0]->dtype != GRT_DTYPE_FLOAT;
    grt_gemm g = s->g;
    float *y = half ? cpu_workspace_at(run->workspace, s->wide_c) : run->out[0]->data;
    const float *a =
        matmul_widened(run->in[0], s->n_a, half ? cpu_workspace_at(run->workspace, s->wide_a) : NULL);
    const float *b = state->packed;
    if (!b)
        b = matmul_widened(run->in[1], s->n_b, half ? cpu_workspace_at(run->workspace, s->wide_b) : NULL);
    if (c && state->is_gemm)
        bind_c(c, s, state->beta, &g, y);
    else if (c)
        g.bias = c->data;
    const int64_t size_a = grt_matrix_size(s->m.a),
                  size_b = state->packed ? (int64_t)state->packed_floats : grt_matrix_size(s->m.b);
    for (int64_t call = 0; call < s->m.calls; call++) {
        int64_t at_a, at_b;
        grt_matmul_find(&s->m, call, &at_a, &at_b);
        if (residual)
            g.residual = (const float *)residual->data + call * s->m.call_c;
        if (g.stride_bias)
            g.bias = (const float *)c->data + call * g.batch * g.stride_bias;
        if (grt_gemm_is_dots(&g))
            grt_gemm_dots_run(&g, a + at_a * size_a, b + at_b * size_b, y + call * s->m.call_c, run->threads);
        else
            grt_gemm_run(&g, a + at_a * size_a, b + at_b * size_b, y + call * s->m.call_c,
                         cpu_workspace_at(run->workspace, s->scratch), run->threads);
    }
    if (half)
        cpu_narrow(run->out[0]->dtype, y, s->m.n_c, run->out[0]->data, 0, (cpu_convert_options){0});
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
    for (int64_t call = 0; call < s->m.calls; call++) {
        int64_t at_a, at_b;
        grt_matmul_find(&s->m, call, &at_a, &at_b);
        for (int64_t j = 0; j < s->g.batch; j++)
            cpu_matmul_typed(
                dtype, &m,
                (const char *)run->in[0]->data + (at_a * grt_matrix_size(s->m.a) + j * s->g.stride_a) * size,
                (const char *)run->in[1]->data + (at_b * grt_matrix_size(s->m.b) + j * s->g.stride_b) * size,
                (char *)run->out[0]->data + (call * s->m.call_c + j * s->g.stride_c) * size);
    }
    if (state->is_gemm)
        cpu_matmul_add_c(run->out[0], &m, state->alpha, state->beta, grt_run_in(run, GRT_MATMUL_BIAS),
                         s->m.c.rows, s->m.c.cols);
    return GRT_OK;
}

static grt_status matmul_run(const grt_run *r)
{
    const matmul_shape *s = r->shape;
    const grt_dtype dtype = r->in[0]->dtype;
    if (s->m.n_c == 0)
        return GRT_OK;
    return dtype == GRT_DTYPE_FLOAT || is_half(dtype) ? matmul_run_float(r) : run_typed(r);
}

#define TYPES (GRT_SET_FLOATS | GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(UINT32) | GRT_BIT(UINT64))
#define LIFE                                                                                            \
    .pack = matmul_pack, .create = matmul_create, .destroy = matmul_destroy, .reshape = matmul_reshape, \
    .release_shape = free, .run = matmul_run

/* The first that supports a node is taken. */
static const grt_kernel_row rows[] = {
    {.domain = "", .op = "MatMul", CPU_BMATMUL},
    {.domain = "", .op = "Gemm", CPU_BMATMUL},
    {.domain = "graphrt", .op = "MatMul", CPU_BMATMUL},
    {.domain = "", .op = "MatMul", .types = {TYPES, TYPES}, LIFE},
    {.domain = "", .op = "Gemm", .types = {TYPES, TYPES, TYPES}, LIFE},
    {.domain = "graphrt",
     .op = "MatMul",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)},
     .supports = matmul_fused_supports,
     LIFE},
};
CPU_KERNELS(matmul, rows);

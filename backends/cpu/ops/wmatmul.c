/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WMatMul: products by constant weights of 2, 4 and 8 bits. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/wgemm.h"
#include "backends/shared/weights.h"

#include "src/base/checked.h"
#include "src/base/element.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

enum {
    X = GRT_WEIGHTS_X,
    W = GRT_WEIGHTS_W,
    SCALE = GRT_WEIGHTS_SCALE,
    ZERO = GRT_WEIGHTS_ZERO,
    BIAS = GRT_WEIGHTS_BIAS
};

/* Scales by row of k are multiplied into x, and what zero points by row take off is the same for all columns.
 */
typedef struct wmatmul_state {
    grt_wgemm w;
    float *row_scales, *row_zeros; /* k each; NULL: none */
} wmatmul_state;

static bool wmatmul_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_weights w;
    const bool fits = node->n_in > SCALE && node->in[X].dtype == GRT_DTYPE_FLOAT &&
                      grt_dtype_in(node->in[W].dtype, GRT_WEIGHTS_INTEGERS | GRT_WEIGHTS_FLOATS) &&
                      grt_dtype_in(node->in[SCALE].dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT8E8M0)) &&
                      (!grt_node_has(node, ZERO) || node->in[ZERO].dtype == node->in[W].dtype) &&
                      (!grt_node_has(node, BIAS) || node->in[BIAS].dtype == GRT_DTYPE_FLOAT) &&
                      !grt_node_has(node, GRT_WEIGHTS_RESIDUAL) && !grt_node_has(node, GRT_WEIGHTS_NORM) &&
                      !grt_attr_int(node->desc, "gated", 0) &&
                      !*grt_attr_string(node->desc, "activation", "") && grt_weights_read(node, &w);
    if (!fits && why)
        grt_text_add(
            why, "constant weights of 2, 4 or 8 bits are needed, with scales of float32 or e8m0 for all, for "
                 "each column, for each row or for blocks along the inner dim, and no epilogue but a bias");
    return fits;
}

static float wmatmul_scale(const grt_kernel_node *node, int64_t i)
{
    const grt_tensor *t = &node->in[SCALE];
    return t->dtype == GRT_DTYPE_FLOAT ? ((const float *)t->data)[i]
                                       : grt_float8e8m0_to_float(((const uint8_t *)t->data)[i]);
}

static void put_scales(const grt_kernel_node *node, const grt_weights *s, grt_wgemm *w)
{
    const void *zeros = s->zeros ? node->in[ZERO].data : NULL;
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t b = 0; b < w->blocks; b++) {
            const int64_t from = s->by_row ? 0 : grt_weights_scale(s, b, j),
                          to = (j / GRT_WGEMM_NR * w->blocks + b) * GRT_WGEMM_NR + j % GRT_WGEMM_NR;
            w->scales[to] = s->by_row ? 1.0f : wmatmul_scale(node, from);
            w->zeros[to] =
                zeros ? grt_weights_number(s, zeros, s->zeros == 1 ? 0 : from) : grt_weights_flip(s);
        }
}

/* As `put_scales` has it, all columns lose the first zero point: the rest is taken off each row of x. */
static grt_status put_rows(const grt_kernel_node *node, const grt_weights *s, wmatmul_state *state)
{
    const void *zeros = s->zeros > 1 ? node->in[ZERO].data : NULL;
    const size_t bytes = (size_t)s->k * sizeof(float);
    if (!s->by_row)
        return GRT_OK;
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->row_scales));
    if (zeros)
        GRT_TRY(grt_kernel_alloc(node, bytes, (void **)&state->row_zeros));
    for (int64_t i = 0; i < s->k; i++)
        state->row_scales[i] = wmatmul_scale(node, i);
    for (int64_t i = 0; zeros && i < s->k; i++)
        state->row_zeros[i] = (float)(grt_weights_number(s, zeros, i) - grt_weights_number(s, zeros, 0));
    return GRT_OK;
}

/* Numbers as bytes that are unsigned: signed integers are moved up by half their range. */
static void read_numbers(const grt_weights *s, const grt_tensor *t, int64_t from, int64_t n, uint8_t *out)
{
    const uint8_t flip = grt_weights_flip(s), *bytes = (const uint8_t *)t->data + (s->bits == 8 ? from : 0);
    if (s->bits == 8)
        for (int64_t i = 0; i < n; i++)
            out[i] = bytes[i] ^ flip;
    else if (s->bits == 4)
        for (int64_t i = 0; i < n; i++)
            out[i] = grt_packed_get(bytes, from + i, 4) ^ flip;
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = grt_packed_get(bytes, from + i, 2) ^ flip;
}

/* Rows [from, to) of w as it is stored. `row` has room for one. */
static void put_numbers(const grt_kernel_node *node, const grt_weights *s, int64_t from, int64_t to,
                        uint8_t *row, grt_wgemm *w)
{
    const int64_t cols = s->transposed ? s->k : s->n;
    for (int64_t i = from; i < to; i++) {
        read_numbers(s, &node->in[W], i * cols, cols, row);
        if (s->transposed)
            grt_wgemm_put_column(w, i, row);
        else
            grt_wgemm_put_row(w, i, row);
    }
}

static grt_status wmatmul_fill(const grt_kernel_node *node, const grt_weights *s, wmatmul_state *state)
{
    size_t bytes;
    void *memory;
    if (!grt_wgemm_size(&state->w, &bytes))
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, bytes, &memory));
    grt_wgemm_place(&state->w, memory);
    const int64_t rows = s->transposed ? s->n : s->k, cols = s->transposed ? s->k : s->n;
    const int32_t threads = s->transposed && node->threads > 1 ? node->threads : 1;
    size_t room = 0;
    uint8_t *all = grt_mul_size((size_t)cols, (size_t)threads, &room) ? malloc(room) : NULL;
    if (!all)
        return grt_fail_memory(room);
    put_scales(node, s, &state->w);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int32_t t = 0; t < threads; t++)
        put_numbers(node, s, rows * t / threads, rows * (t + 1) / threads, all + (size_t)(cols * t),
                    &state->w);
    free(all);
    return put_rows(node, s, state);
}

static void wmatmul_destroy(void *data)
{
    wmatmul_state *state = data;
    if (!state)
        return;
    grt_account_free(state->w.numbers);
    grt_account_free(state->row_scales);
    grt_account_free(state->row_zeros);
    free(state);
}

static grt_status wmatmul_create(const grt_kernel_node *node, void **out_state)
{
    grt_weights s;
    wmatmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    if (!grt_weights_read(node, &s) || !node->in[SCALE].data) { /* 16-bit scales are known here only */
        free(state);
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                           "the weights, scales and zero points do not fit");
    }
    const bool may_round =
        grt_attr_int(node->desc, "accuracy_level", 0) == GRT_WEIGHTS_LEVEL_BYTES && !s.by_row;
    state->w = (grt_wgemm){.may_round = may_round,
                           .k = s.k,
                           .n = s.n,
                           .block = s.block,
                           .bits = s.bits,
                           .floats = s.is_float ? node->in[W].dtype : GRT_DTYPE_NONE};
    const grt_status status = wmatmul_fill(node, &s, state);
    if (status != GRT_OK) {
        wmatmul_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

/* x times the scales of its columns. */
static bool scaled_bytes(const wmatmul_state *state, int64_t m, size_t *out_bytes)
{
    *out_bytes = 0;
    return !state->row_scales || (grt_mul_size((size_t)m, (size_t)state->w.k * sizeof(float), out_bytes) &&
                                  grt_add_size(*out_bytes, 63, out_bytes));
}

static grt_status wmatmul_reshape(grt_reshape *r)
{
    const wmatmul_state *state = r->state;
    const grt_tensor *x = r->in[X];
    const int64_t inner = x->rank ? x->dims[x->rank - 1] : 0;
    size_t scaled;
    if (inner != state->w.k)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input's last dim is %lld; the weights have %lld rows", (long long)inner,
                           (long long)state->w.k);
    const int64_t m = grt_tensor_elements(x) / state->w.k;
    return grt_wgemm_scratch_bytes(&state->w, m, r->threads, &r->workspace_bytes) &&
                   scaled_bytes(state, m, &scaled) &&
                   grt_add_size(r->workspace_bytes, scaled, &r->workspace_bytes)
               ? GRT_OK
               : grt_fail_memory(SIZE_MAX);
}

static void scale_columns(const wmatmul_state *state, int64_t m, const float *x, float *out)
{
    const int64_t k = state->w.k;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++)
            out[i * k + j] = x[i * k + j] * state->row_scales[j];
}

static void take_off_zeros(const wmatmul_state *state, int64_t m, const float *x, float *y)
{
    const int64_t k = state->w.k, n = state->w.n;
    for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += (double)x[i * k + j] * (double)state->row_zeros[j];
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] -= (float)sum;
    }
}

static grt_status wmatmul_run(const grt_run *r)
{
    const wmatmul_state *state = r->state;
    const grt_tensor *bias = grt_run_in(r, BIAS);
    const int64_t m = grt_tensor_elements(r->in[X]) / state->w.k;
    const float *x = r->in[X]->data;
    char *scratch = r->workspace;
    size_t scaled;
    if (state->row_scales && scaled_bytes(state, m, &scaled)) {
        scale_columns(state, m, x, (float *)r->workspace);
        x = r->workspace;
        scratch += scaled / 64 * 64;
    }
    grt_wgemm_run(&state->w, m, x, bias ? bias->data : NULL, r->out[0]->data, scratch, r->threads);
    if (state->row_zeros)
        take_off_zeros(state, m, x, r->out[0]->data);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "WMatMul",
     .supports = wmatmul_supports,
     .create = wmatmul_create,
     .destroy = wmatmul_destroy,
     .reshape = wmatmul_reshape,
     .run = wmatmul_run},
};
CPU_KERNELS(wmatmul, rows);

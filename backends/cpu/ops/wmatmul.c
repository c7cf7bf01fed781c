/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WMatMul: products by constant weights of 4 and 8 bits. */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/wgemm.h"

#include "src/base/checked.h"
#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { X, W, SCALE, ZERO, BIAS };

typedef struct wmatmul_state {
    grt_wgemm w;
} wmatmul_state;

/* How w is stored: [k][n], or [n][k]. */
typedef struct storage {
    bool transposed, is_signed, blocked;
    int64_t k, n, block;
    int64_t scales; /* of the whole matrix */
} storage;

static const grt_tensor *wmatmul_given(const grt_kernel_node *node, int32_t i)
{
    return grt_node_has(node, i) ? &node->in[i] : NULL;
}

/* One scale, one a column, or blocks along k. */
static bool read_storage(const grt_kernel_node *node, storage *s)
{
    const grt_tensor *w = &node->in[W], *scale = &node->in[SCALE], *zero = wmatmul_given(node, ZERO);
    if (w->rank != 2 || !w->data || scale->rank < 0 || (zero && (!zero->data || zero->rank < 0)))
        return false;
    *s = (storage){.transposed = grt_attr_int(node->desc, "transB", 0) != 0,
                   .is_signed = grt_dtype_in(w->dtype, GRT_BIT(INT8) | GRT_BIT(INT4)),
                   .block = grt_attr_int(node->desc, "block_size", 0),
                   .scales = grt_tensor_elements(scale)};
    s->k = w->dims[s->transposed ? 1 : 0];
    s->n = w->dims[s->transposed ? 0 : 1];
    s->blocked = s->block > 0;
    const int64_t along_k = s->transposed ? 1 : 0, axis = grt_axis(grt_attr_int(node->desc, "axis", 1), 2);
    if (s->k < 1 || s->n < 1 || (zero && grt_tensor_elements(zero) != s->scales))
        return false;
    if (!s->blocked) {
        s->block = s->k;
        return s->scales == 1 || (s->scales == s->n && axis == 1 - along_k);
    }
    const int64_t blocks = (s->k - 1) / s->block + 1;
    return axis == along_k && scale->rank == 2 && scale->dims[along_k] == blocks &&
           scale->dims[1 - along_k] == s->n;
}

static bool wmatmul_supports(const grt_kernel_node *node, grt_text *why)
{
    const grt_dtype_set numbers = GRT_BIT(UINT8) | GRT_BIT(INT8) | GRT_BIT(UINT4) | GRT_BIT(INT4);
    storage s;
    const bool fits = node->n_in > SCALE && node->in[X].dtype == GRT_DTYPE_FLOAT &&
                      grt_dtype_in(node->in[W].dtype, numbers) && node->in[SCALE].dtype == GRT_DTYPE_FLOAT &&
                      (!wmatmul_given(node, ZERO) || node->in[ZERO].dtype == node->in[W].dtype) &&
                      (!wmatmul_given(node, BIAS) || node->in[BIAS].dtype == GRT_DTYPE_FLOAT) &&
                      read_storage(node, &s);
    if (!fits && why)
        grt_text_add(
            why, "constant weights of 4 or 8 bits are needed, with float32 scales for all, for each column "
                 "or for blocks along the inner dim");
    return fits;
}

/* Element i of the scales or zero points that belongs to block b of column j. */
static int64_t scale_index(const storage *s, int64_t b, int64_t j, int64_t blocks)
{
    if (!s->blocked)
        return s->scales == 1 ? 0 : j;
    return s->transposed ? j * blocks + b : b * s->n + j;
}

static void put_scales(const grt_kernel_node *node, const storage *s, uint8_t flip, const uint8_t *zeros,
                       grt_wgemm *w)
{
    const float *scales = node->in[SCALE].data;
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t b = 0; b < w->blocks; b++) {
            const int64_t from = scale_index(s, b, j, w->blocks),
                          to = (j / GRT_WGEMM_NR * w->blocks + b) * GRT_WGEMM_NR + j % GRT_WGEMM_NR;
            w->scales[to] = scales[from];
            w->zeros[to] = (uint8_t)((zeros ? zeros[from] : 0) ^ flip);
        }
}

/* Numbers of 4 or 8 bits as bytes that are unsigned: signed ones are moved up by half their range. */
static void widen_numbers(const grt_tensor *t, int64_t from, int64_t n, uint8_t mask, uint8_t *out)
{
    if (cpu_plain_dtype(t->dtype) == t->dtype)
        memcpy(out, (const uint8_t *)t->data + from, (size_t)n);
    else
        cpu_widen(t->dtype, t->data, from, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] &= mask;
}

/* Rows [from, to) of w as it is stored. `row` has room for one. */
static void put_numbers(const grt_kernel_node *node, const storage *s, uint8_t flip, int64_t from, int64_t to,
                        uint8_t *row, grt_wgemm *w)
{
    const uint8_t mask = w->bits == 4 ? 15 : 255;
    const int64_t cols = s->transposed ? s->k : s->n;
    for (int64_t i = from; i < to; i++) {
        widen_numbers(&node->in[W], i * cols, cols, mask, row);
        for (int64_t j = 0; flip && j < cols; j++)
            row[j] ^= flip;
        if (s->transposed)
            grt_wgemm_put_column(w, i, row);
        else
            grt_wgemm_put_row(w, i, row);
    }
}

static grt_status wmatmul_fill(const grt_kernel_node *node, const storage *s, grt_wgemm *w)
{
    const uint8_t mask = w->bits == 4 ? 15 : 255, flip = !s->is_signed ? 0 : w->bits == 4 ? 8 : 128;
    const int64_t rows = s->transposed ? s->n : s->k, cols = s->transposed ? s->k : s->n;
    const int32_t threads = s->transposed && node->threads > 1 ? node->threads : 1;
    const grt_tensor *zero = wmatmul_given(node, ZERO);
    size_t room = 0;
    uint8_t *zeros = zero ? malloc((size_t)s->scales) : NULL, *all = NULL;
    if (grt_mul_size((size_t)cols, (size_t)threads, &room))
        all = malloc(room);
    if (!all || (zero && !zeros)) {
        free(all);
        free(zeros);
        return grt_fail_memory(room);
    }
    if (zero)
        widen_numbers(zero, 0, s->scales, mask, zeros);
    put_scales(node, s, flip, zeros, w);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int32_t t = 0; t < threads; t++)
        put_numbers(node, s, flip, rows * t / threads, rows * (t + 1) / threads, all + (size_t)(cols * t), w);
    free(all);
    free(zeros);
    return GRT_OK;
}

static void wmatmul_destroy(void *data)
{
    wmatmul_state *state = data;
    if (state)
        grt_wgemm_release(&state->w);
    free(state);
}

static grt_status wmatmul_create(const grt_kernel_node *node, void **out_state)
{
    storage s;
    wmatmul_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    if (!read_storage(node, &s) || !node->in[SCALE].data) { /* 16-bit scales are known here only */
        free(state);
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                           "the weights, scales and zero points do not fit");
    }
    state->w =
        (grt_wgemm){.k = s.k, .n = s.n, .block = s.block, .bits = (int)grt_dtype_bits(node->in[W].dtype)};
    const grt_status status =
        grt_wgemm_allocate(&state->w) ? wmatmul_fill(node, &s, &state->w) : grt_fail_memory(SIZE_MAX);
    if (status != GRT_OK) {
        wmatmul_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

static grt_status wmatmul_reshape(grt_reshape *r)
{
    const wmatmul_state *state = r->state;
    const grt_tensor *x = r->in[X];
    const int64_t inner = x->rank ? x->dims[x->rank - 1] : 0;
    if (inner != state->w.k)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input's last dim is %lld; the weights have %lld rows", (long long)inner,
                           (long long)state->w.k);
    const int64_t m = grt_tensor_elements(x) / state->w.k;
    return grt_wgemm_scratch_bytes(&state->w, m, r->threads, &r->workspace_bytes) ? GRT_OK
                                                                                  : grt_fail_memory(SIZE_MAX);
}

static grt_status wmatmul_run(const grt_run *r)
{
    const wmatmul_state *state = r->state;
    const float *bias = r->n_in > BIAS && r->in[BIAS] ? r->in[BIAS]->data : NULL;
    grt_wgemm_run(&state->w, grt_tensor_elements(r->in[X]) / state->w.k, r->in[X]->data, bias,
                  r->out[0]->data, r->workspace, r->threads);
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

/* Attention. Keys and values are staged (past and present joined) once; then blocks of query rows go through
 * scores = Q K^T, softcap, mask, softmax, Y = P V, skipping keys that causality, window or padding exclude.
 * Float32 uses matrix products on blocks; other types go row by row through attention_exact.c. */
#include "backends/cpu/attention.h"

#include "backends/cpu/gemm.h"
#include "backends/cpu/softmax.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, NONPAD };
enum { OUT_Y, OUT_KEY, OUT_VALUE, OUT_QK };
enum {
    BLOCK_ROWS = 64,         /* query rows per block: amortises packing keys, keeps scores in the cache */
    MOST_ROWS = 192,         /* where the keys are few, and so the scores of a row */
    MOST_SCORES = 32 * 1024, /* of a block that is larger than BLOCK_ROWS */
    PARALLEL_OPS = 60000,    /* multiply-adds below which waking a second thread costs more than it saves */
    DIRECT_ROWS = 4,         /* fewer rows than this do not pay for packing keys */
};
#define WINDOW_MAX ((int64_t)1 << 40) /* keeps position arithmetic far from overflow */

static const grt_tensor *input(const grt_run *run, int32_t i)
{
    return i < run->n_in ? run->in[i] : NULL;
}

static grt_tensor *output(const grt_run *run, int32_t i)
{
    return i < run->n_out ? run->out[i] : NULL;
}

static bool attention_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_dtype_set floats = GRT_SET_FLOATS;
    for (int32_t i = 0; i < node->n_in; i++) {
        grt_dtype_set want = i == MASK ? floats | GRT_BIT(BOOL) : i == NONPAD ? GRT_BIT(INT64) : floats;
        if (!grt_node_has(node, i) || grt_dtype_in(node->in[i].dtype, want))
            continue;
        if (why)
            grt_text_add(why,
                         "input %d is %s; supported are floating-point Q, K, V and pasts, floating-point or "
                         "bool masks",
                         i, grt_dtype_name(node->in[i].dtype));
        return false;
    }
    return true;
}

static int64_t window(const grt_op_desc *desc, const char *name)
{
    int64_t size = grt_attr_int(desc, name, -1);
    return size > WINDOW_MAX ? WINDOW_MAX : size;
}

static grt_status attention_create(const grt_kernel_node *node, void **out_state)
{
    attention_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    state->joined = grt_op_is(node->desc, "graphrt", "Attention");
    state->causal = grt_attr_int(node->desc, "is_causal", 0) != 0;
    state->left = window(node->desc, "left_window_size");
    state->right = window(node->desc, "right_window_size");
    state->q_heads = grt_attr_int(node->desc, "q_num_heads", 0);
    state->kv_heads = grt_attr_int(node->desc, "kv_num_heads", 0);
    state->scale = (double)grt_attr_float(node->desc, "scale", 0);
    state->softcap = (double)grt_attr_float(node->desc, "softcap", 0);
    state->mode = (int)grt_attr_int(node->desc, "qk_matmul_output_mode", 0);
    state->softmax = (grt_dtype)grt_attr_int(node->desc, "softmax_precision", GRT_DTYPE_NONE);
    state->fast = state->softmax != GRT_DTYPE_DOUBLE;
    for (int32_t i = 0; i < node->n_in; i++)
        if (grt_node_has(node, i) && i != NONPAD && node->in[i].dtype != GRT_DTYPE_FLOAT)
            state->fast &= i == MASK && node->in[i].dtype == GRT_DTYPE_BOOL;
    *out_state = state;
    return GRT_OK;
}

/* ---- shapes ---- */

/* Dims as [batch, heads, sequence, size]; false if a packed size does not divide. */
static bool split(const grt_tensor *t, int64_t n_heads, int64_t out[4])
{
    if (t->rank == 4) {
        memcpy(out, t->dims, 4 * sizeof *out);
        return true;
    }
    if (t->rank != 3 || n_heads <= 0 || t->dims[2] % n_heads)
        return false;
    out[0] = t->dims[0];
    out[1] = n_heads;
    out[2] = t->dims[1];
    out[3] = t->dims[2] / n_heads;
    return true;
}

static grt_status misfit(const grt_reshape *reshape, int32_t i)
{
    char text[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "input %d, %s, does not fit the other inputs", i,
                       grt_tensor_text(reshape->in[i], text));
}

static grt_status fit_past(const grt_reshape *reshape, attention_shape *shape)
{
    for (int32_t i = PAST_KEY; i <= PAST_VALUE; i++) {
        const grt_tensor *past = i < reshape->n_in ? reshape->in[i] : NULL;
        if (!past)
            continue;
        int64_t want[4] = {shape->batch, shape->kv_heads, i == PAST_KEY ? past->dims[2] : shape->past,
                           i == PAST_KEY ? shape->size : shape->v_size};
        if (!grt_dims_equal(past->dims, past->rank, want, 4))
            return misfit(reshape, i);
        shape->past = past->dims[2];
    }
    shape->total = shape->past + shape->kv_len;
    return GRT_OK;
}

static grt_status fit_mask(const grt_reshape *reshape, attention_shape *shape)
{
    const grt_tensor *mask = reshape->n_in > MASK ? reshape->in[MASK] : NULL;
    const grt_tensor *nonpad = reshape->n_in > NONPAD ? reshape->in[NONPAD] : NULL;
    if (nonpad && (nonpad->rank != 1 || nonpad->dims[0] != shape->batch))
        return misfit(reshape, NONPAD);
    shape->mask_len = shape->total;
    if (!mask)
        return GRT_OK;
    int64_t want[4] = {shape->batch, shape->q_heads, shape->q_len, shape->total};
    if (mask->rank < 1 || mask->rank > 4)
        return misfit(reshape, MASK);
    for (int32_t k = 0; k < mask->rank - 1; k++)
        if (mask->dims[k] != 1 && mask->dims[k] != want[4 - mask->rank + k])
            return misfit(reshape, MASK);
    shape->mask_len = mask->dims[mask->rank - 1];
    if (shape->mask_len > shape->total)
        return misfit(reshape, MASK);
    grt_broadcast_strides(mask->dims, mask->rank, 4, shape->mask_strides);
    return GRT_OK;
}

static grt_status fit(const grt_reshape *reshape, attention_shape *shape)
{
    const attention_state *state = reshape->state;
    int64_t q[4], k[4], v[4];
    if (state->joined) {
        if (!split(reshape->in[Q], state->q_heads + 2 * state->kv_heads, q) || state->kv_heads <= 0 ||
            state->q_heads % state->kv_heads)
            return misfit(reshape, Q);
        shape->batch = q[0];
        shape->q_heads = state->q_heads;
        shape->kv_heads = state->kv_heads;
        shape->q_len = shape->kv_len = shape->total = q[2];
        shape->size = shape->v_size = q[3];
        return fit_mask(reshape, shape);
    }
    if (!split(reshape->in[Q], state->q_heads, q))
        return misfit(reshape, Q);
    if (!split(reshape->in[K], state->kv_heads, k) || k[0] != q[0] || k[3] != q[3] ||
        (k[1] ? q[1] % k[1] != 0 : q[1] != 0) || reshape->in[K]->rank != reshape->in[Q]->rank)
        return misfit(reshape, K);
    if (!split(reshape->in[V], state->kv_heads, v) || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] ||
        reshape->in[V]->rank != reshape->in[Q]->rank)
        return misfit(reshape, V);
    shape->batch = q[0];
    shape->q_heads = q[1];
    shape->kv_heads = k[1];
    shape->q_len = q[2];
    shape->kv_len = k[2];
    shape->size = q[3];
    shape->v_size = v[3];
    GRT_TRY(fit_past(reshape, shape));
    return fit_mask(reshape, shape);
}

static bool has_output(const grt_reshape *reshape, int32_t i)
{
    return i < reshape->n_out && reshape->out[i];
}

/* The two products of one block; the caller sets the number of keys. */
static grt_gemm score_product(const attention_shape *shape, int64_t m, int64_t n, int64_t lda, int64_t ldb,
                              float scale)
{
    return (grt_gemm){.batch = 1,
                      .m = m,
                      .n = n,
                      .k = shape->size,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = n,
                      .trans_b = true,
                      .alpha = scale};
}

static grt_gemm value_product(const attention_shape *shape, int64_t m, int64_t n, int64_t ldb, int64_t ldc)
{
    return (grt_gemm){
        .batch = 1, .m = m, .n = shape->v_size, .k = n, .lda = n, .ldb = ldb, .ldc = ldc, .alpha = 1};
}

static bool size_scratch(const attention_state *state, attention_shape *shape, int32_t threads)
{
    /* Causal rows of a large block see keys in vain that only its last rows may use; and every thread wants
     * work. */
    const bool large =
        !state->causal && shape->total > 0 && shape->batch * shape->q_heads >= 2 * (int64_t)threads;
    int64_t most = large ? MOST_SCORES / shape->total : BLOCK_ROWS;
    most = most < BLOCK_ROWS ? BLOCK_ROWS : most > MOST_ROWS ? MOST_ROWS : most;
    const int64_t blocks = (shape->q_len + most - 1) / most;
    shape->block = blocks ? (shape->q_len + blocks - 1) / blocks : 0;
    if (!state->fast) {
        shape->block = 1;
        shape->thread_bytes = grt_align_up(attention_exact_bytes(shape), 64);
        return true;
    }
    grt_gemm s = score_product(shape, shape->block, shape->total, shape->size, shape->size, 1);
    grt_gemm v = value_product(shape, shape->block, shape->total, shape->v_size, shape->v_size);
    size_t s_bytes, v_bytes, scores;
    if (!grt_gemm_scratch_bytes(&s, 1, &s_bytes) || !grt_gemm_scratch_bytes(&v, 1, &v_bytes) ||
        !grt_mul_size((size_t)shape->block * sizeof(float), (size_t)shape->total, &scores))
        return false;
    shape->gemm_bytes = grt_align_up(s_bytes > v_bytes ? s_bytes : v_bytes, 64);
    shape->thread_bytes = shape->gemm_bytes + grt_align_up(scores, 64);
    return true;
}

static grt_status attention_reshape(grt_reshape *reshape)
{
    attention_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    grt_status status = fit(reshape, shape);
    bool past =
        status == GRT_OK && reshape->n_in > PAST_VALUE && reshape->in[PAST_KEY] && reshape->in[PAST_VALUE];
    if (past && !has_output(reshape, OUT_KEY))
        shape->key_bytes =
            grt_align_up(grt_tensor_bytes(reshape->in[K]) + grt_tensor_bytes(reshape->in[PAST_KEY]), 64);
    if (past && !has_output(reshape, OUT_VALUE))
        shape->value_bytes =
            grt_align_up(grt_tensor_bytes(reshape->in[V]) + grt_tensor_bytes(reshape->in[PAST_VALUE]), 64);
    size_t bytes;
    if (status == GRT_OK &&
        (!size_scratch(reshape->state, shape, reshape->threads) ||
         !grt_mul_size(shape->thread_bytes, (size_t)reshape->threads, &bytes) ||
         !grt_add_size(bytes, shape->key_bytes + shape->value_bytes, &reshape->workspace_bytes)))
        status = grt_fail_memory(SIZE_MAX);
    if (status != GRT_OK) {
        free(shape);
        return status;
    }
    reshape->shape = shape;
    return GRT_OK;
}

/* ---- run ---- */

void attention_range(const grt_run *run, int64_t batch, int64_t i, int64_t *lo, int64_t *hi)
{
    const attention_state *state = run->state;
    const attention_shape *shape = run->shape;
    const grt_tensor *nonpad = input(run, NONPAD);
    int64_t offset = shape->past, end = shape->total, start = 0;
    if (nonpad) {
        int64_t valid = ((const int64_t *)nonpad->data)[batch];
        valid = valid < 0 ? 0 : valid > shape->total ? shape->total : valid;
        offset = valid - shape->q_len;
        end = valid;
    }
    int64_t position = offset + i;
    if (state->causal && position + 1 < end)
        end = position + 1;
    if (state->right >= 0 && position + state->right + 1 < end)
        end = position + state->right + 1;
    if (state->left >= 0 && position - state->left > start)
        start = position - state->left;
    end = end < shape->mask_len ? end : shape->mask_len;
    *hi = end < 0 ? 0 : end;
    *lo = start > *hi ? *hi : start;
}

static attention_view view_of(const grt_tensor *t, int64_t n_heads, int64_t size)
{
    if (t->rank == 4)
        return (attention_view){t->data, t->dims[1] * t->dims[2] * size, t->dims[2] * size, size};
    return (attention_view){t->data, t->dims[1] * t->dims[2], size, n_heads * size};
}

/* Past and new rows of K or V, one after the other for each head, as an output or in the workspace; or the
 * input itself. */
static attention_view stage(const grt_run *run, int32_t i, int32_t past_i, grt_tensor *present,
                            char *workspace)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *x = run->in[i], *past = input(run, past_i);
    size_t element = grt_dtype_size(x->dtype);
    int64_t size = i == K ? shape->size : shape->v_size;
    attention_view from = view_of(x, shape->kv_heads, size);
    if (!past && !present)
        return from;
    char *to = present ? present->data : workspace;
    size_t row = (size_t)size * element, past_bytes = (size_t)shape->past * row;
    for (int64_t n = 0; n < shape->batch * shape->kv_heads; n++) {
        const char *src =
            (const char *)x->data +
            (size_t)(n / shape->kv_heads * from.batch + n % shape->kv_heads * from.head) * element;
        char *dst = to + (size_t)n * (size_t)shape->total * row;
        if (past_bytes)
            memcpy(dst, (const char *)past->data + (size_t)n * past_bytes, past_bytes);
        for (int64_t s = 0; s < shape->kv_len && row; s++)
            memcpy(dst + past_bytes + (size_t)s * row, src + (size_t)(s * from.row) * element, row);
    }
    return (attention_view){to, shape->kv_heads * shape->total * size, shape->total * size, size};
}

/* Keys outside [lo, hi) of the n in s (the first is key `from`) and those that the mask excludes become -inf;
 * a float mask is added. False if no key is left. */
static bool mask_row(const grt_run *run, int64_t batch, int64_t head, int64_t row, int64_t from, int64_t n,
                     float *s)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *mask = input(run, MASK);
    const int64_t *strides = shape->mask_strides;
    int64_t lo, hi, at = batch * strides[0] + head * strides[1] + row * strides[2] + from, allowed = 0;
    attention_range(run, batch, row, &lo, &hi);
    lo = lo > from ? lo - from : 0;
    hi = hi > from ? hi - from : 0;
    lo = lo < n ? lo : n;
    hi = hi < n ? hi : n;
    for (int64_t j = 0; j < lo; j++)
        s[j] = -INFINITY;
    for (int64_t j = hi; j < n; j++)
        s[j] = -INFINITY;
    if (!mask)
        return hi > lo;
    if (mask->dtype == GRT_DTYPE_BOOL) {
        const uint8_t *m = (const uint8_t *)mask->data + at;
        for (int64_t j = lo; j < hi; j++) {
            s[j] = m[j] ? s[j] : -INFINITY;
            allowed += m[j] != 0;
        }
        return allowed > 0;
    }
    const float *m = (const float *)mask->data + at;
    for (int64_t j = lo; j < hi; j++) {
        s[j] += m[j];
        allowed += m[j] != -INFINITY;
    }
    return allowed > 0;
}

/* In place. A row without any key gets zeros. */
static void softmax_row(float *s, int64_t n, bool any)
{
    if (any)
        cpu_softmax_row(s, s, n, false);
    else
        memset(s, 0, (size_t)n * sizeof *s);
}

static void emit(const grt_run *run, int mode, int64_t at, int64_t m, int64_t n, const float *scores)
{
    grt_tensor *qk = output(run, OUT_QK);
    if (qk && n && ((const attention_state *)run->state)->mode == mode)
        memcpy((float *)qk->data + at * n, scores, (size_t)(m * n) * sizeof *scores);
}

typedef struct attention_views {
    attention_view q, k, v, y;
} attention_views;

/* Query rows [row, row + m) of one head. */
static void block(const grt_run *run, const attention_views *views, int64_t batch, int64_t head, int64_t row,
                  int64_t m, char *scratch)
{
    const attention_state *state = run->state;
    const attention_shape *shape = run->shape;
    float *s = (float *)(void *)(scratch + shape->gemm_bytes);
    int64_t from = shape->total, to = 0, kv_head = head / (shape->q_heads / shape->kv_heads);
    for (int64_t i = 0; i < m; i++) {
        int64_t lo, hi;
        attention_range(run, batch, row + i, &lo, &hi);
        from = lo < hi && lo < from ? lo : from;
        to = hi > to ? hi : to;
    }
    if (output(run, OUT_QK)) { /* the scores of all keys are wanted */
        from = 0;
        to = shape->total;
    }
    int64_t n = to > from ? to - from : 0, at = (batch * shape->q_heads + head) * shape->q_len + row;
    const float *q =
        (const float *)views->q.data + batch * views->q.batch + head * views->q.head + row * views->q.row;
    const float *k =
        (const float *)views->k.data + batch * views->k.batch + kv_head * views->k.head + from * views->k.row;
    const float *v =
        (const float *)views->v.data + batch * views->v.batch + kv_head * views->v.head + from * views->v.row;
    float *y =
        (float *)run->out[OUT_Y]->data + batch * views->y.batch + head * views->y.head + row * views->y.row;
    float scale = (float)(state->scale != 0 ? state->scale : 1 / sqrt((double)shape->size));
    grt_gemm scores = score_product(shape, m, n, views->q.row, views->k.row, scale);
    grt_gemm values = value_product(shape, m, n, views->v.row, views->y.row);
    for (int64_t i = 0; m < DIRECT_ROWS && i < m; i++)
        cpu_dot_rows(q + i * scores.lda, k, scores.ldb, n, scores.k, scores.alpha, s + i * n);
    if (m >= DIRECT_ROWS)
        grt_gemm_run(&scores, q, k, s, scratch, 1);
    emit(run, 0, at, m, n, s);
    float cap = (float)state->softcap;
    for (int64_t j = 0; cap > 0 && j < m * n; j++)
        s[j] = cap * tanhf(s[j] / cap);
    emit(run, 1, at, m, n, s);
    for (int64_t i = 0; i < m; i++) {
        bool any = mask_row(run, batch, head, row + i, from, n, s + i * n);
        emit(run, 2, at + i, 1, n, s + i * n);
        softmax_row(s + i * n, n, any);
    }
    emit(run, 3, at, m, n, s);
    for (int64_t i = 0; m < DIRECT_ROWS && i < m; i++)
        cpu_sum_rows(s + i * n, v, values.ldb, n, values.n, y + i * values.ldc);
    if (m >= DIRECT_ROWS)
        grt_gemm_run(&values, s, v, y, scratch, 1);
}

/* The heads of queries, then those of keys, then those of values. */
static attention_views joined_views(const grt_run *run)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *x = run->in[Q];
    const int64_t width = (shape->q_heads + 2 * shape->kv_heads) * shape->size;
    attention_view q = {x->data, shape->q_len * width, shape->size, width}, k = q, v = q;
    const size_t head = (size_t)shape->size * grt_dtype_size(x->dtype);
    k.data = (const char *)x->data + (size_t)shape->q_heads * head;
    v.data = (const char *)k.data + (size_t)shape->kv_heads * head;
    return (attention_views){q, k, v, view_of(run->out[OUT_Y], shape->q_heads, shape->size)};
}

static grt_status attention_run(const grt_run *run)
{
    const attention_state *state = run->state;
    const attention_shape *shape = run->shape;
    char *workspace = run->workspace;
    attention_views views;
    if (state->joined)
        views = joined_views(run);
    else
        views = (attention_views){
            .q = view_of(run->in[Q], shape->q_heads, shape->size),
            .k = stage(run, K, PAST_KEY, output(run, OUT_KEY), workspace),
            .v = stage(run, V, PAST_VALUE, output(run, OUT_VALUE), workspace + shape->key_bytes),
            .y = view_of(run->out[OUT_Y], shape->q_heads, shape->v_size),
        };
    workspace += shape->key_bytes + shape->value_bytes;
    int64_t blocks = shape->block ? (shape->q_len + shape->block - 1) / shape->block : 0;
    int64_t tasks = shape->batch * shape->q_heads * blocks;
    /* In floating point, as it overflows nowhere. */
    const double work =
        (double)tasks * (double)shape->block * (double)shape->total * (double)(shape->size + shape->v_size);
#pragma omp parallel num_threads(run->threads) if (tasks > 1 && work > PARALLEL_OPS)
    {
        char *scratch = workspace + (size_t)cpu_thread() * shape->thread_bytes;
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            int64_t batch = task / (shape->q_heads * blocks), head = task / blocks % shape->q_heads;
            int64_t row = task % blocks * shape->block;
            int64_t m = shape->q_len - row < shape->block ? shape->q_len - row : shape->block;
            if (state->fast)
                block(run, &views, batch, head, row, m, scratch);
            else
                attention_exact_row(run, &views.q, &views.k, &views.v, &views.y, batch, head, row,
                                    (double *)(void *)scratch);
        }
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Attention",
     .supports = attention_supports,
     .create = attention_create,
     .destroy = free,
     .reshape = attention_reshape,
     .release_shape = free,
     .run = attention_run},
    {.domain = "graphrt",
     .op = "Attention",
     .supports = attention_supports,
     .create = attention_create,
     .destroy = free,
     .reshape = attention_reshape,
     .release_shape = free,
     .run = attention_run},
};
CPU_KERNELS(attention, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* Attention. Keys and values are staged (past and present joined) once; then blocks of query rows go through
 * scores = Q K^T, softcap, mask, softmax, Y = P V, skipping keys that causality, window or padding exclude.
 * Float32, and 16-bit floats as float32, use matrix products on blocks; double goes through
 * attention_exact.c. */
#include "backends/cpu/attention_exact.h"
#include "backends/cpu/attention_packed.h"

#include "backends/cpu/gemm.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/softmax.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_ROWS = 64,         /* query rows per block: keeps scores in the cache */
    ROWS_UNIT = 12,          /* a multiple of what products compute together, with AVX2 and AVX-512 */
    SHARED_ROWS = 13,        /* heads of fewer rows do not pay for packing values */
    MOST_ROWS = 192,         /* query rows per block when there are few keys */
    MOST_SCORES = 32 * 1024, /* of a block that is larger than BLOCK_ROWS */
    PARALLEL_OPS = 400000,   /* multiply-adds below which a second thread costs more than it saves */
    DIRECT_ROWS = 4,         /* fewer rows than this do not pay for packing keys */
    EXACT_ROWS = 16,         /* query rows that share widened keys in the exact path */
};

static const grt_tensor *cpu_attention_input(const grt_run *run, int32_t i)
{
    return i < run->n_in ? run->in[i] : NULL;
}

static grt_tensor *attention_output(const grt_run *run, int32_t i)
{
    return i < run->n_out ? run->out[i] : NULL;
}

/* One tensor of queries, keys and values, and a past or presents. */
static bool is_joined_with_past(const grt_kernel_node *node)
{
    return grt_op_is(node->desc, "graphrt", "Attention") &&
           (grt_node_has(node, ATTENTION_PAST_KEY) || node->n_out > 1);
}

static bool attention_supports(const grt_kernel_node *node, grt_text *why)
{
    if (is_joined_with_past(node)) {
        if (why)
            grt_text_add(why, "queries, keys and values apart, where there is a past");
        return false;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        grt_dtype_set want = i == ATTENTION_MASK     ? CPU_FLOATS | GRT_BIT(BOOL)
                             : i == ATTENTION_NONPAD ? GRT_BIT(INT64)
                                                     : CPU_FLOATS;
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

static grt_status attention_create(const grt_kernel_node *node, void **out_state)
{
    attention_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_attention_read(node->desc, &state->of);
    state->softmax = (grt_dtype)grt_attr_int(node->desc, "softmax_precision", GRT_DTYPE_NONE);
    state->fast = state->softmax != GRT_DTYPE_DOUBLE;
    for (int32_t i = 0; i < node->n_in; i++)
        if (grt_node_has(node, i) && i != ATTENTION_NONPAD && node->in[i].dtype != GRT_DTYPE_FLOAT)
            state->fast &= i == ATTENTION_MASK && node->in[i].dtype == GRT_DTYPE_BOOL;
    *out_state = state;
    return GRT_OK;
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
                      .k = shape->dims.size,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = n,
                      .trans_b = true,
                      .alpha = scale};
}

static grt_gemm value_product(const attention_shape *shape, int64_t m, int64_t n, int64_t ldb, int64_t ldc)
{
    return (grt_gemm){
        .batch = 1, .m = m, .n = shape->dims.v_size, .k = n, .lda = n, .ldb = ldb, .ldc = ldc, .alpha = 1};
}

/* Floats of packed keys and values, where several blocks of rows or heads of queries read them. */
static bool size_packed(attention_shape *shape)
{
    shape->packed_keys = shape->packed_values = 0;
    if (shape->dims.q_len <= shape->block &&
        (shape->dims.q_heads == shape->dims.kv_heads || shape->dims.q_len < SHARED_ROWS))
        return true;
    return attention_packed_floats(shape->dims.total, shape->dims.size, shape->dims.v_size,
                                   &shape->packed_keys, &shape->packed_values);
}

/* A thread's scratch: what products want, scores, packed keys and values. */
static bool size_products(attention_shape *shape)
{
    grt_gemm s = score_product(shape, shape->block, shape->dims.total, shape->dims.size, shape->dims.size, 1);
    grt_gemm v =
        value_product(shape, shape->block, shape->dims.total, shape->dims.v_size, shape->dims.v_size);
    size_t s_bytes, v_bytes, scores, packed;
    if (!size_packed(shape) || !grt_add_size(shape->packed_keys, shape->packed_values, &packed) ||
        !grt_mul_size(packed, sizeof(float), &packed) || !grt_gemm_scratch_bytes(&s, 1, &s_bytes) ||
        !grt_gemm_scratch_bytes(&v, 1, &v_bytes) ||
        !grt_mul_size((size_t)shape->block * sizeof(float), (size_t)shape->dims.total, &scores))
        return false;
    shape->gemm_bytes = packed ? 0 : grt_align_up(s_bytes > v_bytes ? s_bytes : v_bytes, 64);
    shape->thread_bytes = shape->gemm_bytes + grt_align_up(scores, 64);
    return grt_add_size(shape->thread_bytes, packed, &shape->thread_bytes);
}

static bool size_scratch(const attention_state *state, attention_shape *shape, int32_t threads)
{
    /* Smaller blocks when causal, as early rows of a block compute scores that they discard; and at least one
     * block for each thread. */
    const bool large = !shape->dims.causal && shape->dims.total > 0 &&
                       shape->dims.batch * shape->dims.q_heads >= 2 * (int64_t)threads;
    int64_t most = large ? MOST_SCORES / shape->dims.total : BLOCK_ROWS;
    most = most < BLOCK_ROWS ? BLOCK_ROWS : most > MOST_ROWS ? MOST_ROWS : most;
    const int64_t blocks = (shape->dims.q_len + most - 1) / most;
    shape->block = blocks ? (shape->dims.q_len + blocks - 1) / blocks : 0;
    if (blocks > 1)
        shape->block = (shape->block + ROWS_UNIT - 1) / ROWS_UNIT * ROWS_UNIT;
    if (!state->fast) {
        const int64_t room = shape->dims.total > 0 ? MOST_SCORES / shape->dims.total : EXACT_ROWS;
        shape->block = room < 1 ? 1 : room < EXACT_ROWS ? room : EXACT_ROWS;
        shape->block = shape->block < shape->dims.q_len ? shape->block : shape->dims.q_len;
        shape->thread_bytes = grt_align_up(attention_exact_bytes(shape), 64);
        return true;
    }
    return size_products(shape);
}

static grt_status attention_reshape(grt_reshape *reshape)
{
    attention_shape *shape = calloc(1, sizeof *shape);
    if (!shape)
        return grt_fail_memory(sizeof *shape);
    const attention_state *state = reshape->state;
    grt_status status = grt_attention_fit(&state->of, reshape, &shape->dims);
    bool past = status == GRT_OK && reshape->n_in > ATTENTION_PAST_VALUE && reshape->in[ATTENTION_PAST_KEY] &&
                reshape->in[ATTENTION_PAST_VALUE];
    if (past && !has_output(reshape, ATTENTION_PRESENT_KEY))
        shape->key_bytes = grt_align_up(grt_tensor_bytes(reshape->in[ATTENTION_K]) +
                                            grt_tensor_bytes(reshape->in[ATTENTION_PAST_KEY]),
                                        64);
    if (past && !has_output(reshape, ATTENTION_PRESENT_VALUE))
        shape->value_bytes = grt_align_up(grt_tensor_bytes(reshape->in[ATTENTION_V]) +
                                              grt_tensor_bytes(reshape->in[ATTENTION_PAST_VALUE]),
                                          64);
    size_t bytes;
    if (status == GRT_OK &&
        (!size_scratch(state, shape, reshape->threads) ||
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

static attention_view attention_view_of(const grt_tensor *t, int64_t n_heads, int64_t size)
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
    const grt_tensor *x = run->in[i], *past = cpu_attention_input(run, past_i);
    size_t element = grt_dtype_size(x->dtype);
    int64_t size = i == ATTENTION_K ? shape->dims.size : shape->dims.v_size;
    attention_view from = attention_view_of(x, shape->dims.kv_heads, size);
    if (!past && !present)
        return from;
    char *to = present ? present->data : workspace;
    size_t row = (size_t)size * element, past_bytes = (size_t)shape->dims.past * row;
    for (int64_t n = 0; n < shape->dims.batch * shape->dims.kv_heads; n++) {
        const char *src =
            (const char *)x->data +
            (size_t)(n / shape->dims.kv_heads * from.batch + n % shape->dims.kv_heads * from.head) * element;
        char *dst = to + (size_t)n * (size_t)shape->dims.total * row;
        if (past_bytes)
            memcpy(dst, (const char *)past->data + (size_t)n * past_bytes, past_bytes);
        for (int64_t s = 0; s < shape->dims.kv_len && row; s++)
            memcpy(dst + past_bytes + (size_t)s * row, src + (size_t)(s * from.row) * element, row);
    }
    return (attention_view){to, shape->dims.kv_heads * shape->dims.total * size, shape->dims.total * size,
                            size};
}

/* Keys outside [lo, hi) of the n in s (the first is key `from`) and those that the mask excludes become -inf;
 * a float mask is added. False if no key is left. */
static bool mask_row(const grt_run *run, int64_t batch, int64_t head, int64_t row, int64_t from, int64_t n,
                     float *s)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *mask = cpu_attention_input(run, ATTENTION_MASK);
    const int64_t *strides = shape->dims.mask_strides;
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
    int32_t open = 0; /* as wide as the values, for vectors */
#pragma omp simd reduction(| : open)
    for (int64_t j = lo; j < hi; j++) {
        s[j] += m[j];
        open |= m[j] != -INFINITY;
    }
    return open != 0;
}

static void attention_emit(const grt_run *run, int mode, int64_t at, int64_t m, int64_t n,
                           const float *scores)
{
    grt_tensor *qk = attention_output(run, ATTENTION_QK);
    if (qk && n && ((const attention_shape *)run->shape)->dims.mode == mode)
        memcpy((float *)qk->data + at * n, scores, (size_t)(m * n) * sizeof *scores);
}

typedef struct attention_views {
    attention_view q, k, v, y;
} attention_views;

/* What one thread has for itself. */
typedef struct attention_scratch {
    char *gemm;
    float *scores;
    attention_packed packed; /* keys: NULL where blocks share none */
} attention_scratch;

static attention_scratch divide_scratch(const attention_shape *shape, char *scratch)
{
    const size_t scores =
        shape->thread_bytes - shape->gemm_bytes - (shape->packed_keys + shape->packed_values) * sizeof(float);
    attention_scratch s = {
        .gemm = scratch, .scores = (float *)(void *)(scratch + shape->gemm_bytes), .packed = {.id = -1}};
    if (shape->packed_keys + shape->packed_values > 0) {
        s.packed.keys = (float *)(void *)(scratch + shape->gemm_bytes + scores);
        s.packed.values = s.packed.keys + shape->packed_keys;
    }
    return s;
}

/* The rows [row, row + m) of one head of queries, and the keys [from, to) that they look at. */
typedef struct attention_part {
    int64_t batch, head, kv_head, row, m, from, to;
    bool all; /* every row looks at every key, and no mask is added */
} attention_part;

/* True if every row may look at every key, and nothing is added to scores. */
static bool sees_all(const grt_run *run)
{
    const grt_attention_dims *dims = &((const attention_shape *)run->shape)->dims;
    return !cpu_attention_input(run, ATTENTION_MASK) && !cpu_attention_input(run, ATTENTION_NONPAD) &&
           !dims->causal && dims->left < 0 && dims->right < 0 && dims->total > 0;
}

/* From the scores of m rows to their weights, in place. A row without any key gets zeros. */
static void soften(const grt_run *run, const attention_part *part, int64_t at, float *s)
{
    const int64_t n = part->to - part->from;
    int64_t first = 0;
    for (int64_t i = 0; i < part->m; i++) {
        const bool any =
            part->all || mask_row(run, part->batch, part->head, part->row + i, part->from, n, s + i * n);
        attention_emit(run, 2, at + i, 1, n, s + i * n);
        if (any)
            continue;
        cpu_softmax_rows(s + first * n, s + first * n, i - first, n, false);
        memset(s + i * n, 0, (size_t)n * sizeof *s);
        first = i + 1;
    }
    cpu_softmax_rows(s + first * n, s + first * n, part->m - first, n, false);
}

/* Keys that any of the rows may look at; all where scores are an output. */
static void find_keys(const grt_run *run, attention_part *part)
{
    const attention_shape *shape = run->shape;
    part->from = part->all ? 0 : shape->dims.total;
    part->to = part->all ? shape->dims.total : 0;
    for (int64_t i = 0; i < part->m && !part->all; i++) {
        int64_t lo, hi;
        attention_range(run, part->batch, part->row + i, &lo, &hi);
        part->from = lo < hi && lo < part->from ? lo : part->from;
        part->to = hi > part->to ? hi : part->to;
    }
    if (attention_output(run, ATTENTION_QK)) {
        part->from = 0;
        part->to = shape->dims.total;
    }
    part->from -= part->from < part->to ? part->from % GRT_GEMM_PANEL : 0;
}

static const float *attention_rows(const attention_view *view, int64_t batch, int64_t head, int64_t row)
{
    return (const float *)view->data + batch * view->batch + head * view->head + row * view->row;
}

static void pack_keys(const attention_shape *shape, const attention_views *views, const attention_part *part,
                      attention_packed *packed)
{
    const attention_head head = {.id = part->batch * shape->dims.kv_heads + part->kv_head,
                                 .k = attention_rows(&views->k, part->batch, part->kv_head, 0),
                                 .v = attention_rows(&views->v, part->batch, part->kv_head, 0),
                                 .k_row = views->k.row,
                                 .v_row = views->v.row,
                                 .total = shape->dims.total,
                                 .size = shape->dims.size,
                                 .v_size = shape->dims.v_size};
    attention_pack(packed, &head, part->from, part->to);
}

static void compute_scores(const attention_shape *shape, const attention_views *views,
                           const attention_part *part, attention_scratch *scratch)
{
    const int64_t n = part->to - part->from;
    const float *q = attention_rows(&views->q, part->batch, part->head, part->row),
                *k = attention_rows(&views->k, part->batch, part->kv_head, part->from);
    grt_gemm g = score_product(shape, part->m, n, views->q.row, views->k.row, (float)shape->dims.scale);
    for (int64_t i = 0; part->m < DIRECT_ROWS && i < part->m; i++)
        cpu_dot_rows(q + i * g.lda, k, g.ldb, n, g.k, g.alpha, scratch->scores + i * n);
    if (part->m < DIRECT_ROWS)
        return;
    if (scratch->packed.keys) {
        g.b_packed = true;
        g.trans_b = false;
        k = scratch->packed.keys + part->from * shape->dims.size;
    }
    grt_gemm_run(&g, q, k, scratch->scores, scratch->gemm, 1);
}

static void compute_values(const attention_shape *shape, const attention_views *views,
                           const attention_part *part, const attention_scratch *scratch, float *y)
{
    const int64_t n = part->to - part->from;
    const float *v = attention_rows(&views->v, part->batch, part->kv_head, part->from);
    grt_gemm g = value_product(shape, part->m, n, views->v.row, views->y.row);
    for (int64_t i = 0; part->m < DIRECT_ROWS && i < part->m; i++)
        cpu_sum_rows(scratch->scores + i * n, v, g.ldb, n, g.n, y + i * g.ldc);
    if (part->m < DIRECT_ROWS)
        return;
    if (scratch->packed.keys) {
        g.b_packed = true;
        g.packed_k = shape->dims.total;
        v = scratch->packed.values + part->from * GRT_GEMM_PANEL;
    }
    grt_gemm_run(&g, scratch->scores, v, y, scratch->gemm, 1);
}

/* True if a head's rows look at so few keys that short_head computes it, from what it takes: masks of floats
 * that have all keys. */
static bool is_short(const attention_state *state, const grt_run *run, const cpu_rows *loops)
{
    const grt_attention_dims *dims = &((const attention_shape *)run->shape)->dims;
    const grt_tensor *mask = cpu_attention_input(run, ATTENTION_MASK);
    return state->fast && dims->q_len >= DIRECT_ROWS && dims->q_len <= ATTENTION_SHORT_ROWS &&
           dims->softcap <= 0 && !attention_output(run, ATTENTION_QK) &&
           (!mask || (mask->dtype == GRT_DTYPE_FLOAT && dims->mask_len >= dims->total)) &&
           loops->short_fits(dims->total, dims->size, dims->v_size);
}

static void short_block(const grt_run *run, const attention_views *views, const attention_part *part,
                        const cpu_rows *loops)
{
    const grt_attention_dims *dims = &((const attention_shape *)run->shape)->dims;
    const grt_tensor *mask = cpu_attention_input(run, ATTENTION_MASK);
    int32_t from[ATTENTION_SHORT_ROWS], to[ATTENTION_SHORT_ROWS];
    attention_short head = {.q = attention_rows(&views->q, part->batch, part->head, part->row),
                            .k = attention_rows(&views->k, part->batch, part->kv_head, 0),
                            .v = attention_rows(&views->v, part->batch, part->kv_head, 0),
                            .y = (float *)run->out[ATTENTION_Y]->data + part->batch * views->y.batch +
                                 part->head * views->y.head + part->row * views->y.row,
                            .q_row = views->q.row,
                            .k_row = views->k.row,
                            .v_row = views->v.row,
                            .y_row = views->y.row,
                            .rows = part->m,
                            .keys = dims->total,
                            .size = dims->size,
                            .v_size = dims->v_size,
                            .scale = (float)dims->scale};
    if (mask) {
        const int64_t *strides = dims->mask_strides;
        head.mask = (const float *)mask->data + part->batch * strides[0] + part->head * strides[1] +
                    part->row * strides[2];
        head.mask_row = strides[2];
    }
    for (int64_t i = 0; i < part->m && !part->all; i++) {
        int64_t lo, hi;
        attention_range(run, part->batch, part->row + i, &lo, &hi);
        from[i] = (int32_t)lo;
        to[i] = (int32_t)hi;
    }
    if (!part->all) {
        head.from = from;
        head.to = to;
    }
    loops->short_head(&head);
}

static void attention_block(const grt_run *run, const attention_views *views, attention_part part,
                            attention_scratch *scratch)
{
    const attention_shape *shape = run->shape;
    find_keys(run, &part);
    part.to = part.to > part.from ? part.to : part.from;
    const int64_t n = part.to - part.from, m = part.m,
                  at = (part.batch * shape->dims.q_heads + part.head) * shape->dims.q_len + part.row;
    float *s = scratch->scores;
    if (scratch->packed.keys && m >= DIRECT_ROWS)
        pack_keys(shape, views, &part, &scratch->packed);
    compute_scores(shape, views, &part, scratch);
    attention_emit(run, 0, at, m, n, s);
    float cap = (float)shape->dims.softcap;
    if (cap > 0)
        cpu_cap_scores(s, m * n, cap);
    attention_emit(run, 1, at, m, n, s);
    soften(run, &part, at, s);
    attention_emit(run, 3, at, m, n, s);
    float *y = (float *)run->out[ATTENTION_Y]->data + part.batch * views->y.batch +
               part.head * views->y.head + part.row * views->y.row;
    compute_values(shape, views, &part, scratch, y);
}

/* The heads of queries, then those of keys, then those of values. */
static attention_views joined_views(const grt_run *run)
{
    const attention_shape *shape = run->shape;
    const grt_tensor *x = run->in[ATTENTION_Q];
    const int64_t width = (shape->dims.q_heads + 2 * shape->dims.kv_heads) * shape->dims.size;
    attention_view q = {x->data, shape->dims.q_len * width, shape->dims.size, width}, k = q, v = q;
    const size_t head = (size_t)shape->dims.size * grt_dtype_size(x->dtype);
    k.data = (const char *)x->data + (size_t)shape->dims.q_heads * head;
    v.data = (const char *)k.data + (size_t)shape->dims.kv_heads * head;
    return (attention_views){q, k, v,
                             attention_view_of(run->out[ATTENTION_Y], shape->dims.q_heads, shape->dims.size)};
}

static grt_status attention_run(const grt_run *run)
{
    const attention_state *state = run->state;
    const attention_shape *shape = run->shape;
    char *workspace = run->workspace;
    attention_views views;
    if (shape->dims.joined)
        views = joined_views(run);
    else
        views = (attention_views){
            .q = attention_view_of(run->in[ATTENTION_Q], shape->dims.q_heads, shape->dims.size),
            .k = stage(run, ATTENTION_K, ATTENTION_PAST_KEY, attention_output(run, ATTENTION_PRESENT_KEY),
                       workspace),
            .v = stage(run, ATTENTION_V, ATTENTION_PAST_VALUE, attention_output(run, ATTENTION_PRESENT_VALUE),
                       workspace + shape->key_bytes),
            .y = attention_view_of(run->out[ATTENTION_Y], shape->dims.q_heads, shape->dims.v_size),
        };
    workspace += shape->key_bytes + shape->value_bytes;
    int64_t blocks = shape->block ? (shape->dims.q_len + shape->block - 1) / shape->block : 0;
    int64_t tasks = shape->dims.batch * shape->dims.q_heads * blocks;
    const cpu_rows *loops = cpu_rows_best();
    const bool all = sees_all(run), brief = is_short(state, run, loops);
    /* In floating point, as it overflows nowhere. */
    const double work = (double)tasks * (double)shape->block * (double)shape->dims.total *
                        (double)(shape->dims.size + shape->dims.v_size);
#pragma omp parallel num_threads(run->threads) if (tasks > 1 && work > PARALLEL_OPS)
    {
        char *own = workspace + (size_t)cpu_thread() * shape->thread_bytes;
        attention_scratch scratch = divide_scratch(shape, own);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            int64_t batch = task / (shape->dims.q_heads * blocks), head = task / blocks % shape->dims.q_heads;
            int64_t row = task % blocks * shape->block;
            int64_t m = shape->dims.q_len - row < shape->block ? shape->dims.q_len - row : shape->block;
            const int64_t kv_head = head / (shape->dims.q_heads / shape->dims.kv_heads);
            const attention_part part = {
                .batch = batch, .head = head, .kv_head = kv_head, .row = row, .m = m, .all = all};
            if (brief)
                short_block(run, &views, &part, loops);
            else if (state->fast)
                attention_block(run, &views, part, &scratch);
            else
                attention_exact_rows(run, &views.q, &views.k, &views.v, &views.y, batch, head, row, m,
                                     (double *)(void *)own);
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

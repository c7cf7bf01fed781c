/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN: one product for the inputs of all steps, then per step the recurrent product and the
 * cell. The two directions of a bidirectional layer are independent and run side by side. One team of threads
 * runs all steps; each member has the same columns of the recurrent weights at each step, so that they stay
 * in its core's cache. DynamicQuantizeLSTM is an LSTM whose weights are bytes, [directions, inputs, gates],
 * and whose products round what they get. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/rnn_bytes.h"
#include "backends/cpu/rnn_cell.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include <stdlib.h>
#include <string.h>

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

enum {
    SHARED_STEP_OPS = 100000,  /* multiply-adds of a step below which waiting for each other costs more */
    SHARED_BYTES_OPS = 400000, /* the same of bytes */
    SHARED_RUN_OPS = 60000,    /* of all steps, below which a second direction's thread costs more */
    CHUNK_FLOATS = 64 * 1024,  /* of weights that are multiplied in one go */
    MANY_INPUTS = 8,           /* rows of bytes from which kernels for many are faster */
};

typedef struct rnn_state {
    grt_rnn_layer layer;
    bool bytes;
    /* Constant weights, packed per direction: input, recurrent, and GRU's hidden gate apart. NULL where not
     * constant. */
    float *input[2], *recurrent[2], *hidden_gate[2];
    uint8_t *input_bytes[2], *recurrent_bytes[2]; /* the same of weights that are bytes */
    bool many_inputs;                             /* input_bytes are packed for many rows */
} rnn_state;

typedef struct rnn_shape {
    int64_t steps, batch, input, hidden;
    grt_gemm project, recur, recur_hidden;           /* recur_hidden: GRU's hidden gate */
    size_t projected, gates, linear, rh, h, c, bias; /* offsets within a direction's part */
    size_t recurrent, hidden_gate;                   /* packed weights that are not constant */
    size_t scratch, part;
    int32_t team; /* threads that run the steps; of both directions */
} rnn_shape;

/* ---- create ---- */

static bool rnn_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_rnn_layer layer;
    return grt_rnn_layer_read(node->desc, &layer, why);
}

/* Inputs beyond the fourth are not covered by a row's types. */
static bool bytes_supports(const grt_kernel_node *node, grt_text *why)
{
    static const grt_dtype_set floats = GRT_BIT(FLOAT), bytes = GRT_BIT(INT8) | GRT_BIT(UINT8);
    const grt_dtype_set want[] = {floats, bytes,  bytes,  floats, GRT_BIT(INT32), floats,
                                  floats, floats, floats, bytes,  floats,         bytes};
    for (int32_t i = 0; i < node->n_in && i < 12; i++)
        if (grt_node_has(node, i) && !grt_dtype_in(node->in[i].dtype, want[i])) {
            if (why)
                grt_text_add(
                    why, "input %d is %s; weights and zero points must be int8 or uint8, the rest float32", i,
                    grt_dtype_name(node->in[i].dtype));
            return false;
        }
    return rnn_supports(node, why);
}

static void rnn_destroy(void *data)
{
    rnn_state *state = data;
    for (int d = 0; state && d < 2; d++) {
        grt_account_free(state->input[d]);
        grt_account_free(state->recurrent[d]);
        grt_account_free(state->hidden_gate[d]);
        grt_account_free(state->input_bytes[d]);
        grt_account_free(state->recurrent_bytes[d]);
    }
    free(state);
}

/* Rows from.. (n of them) of a stored [n, k] matrix, packed as the k x n operand. */
static grt_status pack_rows(const grt_kernel_node *node, const float *rows, int64_t n, int64_t k,
                            float **out_packed)
{
    size_t floats, bytes;
    if (!grt_gemm_packed_b_floats(k, n, &floats) || !grt_mul_size(floats, sizeof(float), &bytes))
        return grt_fail_memory(SIZE_MAX);
    GRT_TRY(grt_kernel_alloc(node, bytes, (void **)out_packed));
    grt_gemm_pack_b(k, n, rows, k, true, *out_packed);
    return GRT_OK;
}

static grt_status pack_weights(const grt_kernel_node *node, rnn_state *state)
{
    const grt_tensor *w = &node->in[W], *r = &node->in[R];
    for (int32_t d = 0; d < state->layer.directions; d++) {
        if (w->data && w->rank == 3) {
            const int64_t n = w->dims[1], k = w->dims[2];
            GRT_TRY(pack_rows(node, (const float *)w->data + d * n * k, n, k, &state->input[d]));
        }
        if (!r->data || r->rank != 3)
            continue;
        const int64_t h = r->dims[2], n = state->layer.kind == GRT_RNN_GRU ? 2 * h : r->dims[1];
        const float *rows = (const float *)r->data + d * r->dims[1] * h;
        GRT_TRY(pack_rows(node, rows, n, h, &state->recurrent[d]));
        if (state->layer.kind == GRT_RNN_GRU)
            GRT_TRY(pack_rows(node, rows + n * h, h, h, &state->hidden_gate[d]));
    }
    return GRT_OK;
}

static grt_status pack_bytes(const grt_kernel_node *node, int32_t i, int32_t directions, bool many,
                             uint8_t **out)
{
    const grt_tensor *weights = &node->in[i];
    if (!weights->data || weights->rank != 3 || weights->dims[0] != directions)
        return GRT_OK;
    const int64_t k = weights->dims[1], n = weights->dims[2];
    for (int32_t d = 0; d < directions; d++)
        GRT_TRY(cpu_rnn_bytes_pack(node, (const uint8_t *)weights->data + d * k * n, k, n,
                                   weights->dtype == GRT_DTYPE_INT8, many, &out[d]));
    return GRT_OK;
}

static grt_status rnn_pack(const grt_kernel_node *node, rnn_state *state)
{
    if (!state->bytes)
        return pack_weights(node, state);
    const grt_tensor *x = &node->in[X];
    const bool known = x->rank == 3 && x->dims[0] >= 0 && x->dims[1] >= 0;
    state->many_inputs = !known || (double)x->dims[0] * (double)x->dims[1] >= MANY_INPUTS;
    GRT_TRY(pack_bytes(node, W, state->layer.directions, state->many_inputs, state->input_bytes));
    return pack_bytes(node, R, state->layer.directions, false, state->recurrent_bytes);
}

static grt_status rnn_create(const grt_kernel_node *node, void **out_state)
{
    const grt_op_desc *desc = node->desc;
    rnn_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    grt_rnn_layer_read(desc, &state->layer, NULL);
    state->bytes = !strcmp(desc->op, "DynamicQuantizeLSTM");
    const grt_status status = rnn_pack(node, state);
    if (status != GRT_OK) {
        rnn_destroy(state);
        return status;
    }
    *out_state = state;
    return GRT_OK;
}

/* ---- reshape ---- */

static grt_gemm rnn_product(int64_t m, int64_t n, int64_t k, bool packed)
{
    return (grt_gemm){.batch = 1,
                      .m = m,
                      .n = n,
                      .k = k,
                      .lda = k,
                      .ldb = k,
                      .ldc = n,
                      .trans_b = !packed,
                      .b_packed = packed,
                      .alpha = 1.0f};
}

static bool rnn_scratch_of(const grt_gemm *g, int threads, size_t *largest)
{
    size_t bytes;
    if (!grt_gemm_scratch_bytes(g, threads, &bytes))
        return false;
    *largest = bytes > *largest ? bytes : *largest;
    return true;
}

static const grt_tensor *rnn_given(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in ? in[i] : NULL;
}

static bool has_elements(const grt_reshape *r, int32_t i, int64_t n)
{
    const grt_tensor *t = rnn_given(r->in, r->n_in, i);
    return !t || grt_tensor_elements(t) == n;
}

/* All that is read of a layer whose weights are bytes. */
static grt_status check_bytes(const grt_reshape *r)
{
    const rnn_state *state = r->state;
    const grt_tensor *x = r->in[X], *w = r->in[W], *rec = r->in[R];
    const int64_t d = state->layer.directions, h = rec->rank == 3 ? rec->dims[1] : 0;
    if (x->rank == 3 && rec->rank == 3 &&
        cpu_rnn_bytes_fit(w, r->in[W_SCALE], rnn_given(r->in, r->n_in, W_ZERO), d, x->dims[2], 4 * h) &&
        cpu_rnn_bytes_fit(rec, r->in[R_SCALE], rnn_given(r->in, r->n_in, R_ZERO), d, h, 4 * h) &&
        has_elements(r, B, d * 8 * h) && has_elements(r, LENGTHS, x->dims[1]) &&
        has_elements(r, INITIAL_H, d * x->dims[1] * h) && has_elements(r, INITIAL_C, d * x->dims[1] * h) &&
        has_elements(r, PEEPHOLES, d * 3 * h))
        return GRT_OK;
    return grt_fail_op(
        r->desc, GRT_STATUS_INVALID_ARGUMENT,
        "shapes do not fit: with %lld directions, I inputs and H hidden values, W must be "
        "directions x I x 4H, R directions x H x 4H, B directions x 8H, P directions x 3H, states "
        "directions x batch x H, and scales and zero points one per direction or column",
        (long long)d);
}

/* Threads for the steps: one a direction at least, if that is worth while, and as many for both. */
static int32_t team_of(const rnn_state *state, const rnn_shape *s, int32_t threads)
{
    /* In floating point: sizes that fit no memory are looked at before they are refused. */
    const double step = (double)s->batch * (double)state->layer.gates * (double)s->hidden * (double)s->hidden;
    if (threads < state->layer.directions || step * (double)s->steps < SHARED_RUN_OPS)
        return 1;
    if (step < (state->bytes ? SHARED_BYTES_OPS : SHARED_STEP_OPS) ||
        (state->bytes && !state->recurrent_bytes[0]))
        return state->layer.directions;
    const int64_t most = (s->hidden + GRT_GEMM_PANEL - 1) / GRT_GEMM_PANEL * state->layer.directions;
    const int32_t each = (int32_t)(threads < most ? threads : most) / state->layer.directions;
    return each * state->layer.directions;
}

/* Room to pack recurrent weights that only a run knows. */
static bool add_packed(const rnn_state *state, rnn_shape *s, cpu_layout *part)
{
    size_t recurrent = 0, hidden_gate = 0;
    if (!state->bytes && !state->recurrent[0] &&
        (!grt_gemm_packed_b_floats(s->hidden, s->recur.n, &recurrent) ||
         !grt_gemm_packed_b_floats(s->hidden, state->layer.kind == GRT_RNN_GRU ? s->hidden : 0,
                                   &hidden_gate) ||
         recurrent > INT64_MAX || hidden_gate > INT64_MAX))
        return false;
    s->recurrent = cpu_layout_add(part, (int64_t)recurrent, sizeof(float));
    s->hidden_gate = cpu_layout_add(part, (int64_t)hidden_gate, sizeof(float));
    return true;
}

static grt_status rnn_reshape(grt_reshape *r)
{
    const rnn_state *state = r->state;
    if (state->bytes)
        GRT_TRY(check_bytes(r));
    const grt_tensor *x = r->in[X];
    rnn_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->steps = x->dims[state->layer.batch_first ? 1 : 0];
    s->batch = x->dims[state->layer.batch_first ? 0 : 1];
    s->input = x->dims[2];
    s->hidden = r->in[R]->dims[state->bytes ? 1 : 2];
    const int64_t h = s->hidden, stacked = state->layer.gates * h, rows = s->steps * s->batch;
    s->project = rnn_product(rows, stacked, s->input, state->input[0] != NULL);
    s->recur = rnn_product(s->batch, state->layer.kind == GRT_RNN_GRU ? 2 * h : stacked, h, true);
    s->recur.ldc = stacked;
    s->recur.beta = 1.0f; /* on top of the step's projected input */
    s->recur_hidden = rnn_product(s->batch, h, h, true);
    s->recur_hidden.ldc = state->layer.linear_before_reset ? h : stacked;
    s->recur_hidden.beta = state->layer.linear_before_reset ? 0.0f : 1.0f;
    s->team = team_of(state, s, r->threads);
    cpu_layout part = {0};
    size_t scratch = 0, projection = 0;
    if (state->bytes)
        part.overflow = !cpu_rnn_bytes_scratch(s->input > h ? s->input : h, stacked, r->threads, &scratch) ||
                        (state->many_inputs &&
                         !cpu_rnn_bytes_run_scratch(rows, s->input, stacked, r->threads, &projection));
    else
        part.overflow = !rnn_scratch_of(&s->project, r->threads, &scratch);
    scratch = scratch > projection ? scratch : projection;
    part.overflow |= scratch > INT64_MAX || !add_packed(state, s, &part);
    s->projected = cpu_layout_add(&part, rows * stacked, sizeof(float));
    s->gates = cpu_layout_add(&part, s->batch * stacked, sizeof(float));
    s->linear = cpu_layout_add(&part, s->batch * h, sizeof(float));
    s->rh = cpu_layout_add(&part, s->batch * h, sizeof(float));
    s->h = cpu_layout_add(&part, s->batch * h, sizeof(float));
    s->c = cpu_layout_add(&part, s->batch * h, sizeof(float));
    s->bias = cpu_layout_add(&part, stacked, sizeof(float));
    s->scratch = cpu_layout_add(&part, part.overflow ? 0 : (int64_t)scratch, 1);
    s->part = part.bytes;
    if (part.overflow) {
        free(s);
        return grt_fail_memory(SIZE_MAX);
    }
    r->workspace_bytes = s->part * (size_t)state->layer.directions;
    r->shape = s;
    return GRT_OK;
}

/* ---- run ---- */

typedef struct direction {
    const grt_run *run;
    const rnn_state *state;
    const rnn_shape *s;
    cpu_rnn_cell cell;
    int32_t index;
    bool reverse;
    float *projected, *gates, *linear, *rh, *h, *c, *bias;
    const float *recurrent, *hidden_gate; /* packed */
    void *scratch;
} direction;

typedef struct span {
    int64_t first, end;
} span;

/* What one thread does of each step of a direction. */
typedef struct member {
    span gates, hidden; /* columns of the recurrent product, hidden values; whole panels but for the last */
    int32_t index;      /* among those of its direction */
    bool waits;         /* for other members */
} member;

static const float *rnn_floats(const grt_run *r, int32_t i)
{
    return i < r->n_in && r->in[i] ? r->in[i]->data : NULL;
}

static float *rnn_output(const grt_run *r, int32_t i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

/* Where row b of this direction is in a [directions, batch, hidden] tensor, or the batch-first form of it. */
static int64_t state_at(const direction *d, int64_t b)
{
    const int64_t row =
        d->state->layer.batch_first ? b * d->state->layer.directions + d->index : d->index * d->s->batch + b;
    return row * d->s->hidden;
}

static int64_t y_at(const direction *d, int64_t t, int64_t b)
{
    const rnn_shape *s = d->s;
    const int32_t n = d->state->layer.directions;
    const int64_t row =
        d->state->layer.batch_first ? (b * s->steps + t) * n + d->index : (t * n + d->index) * s->batch + b;
    return row * s->hidden;
}

static int64_t length_of(const direction *d, int64_t b)
{
    if (d->run->n_in <= LENGTHS || !d->run->in[LENGTHS])
        return d->s->steps;
    const int64_t n = ((const int32_t *)d->run->in[LENGTHS]->data)[b];
    return n < 0 ? 0 : n > d->s->steps ? d->s->steps : n;
}

/* Bias added to the projected inputs: W's plus R's, except R's of GRU's hidden gate, which is inside the
 * reset.
 */
static void gather_bias(const direction *d)
{
    const int64_t h = d->s->hidden, stacked = d->state->layer.gates * h;
    const float *all = rnn_floats(d->run, B);
    const bool apart = d->state->layer.kind == GRT_RNN_GRU && d->state->layer.linear_before_reset;
    if (!all) {
        memset(d->bias, 0, (size_t)stacked * sizeof *d->bias);
        return;
    }
    const float *w = all + d->index * 2 * stacked, *r = w + stacked;
    for (int64_t i = 0; i < stacked; i++)
        d->bias[i] = w[i] + (apart && i >= 2 * h ? 0.0f : r[i]);
}

static void start_state(const direction *d, int32_t input, float *to)
{
    const float *from = rnn_floats(d->run, input);
    for (int64_t b = 0; b < d->s->batch; b++)
        if (from)
            memcpy(to + b * d->s->hidden, from + state_at(d, b), (size_t)d->s->hidden * sizeof *to);
        else
            memset(to + b * d->s->hidden, 0, (size_t)d->s->hidden * sizeof *to);
}

/* Products with the weights at input `i`, whose scales are at input `scale`. */
static cpu_rnn_bytes rnn_bytes_of(const direction *d, int32_t i, int32_t scale)
{
    const grt_run *r = d->run;
    cpu_rnn_bytes b =
        cpu_rnn_bytes_of(r->in[i], r->in[scale], rnn_given(r->in, r->n_in, scale + 1), d->index);
    b.packed = (i == W ? d->state->input_bytes : d->state->recurrent_bytes)[d->index];
    b.many = i == W && d->state->many_inputs;
    return b;
}

/* Steps behind the end of the longest row are not there: what they hold has no part in the range that inputs
 * are rounded in. */
static void project_bytes(const direction *d)
{
    const rnn_shape *s = d->s;
    const int64_t stacked = d->state->layer.gates * s->hidden;
    int64_t longest = 0;
    for (int64_t b = 0; b < s->batch; b++)
        longest = length_of(d, b) > longest ? length_of(d, b) : longest;
    const int64_t rows = longest * s->batch, rest = (s->steps - longest) * s->batch;
    const cpu_rnn_bytes b = rnn_bytes_of(d, W, W_SCALE);
    if (rows) /* of all steps, as scratch is for so many */
        cpu_rnn_bytes_run(&b, rows + rest, rows, d->run->in[X]->data, d->bias, d->projected, d->scratch,
                          d->run->threads);
    memset(d->projected + rows * stacked, 0, (size_t)(rest * stacked) * sizeof *d->projected);
}

static void project(const direction *d)
{
    const rnn_shape *s = d->s;
    if (d->state->bytes) {
        project_bytes(d);
        return;
    }
    grt_gemm g = s->project;
    g.bias = d->bias;
    const float *w = d->state->input[d->index];
    grt_gemm_run(&g, d->run->in[X]->data, w ? w : rnn_floats(d->run, W) + d->index * g.n * g.k, d->projected,
                 d->scratch, d->run->threads);
}

/* C's columns of `own`. Every other step goes through the weights backwards: what a cache holds of their end
 * is then used before it is replaced. */
static void multiply_own(const grt_gemm *all, const float *packed, const float *a, float *c, span own,
                         bool backwards)
{
    const int64_t panels = CHUNK_FLOATS / GRT_GEMM_PANEL / (all->k > 0 ? all->k : 1) & ~INT64_C(3);
    const int64_t chunk = (panels < 4 ? 4 : panels) * GRT_GEMM_PANEL;
    const int64_t chunks = (own.end - own.first + chunk - 1) / chunk;
    grt_gemm g = *all;
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t first = own.first + (backwards ? chunks - 1 - i : i) * chunk;
        g.n = own.end - first < chunk ? own.end - first : chunk;
        g.bias = all->bias ? all->bias + first : NULL;
        grt_gemm_run(&g, a, packed + first * g.k, c + first, NULL, 1);
    }
}

static void rnn_recur(const direction *d, const member *m, bool backwards)
{
    if (!d->state->bytes) {
        multiply_own(&d->s->recur, d->recurrent, d->h, d->gates, m->gates, backwards);
        return;
    }
    cpu_rnn_bytes b = rnn_bytes_of(d, R, R_SCALE);
    b.backwards = backwards;
    cpu_rnn_bytes_run_columns(&b, d->s->batch, d->h, (cpu_rnn_columns){m->gates.first, m->gates.end},
                              d->gates, d->scratch, m->index);
}

/* Members of a team wait for what the others have written. Without others there is nothing to call: outside
 * of a team of this file's, the barrier would be one of the caller's. */
static void wait_for_others(const member *m)
{
    if (!m->waits)
        return;
#pragma omp barrier
}

/* The hidden gate's recurrent product, of the state as it is. */
static void multiply_linear(const direction *d, const member *m, bool backwards)
{
    grt_gemm g = d->s->recur_hidden;
    const float *bias = rnn_floats(d->run, B);
    if (bias)
        g.bias = bias + d->index * 6 * g.n + 5 * g.n;
    multiply_own(&g, d->hidden_gate, d->h, d->linear, m->hidden, backwards);
}

/* The reset gate, and the hidden gate's recurrent product of the gated state unless it was made before. */
static void reset_gru(const direction *d, const member *m, bool backwards)
{
    const rnn_shape *s = d->s;
    const int64_t h = s->hidden, n = m->hidden.end - m->hidden.first;
    for (int64_t b = 0; b < s->batch; b++)
        cpu_gru_reset(&d->cell, m->hidden.first, n, d->gates + b * 3 * h, d->h + b * h, d->rh + b * h);
    if (d->state->layer.linear_before_reset)
        return;
    wait_for_others(m);
    multiply_own(&s->recur_hidden, d->hidden_gate, d->rh, d->gates + 2 * h, m->hidden, backwards);
}

static void run_cell(const direction *d, const member *m, int64_t b)
{
    const int64_t h = d->s->hidden, first = m->hidden.first, n = m->hidden.end - first;
    const float *p = rnn_floats(d->run, PEEPHOLES);
    float *gates = d->gates + b * d->state->layer.gates * h;
    if (d->state->layer.kind == GRT_RNN_LSTM)
        cpu_lstm_cell(&d->cell, first, n, gates, p ? p + d->index * 3 * h : NULL, d->c + b * h, d->h + b * h);
    else if (d->state->layer.kind == GRT_RNN_GRU)
        cpu_gru_cell(&d->cell, first, n, gates,
                     d->state->layer.linear_before_reset ? d->linear + b * h : NULL, d->h + b * h);
    else
        cpu_rnn_plain_cell(&d->cell, first, n, gates, d->h + b * h);
}

static void copy_span(float *to, const float *from, span own)
{
    memcpy(to + own.first, from + own.first, (size_t)(own.end - own.first) * sizeof *to);
}

/* The step's projected inputs, to which the recurrent products are added. */
static void start_gates(const direction *d, const member *m, int64_t i)
{
    const rnn_shape *s = d->s;
    const int64_t stacked = d->state->layer.gates * s->hidden;
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t length = length_of(d, b), t = d->reverse && i < length ? length - 1 - i : i;
        const int64_t row = d->state->layer.batch_first ? b * s->steps + t : t * s->batch + b;
        const float *from = d->projected + row * stacked;
        copy_span(d->gates + b * stacked, from, m->gates);
        if (d->state->layer.kind == GRT_RNN_GRU)
            copy_span(d->gates + b * stacked + 2 * s->hidden, from + 2 * s->hidden, m->hidden);
    }
}

/* Step i of every row; rows that have ended keep their state, and zeros mark their part of Y. */
static void run_step(const direction *d, const member *m, int64_t i)
{
    const rnn_shape *s = d->s;
    const int64_t h = s->hidden;
    const bool backwards = i % 2 != 0;
    float *y = rnn_output(d->run, 0);
    start_gates(d, m, i);
    rnn_recur(d, m, backwards);
    if (d->state->layer.kind == GRT_RNN_GRU && d->state->layer.linear_before_reset)
        multiply_linear(d, m, backwards);
    wait_for_others(m);
    if (d->state->layer.kind == GRT_RNN_GRU)
        reset_gru(d, m, backwards);
    for (int64_t b = 0; b < s->batch; b++) {
        const int64_t length = length_of(d, b), t = d->reverse && i < length ? length - 1 - i : i;
        if (i < length)
            run_cell(d, m, b);
        if (!y)
            continue;
        if (i < length)
            copy_span(y + y_at(d, t, b), d->h + b * h, m->hidden);
        else
            memset(y + y_at(d, t, b) + m->hidden.first, 0,
                   (size_t)(m->hidden.end - m->hidden.first) * sizeof *y);
    }
    wait_for_others(m);
}

/* Of n columns, in whole panels but for the last. */
static span rnn_share_of(int64_t n, int64_t panel, int32_t index, int32_t members)
{
    const int64_t panels = (n + panel - 1) / panel;
    const int64_t first = panels * index / members * panel, end = panels * (index + 1) / members * panel;
    return (span){first < n ? first : n, end < n ? end : n};
}

/* Thread `index` of `threads`. All of them wait equally often, those that are left over too. */
static void run_steps(const direction *directions, int32_t n, int32_t index, int32_t threads)
{
    const int32_t groups = threads < n ? 1 : n, members = threads / groups;
    const bool used = index < groups * members;
    for (int32_t i = used ? index / members : 0; i < n; i += groups) {
        const direction *d = &directions[i];
        member m = {.waits = members > 1};
        if (used)
            m = (member){rnn_share_of(d->s->recur.n, d->state->bytes ? CPU_RNN_BYTES_BLOCK : GRT_GEMM_PANEL,
                                      index % members, members),
                         rnn_share_of(d->s->hidden, GRT_GEMM_PANEL, index % members, members),
                         index % members, members > 1};
        for (int64_t step = 0; step < d->s->steps && (used || m.waits); step++)
            run_step(d, &m, step);
    }
}

/* Weights that are not constant are packed for all steps. */
static void pack_recurrent(direction *d, char *part)
{
    const rnn_shape *s = d->s;
    const int64_t stacked = d->state->layer.gates * s->hidden;
    d->recurrent = d->state->recurrent[d->index];
    d->hidden_gate = d->state->hidden_gate[d->index];
    if (d->recurrent || d->state->bytes)
        return;
    const float *rows = rnn_floats(d->run, R) + d->index * stacked * s->hidden;
    float *recurrent = cpu_workspace_at(part, s->recurrent),
          *hidden_gate = cpu_workspace_at(part, s->hidden_gate);
    grt_gemm_pack_b(s->hidden, s->recur.n, rows, s->hidden, true, recurrent);
    if (d->state->layer.kind == GRT_RNN_GRU)
        grt_gemm_pack_b(s->hidden, s->hidden, rows + s->recur.n * s->hidden, s->hidden, true, hidden_gate);
    d->recurrent = recurrent;
    d->hidden_gate = hidden_gate;
}

static direction start_direction(const grt_run *r, int32_t index)
{
    const rnn_state *state = r->state;
    const rnn_shape *s = r->shape;
    char *part = (char *)r->workspace + (size_t)index * s->part;
    direction d = {.run = r,
                   .state = state,
                   .s = s,
                   .cell = cpu_rnn_cell_of(&state->layer, index),
                   .index = index,
                   .reverse = state->layer.reverse || index == 1,
                   .projected = cpu_workspace_at(part, s->projected),
                   .gates = cpu_workspace_at(part, s->gates),
                   .linear = cpu_workspace_at(part, s->linear),
                   .rh = cpu_workspace_at(part, s->rh),
                   .h = cpu_workspace_at(part, s->h),
                   .c = cpu_workspace_at(part, s->c),
                   .bias = cpu_workspace_at(part, s->bias),
                   .scratch = cpu_workspace_at(part, s->scratch)};
    d.cell.hidden = s->hidden;
    pack_recurrent(&d, part);
    gather_bias(&d);
    start_state(&d, INITIAL_H, d.h);
    if (state->layer.kind == GRT_RNN_LSTM)
        start_state(&d, INITIAL_C, d.c);
    project(&d);
    return d;
}

static void end_direction(const direction *d)
{
    const rnn_shape *s = d->s;
    float *last_h = rnn_output(d->run, 1), *last_c = rnn_output(d->run, 2);
    for (int64_t b = 0; b < s->batch; b++) {
        if (last_h)
            memcpy(last_h + state_at(d, b), d->h + b * s->hidden, (size_t)s->hidden * sizeof *last_h);
        if (last_c)
            memcpy(last_c + state_at(d, b), d->c + b * s->hidden, (size_t)s->hidden * sizeof *last_c);
    }
}

static grt_status rnn_run(const grt_run *r)
{
    const rnn_state *state = r->state;
    const rnn_shape *s = r->shape;
    direction directions[2];
    if (s->batch == 0 || s->hidden == 0)
        return GRT_OK;
    for (int32_t i = 0; i < state->layer.directions; i++)
        directions[i] = start_direction(r, i);
    if (s->team == 1) {
        run_steps(directions, state->layer.directions, 0, 1);
    } else {
#pragma omp parallel num_threads(s->team)
        run_steps(directions, state->layer.directions, cpu_thread(), cpu_team());
    }
    for (int32_t i = 0; i < state->layer.directions; i++)
        end_direction(&directions[i]);
    return GRT_OK;
}

#define F GRT_BIT(FLOAT)
#define ROW(name)                                                                                    \
    {                                                                                                \
        .domain = "", .op = name, .types = {F, F, F, F | GRT_BIT(INT32)}, .supports = rnn_supports,  \
        .create = rnn_create, .destroy = rnn_destroy, .reshape = rnn_reshape, .release_shape = free, \
        .run = rnn_run                                                                               \
    }

static const grt_kernel_row rows[] = {
    ROW("LSTM"),
    ROW("GRU"),
    ROW("RNN"),
    {.domain = "com.microsoft",
     .op = "DynamicQuantizeLSTM",
     .supports = bytes_supports,
     .create = rnn_create,
     .destroy = rnn_destroy,
     .reshape = rnn_reshape,
     .release_shape = free,
     .run = rnn_run},
};
CPU_KERNELS(rnn, rows);

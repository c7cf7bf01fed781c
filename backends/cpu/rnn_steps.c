/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a recurrent layer: one product for the inputs of all steps, then per step the recurrent product
 * and the cell. The two directions of a bidirectional layer are independent and run side by side. One team of
 * threads runs all steps; each member has the same columns of the recurrent weights at each step, so that
 * they stay in its core's cache. */
#include "backends/cpu/rnn_layer.h"

#include "backends/cpu/rnn_bytes.h"
#include "backends/cpu/rnn_cell.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/workspace.h"

#include <string.h>

enum { CHUNK_FLOATS = 64 * 1024 }; /* of weights that are multiplied in one go */

typedef struct direction {
    const grt_run *run;
    const cpu_rnn_layer *state;
    const cpu_rnn_shape *s;
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

/* Where row b of this direction is in states, and at time t in Y. */
static int64_t state_at(const direction *d, int64_t b)
{
    return grt_rnn_state_at(&d->s->at, d->index, b) * d->s->hidden;
}

static int64_t y_at(const direction *d, int64_t t, int64_t b)
{
    return grt_rnn_y_at(&d->s->at, d->index, t, b) * d->s->hidden;
}

static int64_t length_of(const direction *d, int64_t b)
{
    if (d->run->n_in <= LENGTHS || !d->run->in[LENGTHS])
        return d->s->at.steps;
    const int64_t n = ((const int32_t *)d->run->in[LENGTHS]->data)[b];
    return n < 0 ? 0 : n > d->s->at.steps ? d->s->at.steps : n;
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
    for (int64_t b = 0; b < d->s->at.batch; b++)
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
        cpu_rnn_bytes_of(r->in[i], r->in[scale], cpu_rnn_given(r->in, r->n_in, scale + 1), d->index);
    b.packed = (i == W ? d->state->input_bytes : d->state->recurrent_bytes)[d->index];
    b.rows = i == W ? d->state->input_rows : 0;
    return b;
}

/* Steps behind the end of the longest row are not there: what they hold has no part in the range that inputs
 * are rounded in. */
static void project_bytes(const direction *d)
{
    const cpu_rnn_shape *s = d->s;
    const int64_t stacked = d->state->layer.gates * s->hidden;
    int64_t longest = 0;
    for (int64_t b = 0; b < s->at.batch; b++)
        longest = length_of(d, b) > longest ? length_of(d, b) : longest;
    const int64_t rows = longest * s->at.batch, rest = (s->at.steps - longest) * s->at.batch;
    const cpu_rnn_bytes b = rnn_bytes_of(d, W, W_SCALE);
    if (rows) /* of all steps, as scratch is for so many */
        cpu_rnn_bytes_run(&b, rows + rest, rows, d->run->in[X]->data, d->bias, d->projected, d->scratch,
                          d->run->threads);
    memset(d->projected + rows * stacked, 0, (size_t)(rest * stacked) * sizeof *d->projected);
}

static void project(const direction *d)
{
    const cpu_rnn_shape *s = d->s;
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
    cpu_rnn_bytes_run_columns(&b, d->s->at.batch, d->h, (cpu_rnn_columns){m->gates.first, m->gates.end},
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
    const cpu_rnn_shape *s = d->s;
    const int64_t h = s->hidden, n = m->hidden.end - m->hidden.first;
    for (int64_t b = 0; b < s->at.batch; b++)
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
    const cpu_rnn_shape *s = d->s;
    const int64_t stacked = d->state->layer.gates * s->hidden;
    for (int64_t b = 0; b < s->at.batch; b++) {
        const int64_t length = length_of(d, b), t = d->reverse && i < length ? length - 1 - i : i;
        const float *from = d->projected + grt_rnn_x_at(&s->at, t, b) * stacked;
        copy_span(d->gates + b * stacked, from, m->gates);
        if (d->state->layer.kind == GRT_RNN_GRU)
            copy_span(d->gates + b * stacked + 2 * s->hidden, from + 2 * s->hidden, m->hidden);
    }
}

/* Step i of every row; rows that have ended keep their state, and zeros mark their part of Y. */
static void run_step(const direction *d, const member *m, int64_t i)
{
    const cpu_rnn_shape *s = d->s;
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
    for (int64_t b = 0; b < s->at.batch; b++) {
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
        for (int64_t step = 0; step < d->s->at.steps && (used || m.waits); step++)
            run_step(d, &m, step);
    }
}

/* Weights that are not constant are packed for all steps. */
static void pack_recurrent(direction *d, char *part)
{
    const cpu_rnn_shape *s = d->s;
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
    const cpu_rnn_layer *state = r->state;
    const cpu_rnn_shape *s = r->shape;
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
    const cpu_rnn_shape *s = d->s;
    float *last_h = rnn_output(d->run, 1), *last_c = rnn_output(d->run, 2);
    for (int64_t b = 0; b < s->at.batch; b++) {
        if (last_h)
            memcpy(last_h + state_at(d, b), d->h + b * s->hidden, (size_t)s->hidden * sizeof *last_h);
        if (last_c)
            memcpy(last_c + state_at(d, b), d->c + b * s->hidden, (size_t)s->hidden * sizeof *last_c);
    }
}

grt_status cpu_rnn_run(const grt_run *r)
{
    const cpu_rnn_layer *state = r->state;
    const cpu_rnn_shape *s = r->shape;
    direction directions[2];
    if (s->at.batch == 0 || s->hidden == 0)
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Gates, cells and hidden states of LSTM, GRU and RNN, a row at a time. */
#include "backends/cpu/rnn_cell.h"

#include "backends/cpu/act_apply.h"
#include "backends/cpu/dispatch.h"

#include <stddef.h>

/* Those that are activations of other ops, too. */
static const grt_act_kind plain[] = {
    [GRT_RNN_RELU] = GRT_ACT_RELU,
    [GRT_RNN_TANH] = GRT_ACT_TANH,
    [GRT_RNN_SIGMOID] = GRT_ACT_SIGMOID,
    [GRT_RNN_LEAKY_RELU] = GRT_ACT_LEAKY_RELU,
    [GRT_RNN_HARD_SIGMOID] = GRT_ACT_HARD_SIGMOID,
    [GRT_RNN_ELU] = GRT_ACT_ELU,
    [GRT_RNN_SOFTPLUS] = GRT_ACT_SOFTPLUS,
};

cpu_rnn_cell cpu_rnn_cell_of(const grt_rnn_layer *layer, int32_t direction)
{
    const grt_rnn_act *act = layer->act[direction];
    return (cpu_rnn_cell){
        .clip = layer->clip, .coupled = layer->coupled, .f = act[0], .g = act[1], .h = act[2]};
}

CPU_BODY activate_body(grt_rnn_act act, float clip, float *v, int64_t n)
{
    const float a = act.a, b = act.b;
    if (clip > 0.0f) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            v[i] = grt_act_at_most(grt_act_at_least(v[i], -clip), clip);
    }
    switch (act.kind) {
    case GRT_RNN_AFFINE:
        GRT_ACT_LOOP(a * x + b);
        break;
    case GRT_RNN_THRESHOLDED_RELU:
        GRT_ACT_LOOP(x >= a ? x : 0.0f);
        break;
    case GRT_RNN_SCALED_TANH:
        GRT_ACT_LOOP(a * grt_act_tanh(b * x));
        break;
    case GRT_RNN_SOFTSIGN:
        GRT_ACT_LOOP(x / (1.0f + (x < 0.0f ? -x : x)));
        break;
    default:
        cpu_act_apply((grt_act){plain[act.kind], a, b}, v, n);
    }
}

CPU_BODY add_product_body(float *v, const float *x, const float *y, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        v[i] += x[i] * y[i];
}

CPU_BODY lstm_cell_body(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates,
                        const float *peepholes, float *c, float *h)
{
    const int64_t hidden = cell->hidden;
    float *in = gates + first, *out = in + hidden, *forget = out + hidden, *fresh = forget + hidden;
    c += first;
    h += first;
    if (peepholes) {
        peepholes += first;
        add_product_body(in, peepholes, c, n);
        add_product_body(forget, peepholes + 2 * hidden, c, n);
    }
    activate_body(cell->f, cell->clip, in, n);
    activate_body(cell->g, cell->clip, fresh, n);
    if (cell->coupled) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            forget[i] = 1.0f - in[i];
    } else {
        activate_body(cell->f, cell->clip, forget, n);
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        c[i] = forget[i] * c[i] + in[i] * fresh[i];
    if (peepholes)
        add_product_body(out, peepholes + hidden, c, n);
    activate_body(cell->f, cell->clip, out, n);
    memcpy(fresh, c, (size_t)n * sizeof *c);
    activate_body(cell->h, cell->clip, fresh, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        h[i] = out[i] * fresh[i];
}
CPU_DISPATCH(lstm_cell,
             (const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *peepholes,
              float *c, float *h),
             (cell, first, n, gates, peepholes, c, h))

CPU_BODY gru_reset_body(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *h,
                        float *rh)
{
    float *update = gates + first, *reset = update + cell->hidden;
    activate_body(cell->f, cell->clip, update, n);
    activate_body(cell->f, cell->clip, reset, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        rh[first + i] = reset[i] * h[first + i];
}
CPU_DISPATCH(gru_reset,
             (const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *h, float *rh),
             (cell, first, n, gates, h, rh))

CPU_BODY gru_cell_body(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *linear,
                       float *h)
{
    const float *update = gates + first, *reset = update + cell->hidden;
    float *fresh = gates + 2 * cell->hidden + first;
    h += first;
    if (linear)
        add_product_body(fresh, reset, linear + first, n);
    activate_body(cell->g, cell->clip, fresh, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        h[i] = (1.0f - update[i]) * fresh[i] + update[i] * h[i];
}
CPU_DISPATCH(gru_cell,
             (const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *linear,
              float *h),
             (cell, first, n, gates, linear, h))

CPU_BODY plain_cell_body(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, float *h)
{
    activate_body(cell->f, cell->clip, gates + first, n);
    memcpy(h + first, gates + first, (size_t)n * sizeof *h);
}
CPU_DISPATCH(plain_cell, (const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, float *h),
             (cell, first, n, gates, h))

void cpu_lstm_cell(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *peepholes,
                   float *c, float *h)
{
    lstm_cell(cell, first, n, gates, peepholes, c, h);
}

void cpu_gru_reset(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *h,
                   float *rh)
{
    gru_reset(cell, first, n, gates, h, rh);
}

void cpu_gru_cell(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *linear,
                  float *h)
{
    gru_cell(cell, first, n, gates, linear, h);
}

void cpu_rnn_plain_cell(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, float *h)
{
    plain_cell(cell, first, n, gates, h);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Gates, cells and hidden states of LSTM, GRU and RNN, a row at a time. */
#include "backends/cpu/rnn_cell.h"

#include "backends/cpu/dispatch.h"

#include <stddef.h>

static const struct {
    const char *name;
    cpu_rnn_act_kind kind;
    grt_act act; /* with the defaults of the ONNX ops */
} acts[] = {
    {"Relu", CPU_RNN_PLAIN, {GRT_ACT_RELU, 0, 0}},
    {"Tanh", CPU_RNN_PLAIN, {GRT_ACT_TANH, 0, 0}},
    {"Sigmoid", CPU_RNN_PLAIN, {GRT_ACT_SIGMOID, 0, 0}},
    {"LeakyRelu", CPU_RNN_PLAIN, {GRT_ACT_LEAKY_RELU, 0.01f, 0}},
    {"HardSigmoid", CPU_RNN_PLAIN, {GRT_ACT_HARD_SIGMOID, 0.2f, 0.5f}},
    {"Elu", CPU_RNN_PLAIN, {GRT_ACT_ELU, 1.0f, 0}},
    {"Softplus", CPU_RNN_PLAIN, {GRT_ACT_SOFTPLUS, 0, 0}},
    {"Affine", CPU_RNN_AFFINE, {GRT_ACT_NONE, 1.0f, 0}},
    {"ThresholdedRelu", CPU_RNN_THRESHOLDED_RELU, {GRT_ACT_NONE, 1.0f, 0}},
    {"ScaledTanh", CPU_RNN_SCALED_TANH, {GRT_ACT_NONE, 1.0f, 1.0f}},
    {"Softsign", CPU_RNN_SOFTSIGN, {GRT_ACT_NONE, 0, 0}},
};

static bool same_name(const char *a, const char *b)
{
    for (; *a && (*a | 0x20) == (*b | 0x20); a++, b++)
        ;
    return *a == *b;
}

bool cpu_rnn_act_find(const char *name, bool has_alpha, float alpha, bool has_beta, float beta,
                      cpu_rnn_act *out)
{
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (same_name(name, acts[i].name)) {
            *out = (cpu_rnn_act){acts[i].kind, acts[i].act};
            if (has_alpha)
                out->act.a = alpha;
            if (has_beta)
                out->act.b = beta;
            return true;
        }
    return false;
}

/* alpha and beta lists are consumed by the activations that have such a parameter. */
bool cpu_rnn_cells_read(const grt_op_desc *desc, const char *const *defaults, int32_t n, int32_t directions,
                        cpu_rnn_cell *cells, grt_text *why)
{
    size_t n_names, n_alpha, n_beta, next_alpha = 0, next_beta = 0;
    const grt_string *names = grt_attr_strings(desc, "activations", &n_names);
    const float *alpha = grt_attr_floats(desc, "activation_alpha", &n_alpha);
    const float *beta = grt_attr_floats(desc, "activation_beta", &n_beta);
    for (int32_t i = 0; i < n * directions; i++) {
        const char *name = names && (size_t)i < n_names ? names[i].data : defaults[i % n];
        cpu_rnn_act act;
        if (!cpu_rnn_act_find(name, false, 0, false, 0, &act)) {
            if (why)
                grt_text_add(why, "the activation '%s' is not one that ONNX lists", name);
            return false;
        }
        const bool takes_alpha = act.act.a != 0.0f,
                   takes_beta = act.act.b != 0.0f || act.kind == CPU_RNN_AFFINE;
        const bool has_alpha = takes_alpha && next_alpha < n_alpha,
                   has_beta = takes_beta && next_beta < n_beta;
        cpu_rnn_act_find(name, has_alpha, has_alpha ? alpha[next_alpha++] : 0, has_beta,
                         has_beta ? beta[next_beta++] : 0, &act);
        cpu_rnn_cell *cell = &cells[i / n];
        *(i % n == 0 ? &cell->f : i % n == 1 ? &cell->g : &cell->h) = act;
    }
    return true;
}

CPU_BODY activate_body(cpu_rnn_act act, float clip, float *v, int64_t n)
{
    const float a = act.act.a, b = act.act.b;
    if (clip > 0.0f) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            v[i] = grt_act_at_most(grt_act_at_least(v[i], -clip), clip);
    }
    switch (act.kind) {
    case CPU_RNN_PLAIN:
        grt_act_apply(act.act, v, n);
        break;
    case CPU_RNN_AFFINE:
        GRT_ACT_LOOP(a * x + b);
        break;
    case CPU_RNN_THRESHOLDED_RELU:
        GRT_ACT_LOOP(x >= a ? x : 0.0f);
        break;
    case CPU_RNN_SCALED_TANH:
        GRT_ACT_LOOP(a * grt_act_tanh(b * x));
        break;
    case CPU_RNN_SOFTSIGN:
        GRT_ACT_LOOP(x / (1.0f + (x < 0.0f ? -x : x)));
        break;
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

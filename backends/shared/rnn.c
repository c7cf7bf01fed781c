/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/rnn.h"

#include "src/base/checked.h"

#include <string.h>

/* With the defaults of the ONNX ops. alpha and beta lists are consumed by those that have such a parameter.
 */
static const struct {
    const char *name;
    grt_rnn_act act;
    bool takes_a, takes_b;
} known[] = {
    {"Relu", {GRT_RNN_RELU, 0, 0}, false, false},
    {"Tanh", {GRT_RNN_TANH, 0, 0}, false, false},
    {"Sigmoid", {GRT_RNN_SIGMOID, 0, 0}, false, false},
    {"LeakyRelu", {GRT_RNN_LEAKY_RELU, 0.01f, 0}, true, false},
    {"HardSigmoid", {GRT_RNN_HARD_SIGMOID, 0.2f, 0.5f}, true, true},
    {"Elu", {GRT_RNN_ELU, 1, 0}, true, false},
    {"Softplus", {GRT_RNN_SOFTPLUS, 0, 0}, false, false},
    {"Affine", {GRT_RNN_AFFINE, 1, 0}, true, true},
    {"ThresholdedRelu", {GRT_RNN_THRESHOLDED_RELU, 1, 0}, true, false},
    {"ScaledTanh", {GRT_RNN_SCALED_TANH, 1, 1}, true, true},
    {"Softsign", {GRT_RNN_SOFTSIGN, 0, 0}, false, false},
};
enum { N_KNOWN = sizeof known / sizeof *known };

/* Names of activations in any case of letters, as ONNX has it. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && (*a | 0x20) == (*b | 0x20); a++, b++)
        ;
    return *a == *b;
}

static bool read_activations(const grt_op_desc *desc, grt_rnn_layer *layer, grt_text *why)
{
    static const char *const gated[] = {"Sigmoid", "Tanh", "Tanh"}, *const plain[] = {"Tanh"};
    const char *const *defaults = layer->kind == GRT_RNN_PLAIN ? plain : gated;
    const int32_t n = layer->kind == GRT_RNN_LSTM ? 3 : layer->kind == GRT_RNN_GRU ? 2 : 1;
    size_t n_names, n_alpha, n_beta, next_alpha = 0, next_beta = 0;
    const grt_string *names = grt_attr_strings(desc, "activations", &n_names);
    const float *alpha = grt_attr_floats(desc, "activation_alpha", &n_alpha);
    const float *beta = grt_attr_floats(desc, "activation_beta", &n_beta);
    for (int32_t i = 0; i < n * layer->directions; i++) {
        const char *name = names && (size_t)i < n_names ? names[i].data : defaults[i % n];
        grt_rnn_act *act = &layer->act[i / n][i % n];
        size_t k = 0;
        while (k < N_KNOWN && !same_name(name, known[k].name))
            k++;
        if (k == N_KNOWN) {
            grt_text_add(why, "the activation '%s' is not one that ONNX lists", name);
            return false;
        }
        *act = known[k].act;
        if (known[k].takes_a && next_alpha < n_alpha)
            act->a = alpha[next_alpha++];
        if (known[k].takes_b && next_beta < n_beta)
            act->b = beta[next_beta++];
    }
    return true;
}

bool grt_rnn_layer_read(const grt_op_desc *desc, grt_rnn_layer *out_layer, grt_text *why)
{
    const char *direction = grt_attr_string(desc, "direction", "forward");
    const grt_rnn_kind kind = !strcmp(desc->op, "GRU")   ? GRT_RNN_GRU
                              : !strcmp(desc->op, "RNN") ? GRT_RNN_PLAIN
                                                         : GRT_RNN_LSTM;
    *out_layer = (grt_rnn_layer){.kind = kind,
                                 .gates = kind == GRT_RNN_LSTM  ? 4
                                          : kind == GRT_RNN_GRU ? 3
                                                                : 1,
                                 .directions = !strcmp(direction, "bidirectional") ? 2 : 1,
                                 .reverse = !strcmp(direction, "reverse"),
                                 .layout = !strcmp(desc->domain, "graphrt")       ? GRT_RNN_STEPS_INSIDE
                                           : grt_attr_int(desc, "layout", 0) != 0 ? GRT_RNN_BATCH_FIRST
                                                                                  : GRT_RNN_STEPS_FIRST,
                                 .linear_before_reset = grt_attr_int(desc, "linear_before_reset", 0) != 0,
                                 .coupled = grt_attr_int(desc, "input_forget", 0) != 0,
                                 .clip = grt_attr_float(desc, "clip", 0.0f)};
    return read_activations(desc, out_layer, why);
}

grt_rnn_places grt_rnn_places_of(const grt_rnn_layer *layer, const int64_t *dims)
{
    const int64_t n = layer->directions;
    grt_rnn_places p = {.steps = dims[1], .y_row = n, .y_direction = 1, .state_row = 1};
    if (layer->layout == GRT_RNN_STEPS_FIRST) {
        p = (grt_rnn_places){.steps = dims[0], .y_row = 1, .y_direction = dims[1], .state_row = 1};
        p.batch = p.inner = dims[1];
    } else if (layer->layout == GRT_RNN_BATCH_FIRST) {
        p.batch = dims[0];
        p.inner = 1;
        p.state_row = n;
    } else {
        p.batch = grt_mul_saturated(dims[0], dims[2]);
        p.inner = dims[2];
    }
    p.x_step = p.inner;
    p.x_outer = grt_mul_saturated(p.x_step, p.steps);
    p.y_step = grt_mul_saturated(p.x_step, n);
    p.y_outer = grt_mul_saturated(p.y_step, p.steps);
    p.state_direction = layer->layout == GRT_RNN_BATCH_FIRST ? 1 : p.batch;
    return p;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a node of LSTM, GRU or RNN says, DynamicQuantizeLSTM included, and the activations that ONNX lists for
 * them. */
#ifndef GRT_BACKENDS_SHARED_RNN_H
#define GRT_BACKENDS_SHARED_RNN_H

#include "src/base/op_desc.h"
#include "src/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_rnn_act_kind {
    GRT_RNN_RELU,
    GRT_RNN_TANH,
    GRT_RNN_SIGMOID,
    GRT_RNN_LEAKY_RELU,
    GRT_RNN_HARD_SIGMOID,
    GRT_RNN_ELU,
    GRT_RNN_SOFTPLUS,
    GRT_RNN_AFFINE,
    GRT_RNN_THRESHOLDED_RELU,
    GRT_RNN_SCALED_TANH,
    GRT_RNN_SOFTSIGN
} grt_rnn_act_kind;

typedef struct grt_rnn_act {
    grt_rnn_act_kind kind;
    float a, b; /* alpha and beta */
} grt_rnn_act;

typedef enum grt_rnn_kind { GRT_RNN_LSTM, GRT_RNN_GRU, GRT_RNN_PLAIN } grt_rnn_kind;

typedef struct grt_rnn_layer {
    grt_rnn_kind kind;
    int32_t gates, directions;
    bool reverse; /* the only direction; the second of two is always reversed */
    bool batch_first, linear_before_reset, coupled;
    float clip;            /* 0: none */
    grt_rnn_act act[2][3]; /* f, g, h of each direction */
} grt_rnn_layer;

/* False: an activation is none that ONNX lists, and `why`, unless NULL, says which. */
bool grt_rnn_layer_read(const grt_op_desc *desc, grt_rnn_layer *out_layer, grt_text *why);

#ifdef __cplusplus
}
#endif
#endif

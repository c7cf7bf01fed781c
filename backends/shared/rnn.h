/* SPDX-License-Identifier: Apache-2.0 */
/* The activations that ONNX lists for LSTM, GRU and RNN. */
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

/* The activations f, g, h of each direction by the node's attributes; `defaults` names the n that a cell has.
 * False: there is no such activation, and `why`, unless NULL, says which. */
bool grt_rnn_acts_read(const grt_op_desc *desc, const char *const *defaults, int32_t n, int32_t directions,
                       grt_rnn_act (*acts)[3], grt_text *why);

#ifdef __cplusplus
}
#endif
#endif

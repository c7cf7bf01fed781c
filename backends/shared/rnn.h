/* SPDX-License-Identifier: Apache-2.0 */
/* What a node of LSTM, GRU or RNN says, DynamicQuantizeLSTM and graphrt's forms included, the activations
 * that ONNX lists for them, and where their rows lie. */
#ifndef GRT_BACKENDS_SHARED_RNN_H
#define GRT_BACKENDS_SHARED_RNN_H

#include "src/base/op_desc.h"
#include "src/base/text.h"

#ifdef __CUDACC__
#define GRT_RNN_BOTH __host__ __device__
#else
#define GRT_RNN_BOTH
#endif

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

/* The dims of X and Y in front of the last one, and of states. */
typedef enum grt_rnn_layout {
    GRT_RNN_STEPS_FIRST, /* X [steps, batch], Y [steps, directions, batch], states [directions, batch] */
    GRT_RNN_BATCH_FIRST, /* X [batch, steps], Y [batch, steps, directions], states [batch, directions] */
    /* graphrt's forms: X [outer, steps, inner], Y [outer, steps, inner, directions], states [directions,
     * batch]; row b of the batch is b / inner of the outer dim and b % inner of the inner one. */
    GRT_RNN_STEPS_INSIDE,
} grt_rnn_layout;

typedef struct grt_rnn_layer {
    grt_rnn_kind kind;
    int32_t gates, directions;
    bool reverse; /* the only direction; the second of two is always reversed */
    grt_rnn_layout layout;
    bool linear_before_reset, coupled;
    float clip;            /* 0: none */
    grt_rnn_act act[2][3]; /* f, g, h of each direction */
} grt_rnn_layer;

/* False: an activation is none that ONNX lists, and `why`, unless NULL, says which. */
bool grt_rnn_layer_read(const grt_op_desc *desc, grt_rnn_layer *out_layer, grt_text *why);

/* Where the row of batch row b lies in X, Y and states, at time t and in direction d; in rows. */
typedef struct grt_rnn_places {
    int64_t steps, batch;
    int64_t inner; /* rows of the batch that lie side by side at each time */
    int64_t x_outer, x_step;
    int64_t y_outer, y_step, y_row, y_direction;
    int64_t state_row, state_direction;
} grt_rnn_places;

/* dims: of X. Saturated where they are more than an int64_t. */
grt_rnn_places grt_rnn_places_of(const grt_rnn_layer *layer, const int64_t *dims);

/* Most layers have one outer row, and then nothing is divided. */
static inline GRT_RNN_BOTH int64_t grt_rnn_outer(const grt_rnn_places *p, int64_t b)
{
    return b < p->inner ? 0 : b / p->inner;
}

static inline GRT_RNN_BOTH int64_t grt_rnn_x_at(const grt_rnn_places *p, int64_t t, int64_t b)
{
    const int64_t outer = grt_rnn_outer(p, b);
    return outer * p->x_outer + t * p->x_step + b - outer * p->inner;
}

static inline GRT_RNN_BOTH int64_t grt_rnn_y_at(const grt_rnn_places *p, int64_t d, int64_t t, int64_t b)
{
    const int64_t outer = grt_rnn_outer(p, b);
    return outer * p->y_outer + t * p->y_step + d * p->y_direction + (b - outer * p->inner) * p->y_row;
}

static inline GRT_RNN_BOTH int64_t grt_rnn_state_at(const grt_rnn_places *p, int64_t d, int64_t b)
{
    return d * p->state_direction + b * p->state_row;
}

#ifdef __cplusplus
}
#endif
#endif

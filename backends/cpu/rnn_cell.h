/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise half of recurrent layers: what happens to a step's gates once the matrix products are
 * done. */
#ifndef GRT_BACKENDS_CPU_RNN_CELL_H
#define GRT_BACKENDS_CPU_RNN_CELL_H

#include "backends/cpu/act.h"
#include "backends/cpu/cpu.h"
#include "backends/shared/rnn.h"

#include <stdbool.h>

typedef struct cpu_rnn_cell {
    int64_t hidden;
    float clip; /* 0: none */
    bool coupled;
    grt_rnn_act f, g, h;
} cpu_rnn_cell;

/* The cell of one of a layer's directions; `hidden` is left to the shape. */
cpu_rnn_cell cpu_rnn_cell_of(const grt_rnn_layer *layer, int32_t direction);

/* One row of one step: `n` hidden values from `first` on, so that threads may share a row. The sums of
 * products and biases are in `gates`, of `hidden` values each, in ONNX's order. */
void cpu_lstm_cell(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *peepholes,
                   float *c, float *h);
/* GRU in two halves, as the hidden gate's product may need the reset gate: rh becomes r * h. */
void cpu_gru_reset(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *h,
                   float *rh);
/* linear: the hidden gate's recurrent product, for linear_before_reset; else NULL and it is in `gates`
 * already. */
void cpu_gru_cell(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, const float *linear,
                  float *h);
void cpu_rnn_plain_cell(const cpu_rnn_cell *cell, int64_t first, int64_t n, float *gates, float *h);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A recurrent layer, prepared: its weights (rnn_weights.c), its sizes at one combination of dims (ops/rnn.c),
 * and its steps (rnn_steps.c). */
#ifndef GRT_BACKENDS_CPU_RNN_LAYER_H
#define GRT_BACKENDS_CPU_RNN_LAYER_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/gemm.h"
#include "backends/shared/rnn.h"

/* Inputs; those behind the peepholes are DynamicQuantizeLSTM's. */
enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

typedef struct cpu_rnn_layer {
    grt_rnn_layer layer;
    bool bytes;
    /* Constant weights, packed per direction: input, recurrent, and GRU's hidden gate apart. NULL where not
     * constant. */
    float *input[2], *recurrent[2], *hidden_gate[2];
    uint8_t *input_bytes[2], *recurrent_bytes[2]; /* the same of weights that are bytes */
    int64_t input_rows;                           /* input_bytes are packed for, see rnn_bytes.h */
} cpu_rnn_layer;

typedef struct cpu_rnn_shape {
    grt_rnn_places at;
    int64_t input, hidden;
    grt_gemm project, recur, recur_hidden;           /* recur_hidden: GRU's hidden gate */
    size_t projected, gates, linear, rh, h, c, bias; /* offsets within a direction's part */
    size_t recurrent, hidden_gate;                   /* packed weights that are not constant */
    size_t scratch, part;
    int32_t team; /* threads that run the steps; of both directions */
} cpu_rnn_shape;

/* Packs what is constant. Without success the layer has what was packed until then. */
grt_status cpu_rnn_pack(const grt_kernel_node *node, cpu_rnn_layer *state);
/* Frees the layer and its weights; NULL does nothing. */
void cpu_rnn_release(cpu_rnn_layer *state);
/* All directions and steps. */
grt_status cpu_rnn_run(const grt_run *r);

static inline const grt_tensor *cpu_rnn_given(const grt_tensor *const *in, int32_t n_in, int32_t i)
{
    return i < n_in ? in[i] : NULL;
}

#endif

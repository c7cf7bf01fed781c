/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and shifts per channel, y[c] = scale[c] * x[c] + shift[c], as nodes with constants compute them. */
#ifndef GRT_GRAPH_PASSES_CHANNEL_AFFINE_H
#define GRT_GRAPH_PASSES_CHANNEL_AFFINE_H

#include "graph/ir/ir.h"

typedef struct channel_affine {
    int64_t n; /* channels */
    double *scale, *shift;
    bool scales, shifts; /* is any scale not 1, any shift not 0? */
} channel_affine;

/* A value, and the dims that its channels are. */
typedef struct channel_place {
    ir_value *value;
    int32_t channel, n_dims; /* the first of them, and how many */
    int64_t sizes[GRT_MAX_RANK];
} channel_place;

/* Scales of 1 and shifts of 0; false when out of memory. */
bool channel_affine_init(channel_affine *a, grt_arena *arena, int64_t n);
/* What a BatchNormalization of n channels computes, if its parameters are constants. */
bool channel_affine_read_norm(const ir_node *node, channel_affine *a, grt_arena *arena, int64_t n);
/* What Add, Sub, Mul or Div of the value and a constant computes. */
bool channel_affine_read_arithmetic(const ir_node *node, const channel_place *m, channel_affine *a,
                                    grt_arena *arena, int64_t n);
/* Element i of a tensor of floats, rounded to its dtype. */
bool channel_affine_store(const grt_tensor *t, int64_t i, double value);

#endif

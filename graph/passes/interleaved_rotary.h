/* SPDX-License-Identifier: Apache-2.0 */
/* A rotation of neighbours that is written out. */
#ifndef GRT_GRAPH_PASSES_INTERLEAVED_ROTARY_H
#define GRT_GRAPH_PASSES_INTERLEAVED_ROTARY_H

#include "graph/ir/ir.h"

/* With heads and positions, in the order that `rows` says. */
enum { INTERLEAVED_RANK = 4, INTERLEAVED_LAST = INTERLEAVED_RANK - 1 };

/* x has the result's dims, or heads and positions exchanged; or its last dim as [size / 2, 2]. */
typedef struct origin {
    ir_value *x;
    bool exchanged;
} origin;

typedef struct neighbours {
    origin of;
    ir_value *cos, *sin;
    bool pairs; /* tables have a column for each element, not for each two */
    bool rows;  /* the result is [batch, length, heads, size], not [batch, heads, length, size] */
    int64_t batch, heads, length, size; /* batch: 1, length: 0 where it is not known */
} neighbours;

/* What the Add or Reshape rotates, by which tables, as far as nodes say; no dims but those of x's parts are
 * looked at. False: it is no rotation. */
bool interleaved_match(neighbours *r, const ir_node *node);

#endif

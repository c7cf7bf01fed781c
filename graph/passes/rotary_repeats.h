/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRT_GRAPH_PASSES_ROTARY_REPEATS_H
#define GRT_GRAPH_PASSES_ROTARY_REPEATS_H

#include "graph/passes/pass.h"

/* A RotaryEmbedding of heads that are repeated is done before they are. True if it was and is gone. */
bool rotary_before_repeats(pass_context *context, ir_node *rotary);

#endif

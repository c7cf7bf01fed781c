/* SPDX-License-Identifier: Apache-2.0 */
/* Attention nodes of the model in the form in which fewest elements are moved. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_NATIVE_H
#define GRT_GRAPH_PASSES_ATTENTION_NATIVE_H

#include "graph/passes/pass.h"

/* Attention of [batch, heads, sequence, size], without a past and with no results but the first, reads rows
 * with heads side by side where its inputs are moved from such, and keys and values before their heads are
 * repeated. Other nodes stay. */
void attention_native_visit(pass_context *context, ir_node *node);

#endif

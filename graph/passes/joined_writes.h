/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that together replace all of a tensor are their updates, one behind the other. */
#ifndef GRT_GRAPH_PASSES_JOINED_WRITES_H
#define GRT_GRAPH_PASSES_JOINED_WRITES_H

#include "graph/passes/scatter_write.h"

/* The Concat that is data with the updates written; NULL if more of data than that is left. */
ir_value *joined_writes(const pass_context *context, ir_node *before, const scatter_write *u);

#endif

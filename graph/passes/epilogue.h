/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that a step applies to its result, as attributes of the node: activation, alpha, beta. */
#ifndef GRT_GRAPH_PASSES_EPILOGUE_H
#define GRT_GRAPH_PASSES_EPILOGUE_H

#include "graph/ir/ir.h"

/* What the attribute says for the function that a node computes of its input 0; NULL if it is no activation
 * of steps. */
const char *epilogue_activation_of(const ir_node *user, float *out_alpha, float *out_beta);
void epilogue_set_activation(ir_node *node, const char *name, float alpha, float beta);

#endif

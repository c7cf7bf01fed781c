/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are equal but for their inputs. */
#ifndef GRT_GRAPH_PASSES_CSE_H
#define GRT_GRAPH_PASSES_CSE_H

#include "graph/ir/ir.h"

/* True if the nodes have the same attributes, in the same order. */
bool cse_same_attrs(const ir_node *a, const ir_node *b);
/* Equal for nodes that have the same attributes. */
uint64_t cse_hash_attrs(uint64_t seed, const ir_node *node);

#endif

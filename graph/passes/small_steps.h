/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of one op that do not wait for each other and become one node: starting a small step takes longer
 * than it does. Passes say which nodes are alike, and what they become. */
#ifndef GRT_GRAPH_PASSES_SMALL_STEPS_H
#define GRT_GRAPH_PASSES_SMALL_STEPS_H

#include "graph/passes/rewrite.h"

enum { SMALL_STEPS_MOST = 32 }; /* members, as kernels have them */

typedef struct small_steps {
    int32_t most, window; /* members; nodes behind the first: a result lives until its reader has come */
    bool (*may_begin)(const ir_node *node);
    /* Of a node behind `first`. */
    bool (*may_join)(const ir_node *first, const ir_node *node);
    /* The node in front of the first member, with its name and an output for each; NULL: out of memory. */
    ir_node *(*create)(ir_node *const *members, int32_t n);
} small_steps;

/* True if the value is there when `first` begins. In a graph that is being visited. */
bool small_steps_is_there(const ir_value *value, const ir_node *first);
/* Where the target has the node that is created. */
void small_steps_merge(pass_context *context, ir_graph *graph, const small_steps *steps);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The worklist of pass `simplify`, and the changes that it has to know of. */
#ifndef GRT_GRAPH_PASSES_SIMPLIFY_WORKLIST_H
#define GRT_GRAPH_PASSES_SIMPLIFY_WORKLIST_H

#include "graph/passes/rewrite.h"

/* Nodes that are to be looked at. node->mark says which are. */
typedef struct simplify_work {
    pass_context *context;
    ir_node **stack;
    size_t n, capacity;
    grt_status status; /* OK until something fails; then the work ends */
} simplify_work;

/* Unless it is queued or removed; NULL: nothing. */
void simplify_queue(simplify_work *w, ir_node *node);
void simplify_queue_graph(simplify_work *w, ir_graph *graph); /* all its nodes, and those of bodies */
ir_node *simplify_next(simplify_work *w);                     /* NULL: there is none, or see w->status */

/* Output 0 is the value `to`: the node goes. False, with nothing changed, if it must stay. */
bool simplify_becomes(simplify_work *w, ir_node *node, ir_value *to);
/* Counts a change of the node; it and its users are looked at again. True. */
bool simplify_changed(simplify_work *w, ir_node *node);
void simplify_drop_if_dead(ir_node *node); /* removes it if nothing uses its outputs */

#endif

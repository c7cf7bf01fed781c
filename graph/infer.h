/* Between graph/infer.c (rules of single ops) and graph/infer_bodies.c (graphs). */
#ifndef GRT_GRAPH_INFER_H
#define GRT_GRAPH_INFER_H

#include "graph/op.h"

/* Run the rule of a node without bodies and merge the result into its outputs' types. No rule: the outputs
 * stay as declared. */
grt_status infer_by_row(ir_node *node);

#endif

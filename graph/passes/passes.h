/* The passes, and what they share. Each is in a file of its own name. */
#ifndef GRT_GRAPH_PASSES_H
#define GRT_GRAPH_PASSES_H

#include "graph/op.h"
#include "graph/pass.h"

grt_status pass_dce(pass_context *context);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* State that a plan declares: outputs of a run that are inputs of the next one (grt_compile_options.state).
 */
#ifndef GRT_GRAPH_STATE_PAIRS_H
#define GRT_GRAPH_STATE_PAIRS_H

#include "graph/ir/ir.h"

/* Adds the pairs, "OUTPUT=INPUT" a line, to the module's metadata. INVALID_ARGUMENT if one names none of the
 * model. */
grt_status state_pairs_declare(ir_module *module, const char *pairs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: an optimised module becomes a plan. */
#ifndef GRT_GRAPH_LOWER_H
#define GRT_GRAPH_LOWER_H

#include "graph/passes/pass.h"
#include "src/plan/plan.h"

/* The plan of an optimised module; takes over the module (weights stay where they are). */
grt_status ir_lower(ir_module *module, const grt_target *target, grt_plan **out_plan);

#endif

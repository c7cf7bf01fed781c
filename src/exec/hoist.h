/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that compute from dims alone: they run once, when the program for these dims is made. */
#ifndef GRT_SRC_EXEC_HOIST_H
#define GRT_SRC_EXEC_HOIST_H

#include "src/exec/draft.h"

/* True if the step computes from dims alone: all inputs are constants or hoisted, or it asks for nothing but
 * dims. */
bool grt_draft_can_hoist(const grt_draft *draft, int32_t step);
/* Compute it now, if that can be done: then there is nothing to do for it in a run. */
grt_status grt_draft_hoist(grt_draft *draft, int32_t step);

#endif

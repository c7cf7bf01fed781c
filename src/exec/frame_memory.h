/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fixed values of a frame lie: planned once, pointed at what is bound before each run. */
#ifndef GRT_SRC_EXEC_FRAME_MEMORY_H
#define GRT_SRC_EXEC_FRAME_MEMORY_H

#include "src/exec/draft.h"

/* Places in the arena for what the steps make, shared where views and results in place allow it. */
grt_status grt_draft_plan_memory(grt_draft *draft);
/* Point fixed values into the executor's arena, inputs and outputs at what is bound. */
grt_status grt_frame_bind(grt_frame *frame);

#endif

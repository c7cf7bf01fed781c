/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of a program, once its steps and places are decided: their functions, what they leave to be
 * dropped, and the segments that a device may replay. */
#ifndef GRT_SRC_EXEC_INSTRUCTIONS_H
#define GRT_SRC_EXEC_INSTRUCTIONS_H

#include "src/exec/draft.h"

grt_status grt_draft_make_instructions(grt_draft *draft);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Prepare: from a plan's body and the dims of what is bound to a frame whose program is ready to run. All
 * that can be decided before a run is decided here. */
#ifndef GRT_SRC_EXEC_PREPARE_H
#define GRT_SRC_EXEC_PREPARE_H

#include "src/exec/frame.h"

/* A frame of the main body for the inputs that are bound and the values of the plan's symbols, -1 where the
 * inputs say nothing. The first one makes the frames of the other bodies, too. */
grt_status grt_prepare(grt_executor *executor, const int64_t *symbols, grt_frame **out_frame);

#endif

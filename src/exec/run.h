/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a main frame that is bound: replayed as graphs where that is possible, step by step elsewhere. */
#ifndef GRT_SRC_EXEC_RUN_H
#define GRT_SRC_EXEC_RUN_H

#include "src/exec/frame.h"
#include "src/exec/timing.h"

#include <graphrt/graphrt.h>

/* On the executor's stream. */
grt_status grt_run_frame(grt_frame *frame, grt_timing *timing);
/* What can be replayed is captured, so that the first run with the pointers that are bound replays it.
 * Nothing runs. False: a capture failed, as that of a library that is not set up; it is tried again behind a
 * run. */
bool grt_run_capture(grt_frame *frame);
/* On a stream of the caller's; nothing waits. captured: into a graph of the caller's. UNSUPPORTED if a step
 * needs the host. */
grt_status grt_run_frame_async(grt_frame *frame, void *stream, bool captured);

void grt_run_get_replay(const grt_frame *frame, grt_replay_info *out_info);

#endif

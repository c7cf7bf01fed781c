/* SPDX-License-Identifier: Apache-2.0 */
/* Going through the instructions of a frame, one after another. */
#ifndef GRT_SRC_EXEC_EXECUTE_H
#define GRT_SRC_EXEC_EXECUTE_H

#include "src/exec/frame.h"

/* Instructions [first, end); the frame is bound, its inputs are set. Every instruction of every body passes
 * here: a run that is cancelled, or past its deadline, is stopped before the next one. */
grt_status grt_frame_run_range(grt_frame *frame, int32_t first, int32_t end);
/* All of them. */
grt_status grt_frame_run(grt_frame *frame);
/* A segment of its steps that was captured. */
grt_status grt_frame_launch(const grt_frame *frame, void *graph, void *stream);

#endif

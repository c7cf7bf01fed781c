/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run as one graph: copies of small inputs from page-locked memory, the steps, copies of the results
 * to page-locked memory. One launch instead of three, for programs whose steps are one graph anyway. */
#ifndef GRT_SRC_EXEC_ROUND_TRIP_H
#define GRT_SRC_EXEC_ROUND_TRIP_H

#include "src/exec/frame.h"

grt_status grt_round_trip_create(grt_arena *arena, const grt_program *program, grt_replay *out_trips);
/* Enqueues the run on the executor's stream if it is one that fits and there is a graph for what is bound, or
 * one can be captured: the second run with the same memory. *out_done false: nothing was enqueued. */
grt_status grt_round_trip_run(grt_frame *frame, bool *out_done);

#endif

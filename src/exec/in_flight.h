/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that were enqueued: the order among them, and what graphs of the caller's point at.
 *
 * All runs of a context share its memory. A run behind which nobody has waited is in flight: whatever touches
 * that memory next, on another stream or on the host, comes behind it. Runs that the caller captured are
 * ordered by the caller, and what their graph points at stays until the context's release. */
#ifndef GRT_SRC_EXEC_IN_FLIGHT_H
#define GRT_SRC_EXEC_IN_FLIGHT_H

#include "src/exec/context.h"

/* What is enqueued on the stream from now on comes behind the run in flight. */
grt_status grt_context_follow(grt_context *context, void *stream);
/* A run was enqueued on the stream: it is the one in flight. */
grt_status grt_context_launched(grt_context *context, void *stream);
/* Nothing is in flight, as a stream was waited for that followed it. */
void grt_context_landed(grt_context *context);
/* Wait for the run in flight: memory that it uses is about to be given back. */
grt_status grt_context_settle(grt_context *context);
/* Something failed: wait for what was enqueued before, which may still read and write memory of the caller's.
 * Errors are not reported; the message of the failure stays. */
void grt_context_abandon(grt_context *context, void *stream);
/* Kernels of the last run found fault with its data: the error, once. The run was waited for, or is in
 * flight. */
grt_status grt_context_check_local(grt_context *context);

/* The caller is capturing a run of the frame. */
void grt_context_captured(grt_context *context, grt_frame *frame);
/* Give memory of the device back, now or with the context. */
grt_status grt_context_drop_memory(grt_context *context, void *memory, bool captured);
/* The same for a frame. */
void grt_context_drop_frame(grt_context *context, grt_frame *frame);
/* With the context. */
void grt_context_release_in_flight(grt_context *context);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* State of a context: outputs of one run that are inputs of the next, in memory that stays on the device.
 *
 * A pair has two buffers: a run reads one and writes the other, and they change places once it has ended
 * well. Where nothing reads the input after the output is first written, and the caller wants it so, one
 * buffer is both. */
#ifndef GRT_SRC_EXEC_STATE_H
#define GRT_SRC_EXEC_STATE_H

#include "src/exec/state_slot.h"

/* The frame is about to run: outputs get their memory. captured: into a graph of the caller's. */
grt_status grt_state_bind(grt_state *state, const grt_frame *frame, uint64_t frames, bool captured);
/* The steps have run: outputs whose size came with the run get their memory. */
grt_status grt_state_bind_late(grt_state *state, const grt_frame *frame);
/* It has run, or is enqueued: what it wrote is the content. */
void grt_state_advance(grt_state *state);
/* A graph that the caller captured ends with the content where the next launch reads it. */
grt_status grt_state_copy_back(grt_state *state, void *stream);
/* It did not end well. */
void grt_state_spoil(grt_state *state);
/* INVALID_ARGUMENT if requests of a pool wait or run with it. */
grt_status grt_state_check_free(const grt_state *state, const char *function);
/* Let sessions on another device run with it: its content goes there. */
grt_status grt_state_move(grt_state *state, grt_session *session);
/* Set to the executor's context, and not any more. */
void grt_state_attach(grt_state *state, grt_executor *executor);
void grt_state_detach(grt_state *state);

#endif

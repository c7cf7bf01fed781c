/* SPDX-License-Identifier: Apache-2.0 */
/* State of a context: outputs of one run that are inputs of the next, in memory that stays on the device.
 *
 * A pair has two buffers: a run reads one and writes the other, and they change places once it has ended
 * well. Where nothing reads the input after the output is first written, and the caller wants it so, one
 * buffer is both. */
#ifndef GRT_SRC_EXEC_STATE_H
#define GRT_SRC_EXEC_STATE_H

#include "src/exec/frame.h"

#include <graphrt/state.h>

typedef struct grt_state_slot {
    int32_t input, output; /* their positions in the model */
    grt_value initial;     /* on the host; without data: zeros */
    char *data[2];         /* of the device */
    size_t bytes[2];
    int32_t now;     /* the buffer that has the content ... */
    grt_tensor t;    /* ... as the next run reads it */
    grt_tensor next; /* as this run writes it */
    bool may_be_in_place, in_place, lost;
    bool late; /* the size of the output comes with the run, which copies it here */
} grt_state_slot;

struct grt_state {
    atomic_int refs;
    grt_session *session;
    struct grt_context *context; /* that it is set to; NULL: none */
    const grt_frame *frame;      /* for which `in_place` was decided, and ... */
    uint64_t frames;             /* ... how many had been prepared then: addresses are used again */
    int32_t n;
    grt_state_slot *slots;
};

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
/* The input or output of the model belongs to a pair. */
bool grt_state_has(const grt_state *state, bool output, size_t index);
/* Not set to a context any more. */
void grt_state_detach(grt_state *state);

#endif

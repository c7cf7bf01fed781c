/* SPDX-License-Identifier: Apache-2.0 */
/* What a state consists of: see state.h. */
#ifndef GRT_SRC_EXEC_STATE_SLOT_H
#define GRT_SRC_EXEC_STATE_SLOT_H

#include "src/exec/frame.h"

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
    grt_executor *executor; /* of the context that it is set to; NULL: none */
    const grt_frame *frame; /* for which `in_place` was decided, and ... */
    uint64_t frames;        /* ... how many had been prepared then: addresses are used again */
    int32_t n;
    grt_state_slot *slots;
    /* requests that run with it one after the other: see src/pool/chain */
    _Atomic(const void *) pool; /* whose requests they are; NULL: there are none */
    atomic_size_t open;         /* of them, are not done */
    struct grt_request *newest; /* under that pool's lock */
};

/* The input or output of the model belongs to a pair; NULL has none. */
static inline bool grt_state_has(const grt_state *state, bool output, size_t index)
{
    for (int32_t i = 0; state && i < state->n; i++)
        if ((size_t)(output ? state->slots[i].output : state->slots[i].input) == index)
            return true;
    return false;
}

#endif

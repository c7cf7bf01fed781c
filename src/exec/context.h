/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: one execution in flight. An executor with what runs share, and frames for the dims that it has
 * met. */
#ifndef GRT_SRC_EXEC_CONTEXT_H
#define GRT_SRC_EXEC_CONTEXT_H

#include "src/exec/frame_cache.h"
#include "src/exec/profile.h"
#include "src/exec/timing.h"

struct grt_context {
    grt_executor executor;
    grt_frame_cache frames;
    grt_timing timing;
    grt_profile profile;
    struct grt_state *state; /* NULL: none */
    grt_value *results;      /* device sessions: outputs on the host */
    grt_tensor *kept; /* outputs of the last run that have been bound elsewhere since; dtype NONE: not so */
    bool any_kept;
    uint64_t runs;
    bool ran;
    grt_account *account_before; /* the thread's, while a run is in progress */
};

/* grt_context_set_state, for whoever knows that no request of a pool is to run with the state. */
grt_status grt_context_use_state(grt_context *context, struct grt_state *state);

static inline const grt_plan_body *grt_context_body(const grt_context *context)
{
    return grt_binding_body(&context->executor.bound);
}

#endif

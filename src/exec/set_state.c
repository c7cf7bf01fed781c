/* SPDX-License-Identifier: Apache-2.0 */
/* grt_context_set_state: which state a context runs with. */
#include "src/exec/context.h"
#include "src/exec/state.h"

static grt_status check_fits(const grt_context *context, const grt_state *state)
{
    const grt_session *session = context->executor.session;
    if (state->session->model != session->model || state->session->device != session->device)
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "grt_context_set_state: the state is of %s on %s; grt_state_copy copies from device to device",
            state->session->model == session->model ? "this model" : "another model", state->session->name);
    if (state->executor)
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "grt_context_set_state: another context has the state; give that one none (NULL) first");
    return GRT_OK;
}

static grt_status set_state(grt_context *context, grt_state *state)
{
    if (context->state == state)
        return GRT_OK;
    if (state)
        GRT_TRY(check_fits(context, state));
    GRT_TRY(grt_in_flight_settle(&context->executor.flight));
    context->ran = false;
    if (context->state)
        grt_state_detach(context->state);
    context->state = state;
    context->executor.bound.rebound = true;
    if (!state)
        return GRT_OK;
    grt_state_attach(state, &context->executor);
    return GRT_OK;
}

grt_status grt_context_set_state(grt_context *context, grt_state *state)
{
    if (!context)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_set_state: context is NULL");
    if (state)
        GRT_TRY(grt_state_check_free(state, "grt_context_set_state"));
    return grt_context_use_state(context, state);
}

grt_status grt_context_use_state(grt_context *context, grt_state *state)
{
    GRT_TRY(grt_executor_hold(&context->executor, "grt_context_set_state"));
    const grt_status status = set_state(context, state);
    grt_executor_let_go(&context->executor);
    return status;
}

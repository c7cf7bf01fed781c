/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/chain.h"

#include "src/exec/state_slot.h"

static grt_status fail_state_in_use(const char *by)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the state of the submission is in use by %s", by);
}

static grt_status check_state_model(const grt_model *of_state, const grt_model *of_lane)
{
    return of_state == of_lane ? GRT_OK
                               : grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                                          "the state of the submission is of another model than the lane");
}

/* Only what runs with the state may look at its session meanwhile, as it may take the state to another one.
 */
static grt_status claim_state(const grt_request *r, grt_state *state)
{
    const void *none = NULL;
    if (!atomic_compare_exchange_strong(&state->pool, &none, r->pool) && none != r->pool)
        return fail_state_in_use("another pool, whose requests with it have to be done first");
    if (state->newest)
        return check_state_model(state->newest->lane->model, r->lane->model);
    const grt_status status = state->executor
                                  ? fail_state_in_use("a context; give that one none (NULL) first")
                                  : check_state_model(state->session->model, r->lane->model);
    if (status != GRT_OK)
        atomic_store(&state->pool, NULL);
    return status;
}

grt_status grt_chain_join(grt_request *r)
{
    grt_state *state = r->with;
    GRT_TRY(claim_state(r, state));
    atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&state->open, 1, memory_order_relaxed);
    r->before = state->newest;
    if (r->before)
        r->before->behind = r;
    state->newest = r;
    return GRT_OK;
}

void grt_chain_finish(const grt_request *r)
{
    atomic_fetch_sub_explicit(&r->with->open, 1, memory_order_release);
}

grt_request *grt_chain_leave(grt_request *r)
{
    grt_state *state = r->with;
    grt_request *behind = r->behind, *next = !r->before && behind ? behind : NULL;
    if (r->before)
        r->before->behind = behind;
    *(behind ? &behind->before : &state->newest) = r->before;
    if (!state->newest)
        atomic_store(&state->pool, NULL);
    r->with = NULL;
    grt_state_release(state);
    return next && next->stage == GRT_REQUEST_WAITING ? next : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See chain.h. */
#include "src/pool/chain.h"

#include "src/exec/state_slot.h"

static grt_status fail_state_in_use(const char *by)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the state of the submission is in use by %s", by);
}

static grt_status claim_state(const grt_pool *pool, grt_state *state)
{
    const void *none = NULL;
    if (!atomic_compare_exchange_strong(&state->pool, &none, pool) && none != pool)
        return fail_state_in_use("another pool, whose requests with it have to be done first");
    if (state->newest || !state->executor)
        return GRT_OK;
    atomic_store(&state->pool, NULL);
    return fail_state_in_use("a context; give that one none (NULL) first");
}

grt_status grt_chain_join(grt_request *r)
{
    grt_state *state = r->with;
    if (state->session->model != r->lane->model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "the state of the submission is of another model than the lane");
    GRT_TRY(claim_state(r->pool, state));
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/caller.h"

#include "src/base/exit_guard.h"
#include "src/base/forked.h"

/* In whose callback the thread is. */
static _Thread_local const grt_pool *calling;

grt_status grt_caller_check(const grt_pool *pool, const char *function)
{
    if (!pool)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the pool is NULL", function);
    if (grt_forked_since(pool->process))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: the pool was made before fork(), and its threads are not in this process: make "
                        "another here",
                        function);
    return GRT_OK;
}

bool grt_caller_is_called_back(const grt_pool *pool)
{
    return calling == pool;
}

grt_status grt_caller_check_may_wait(const grt_pool *pool, const char *function)
{
    GRT_TRY(grt_caller_check(pool, function));
    return grt_caller_is_called_back(pool)
               ? grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                          "%s: called in a callback of the pool, for whose end it would wait", function)
               : GRT_OK;
}

/* Callbacks of another pool's request may be called in one, by grt_pool_run. */
void grt_caller_call_back(const grt_pool *pool, grt_request *request,
                          void (*callback)(void *user, grt_request *request))
{
    const grt_pool *const before = calling;
    void *const user = request->user;
    calling = pool;
    const long sections = grt_exit_guard_step_out();
    callback(user, request);
    grt_exit_guard_step_in(sections);
    calling = before;
}

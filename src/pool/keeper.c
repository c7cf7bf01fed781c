/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/keeper.h"

#include "src/base/exit_guard.h"
#include "src/pool/answer.h"
#include "src/pool/clock.h"
#include "src/pool/schedule.h"

#include <math.h>

static grt_status fail_left(grt_status verdict, double waited)
{
    if (verdict == GRT_STATUS_CANCELLED)
        return grt_fail(verdict, "the request was cancelled after %.3f ms", waited);
    if (verdict == GRT_STATUS_DEVICE)
        return grt_fail(verdict,
                        "the devices of all sessions of the lane have failed: the request waited %.3f ms "
                        "for one; replace a session (grt_pool_replace_session)",
                        waited);
    return grt_fail(verdict, "the request was not done at its deadline, after %.3f ms", waited);
}

/* With the lock, which it gives back meanwhile. */
static void answer_left(grt_pool *pool)
{
    grt_request *left = pool->left;
    size_t n = 0;
    pool->left = NULL;
    pthread_mutex_unlock(&pool->lock);
    grt_exit_guard_enter(); /* exit() in a callback does not wait for it */
    for (grt_request *r = left, *next; r; r = next, n++) {
        next = r->next;
        const double waited = grt_now_ms() - r->submitted_ms;
        r->info.queued_ms = waited;
        grt_answer(r, fail_left(r->verdict, waited), NULL);
    }
    grt_exit_guard_leave();
    pthread_mutex_lock(&pool->lock);
    grt_answer_close(pool, n);
}

static void *keep_times(void *arg)
{
    grt_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ending) {
        const double next = grt_schedule_look(pool);
        if (pool->left) {
            answer_left(pool);
            continue;
        }
        pool->keeper_until = next;
        (void)grt_clock_cond_wait(&pool->keeper_wake, &pool->lock, next);
        pool->keeper_until = 0; /* it looks anyway */
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

grt_status grt_keeper_start(grt_pool *pool)
{
    grt_clock_cond_init(&pool->keeper_wake);
    pool->keeper_started = pthread_create(&pool->keeper, NULL, keep_times, pool) == 0;
    return pool->keeper_started ? GRT_OK
                                : grt_fail(GRT_STATUS_OUT_OF_MEMORY, "a pool's thread cannot be made");
}

void grt_keeper_join(grt_pool *pool)
{
    pthread_join(pool->keeper, NULL);
    pthread_cond_destroy(&pool->keeper_wake);
}

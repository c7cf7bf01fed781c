/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/linger.h"

#include "src/base/clock.h"

/* Longer than a client takes that is woken by an answer and asks again. */
static const double linger_ms = 0.03;
/* A request without callback is left to its client for so long: it comes to wait for it, and serves it
 * itself. */
static const double grace_ms = 0.003;

static bool linger_has_work(const grt_worker *w)
{
    return (w->n_requests && !w->lent) || w->lane->ending;
}

static void pause_briefly(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#endif
}

/* Without the lock. */
static void linger_look(grt_worker *w)
{
    double now = grt_now_ms(), until = now + linger_ms;
    int seen = GRT_LINGER_NOTHING;
    while (seen != GRT_LINGER_AT_ONCE && now < until) {
        const int called = atomic_load_explicit(&w->called, memory_order_acquire);
        now = grt_now_ms();
        if (called != seen)
            until = now + grace_ms;
        seen = called;
        pause_briefly();
    }
}

static void linger(grt_worker *w)
{
    grt_pool *pool = w->lane->pool;
    pool->one_lingers = w->lingers = true;
    atomic_store_explicit(&w->called, GRT_LINGER_NOTHING, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    linger_look(w);
    pthread_mutex_lock(&pool->lock);
    pool->one_lingers = w->lingers = false;
}

void grt_linger_wait(grt_worker *w)
{
    grt_pool *pool = w->lane->pool;
    if (w->lingering_pays && !pool->one_lingers && !linger_has_work(w))
        linger(w);
    while (!linger_has_work(w))
        pthread_cond_wait(&w->wake, &pool->lock);
}

static bool is_left_to_client(const grt_worker *w)
{
    const grt_request *r = w->requests[0];
    return w->n_requests == 1 && !r->callback && !r->collect && w->lane->sessions[w->session].lends;
}

void grt_linger_call(grt_worker *w, double now_ms)
{
    w->lingering_pays = now_ms - w->idle_ms < linger_ms;
    if (w->lingers)
        atomic_store_explicit(&w->called,
                              is_left_to_client(w) ? GRT_LINGER_FOR_ITS_CLIENT : GRT_LINGER_AT_ONCE,
                              memory_order_release);
    else
        pthread_cond_signal(&w->wake);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/linger.h"

#include "src/base/clock.h"
#include "src/pool/clock.h"

/* Longer than a client takes that is woken by an answer and asks again. */
static const double linger_ms = 0.03;
/* A request without callback is left to its client for so long: it comes to wait for it, and serves it
 * itself. */
static const double grace_ms = 0.003;
/* After so many in a row that their clients served, the thread is not woken for the next: it sleeps for so
 * long at a time and then looks whether a client has not come, while the last request is not older than this.
 */
enum { ENOUGH_LEFT = 4 };
static const double doze_ms = 0.2, dozing_ms = 1;

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

static bool is_dozing_worth_it(const grt_worker *w)
{
    return w->lingering_pays && w->left >= ENOUGH_LEFT && !w->lane->pool->dozing &&
           grt_now_ms() - w->idle_ms < dozing_ms;
}

static void linger_sleep(grt_worker *w)
{
    grt_pool *pool = w->lane->pool;
    if (!is_dozing_worth_it(w)) {
        pthread_cond_wait(&w->wake, &pool->lock);
        return;
    }
    pool->dozing = w;
    (void)grt_clock_cond_wait(&w->wake, &pool->lock, grt_now_ms() + doze_ms);
    pool->dozing = NULL;
}

void grt_linger_wait(grt_worker *w)
{
    if (w->lingering_pays && !w->lane->pool->one_lingers && !linger_has_work(w))
        linger(w);
    while (!linger_has_work(w))
        linger_sleep(w);
    w->left = 0; /* no client came */
}

void grt_linger_overtaken(grt_worker *w, double now_ms)
{
    const bool at_once = now_ms - w->requests[0]->submitted_ms < grace_ms;
    w->left = at_once ? w->left + (w->left < ENOUGH_LEFT) : 0;
}

void grt_linger_hurry(grt_pool *pool)
{
    if (pool->dozing && linger_has_work(pool->dozing))
        pthread_cond_signal(&pool->dozing->wake);
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
    else if (w->lane->pool->dozing != w || !is_left_to_client(w))
        pthread_cond_signal(&w->wake);
}

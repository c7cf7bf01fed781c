/* SPDX-License-Identifier: Apache-2.0 */
/* How the thread of a context waits: when it looks for requests and does not sleep, and for whom it leaves
 * them. */
#include "src/pool/linger.h"

#include "tests/unit/suite.h"

#include <check.h>
#include <pthread.h>

enum { SOON_US = 10, LATER_US = 100 };

typedef struct scene {
    grt_pool pool;
    grt_lane lane;
    grt_lane_session session;
    grt_worker worker;
    grt_request request;
    grt_request *list[2];
} scene;

static void open_scene(scene *s)
{
    *s = (scene){.session = {.lends = true}};
    pthread_mutex_init(&s->pool.lock, NULL);
    pthread_cond_init(&s->worker.wake, NULL);
    s->lane = (grt_lane){.pool = &s->pool, .sessions = &s->session};
    s->list[0] = s->list[1] = &s->request;
    s->worker.lane = &s->lane;
    s->worker.requests = s->list;
    s->worker.n_requests = 1;
    s->worker.idle_ms = 1000;
}

static void close_scene(scene *s)
{
    pthread_mutex_destroy(&s->pool.lock);
    pthread_cond_destroy(&s->worker.wake);
}

START_TEST(pays_if_requests_come_soon)
{
    scene s;
    open_scene(&s);
    grt_linger_call(&s.worker, s.worker.idle_ms + SOON_US / 1e3);
    ck_assert(s.worker.lingering_pays);
    ck_assert_int_eq(s.worker.called, GRT_LINGER_NOTHING); /* it sleeps, and is woken */
    grt_linger_call(&s.worker, s.worker.idle_ms + LATER_US / 1e3);
    ck_assert(!s.worker.lingering_pays);
    close_scene(&s);
}
END_TEST

static void called_back(void *user, grt_request *request)
{
    (void)user;
    (void)request;
}

/* Those that wait for a request serve it; for one with a callback, of a batch, or whose operators have teams
 * of threads nobody does. */
START_TEST(leaves_requests_to_clients)
{
    scene s;
    open_scene(&s);
    s.worker.lingers = true;
    grt_linger_call(&s.worker, 0);
    ck_assert_int_eq(s.worker.called, GRT_LINGER_FOR_ITS_CLIENT);
    s.request.callback = called_back;
    grt_linger_call(&s.worker, 0);
    ck_assert_int_eq(s.worker.called, GRT_LINGER_AT_ONCE);
    s.request.callback = NULL;
    s.request.collect = true;
    grt_linger_call(&s.worker, 0);
    ck_assert_int_eq(s.worker.called, GRT_LINGER_AT_ONCE);
    s.request.collect = false;
    s.worker.n_requests = 2;
    grt_linger_call(&s.worker, 0);
    ck_assert_int_eq(s.worker.called, GRT_LINGER_AT_ONCE);
    s.worker.n_requests = 1;
    s.session.lends = false;
    grt_linger_call(&s.worker, 0);
    ck_assert_int_eq(s.worker.called, GRT_LINGER_AT_ONCE);
    close_scene(&s);
}
END_TEST

static void *wait_for_requests(void *user)
{
    scene *s = user;
    pthread_mutex_lock(&s->pool.lock);
    s->worker.n_requests = 0;
    s->worker.lingering_pays = true;
    grt_linger_wait(&s->worker);
    ck_assert_uint_eq(s->worker.n_requests, 1);
    ck_assert(!s->worker.lingers && !s->pool.one_lingers);
    pthread_mutex_unlock(&s->pool.lock);
    return NULL;
}

/* While it looks, and when it sleeps by then: nothing is lost. */
START_TEST(comes_when_called)
{
    enum { ROUNDS = 60 };
    for (int i = 0; i < ROUNDS; i++) {
        scene s;
        pthread_t thread;
        open_scene(&s);
        s.worker.n_requests = 0;
        ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_requests, &s), 0);
        for (volatile int k = 0; k < i * 2000; k++)
            ;
        bool called = false;
        while (!called) {
            pthread_mutex_lock(&s.pool.lock);
            called = s.worker.lingering_pays; /* it is there */
            if (called) {
                s.worker.n_requests = 1;
                grt_linger_call(&s.worker, 0);
            }
            pthread_mutex_unlock(&s.pool.lock);
        }
        pthread_join(thread, NULL);
        close_scene(&s);
    }
}
END_TEST

UNIT_SUITE(test_linger, NULL, NULL, pays_if_requests_come_soon, leaves_requests_to_clients, comes_when_called)

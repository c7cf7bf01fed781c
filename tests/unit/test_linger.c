/* SPDX-License-Identifier: Apache-2.0 */
/* How the thread of a context waits: when it looks for requests and does not sleep, and for whom it leaves
 * them. */
#include "src/pool/linger.h"

#include "src/base/clock.h"
#include "src/pool/clock.h"

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
    grt_clock_cond_init(&s->worker.wake);
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

START_TEST(counts_clients_that_come_at_once)
{
    enum { MANY = 100 };
    const double soon_ms = 0.001, later_ms = 0.1;
    scene s;
    open_scene(&s);
    grt_linger_overtaken(&s.worker, soon_ms);
    ck_assert_int_eq(s.worker.left, 1);
    for (int i = 0; i < MANY; i++)
        grt_linger_overtaken(&s.worker, soon_ms);
    ck_assert_int_gt(s.worker.left, 1);
    ck_assert_int_lt(s.worker.left, MANY);
    grt_linger_overtaken(&s.worker, later_ms);
    ck_assert_int_eq(s.worker.left, 0);
    close_scene(&s);
}
END_TEST

static void *doze_for_requests(void *user)
{
    enum { CLIENTS_CAME = 100 };
    scene *s = user;
    pthread_mutex_lock(&s->pool.lock);
    s->worker.lingering_pays = s->pool.one_lingers = true; /* another looks */
    s->worker.left = CLIENTS_CAME;
    s->worker.idle_ms = grt_now_ms();
    grt_linger_wait(&s->worker);
    ck_assert_uint_eq(s->worker.n_requests, 1);
    ck_assert_int_eq(s->worker.left, 0);
    ck_assert_ptr_null(s->pool.dozing);
    pthread_mutex_unlock(&s->pool.lock);
    return NULL;
}

/* With the lock. */
static bool dozes_yet(const scene *s)
{
    const double longest_ms = 2;
    return grt_now_ms() - s->worker.idle_ms < longest_ms;
}

/* The thread comes by itself for a request whose client does not, and when something else happens. It may
 * have gone to sleep by then, and is woken. */
START_TEST(comes_for_what_is_left)
{
    enum { ROUNDS = 40, EARLY = 20 };
    for (int i = 0; i < ROUNDS; i++) {
        scene s;
        pthread_t thread;
        open_scene(&s);
        s.worker.n_requests = 0;
        ck_assert_int_eq(pthread_create(&thread, NULL, doze_for_requests, &s), 0);
        bool waits = false;
        while (!waits) {
            pthread_mutex_lock(&s.pool.lock);
            waits = s.worker.left > 0 && (i >= EARLY || s.pool.dozing || !dozes_yet(&s));
            if (waits) {
                s.worker.n_requests = 1;
                grt_linger_call(&s.worker, grt_now_ms());
                if (i % 2)
                    grt_linger_hurry(&s.pool);
            }
            pthread_mutex_unlock(&s.pool.lock);
        }
        pthread_join(thread, NULL);
        close_scene(&s);
    }
}
END_TEST

/* So that an idle pool's threads sleep. */
START_TEST(does_not_doze_for_long)
{
    const double until_ms = grt_now_ms() + 1e4;
    scene s;
    pthread_t thread;
    bool dozes = true;
    open_scene(&s);
    s.worker.n_requests = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, doze_for_requests, &s), 0);
    while (dozes && grt_now_ms() < until_ms) {
        pthread_mutex_lock(&s.pool.lock);
        dozes = !s.worker.left || s.pool.dozing || dozes_yet(&s);
        pthread_mutex_unlock(&s.pool.lock);
    }
    ck_assert(!dozes);
    pthread_mutex_lock(&s.pool.lock);
    s.worker.n_requests = 1;
    grt_linger_call(&s.worker, grt_now_ms());
    pthread_mutex_unlock(&s.pool.lock);
    pthread_join(thread, NULL);
    close_scene(&s);
}
END_TEST

UNIT_SUITE(test_linger, NULL, NULL, pays_if_requests_come_soon, leaves_requests_to_clients, comes_when_called,
           counts_clients_that_come_at_once, comes_for_what_is_left, does_not_doze_for_long)

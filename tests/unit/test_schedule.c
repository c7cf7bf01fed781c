/* SPDX-License-Identifier: Apache-2.0 */
/* Who of a pool is at work on a device, and when: the pool's own scheduling over a device that is computed,
 * not timed. It copies in one request at a time and computes one at a time, and each lane has requests for
 * ever. */
#include "src/pool/schedule.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

Suite *suite_test_schedule(void);

enum { MOST_LANES = 3, MOST_CONTEXTS = 4, WAITING = 8 };

/* A model of a lane: how long its requests take. WAKE: until a context's thread has begun. */
typedef struct load {
    double copy_ms, compute_ms, host_ms;
    double share;
    int32_t contexts, priority;
} load;
static const double wake_ms = 0.03;

typedef enum phase { STARTS = 0, COPIES, COMPUTES, ENDS, PHASES } phase;

/* One worker's run. */
typedef struct course {
    bool at_work;
    phase next;
    double at_ms; /* when it can go on */
} course;

typedef struct simulation {
    grt_pool pool;
    grt_pool_device device;
    grt_lane *list[MOST_LANES];
    grt_lane lanes[MOST_LANES];
    grt_lane_session sessions[MOST_LANES];
    grt_worker workers[MOST_LANES][MOST_CONTEXTS];
    course courses[MOST_LANES][MOST_CONTEXTS];
    const load *loads;
    double now_ms, copies_until_ms, computes_until_ms;
    double computed_ms[MOST_LANES];
    long done[MOST_LANES];
    size_t most_running;
} simulation;

static void submit(simulation *s, size_t lane)
{
    grt_request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->pool = &s->pool;
    r->lane = &s->lanes[lane];
    r->queued.priority = s->loads[lane].priority;
    grt_schedule_add(r);
}

static void add_lane(simulation *s, size_t i)
{
    const load *l = &s->loads[i];
    grt_lane *lane = s->list[i] = &s->lanes[i];
    *lane = (grt_lane){.pool = &s->pool, .number = i, .n_sessions = 1, .share = l->share};
    lane->sessions = &s->sessions[i];
    lane->workers = s->workers[i];
    lane->n_workers = (size_t)l->contexts;
    lane->most_waiting = WAITING;
    s->sessions[i].device = &s->device;
    ck_assert_int_eq(grt_queue_reserve(&lane->queue, WAITING), GRT_OK);
    pthread_cond_init(&lane->room, NULL);
    for (int32_t k = 0; k < l->contexts; k++) {
        grt_worker *w = &s->workers[i][k];
        w->lane = lane;
        w->requests = calloc(1, sizeof *w->requests);
        w->first_rows = calloc(1, sizeof *w->first_rows);
        ck_assert(w->requests && w->first_rows);
        pthread_cond_init(&w->wake, NULL);
        w->next_idle = s->sessions[i].idle;
        s->sessions[i].idle = w;
    }
}

static void begin_simulation(simulation *s, const load *loads, size_t n, size_t most, size_t more)
{
    *s = (simulation){.loads = loads, .device = {.most = most, .more = more}};
    s->pool.lanes = s->list;
    s->pool.n_lanes = n;
    s->pool.deadlines.order = GRT_QUEUE_BY_DEADLINE;
    s->pool.keeper_until = -INFINITY;
    for (size_t i = 0; i < n; i++)
        add_lane(s, i);
}

static void end_simulation(simulation *s)
{
    for (size_t i = 0; i < s->pool.n_lanes; i++) {
        for (grt_request *r = s->lanes[i].oldest, *newer; r; r = newer) {
            newer = r->newer;
            free(r);
        }
        for (size_t k = 0; k < s->lanes[i].n_workers; k++) {
            grt_worker *w = &s->workers[i][k];
            if (w->n_requests)
                free(w->requests[0]);
            free(w->requests);
            free(w->first_rows);
        }
        grt_queue_release(&s->lanes[i].queue);
    }
}

/* Threads that have slept need a moment; the one that has served last goes on at once. */
static void start_workers(simulation *s, const grt_worker *awake)
{
    s->most_running = s->device.running > s->most_running ? s->device.running : s->most_running;
    for (size_t i = 0; i < s->pool.n_lanes; i++)
        for (size_t k = 0; k < s->lanes[i].n_workers; k++) {
            course *c = &s->courses[i][k];
            if (c->at_work || !s->workers[i][k].n_requests)
                continue;
            *c = (course){.at_work = true, .at_ms = s->now_ms + (&s->workers[i][k] == awake ? 0 : wake_ms)};
        }
}

static void take_engine(course *c, double *until_ms, double ms)
{
    c->at_ms = fmax(c->at_ms, *until_ms) + ms;
    *until_ms = c->at_ms;
}

static void go_on(simulation *s, size_t i, size_t k)
{
    course *c = &s->courses[i][k];
    grt_worker *w = &s->workers[i][k];
    const load *l = &s->loads[i];
    s->now_ms = c->at_ms;
    switch (c->next++) {
    case STARTS:
        c->at_ms += l->host_ms;
        break;
    case COPIES:
        take_engine(c, &s->copies_until_ms, l->copy_ms);
        break;
    case COMPUTES:
        take_engine(c, &s->computes_until_ms, l->compute_ms);
        s->computed_ms[i] += l->compute_ms;
        break;
    default:
        s->done[i]++;
        free(w->requests[0]);
        c->at_work = false;
        grt_schedule_become_idle(w, s->now_ms);
        submit(s, i);
        grt_schedule_dispatch(&s->pool, s->now_ms);
        start_workers(s, w);
    }
}

static void simulate(simulation *s, double until_ms)
{
    for (size_t i = 0; i < s->pool.n_lanes; i++)
        for (int k = 0; k < WAITING; k++)
            submit(s, i);
    grt_schedule_dispatch(&s->pool, 0);
    start_workers(s, NULL);
    while (s->now_ms < until_ms) {
        size_t lane = 0, worker = MOST_CONTEXTS;
        for (size_t i = 0; i < s->pool.n_lanes; i++)
            for (size_t k = 0; k < s->lanes[i].n_workers; k++)
                if (s->courses[i][k].at_work &&
                    (worker == MOST_CONTEXTS || s->courses[i][k].at_ms < s->courses[lane][worker].at_ms)) {
                    lane = i;
                    worker = k;
                }
        ck_assert_uint_lt(worker, MOST_CONTEXTS);
        go_on(s, lane, worker);
    }
}

enum { UNTIL_MS = 2000 };

/* How much of the time the device computes for a lane. */
static double part_of(const simulation *s, size_t lane)
{
    return s->computed_ms[lane] / s->now_ms;
}

static void simulate_lanes(simulation *s, const load *loads, size_t most, size_t more)
{
    begin_simulation(s, loads, 2, most, more);
    simulate(s, UNTIL_MS);
    end_simulation(s);
}

/* Lanes of requests that are alike, with shares of 1, 3 and 7 to 1. */
START_TEST(one_more_keeps_shares)
{
    static const double shares[] = {1, 3, 7};
    for (int32_t contexts = 1; contexts <= 3; contexts++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            const load lanes[] = {{.1, 1, .04, shares[k], contexts, 0}, {.1, 1, .04, 1, contexts, 0}};
            simulation without, with;
            simulate_lanes(&without, lanes, (size_t)contexts, 0);
            simulate_lanes(&with, lanes, (size_t)contexts, 1);
            const double found = part_of(&with, 0) / part_of(&with, 1);
            ck_assert_msg(fabs(found / shares[k] - 1) < .05, "%d contexts: %g for %g", contexts, found,
                          shares[k]);
            ck_assert_uint_eq(with.most_running, (size_t)contexts + 1);
            ck_assert_double_ge(part_of(&with, 0) + part_of(&with, 1),
                                part_of(&without, 0) + part_of(&without, 1) - .01);
        }
}
END_TEST

/* With one context a lane, what one request copies is hidden by what the other computes. */
START_TEST(one_more_hides_copies)
{
    static const load lanes[] = {{.38, 1, .04, 1, 1, 0}, {.38, 1, .04, 1, 1, 0}};
    simulation without, with;
    simulate_lanes(&without, lanes, 1, 0);
    simulate_lanes(&with, lanes, 1, 1);
    ck_assert_double_lt(part_of(&without, 0) + part_of(&without, 1), .75);
    ck_assert_double_gt(part_of(&with, 0) + part_of(&with, 1), .85);
}
END_TEST

/* Of equal shares, it is as if the device had a place more for all. */
START_TEST(one_more_of_equals)
{
    static const load lanes[][2] = {{{.38, 1.1, .04, 1, 3, 0}, {.38, .45, .04, 1, 3, 0}},
                                    {{.38, 1.1, .1, 1, 3, 0}, {.38, .9, .1, 1, 3, 0}}};
    for (size_t k = 0; k < sizeof lanes / sizeof *lanes; k++) {
        simulation for_all, with;
        simulate_lanes(&for_all, lanes[k], 4, 0);
        simulate_lanes(&with, lanes[k], 3, 1);
        for (size_t i = 0; i < 2; i++)
            ck_assert_msg(labs(for_all.done[i] - with.done[i]) <= for_all.done[i] / 50, "%zu: %ld and %ld", k,
                          for_all.done[i], with.done[i]);
    }
}
END_TEST

/* Lower ones get no more places than they would have without. */
START_TEST(one_more_is_not_for_lower_priorities)
{
    for (int32_t contexts = 1; contexts <= 3; contexts++) {
        const load lanes[] = {{.1, 1, .04, 1, contexts, 1}, {.1, 1, .04, 1, 3, 0}};
        simulation without, with;
        simulate_lanes(&without, lanes, 3, 0);
        simulate_lanes(&with, lanes, 3, 1);
        ck_assert_int_eq(with.done[0], without.done[0]);
        ck_assert_int_eq(with.done[1], without.done[1]);
        ck_assert_uint_eq(with.most_running, 3);
    }
}
END_TEST

Suite *suite_test_schedule(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tc = tcase_create("schedule");
    tcase_add_test(tc, one_more_keeps_shares);
    tcase_add_test(tc, one_more_hides_copies);
    tcase_add_test(tc, one_more_of_equals);
    tcase_add_test(tc, one_more_is_not_for_lower_priorities);
    suite_add_tcase(suite, tc);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as services need them: requests that are cancelled, late, refused, collected or called back; counts;
 * the end of a pool. On the CPU and on the mirror. */
#include "tests/unit/service.h"

#include <check.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

START_TEST(cancelled)
{
    grt_pool *pool = service_open_small(_i);
    for (int round = 0; round < 3; round++) {
        grt_request *running = service_block(pool), *waiting = service_run_loop(pool, &service_for_ever),
                    *last = service_run_loop(pool, &service_three);
        ck_assert_int_eq(grt_request_wait_until(waiting, 0), GRT_STATUS_BUSY);
        ck_assert_int_eq(grt_request_wait_until(waiting, grt_clock_ms() + 5), GRT_STATUS_BUSY);
        grt_request_cancel(waiting);
        ck_assert_int_eq(grt_request_wait_until(waiting, grt_clock_ms() + SERVICE_LONG_MS),
                         GRT_STATUS_CANCELLED);
        grt_request_cancel(waiting); /* nothing more happens */
        service_expect(waiting, GRT_STATUS_CANCELLED);
        ck_assert_int_eq(grt_request_wait_until(running, 0), GRT_STATUS_BUSY);
        grt_request_cancel(running);
        service_expect(running, GRT_STATUS_CANCELLED);
        service_expect(last, GRT_OK);
    }
    grt_request *all[] = {service_block(pool), service_run_loop(pool, &service_for_ever),
                          service_run_loop(pool, &service_three)};
    grt_pool_cancel(pool);
    for (int i = 0; i < 3; i++)
        service_expect(all[i], GRT_STATUS_CANCELLED);
    service_expect(service_run_loop(pool, &service_three), GRT_OK);
    grt_request_cancel(NULL);
    grt_pool_cancel(NULL);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    ck_assert_uint_eq(stats.submitted, 13);
    ck_assert_uint_eq(stats.succeeded, 4);
    ck_assert_uint_eq(stats.cancelled, 9);
    ck_assert_uint_eq(stats.running + stats.waiting, 0);
    grt_pool_release(pool);
}
END_TEST

START_TEST(late)
{
    grt_pool *pool = service_open_small(_i);
    loop_call c;
    service_loop_of(&c, &service_for_ever)->s.deadline_ms = grt_clock_ms() + 20;
    service_expect(service_submit(pool, &c.s), GRT_STATUS_DEADLINE_EXCEEDED); /* at work */
    grt_request *running = service_block(pool);
    c.s.deadline_ms = grt_clock_ms() + 30;
    grt_request *later = service_submit(pool, &c.s);
    c.s.deadline_ms = grt_clock_ms() + 10;
    grt_request *sooner = service_submit(pool, &c.s);
    c.s.deadline_ms = 1; /* long over */
    service_expect(service_submit(pool, &c.s), GRT_STATUS_DEADLINE_EXCEEDED);
    service_expect(sooner, GRT_STATUS_DEADLINE_EXCEEDED); /* waiting */
    ck_assert_double_ge(grt_clock_ms(), c.s.deadline_ms);
    service_expect(later, GRT_STATUS_DEADLINE_EXCEEDED);
    c.s.deadline_ms = NAN;
    service_expect(service_submit(pool, &c.s), GRT_STATUS_DEADLINE_EXCEEDED);
    grt_request_cancel(running);
    service_expect(running, GRT_STATUS_CANCELLED);
    service_loop_of(&c, &service_three)->s.deadline_ms = grt_clock_ms() + SERVICE_LONG_MS;
    service_expect(service_submit(pool, &c.s), GRT_OK);
    grt_pool_release(pool);
}
END_TEST

START_TEST(a_full_queue)
{
    grt_pool *pool = service_open_small(_i);
    grt_request *running = service_block(pool), *waiting[3], *none = NULL;
    loop_call c;
    service_loop_of(&c, &service_three);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(grt_pool_try_submit(pool, &c.s, &waiting[i]), GRT_OK);
    ck_assert_int_eq(grt_pool_try_submit(pool, &c.s, &none), GRT_STATUS_BUSY);
    c.s.deadline_ms = grt_clock_ms() + 20;
    ck_assert_int_eq(grt_pool_submit_with(pool, &c.s, &none), GRT_STATUS_DEADLINE_EXCEEDED);
    ck_assert_double_ge(grt_clock_ms(), c.s.deadline_ms);
    ck_assert_ptr_null(none);
    grt_request_cancel(running);
    service_expect(running, GRT_STATUS_CANCELLED);
    for (int i = 0; i < 3; i++)
        service_expect(waiting[i], GRT_OK);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    ck_assert_uint_eq(stats.refused, 1);
    ck_assert_uint_eq(stats.submitted, 4);
    grt_pool_release(pool);
}
END_TEST

START_TEST(called_back_by_priority)
{
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = 16};
    static const int priorities[] = {0, 5, -1, 5, 0, 7}, order[] = {5, 1, 3, 0, 4, 2};
    grt_pool *pool = service_open_pool(service_open_loop(), devices[_i], &options);
    grt_request *running = service_block(pool);
    service_n_called = 0;
    for (int i = 0; i < 6; i++)
        service_call_back(pool, &service_three, 0, priorities[i], i);
    grt_request_cancel(running);
    service_expect(running, GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_pool_drain(pool, grt_clock_ms() + SERVICE_LONG_MS), GRT_OK);
    ck_assert_int_eq(service_n_called, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(service_called[i], order[i]);
    running = service_block(pool);
    service_call_back(pool, &service_three, 0, 0, 9);
    grt_pool_cancel(pool); /* those that wait are service_called back, too */
    ck_assert_int_eq(grt_pool_drain(pool, grt_clock_ms() + SERVICE_LONG_MS), GRT_OK);
    ck_assert_int_eq(service_n_called, 7);
    service_expect(running, GRT_STATUS_CANCELLED);
    grt_pool_release(pool);
}
END_TEST

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(collected)
{
    grt_pool *pool = service_open_small(_i);
    grt_request *mine[5], *taken;
    loop_call c;
    int fd, again;
    service_loop_of(&c, &service_three)->s.collect = true;
    mine[0] = service_submit(pool, &c.s);
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    ck_assert_int_eq(grt_pool_get_fd(pool, &fd), GRT_OK);
    ck_assert_int_eq(grt_pool_get_fd(pool, &again), GRT_OK);
    ck_assert_int_eq(fd, again);
    for (int round = 0; round < 3; round++) {
        for (int i = round ? 0 : 1; i < 5; i++)
            mine[i] = service_submit(pool, &c.s);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        for (int n = 0; n < 5; n++) {
            ck_assert_int_eq(poll(&p, 1, SERVICE_LONG_MS), 1);
            ck_assert_int_eq(grt_pool_take_done(pool, &taken), GRT_OK);
            ck_assert_ptr_eq(taken, mine[n]); /* one context, one priority */
            service_expect(taken, GRT_OK);
        }
        ck_assert(!is_readable(fd));
        ck_assert_int_eq(grt_pool_take_done(pool, &taken), GRT_STATUS_BUSY);
    }
    mine[0] = service_submit(pool, &c.s); /* and one that nobody takes */
    grt_pool_release(pool);
    service_expect(mine[0], GRT_OK);
}
END_TEST

/* ---- reports and the end ---- */

START_TEST(histograms)
{
    grt_pool *pool = service_open_small(_i);
    grt_histogram h = {.struct_size = sizeof h};
    uint64_t n = 0;
    for (int i = 0; i < 50; i++)
        service_expect(service_run_loop(pool, &service_three), GRT_OK);
    for (int phase = GRT_POOL_QUEUE; phase <= GRT_POOL_TOTAL; phase++) {
        ck_assert_int_eq(grt_pool_get_histogram(pool, 0, (grt_pool_phase)phase, &h), GRT_OK);
        ck_assert_uint_eq(h.count, 50);
        ck_assert(h.p50_ms <= h.p99_ms && h.p99_9_ms <= h.max_ms && h.sum_ms <= 50 * h.max_ms);
    }
    for (size_t i = 0; i < GRT_HISTOGRAM_BUCKETS; i++) {
        ck_assert(!i || grt_histogram_limit_ms(i) > grt_histogram_limit_ms(i - 1));
        n += h.buckets[i];
    }
    ck_assert_uint_eq(n, 50);
    ck_assert_double_eq(grt_histogram_limit_ms(0), 0.001024);
    ck_assert_double_eq(grt_histogram_limit_ms(4), 0.002048);
    ck_assert(isinf(grt_histogram_limit_ms(GRT_HISTOGRAM_BUCKETS - 1)));
    ck_assert_int_eq(grt_pool_get_histogram(pool, 0, (grt_pool_phase)5, &h), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_get_histogram(pool, 1, GRT_POOL_RUN, &h), GRT_STATUS_INVALID_ARGUMENT);
    grt_pool_release(pool);
}
END_TEST

static void *submit_one_more(void *pool)
{
    loop_call c;
    grt_request *r = NULL;
    const grt_status status = grt_pool_submit_with(pool, &service_loop_of(&c, &service_three)->s, &r);
    grt_request_release(r);
    return (void *)(intptr_t)status;
}

START_TEST(shut_down)
{
    grt_pool *pool = service_open_small(_i);
    grt_request *all[4] = {service_block(pool)};
    pthread_t thread;
    void *status;
    for (int i = 1; i < 4; i++)
        all[i] = service_run_loop(pool, &service_three);
    ck_assert_int_eq(pthread_create(&thread, NULL, submit_one_more, pool), 0); /* waits for room */
    ck_assert_int_eq(grt_pool_drain(pool, grt_clock_ms() + 10), GRT_STATUS_BUSY);
    const double begin = grt_clock_ms();
    ck_assert_int_eq(grt_pool_shutdown(pool, begin + 20), GRT_STATUS_DEADLINE_EXCEEDED);
    ck_assert_double_lt(grt_clock_ms() - begin, SERVICE_LONG_MS);
    pthread_join(thread, &status);
    ck_assert_int_eq((intptr_t)status, GRT_STATUS_CANCELLED);
    for (int i = 0; i < 4; i++)
        service_expect(all[i], GRT_STATUS_CANCELLED);
    loop_call c;
    ck_assert_int_eq(grt_pool_try_submit(pool, &service_loop_of(&c, &service_three)->s, &all[0]),
                     GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_pool_shutdown(pool, 0), GRT_OK);
    grt_pool_release(pool);
}
END_TEST

Suite *suite_test_service(void);
Suite *suite_test_service(void)
{
    Suite *suite = suite_create("service");
    TCase *tc = tcase_create("service");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, cancelled, 0, N_DEVICES);
    tcase_add_loop_test(tc, late, 0, N_DEVICES);
    tcase_add_loop_test(tc, a_full_queue, 0, N_DEVICES);
    tcase_add_loop_test(tc, called_back_by_priority, 0, N_DEVICES);
    tcase_add_loop_test(tc, collected, 0, N_DEVICES);
    tcase_add_loop_test(tc, histograms, 0, N_DEVICES);
    tcase_add_loop_test(tc, shut_down, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

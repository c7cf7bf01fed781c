/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are cancelled or late, and a pool that is shut down. On the CPU and on the mirror. */
#include "tests/unit/service.h"

#include <check.h>
#include <math.h>
#include <pthread.h>

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

Suite *suite_test_service_stop(void);
Suite *suite_test_service_stop(void)
{
    Suite *suite = suite_create("service stop");
    TCase *tc = tcase_create("service stop");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, cancelled, 0, N_DEVICES);
    tcase_add_loop_test(tc, late, 0, N_DEVICES);
    tcase_add_loop_test(tc, shut_down, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

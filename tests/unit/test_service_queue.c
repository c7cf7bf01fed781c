/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a pool: what it refuses, in which order it serves, and how it hands back what is done. On the
 * CPU and on the mirror. */
#include "tests/unit/service.h"

#include <check.h>
#include <poll.h>

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
    grt_pool_cancel(pool); /* those that wait are called back, too */
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

Suite *suite_test_service_queue(void);
Suite *suite_test_service_queue(void)
{
    Suite *suite = suite_create("service queue");
    TCase *tc = tcase_create("service queue");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_full_queue, 0, N_DEVICES);
    tcase_add_loop_test(tc, called_back_by_priority, 0, N_DEVICES);
    tcase_add_loop_test(tc, collected, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

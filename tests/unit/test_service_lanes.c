/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of a pool: several models, shares of a device's time, runs at once. */
#include "tests/unit/service.h"

#include <check.h>
#include <string.h>

/* How many of the first SEEN runs are the second lane's, where the first has three times its share. */
enum { SEEN = 20 };
static int runs_of_lesser_share(const char *device)
{
    static const int64_t some = 20000;
    grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = SEEN};
    grt_pool *pool = service_open_pool(service_open_loop(), device, &options);
    options.share = 3;
    ck_assert_uint_eq(service_add_lane(pool, service_open_loop(), device, &options), 1);
    options.share = 1;
    ck_assert_uint_eq(service_add_lane(pool, service_open_loop(), device, &options), 2);
    grt_request *running = service_block(pool); /* in lane 0 */
    service_n_called = 0;
    for (int i = 0; i < SEEN; i++) {
        service_call_back(pool, &some, 1, 0, 1);
        service_call_back(pool, &some, 2, 0, 2);
    }
    grt_request_cancel(running);
    service_expect(running, GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    ck_assert_int_eq(service_n_called, 2 * SEEN);
    int of_lesser = 0;
    for (int i = 0; i < SEEN; i++)
        of_lesser += service_called[i] == 2;
    grt_pool_release(pool);
    return of_lesser;
}

/* While both have requests, the lane with three times the share gets three times the time: 5 of 20 runs are
 * the other's. A run that the machine interrupts counts with all its time, so that a disturbed trial says
 * nothing. */
START_TEST(shares)
{
    int of_lesser = 0;
    for (int trial = 0; trial < 10 && (of_lesser < 2 || of_lesser > 9); trial++)
        of_lesser = runs_of_lesser_share(devices[_i]);
    ck_assert_msg(of_lesser >= 2 && of_lesser <= 9, "%d of %d", of_lesser, SEEN);
}
END_TEST

/* Two lanes of two contexts: a device that copies while it computes has one more at work than a lane has
 * contexts, if it is not told how many, and not beside one of higher priority. */
START_TEST(at_work_together)
{
    const bool copies = strncmp(devices[_i], "cpu", 3) != 0;
    for (int told = 0; told < 2; told++)
        for (int32_t priority = 0; priority < 2; priority++) {
            grt_pool_options options = {
                .struct_size = sizeof options, .contexts = 2, .queue = 8, .device_runs = told ? 3 : 0};
            grt_pool *pool = service_open_pool(service_open_loop(), devices[_i], &options);
            grt_pool_stats stats = {.struct_size = sizeof stats};
            grt_request *all[4];
            options.device_runs = 0;
            ck_assert_uint_eq(service_add_lane(pool, service_open_loop(), devices[_i], &options), 1);
            for (size_t i = 0; i < 4; i++) {
                loop_call c;
                service_loop_of(&c, &service_for_ever)->s.lane = i / 2;
                c.s.priority = i < 2 ? priority : 0;
                all[i] = service_submit(pool, &c.s); /* at work at once, if there is a place */
            }
            ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
            ck_assert_uint_eq(stats.running, 2);
            ck_assert_int_eq(grt_pool_get_stats(pool, 1, &stats), GRT_OK);
            ck_assert_uint_eq(stats.running, told || (copies && !priority) ? 1 : 0);
            grt_pool_cancel(pool);
            for (size_t i = 0; i < 4; i++)
                service_expect(all[i], GRT_STATUS_CANCELLED);
            grt_pool_release(pool);
        }
}
END_TEST

START_TEST(several_models)
{
    grt_pool_options options = {.struct_size = sizeof options, .contexts = 2};
    grt_pool *pool = service_open_pool(service_open_loop(), devices[_i], &options);
    const size_t lane = service_add_lane(pool, service_open_rows(), devices[_i], &options);
    float x[3] = {1, 2, 3};
    int64_t index[1] = {2};
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 3}, .data = x},
                             {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {1}, .data = index}};
    grt_submission s = {.struct_size = sizeof s, .lane = lane, .inputs = in, .n_inputs = 2};
    grt_tensor y;
    for (int i = 0; i < 20; i++) {
        grt_request *a = service_run_loop(pool, &service_three), *b = service_submit(pool, &s);
        ck_assert_msg(grt_request_wait(b) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_request_get_output(b, 0, &y), GRT_OK);
        ck_assert_float_eq(((float *)y.data)[1], 2 + 7);
        grt_request_release(b);
        service_expect(a, GRT_OK);
    }
    grt_request *none = NULL;
    s.lane = 2;
    ck_assert_int_eq(grt_pool_submit_with(pool, &s, &none), GRT_STATUS_INVALID_ARGUMENT);
    grt_pool_release(pool);
}
END_TEST

Suite *suite_test_service_lanes(void);
Suite *suite_test_service_lanes(void)
{
    Suite *suite = suite_create("service lanes");
    TCase *tc = tcase_create("service lanes");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, shares, 0, N_DEVICES);
    tcase_add_loop_test(tc, at_work_together, 0, N_DEVICES);
    tcase_add_loop_test(tc, several_models, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

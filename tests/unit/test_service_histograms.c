/* SPDX-License-Identifier: Apache-2.0 */
/* The histograms of a pool's phases. On the CPU and on the mirror. */
#include "tests/unit/service.h"

#include <check.h>
#include <math.h>

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

Suite *suite_test_service_histograms(void);
Suite *suite_test_service_histograms(void)
{
    Suite *suite = suite_create("service histograms");
    TCase *tc = tcase_create("service histograms");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, histograms, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

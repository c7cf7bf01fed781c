/* SPDX-License-Identifier: Apache-2.0 */
/* Waits beside busy neighbours: when processors count as oversubscribed, and what follows. */
#include "src/base/oversubscription.h"

#include <check.h>
#include <dirent.h>
#include <omp.h>
#include <unistd.h>

static const int64_t ms = 1000000;

/* Judge a thread that ran and waited so many milliseconds since the start. */
static bool judge(bool oversubscribed, int64_t ran, int64_t waited)
{
    grt_oversubscription_sample start = {5 * ms, 7 * ms};
    return grt_oversubscription_judge(oversubscribed, &start,
                                      (grt_oversubscription_sample){(5 + ran) * ms, (7 + waited) * ms});
}

START_TEST(waiting_for_a_processor_is_oversubscription)
{
    ck_assert(judge(false, 30, 30));
    ck_assert(judge(true, 30, 30));
    ck_assert(!judge(false, 100, 1));
    ck_assert(!judge(true, 100, 1));
}
END_TEST

START_TEST(between_the_limits_it_stays)
{
    ck_assert(!judge(false, 90, 10));
    ck_assert(judge(true, 90, 10));
}
END_TEST

START_TEST(little_says_nothing)
{
    grt_oversubscription_sample start = {0};
    ck_assert(!grt_oversubscription_judge(false, &start, (grt_oversubscription_sample){5 * ms, 9 * ms}));
    ck_assert_int_eq(start.waited_ns, 0); /* it adds up */
    ck_assert(grt_oversubscription_judge(false, &start, (grt_oversubscription_sample){10 * ms, 18 * ms}));
    ck_assert_int_eq(start.waited_ns, 18 * ms);
}
END_TEST

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));)
        n += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return n;
}

/* A thread that has ended is listed a little longer: up to a minute. */
static bool has_at_most(int threads)
{
    for (int i = 0; i < 60000; i++, usleep(1000))
        if (count_threads() <= threads)
            return true;
    return false;
}

/* True when there are more threads than processors. A thread that could not be made is asked for again. */
static bool lay_down(void)
{
    for (int i = 0; i < 60000; i++, usleep(1000)) {
        grt_oversubscription_shorten_waits(true, 1);
        if (count_threads() > omp_get_num_procs())
            return true;
    }
    return false;
}

/* Each round begins when the threads of the one before are gone, as those would be counted, too. */
START_TEST(sleepers_come_and_go)
{
    if (omp_get_num_procs() >= 64)
        return; /* so many threads are not made */
    const int before = count_threads();
    for (int i = 0; i < 3; i++) {
        ck_assert(lay_down());
        grt_oversubscription_shorten_waits(false, 1);
        ck_assert(has_at_most(before));
    }
    ck_assert(lay_down());
    grt_oversubscription_end();
    ck_assert(has_at_most(before));
    grt_oversubscription_end();
}
END_TEST

Suite *suite_test_oversubscription(void)
{
    Suite *suite = suite_create("oversubscription");
    TCase *tcase = tcase_create("oversubscription");
    tcase_add_test(tcase, waiting_for_a_processor_is_oversubscription);
    tcase_add_test(tcase, between_the_limits_it_stays);
    tcase_add_test(tcase, little_says_nothing);
    tcase_add_test(tcase, sleepers_come_and_go);
    suite_add_tcase(suite, tcase);
    return suite;
}

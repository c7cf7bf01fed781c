/* SPDX-License-Identifier: Apache-2.0 */
/* Background jobs: all are done, in order, by one thread; removed and late ones are dropped. */
#include "src/base/background.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS = 20 };
static atomic_int n_run, n_dropped, order[JOBS];
static sem_t gate; /* of the first job */
static int numbers[JOBS];

static void note_run(void *data)
{
    order[atomic_fetch_add(&n_run, 1)] = *(const int *)data;
}

static void note_drop(void *data)
{
    (void)data;
    atomic_fetch_add(&n_dropped, 1);
}

static void wait_at_gate(void *data)
{
    while (sem_wait(&gate) != 0)
        ;
    note_run(data);
}

static grt_background *background_with_jobs(int n)
{
    grt_background *b;
    ck_assert_int_eq(grt_background_create(&b), GRT_OK);
    for (int i = 0; i < n; i++) {
        numbers[i] = i;
        const grt_job job = {i ? note_run : wait_at_gate, note_drop, &numbers[i]};
        ck_assert(grt_background_add(b, &job));
    }
    return b;
}

START_TEST(done_in_order)
{
    sem_init(&gate, 0, 1);
    grt_background *b = background_with_jobs(JOBS);
    grt_background_settle(b);
    ck_assert_int_eq(n_run, JOBS);
    ck_assert_int_eq(n_dropped, JOBS);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(order[i], i);
    const unsigned before = grt_background_rounds(b);
    ck_assert_uint_gt(before, 0);
    const grt_job again = {note_run, note_drop, &numbers[0]};
    n_run = 0;
    ck_assert(grt_background_add(b, &again)); /* a thread of its own */
    grt_background_settle(b);
    ck_assert_int_eq(n_run, 1);
    ck_assert_uint_gt(grt_background_rounds(b), before);
    grt_background_release(b);
}
END_TEST

START_TEST(removed_is_dropped)
{
    sem_init(&gate, 0, 0);
    grt_background *b = background_with_jobs(4);
    ck_assert(grt_background_remove(b, &numbers[3]));
    ck_assert(grt_background_remove(b, &numbers[1]));
    ck_assert(!grt_background_remove(b, &numbers[1]));
    ck_assert_int_eq(n_dropped, 2);
    const grt_job last = {note_run, note_drop, &numbers[3]};
    ck_assert(grt_background_add(b, &last));
    sem_post(&gate);
    grt_background_settle(b);
    ck_assert_int_eq(n_run, 3);
    ck_assert_int_eq(order[1], 2);
    ck_assert_int_eq(order[2], 3);
    grt_background_release(b);
    ck_assert_int_eq(n_dropped, 5);
}
END_TEST

static void *open_gate(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    sem_post(&gate);
    return NULL;
}

/* The release waits for the job that runs, not for those behind it. */
START_TEST(released_while_it_works)
{
    pthread_t opener;
    sem_init(&gate, 0, 0);
    grt_background *b = background_with_jobs(JOBS);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    pthread_create(&opener, NULL, open_gate, NULL);
    grt_background_release(b);
    pthread_join(opener, NULL);
    ck_assert_int_le(n_run, 1);
    ck_assert_int_eq(n_dropped, JOBS);
    grt_background_release(NULL);
}
END_TEST

/* Its child has the jobs, but no thread that does them. */
START_TEST(forked_while_it_works)
{
    sem_init(&gate, 0, 0);
    grt_background *b = background_with_jobs(3);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    const pid_t child = fork();
    if (!child) {
        grt_background_settle(b);
        grt_background_stop(b);
        grt_background_release(b);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    sem_post(&gate);
    grt_background_settle(b);
    ck_assert_int_eq(n_run, 3);
    grt_background_release(b);
}
END_TEST

UNIT_SUITE(test_background, NULL, NULL, done_in_order, removed_is_dropped, released_while_it_works,
           forked_while_it_works)

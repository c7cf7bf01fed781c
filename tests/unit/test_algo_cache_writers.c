/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of algorithms under many writers, threads and processes, of which some are killed. */
#include "src/algos/db.h"
#include "tests/unit/algo_cache.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- many writers ---- */

enum { PROCESSES = 3, THREADS = 2, ROWS = 10 }; /* each row waits for the disk, and for the other writers */

static void *write_rows(void *arg)
{
    const int who = *(int *)arg;
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    for (int i = 0; i < ROWS; i++) {
        char key[64], data[64];
        snprintf(key, sizeof key, "op=A;who=%d;row=%d;", who, i);
        snprintf(data, sizeof data, "%d-%d", who, i);
        algo_put(&a, key, data, GRT_CHOICE_HEURISTIC);
        algo_put(&a, "op=A;everybody;", data, GRT_CHOICE_HEURISTIC);
        grt_algo_cache_save(cache);
    }
    const bool good = !*algo_warnings(cache);
    if (!good)
        fprintf(stderr, "%s\n", algo_warnings(cache));
    grt_algo_cache_release(cache);
    return good ? NULL : arg;
}

static int write_from_threads(int process)
{
    pthread_t threads[THREADS];
    int who[THREADS], bad = 0;
    for (int t = 0; t < THREADS; t++) {
        who[t] = process * THREADS + t;
        pthread_create(&threads[t], NULL, write_rows, &who[t]);
    }
    for (int t = 0; t < THREADS; t++) {
        void *result;
        pthread_join(threads[t], &result);
        bad += result != NULL;
    }
    return bad;
}

START_TEST(many_writers_at_once)
{
    pid_t pids[PROCESSES];
    for (int p = 0; p < PROCESSES; p++)
        if ((pids[p] = fork()) == 0)
            _exit(write_from_threads(p));
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        ck_assert_int_eq(waitpid(pids[p], &status, 0), pids[p]);
        ck_assert_int_eq(status, 0);
    }
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    for (int who = 0; who < PROCESSES * THREADS; who++)
        for (int i = 0; i < ROWS; i++) {
            char key[64], data[64];
            snprintf(key, sizeof key, "op=A;who=%d;row=%d;", who, i);
            snprintf(data, sizeof data, "%d-%d", who, i);
            ck_assert_str_eq(algo_get(&a, key), data);
        }
    ck_assert_str_ne(algo_get(&a, "op=A;everybody;"), "");
    ck_assert_str_eq(algo_warnings(cache), "");
    grt_algo_cache_release(cache);
}
END_TEST

/* ---- the first writers ---- */

enum { FIRST_WRITERS = 4, NEW_FILES = 100 };

static void *write_one_row(void *arg)
{
    const int who = *(int *)arg;
    char key[64];
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    snprintf(key, sizeof key, "op=A;who=%d;", who);
    algo_put(&a, key, "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    grt_algo_cache_release(cache);
    return NULL;
}

/* A thread that makes the file must not take away the locks of another that has begun to write to it: POSIX
 * locks belong to the process, and closing any descriptor of the file ends them. */
START_TEST(first_writers_at_once)
{
    for (int round = 0; round < NEW_FILES; round++) {
        pthread_t threads[FIRST_WRITERS];
        int who[FIRST_WRITERS];
        pid_t pid = fork();
        for (int t = 0; t < FIRST_WRITERS; t++) {
            who[t] = t + (pid == 0) * FIRST_WRITERS;
            pthread_create(&threads[t], NULL, write_one_row, &who[t]);
        }
        for (int t = 0; t < FIRST_WRITERS; t++)
            pthread_join(threads[t], NULL);
        if (pid == 0)
            _exit(0);
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        grt_device_algos a;
        grt_algo_cache *cache = algo_open(&a);
        for (int t = 0; t < 2 * FIRST_WRITERS; t++) {
            char key[64];
            snprintf(key, sizeof key, "op=A;who=%d;", t);
            ck_assert_msg(!strcmp(algo_get(&a, key), "x"), "round %d: the row of writer %d is gone", round,
                          t);
        }
        grt_algo_cache_release(cache);
        ck_assert_int_eq(unlink(algo_path), 0);
    }
}
END_TEST

/* ---- killed in the middle ---- */

#define KILLS "GRT_TEST_KILLS" /* as many, not 40 */
enum { GROUP = 5 };

/* Rows are written in groups, each in one transaction; all rows of a group hold the same number. A byte goes
 * to `done` for each group. */
static void write_forever(unsigned seed, int done)
{
    for (unsigned round = 0;; round++) {
        grt_choice rows[GROUP];
        char keys[GROUP][32], data[512];
        memset(data, 'x', sizeof data);
        snprintf(data, sizeof data, "%u", seed * 100000 + round);
        for (int i = 0; i < GROUP; i++) {
            snprintf(keys[i], sizeof keys[i], "op=K;group=%u;row=%d;", round % 40, i);
            rows[i] = (grt_choice){
                .key = keys[i], .data = data, .size = sizeof data, .source = GRT_CHOICE_HEURISTIC};
        }
        if (grt_algo_db_write(algo_path, rows, GROUP) != GRT_OK) {
            fprintf(stderr, "%s\n", grt_last_error());
            _exit(1);
        }
        if (write(done, "", 1) != 1)
            _exit(1);
    }
}

typedef struct groups {
    int n;
    char number[32], group[32];
    bool torn;
} groups;

static void check_group(void *user, const grt_choice *row)
{
    groups *g = user;
    char group[32];
    ck_assert_int_eq(sscanf(row->key, "op=K;group=%31[0-9];", group), 1);
    if (g->n % GROUP) /* rows come in order of key */
        g->torn = g->torn || strcmp(g->number, row->data) || strcmp(g->group, group);
    snprintf(g->number, sizeof g->number, "%s", (const char *)row->data);
    strcpy(g->group, group);
    g->n++;
}

/* Each round ends when some groups more have been written: at any moment of the writing of the next ones. */
START_TEST(killed_in_the_middle)
{
    const char *wanted = getenv(KILLS);
    const int kills = wanted ? atoi(wanted) : 40;
    int total = 0;
    for (int k = 0; k < kills; k++) {
        pid_t pids[2];
        int done[2];
        char byte;
        ck_assert_int_eq(pipe(done), 0);
        for (int p = 0; p < 2; p++)
            if ((pids[p] = fork()) == 0)
                write_forever((unsigned)(k * 2 + p), done[1]);
        close(done[1]);
        for (int written = 0; written <= k % 3; written++)
            ck_assert_int_eq(read(done[0], &byte, 1), 1);
        for (int p = 0; p < 2; p++) {
            int status;
            kill(pids[p], SIGKILL);
            ck_assert_int_eq(waitpid(pids[p], &status, 0), pids[p]);
            ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        close(done[0]);
        groups g = {0};
        size_t damaged = 0;
        ck_assert_msg(grt_algo_db_read(algo_path, check_group, &g, &damaged) == GRT_OK, "kill %d: %s", k,
                      grt_last_error());
        ck_assert_uint_eq(damaged, 0);
        ck_assert_int_eq(g.n % GROUP, 0);
        ck_assert(!g.torn);
        total += g.n;
    }
    ck_assert_int_gt(total, 0);
}
END_TEST

Suite *suite_test_algo_cache_writers(void);
Suite *suite_test_algo_cache_writers(void)
{
    Suite *suite = suite_create("algo cache writers");
    TCase *tests = tcase_create("algo cache writers");
    tcase_add_checked_fixture(tests, algo_setup, algo_teardown);
    if (getenv(KILLS))
        tcase_set_timeout(tests, 900);
    tcase_add_test(tests, first_writers_at_once);
    tcase_add_test(tests, many_writers_at_once);
    tcase_add_test(tests, killed_in_the_middle);
    suite_add_tcase(suite, tests);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that call a pool run requests whose dims a context is prepared for. New dims are prepared by the
 * context's own thread, whoever waits, and so are the graphs of a device, which the second run makes. */
#include "tests/unit/service.h"

#include <check.h>
#include <pthread.h>
#include <unistd.h>

enum { MOST_ROWS = 6 };

static pthread_t client;
static atomic_int prepared_by_client, captured_by_client, prepared_by_others, run_by_client;

static void note_span(void *user, const grt_span *span)
{
    (void)user;
    const bool mine = pthread_equal(pthread_self(), client);
    if (span->kind == GRT_SPAN_PREPARE)
        atomic_fetch_add(mine ? &prepared_by_client : &prepared_by_others, 1);
    if (span->kind == GRT_SPAN_CAPTURE && mine)
        atomic_fetch_add(&captured_by_client, 1);
    if (span->kind == GRT_SPAN_RUN && mine)
        atomic_fetch_add(&run_by_client, 1);
}

static grt_tensor rows_of(int64_t rows, bool index)
{
    static float x[MOST_ROWS * 3];
    static int64_t at[MOST_ROWS];
    return index ? (grt_tensor){.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {rows}, .data = at}
                 : (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 3}, .data = x};
}

static void run_rows(grt_pool *pool, int64_t rows)
{
    const grt_tensor in[] = {rows_of(rows, false), rows_of(rows, true)};
    OK(grt_pool_run(pool, in, 2, NULL, 0));
}

static void wait_for_rows(grt_pool *pool, int64_t rows)
{
    const grt_tensor in[] = {rows_of(rows, false), rows_of(rows, true)};
    grt_request *r;
    OK(grt_pool_submit(pool, in, 2, NULL, 0, &r));
    OK(grt_request_wait(r));
    grt_request_release(r);
}

static grt_pool *open_listened(int device, int32_t max_batch)
{
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .max_batch = max_batch};
    client = pthread_self();
    grt_pool *pool = service_open_pool(service_open_rows(), devices[device], &options);
    grt_trace_set(note_span, NULL);
    return pool;
}

START_TEST(clients_run_what_is_prepared)
{
    enum { ROUNDS = 20, MOST_ROUNDS = 2000 };
    grt_pool *pool = open_listened(_i, 0);
    /* A context may not be free at once, less so on a busy machine. */
    for (int round = 0; round < ROUNDS || (run_by_client < MOST_ROWS && round < MOST_ROUNDS); round++)
        for (int64_t rows = 1; rows <= MOST_ROWS; rows++) {
            (round % 2 ? run_rows : wait_for_rows)(pool, rows);
            if (round >= ROUNDS)
                usleep(1000);
        }
    grt_trace_set(NULL, NULL);
    ck_assert_int_eq(prepared_by_client, 0);
    ck_assert_int_eq(captured_by_client, 0);
    ck_assert_int_eq(prepared_by_others, MOST_ROWS);
    ck_assert_int_ge(run_by_client, MOST_ROWS);
    grt_pool_release(pool);
}
END_TEST

/* Three rows are padded to four: that is what the context is prepared for. */
START_TEST(padded_rows_are_counted_in)
{
    grt_pool *pool = open_listened(_i, 8);
    for (int round = 0; round < 20; round++) {
        wait_for_rows(pool, 3);
        wait_for_rows(pool, 4);
    }
    grt_trace_set(NULL, NULL);
    ck_assert_int_eq(prepared_by_client, 0);
    ck_assert_int_eq(prepared_by_others, 1);
    grt_pool_release(pool);
}
END_TEST

Suite *suite_test_prepared(void);
Suite *suite_test_prepared(void)
{
    Suite *suite = suite_create("prepared");
    TCase *tc = tcase_create("prepared");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_add_loop_test(tc, clients_run_what_is_prepared, 0, N_DEVICES);
    tcase_add_loop_test(tc, padded_rows_are_counted_in, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

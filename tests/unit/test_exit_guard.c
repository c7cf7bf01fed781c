/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end while threads of the library are at work: exit() waits for them before the destructors
 * of libraries run, not for ever, and not for its own thread. */
#include "src/base/background.h"
#include "src/base/exit_guard.h"
#include "tests/unit/service.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* TAKES_MS: of a job. NO_WAIT_MS: half of what the guard waits for a job that does not end, far more than
 * anything else takes on a machine with other work. The exit statuses of children. */
enum { TAKES_MS = 300, NO_WAIT_MS = 5000, ALL_DONE = 40, NOT_DONE = 41, WAITED_LONG = 42, BEGAN_MORE = 43 };

static atomic_int jobs_begun, jobs_done;
static int wanted_done, most_begun = 1000;
static double exit_ms, most_exit_ms = 1e6;

/* In the place of a library's destructor, which is registered before anything is at work. */
static void judge_end(void)
{
    const bool late = grt_clock_ms() - exit_ms > most_exit_ms;
    _exit(late                                     ? WAITED_LONG
          : atomic_load(&jobs_begun) > most_begun  ? BEGAN_MORE
          : atomic_load(&jobs_done) >= wanted_done ? ALL_DONE
                                                   : NOT_DONE);
}

static _Noreturn void end_process(void)
{
    exit_ms = grt_clock_ms();
    exit(0);
}

static void expect_end(void (*run)(void))
{
    int status = -1;
    const pid_t child = fork();
    if (!child) {
        if (atexit(judge_end) == 0)
            run();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == ALL_DONE, "status %#x", (unsigned)status);
}

/* ---- background jobs ---- */

static void take_time(void *data)
{
    (void)data;
    atomic_fetch_add(&jobs_begun, 1);
    service_sleep_ms(TAKES_MS);
    atomic_fetch_add(&jobs_done, 1);
}

static void take_for_ever(void *data)
{
    (void)data;
    atomic_fetch_add(&jobs_begun, 1);
    for (;;)
        pause();
}

static void end_in_job(void *data)
{
    (void)data;
    end_process();
}

static void drop_nothing(void *data)
{
    (void)data;
}

static grt_background *begin_job(void (*job)(void *data))
{
    grt_background *b;
    const grt_job first = {job, drop_nothing, NULL}, second = {take_time, drop_nothing, &jobs_done};
    if (grt_background_create(&b) != GRT_OK || !grt_background_add(b, &first) ||
        !grt_background_add(b, &second))
        _exit(0);
    return b;
}

static void end_beside_job(void)
{
    wanted_done = most_begun = 1; /* the second does not begin */
    begin_job(take_time);
    while (!atomic_load(&jobs_begun))
        service_sleep_ms(1);
    end_process();
}

START_TEST(waits_for_the_job_at_work)
{
    expect_end(end_beside_job);
}
END_TEST

static void end_in_a_job(void)
{
    most_exit_ms = NO_WAIT_MS;
    begin_job(end_in_job);
    for (;;)
        pause();
}

START_TEST(does_not_wait_for_itself)
{
    expect_end(end_in_a_job);
}
END_TEST

static void end_forked(void)
{
    begin_job(take_for_ever);
    while (!atomic_load(&jobs_begun))
        service_sleep_ms(1);
    const pid_t child = fork();
    int status = -1;
    if (!child) {
        most_exit_ms = NO_WAIT_MS;
        end_process();
    }
    waitpid(child, &status, 0);
    _exit(WEXITSTATUS(status));
}

START_TEST(children_have_nothing_to_wait_for)
{
    expect_end(end_forked);
}
END_TEST

/* As libraries do in the midst of their work: behind the guard's own handler. */
static void register_late(void *data)
{
    if (atexit(judge_end) != 0)
        _exit(0);
    take_time(data);
}

static void end_beside_late_handler(void)
{
    wanted_done = 1;
    begin_job(register_late);
    while (!atomic_load(&jobs_begun))
        service_sleep_ms(1);
    end_process();
}

START_TEST(waits_before_handlers_that_are_newer)
{
    expect_end(end_beside_late_handler);
}
END_TEST

static void *end_in_thread(void *unused)
{
    grt_exit_guard_register();
    end_beside_job();
    return unused;
}

static void end_from_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

START_TEST(any_thread_may_call_exit)
{
    expect_end(end_from_a_thread);
}
END_TEST

/* A thread that ends while the process goes on waits for nothing. */
static void *do_nothing(void *unused)
{
    grt_exit_guard_register();
    return unused;
}

static void end_a_thread(void)
{
    pthread_t thread;
    begin_job(take_for_ever);
    while (!atomic_load(&jobs_begun))
        service_sleep_ms(1);
    exit_ms = grt_clock_ms();
    most_exit_ms = NO_WAIT_MS;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
    judge_end();
}

START_TEST(threads_may_end)
{
    expect_end(end_a_thread);
}
END_TEST

static void end_in_sections(void)
{
    grt_exit_guard_register();
    grt_exit_guard_register();
    grt_exit_guard_enter();
    grt_exit_guard_enter();
    grt_exit_guard_leave();
    most_exit_ms = NO_WAIT_MS;
    end_process(); /* in a section still */
}

START_TEST(sections_nest)
{
    expect_end(end_in_sections);
}
END_TEST

/* ---- pools ---- */

static void count_answer(void *user, grt_request *request)
{
    (void)user;
    (void)request;
    atomic_fetch_add(&jobs_done, 1);
}

static void end_in_answer(void *user, grt_request *request)
{
    (void)user;
    (void)request;
    end_process();
}

static void submit_for_ever(grt_pool *pool, int n, const int64_t *trips,
                            void (*done)(void *user, grt_request *request))
{
    for (int i = 0; i < n; i++) {
        loop_call c;
        service_loop_of(&c, trips)->s.done = done;
        if (grt_pool_submit_with(pool, &c.s, NULL) != GRT_OK)
            _exit(0);
    }
}

static const int64_t many_trips = 2000;
static int with_device;

static void end_beside_requests(void)
{
    runtime_open();
    wanted_done = 4;
    submit_for_ever(service_open_small(with_device), wanted_done, &many_trips, count_answer);
    end_process();
}

START_TEST(requests_are_answered)
{
    with_device = _i;
    expect_end(end_beside_requests);
}
END_TEST

/* Three wait behind one that would never end: all are cancelled after a second. */
static void end_beside_endless(void)
{
    runtime_open();
    wanted_done = 4;
    most_exit_ms = SERVICE_LONG_MS;
    submit_for_ever(service_open_small(with_device), wanted_done, &service_for_ever, count_answer);
    end_process();
}

START_TEST(endless_requests_are_cancelled)
{
    with_device = _i;
    expect_end(end_beside_endless);
}
END_TEST

static void end_in_callback(void)
{
    runtime_open();
    most_exit_ms = SERVICE_LONG_MS;
    grt_pool *pool = service_open_small(with_device);
    submit_for_ever(pool, 1, &service_three, end_in_answer);
    submit_for_ever(pool, 2, &service_for_ever, count_answer);
    for (;;)
        pause();
}

START_TEST(a_callback_may_end_the_process)
{
    with_device = _i;
    expect_end(end_in_callback);
}
END_TEST

static void never_return(void *user, grt_request *request)
{
    (void)user;
    (void)request;
    atomic_fetch_add(&jobs_begun, 1);
    for (;;)
        pause();
}

/* As one does that waits for a lock of the thread that ends the process: a second is what it gets. */
static void end_beside_callback(void)
{
    runtime_open();
    most_exit_ms = SERVICE_LONG_MS / 4.0;
    submit_for_ever(service_open_small(with_device), 1, &service_three, never_return);
    while (!atomic_load(&jobs_begun))
        service_sleep_ms(1);
    end_process();
}

START_TEST(callbacks_may_take_for_ever)
{
    with_device = _i;
    expect_end(end_beside_callback);
}
END_TEST

#if !defined __SANITIZE_ADDRESS__
/* Destructors of libraries do run here, beside requests of new dims, which make kernels. */
static void submit_many(grt_pool *pool)
{
    enum { REQUESTS = 200, MOST_ROWS = 20 };
    static float x[MOST_ROWS * 3];
    static int64_t index[MOST_ROWS];
    for (int i = 0; i < REQUESTS; i++) {
        const int64_t rows = 1 + i % MOST_ROWS;
        const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 3}, .data = x},
                                 {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {rows}, .data = index}};
        const grt_submission s = {.struct_size = sizeof s, .inputs = in, .n_inputs = 2, .done = count_answer};
        if (grt_pool_submit_with(pool, &s, NULL) != GRT_OK)
            _exit(1);
    }
}

START_TEST(libraries_end_behind_requests)
{
    enum { TIMES = 10 };
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 4, .queue = 250};
    for (int i = 0; i < TIMES; i++) {
        int status = -1;
        const pid_t child = fork();
        if (!child) {
            runtime_open();
            submit_many(service_open_pool(service_open_rows(), devices[_i], &options));
            service_sleep_ms(i);
            exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
    }
}
END_TEST
#endif

/* A program's own exit handler may come later, as the destructor of a static object does. */
static grt_pool *kept;

static void release_pool(void)
{
    submit_for_ever(kept, 1, &service_three, count_answer);
    grt_pool_release(kept);
}

static void end_with_release(void)
{
    runtime_open();
    wanted_done = 2;
    if (atexit(release_pool) != 0)
        _exit(0);
    kept = service_open_small(with_device);
    submit_for_ever(kept, 1, &service_three, count_answer);
    end_process();
}

START_TEST(pools_serve_exit_handlers)
{
    with_device = _i;
    expect_end(end_with_release);
}
END_TEST

Suite *suite_test_exit_guard(void);
Suite *suite_test_exit_guard(void)
{
    Suite *suite = suite_create("exit guard");
    TCase *tc = tcase_create("exit guard");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, waits_for_the_job_at_work);
    tcase_add_test(tc, does_not_wait_for_itself);
    tcase_add_test(tc, children_have_nothing_to_wait_for);
    tcase_add_test(tc, waits_before_handlers_that_are_newer);
    tcase_add_test(tc, any_thread_may_call_exit);
    tcase_add_test(tc, threads_may_end);
    tcase_add_test(tc, sections_nest);
    tcase_add_loop_test(tc, requests_are_answered, 0, N_DEVICES);
    tcase_add_loop_test(tc, endless_requests_are_cancelled, 0, N_DEVICES);
    tcase_add_loop_test(tc, a_callback_may_end_the_process, 0, N_DEVICES);
    tcase_add_loop_test(tc, callbacks_may_take_for_ever, 0, N_DEVICES);
#if !defined __SANITIZE_ADDRESS__ /* which would count all that is left open as leaks */
    tcase_add_loop_test(tc, libraries_end_behind_requests, 0, N_DEVICES);
#endif
    tcase_add_loop_test(tc, pools_serve_exit_handlers, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

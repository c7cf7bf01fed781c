/* SPDX-License-Identifier: Apache-2.0 */
/* Pools in processes that disturb them: threads are cancelled (pthread_cancel) while they wait or serve,
 * signals come all the time, and descriptors are closed. Nothing is lost, and nobody waits for ever. */
#include "tests/unit/service.h"

#include <check.h>
#include <graphrt/processes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- threads that are cancelled ---- */

typedef struct victim {
    grt_pool *pool;
    grt_request *request;
    loop_call call;
    grt_status status;
    atomic_int began, returned;
} victim;

static grt_status wait_for_request(victim *v)
{
    return grt_request_wait(v->request);
}

static grt_status wait_until_late(victim *v)
{
    return grt_request_wait_until(v->request, grt_clock_ms() + SERVICE_LONG_MS);
}

static grt_status run_for_ever(victim *v)
{
    return grt_pool_run(v->pool, v->call.in, 2, NULL, 0);
}

static grt_status drain_pool(victim *v)
{
    return grt_pool_drain(v->pool, grt_clock_ms() + SERVICE_LONG_MS);
}

/* The queue is full. */
static grt_status submit_more(victim *v)
{
    enum { MORE = 4 };
    grt_request *open[MORE] = {0};
    grt_status status = GRT_OK;
    for (int i = 0; i < MORE && status == GRT_OK; i++)
        status = grt_pool_submit_with(v->pool, &v->call.s, &open[i]);
    for (int i = 0; i < MORE; i++)
        grt_request_release(open[i]);
    return status;
}

static const struct {
    grt_status (*call)(victim *v);
    bool idle; /* nothing is at work before */
} cancelled_calls[] = {{wait_for_request, false}, {wait_until_late, false}, {run_for_ever, false},
                       {run_for_ever, true},      {drain_pool, false},      {submit_more, false}};
enum { N_CANCELLED_CALLS = sizeof cancelled_calls / sizeof *cancelled_calls };

static int at_call;

static void *call_and_end(void *user)
{
    victim *v = user;
    atomic_store(&v->began, 1);
    v->status = cancelled_calls[at_call].call(v);
    atomic_store(&v->returned, 1);
    pthread_testcancel();
    return NULL;
}

START_TEST(threads_are_cancelled)
{
    enum { A_WHILE_MS = 20 };
    for (at_call = 0; at_call < N_CANCELLED_CALLS; at_call++) {
        victim v = {.pool = service_open_small(_i)};
        pthread_t thread;
        void *result;
        service_loop_of(&v.call, &service_for_ever);
        grt_request *running = cancelled_calls[at_call].idle ? NULL : service_block(v.pool);
        v.request = running;
        ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &v), 0);
        while (!atomic_load(&v.began))
            service_sleep_ms(1);
        service_sleep_ms(A_WHILE_MS);
        ck_assert_int_eq(pthread_cancel(thread), 0);
        service_sleep_ms(A_WHILE_MS);
        ck_assert_int_eq(atomic_load(&v.returned), 0);
        for (int i = 0; !atomic_load(&v.returned) && i < SERVICE_LONG_MS; i++) {
            grt_pool_cancel(v.pool);
            service_sleep_ms(1);
        }
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_ptr_eq(result, PTHREAD_CANCELED);
        if (running)
            service_expect(running, GRT_STATUS_CANCELLED);
        service_expect(service_run_loop(v.pool, &service_three), GRT_OK);
        grt_pool_release(v.pool);
    }
}
END_TEST

/* ---- signals ---- */

static atomic_long n_signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_signals, 1);
}

/* System calls are interrupted. */
static void send_signals(bool on)
{
    enum { EACH_US = 300 };
    const struct sigaction action = {.sa_handler = on ? count_signal : SIG_IGN};
    const struct itimerval timer = {{0, on ? EACH_US : 0}, {0, on ? EACH_US : 0}};
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static void expect_times(grt_pool *pool)
{
    const double wait_ms = 30;
    grt_request *running = service_block(pool);
    const double begin = grt_clock_ms();
    ck_assert_int_eq(grt_request_wait_until(running, begin + wait_ms), GRT_STATUS_BUSY);
    ck_assert_double_ge(grt_clock_ms(), begin + wait_ms);
    grt_request_cancel(running);
    service_expect(running, GRT_STATUS_CANCELLED);
}

START_TEST(signals_come_all_the_time)
{
    static const char *const device = "cpu";
    const grt_process_options processes = {
        .struct_size = sizeof processes, .program = service_program(), .threads = 1};
    grt_pool *pool = service_open_small(_i);
    grt_model *model = service_open_loop();
    size_t lane = 0;
    send_signals(true);
    OK(grt_pool_add_processes(pool, model, &device, 1, NULL, &processes, &lane));
    expect_times(pool);
    for (int i = 0; i < 50; i++) {
        loop_call c;
        service_loop_of(&c, &service_three)->s.lane = i % 2 ? lane : 0;
        service_expect(service_submit(pool, &c.s), GRT_OK);
    }
    OK(grt_pool_shutdown(pool, 0));
    grt_pool_release(pool);
    send_signals(false);
    ck_assert_int_gt(atomic_load(&n_signals), 50);
    grt_model_release(model);
}
END_TEST

/* ---- descriptors ---- */

/* Whoever polls gets nothing any more, and requests go on. */
START_TEST(a_descriptor_is_closed)
{
    enum { REQUESTS = 5 };
    grt_pool *pool = service_open_small(_i);
    int fd = -1, taken = 0;
    OK(grt_pool_get_fd(pool, &fd));
    ck_assert_int_eq(close(fd), 0);
    for (int i = 0; i < REQUESTS; i++) {
        loop_call c;
        service_loop_of(&c, &service_three)->s.collect = true;
        grt_request *r = service_submit(pool, &c.s);
        OK(grt_request_wait(r));
        OK(grt_pool_drain(pool, 0));
        while (grt_pool_take_done(pool, &r) == GRT_OK) {
            grt_request_release(r);
            taken++;
        }
    }
    ck_assert_int_eq(taken, REQUESTS);
    grt_pool_release(pool);
}
END_TEST

Suite *suite_test_service_disturbed(void);
Suite *suite_test_service_disturbed(void)
{
    Suite *s = suite_create("test_service_disturbed");
    TCase *t = tcase_create("test_service_disturbed");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_set_timeout(t, 120);
#ifndef __SANITIZE_ADDRESS__ /* which takes the stack of a thread that is cancelled for in use when it ends \
                              */
    tcase_add_loop_test(t, threads_are_cancelled, 0, N_DEVICES);
#else
    (void)threads_are_cancelled;
#endif
    tcase_add_loop_test(t, signals_come_all_the_time, 0, N_DEVICES);
    tcase_add_loop_test(t, a_descriptor_is_closed, 0, N_DEVICES);
    suite_add_tcase(s, t);
    return s;
}

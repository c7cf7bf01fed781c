/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of runs and requests: what is told, how it is nested, and that it can be switched on and off while
 * pools work. On the CPU and on the mirror. */
#include "tests/unit/opened.h"
#include "tests/unit/suite.h"

#include <pthread.h>
#include <stdatomic.h>

enum { KINDS = GRT_SPAN_COPY_OUT + 1, REQUESTS = 40, LINE = 4096 };

static grt_span told[LINE];
static atomic_int n_told;
static atomic_int of_kind[KINDS];

static void tell(void *user, const grt_span *span)
{
    const int i = atomic_fetch_add(&n_told, 1);
    ck_assert_ptr_eq(user, told);
    ck_assert_uint_eq(span->struct_size, sizeof *span);
    ck_assert((int)span->kind < KINDS && span->begin_ms <= span->end_ms);
    atomic_fetch_add(&of_kind[span->kind], 1);
    if (i < LINE)
        told[i] = *span;
}

static void forget(void)
{
    atomic_store(&n_told, 0);
    for (int k = 0; k < KINDS; k++)
        atomic_store(&of_kind[k], 0);
}

static const float x[2] = {1, 2};
static const grt_tensor input = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 2}, .data = (void *)x};

/* Two steps on every device: Softmax and CumSum. */
static void open_two_steps(const char *device)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "rows,2");
    onnx_node(&m, m.graph, "Softmax", "x", "s")->name = (char *)"soft";
    onnx_initializer(&m, m.graph, onnx_raw(&m, "axis", GRT_DTYPE_INT64, "", &(int64_t){1}, sizeof(int64_t)));
    onnx_node(&m, m.graph, "CumSum", "s,axis", "y");
    onnx_output(&m, m.graph, "y");
    open_on(&m, NULL, device, NULL);
}

static const grt_span *find(grt_span_kind kind)
{
    for (int i = 0; i < atomic_load(&n_told); i++)
        if (told[i].kind == kind)
            return &told[i];
    return NULL;
}

START_TEST(runs_tell_their_parts)
{
    open_two_steps(devices[_i]);
    OK(grt_context_set_input(context, 0, &input));
    OK(grt_context_run(context));
    ck_assert_int_eq(n_told, 0);
    grt_trace_set(tell, told);
    for (int i = 0; i < 3; i++)
        OK(grt_context_run(context));
    const grt_span *run = find(GRT_SPAN_RUN), *step = find(GRT_SPAN_STEP);
    ck_assert_int_eq(of_kind[GRT_SPAN_RUN], 3);
    ck_assert_int_eq(of_kind[GRT_SPAN_PREPARE], 0);
    ck_assert_str_eq(run->device, _i ? "mirror:0" : "cpu:0");
    ck_assert_int_eq(run->step, -1);
    ck_assert_ptr_nonnull(step);
    ck_assert_str_eq(step->op, "Softmax");
    ck_assert_str_eq(step->name, "soft");
    ck_assert(step->begin_ms >= run->begin_ms && step->end_ms <= run->end_ms);
    if (_i == 0)
        ck_assert_int_eq(of_kind[GRT_SPAN_STEP], 6);
    else
        ck_assert(of_kind[GRT_SPAN_REPLAY] && of_kind[GRT_SPAN_UPLOAD] == 3 && of_kind[GRT_SPAN_WAIT] == 3 &&
                  of_kind[GRT_SPAN_DOWNLOAD] == 3);
    forget();
    const grt_tensor other = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {0, 2}, .data = (void *)x};
    OK(grt_context_set_input(context, 0, &other));
    OK(grt_context_run(context));
    ck_assert_int_eq(of_kind[GRT_SPAN_PREPARE], 1);
    grt_trace_set(NULL, NULL);
    forget();
    OK(grt_context_run(context));
    ck_assert_int_eq(n_told, 0);
    close_all();
}
END_TEST

/* Spans of one thread, beside the clock of the library, in microseconds. */
static struct clocks {
    double before_ms, latest_ms, early_us, late_us, back_us;
} clocks;

static double more(double a, double b)
{
    return a > b ? a : b;
}

static void compare_clocks(void *user, const grt_span *span)
{
    const double now = grt_clock_ms();
    (void)user;
    clocks.late_us = more(clocks.late_us, 1e3 * (span->end_ms - now));
    clocks.early_us = more(clocks.early_us, 1e3 * (clocks.before_ms - span->begin_ms));
    clocks.back_us = more(clocks.back_us, 1e3 * (clocks.latest_ms - span->end_ms));
    clocks.latest_ms = span->end_ms;
}

/* For long enough that their clock is another one than the system's where it can be. */
START_TEST(times_are_of_the_clock)
{
    enum { FOR_MS = 60, OFF_US = 2 };
    open_two_steps("cpu");
    OK(grt_context_set_input(context, 0, &input));
    OK(grt_context_run(context));
    clocks = (struct clocks){.latest_ms = 0};
    grt_trace_set(compare_clocks, NULL);
    for (const double end = grt_clock_ms() + FOR_MS; (clocks.before_ms = grt_clock_ms()) < end;)
        OK(grt_context_run(context));
    grt_trace_set(NULL, NULL);
    ck_assert_msg(clocks.early_us < OFF_US && clocks.late_us < OFF_US && clocks.back_us <= 0,
                  "early by %g us, late by %g us, back by %g us", clocks.early_us, clocks.late_us,
                  clocks.back_us);
    close_all();
}
END_TEST

static grt_pool *pool_with(int32_t max_batch)
{
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 2, .queue = REQUESTS, .max_batch = max_batch};
    grt_pool *pool;
    OK(grt_pool_create(&session, 1, &options, &pool));
    return pool;
}

static void submit_all(grt_pool *pool)
{
    grt_request *requests[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        OK(grt_pool_submit(pool, &input, 1, NULL, 0, &requests[i]));
    for (int i = 0; i < REQUESTS; i++) {
        OK(grt_request_wait(requests[i]));
        grt_request_release(requests[i]);
    }
    OK(grt_pool_drain(pool, 0));
}

/* Each has a number, waits once and is answered once; alone (even) and in batches. */
START_TEST(requests_tell_theirs)
{
    open_two_steps(devices[_i / 2]);
    grt_pool *pool = pool_with(_i % 2 ? 8 : 0);
    grt_trace_set(tell, told);
    submit_all(pool);
    grt_trace_set(NULL, NULL);
    bool seen[REQUESTS + 1] = {false};
    for (int i = 0; i < n_told; i++)
        if (told[i].kind == GRT_SPAN_REQUEST) {
            ck_assert(told[i].request >= 1 && told[i].request <= REQUESTS && !seen[told[i].request]);
            ck_assert_int_eq(told[i].status, GRT_OK);
            seen[told[i].request] = true;
        }
    ck_assert_int_eq(of_kind[GRT_SPAN_REQUEST], REQUESTS);
    ck_assert_int_eq(of_kind[GRT_SPAN_QUEUE], REQUESTS);
    ck_assert_int_eq(of_kind[GRT_SPAN_COPY_OUT], REQUESTS);
    ck_assert_int_eq(of_kind[GRT_SPAN_COPY_IN], of_kind[GRT_SPAN_RUN]);
    ck_assert(_i % 2 ? of_kind[GRT_SPAN_RUN] <= REQUESTS : of_kind[GRT_SPAN_RUN] == REQUESTS);
    grt_pool_release(pool);
    close_all();
}
END_TEST

static void *submit_on_thread(void *arg)
{
    for (int i = 0; i < 5; i++)
        submit_all(arg);
    return NULL;
}

/* The listener's memory is not touched any more when the call has returned. */
START_TEST(is_switched_while_pools_work)
{
    pthread_t thread;
    open_two_steps(devices[_i]);
    grt_pool *pool = pool_with(0);
    ck_assert_int_eq(pthread_create(&thread, NULL, submit_on_thread, pool), 0);
    for (int i = 0; i < 50; i++) {
        grt_trace_set(tell, told);
        grt_trace_set(NULL, NULL);
        forget();
        ck_assert_int_eq(n_told, 0);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(n_told, 0);
    grt_pool_release(pool);
    close_all();
}
END_TEST

Suite *suite_test_spans(void);
Suite *suite_test_spans(void)
{
    Suite *s = suite_create("test_spans");
    TCase *t = tcase_create("test_spans");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_add_loop_test(t, runs_tell_their_parts, 0, N_DEVICES);
    tcase_add_test(t, times_are_of_the_clock);
    tcase_add_loop_test(t, requests_tell_theirs, 0, 2 * N_DEVICES);
    tcase_add_loop_test(t, is_switched_while_pools_work, 0, N_DEVICES);
    suite_add_tcase(s, t);
    return s;
}

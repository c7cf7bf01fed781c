/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are stopped: from other threads, by signals, by the caller's function and by deadlines, at every
 * place where a run looks, on the CPU and on the mirror. The context can run again each time. */
#include "tests/unit/opened.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Longer than any test waits, much less than an endless run takes; sanitizers are slow. */
enum { LONG_MS = 5000 };
static const int64_t for_ever = INT64_C(1) << 60;

static int64_t trips;
static float x[4] = {1, 2, 3, 4};
static const grt_tensor trips_in = {.dtype = GRT_DTYPE_INT64, .data = &trips};
static const grt_tensor x_in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {4}, .data = x};

/* y = x doubled `trips` times; `empty`: the body has no node, and y is x. */
static onnx_model doubling(bool empty)
{
    onnx_model m = onnx_create();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_input(&m, m.graph, "trips", GRT_DTYPE_INT64, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "4");
    onnx_input(&m, body, "i", GRT_DTYPE_INT64, "");
    onnx_input(&m, body, "go", GRT_DTYPE_BOOL, "");
    onnx_input(&m, body, "state", GRT_DTYPE_FLOAT, "4");
    if (!empty)
        onnx_node(&m, body, "Add", "state,state", "next");
    onnx_output(&m, body, "go");
    onnx_output(&m, body, empty ? "state" : "next");
    Onnx__NodeProto *loop = onnx_node(&m, m.graph, "Loop", "trips,,x", "y");
    loop->name = (char *)"doubling";
    onnx_attr(&m, loop, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_output(&m, m.graph, "y");
    return m;
}

/* y = the sums of x [N,4] up to each row, by a Scan */
static onnx_model running_sum(void)
{
    onnx_model m = onnx_create();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_input(&m, m.graph, "start", GRT_DTYPE_FLOAT, "4");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,4");
    onnx_input(&m, body, "sum", GRT_DTYPE_FLOAT, "4");
    onnx_input(&m, body, "row", GRT_DTYPE_FLOAT, "4");
    onnx_node(&m, body, "Add", "sum,row", "next");
    onnx_node(&m, body, "Identity", "next", "out");
    onnx_output(&m, body, "next");
    onnx_output(&m, body, "out");
    Onnx__NodeProto *scan = onnx_node(&m, m.graph, "Scan", "start,x", "last,y");
    onnx_attr(&m, scan, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_attr_int(&m, scan, "num_scan_inputs", 1);
    onnx_output(&m, m.graph, "y");
    return m;
}

/* Segments that a device replays around steps that the host takes part in: a Loop, and sizes that depend on
 * data. */
static onnx_model mixture(void)
{
    onnx_model m = doubling(false);
    m.graph->n_output = 0;
    onnx_node(&m, m.graph, "Softmax", "y", "a");
    onnx_node(&m, m.graph, "CumSum", "a,axis", "b");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "axis", GRT_DTYPE_INT64, "", &(int64_t){0}, sizeof(int64_t)));
    onnx_node(&m, m.graph, "NonZero", "b", "places");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Cast", "places", "numbers"), "to", GRT_DTYPE_FLOAT);
    onnx_attr_int(&m, onnx_node(&m, m.graph, "ReduceSum", "numbers", "count"), "keepdims", 0);
    onnx_node(&m, m.graph, "Add", "b,count", "c");
    onnx_node(&m, m.graph, "Softmax", "c", "d");
    onnx_node(&m, m.graph, "MatMul", "d,d", "z");
    onnx_output(&m, m.graph, "z");
    return m;
}

static void bind_doubling(int64_t n)
{
    trips = n;
    ck_assert_int_eq(grt_context_set_input(context, 0, &trips_in), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(context, 1, &x_in), GRT_OK);
}

/* The context works as if nothing had been stopped. */
static void expect_doubled(int64_t n)
{
    grt_tensor y;
    bind_doubling(n);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(((float *)y.data)[i], ldexpf(x[i], (int)n));
}

static void expect_stopped(grt_status status, grt_status expected)
{
    grt_tensor y;
    ck_assert_msg(status == expected, "%s, not %s: %s", grt_status_text(status), grt_status_text(expected),
                  grt_last_error());
    ck_assert_msg(strstr(grt_last_error(), "doubling"), "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_STATUS_INVALID_ARGUMENT);
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static _Atomic double cancelled_at;

static void *cancel_soon(void *user)
{
    (void)user;
    sleep_ms(30);
    atomic_store(&cancelled_at, grt_clock_ms());
    grt_context_cancel(context);
    return NULL;
}

START_TEST(from_another_thread)
{
    onnx_model m = doubling(_i & 1);
    open_on(&m, NULL, devices[_i / 2], "cpu");
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        bind_doubling(for_ever);
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
        const grt_status status = grt_context_run(context);
        ck_assert_double_lt(grt_clock_ms() - cancelled_at, LONG_MS);
        expect_stopped(status, GRT_STATUS_CANCELLED);
        pthread_join(thread, NULL);
        if (!(_i & 1))
            expect_doubled(3);
    }
    close_all();
}
END_TEST

enum { CHAIN = 30, WIDE = 320, ROUNDS = 8 };

/* y = x times w, again and again: steps of milliseconds */
static onnx_model long_chain(void)
{
    onnx_model m = onnx_create();
    char from[16] = "x", to[16], inputs[32];
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "320,320");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "320,320"));
    for (int i = 0; i < CHAIN; i++) {
        snprintf(to, sizeof to, i + 1 < CHAIN ? "h%d" : "y", i);
        snprintf(inputs, sizeof inputs, "%s,w", from);
        onnx_node(&m, m.graph, "MatMul", inputs, to);
        memcpy(from, to, sizeof from);
    }
    onnx_output(&m, m.graph, "y");
    return m;
}

static double ms_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

typedef struct canceller {
    clockid_t clock; /* of the thread that runs: what it waits for a processor does not count */
    int after_ms;
    double at_ms;
} canceller;

static void *cancel_after(void *user)
{
    canceller *c = user;
    sleep_ms(c->after_ms);
    c->at_ms = ms_of(c->clock);
    grt_context_cancel(context);
    return NULL;
}

static double longest_step(void)
{
    const grt_step_time *times;
    double longest = 0;
    grt_context_set_timing(context, true);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    const size_t n = grt_context_step_times(context, &times);
    for (size_t i = 0; i < n; i++)
        longest = fmax(longest, times[i].ms);
    grt_context_set_timing(context, false);
    return longest;
}

/* A run that was cancelled needs no more of a processor than a step, or 5 ms. The same step takes more of it
 * while the machine does much else. */
START_TEST(within_a_step)
{
    static float wide[WIDE * WIDE];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {WIDE, WIDE}, .data = wide};
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    onnx_model m = long_chain();
    grt_model *model = onnx_open(&m, runtime);
    canceller c = {.clock = CLOCK_THREAD_CPUTIME_ID};
    int cancelled = 0;
    onnx_release(&m);
    ck_assert_int_eq(grt_session_create(model, "cpu", &options, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    grt_model_release(model);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    const double most = 1.25 * longest_step() + 5;
    ck_assert_int_eq(pthread_getcpuclockid(pthread_self(), &c.clock), 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        c.after_ms = 3 * round;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_after, &c), 0);
        const grt_status status = grt_context_run(context);
        const double end = ms_of(c.clock);
        pthread_join(thread, NULL);
        if (status == GRT_OK) /* it was done before */
            continue;
        ck_assert_int_eq(status, GRT_STATUS_CANCELLED);
        ck_assert_msg(end - c.at_ms < most, "%g ms after it was cancelled, not %g", end - c.at_ms, most);
        cancelled++;
    }
    ck_assert_int_gt(cancelled, 0);
    close_all();
}
END_TEST

static void cancel_by_signal(int number)
{
    (void)number;
    grt_context_cancel(context);
}

START_TEST(by_a_signal)
{
    onnx_model m = doubling(false);
    struct sigaction action = {.sa_handler = cancel_by_signal}, before;
    const struct itimerval soon = {.it_value = {.tv_usec = 30000}};
    open_on(&m, NULL, devices[_i], "cpu");
    bind_doubling(for_ever);
    ck_assert_int_eq(sigaction(SIGALRM, &action, &before), 0); /* check has one for its timeouts */
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
    expect_stopped(grt_context_run(context), GRT_STATUS_CANCELLED);
    sigaction(SIGALRM, &before, NULL);
    expect_doubled(5);
    close_all();
}
END_TEST

START_TEST(at_a_deadline)
{
    onnx_model m = doubling(_i & 1);
    open_on(&m, NULL, devices[_i / 2], "cpu");
    bind_doubling(for_ever);
    const grt_run_options options = {.struct_size = sizeof options, .deadline_ms = grt_clock_ms() + 30};
    const grt_status status = grt_context_run_with(context, &options);
    const double late = grt_clock_ms() - options.deadline_ms;
    expect_stopped(status, GRT_STATUS_DEADLINE_EXCEEDED);
    ck_assert_double_ge(late, 0);
    ck_assert_double_lt(late, LONG_MS);
    close_all();
}
END_TEST

START_TEST(in_a_scan)
{
    enum { ROWS = 500000 };
    onnx_model m = running_sum();
    open_on(&m, NULL, devices[_i], "cpu");
    float *rows = calloc(ROWS, 4 * sizeof *rows);
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 4}, .data = rows}, y;
    grt_run_options options = {.struct_size = sizeof options};
    ck_assert_int_eq(grt_context_set_input(context, 0, &x_in), GRT_OK);
    in.dims[0] = 2;
    ck_assert_int_eq(grt_context_set_input(context, 1, &in), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    in.dims[0] = ROWS;
    ck_assert_int_eq(grt_context_set_input(context, 1, &in), GRT_OK);
    options.deadline_ms = grt_clock_ms() + 30;
    ck_assert_int_eq(grt_context_run_with(context, &options), GRT_STATUS_DEADLINE_EXCEEDED);
    ck_assert_double_lt(grt_clock_ms() - options.deadline_ms, LONG_MS);
    in.dims[0] = 2;
    ck_assert_int_eq(grt_context_set_input(context, 1, &in), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    ck_assert_mem_eq((float *)y.data + 4, x, sizeof x);
    free(rows);
    close_all();
}
END_TEST

/* What is late already does nothing; what is cancelled before it begins is not. */
START_TEST(before_it_begins)
{
    onnx_model m = doubling(false);
    grt_run_options options = {.struct_size = sizeof options, .deadline_ms = 1};
    open_on(&m, NULL, devices[_i], "cpu");
    bind_doubling(for_ever);
    ck_assert_int_eq(grt_context_run_with(context, &options), GRT_STATUS_DEADLINE_EXCEEDED);
    options.deadline_ms = NAN;
    ck_assert_int_eq(grt_context_run_with(context, &options), GRT_STATUS_DEADLINE_EXCEEDED);
    options.deadline_ms = INFINITY;
    grt_context_cancel(context);
    grt_context_cancel(NULL);
    bind_doubling(2);
    ck_assert_int_eq(grt_context_run_with(context, &options), GRT_OK);
    expect_doubled(2);
    ck_assert_int_eq(grt_context_run_with(context, NULL), GRT_OK);
    ck_assert_int_eq(grt_context_run_with(NULL, NULL), GRT_STATUS_INVALID_ARGUMENT);
    options.struct_size = 0;
    ck_assert_int_eq(grt_context_run_with(context, &options), GRT_STATUS_INVALID_ARGUMENT);
    expect_doubled(1); /* and does not keep the context */
    close_all();
}
END_TEST

/* False so many times, then true: once. */
static bool count_down(void *user)
{
    return (*(int *)user)-- == 0;
}

static void expect_result(const float *expected, float *out)
{
    grt_tensor z;
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &z), GRT_OK);
    ck_assert_uint_eq(grt_tensor_bytes(&z), sizeof *out);
    if (expected)
        ck_assert_float_eq(*(float *)z.data, *expected);
    *out = *(float *)z.data;
}

/* Stopped at each place where a run looks, when it has run so many times before: enqueued, captured,
 * replayed. */
START_TEST(at_every_place)
{
    float expected, found;
    const int runs_before = _i / N_DEVICES;
    int places = 0;
    onnx_model m = mixture();
    open_on(&m, NULL, devices[_i % N_DEVICES], "cpu");
    bind_doubling(2);
    expect_result(NULL, &expected);
    for (grt_status status = GRT_STATUS_CANCELLED; status != GRT_OK; places++) {
        int left = places;
        const grt_run_options options = {.struct_size = sizeof options, .cancel = count_down, .user = &left};
        grt_context_release(context);
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        bind_doubling(2);
        for (int i = 0; i < runs_before; i++)
            expect_result(&expected, &found);
        status = grt_context_run_with(context, &options);
        ck_assert_int_eq(status, left < 0 ? GRT_STATUS_CANCELLED : GRT_OK);
        for (int i = 0; i < 4; i++)
            expect_result(&expected, &found);
        ck_assert_int_lt(places, 1000);
    }
    ck_assert_int_gt(places, 5);
    close_all();
}
END_TEST

Suite *suite_test_stop(void);
Suite *suite_test_stop(void)
{
    Suite *suite = suite_create("stop");
    TCase *tc = tcase_create("stop");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, from_another_thread, 0, 2 * N_DEVICES);
    tcase_add_test(tc, within_a_step);
    tcase_add_loop_test(tc, by_a_signal, 0, N_DEVICES);
    tcase_add_loop_test(tc, at_a_deadline, 0, 2 * N_DEVICES);
    tcase_add_loop_test(tc, in_a_scan, 0, N_DEVICES);
    tcase_add_loop_test(tc, before_it_begins, 0, N_DEVICES);
    tcase_add_loop_test(tc, at_every_place, 0, 4 * N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

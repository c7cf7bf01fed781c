/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as services need them: requests that are cancelled, late, refused, collected or called back; lanes,
 * priorities, shares; batches; counts; the end of a pool. On the CPU and on the mirror. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONG_MS = 20000 };

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- models ---- */

static grt_model *opened(onnx_model *m)
{
    grt_model *model = onnx_open(m, runtime);
    onnx_release(m);
    return model;
}

/* y = x doubled `trips` times */
static grt_model *open_loop(void)
{
    onnx_model m = onnx_create();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_input(&m, m.graph, "trips", GRT_DTYPE_INT64, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1");
    onnx_input(&m, body, "i", GRT_DTYPE_INT64, "");
    onnx_input(&m, body, "go", GRT_DTYPE_BOOL, "");
    onnx_input(&m, body, "state", GRT_DTYPE_FLOAT, "1");
    onnx_node(&m, body, "Add", "state,state", "next");
    onnx_output(&m, body, "go");
    onnx_output(&m, body, "next");
    Onnx__NodeProto *loop = onnx_node(&m, m.graph, "Loop", "trips,,x", "y");
    onnx_attr(&m, loop, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_output(&m, m.graph, "y");
    return opened(&m);
}

/* y [N,3] = table[index [N]] + x [N,3]; an index of 9 or more is refused */
static grt_model *open_rows(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,3");
    onnx_input(&m, m.graph, "index", GRT_DTYPE_INT64, "N");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "table", "9,3"));
    onnx_node(&m, m.graph, "Gather", "table,index", "row");
    onnx_node(&m, m.graph, "Add", "row,x", "y");
    onnx_output(&m, m.graph, "y");
    return opened(&m);
}

static grt_pool *open_pool(grt_model *model, const char *device, const grt_pool_options *options)
{
    const grt_session_options with = {.struct_size = sizeof with, .threads = 1, .fallback = "cpu"};
    grt_session *session;
    grt_pool *pool;
    ck_assert_msg(grt_session_create(model, device, &with, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_pool_create(&session, 1, options, &pool) == GRT_OK, "%s", grt_last_error());
    grt_session_release(session);
    grt_model_release(model);
    return pool;
}

static size_t add_lane(grt_pool *pool, grt_model *model, const char *device, const grt_pool_options *options)
{
    const grt_session_options with = {.struct_size = sizeof with, .threads = 1, .fallback = "cpu"};
    grt_session *session;
    size_t lane;
    ck_assert_int_eq(grt_session_create(model, device, &with, &session), GRT_OK);
    ck_assert_msg(grt_pool_add(pool, &session, 1, options, &lane) == GRT_OK, "%s", grt_last_error());
    grt_session_release(session);
    grt_model_release(model);
    return lane;
}

/* ---- requests of the loop ---- */

static const int64_t for_ever = INT64_C(1) << 60, three = 3;
static float one[1] = {1};

typedef struct loop_call {
    grt_tensor in[2];
    grt_submission s;
} loop_call;

static loop_call *loop_of(loop_call *c, const int64_t *trips)
{
    *c = (loop_call){.in = {{.dtype = GRT_DTYPE_INT64, .data = (void *)(uintptr_t)trips},
                            {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = one}}};
    c->s = (grt_submission){.struct_size = sizeof c->s, .inputs = c->in, .n_inputs = 2};
    return c;
}

static grt_request *submitted(grt_pool *pool, const grt_submission *s)
{
    grt_request *r = NULL;
    ck_assert_msg(grt_pool_submit_with(pool, s, &r) == GRT_OK, "%s", grt_last_error());
    return r;
}

static grt_request *run_loop(grt_pool *pool, const int64_t *trips)
{
    loop_call c;
    return submitted(pool, &loop_of(&c, trips)->s);
}

/* At work, so that nothing else is. */
static grt_request *block(grt_pool *pool)
{
    grt_pool_stats stats = {.struct_size = sizeof stats};
    grt_request *r = run_loop(pool, &for_ever);
    do {
        sleep_ms(1);
        ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    } while (stats.waiting);
    return r;
}

static void expect(grt_request *r, grt_status expected)
{
    const grt_status status = grt_request_wait(r);
    ck_assert_msg(status == expected, "%s: %s", grt_status_text(status), grt_last_error());
    if (status == GRT_OK) {
        grt_tensor y;
        ck_assert_int_eq(grt_request_get_output(r, 0, &y), GRT_OK);
        ck_assert_float_eq(*(float *)y.data, 8);
    }
    grt_request_release(r);
}

static grt_pool *open_small(int i)
{
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = 3};
    return open_pool(open_loop(), devices[i], &options);
}

START_TEST(cancelled)
{
    grt_pool *pool = open_small(_i);
    for (int round = 0; round < 3; round++) {
        grt_request *running = block(pool), *waiting = run_loop(pool, &for_ever),
                    *last = run_loop(pool, &three);
        ck_assert_int_eq(grt_request_wait_until(waiting, 0), GRT_STATUS_BUSY);
        ck_assert_int_eq(grt_request_wait_until(waiting, grt_clock_ms() + 5), GRT_STATUS_BUSY);
        grt_request_cancel(waiting);
        ck_assert_int_eq(grt_request_wait_until(waiting, grt_clock_ms() + LONG_MS), GRT_STATUS_CANCELLED);
        grt_request_cancel(waiting); /* nothing more happens */
        expect(waiting, GRT_STATUS_CANCELLED);
        ck_assert_int_eq(grt_request_wait_until(running, 0), GRT_STATUS_BUSY);
        grt_request_cancel(running);
        expect(running, GRT_STATUS_CANCELLED);
        expect(last, GRT_OK);
    }
    grt_request *all[] = {block(pool), run_loop(pool, &for_ever), run_loop(pool, &three)};
    grt_pool_cancel(pool);
    for (int i = 0; i < 3; i++)
        expect(all[i], GRT_STATUS_CANCELLED);
    expect(run_loop(pool, &three), GRT_OK);
    grt_request_cancel(NULL);
    grt_pool_cancel(NULL);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    ck_assert_uint_eq(stats.submitted, 13);
    ck_assert_uint_eq(stats.succeeded, 4);
    ck_assert_uint_eq(stats.cancelled, 9);
    ck_assert_uint_eq(stats.running + stats.waiting, 0);
    grt_pool_release(pool);
}
END_TEST

START_TEST(late)
{
    grt_pool *pool = open_small(_i);
    loop_call c;
    loop_of(&c, &for_ever)->s.deadline_ms = grt_clock_ms() + 20;
    expect(submitted(pool, &c.s), GRT_STATUS_DEADLINE_EXCEEDED); /* at work */
    grt_request *running = block(pool);
    c.s.deadline_ms = grt_clock_ms() + 30;
    grt_request *later = submitted(pool, &c.s);
    c.s.deadline_ms = grt_clock_ms() + 10;
    grt_request *sooner = submitted(pool, &c.s);
    c.s.deadline_ms = 1; /* long over */
    expect(submitted(pool, &c.s), GRT_STATUS_DEADLINE_EXCEEDED);
    expect(sooner, GRT_STATUS_DEADLINE_EXCEEDED); /* waiting */
    ck_assert_double_ge(grt_clock_ms(), c.s.deadline_ms);
    expect(later, GRT_STATUS_DEADLINE_EXCEEDED);
    c.s.deadline_ms = NAN;
    expect(submitted(pool, &c.s), GRT_STATUS_DEADLINE_EXCEEDED);
    grt_request_cancel(running);
    expect(running, GRT_STATUS_CANCELLED);
    loop_of(&c, &three)->s.deadline_ms = grt_clock_ms() + LONG_MS;
    expect(submitted(pool, &c.s), GRT_OK);
    grt_pool_release(pool);
}
END_TEST

START_TEST(a_full_queue)
{
    grt_pool *pool = open_small(_i);
    grt_request *running = block(pool), *waiting[3], *none = NULL;
    loop_call c;
    loop_of(&c, &three);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(grt_pool_try_submit(pool, &c.s, &waiting[i]), GRT_OK);
    ck_assert_int_eq(grt_pool_try_submit(pool, &c.s, &none), GRT_STATUS_BUSY);
    c.s.deadline_ms = grt_clock_ms() + 20;
    ck_assert_int_eq(grt_pool_submit_with(pool, &c.s, &none), GRT_STATUS_DEADLINE_EXCEEDED);
    ck_assert_double_ge(grt_clock_ms(), c.s.deadline_ms);
    ck_assert_ptr_null(none);
    grt_request_cancel(running);
    expect(running, GRT_STATUS_CANCELLED);
    for (int i = 0; i < 3; i++)
        expect(waiting[i], GRT_OK);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    ck_assert_uint_eq(stats.refused, 1);
    ck_assert_uint_eq(stats.submitted, 4);
    grt_pool_release(pool);
}
END_TEST

/* ---- callbacks and collecting ---- */

enum { MOST_CALLS = 64 };
static atomic_int n_called;
static intptr_t called[MOST_CALLS];

static void note_call(void *user, grt_request *r)
{
    ck_assert_ptr_eq(grt_request_user(r), user);
    ck_assert_int_ne(grt_request_wait_until(r, 0), GRT_STATUS_BUSY);
    called[atomic_fetch_add(&n_called, 1)] = (intptr_t)user;
    grt_request_release(r);
}

static void call_back(grt_pool *pool, const int64_t *trips, size_t lane, int priority, intptr_t user)
{
    loop_call c;
    loop_of(&c, trips);
    c.s.lane = lane;
    c.s.priority = priority;
    c.s.done = note_call;
    c.s.user = (void *)user;
    ck_assert_msg(grt_pool_submit_with(pool, &c.s, NULL) == GRT_OK, "%s", grt_last_error());
}

START_TEST(called_back_by_priority)
{
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = 16};
    static const int priorities[] = {0, 5, -1, 5, 0, 7}, order[] = {5, 1, 3, 0, 4, 2};
    grt_pool *pool = open_pool(open_loop(), devices[_i], &options);
    grt_request *running = block(pool);
    n_called = 0;
    for (int i = 0; i < 6; i++)
        call_back(pool, &three, 0, priorities[i], i);
    grt_request_cancel(running);
    expect(running, GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_pool_drain(pool, grt_clock_ms() + LONG_MS), GRT_OK);
    ck_assert_int_eq(n_called, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(called[i], order[i]);
    running = block(pool);
    call_back(pool, &three, 0, 0, 9);
    grt_pool_cancel(pool); /* those that wait are called back, too */
    ck_assert_int_eq(grt_pool_drain(pool, grt_clock_ms() + LONG_MS), GRT_OK);
    ck_assert_int_eq(n_called, 7);
    expect(running, GRT_STATUS_CANCELLED);
    grt_pool_release(pool);
}
END_TEST

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(collected)
{
    grt_pool *pool = open_small(_i);
    grt_request *mine[5], *taken;
    loop_call c;
    int fd, again;
    loop_of(&c, &three)->s.collect = true;
    mine[0] = submitted(pool, &c.s);
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    ck_assert_int_eq(grt_pool_get_fd(pool, &fd), GRT_OK);
    ck_assert_int_eq(grt_pool_get_fd(pool, &again), GRT_OK);
    ck_assert_int_eq(fd, again);
    for (int round = 0; round < 3; round++) {
        for (int i = round ? 0 : 1; i < 5; i++)
            mine[i] = submitted(pool, &c.s);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        for (int n = 0; n < 5; n++) {
            ck_assert_int_eq(poll(&p, 1, LONG_MS), 1);
            ck_assert_int_eq(grt_pool_take_done(pool, &taken), GRT_OK);
            ck_assert_ptr_eq(taken, mine[n]); /* one context, one priority */
            expect(taken, GRT_OK);
        }
        ck_assert(!is_readable(fd));
        ck_assert_int_eq(grt_pool_take_done(pool, &taken), GRT_STATUS_BUSY);
    }
    mine[0] = submitted(pool, &c.s); /* and one that nobody takes */
    grt_pool_release(pool);
    expect(mine[0], GRT_OK);
}
END_TEST

/* ---- lanes ---- */

/* While both have requests, the lane with three times the share gets three times the time. */
START_TEST(shares)
{
    enum { EACH = 20, SEEN = 20 };
    static const int64_t some = 20000;
    grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = EACH};
    grt_pool *pool = open_pool(open_loop(), devices[_i], &options);
    options.share = 3;
    ck_assert_uint_eq(add_lane(pool, open_loop(), devices[_i], &options), 1);
    options.share = 1;
    ck_assert_uint_eq(add_lane(pool, open_loop(), devices[_i], &options), 2);
    grt_request *running = block(pool); /* in lane 0 */
    n_called = 0;
    for (int i = 0; i < EACH; i++) {
        call_back(pool, &some, 1, 0, 1);
        call_back(pool, &some, 2, 0, 2);
    }
    grt_request_cancel(running);
    expect(running, GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    ck_assert_int_eq(n_called, 2 * EACH);
    int of_lesser = 0;
    for (int i = 0; i < SEEN; i++)
        of_lesser += called[i] == 2;
    ck_assert_msg(of_lesser >= 2 && of_lesser <= 9, "%d of %d", of_lesser, SEEN); /* 5 */
    grt_pool_release(pool);
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
            grt_pool *pool = open_pool(open_loop(), devices[_i], &options);
            grt_pool_stats stats = {.struct_size = sizeof stats};
            grt_request *all[4];
            options.device_runs = 0;
            ck_assert_uint_eq(add_lane(pool, open_loop(), devices[_i], &options), 1);
            for (size_t i = 0; i < 4; i++) {
                loop_call c;
                loop_of(&c, &for_ever)->s.lane = i / 2;
                c.s.priority = i < 2 ? priority : 0;
                all[i] = submitted(pool, &c.s); /* at work at once, if there is a place */
            }
            ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
            ck_assert_uint_eq(stats.running, 2);
            ck_assert_int_eq(grt_pool_get_stats(pool, 1, &stats), GRT_OK);
            ck_assert_uint_eq(stats.running, told || (copies && !priority) ? 1 : 0);
            grt_pool_cancel(pool);
            for (size_t i = 0; i < 4; i++)
                expect(all[i], GRT_STATUS_CANCELLED);
            grt_pool_release(pool);
        }
}
END_TEST

START_TEST(several_models)
{
    grt_pool_options options = {.struct_size = sizeof options, .contexts = 2};
    grt_pool *pool = open_pool(open_loop(), devices[_i], &options);
    const size_t lane = add_lane(pool, open_rows(), devices[_i], &options);
    float x[3] = {1, 2, 3};
    int64_t index[1] = {2};
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 3}, .data = x},
                             {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {1}, .data = index}};
    grt_submission s = {.struct_size = sizeof s, .lane = lane, .inputs = in, .n_inputs = 2};
    grt_tensor y;
    for (int i = 0; i < 20; i++) {
        grt_request *a = run_loop(pool, &three), *b = submitted(pool, &s);
        ck_assert_msg(grt_request_wait(b) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_request_get_output(b, 0, &y), GRT_OK);
        ck_assert_float_eq(((float *)y.data)[1], 2 + 7);
        grt_request_release(b);
        expect(a, GRT_OK);
    }
    grt_request *none = NULL;
    s.lane = 2;
    ck_assert_int_eq(grt_pool_submit_with(pool, &s, &none), GRT_STATUS_INVALID_ARGUMENT);
    grt_pool_release(pool);
}
END_TEST

/* ---- batches ---- */

enum { ROWS = 8 };

typedef struct row_call {
    float x[ROWS * 3], y[ROWS * 3];
    int64_t index[ROWS];
    grt_tensor in[2], out;
    grt_request *request;
} row_call;

/* Such rows go to a device without being put together before. */
static bool rows_are_pinned;

static void submit_rows(grt_pool *pool, row_call *c, int64_t rows, int64_t index, bool bound)
{
    for (int i = 0; i < rows * 3; i++)
        c->x[i] = (float)(100 * index + i);
    for (int i = 0; i < rows; i++)
        c->index[i] = index;
    c->in[0] = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 3}, .data = c->x};
    c->in[1] = (grt_tensor){.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {rows}, .data = c->index};
    c->out = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 3}, .data = c->y};
    c->in[0].memory = c->in[1].memory = rows_are_pinned ? GRT_MEMORY_PINNED : GRT_MEMORY_HOST;
    const grt_submission s = {.struct_size = sizeof s,
                              .inputs = c->in,
                              .n_inputs = 2,
                              .outputs = &c->out,
                              .n_outputs = bound ? 1 : 0};
    c->request = submitted(pool, &s);
}

static const float *expect_rows(row_call *c, int64_t batch_rows)
{
    grt_tensor y;
    grt_request_info info = {.struct_size = sizeof info};
    ck_assert_msg(grt_request_wait(c->request) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_request_get_output(c->request, 0, &y), GRT_OK);
    ck_assert_int_eq(y.dims[0], c->in[0].dims[0]);
    for (int i = 0; i < y.dims[0] * 3; i++)
        ck_assert_float_eq(((float *)y.data)[i], c->x[i] + (float)(c->index[0] * 3 + i % 3));
    ck_assert_int_eq(grt_request_get_info(c->request, &info), GRT_OK);
    ck_assert_int_eq(info.batch_rows, batch_rows);
    return y.data;
}

static grt_pool *open_batching(int i, grt_padding padding)
{
    const grt_pool_options options = {.struct_size = sizeof options,
                                      .contexts = 1,
                                      .max_batch = ROWS,
                                      .queue = 16,
                                      .max_delay_ms = LONG_MS,
                                      .padding = padding};
    return open_pool(open_rows(), devices[i], &options);
}

/* Requests of 1, 2 and 2 rows are a batch of 5, 8 with padding, in one block of memory. */
START_TEST(batches)
{
    static const int64_t rows[] = {1, 2, 2}, padded[] = {8, 8, 5};
    static const grt_padding paddings[] = {GRT_PADDING_POWER_OF_TWO, GRT_PADDING_FULL, GRT_PADDING_NONE};
    const int k = _i / N_DEVICES;
    grt_pool *pool = open_batching(_i % N_DEVICES, paddings[k]);
    for (int round = 0; round < 20; round++) {
        row_call c[3];
        const float *at[3];
        rows_are_pinned = round % 2;
        for (int i = 0; i < 3; i++)
            submit_rows(pool, &c[i], rows[i], i + 1, round % 3 == 2 && i == 1);
        ck_assert_int_eq(grt_request_wait_until(c[0].request, 0), GRT_STATUS_BUSY); /* more may come */
        ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
        for (int i = 0; i < 3; i++)
            at[i] = expect_rows(&c[i], padded[k]);
        ck_assert_ptr_eq(at[2], at[0] + 9);
        ck_assert_ptr_eq(at[1], round % 3 == 2 ? c[1].y : at[0] + 3);
        for (int i = 0; i < 3; i++)
            grt_request_release(c[i].request);
    }
    grt_pool_stats stats = {.struct_size = sizeof stats};
    ck_assert_int_eq(grt_pool_get_stats(pool, 0, &stats), GRT_OK);
    ck_assert_uint_eq(stats.batches, 20);
    ck_assert_uint_eq(stats.batch_rows, 100);
    ck_assert_uint_eq(stats.padded_rows, 20 * ((uint64_t)padded[k] - 5));
    grt_pool_release(pool);
}
END_TEST

/* Rows that go to their places on a device are counted, and bounded, as room for inputs is. */
START_TEST(batches_are_counted)
{
    const grt_pool_options options = {.struct_size = sizeof options,
                                      .contexts = 1,
                                      .max_batch = ROWS,
                                      .queue = 16,
                                      .max_delay_ms = LONG_MS,
                                      .padding = GRT_PADDING_FULL};
    const uint64_t bytes = ROWS * (3 * sizeof(float) + sizeof(int64_t));
    grt_memory_info before = {.struct_size = sizeof before}, now = before;
    grt_model *model = open_rows();
    grt_session *session;
    grt_pool *pool;
    row_call c[2];
    ck_assert_int_eq(grt_session_create(model, "mirror", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_session_get_memory(session, &before), GRT_OK);
    ck_assert_int_eq(grt_pool_create(&session, 1, &options, &pool), GRT_OK);
    rows_are_pinned = true;
    for (int i = 0; i < 2; i++)
        submit_rows(pool, &c[i], 1 + i, i + 1, false);
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    for (int i = 0; i < 2; i++) {
        expect_rows(&c[i], ROWS);
        grt_request_release(c[i].request);
    }
    ck_assert_int_eq(grt_session_get_memory(session, &now), GRT_OK);
    ck_assert_uint_ge(now.inputs_bytes, before.inputs_bytes + bytes);
    grt_pool_release(pool);
    ck_assert_int_eq(grt_session_get_memory(session, &now), GRT_OK);
    ck_assert_uint_le(now.inputs_bytes, before.inputs_bytes);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* Full batches do not wait; those that are not, only so long. Larger requests run by themselves. */
START_TEST(batches_in_time)
{
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 1, .max_batch = 4, .queue = 16, .max_delay_ms = 30};
    grt_pool *pool = open_pool(open_rows(), devices[_i], &options);
    row_call c[4];
    for (int i = 0; i < 4; i++)
        submit_rows(pool, &c[i], 1, i, false);
    for (int i = 0; i < 4; i++) {
        expect_rows(&c[i], 4);
        grt_request_release(c[i].request);
    }
    const double begin = grt_clock_ms();
    submit_rows(pool, &c[0], 2, 1, false);
    expect_rows(&c[0], 0); /* by itself, as it is */
    ck_assert_double_ge(grt_clock_ms() - begin, 30);
    grt_request_release(c[0].request);
    submit_rows(pool, &c[0], 8, 1, false);
    expect_rows(&c[0], 0);
    grt_request_release(c[0].request);
    grt_pool_release(pool);
}
END_TEST

/* What is wrong with one request is not the others' fault; who leaves does not stop them. */
START_TEST(batches_of_others)
{
    grt_pool *pool = open_batching(_i, GRT_PADDING_FULL);
    row_call c[4];
    for (int i = 0; i < 4; i++)
        submit_rows(pool, &c[i], 1, i == 2 ? 1000 : i, false); /* no such index */
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            ck_assert_int_eq(grt_request_wait(c[i].request), GRT_STATUS_INVALID_ARGUMENT);
        else
            expect_rows(&c[i], 0);
        grt_request_release(c[i].request);
    }
    for (int i = 0; i < 4; i++)
        submit_rows(pool, &c[i], 1, i, false);
    grt_request_cancel(c[1].request);
    ck_assert_int_eq(grt_request_wait(c[1].request), GRT_STATUS_CANCELLED);
    grt_request_release(c[1].request);
    ck_assert_int_eq(grt_pool_drain(pool, 0), GRT_OK);
    for (int i = 0; i < 4; i++)
        if (i != 1) {
            expect_rows(&c[i], 8);
            grt_request_release(c[i].request);
        }
    grt_pool_release(pool);
}
END_TEST

START_TEST(models_without_rows)
{
    const grt_pool_options options = {.struct_size = sizeof options, .max_batch = 4};
    grt_model *model = open_loop();
    grt_session *session;
    grt_pool *pool;
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_pool_create(&session, 1, &options, &pool), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "'trips'"), "%s", grt_last_error());
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* Rows of y follow from those of x; where they are above 0 is known after the run only. */
START_TEST(dims_of_outputs)
{
    const grt_session_options with = {.struct_size = sizeof with, .fallback = "cpu"};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,3");
    onnx_node(&m, m.graph, "Relu", "x", "y");
    onnx_node(&m, m.graph, "NonZero", "y", "z");
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "z");
    grt_model *model = opened(&m);
    grt_session *session;
    grt_context *context;
    float x[4 * 3] = {1};
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {0, 3}, .data = x}, out;
    ck_assert_int_eq(grt_session_create(model, devices[_i], &with, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_output_dims(context, 0, &out),
                     GRT_STATUS_INVALID_ARGUMENT); /* x is not set */
    for (in.dims[0] = 1; in.dims[0] < 5; in.dims[0]++) {
        ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
        ck_assert_msg(grt_context_output_dims(context, 0, &out) == GRT_OK, "%s", grt_last_error());
        ck_assert(out.dtype == GRT_DTYPE_FLOAT && out.rank == 2 && out.dims[0] == in.dims[0] &&
                  out.dims[1] == 3);
        ck_assert_ptr_null(out.data);
        ck_assert_int_eq(grt_context_output_dims(context, 1, &out), GRT_OK);
        ck_assert(out.dtype == GRT_DTYPE_INT64 && out.rank == 2 && out.dims[0] == 2 && out.dims[1] == -1);
        ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_STATUS_INVALID_ARGUMENT);
        ck_assert_int_eq(grt_context_run(context), GRT_OK);
        ck_assert_int_eq(grt_context_output_dims(context, 0, &out),
                         GRT_OK); /* known by now: the outputs stay */
        ck_assert_int_eq(grt_context_get_output(context, 1, &out), GRT_OK);
        ck_assert_int_eq(out.dims[1], 1);
    }
    ck_assert_int_eq(grt_context_output_dims(context, 2, &out), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_context_output_dims(context, 0, NULL), GRT_STATUS_INVALID_ARGUMENT);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* ---- reports and the end ---- */

START_TEST(histograms)
{
    grt_pool *pool = open_small(_i);
    grt_histogram h = {.struct_size = sizeof h};
    uint64_t n = 0;
    for (int i = 0; i < 50; i++)
        expect(run_loop(pool, &three), GRT_OK);
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

static void *submit_one_more(void *pool)
{
    loop_call c;
    grt_request *r = NULL;
    const grt_status status = grt_pool_submit_with(pool, &loop_of(&c, &three)->s, &r);
    grt_request_release(r);
    return (void *)(intptr_t)status;
}

START_TEST(shut_down)
{
    grt_pool *pool = open_small(_i);
    grt_request *all[4] = {block(pool)};
    pthread_t thread;
    void *status;
    for (int i = 1; i < 4; i++)
        all[i] = run_loop(pool, &three);
    ck_assert_int_eq(pthread_create(&thread, NULL, submit_one_more, pool), 0); /* waits for room */
    ck_assert_int_eq(grt_pool_drain(pool, grt_clock_ms() + 10), GRT_STATUS_BUSY);
    const double begin = grt_clock_ms();
    ck_assert_int_eq(grt_pool_shutdown(pool, begin + 20), GRT_STATUS_DEADLINE_EXCEEDED);
    ck_assert_double_lt(grt_clock_ms() - begin, LONG_MS);
    pthread_join(thread, &status);
    ck_assert_int_eq((intptr_t)status, GRT_STATUS_CANCELLED);
    for (int i = 0; i < 4; i++)
        expect(all[i], GRT_STATUS_CANCELLED);
    loop_call c;
    ck_assert_int_eq(grt_pool_try_submit(pool, &loop_of(&c, &three)->s, &all[0]), GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_pool_shutdown(pool, 0), GRT_OK);
    grt_pool_release(pool);
}
END_TEST

/* This thread's own, while the pool is idle; sanitizers may have a thread that wakes ten times a second. */
#if defined(__SANITIZE_THREAD__)
enum { MOST_WAITS = 20 };
#else
enum { MOST_WAITS = 2 };
#endif

/* How often threads of this process went to sleep of themselves. */
static long count_waits(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long total = 0;
    for (const struct dirent *task; (task = readdir(tasks));) {
        char path[512], line[128];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *file = fopen(path, "r");
        long n = 0;
        while (file && fgets(line, sizeof line, file))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
                total += n;
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return total;
}

START_TEST(idle)
{
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 3, .max_batch = 4, .max_delay_ms = 1};
    grt_pool *pool = open_pool(open_rows(), devices[_i], &options);
    row_call c;
    submit_rows(pool, &c, 1, 1, false);
    expect_rows(&c, 0);
    grt_request_release(c.request);
    sleep_ms(50);
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    const long waits = count_waits();
    sleep_ms(300);
    ck_assert_int_le(count_waits() - waits, MOST_WAITS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_int_lt((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000, 30);
    grt_pool_release(pool);
}
END_TEST

Suite *suite_test_service(void);
Suite *suite_test_service(void)
{
    Suite *suite = suite_create("service");
    TCase *tc = tcase_create("service");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, cancelled, 0, N_DEVICES);
    tcase_add_loop_test(tc, late, 0, N_DEVICES);
    tcase_add_loop_test(tc, a_full_queue, 0, N_DEVICES);
    tcase_add_loop_test(tc, called_back_by_priority, 0, N_DEVICES);
    tcase_add_loop_test(tc, collected, 0, N_DEVICES);
    tcase_add_loop_test(tc, shares, 0, N_DEVICES);
    tcase_add_loop_test(tc, at_work_together, 0, N_DEVICES);
    tcase_add_loop_test(tc, several_models, 0, N_DEVICES);
    tcase_add_loop_test(tc, batches, 0, 3 * N_DEVICES);
    tcase_add_test(tc, batches_are_counted);
    tcase_add_loop_test(tc, batches_in_time, 0, N_DEVICES);
    tcase_add_loop_test(tc, batches_of_others, 0, N_DEVICES);
    tcase_add_test(tc, models_without_rows);
    tcase_add_loop_test(tc, dims_of_outputs, 0, N_DEVICES);
    tcase_add_loop_test(tc, histograms, 0, N_DEVICES);
    tcase_add_loop_test(tc, shut_down, 0, N_DEVICES);
    tcase_add_loop_test(tc, idle, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

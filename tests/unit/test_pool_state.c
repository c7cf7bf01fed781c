/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of pools that run with a state: their order, what ends them, and where they run. On the CPU and on
 * the mirror. */
#include "tests/unit/opened.h"
#include "tests/unit/suite.h"

#include <graphrt/faults.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAMS = 12, STEPS = 40, COPIES = 60, THREADS = 4, DRAWN = 150 };

static grt_model *model;
static const float ones[2] = {1, 1};
static const grt_tensor one = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = (void *)ones};

/* next = 2 sum + x: what comes of several depends on their order; y = next + 1 */
static void open_doubling(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_input(&m, m.graph, "sum", GRT_DTYPE_FLOAT, "2");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "one", GRT_DTYPE_FLOAT, "", &(float){1}, sizeof(float)));
    onnx_node(&m, m.graph, "Add", "sum,sum", "twice");
    onnx_node(&m, m.graph, "Add", "twice,x", "next");
    onnx_node(&m, m.graph, "Add", "next,one", "y");
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "next");
    model = onnx_open(&m, runtime);
    onnx_release(&m);
}

static grt_session *open_at(const char *device)
{
    const grt_session_options with = {.struct_size = sizeof with, .threads = 1};
    grt_session *opened;
    OK(grt_session_create(model, device, &with, &opened));
    return opened;
}

static grt_pool *pool_on(grt_session **sessions, size_t n, int32_t contexts)
{
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = contexts, .queue = 1000};
    grt_pool *pool;
    OK(grt_pool_create(sessions, n, &options, &pool));
    return pool;
}

static grt_state *make_state(grt_session *on, bool in_place)
{
    const grt_state_pair pair = {.output = "next", .input = "sum", .in_place = in_place};
    grt_state *state;
    OK(grt_state_create(on, &pair, 1, &state));
    return state;
}

static const grt_tensor inputs[2] = {
    {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = (void *)ones}};

static grt_submission of_state(grt_state *state)
{
    return (grt_submission){
        .struct_size = sizeof(grt_submission), .inputs = inputs, .n_inputs = 2, .state = state};
}

static grt_request *submit(grt_pool *pool, const grt_submission *submission)
{
    grt_request *request;
    OK(grt_pool_submit_with(pool, submission, &request));
    return request;
}

/* After n steps of ones from zeros: 2^n - 1. */
static void expect_steps(grt_state *state, int n)
{
    grt_value *value;
    grt_tensor t;
    OK(grt_state_save(state, 0, &value));
    OK(grt_value_tensor(value, &t));
    ck_assert_float_eq(((float *)t.data)[1], (float)((1LL << n) - 1));
    grt_value_release(value);
}

static void finish(grt_request *request, grt_status expected)
{
    ck_assert_msg(grt_request_wait(request) == expected, "%s", grt_last_error());
    grt_request_release(request);
}

/* ---- order ---- */

typedef struct stream {
    grt_state *state;
    grt_request *requests[STEPS];
    int called; /* callbacks of one state do not overlap: no lock */
} stream;

static void check_step(void *user, grt_request *request)
{
    stream *s = user;
    grt_tensor y;
    s->called++;
    OK(grt_request_get_output(request, 0, &y));
    ck_assert_float_eq(((float *)y.data)[0], (float)(1LL << s->called % 20));
    REFUSED(grt_request_get_output(request, 1, &y), "belongs to the request's state");
}

/* Streams that take turns, of any priority, over several contexts; every 20 steps they begin again. */
START_TEST(keeps_order)
{
    static stream streams[STREAMS];
    open_doubling();
    grt_session *on = open_at(devices[_i / 2]);
    grt_pool *pool = pool_on(&on, 1, 3);
    memset(streams, 0, sizeof streams);
    for (int s = 0; s < STREAMS; s++)
        streams[s].state = make_state(on, _i % 2);
    for (int half = 0; half < 2; half++) {
        for (int k = 0; k < 19; k++)
            for (int s = 0; s < STREAMS; s++) {
                grt_submission submission = of_state(streams[s].state);
                submission.done = check_step;
                submission.user = &streams[s];
                submission.priority = (k * 7 + s) % 5;
                streams[s].requests[k] = submit(pool, &submission);
            }
        OK(grt_pool_drain(pool, 0));
        for (int s = 0; s < STREAMS; s++) {
            for (int k = 0; k < 19; k++)
                finish(streams[s].requests[k], GRT_OK);
            ck_assert_int_eq(streams[s].called, half * 20 + 19);
            expect_steps(streams[s].state, 19);
            OK(grt_state_reset(streams[s].state));
            streams[s].called = 20;
        }
    }
    for (int s = 0; s < STREAMS; s++)
        grt_state_release(streams[s].state);
    grt_pool_release(pool);
    grt_session_release(on);
    grt_model_release(model);
}
END_TEST

/* ---- ends ---- */

static sem_t gate;

static void wait_at_gate(void *user, grt_request *request)
{
    (void)user;
    sem_wait(&gate);
    grt_request_release(request);
}

/* The only context is kept until the gate opens. */
static void block(grt_pool *pool)
{
    const grt_tensor both[2] = {one, one};
    const grt_submission submission = {
        .struct_size = sizeof submission, .inputs = both, .n_inputs = 2, .done = wait_at_gate};
    sem_init(&gate, 0, 0);
    OK(grt_pool_submit_with(pool, &submission, NULL));
}

START_TEST(those_that_end_let_the_next_follow)
{
    grt_request *requests[6];
    open_doubling();
    grt_session *on = open_at(devices[_i]);
    grt_pool *pool = pool_on(&on, 1, 1);
    grt_state *state = make_state(on, false);
    block(pool);
    for (int i = 0; i < 6; i++) {
        grt_submission submission = of_state(state);
        submission.deadline_ms = i == 4 ? 1 : 0;
        requests[i] = submit(pool, &submission);
    }
    grt_request_cancel(requests[2]); /* in the middle, and then the first */
    ck_assert_int_eq(grt_request_wait(requests[2]), GRT_STATUS_CANCELLED);
    grt_request_cancel(requests[0]);
    ck_assert_int_eq(grt_request_wait(requests[0]), GRT_STATUS_CANCELLED);
    ck_assert_int_eq(grt_request_wait(requests[4]), GRT_STATUS_DEADLINE_EXCEEDED);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    OK(grt_pool_get_stats(pool, 0, &stats));
    ck_assert_uint_eq(stats.waiting, 3);
    sem_post(&gate);
    for (int i = 0; i < 6; i++)
        finish(requests[i], i == 4 ? GRT_STATUS_DEADLINE_EXCEEDED : i % 2 ? GRT_OK : GRT_STATUS_CANCELLED);
    expect_steps(state, 3);
    block(pool); /* all at once */
    for (int i = 0; i < 6; i++) {
        const grt_submission submission = of_state(state);
        requests[i] = submit(pool, &submission);
    }
    grt_pool_cancel(pool);
    sem_post(&gate);
    for (int i = 0; i < 6; i++)
        finish(requests[i], GRT_STATUS_CANCELLED);
    expect_steps(state, 3);
    grt_state_release(state);
    grt_pool_release(pool);
    grt_session_release(on);
    grt_model_release(model);
    sem_destroy(&gate);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(belongs_to_the_pool_meanwhile)
{
    grt_context *own;
    open_doubling();
    grt_session *on = open_at(devices[_i]);
    grt_pool *pool = pool_on(&on, 1, 1), *other = pool_on(&on, 1, 1);
    grt_state *state = make_state(on, false);
    grt_submission submission = of_state(state);
    OK(grt_context_create(on, &own));
    OK(grt_context_set_state(own, state));
    grt_request *request = NULL;
    REFUSED(grt_pool_submit_with(pool, &submission, &request), "in use by a context");
    OK(grt_context_set_state(own, NULL));
    block(pool);
    request = submit(pool, &submission);
    grt_request *refused = NULL;
    REFUSED(grt_pool_submit_with(other, &submission, &refused), "in use by another pool");
    REFUSED(grt_state_reset(state), "requests of a pool");
    REFUSED(grt_context_set_state(own, state), "requests of a pool");
    grt_state_release(state); /* the request has it */
    sem_post(&gate);
    finish(request, GRT_OK);
    state = make_state(on, false);
    const grt_tensor both[2] = {one, one};
    submission = of_state(state);
    submission.inputs = both;
    request = submit(pool, &submission);
    ck_assert_int_eq(grt_request_wait(request), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "belongs to the context's state"), "%s", grt_last_error());
    grt_request_release(request);
    submission.inputs = inputs;
    finish(submit(other, &submission), GRT_OK); /* free again */
    expect_steps(state, 1);
    grt_state_release(state);
    grt_context_release(own);
    grt_pool_release(pool);
    grt_pool_release(other);
    grt_session_release(on);
    grt_model_release(model);
    sem_destroy(&gate);
}
END_TEST

/* ---- several devices ---- */

static size_t step_at(grt_pool *pool, grt_state *state)
{
    const grt_submission submission = of_state(state);
    grt_request_info info = {.struct_size = sizeof info};
    grt_request *request = submit(pool, &submission);
    OK(grt_request_wait(request));
    OK(grt_request_get_info(request, &info));
    grt_request_release(request);
    return info.session;
}

START_TEST(runs_where_its_state_is)
{
    grt_request *requests[STEPS];
    open_doubling();
    grt_session *sessions[] = {open_at("mirror:0"), open_at("mirror:2"), open_at("cpu")};
    grt_pool *pool = pool_on(sessions, 3, 1);
    grt_state *states[3];
    for (size_t i = 0; i < 3; i++)
        states[i] = make_state(sessions[i], false);
    for (int k = 0; k < 5; k++)
        for (size_t i = 0; i < 3; i++)
            ck_assert_uint_eq(step_at(pool, states[i]), i);
    OK(grt_pool_replace_session(pool, 0, 1, sessions[2])); /* none is on mirror:2 any more */
    for (int k = 0; k < STEPS / 4; k++) {
        const grt_submission submission = of_state(states[1]);
        requests[k] = submit(pool, &submission);
    }
    for (int k = 0; k < STEPS / 4; k++)
        finish(requests[k], GRT_OK);
    grt_state_info info = {.struct_size = sizeof info};
    expect_steps(states[1], 5 + STEPS / 4);
    OK(grt_state_get(states[1], 0, &info));
    ck_assert(info.tensor.memory == GRT_MEMORY_HOST || info.tensor.device == 0);
    for (size_t i = 0; i < 3; i++)
        grt_state_release(states[i]);
    grt_pool_release(pool);
    for (size_t i = 0; i < 3; i++)
        grt_session_release(sessions[i]);
    grt_model_release(model);
}
END_TEST

/* Streams on mirror:1, which fails, are lost; those on another device go on. */
START_TEST(is_lost_with_its_device)
{
    static grt_request *requests[2][COPIES];
    char text[32];
    int lost = 0;
    snprintf(text, sizeof text, "1:%d", (int)COPIES);
    setenv("GRAPHRT_MIRROR_FAULT", text, 1);
    open_doubling();
    grt_session *sessions[] = {open_at("mirror:0"), open_at("mirror:1")};
    grt_pool *pool = pool_on(sessions, 2, 2);
    grt_state *states[2] = {make_state(sessions[0], false), make_state(sessions[1], false)};
    for (int k = 0; k < COPIES; k++)
        for (size_t i = 0; i < 2; i++) {
            const grt_submission submission = of_state(states[i]);
            requests[i][k] = submit(pool, &submission);
        }
    for (int k = 0; k < COPIES; k++) {
        finish(requests[0][k], GRT_OK);
        const grt_status status = grt_request_wait(requests[1][k]);
        ck_assert_int_eq(status, lost ? GRT_STATUS_DEVICE : status);
        lost += status != GRT_OK;
        grt_request_release(requests[1][k]);
    }
    ck_assert_int_gt(lost, 0);
    ck_assert_int_eq(grt_session_check(sessions[1]), GRT_STATUS_DEVICE);
    ck_assert_uint_eq(step_at(pool, states[0]), 0);
    grt_state_release(states[1]);
    grt_state_release(states[0]);
    grt_pool_release(pool);
    for (size_t i = 0; i < 2; i++)
        grt_session_release(sessions[i]);
    grt_model_release(model);
}
END_TEST

/* ---- many at once ---- */

typedef struct drawer {
    grt_pool *pool;
    grt_session *on;
    unsigned seed;
    atomic_int answered;
} drawer;

static void count_answer(void *user, grt_request *request)
{
    (void)request;
    atomic_fetch_add(&((drawer *)user)->answered, 1);
}

/* A thread's own streams, with cancels and deadlines; what ended well is in the state. */
static void *draw(void *arg)
{
    drawer *d = arg;
    grt_request *requests[20];
    for (int round = 0; round < DRAWN / 20; round++) {
        grt_state *state = make_state(d->on, false);
        int good = 0;
        for (int i = 0; i < 20; i++) {
            grt_submission submission = of_state(state);
            submission.priority = rand_r(&d->seed) % 3;
            submission.deadline_ms = rand_r(&d->seed) % 8 ? 0 : grt_clock_ms() + rand_r(&d->seed) % 3;
            submission.done = rand_r(&d->seed) % 2 ? count_answer : NULL;
            submission.user = d;
            requests[i] = submit(d->pool, &submission);
            if (rand_r(&d->seed) % 6 == 0)
                grt_request_cancel(requests[rand_r(&d->seed) % (unsigned)(i + 1)]);
        }
        for (int i = 0; i < 20; i++) {
            good += grt_request_wait(requests[i]) == GRT_OK;
            grt_request_release(requests[i]);
        }
        expect_steps(state, good);
        grt_state_release(state);
    }
    return NULL;
}

START_TEST(many_threads)
{
    drawer drawers[THREADS];
    pthread_t threads[THREADS];
    open_doubling();
    grt_session *on = open_at(devices[_i]);
    grt_pool *pool = pool_on(&on, 1, 3);
    for (int i = 0; i < THREADS; i++) {
        drawers[i] = (drawer){.pool = pool, .on = on, .seed = (unsigned)i + 1};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, draw, &drawers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    grt_pool_stats stats = {.struct_size = sizeof stats};
    OK(grt_pool_get_stats(pool, 0, &stats));
    ck_assert_uint_eq(stats.submitted, stats.succeeded + stats.cancelled + stats.late);
    grt_pool_release(pool);
    grt_session_release(on);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_pool_state(void);
Suite *suite_test_pool_state(void)
{
    Suite *s = suite_create("test_pool_state");
    TCase *t = tcase_create("test_pool_state");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, keeps_order, 0, 4);
    tcase_add_loop_test(t, those_that_end_let_the_next_follow, 0, N_DEVICES);
    tcase_add_loop_test(t, belongs_to_the_pool_meanwhile, 0, N_DEVICES);
    tcase_add_test(t, runs_where_its_state_is);
    tcase_add_test(t, is_lost_with_its_device);
    tcase_add_loop_test(t, many_threads, 0, N_DEVICES);
    suite_add_tcase(s, t);
    return s;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in processes of their own: results, errors, batches, cancels; processes that are killed are
 * replaced, and each request is answered once. */
#define _GNU_SOURCE
#include "tests/unit/service.h"
#include "tests/unit/runtime.h"

#include <graphrt/processes.h>

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static grt_model *open_made(onnx_model *m)
{
    grt_model *model = onnx_open(m, runtime);
    onnx_release(m);
    return model;
}

/* x [N,8] -> Neg -> y */
static grt_model *open_neg(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,8");
    onnx_node(&m, m.graph, "Neg", "x", "y");
    onnx_output(&m, m.graph, "y");
    return open_made(&m);
}

/* x [N] -> NonZero -> y: its size depends on data */
static grt_model *open_places(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N");
    onnx_node(&m, m.graph, "NonZero", "x", "y");
    onnx_output(&m, m.graph, "y");
    return open_made(&m);
}

static grt_pool *make_pool(grt_model *model, size_t n, const grt_pool_options *options, int32_t most_failures)
{
    static const char *const where[] = {"cpu", "cpu", "cpu"};
    const grt_process_options processes = {.struct_size = sizeof processes,
                                           .program = service_program(),
                                           .threads = 1,
                                           .grace_ms = 300,
                                           .most_failures = most_failures};
    grt_pool *pool;
    size_t lane;
    ck_assert_int_eq(grt_pool_create(NULL, 0, NULL, &pool), GRT_OK);
    ck_assert_msg(grt_pool_add_processes(pool, model, where, n, options, &processes, &lane) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert_uint_eq(lane, 0);
    return pool;
}

static int64_t pid_of(grt_pool *pool, size_t index, uint64_t *out_started)
{
    grt_process_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_pool_get_process(pool, 0, index, &info), GRT_OK);
    if (out_started)
        *out_started = info.started;
    return info.pid;
}

static void await_started(grt_pool *pool, size_t index, uint64_t wanted)
{
    uint64_t started = 0;
    for (int i = 0; i < 3000 && started < wanted; i++) {
        pid_of(pool, index, &started);
        usleep(10000);
    }
    ck_assert_uint_ge(started, wanted);
}

START_TEST(results_come_back)
{
    grt_model *model = open_neg();
    grt_pool *pool = make_pool(model, 1, NULL, 0);
    float x[3 * 8], y[3 * 8] = {0};
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    for (int64_t rows = 1; rows <= 3; rows++) {
        const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 8}, .data = x};
        const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, 8}, .data = y};
        grt_request *request;
        grt_tensor found;
        ck_assert_msg(grt_pool_run(pool, &in, 1, &out, 1) == GRT_OK, "%s", grt_last_error());
        for (int i = 0; i < rows * 8; i++)
            ck_assert(y[i] == -x[i]);
        ck_assert_int_eq(grt_pool_submit(pool, &in, 1, NULL, 0, &request), GRT_OK);
        ck_assert_int_eq(grt_request_wait(request), GRT_OK);
        ck_assert_int_eq(grt_request_get_output(request, 0, &found), GRT_OK);
        ck_assert_int_eq(found.dims[0], rows);
        ck_assert_mem_eq(found.data, y, (size_t)rows * 8 * sizeof *y);
        grt_request_release(request);
    }
    grt_pool_release(pool);
    grt_model_release(model);
}
END_TEST

/* Memory that both share grows: inputs by this side, results of unknown size by the other. */
START_TEST(memory_grows)
{
    enum { MOST = 1 << 18 };
    grt_model *model = open_places();
    grt_pool *pool = make_pool(model, 1, NULL, 0);
    float *x = malloc(MOST * sizeof *x);
    for (int i = 0; i < MOST; i++)
        x[i] = (float)(i % 2);
    for (int64_t n = 4; n <= MOST; n *= 16) {
        const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {n}, .data = x};
        grt_request *request;
        grt_tensor found;
        ck_assert_int_eq(grt_pool_submit(pool, &in, 1, NULL, 0, &request), GRT_OK);
        ck_assert_msg(grt_request_wait(request) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_request_get_output(request, 0, &found), GRT_OK);
        ck_assert_int_eq(found.dtype, GRT_DTYPE_INT64);
        ck_assert_int_eq(found.dims[1], n / 2);
        for (int64_t i = 0; i < n / 2; i++)
            ck_assert_int_eq(((const int64_t *)found.data)[i], 2 * i + 1);
        grt_request_release(request);
    }
    free(x);
    grt_pool_release(pool);
    grt_model_release(model);
}
END_TEST

START_TEST(errors_are_told)
{
    grt_model *model = open_neg();
    grt_pool *pool = make_pool(model, 1, NULL, 0);
    float x[16] = {0};
    const grt_tensor wrong = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 7}, .data = x};
    const grt_tensor on_device = {
        .dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = x, .memory = GRT_MEMORY_DEVICE};
    const grt_tensor nothing = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}};
    ck_assert_int_eq(grt_pool_run(pool, &wrong, 1, NULL, 0), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "'x' must be"));
    ck_assert_int_eq(grt_pool_run(pool, &on_device, 1, NULL, 0), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_run(pool, &nothing, 1, NULL, 0), GRT_STATUS_INVALID_ARGUMENT);
    uint64_t started;
    ck_assert(pid_of(pool, 0, &started) > 0 && started == 1); /* the same process still */
    const char *const nowhere[] = {"nosuch:0"};
    const grt_process_options processes = {.struct_size = sizeof processes, .program = service_program()};
    const grt_process_options missing = {.struct_size = sizeof missing, .program = "/nonexistent/graphrun"};
    const grt_process_options ends = {.struct_size = sizeof ends, .program = "/bin/true"};
    size_t lane;
    ck_assert_int_eq(grt_pool_add_processes(pool, model, nowhere, 1, NULL, &processes, &lane),
                     GRT_STATUS_DEVICE);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "nosuch"));
    ck_assert_int_eq(grt_pool_add_processes(pool, model, nowhere, 1, NULL, &missing, &lane), GRT_STATUS_IO);
    ck_assert_int_eq(grt_pool_add_processes(pool, model, nowhere, 1, NULL, &ends, &lane), GRT_STATUS_IO);
    ck_assert_int_eq(grt_pool_add_processes(pool, model, nowhere, 0, NULL, &ends, &lane),
                     GRT_STATUS_INVALID_ARGUMENT);
    grt_pool_release(pool);
    grt_model_release(model);
}
END_TEST

/* The mirror has 16 processors; the message is that of the session in its process. */
START_TEST(parts_of_a_device)
{
    const char *const mirror[] = {"mirror:1"};
    grt_model *model = open_neg();
    grt_process_options processes = {
        .struct_size = sizeof processes, .program = service_program(), .threads = 1, .multiprocessors = 17};
    grt_pool *pool;
    size_t lane;
    float x[8] = {1, 2, 3}, y[8];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = x};
    const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = y};
    ck_assert_int_eq(grt_pool_create(NULL, 0, NULL, &pool), GRT_OK);
    ck_assert_int_eq(grt_pool_add_processes(pool, model, mirror, 1, NULL, &processes, &lane),
                     GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "has 16 processors, 17 are wanted"));
    processes.multiprocessors = 5;
    ck_assert_msg(grt_pool_add_processes(pool, model, mirror, 1, NULL, &processes, &lane) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert_msg(grt_pool_run(pool, &in, 1, &out, 1) == GRT_OK, "%s", grt_last_error());
    ck_assert(y[2] == -3);
    grt_pool_release(pool);
    grt_model_release(model);
}
END_TEST

/* An idle process that is killed is replaced, and nobody notices. */
START_TEST(idle_process_is_replaced)
{
    grt_model *model = open_neg();
    grt_pool *pool = make_pool(model, 1, NULL, 0);
    float x[8] = {1, 2, 3}, y[8];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = x};
    const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = y};
    ck_assert_int_eq(grt_pool_run(pool, &in, 1, &out, 1), GRT_OK);
    for (uint64_t i = 1; i <= 2; i++) {
        const int64_t before = pid_of(pool, 0, NULL);
        ck_assert_int_eq(kill((pid_t)before, SIGKILL), 0);
        y[2] = 0;
        ck_assert_msg(grt_pool_run(pool, &in, 1, &out, 1) == GRT_OK, "%s", grt_last_error());
        ck_assert(y[2] == -3);
        await_started(pool, 0, i + 1);
        ck_assert_int_ne(pid_of(pool, 0, NULL), before);
        ck_assert_int_eq(grt_pool_run(pool, &in, 1, &out, 1), GRT_OK);
    }
    grt_pool_release(pool);
    grt_model_release(model);
}
END_TEST

typedef struct shooting {
    grt_pool *pool;
    atomic_bool over;
    atomic_int kills;
} shooting;

static void *shoot_processes(void *user)
{
    shooting *s = user;
    for (size_t i = 0; !atomic_load(&s->over); i++) {
        usleep(60000);
        const int64_t pid = pid_of(s->pool, i % 2, NULL);
        if (pid && kill((pid_t)pid, SIGKILL) == 0)
            atomic_fetch_add(&s->kills, 1);
    }
    return NULL;
}

static void count_answer(void *user, grt_request *request)
{
    (void)request;
    atomic_fetch_add((atomic_int *)user, 1);
}

/* Two processes that are killed again and again, with batches: each request has one answer, right or DEVICE.
 */
START_TEST(killed_under_load)
{
    enum { OPEN = 24, ROUNDS = 120 };
    static float x[OPEN][8], y[OPEN][8];
    grt_model *model = open_neg();
    const grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 2, .queue = OPEN, .max_batch = 4 * (_i != 0)};
    shooting s = {.pool = make_pool(model, 2, &options, 1000)};
    atomic_int answers = 0;
    int good = 0, lost = 0;
    pthread_t killer;
    ck_assert_int_eq(pthread_create(&killer, NULL, shoot_processes, &s), 0);
    for (int round = 0; round < ROUNDS; round++) {
        grt_request *requests[OPEN];
        for (int i = 0; i < OPEN; i++) {
            x[i][0] = (float)(round * OPEN + i);
            const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = x[i]};
            const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = y[i]};
            const grt_submission submission = {.struct_size = sizeof submission,
                                               .inputs = &in,
                                               .n_inputs = 1,
                                               .outputs = &out,
                                               .n_outputs = 1,
                                               .done = count_answer,
                                               .user = &answers};
            ck_assert_int_eq(grt_pool_submit_with(s.pool, &submission, &requests[i]), GRT_OK);
        }
        for (int i = 0; i < OPEN; i++) {
            const grt_status status = grt_request_wait(requests[i]);
            ck_assert_msg(status == GRT_OK || status == GRT_STATUS_DEVICE, "%s", grt_last_error());
            good += status == GRT_OK;
            lost += status != GRT_OK;
            ck_assert(status != GRT_OK || y[i][0] == -x[i][0]);
            grt_request_release(requests[i]);
        }
        usleep(5000);
    }
    atomic_store(&s.over, true);
    pthread_join(killer, NULL);
    ck_assert_int_gt(atomic_load(&s.kills), 2);
    ck_assert_int_eq(good + lost, OPEN * ROUNDS);
    ck_assert_int_lt(lost, OPEN); /* whose second process was killed, too */
    ck_assert_int_eq(grt_pool_drain(s.pool, 0), GRT_OK);
    ck_assert_int_eq(atomic_load(&answers), OPEN * ROUNDS);
    grt_pool_release(s.pool);
    grt_model_release(model);
}
END_TEST

/* Returns when the process runs no more: a signal by itself takes effect later. */
static void stop_process(pid_t pid)
{
    siginfo_t stopped;
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WNOWAIT), 0);
}

/* A process that is stopped does not answer: what is late or cancelled ends it. */
START_TEST(process_that_hangs)
{
    grt_model *model = open_neg();
    grt_pool *pool = make_pool(model, 1, NULL, 0);
    float x[8] = {0};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 8}, .data = x};
    grt_request *request;
    ck_assert_int_eq(grt_pool_run(pool, &in, 1, NULL, 0), GRT_OK);
    stop_process((pid_t)pid_of(pool, 0, NULL));
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .inputs = &in,
                                       .n_inputs = 1,
                                       .deadline_ms = _i ? grt_clock_ms() + 100 : 0};
    ck_assert_int_eq(grt_pool_submit_with(pool, &submission, &request), GRT_OK);
    if (!_i) {
        usleep(50000);
        grt_request_cancel(request);
    }
    ck_assert_int_eq(grt_request_wait(request), _i ? GRT_STATUS_DEADLINE_EXCEEDED : GRT_STATUS_CANCELLED);
    grt_request_release(request);
    ck_assert_msg(grt_pool_run(pool, &in, 1, NULL, 0) == GRT_OK, "%s", grt_last_error());
    uint64_t started;
    ck_assert(pid_of(pool, 0, &started) > 0 && started == 2);
    grt_pool_release(pool);
    grt_model_release(model);
}
END_TEST

/* Nobody is left behind: after the pool's release the process is gone. */
START_TEST(ends_with_its_pool)
{
    grt_model *model = open_neg();
    grt_pool *pool = make_pool(model, 3, NULL, 0);
    int64_t pids[3];
    for (size_t i = 0; i < 3; i++)
        pids[i] = pid_of(pool, i, NULL);
    grt_pool_release(pool);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(kill((pid_t)pids[i], 0), -1);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_processes(void);
Suite *suite_test_processes(void)
{
    Suite *suite = suite_create("processes");
    TCase *cases = tcase_create("pool");
    tcase_add_checked_fixture(cases, runtime_open, runtime_close);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, results_come_back);
    tcase_add_test(cases, memory_grows);
    tcase_add_test(cases, errors_are_told);
    tcase_add_test(cases, parts_of_a_device);
    tcase_add_test(cases, idle_process_is_replaced);
    tcase_add_loop_test(cases, killed_under_load, 0, 2);
    tcase_add_loop_test(cases, process_that_hangs, 0, 2);
    tcase_add_test(cases, ends_with_its_pool);
    suite_add_tcase(suite, cases);
    return suite;
}

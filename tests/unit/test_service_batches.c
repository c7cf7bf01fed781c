/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a pool: rows of several requests are one run; dims of outputs before it; a pool that waits for
 * nothing sleeps. */
#include "tests/unit/service.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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
    c->request = service_submit(pool, &s);
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
                                      .max_delay_ms = SERVICE_LONG_MS,
                                      .padding = padding};
    return service_open_pool(service_open_rows(), devices[i], &options);
}

/* Requests of 1, 2 and 2 rows are a batch of 5, 8 with padding, in one service_block of memory. */
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
                                      .max_delay_ms = SERVICE_LONG_MS,
                                      .padding = GRT_PADDING_FULL};
    const uint64_t bytes = ROWS * (3 * sizeof(float) + sizeof(int64_t));
    grt_memory_info before = {.struct_size = sizeof before}, now = before;
    grt_model *model = service_open_rows();
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
    grt_pool *pool = service_open_pool(service_open_rows(), devices[_i], &options);
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
    grt_model *model = service_open_loop();
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
    grt_model *model = service_open(&m);
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
    grt_pool *pool = service_open_pool(service_open_rows(), devices[_i], &options);
    row_call c;
    submit_rows(pool, &c, 1, 1, false);
    expect_rows(&c, 0);
    grt_request_release(c.request);
    service_sleep_ms(50);
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    const long waits = count_waits();
    service_sleep_ms(300);
    ck_assert_int_le(count_waits() - waits, MOST_WAITS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_int_lt((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000, 30);
    grt_pool_release(pool);
}
END_TEST

/* All requests of a batch have left, so that none is open, and the context still computes it: the pool's
 * release waits for that before any of its lanes goes. Sanitizers see it. */
START_TEST(released_behind_a_batch_that_all_left)
{
    enum { K = 512, N = 48, TURNS = 12 };
    static float x[N * K];
    const grt_pool_options alone = {.struct_size = sizeof alone}, batched = {.struct_size = sizeof batched,
                                                                             .contexts = 1,
                                                                             .max_batch = 64,
                                                                             .padding = GRT_PADDING_FULL};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,512");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "512,512"));
    onnx_node(&m, m.graph, "MatMul", "x,w", "y");
    onnx_output(&m, m.graph, "y");
    grt_model *model = service_open(&m);
    grt_session *session;
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {N, K}, .data = x};
    OK(grt_session_create(model, devices[_i], NULL, &session));
    for (int i = 0; i < TURNS; i++) {
        grt_pool *pool;
        size_t lane;
        OK(grt_pool_create(&session, 1, &alone, &pool));
        OK(grt_pool_add(pool, &session, 1, &batched, &lane));
        const grt_submission s = {.struct_size = sizeof s, .lane = lane, .inputs = &in, .n_inputs = 1};
        grt_request *r = service_submit(pool, &s);
        const double until = grt_clock_ms() + 0.05 * i;
        while (grt_clock_ms() < until)
            ;
        grt_request_cancel(r);
        grt_request_release(r);
        grt_pool_release(pool);
    }
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_service_batches(void);
Suite *suite_test_service_batches(void)
{
    Suite *suite = suite_create("service batches");
    TCase *tc = tcase_create("service batches");
    tcase_add_checked_fixture(tc, runtime_open, runtime_close);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, batches, 0, 3 * N_DEVICES);
    tcase_add_test(tc, batches_are_counted);
    tcase_add_loop_test(tc, batches_in_time, 0, N_DEVICES);
    tcase_add_loop_test(tc, batches_of_others, 0, N_DEVICES);
    tcase_add_test(tc, models_without_rows);
    tcase_add_loop_test(tc, dims_of_outputs, 0, N_DEVICES);
    tcase_add_loop_test(tc, idle, 0, N_DEVICES);
    tcase_add_loop_test(tc, released_behind_a_batch_that_all_left, 0, N_DEVICES);
    suite_add_tcase(suite, tc);
    return suite;
}

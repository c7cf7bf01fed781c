/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, and copies from and to page-locked memory: on the CPU and on the mirror. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* x [N] -> y = x + x, and z = -x */
static grt_model *open_model(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N");
    onnx_node(&m, m.graph, "Add", "x,x", "y");
    onnx_node(&m, m.graph, "Neg", "x", "z");
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "z");
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    return model;
}

static grt_session *open_session(grt_model *model, const char *device)
{
    grt_session *session = NULL;
    ck_assert_msg(grt_session_create(model, device, NULL, &session) == GRT_OK, "%s", grt_last_error());
    return session;
}

static grt_tensor vector(float *data, int64_t n)
{
    return (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {n}, .data = data};
}

static float *ramp(int64_t n, float first)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = first + (float)(i % 1013);
    return x;
}

/* True if each y is the factor times x. */
static bool is_multiple(const float *y, const float *x, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        if (y[i] != factor * x[i])
            return false;
    return true;
}

/* Small and large: drivers treat them differently. */
static const int64_t sizes[] = {0, 1, 16383, 16384, 65535, 65536, 65537, 524287, 524288, 524289, 1500001};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

START_TEST(copies_of_all_sizes)
{
    grt_model *model = open_model();
    grt_session *session = open_session(model, "mirror:0");
    grt_context *context;
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < N_SIZES; i++) {
            const int64_t n = sizes[i];
            float *x = ramp(n, (float)round), *y = calloc((size_t)n + 1, sizeof *y);
            grt_tensor in = vector(x, n), bound = vector(y, n), out;
            ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
            ck_assert_int_eq(grt_context_set_output(context, 0, round ? &bound : NULL), GRT_OK);
            ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
            ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
            ck_assert(is_multiple(out.data, x, n, 2));
            ck_assert(!round || !n || out.data == y);
            ck_assert_int_eq(grt_context_get_output(context, 1, &out), GRT_OK);
            ck_assert(is_multiple(out.data, x, n, -1));
            grt_value *copy;
            ck_assert_int_eq(grt_context_get_output_value(context, 0, &copy), GRT_OK);
            ck_assert_int_eq(grt_value_tensor(copy, &out), GRT_OK);
            ck_assert(is_multiple(out.data, x, n, 2));
            grt_value_release(copy);
            free(x);
            free(y);
        }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

START_TEST(pinned_memory)
{
    enum { SIZE = 70000 };
    grt_model *model = open_model();
    for (int d = 0; d < N_DEVICES; d++) {
        grt_session *session = open_session(model, devices[d]);
        grt_context *context;
        void *x, *y;
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        ck_assert_int_eq(grt_session_alloc_host(session, SIZE * sizeof(float), &x), GRT_OK);
        ck_assert_int_eq(grt_session_alloc_host(session, SIZE * sizeof(float), &y), GRT_OK);
        ck_assert_uint_eq((uintptr_t)x % 256, 0);
        grt_tensor in = vector(x, SIZE), out = vector(y, SIZE);
        in.memory = out.memory = GRT_MEMORY_PINNED;
        ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
        ck_assert_int_eq(grt_context_set_output(context, 0, &out), GRT_OK);
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < SIZE; i++)
                ((float *)x)[i] = (float)(i + round);
            memset(y, 0, SIZE * sizeof(float));
            ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
            ck_assert(is_multiple(y, x, SIZE, 2));
        }
        grt_session_free_host(session, x);
        grt_session_free_host(session, y);
        grt_session_free_host(session, NULL);
        ck_assert_int_eq(grt_session_alloc_host(session, SIZE_MAX, &x), GRT_STATUS_INVALID_ARGUMENT);
        grt_context_release(context);
        grt_session_release(session);
    }
    grt_model_release(model);
}
END_TEST

/* Copies from and to page-locked memory are part of what is enqueued; pageable memory is refused. */
START_TEST(enqueued_copies)
{
    enum { SIZE = 1000 };
    grt_model *model = open_model();
    grt_session *session = open_session(model, "mirror:0");
    grt_context *context;
    void *x, *y;
    float pageable[SIZE] = {0};
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_session_alloc_host(session, sizeof pageable, &x), GRT_OK);
    ck_assert_int_eq(grt_session_alloc_host(session, sizeof pageable, &y), GRT_OK);
    grt_tensor in = vector(pageable, SIZE), out = vector(pageable, SIZE);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_ptr_nonnull(grt_context_stream(context));
    ck_assert_int_eq(grt_context_run_async(context, NULL), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "pageable"), "%s", grt_last_error());
    in.memory = out.memory = GRT_MEMORY_PINNED;
    in.data = x;
    out.data = y;
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_int_eq(grt_context_set_output(context, 0, &out), GRT_OK);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < SIZE; i++)
            ((float *)x)[i] = (float)(i * round);
        memset(y, 0x55, sizeof pageable);
        /* NULL is that stream */
        ck_assert_msg(grt_context_run_async(context, round % 2 ? grt_context_stream(context) : NULL) ==
                          GRT_OK,
                      "%s", grt_last_error());
        /* a run that waits, behind it on the same stream */
        ck_assert_int_eq(grt_context_run(context), GRT_OK);
        ck_assert(is_multiple(y, x, SIZE, 2));
    }
    grt_session_free_host(session, x);
    grt_session_free_host(session, y);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

enum { THREADS = 6, EACH = 40 };

typedef struct client {
    grt_pool *pool;
    int index;
    bool good;
} client;

/* Requests of changing sizes; outputs bound or not. */
static void *ask(void *arg)
{
    client *c = arg;
    c->good = true;
    for (int i = 0; i < EACH && c->good; i++) {
        const int64_t n = 1 + (i * 37 + c->index * 11) % 3 * 20000;
        float *x = ramp(n, (float)c->index), *y = calloc((size_t)n, sizeof *y);
        grt_tensor in = vector(x, n), outs[2] = {vector(y, n)}, found;
        grt_request *request;
        const bool bound = i % 2;
        c->good = grt_pool_submit(c->pool, &in, 1, outs, bound ? 1 : 0, &request) == GRT_OK;
        if (!c->good)
            break;
        c->good = grt_request_wait(request) == GRT_OK &&
                  grt_request_get_output(request, 0, &found) == GRT_OK && found.dims[0] == n &&
                  (!bound || found.data == y) && is_multiple(found.data, x, n, 2) &&
                  grt_request_get_output(request, 1, &found) == GRT_OK && is_multiple(found.data, x, n, -1);
        grt_request_release(request);
        free(x);
        free(y);
    }
    return NULL;
}

START_TEST(from_many_threads)
{
    static const char *const sets[][3] = {{"cpu", NULL}, {"mirror:0", "mirror:1", NULL}};
    for (size_t set = 0; set < 2; set++)
        for (int32_t contexts = 0; contexts < 4; contexts += 3) {
            grt_model *model = open_model();
            grt_session *sessions[2];
            size_t n = 0;
            for (; sets[set][n]; n++)
                sessions[n] = open_session(model, sets[set][n]);
            const grt_pool_options options = {
                .struct_size = sizeof options, .contexts = contexts, .queue = 2};
            grt_pool *pool;
            ck_assert_int_eq(grt_pool_create(sessions, n, &options, &pool), GRT_OK);
            for (size_t i = 0; i < n; i++) /* the pool holds them */
                grt_session_release(sessions[i]);
            grt_model_release(model);
            pthread_t threads[THREADS];
            client clients[THREADS];
            for (int i = 0; i < THREADS; i++) {
                clients[i] = (client){.pool = pool, .index = i};
                ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &clients[i]), 0);
            }
            for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], NULL);
                ck_assert(clients[i].good);
            }
            grt_pool_release(pool);
        }
}
END_TEST

/* Requests that nobody waited for are finished, and outlive the pool. */
START_TEST(released_with_requests)
{
    enum { SIZE = 30000, REQUESTS = 9 };
    grt_model *model = open_model();
    grt_session *sessions[] = {open_session(model, "mirror:0"), open_session(model, "mirror:1")};
    grt_request *requests[REQUESTS];
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1, .queue = REQUESTS};
    grt_pool *pool;
    float *x = ramp(SIZE, 1);
    grt_tensor in = vector(x, SIZE), out;
    size_t ran_by[2] = {0};
    ck_assert_int_eq(grt_pool_create(sessions, 2, &options, &pool), GRT_OK);
    for (int i = 0; i < REQUESTS; i++)
        ck_assert_int_eq(grt_pool_submit(pool, &in, 1, NULL, 0, &requests[i]), GRT_OK);
    grt_pool_release(pool);
    for (int i = 0; i < REQUESTS; i++) {
        grt_request_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(grt_request_wait(requests[i]), GRT_OK);
        ck_assert_int_eq(grt_request_get_output(requests[i], 0, &out), GRT_OK);
        ck_assert(is_multiple(out.data, x, SIZE, 2));
        ck_assert_int_eq(grt_request_get_info(requests[i], &info), GRT_OK);
        ck_assert(info.session < 2 && info.run_ms > 0 && info.queued_ms >= 0);
        ran_by[info.session]++;
        grt_request_release(requests[i]);
    }
    ck_assert(ran_by[0] && ran_by[1]);
    free(x);
    for (int i = 0; i < 2; i++)
        grt_session_release(sessions[i]);
    grt_model_release(model);
}
END_TEST

START_TEST(what_is_wrong_is_told)
{
    grt_model *model = open_model(), *other = open_model();
    grt_session *session = open_session(model, "cpu"), *stranger = open_session(other, "cpu");
    grt_session *mixed[] = {session, stranger}, *missing[] = {session, NULL};
    grt_pool_options options = {.struct_size = sizeof options, .contexts = -1};
    grt_pool *pool;
    float x[4] = {0}, y[4];
    grt_tensor in = vector(x, 4), out = vector(y, 3), found;
    grt_request *request;
    ck_assert_int_eq(grt_pool_create(mixed, 2, NULL, &pool), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_create(missing, 2, NULL, &pool), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_create(&session, 1, &options, &pool), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_create(&session, 0, NULL, &pool), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_create(&session, 1, NULL, &pool), GRT_OK);
    ck_assert_int_eq(grt_pool_submit(pool, &in, 2, NULL, 0, &request), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_submit(pool, NULL, 1, NULL, 0, &request), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_pool_run(pool, &in, 1, &out, 1), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "output 'y'"), "%s", grt_last_error());
    in.dtype = GRT_DTYPE_NONE; /* x has no default */
    ck_assert_int_eq(grt_pool_submit(pool, &in, 1, NULL, 0, &request), GRT_OK);
    ck_assert_int_eq(grt_request_wait(request), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "'x' is not set"), "%s", grt_last_error());
    ck_assert_int_eq(grt_request_get_output(request, 0, &found), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "'x' is not set"), "%s", grt_last_error());
    grt_request_release(request);
    /* the pool goes on */
    in = vector(x, 4);
    out = vector(y, 4);
    ck_assert_int_eq(grt_pool_run(pool, &in, 1, &out, 1), GRT_OK);
    ck_assert(is_multiple(y, x, 4, 2));
    ck_assert_int_eq(grt_request_wait(NULL), GRT_STATUS_INVALID_ARGUMENT);
    grt_request_release(NULL);
    grt_pool_release(pool);
    grt_pool_release(NULL);
    grt_session_release(session);
    grt_session_release(stranger);
    grt_model_release(model);
    grt_model_release(other);
}
END_TEST

/* x [N] -> s = the sequence of x and -x */
static grt_model *open_sequence_model(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N");
    onnx_node(&m, m.graph, "Neg", "x", "z");
    onnx_node(&m, m.graph, "SequenceConstruct", "x,z", "s");
    onnx_output(&m, m.graph, "s");
    Onnx__TypeProto__Sequence sequence = ONNX__TYPE_PROTO__SEQUENCE__INIT;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    sequence.elem_type = m.graph->output[0]->type;
    type.value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    type.sequence_type = &sequence;
    m.graph->output[0]->type = &type;
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    return model;
}

START_TEST(values_of_any_kind)
{
    const grt_session_options options = {.struct_size = sizeof options, .fallback = "cpu"};
    grt_model *model = open_sequence_model();
    for (int d = 0; d < N_DEVICES; d++) {
        grt_session *session;
        grt_pool *pool;
        grt_request *request;
        grt_value *x;
        const grt_value *none = NULL, *out;
        grt_tensor t = vector((float[]){1, 2, 3}, 3);
        ck_assert_int_eq(grt_value_from_tensor(&t, &x), GRT_OK);
        ck_assert_int_eq(grt_session_create(model, devices[d], &options, &session), GRT_OK);
        ck_assert_int_eq(grt_pool_create(&session, 1, NULL, &pool), GRT_OK);
        ck_assert_int_eq(grt_pool_submit_values(pool, (const grt_value *const *)&x, 1, &request), GRT_OK);
        ck_assert_msg(grt_request_wait(request) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_request_get_output(request, 0, &t), GRT_STATUS_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_request_get_output_value"));
        ck_assert_int_eq(grt_request_get_output_value(request, 1, &out), GRT_STATUS_INVALID_ARGUMENT);
        ck_assert_int_eq(grt_request_get_output_value(request, 0, &out), GRT_OK);
        ck_assert_int_eq(grt_value_kind(out), GRT_KIND_SEQUENCE);
        ck_assert_uint_eq(grt_value_count(out), 2);
        ck_assert_int_eq(grt_value_tensor(grt_value_item(out, 1), &t), GRT_OK);
        ck_assert(is_multiple(t.data, (const float[]){1, 2, 3}, 3, -1));
        grt_request_release(request);
        ck_assert_int_eq(grt_pool_submit_values(pool, NULL, 1, &request), GRT_STATUS_INVALID_ARGUMENT);
        ck_assert_int_eq(grt_pool_submit_values(pool, &none, 1, &request), GRT_OK);
        ck_assert_int_eq(grt_request_wait(request), GRT_STATUS_INVALID_ARGUMENT); /* x has no default */
        grt_request_release(request);
        grt_pool_release(pool);
        grt_session_release(session);
        grt_value_release(x);
    }
    grt_model_release(model);
}
END_TEST

/* A request is done a moment before its context is idle: that moment is waited for. */
START_TEST(replay_is_told_after_a_request)
{
    grt_model *model = open_model();
    float x[4] = {0};
    const grt_tensor in = vector(x, 4);
    for (int d = 0; d < N_DEVICES; d++) {
        const grt_pool_options options = {.struct_size = sizeof options, .contexts = 1};
        grt_session *session = open_session(model, devices[d]);
        grt_replay_info info = {.struct_size = sizeof info};
        grt_pool *pool;
        ck_assert_int_eq(grt_pool_create(&session, 1, &options, &pool), GRT_OK);
        ck_assert_int_eq(grt_pool_get_replay(pool, 0, &info), GRT_STATUS_INVALID_ARGUMENT);
        ck_assert_int_eq(grt_pool_get_replay(pool, 1, &info), GRT_STATUS_INVALID_ARGUMENT);
        for (int i = 0; i < 100; i++) {
            ck_assert_int_eq(grt_pool_run(pool, &in, 1, NULL, 0), GRT_OK);
            ck_assert_msg(grt_pool_get_replay(pool, 0, &info) == GRT_OK, "%s", grt_last_error());
        }
        ck_assert_int_eq(info.supported, strcmp(devices[d], "cpu") != 0);
        grt_pool_release(pool);
        grt_session_release(session);
    }
    grt_model_release(model);
}
END_TEST

Suite *suite_test_pool(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = tcase_create("pool");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, copies_of_all_sizes);
    tcase_add_test(tests, pinned_memory);
    tcase_add_test(tests, enqueued_copies);
    tcase_add_test(tests, from_many_threads);
    tcase_add_test(tests, released_with_requests);
    tcase_add_test(tests, what_is_wrong_is_told);
    tcase_add_test(tests, values_of_any_kind);
    tcase_add_test(tests, replay_is_told_after_a_request);
    suite_add_tcase(suite, tests);
    return suite;
}

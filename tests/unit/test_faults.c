/* SPDX-License-Identifier: Apache-2.0 */
/* Failing devices: out of memory at every allocation, failed captures, invalid pointers; and memory of
 * data-dependent outputs is kept between runs. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"
#include "tests/unit/tables.h"

#include "src/exec/context.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static grt_model *open_built(grt_runtime *in, onnx_model *m)
{
    grt_model *model = onnx_open(m, in);
    onnx_release(m);
    return model;
}

enum { SIZE = 64 };

/* x [2,64] -> MatMul -> Softmax -> y */
static grt_model *open_product(grt_runtime *in)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,64");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "64,64"));
    onnx_node(&m, m.graph, "MatMul", "x,w", "h")->name = "product";
    onnx_node(&m, m.graph, "Softmax", "h", "y")->name = "last";
    onnx_output(&m, m.graph, "y");
    return open_built(in, &m);
}

/* x [N] -> NonZero, which the mirror leaves to the CPU -> Mul, Sub on the device */
static grt_model *open_dynamic(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N");
    onnx_node(&m, m.graph, "NonZero", "x", "places")->name = "places of x";
    onnx_node(&m, m.graph, "Mul", "places,places", "squares");
    onnx_node(&m, m.graph, "Transpose", "squares", "y");
    onnx_output(&m, m.graph, "y");
    return open_built(runtime, &m);
}

static grt_status run_floats(grt_context *context, int32_t rank, int64_t n, float *x)
{
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = rank, .data = x};
    in.dims[0] = rank == 2 ? 2 : n;
    in.dims[1] = rank == 2 ? n / 2 : 0;
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    return grt_context_run(context);
}

/* Out of memory at each allocation: the error says how much was wanted and free, nothing leaks, and with more
 * memory the process goes on. */
START_TEST(out_of_memory)
{
    float x[2 * SIZE] = {0};
    size_t failed_sessions = 0, failed_runs = 0, good = 0;
    for (size_t limit = 0; limit < 24 << 10; limit += 256) {
        char text[32];
        grt_runtime *own;
        grt_session *session = NULL, *again = NULL;
        grt_context *context = NULL;
        snprintf(text, sizeof text, "%zu", limit);
        setenv("GRAPHRT_MIRROR_MEMORY", text, 1);
        ck_assert_int_eq(grt_runtime_create(&own), GRT_OK);
        grt_model *model = open_product(own);
        grt_status status = grt_session_create(model, "mirror:3", NULL, &session);
        failed_sessions += status != GRT_OK;
        if (status == GRT_OK && (status = grt_context_create(session, &context)) == GRT_OK) {
            status = run_floats(context, 2, 2 * SIZE, x);
            failed_runs += status != GRT_OK;
        }
        good += status == GRT_OK;
        if (status != GRT_OK) {
            ck_assert_int_eq(status, GRT_STATUS_OUT_OF_MEMORY);
            ck_assert_msg(strstr(grt_last_error(), "mirror:3 is out of memory: ") &&
                              strstr(grt_last_error(), " bytes wanted, ") &&
                              (session || strstr(grt_last_error(), "the model's weights: ")),
                          "%s", grt_last_error());
        }
        grt_context_release(context);
        grt_session_release(session);
        /* a refused allocation has no effect, and other devices are independent */
        ck_assert(grt_session_create(model, "mirror:3", NULL, &again) == (session ? GRT_OK : status));
        grt_session_release(again);
        ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &again), GRT_OK);
        grt_session_release(again);
        grt_model_release(model);
        grt_runtime_release(own);
    }
    unsetenv("GRAPHRT_MIRROR_MEMORY");
    ck_assert(failed_sessions >= SIZE && failed_runs >= 2 && good >= 2);
}
END_TEST

/* A session that finds no room leaves its device's memory to others. */
START_TEST(memory_comes_back)
{
    const char *const two[] = {"mirror:1", "mirror:2"};
    grt_runtime *own;
    grt_session *sessions[2] = {0};
    setenv("GRAPHRT_MIRROR_MEMORY", "20000", 1);
    ck_assert_int_eq(grt_runtime_create(&own), GRT_OK);
    grt_model *small = open_product(own), *other = open_product(own);
    ck_assert_int_eq(grt_sessions_create(small, two, 2, NULL, sessions), GRT_OK);
    grt_session *third = NULL; /* the same weights again: the plan is another, so they are not shared */
    ck_assert_int_eq(grt_session_create(other, "mirror:1", NULL, &third), GRT_STATUS_OUT_OF_MEMORY);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "the model's weights"));
    grt_session_release(sessions[0]);
    ck_assert_msg(grt_session_create(other, "mirror:1", NULL, &third) == GRT_OK, "%s", grt_last_error());
    grt_session_release(third);
    grt_session_release(sessions[1]);
    grt_model_release(small);
    grt_model_release(other);
    grt_runtime_release(own);
    unsetenv("GRAPHRT_MIRROR_MEMORY");
}
END_TEST

/* ---- a device of which single entries are replaced ---- */

static device_tables changed;
static size_t allocations, ended;
static atomic_size_t begun, thrown_away; /* by threads of a team */
static size_t capture_works;             /* from that attempt on */

static void change(grt_session *session)
{
    device_tables_take(&changed, session->device);
    allocations = ended = 0;
    begun = 0;
}

static void change_back(grt_session *session)
{
    device_tables_give_back(&changed, session->device);
}

static grt_status count_alloc(grt_device *device, size_t bytes, void **out_data)
{
    allocations++;
    return changed.before->memory->alloc(device, bytes, out_data);
}

START_TEST(dynamic_memory_is_kept)
{
    float x[4096] = {0};
    grt_session *session;
    grt_context *context;
    grt_context_stats stats = {.struct_size = sizeof stats};
    grt_tensor y;
    const grt_session_options options = {.struct_size = sizeof options, .fallback = "cpu"};
    grt_model *model = open_dynamic();
    ck_assert_msg(grt_session_create(model, "mirror:0", &options, &session) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    change(session);
    changed.memory.alloc = count_alloc;
    size_t first = 0, kept = 0;
    for (int run = 0; run < 12; run++) {
        const int64_t n = run < 6 ? 4096 : 4096 - 8 * run; /* and a few less */
        for (int64_t i = 0; i < 4096; i++)
            x[i] = i < n ? 1 : 0;
        ck_assert_msg(run_floats(context, 1, 4096, x) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
        ck_assert_int_eq(y.dims[0], n);
        ck_assert(((const int64_t *)y.data)[n - 1] == (n - 1) * (n - 1));
        ck_assert_int_eq(grt_context_get_stats(context, &stats), GRT_OK);
        if (run == 0) {
            first = allocations;
            kept = stats.dynamic_bytes;
        }
        ck_assert_uint_eq(allocations, first);
        ck_assert_uint_eq(stats.dynamic_bytes, kept);
    }
    ck_assert(first > 1 && kept >= 2 * 4096 * sizeof(int64_t));
    for (int64_t i = 16; i < 4096; i++)
        x[i] = 0;
    ck_assert_int_eq(run_floats(context, 1, 4096, x), GRT_OK); /* far less: blocks are not wasted on it */
    ck_assert_uint_gt(allocations, first);
    change_back(session);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* Inputs that lie on the device already need no memory there. */
START_TEST(device_inputs_cost_nothing)
{
    float x[2 * SIZE] = {1, 2, 3}, first;
    grt_session *session;
    grt_context *context;
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, SIZE}, .memory = GRT_MEMORY_DEVICE}, y;
    grt_model *model = open_product(runtime);
    ck_assert_int_eq(grt_session_create(model, "mirror:0", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_device_alloc(session->device, sizeof x, &in.data), GRT_OK);
    memcpy(in.data, x, sizeof x); /* the mirror's memory is the host's */
    change(session);
    changed.memory.alloc = count_alloc;
    for (int host = 0; host < 3; host++) { /* device memory, host memory, device memory */
        const size_t before = allocations;
        if (host == 1)
            ck_assert_int_eq(run_floats(context, 2, 2 * SIZE, x), GRT_OK);
        else {
            ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
            ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        }
        ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
        if (host == 0)
            first = ((const float *)y.data)[5];
        ck_assert(((const float *)y.data)[5] == first);
        ck_assert(host == 0 || allocations - before == (host == 1));
    }
    change_back(session);
    grt_device_free(session->device, in.data);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* ---- replay ---- */

static grt_replay_info replay_of(const grt_context *context)
{
    grt_replay_info replay = {.struct_size = sizeof replay};
    ck_assert_int_eq(grt_context_get_replay(context, &replay), GRT_OK);
    return replay;
}

START_TEST(what_cannot_be_replayed_is_named)
{
    float x[2 * SIZE] = {1, 2, 3};
    grt_session *session;
    grt_context *context;
    grt_replay_info replay = {.struct_size = sizeof replay};
    const grt_session_options options = {.struct_size = sizeof options, .fallback = "cpu"};
    grt_model *model = open_dynamic();
    ck_assert_int_eq(grt_session_create(model, "mirror:0", &options, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_get_replay(context, &replay), GRT_STATUS_INVALID_ARGUMENT); /* no run yet */
    ck_assert_int_eq(run_floats(context, 1, 4, x), GRT_OK);
    replay = replay_of(context);
    ck_assert_str_eq(replay.op, "NonZero");
    ck_assert_str_eq(replay.node, "places of x");
    ck_assert_str_eq(replay.reason, "it runs on the CPU");
    ck_assert(replay.graphs == 0 && replay.replayed == 0);
    replay.struct_size = 1;
    ck_assert_int_eq(grt_context_get_replay(context, &replay), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_context_get_replay(NULL, &replay), GRT_STATUS_INVALID_ARGUMENT);
    grt_context_release(context);
    grt_session_release(session);
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(run_floats(context, 1, 4, x), GRT_OK);
    replay = replay_of(context);
    ck_assert(!*replay.reason && !replay.supported);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* The third run with the same pointers is a replay: it gives what steps give, of what its inputs are then. */
START_TEST(a_replay_computes)
{
    float x[2 * SIZE], first[4][2 * SIZE];
    grt_session *session;
    grt_context *context;
    grt_tensor y;
    grt_model *model = open_product(runtime);
    ck_assert_int_eq(grt_session_create(model, "mirror:4", NULL, &session), GRT_OK);
    for (int steps = 0; steps < 2; steps++) {
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        memset(x, 0, sizeof x);
        context->executor.debug = steps;
        for (int i = 0; i < 4; i++) {
            x[i] = (float)(i + 1);
            ck_assert_msg(run_floats(context, 2, 2 * SIZE, x) == GRT_OK, "%s", grt_last_error());
            ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
            const size_t bytes = grt_tensor_bytes(&y);
            ck_assert_uint_le(bytes, sizeof first[i]);
            if (!steps)
                memcpy(first[i], y.data, bytes);
            ck_assert_mem_eq(first[i], y.data, bytes);
        }
        ck_assert_int_eq(replay_of(context).graphs, !steps);
        grt_context_release(context);
    }
    ck_assert(memcmp(first[2], first[3], sizeof first[2]) != 0);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

static grt_status begin(grt_device *device, void *stream)
{
    (void)device, (void)stream;
    begun++;
    return GRT_OK;
}

static grt_status end(grt_device *device, void *stream, void **out_graph)
{
    (void)device, (void)stream;
    if (!out_graph) {
        thrown_away++;
        return GRT_OK;
    }
    ended++;
    if (ended < capture_works)
        return grt_fail(GRT_STATUS_DEVICE, "the stream was invalidated");
    *out_graph = &changed;
    return GRT_OK;
}

static grt_status launch(grt_device *device, void *graph, void *stream)
{
    (void)device, (void)graph, (void)stream;
    return GRT_OK;
}

static void release_graph(grt_device *device, void *graph)
{
    (void)device, (void)graph;
}

/* A device whose captures fail runs on, step by step, and is asked again a few times only; one whose captures
 * work, be it after two failures, keeps a graph. */
START_TEST(captures)
{
    grt_session *session;
    grt_context *context;
    float x[2 * SIZE] = {1, 2, 3};
    grt_model *model = open_product(runtime);
    ck_assert_int_eq(grt_session_create(model, "mirror:5", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context),
                     GRT_OK); /* the only one that has a graph already */
    grt_context_release(context);
    change(session);
    changed.graphs = (grt_graph_api){begin, end, launch, release_graph};
    changed.api.graphs = &changed.graphs;
    static const size_t from[] = {SIZE_MAX, 1, 3};
    for (int k = 0; k < 3; k++) {
        const bool works = from[k] < SIZE_MAX;
        begun = 0;
        ended = 0;
        capture_works = from[k];
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        context->executor.debug = false;
        for (int i = 0; i < 8; i++)
            ck_assert_msg(run_floats(context, 2, 2 * SIZE, x) == GRT_OK, "%s", grt_last_error());
        ck_assert_uint_eq(begun, works ? from[k] : GRT_MAX_CAPTURES);
        ck_assert_uint_eq(ended, begun);
        grt_replay_info replay = replay_of(context);
        ck_assert(replay.supported);
        ck_assert_int_eq(replay.graphs, works);
        ck_assert_str_eq(replay.reason, works ? "" : "the stream was invalidated");
        ck_assert_str_eq(replay.op, "");
        grt_context_release(context);
    }
    change_back(session);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* What cannot be captured before it has run once is run once, while the session becomes ready. */
START_TEST(captures_behind_a_run)
{
#ifndef GRT_DEBUG /* which captures nothing */
    grt_session *session, *second;
    grt_context *context;
    grt_model *model = open_product(runtime);
    ck_assert_int_eq(grt_session_create(model, "mirror:5", NULL, &session), GRT_OK);
    change(session);
    changed.graphs = (grt_graph_api){begin, end, launch, release_graph};
    changed.api.graphs = &changed.graphs;
    capture_works = 2;
    const grt_session_options alone = {.struct_size = sizeof alone, .threads = 1};
    ck_assert_int_eq(grt_session_create(model, "mirror:5", &alone, &second), GRT_OK);
    ck_assert_uint_eq(begun, 2);
    ck_assert_uint_eq(ended, 2);
    ck_assert_int_eq(grt_context_create(second, &context), GRT_OK);
    ck_assert_uint_eq(context->runs, 0); /* the caller's */
    ck_assert(!context->executor.bound.input_set[0]);
    grt_context_release(context);
    grt_session_release(second);
    change_back(session);
    grt_session_release(session);
    grt_model_release(model);
#endif
}
END_TEST

/* Code is loaded by as many threads as there are: each step is enqueued for nothing once, and then captured.
 */
START_TEST(rehearses)
{
#ifndef GRT_DEBUG /* which captures nothing */
    grt_session *session, *second;
    grt_model *model = open_product(runtime);
    ck_assert_int_eq(grt_session_create(model, "mirror:5", NULL, &session), GRT_OK);
    change(session);
    changed.graphs = (grt_graph_api){begin, end, launch, release_graph};
    changed.api.graphs = &changed.graphs;
    capture_works = 0;
    for (int32_t threads = 1; threads <= 4; threads++) {
        const grt_session_options options = {.struct_size = sizeof options, .threads = threads};
        ended = 0;
        begun = thrown_away = 0;
        ck_assert_int_eq(grt_session_create(model, "mirror:5", &options, &second), GRT_OK);
        ck_assert_uint_eq(thrown_away, threads > 1 ? 2 : 0);
        ck_assert_uint_eq(ended, 1);
        ck_assert_uint_eq(begun, ended + thrown_away);
        grt_session_release(second);
    }
    change_back(session);
    grt_session_release(session);
    grt_model_release(model);
#endif
}
END_TEST

/* ---- debugging ---- */

static int waits_left;

static grt_status failing_wait(grt_device *device, void *stream)
{
    if (waits_left-- == 0)
        return grt_fail(GRT_STATUS_DEVICE, "an illegal address");
    return changed.before->streams->wait(device, stream);
}

static grt_status refuse_pointer(grt_device *device, const void *data)
{
    (void)device;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%p is host memory", data);
}

START_TEST(debugging)
{
    _Alignas(64) float x[2 * SIZE] = {1, 2, 3};
    grt_session *session;
    grt_context *context;
    grt_model *model = open_product(runtime);
    ck_assert_int_eq(grt_session_create(model, "mirror:5", NULL, &session), GRT_OK);
    change(session);
    changed.streams.wait = failing_wait;
    changed.memory.check = refuse_pointer;
    setenv("GRAPHRT_DEBUG", "1", 1);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    unsetenv("GRAPHRT_DEBUG");
    waits_left = 1; /* behind the second step */
    ck_assert_int_eq(run_floats(context, 2, 2 * SIZE, x), GRT_STATUS_DEVICE);
    ck_assert_str_eq(grt_last_error(), "Softmax node 'last': an illegal address");
    waits_left = 1 << 20;
    ck_assert_int_eq(run_floats(context, 2, 2 * SIZE, x), GRT_OK);
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, SIZE}, .data = x};
    in.memory = GRT_MEMORY_DEVICE;
    in.device = 5;
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "is host memory"));
    in.device = 4;
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "memory of device 4 cannot be bound"));
    grt_context_release(context);
    change_back(session);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* Where the size is not known, or no size is to blame, there is no number. */
START_TEST(no_bytes_are_not_a_number)
{
    ck_assert_int_eq(grt_fail_memory(0), GRT_STATUS_OUT_OF_MEMORY);
    ck_assert_str_eq(grt_last_error(), "out of memory");
    ck_assert_int_eq(grt_fail_memory(4096), GRT_STATUS_OUT_OF_MEMORY);
    ck_assert_str_eq(grt_last_error(), "out of memory: 4096 bytes wanted");
}
END_TEST

Suite *suite_test_faults(void)
{
    Suite *suite = suite_create("faults");
    TCase *tests = tcase_create("faults");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, out_of_memory);
    tcase_add_test(tests, memory_comes_back);
    tcase_add_test(tests, dynamic_memory_is_kept);
    tcase_add_test(tests, device_inputs_cost_nothing);
    tcase_add_test(tests, what_cannot_be_replayed_is_named);
    tcase_add_test(tests, a_replay_computes);
    tcase_add_test(tests, captures);
    tcase_add_test(tests, captures_behind_a_run);
    tcase_add_test(tests, rehearses);
    tcase_add_test(tests, debugging);
    tcase_add_test(tests, no_bytes_are_not_a_number);
    suite_add_tcase(suite, tests);
    return suite;
}

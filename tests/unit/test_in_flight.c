/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueued runs on a mirror that records calls: streams, order, waits after a failure, and memory kept for
 * the caller's graphs. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/tables.h"

#include "src/exec/context.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 16, MAX_FREED = 256 };

static grt_runtime *runtime;
static grt_session *session;
static grt_context *context;

/* ---- the table ---- */

static device_tables noting;

static struct {
    void *stream;                     /* the caller's */
    int elsewhere, copies, downloads; /* copies on other streams; those on the device; those from it */
    int records, follows, waits;      /* fences, streams that wait for them, streams that are waited for */
    void *followed_by, *waited_for;
    int download_fails; /* how many may come before one fails; -1: all may */
    bool captured;
    /* How often the device was made current, and not given back: threads that make a session do so, too. */
    atomic_int entered, depth;
    void *freed[MAX_FREED];
    int n_freed;
    int faults; /* that kernels found */
} seen;

static void clear(void)
{
    void *stream = seen.stream;
    memset(&seen, 0, sizeof seen);
    seen.stream = stream;
    seen.download_fails = -1;
}

static grt_status upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    seen.elsewhere += stream != seen.stream;
    return noting.before->copies->upload(device, dst, src, bytes, stream);
}

static grt_status download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    seen.elsewhere += stream != seen.stream;
    if (seen.download_fails-- == 0)
        return grt_fail(GRT_STATUS_DEVICE, "the copy was refused");
    seen.downloads++;
    return noting.before->copies->download(device, dst, src, bytes, stream);
}

static grt_status copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    seen.elsewhere += stream != seen.stream;
    seen.copies++;
    return noting.before->copies->copy(device, dst, src, bytes, stream);
}

static grt_status fence_record(grt_device *device, void *fence, void *stream)
{
    seen.records++;
    return noting.before->fences->record(device, fence, stream);
}

static grt_status stream_wait_fence(grt_device *device, void *stream, void *fence)
{
    seen.follows++;
    seen.followed_by = stream;
    return noting.before->fences->stream_wait(device, stream, fence);
}

static grt_status stream_wait(grt_device *device, void *stream)
{
    seen.waits++;
    seen.waited_for = stream;
    return noting.before->streams->wait(device, stream);
}

static bool is_captured(grt_device *device, void *stream)
{
    (void)device;
    return seen.captured && stream == seen.stream;
}

static grt_status enter(grt_device *device, bool *out_switched)
{
    (void)device;
    *out_switched = true;
    atomic_fetch_add(&seen.entered, 1);
    atomic_fetch_add(&seen.depth, 1);
    return GRT_OK;
}

static void leave(grt_device *device, bool switched)
{
    (void)device;
    atomic_fetch_sub(&seen.depth, switched);
}

static void free_memory(grt_device *device, void *data)
{
    if (seen.n_freed < MAX_FREED)
        seen.freed[seen.n_freed++] = data;
    noting.before->memory->free(device, data);
}

static bool was_freed(const void *data)
{
    for (int i = 0; i < seen.n_freed; i++)
        if (seen.freed[i] == data)
            return true;
    return false;
}

static grt_status local_check(grt_device *device, void *local)
{
    (void)device, (void)local;
    if (seen.faults == 0)
        return GRT_OK;
    seen.faults--;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "an index is out of range");
}

static void local_release(grt_device *device, void *local)
{
    (void)device, (void)local;
}

/* Graphs that hold nothing: what is on the streams around them is seen all the same. */
static grt_status begin(grt_device *device, void *stream)
{
    (void)device, (void)stream;
    return GRT_OK;
}
static grt_status end(grt_device *device, void *stream, void **out_graph)
{
    (void)device, (void)stream;
    *out_graph = &noting;
    return GRT_OK;
}
static grt_status launch(grt_device *device, void *graph, void *stream)
{
    (void)device, (void)graph;
    seen.elsewhere += stream != seen.stream;
    return GRT_OK;
}
static void release_graph(grt_device *device, void *graph)
{
    (void)device, (void)graph;
}

static void replay(void)
{
    noting.graphs = (grt_graph_api){begin, end, launch, release_graph};
    noting.api.graphs = &noting.graphs;
    context->executor.debug = false;
}

/* ---- the model ---- */

static void weights(onnx_model *m, const char *name, int seed)
{
    float w[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w[i] = (float)((i * 29 + seed * 7) % 17) / 32 - 0.25f;
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_FLOAT, "16,16", w, sizeof w));
}

/* x [rows,16] -> product -> Relu -> two products: with one row they are two parts of one, which no caller's
 * memory can take */
static grt_model *two_heads(const char *rows)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, rows);
    weights(&m, "w", 1);
    weights(&m, "p", 2); /* equal ones would make one product of both */
    weights(&m, "v", 3);
    onnx_node(&m, m.graph, "MatMul", "x,w", "product");
    onnx_node(&m, m.graph, "Relu", "product", "h");
    onnx_node(&m, m.graph, "MatMul", "h,p", "policy");
    onnx_node(&m, m.graph, "MatMul", "h,v", "value");
    onnx_output(&m, m.graph, "policy");
    onnx_output(&m, m.graph, "value");
    const grt_compile_options options = {.struct_size = sizeof options, .target = "mirror"};
    grt_model *model = onnx_open_plan(&m, runtime, &options);
    onnx_release(&m);
    return model;
}

static void start(const char *rows)
{
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_model *model = two_heads(rows);
    ck_assert_msg(grt_session_create(model, "mirror:2", NULL, &session) == GRT_OK, "%s", grt_last_error());
    grt_model_release(model);
    /* the first one may be warm, with graphs that noting does not know how to release */
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    grt_context_release(context);
    device_tables_take(&noting, session->device);
    noting.copies.upload = upload;
    noting.copies.download = download;
    noting.copies.copy = copy;
    noting.fences.record = fence_record;
    noting.fences.stream_wait = stream_wait_fence;
    noting.streams.wait = stream_wait;
    noting.streams.is_captured = is_captured;
    noting.current = (grt_current_api){enter, leave};
    noting.api.current = &noting.current;
    noting.memory.free = free_memory;
    noting.locals = (grt_local_api){local_check, local_release};
    noting.api.locals = &noting.locals;
    ck_assert_int_eq(grt_device_stream_create(session->device, 0, &seen.stream), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    clear();
}

static void setup(void)
{
    start("1,16");
}

static void setup_rows(void)
{
    start("n,16");
}

static void teardown(void)
{
    grt_context_release(context);
    ck_assert_int_eq(seen.depth, 0);
    device_tables_give_back(&noting, session->device);
    grt_device_stream_release(session->device, seen.stream);
    grt_session_release(session);
    grt_runtime_release(runtime);
}

static _Alignas(64) float x[64 * WIDTH], results[2][64 * WIDTH];

/* Memory of the mirror's is the host's: the same arrays serve as device memory and as page-locked memory. */
static void bind(int64_t rows, grt_memory memory)
{
    grt_tensor t = {
        .dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, WIDTH}, .data = x, .memory = memory, .device = 2};
    ck_assert_msg(grt_context_set_input(context, 0, &t) == GRT_OK, "%s", grt_last_error());
    for (size_t i = 0; i < 2; i++) {
        t.data = results[i];
        ck_assert_msg(grt_context_set_output(context, i, &t) == GRT_OK, "%s", grt_last_error());
    }
}

static void fill(int seed)
{
    for (int i = 0; i < 64 * WIDTH; i++)
        x[i] = (float)((i * 37 + seed * 11) % 19) / 8 - 1;
}

static void expect_results(int64_t rows)
{
    grt_session *cpu;
    grt_context *other;
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, WIDTH}, .data = x}, out;
    ck_assert_int_eq(grt_session_create(session->model, "cpu", NULL, &cpu), GRT_OK);
    ck_assert_int_eq(grt_context_create(cpu, &other), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(other, 0, &in), GRT_OK);
    ck_assert_int_eq(grt_context_run(other), GRT_OK);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(grt_context_get_output(other, i, &out), GRT_OK);
        ck_assert_mem_eq(out.data, results[i], (size_t)rows * WIDTH * sizeof(float));
    }
    grt_context_release(other);
    grt_session_release(cpu);
}

static void run_async(void *stream)
{
    ck_assert_msg(grt_context_run_async(context, stream) == GRT_OK, "%s", grt_last_error());
}

/* ---- on which stream ---- */

START_TEST(results_come_on_the_callers_stream)
{
    bind(1, GRT_MEMORY_DEVICE);
    for (int i = 0; i < 4; i++) {
        fill(i);
        clear();
        run_async(seen.stream);
        ck_assert_int_eq(seen.copies, 2); /* both heads are parts */
        ck_assert_int_eq(seen.elsewhere, 0);
        ck_assert_int_eq(grt_device_wait(session->device, seen.stream), GRT_OK);
        expect_results(1);
    }
}
END_TEST

START_TEST(results_of_replayed_runs_too)
{
    replay();
    static const grt_memory kinds[] = {GRT_MEMORY_DEVICE, GRT_MEMORY_PINNED};
    for (int k = 0; k < 2; k++) {
        bind(1, kinds[k]);
        for (int i = 0; i < 4; i++) {
            clear();
            run_async(seen.stream);
            ck_assert_int_eq(seen.elsewhere, 0);
            ck_assert_int_eq(k == 0 ? seen.copies : seen.downloads, 2);
        }
    }
}
END_TEST

/* ---- order ---- */

START_TEST(runs_are_in_order)
{
    void *second;
    ck_assert_int_eq(grt_device_stream_create(session->device, 0, &second), GRT_OK);
    bind(1, GRT_MEMORY_DEVICE);
    fill(1);
    run_async(seen.stream);
    run_async(seen.stream);
    ck_assert_int_eq(seen.records, 2);
    ck_assert_int_eq(seen.follows, 0); /* a stream is in order by itself */
    run_async(second);
    ck_assert_int_eq(seen.follows, 1);
    ck_assert_ptr_eq(seen.followed_by, second);
    run_async(NULL);
    ck_assert_int_eq(seen.follows, 2);
    ck_assert_ptr_eq(seen.followed_by, context->executor.stream);
    run_async(second);
    ck_assert_int_eq(grt_context_run(context), GRT_OK); /* on the context's stream */
    ck_assert_int_eq(seen.follows, 4);
    ck_assert_ptr_eq(seen.followed_by, context->executor.stream);
    expect_results(1);
    clear();
    run_async(second); /* nothing is in flight any more */
    ck_assert_int_eq(seen.follows, 0);
    ck_assert_int_eq(grt_device_wait(session->device, second), GRT_OK);
    grt_device_stream_release(session->device, second);
    ck_assert_int_eq(grt_context_run(context), GRT_OK); /* the fence outlives its stream */
    expect_results(1);
}
END_TEST

/* ---- failures ---- */

/* Its owner may take page-locked memory back as soon as a run has failed. */
START_TEST(failures_wait)
{
    bind(1, GRT_MEMORY_PINNED);
    fill(1);
    for (int async = 0; async < 2; async++) {
        clear();
        seen.download_fails = 1;
        grt_status status = async ? grt_context_run_async(context, seen.stream) : grt_context_run(context);
        ck_assert_int_eq(status, GRT_STATUS_DEVICE);
        ck_assert_str_eq(grt_last_error(), "the copy was refused");
        ck_assert_int_eq(seen.downloads, 1);
        ck_assert_int_ge(seen.waits, 1);
        ck_assert_ptr_eq(seen.waited_for, async ? seen.stream : context->executor.stream);
        ck_assert_int_eq(seen.depth, 0);
        ck_assert_int_eq(grt_context_run(context), GRT_OK);
        expect_results(1);
    }
}
END_TEST

START_TEST(faults_in_data_are_reported)
{
    grt_tensor out;
    context->executor.local = &seen;
    bind(1, GRT_MEMORY_DEVICE);
    seen.faults = 1;
    ck_assert_int_eq(grt_context_run(context), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_str_eq(grt_last_error(), "an index is out of range");
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_STATUS_INVALID_ARGUMENT); /* no run */
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    /* an enqueued run: by whatever comes next */
    run_async(seen.stream);
    seen.faults = 1;
    ck_assert_int_eq(grt_context_run_async(context, seen.stream), GRT_STATUS_INVALID_ARGUMENT);
    run_async(seen.stream);
    seen.faults = 1;
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_str_eq(grt_last_error(), "an index is out of range");
    run_async(seen.stream);
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    ck_assert_int_eq(grt_device_wait(session->device, seen.stream), GRT_OK);
}
END_TEST

/* ---- the caller's graphs ---- */

START_TEST(what_a_graph_points_at_stays)
{
    bind(2, GRT_MEMORY_DEVICE);
    run_async(seen.stream);
    ck_assert_int_eq(grt_device_wait(session->device, seen.stream), GRT_OK);
    clear();
    seen.captured = true;
    run_async(seen.stream);
    /* order is the caller's: a fence that was recorded outside cannot be waited for in a capture, nor the
     * other way round */
    ck_assert_int_eq(seen.records + seen.follows + seen.waits, 0);
    const void *arena = context->executor.arena.data, *workspace = context->executor.workspace.data;
    const grt_frame *frame = context->executor.main;
    seen.captured = false;
    for (int64_t rows = 3; rows <= 40; rows++) { /* more memory, and more combinations than are kept */
        bind(rows, GRT_MEMORY_DEVICE);
        fill((int)rows);
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        expect_results(rows);
    }
    ck_assert_ptr_ne(context->executor.arena.data, arena);
    ck_assert(frame->captured && context->frames.kept);
    ck_assert(!was_freed(arena) && !was_freed(workspace));
    ck_assert_int_gt(seen.n_freed, 0); /* arenas that no graph has seen */
    clear();
    grt_context_release(context);
    ck_assert(was_freed(arena));
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
}
END_TEST

/* Memory that is in use does not move: a run that wants more waits for the one in flight. */
START_TEST(growing_waits)
{
    bind(2, GRT_MEMORY_DEVICE);
    run_async(seen.stream);
    ck_assert(context->executor.flight.any);
    bind(30, GRT_MEMORY_DEVICE);
    run_async(seen.stream);
    ck_assert_int_eq(seen.follows, 0); /* it was waited for on the host */
    ck_assert_int_eq(grt_device_wait(session->device, seen.stream), GRT_OK);
    expect_results(30);
}
END_TEST

/* ---- the calling thread's device ---- */

START_TEST(the_current_device_is_given_back)
{
    grt_context *another;
    grt_session *twice;
    clear();
    ck_assert_int_eq(grt_session_create(session->model, "mirror:2", NULL, &twice), GRT_OK);
    ck_assert(seen.entered > 0 && seen.depth == 0);
    ck_assert_int_eq(grt_context_create(twice, &another), GRT_OK); /* it may be there already */
    grt_context_release(another);
    clear();
    ck_assert_int_eq(grt_context_create(twice, &another), GRT_OK);
    ck_assert(seen.entered > 0 && seen.depth == 0);
    clear();
    grt_context_release(another);
    ck_assert(seen.entered > 0 && seen.depth == 0);
    clear();
    grt_session_release(twice);
    ck_assert(seen.entered > 0 && seen.depth == 0);
    bind(1, GRT_MEMORY_DEVICE);
    clear();
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert(seen.entered > 0 && seen.depth == 0);
    clear();
    run_async(seen.stream);
    ck_assert(seen.entered > 0 && seen.depth == 0);
    grt_tensor host = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, WIDTH}, .data = x};
    ck_assert_int_eq(grt_context_set_input(context, 0, &host), GRT_OK);
    clear();
    ck_assert_int_eq(grt_context_run_async(context, seen.stream), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert(seen.entered > 0 && seen.depth == 0);
}
END_TEST

Suite *suite_test_in_flight(void);
Suite *suite_test_in_flight(void)
{
    Suite *suite = suite_create("in_flight");
    TCase *one = tcase_create("one row"), *many = tcase_create("any number of rows");
    tcase_add_checked_fixture(one, setup, teardown);
    tcase_add_test(one, results_come_on_the_callers_stream);
    tcase_add_test(one, results_of_replayed_runs_too);
    tcase_add_test(one, runs_are_in_order);
    tcase_add_test(one, failures_wait);
    tcase_add_test(one, faults_in_data_are_reported);
    tcase_add_test(one, the_current_device_is_given_back);
    suite_add_tcase(suite, one);
    tcase_add_checked_fixture(many, setup_rows, teardown);
    tcase_add_test(many, what_a_graph_points_at_stays);
    tcase_add_test(many, growing_waits);
    suite_add_tcase(suite, many);
    return suite;
}

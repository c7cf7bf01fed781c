/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and their graphs: what prepare promises, segments that are replayed around steps that cannot be,
 * and graphs for every set of pointers that a caller cycles through. The mirror keeps graphs as a GPU does,
 * with the pointers of their capture. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include "src/exec/context.h"

#include <check.h>
#include <string.h>

enum { WIDTH = 16, ELEMENTS = 2 * WIDTH };

static grt_session *session, *reference; /* on the mirror and on the CPU */
static grt_context *context, *expected;

static void teardown(void)
{
    grt_context_release(context);
    grt_context_release(expected);
    grt_session_release(session);
    grt_session_release(reference);
    runtime_close();
}

/* ---- models: x [2,16] or [n,16] -> y ---- */

static void weights(onnx_model *m, const char *name, int seed)
{
    float *w = grt_arena_calloc(m->arena, WIDTH * WIDTH, sizeof *w);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w[i] = (float)((i * 29 + seed * 7) % 17) / 32 - 0.25f;
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_FLOAT, "16,16", w, WIDTH * WIDTH * sizeof *w));
}

static void scalar(onnx_model *m, const char *name, float value)
{
    float *data = grt_arena_memdup(m->arena, &value, sizeof value);
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_FLOAT, "", data, sizeof value));
}

static void begin(onnx_model *m)
{
    *m = onnx_create();
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "2,16");
    weights(m, "w", 1);
    onnx_node(m, m->graph, "MatMul", "x,w", "product");
    onnx_node(m, m->graph, "Softmax", "product", "h");
}

/* z -> y */
static void end(onnx_model *m)
{
    weights(m, "v", 2);
    onnx_node(m, m->graph, "MatMul", "z,v", "scores");
    onnx_node(m, m->graph, "Softmax", "scores", "y");
    onnx_output(m, m->graph, "y");
}

/* z = h + p times the number of elements of x above 0, or so: its size is known, those before it are not */
static void count_places(onnx_model *m)
{
    onnx_node(m, m->graph, "Relu", "x", "positive");
    onnx_node(m, m->graph, "NonZero", "positive", "places");
    onnx_attr_int(m, onnx_node(m, m->graph, "Cast", "places", "numbers"), "to", GRT_DTYPE_FLOAT);
    onnx_attr_int(m, onnx_node(m, m->graph, "ReduceSum", "numbers", "sum"), "keepdims", 0);
    scalar(m, "p", 0.01f);
    onnx_node(m, m->graph, "Mul", "sum,p", "share");
    onnx_node(m, m->graph, "Add", "h,share", "z");
}

/* z = h + p times a determinant of as many rows as x has places above 0, for which a workspace is wanted */
static void measure_places(onnx_model *m)
{
    onnx_node(m, m->graph, "Relu", "x", "positive");
    onnx_node(m, m->graph, "NonZero", "positive", "places");
    onnx_attr_int(m, onnx_node(m, m->graph, "Cast", "places", "numbers"), "to", GRT_DTYPE_FLOAT);
    onnx_node(m, m->graph, "Transpose", "numbers", "turned");
    onnx_node(m, m->graph, "MatMul", "turned,numbers", "square");
    onnx_node(m, m->graph, "Det", "square", "volume");
    scalar(m, "p", 0.01f);
    onnx_node(m, m->graph, "Mul", "volume,p", "share");
    onnx_node(m, m->graph, "Add", "h,share", "z");
}

/* z = h doubled until its largest element is above 3 */
static void loop_until(onnx_model *m)
{
    scalar(m, "limit", 3);
    scalar(m, "two", 2);
    Onnx__GraphProto *body = onnx_graph(m, "body");
    onnx_input(m, body, "i", GRT_DTYPE_INT64, "");
    onnx_input(m, body, "go", GRT_DTYPE_BOOL, "");
    onnx_input(m, body, "state", GRT_DTYPE_FLOAT, "2,16");
    onnx_node(m, body, "Mul", "state,two", "next");
    onnx_attr_int(m, onnx_node(m, body, "ReduceMax", "next", "most"), "keepdims", 0);
    onnx_node(m, body, "Less", "most,limit", "on");
    onnx_output(m, body, "on");
    onnx_output(m, body, "next");
    Onnx__NodeProto *loop = onnx_node(m, m->graph, "Loop", ",,h", "z");
    loop->name = (char *)"doubling";
    onnx_attr(m, loop, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
}

static void open_model(onnx_model *m)
{
    const grt_session_options options = {.struct_size = sizeof options, .fallback = "cpu", .threads = 1};
    grt_model *model = onnx_open(m, runtime);
    onnx_release(m);
    ck_assert_msg(grt_session_create(model, "mirror:0", &options, &session) == GRT_OK, "%s",
                  grt_last_error());
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &reference), GRT_OK);
    grt_model_release(model);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_create(reference, &expected), GRT_OK);
    context->executor.debug = false; /* a build for debugging runs step by step */
}

/* ---- runs ---- */

static grt_tensor rows(void *data, grt_memory memory)
{
    return (grt_tensor){
        .dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, WIDTH}, .data = data, .memory = memory};
}

static void fill(float *x, int seed)
{
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)((i * 37 + seed * 11) % 19) / 8 - 1;
}

static void expect_output(const float *x, const float *found)
{
    const grt_tensor in = rows((void *)x, GRT_MEMORY_HOST);
    grt_tensor out;
    ck_assert_int_eq(grt_context_set_input(expected, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(expected) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(expected, 0, &out), GRT_OK);
    for (int i = 0; i < ELEMENTS; i++)
        ck_assert_float_eq_tol(found[i], ((const float *)out.data)[i], 1e-6f);
}

static void run_and_expect(int seed)
{
    float x[ELEMENTS];
    grt_tensor out;
    const grt_tensor in = rows(x, GRT_MEMORY_HOST);
    fill(x, seed);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    expect_output(x, out.data);
}

static grt_replay_info replay_of(void)
{
    grt_replay_info replay = {.struct_size = sizeof replay};
    ck_assert_int_eq(grt_context_get_replay(context, &replay), GRT_OK);
    return replay;
}

/* Each segment that can be a graph is one, in the set that ran last. */
static void expect_graphs(void)
{
    const grt_frame *frame = context->executor.main;
    int32_t n = 0;
    ck_assert_int_eq(frame->replay.n_sets, 1);
    for (int32_t k = 0; k < frame->program->n_segments; k++) {
        ck_assert((frame->replay.sets[0].graphs[k] != NULL) == frame->program->segments[k].graph);
        n += frame->program->segments[k].graph;
    }
    ck_assert_int_ge(n, 2);
}

/* ---- segments ---- */

static void run_around(const char *op)
{
    for (int i = 0; i < 6; i++)
        run_and_expect(i);
    const grt_replay_info replay = replay_of();
    ck_assert(replay.supported && replay.graphs == 1);
    ck_assert_str_eq(replay.op, op);
    ck_assert_int_ge(replay.replayed, 4); /* both products and what is behind them */
    ck_assert_int_lt(replay.replayed, replay.steps);
    expect_graphs();
    ck_assert_msg(grt_program_check(context->executor.main->program) == GRT_OK, "%s", grt_last_error());
}

START_TEST(around_what_depends_on_data)
{
    onnx_model m;
    begin(&m);
    count_places(&m);
    end(&m);
    open_model(&m);
    run_around("NonZero");
}
END_TEST

START_TEST(around_control_flow)
{
    onnx_model m;
    begin(&m);
    loop_until(&m);
    end(&m);
    open_model(&m);
    run_around("Loop");
    ck_assert_str_eq(replay_of().node, "doubling");
    /* it still cannot be enqueued */
    _Alignas(64) float x[ELEMENTS], y[ELEMENTS];
    grt_tensor t = rows(x, GRT_MEMORY_DEVICE);
    ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
    t.data = y;
    ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
    ck_assert_int_eq(grt_context_run_async(context, NULL), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "control flow is decided on the host"));
}
END_TEST

/* Behind a segment that was replayed already, a step wants more workspace than there is. */
START_TEST(a_workspace_that_grows_in_a_run)
{
    onnx_model m;
    begin(&m);
    measure_places(&m);
    end(&m);
    open_model(&m);
    size_t bytes = 0;
    for (int positive = 1, grown = 0; positive <= ELEMENTS; positive++) {
        float x[ELEMENTS];
        grt_tensor out;
        const grt_tensor in = rows(x, GRT_MEMORY_HOST);
        const grt_frame *frame = context->executor.main;
        const bool replayed = frame && frame->replay.sets[0].graphs[0];
        for (int i = 0; i < ELEMENTS; i++)
            x[i] = i < positive ? 1 + (float)i / 8 : -1;
        ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
        expect_output(x, out.data);
        const bool grows = replayed && context->executor.workspace.bytes > bytes;
        grown += grows;
        ck_assert(!grows || !frame->replay.sets[0].graphs[0]); /* it points at what is gone */
        bytes = context->executor.workspace.bytes;
        ck_assert(positive < ELEMENTS || grown > 0);
    }
    run_around("NonZero");
}
END_TEST

/* The executor's memory moves between two runs: graphs of the old one go. */
START_TEST(memory_that_moves)
{
    onnx_model m;
    begin(&m);
    loop_until(&m);
    end(&m);
    open_model(&m);
    for (int i = 0; i < 3; i++)
        run_and_expect(i);
    ck_assert_int_eq(replay_of().graphs, 1);
    grt_executor *executor = &context->executor;
    ck_assert_int_eq(grt_executor_reserve_workspace(executor, executor->workspace.bytes + 4096), GRT_OK);
    ck_assert_int_eq(grt_executor_reserve_arena(executor, executor->arena.bytes + 4096), GRT_OK);
    for (int i = 0; i < 3; i++)
        run_and_expect(i + 7);
    ck_assert_int_ge(replay_of().graphs, 1);
}
END_TEST

/* What the CPU made for a caller whose memory is the device's, and nobody else reads there. */
START_TEST(results_of_the_host_for_the_device)
{
    onnx_model m;
    begin(&m);
    loop_until(&m);
    onnx_output(&m, m.graph, "z");
    open_model(&m);
    _Alignas(64) float x[ELEMENTS], z[ELEMENTS];
    grt_tensor t = rows(x, GRT_MEMORY_HOST);
    ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
    t = rows(z, GRT_MEMORY_DEVICE);
    ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
    for (int i = 0; i < 4; i++) {
        fill(x, i);
        memset(z, 0xff, sizeof z);
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        expect_output(x, z);
    }
}
END_TEST

/* ---- sets of pointers ---- */

static void bind_set(float *x, float *y)
{
    grt_tensor t = rows(x, GRT_MEMORY_DEVICE);
    ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
    t.data = y;
    ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
}

static void run_cycle(float (*x)[ELEMENTS], float (*y)[ELEMENTS], int n, int round)
{
    for (int i = 0; i < n; i++) {
        fill(x[i], i + round);
        bind_set(x[i], y[i]);
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        expect_output(x[i], y[i]);
    }
}

START_TEST(as_many_sets_as_a_caller_cycles_through)
{
    enum { MANY = GRT_MAX_GRAPH_SETS + 4 };
    static _Alignas(64) float x[MANY][ELEMENTS], y[MANY][ELEMENTS];
    onnx_model m;
    begin(&m);
    onnx_node(&m, m.graph, "Relu", "h", "z");
    end(&m);
    open_model(&m);
    run_cycle(x, y, GRT_MAX_GRAPH_SETS, 0);
    ck_assert_int_eq(replay_of().graphs, 0);
    run_cycle(x, y, GRT_MAX_GRAPH_SETS, 1);
    const grt_replay *replay = &context->executor.main->replay;
    void *graphs[GRT_MAX_GRAPH_SETS];
    for (int i = 0; i < GRT_MAX_GRAPH_SETS; i++)
        graphs[i] = replay->sets[i].graphs[0];
    for (int round = 2; round < 4; round++)
        run_cycle(x, y, GRT_MAX_GRAPH_SETS, round);
    for (int i = 0; i < GRT_MAX_GRAPH_SETS; i++) /* the same: nothing was captured again */
        ck_assert(graphs[i] && graphs[i] == replay->sets[i].graphs[0]);
    const grt_replay_info info = replay_of();
    ck_assert_int_eq(info.graphs, GRT_MAX_GRAPH_SETS);
    ck_assert_int_eq(info.replayed, info.steps);
    ck_assert_str_eq(info.reason, "");
    /* beyond the bound: slower, and right */
    for (int round = 4; round < 6; round++)
        run_cycle(x, y, MANY, round);
    ck_assert_int_le(replay_of().graphs, GRT_MAX_GRAPH_SETS);
}
END_TEST

/* ---- copies in the graph ---- */

static void bind_pinned(float *x, float *y)
{
    grt_tensor t = rows(x, GRT_MEMORY_PINNED);
    ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
    t.data = y;
    ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
}

static void run_pinned(float *x, float *y, int seed)
{
    grt_tensor out;
    fill(x, seed);
    memset(y, 0xff, ELEMENTS * sizeof *y);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    ck_assert_ptr_eq(out.data, y);
    expect_output(x, y);
}

static const grt_replay *trips_of(void)
{
    return &context->executor.main->trips;
}

/* From the second run with the same page-locked memory on, for each of two pairs; until memory moves. */
START_TEST(a_round_trip_is_one_graph)
{
    static float x[2][ELEMENTS], y[2][ELEMENTS];
    onnx_model m;
    begin(&m);
    onnx_node(&m, m.graph, "Relu", "h", "z");
    end(&m);
    open_model(&m);
    for (int i = 0; i < 6; i++) {
        bind_pinned(x[i % 2], y[i % 2]);
        run_pinned(x[i % 2], y[i % 2], i);
        ck_assert_int_eq(grt_replay_count(trips_of()), i < 2 ? 0 : i < 3 ? 1 : 2);
    }
    grt_executor *executor = &context->executor;
    ck_assert_int_eq(grt_executor_reserve_arena(executor, executor->arena.bytes + 4096), GRT_OK);
    for (int i = 0; i < 2; i++) { /* results have another place on the device */
        run_pinned(x[1], y[1], 7 + i);
        ck_assert_int_eq(grt_replay_count(trips_of()), i);
    }
    run_and_expect(9); /* an input in pageable memory is not copied in a graph */
    ck_assert_int_eq(grt_replay_count(trips_of()), 1);
}
END_TEST

/* Around a step that cannot be in a graph there is no such graph. */
START_TEST(no_round_trip_around_the_host)
{
    static float x[ELEMENTS], y[ELEMENTS];
    onnx_model m;
    begin(&m);
    loop_until(&m);
    end(&m);
    open_model(&m);
    bind_pinned(x, y);
    for (int i = 0; i < 4; i++)
        run_pinned(x, y, i);
    ck_assert_int_eq(grt_replay_count(trips_of()), 0);
}
END_TEST

/* ---- the invariant ---- */

static void expect_refused(const grt_program *program, const char *what)
{
    ck_assert_int_eq(grt_program_check(program), GRT_STATUS_INTERNAL);
    ck_assert_msg(strstr(grt_last_error(), what) != NULL, "%s", grt_last_error());
}

/* Each way to break a good program is seen. */
#define EXPECT_REFUSED(program, field, wrong, what)           \
    do {                                                      \
        const __typeof__(field) right = (field);              \
        (field) = (wrong);                                    \
        expect_refused(program, what);                        \
        (field) = right;                                      \
        ck_assert_int_eq(grt_program_check(program), GRT_OK); \
    } while (0)

START_TEST(the_invariant_is_checked)
{
    onnx_model m;
    begin(&m);
    count_places(&m);
    end(&m);
    open_model(&m);
    run_and_expect(1);
    const grt_program *p = context->executor.main->program;
    ck_assert_msg(grt_program_check(p) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_program_check(expected->executor.main->program) == GRT_OK, "%s", grt_last_error());
    const int32_t y = p->body->outputs[0], x = p->body->inputs[0];
    EXPECT_REFUSED(p, p->places[y].home, GRT_HOME_RUN, "has dims exactly if its home is fixed");
    EXPECT_REFUSED(p, p->places[y].has_dims, false, "has dims exactly if its home is fixed");
    EXPECT_REFUSED(p, p->places[y].offset, SIZE_MAX, "has an offset exactly if");
    EXPECT_REFUSED(p, p->places[y].offset, p->arena_bytes + 64, "not where its storage is");
    EXPECT_REFUSED(p, p->places[y].maker, -1, "a step makes it");
    EXPECT_REFUSED(p, p->places[x].home, GRT_HOME_ARENA, "its home does not fit its role");
    EXPECT_REFUSED(p, p->places[x].storage, y, "its storage is another's");
    EXPECT_REFUSED(p, p->places[x].storage, p->body->n_values, "its storage does not exist");
    grt_instruction *blocker = &p->instructions[p->blocker], *last = &p->instructions[p->n_instructions - 1];
    EXPECT_REFUSED(p, blocker->prepared, true, "it is prepared, but");
    EXPECT_REFUSED(p, blocker->outputs_fixed, true, "in the arena exactly if they are fixed");
    EXPECT_REFUSED(p, last->run, NULL, "has no function");
    EXPECT_REFUSED(p, last->host, true, "it cannot be in a graph");
    EXPECT_REFUSED(p, p->instruction_of[blocker->index], -1, "another step's");
    EXPECT_REFUSED(p, p->segments[0].end, p->segments[0].end + 1, "it cannot be in a graph");
    EXPECT_REFUSED(p, ((grt_program *)p)->n_segments, 1, "no segment has it");
}
END_TEST

/* ---- becoming ready ---- */

START_TEST(ready_before_the_first_run)
{
    onnx_model m;
    grt_context *other;
    begin(&m);
    onnx_node(&m, m.graph, "Relu", "h", "z");
    end(&m);
    open_model(&m);
    ck_assert_uint_eq(context->frames.prepared, 1);
    ck_assert(!context->executor.bound.input_set[0]);
    run_and_expect(0);
#ifndef GRT_DEBUG /* which captures nothing */
    ck_assert_int_eq(replay_of().graphs, 1);
#endif
    run_and_expect(1);
    ck_assert_uint_eq(context->frames.prepared, 1);
    /* There is one for the first caller; contexts from then on are new. */
    ck_assert_int_eq(grt_context_create(session, &other), GRT_OK);
    ck_assert_uint_eq(other->frames.prepared, 0);
    grt_context_release(other);
}
END_TEST

START_TEST(open_dims_wait_for_the_first_run)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,16");
    onnx_node(&m, m.graph, "Softmax", "x", "z");
    end(&m);
    open_model(&m);
    ck_assert_uint_eq(context->frames.prepared, 0);
    run_and_expect(0);
}
END_TEST

START_TEST(nobody_has_to_want_a_context)
{
    onnx_model m;
    begin(&m);
    onnx_node(&m, m.graph, "Relu", "h", "z");
    end(&m);
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    ck_assert_int_eq(grt_session_create(model, "mirror:0", NULL, &session), GRT_OK);
    grt_model_release(model);
    ck_assert_ptr_nonnull(session->spare); /* released with the session */
}
END_TEST

Suite *suite_test_replay(void)
{
    Suite *suite = suite_create("replay");
    TCase *tests = tcase_create("replay");
    tcase_add_checked_fixture(tests, runtime_open, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, around_what_depends_on_data);
    tcase_add_test(tests, around_control_flow);
    tcase_add_test(tests, a_workspace_that_grows_in_a_run);
    tcase_add_test(tests, memory_that_moves);
    tcase_add_test(tests, results_of_the_host_for_the_device);
    tcase_add_test(tests, as_many_sets_as_a_caller_cycles_through);
    tcase_add_test(tests, a_round_trip_is_one_graph);
    tcase_add_test(tests, no_round_trip_around_the_host);
    tcase_add_test(tests, the_invariant_is_checked);
    tcase_add_test(tests, ready_before_the_first_run);
    tcase_add_test(tests, open_dims_wait_for_the_first_run);
    tcase_add_test(tests, nobody_has_to_want_a_context);
    suite_add_tcase(suite, tests);
    return suite;
}

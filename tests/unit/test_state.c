/* SPDX-License-Identifier: Apache-2.0 */
/* State of contexts: outputs that are the next run's inputs, on the CPU and on the mirror. */
#include "tests/unit/opened.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

static grt_state *state;
static float x[2];

static void close_with_state(void)
{
    grt_state_release(state);
    close_all();
    state = NULL;
}

static void teardown(void)
{
    runtime_close();
}

/* next = sum + x; y = Softmax(next), which reads the state before it is written over */
static onnx_model summing(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_input(&m, m.graph, "sum", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "Softmax", "sum", "y");
    onnx_node(&m, m.graph, "CumSum", "x,axis", "z");
    onnx_node(&m, m.graph, "CumSum", "sum,axis", "w");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "axis", GRT_DTYPE_INT64, "", &(int64_t){0}, sizeof(int64_t)));
    onnx_node(&m, m.graph, "Add", "sum,x", "next");
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "next");
    onnx_output(&m, m.graph, "z");
    onnx_output(&m, m.graph, "w");
    return m;
}

/* next = cache with x as a further row; y = the sums of its columns */
static onnx_model growing(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,2");
    onnx_input(&m, m.graph, "cache", GRT_DTYPE_FLOAT, "rows,2");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "cache,x", "next"), "axis", 0);
    onnx_node(&m, m.graph, "ReduceSum", "next,axis", "y");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "axis", GRT_DTYPE_INT64, "1", &(int64_t){0}, sizeof(int64_t)));
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "next");
    return m;
}

static void bind_x(int32_t rank)
{
    const grt_tensor t = {
        .dtype = GRT_DTYPE_FLOAT, .rank = rank, .dims = {rank == 1 ? 2 : 1, rank == 1 ? 0 : 2}, .data = x};
    OK(grt_context_set_input(context, 0, &t));
}

static void add(float a, float b)
{
    x[0] = a;
    x[1] = b;
    OK(grt_context_run(context));
}

static void expect(grt_state *s, float a, float b)
{
    grt_value *value;
    grt_tensor t;
    OK(grt_state_save(s, 0, &value));
    OK(grt_value_tensor(value, &t));
    ck_assert_float_eq(((float *)t.data)[0], a);
    ck_assert_float_eq(((float *)t.data)[1], b);
    grt_value_release(value);
}

static grt_state_info info_of(grt_state *s)
{
    grt_state_info info = {.struct_size = sizeof info};
    OK(grt_state_get(s, 0, &info));
    return info;
}

/* ---- content ---- */

/* On two buffers and in place, for the CPU and the mirror, whose graphs are captured and replayed. */
START_TEST(carries_on)
{
    const bool in_place = _i & 1;
    onnx_model m = summing();
    open_on(&m, NULL, devices[_i / 2], NULL);
    const float begin[] = {10, 20};
    const grt_tensor initial = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = (void *)begin};
    const grt_state_pair pair = {.output = "next", .input = "sum", .initial = &initial, .in_place = in_place};
    OK(grt_state_create(session, &pair, 1, &state));
    ck_assert_uint_eq(grt_state_count(state), 1);
    OK(grt_context_set_state(context, state));
    bind_x(1);
    for (int i = 1; i <= 7; i++) {
        grt_tensor w;
        add(1, 2);
        expect(state, 10 + (float)i, 20 + 2 * (float)i);
        OK(grt_context_get_output(context, 3, &w)); /* of the state before this run: [a, a + b] */
        ck_assert_float_eq(((float *)w.data)[1], 30 + 3 * (float)(i - 1));
    }
    const grt_state_info info = info_of(state);
    ck_assert_str_eq(info.output, "next");
    ck_assert_str_eq(info.input, "sum");
    ck_assert(info.in_place == in_place && !info.lost);
    ck_assert_int_eq(info.tensor.memory, _i / 2 ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST);
    ck_assert_uint_eq(info.bytes, in_place ? 8 : 16);
    grt_replay_info replay = {.struct_size = sizeof replay};
    OK(grt_context_get_replay(context, &replay));
    const int32_t warm = 1; /* of the session's creation, with other memory */
    ck_assert_int_eq(replay.graphs, _i / 2 == 0 ? 0 : warm + (in_place ? 1 : 2));
    OK(grt_state_reset(state));
    expect(state, 10, 20);
    add(5, 5);
    expect(state, 15, 25);
    close_with_state();
}
END_TEST

START_TEST(grows)
{
    onnx_model m = growing();
    open_on(&m, NULL, devices[_i], NULL);
    const grt_tensor none = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {0, 2}};
    const grt_state_pair pair = {.output = "next", .input = "cache", .initial = &none, .in_place = true};
    OK(grt_state_create(session, &pair, 1, &state));
    OK(grt_context_set_state(context, state));
    bind_x(2);
    for (int i = 1; i <= 40; i++) {
        grt_tensor y;
        add((float)i, 1);
        OK(grt_context_get_output(context, 0, &y));
        ck_assert_float_eq(((float *)y.data)[0], (float)(i * (i + 1) / 2));
        ck_assert_float_eq(((float *)y.data)[1], (float)i);
    }
    const grt_state_info info = info_of(state);
    ck_assert_int_eq(info.tensor.dims[0], 40);
    ck_assert(!info.in_place); /* other dims */
    OK(grt_state_reset(state));
    add(3, 4);
    ck_assert_int_eq(info_of(state).tensor.dims[0], 1);
    expect(state, 3, 4);
    close_with_state();
}
END_TEST

/* next = cache with room for `total` rows, of which x becomes row `at`: a decoder's cache. */
static onnx_model caching(void)
{
    const int64_t none[4] = {0};
    onnx_model m = onnx_create();
    onnx_opset(&m, "", 24);
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,2");
    onnx_input(&m, m.graph, "cache", GRT_DTYPE_FLOAT, "1,rows,2");
    onnx_input(&m, m.graph, "mask", GRT_DTYPE_FLOAT, "total");
    onnx_input(&m, m.graph, "at", GRT_DTYPE_INT64, "1");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "one", GRT_DTYPE_INT64, "1", &(int64_t){1}, sizeof(int64_t)));
    onnx_initializer(&m, m.graph, onnx_raw(&m, "none", GRT_DTYPE_INT64, "1", none, sizeof(int64_t)));
    onnx_initializer(&m, m.graph, onnx_raw(&m, "front", GRT_DTYPE_INT64, "4", none, sizeof none));
    onnx_node(&m, m.graph, "Shape", "mask", "total_rows");
    onnx_node(&m, m.graph, "Shape", "cache", "cache_dims");
    onnx_node(&m, m.graph, "Gather", "cache_dims,one", "rows");
    onnx_node(&m, m.graph, "Sub", "total_rows,rows", "more");
    onnx_node(&m, m.graph, "Max", "more,none", "missing");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "front,missing,none", "pads"), "axis", 0);
    onnx_node(&m, m.graph, "Unsqueeze", "x,none", "update");
    onnx_node(&m, m.graph, "Pad", "cache,pads", "room");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "TensorScatter", "room,update,at", "next"), "axis", 1);
    onnx_output(&m, m.graph, "next");
    return m;
}

/* A cache that has room already is written in place; one that has not grows. */
START_TEST(caches)
{
    onnx_model m = caching();
    open_on(&m, NULL, devices[_i], NULL);
    const float mask[5] = {0};
    int64_t at = 0;
    const grt_tensor begin = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {1, 4, 2}},
                     index = {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {1}, .data = &at};
    grt_tensor total = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {4}, .data = (void *)mask};
    const grt_state_pair pair = {.output = "next", .input = "cache", .initial = &begin, .in_place = true};
    OK(grt_state_create(session, &pair, 1, &state));
    OK(grt_context_set_state(context, state));
    bind_x(2);
    OK(grt_context_set_input(context, 2, &total));
    OK(grt_context_set_input(context, 3, &index));
    for (at = 3; at >= 0; at--) {
        add(1, 2 + (float)at);
        ck_assert(info_of(state).in_place);
    }
    expect(state, 1, 2);
    total.dims[0] = 5;
    at = 4;
    OK(grt_context_set_input(context, 2, &total));
    add(7, 8);
    ck_assert_int_eq(info_of(state).tensor.dims[1], 5);
    ck_assert(!info_of(state).in_place);
    expect(state, 1, 2);
    close_with_state();
}
END_TEST

/* next = the values of cache and x that are not 0: only the run knows how many. */
START_TEST(of_unknown_size)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_input(&m, m.graph, "cache", GRT_DTYPE_FLOAT, "rows");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "cache,x", "all"), "axis", 0);
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Cast", "all", "kept"), "to", GRT_DTYPE_BOOL);
    onnx_node(&m, m.graph, "Compress", "all,kept", "next");
    onnx_output(&m, m.graph, "next");
    const grt_session_options options = {.struct_size = sizeof options, .fallback = "cpu"};
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    OK(grt_session_create(model, devices[_i], &options, &session));
    OK(grt_context_create(session, &context));
    grt_model_release(model);
    const grt_tensor none = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {0}};
    const grt_state_pair pair = {.output = "next", .input = "cache", .initial = &none};
    OK(grt_state_create(session, &pair, 1, &state));
    OK(grt_context_set_state(context, state));
    bind_x(1);
    for (int i = 0; i < 10; i++)
        add(0, (float)(i + 1) * (float)(i % 2));
    const grt_state_info info = info_of(state);
    ck_assert_int_eq(info.tensor.dims[0], 5);
    expect(state, 2, 4);
    close_with_state();
}
END_TEST

/* a' = b, b' = a: outputs that are inputs are copied, in no order that loses one. */
START_TEST(trades_places)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "a", GRT_DTYPE_FLOAT, "1");
    onnx_input(&m, m.graph, "b", GRT_DTYPE_FLOAT, "1");
    onnx_node(&m, m.graph, "Identity", "b", "a2");
    onnx_node(&m, m.graph, "Identity", "a", "b2");
    onnx_output(&m, m.graph, "a2");
    onnx_output(&m, m.graph, "b2");
    open_on(&m, NULL, devices[_i], NULL);
    const float ones[] = {1, 2};
    const grt_tensor a = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = (void *)&ones[0]},
                     b = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = (void *)&ones[1]};
    const grt_state_pair pairs[] = {{.output = "a2", .input = "a", .initial = &a, .in_place = true},
                                    {.output = "b2", .input = "b", .initial = &b, .in_place = true}};
    OK(grt_state_create(session, pairs, 2, &state));
    OK(grt_context_set_state(context, state));
    for (int i = 0; i < 3; i++)
        OK(grt_context_run(context));
    for (size_t i = 0; i < 2; i++) {
        grt_value *value;
        grt_tensor t;
        OK(grt_state_save(state, i, &value));
        OK(grt_value_tensor(value, &t));
        ck_assert_float_eq(*(float *)t.data, ones[1 - i]);
        grt_value_release(value);
    }
    close_with_state();
}
END_TEST

/* ---- streams of data ---- */

/* Two states take turns on one context, one of them goes on in another, and is forked. */
START_TEST(many_streams)
{
    onnx_model m = summing();
    grt_state *other = NULL;
    grt_context *second = NULL, *first;
    open_on(&m, NULL, devices[_i], NULL);
    const grt_state_pair pair = {.output = "next", .input = "sum"};
    OK(grt_state_create(session, &pair, 1, &state));
    OK(grt_state_create(session, &pair, 1, &other));
    bind_x(1);
    for (int i = 0; i < 4; i++) {
        OK(grt_context_set_state(context, state));
        add(1, 1);
        OK(grt_context_set_state(context, other));
        add(100, 0);
    }
    expect(state, 4, 4);
    expect(other, 400, 0);
    first = context;
    OK(grt_context_create(session, &second));
    REFUSED(grt_context_set_state(second, other), "another context has the state");
    OK(grt_context_set_state(first, NULL));
    context = second;
    OK(grt_context_set_state(context, other));
    bind_x(1);
    add(1, 1);
    expect(other, 401, 1);
    OK(grt_state_copy(state, other));
    add(1, 1);
    expect(state, 401, 1);
    expect(other, 402, 2);
    const float back[] = {7, 8};
    const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = (void *)back};
    OK(grt_state_restore(other, 0, &t));
    add(1, 1);
    expect(other, 8, 9);
    grt_state_release(other); /* the context keeps it */
    add(1, 1);
    grt_context_release(first);
    close_with_state();
}
END_TEST

/* The model says which: what `graphc optimize --state` writes. */
START_TEST(declared)
{
    onnx_model m = summing();
    Onnx__StringStringEntryProto entry = ONNX__STRING_STRING_ENTRY_PROTO__INIT, *entries[] = {&entry};
    entry.key = (char *)"graphrt.state";
    entry.value = (char *)(_i ? "next=sum\n" : "next=none");
    m.proto->metadata_props = entries;
    m.proto->n_metadata_props = 1;
    open_on(&m, NULL, "cpu", NULL);
    if (_i) {
        OK(grt_state_create(session, NULL, 0, &state));
        OK(grt_context_set_state(context, state));
        bind_x(1);
        add(1, 2);
        expect(state, 1, 2);
    } else
        REFUSED(grt_state_create(session, NULL, 0, &state), "'next=none'");
    close_with_state();
}
END_TEST

/* ---- runs that do not end well ---- */

static bool stop_at_once(void *user)
{
    return --*(int *)user < 0;
}

START_TEST(a_stopped_run)
{
    const bool in_place = _i & 1;
    onnx_model m = summing();
    open_on(&m, NULL, devices[_i / 2], NULL);
    const grt_state_pair pair = {.output = "next", .input = "sum", .in_place = in_place};
    OK(grt_state_create(session, &pair, 1, &state));
    OK(grt_context_set_state(context, state));
    bind_x(1);
    add(1, 2);
    int left = 2;
    const grt_run_options options = {.struct_size = sizeof options, .cancel = stop_at_once, .user = &left};
    ck_assert_int_eq(grt_context_run_with(context, &options), GRT_STATUS_CANCELLED);
    ck_assert(info_of(state).lost == in_place);
    if (in_place) {
        grt_value *value;
        REFUSED(grt_context_run(context), "state 'sum' was being written in place");
        REFUSED(grt_state_save(state, 0, &value), "lost");
        OK(grt_state_reset(state));
    }
    add(1, 2);
    expect(state, in_place ? 1 : 2, in_place ? 2 : 4);
    close_with_state();
}
END_TEST

START_TEST(enqueued)
{
    onnx_model m = summing();
    open_on(&m, NULL, "mirror:0", NULL);
    const grt_state_pair pair = {.output = "next", .input = "sum", .in_place = _i};
    void *data;
    OK(grt_session_alloc_host(session, sizeof x, &data));
    memcpy(data, (float[]){1, 2}, sizeof x);
    const grt_tensor t = {
        .dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = data, .memory = GRT_MEMORY_PINNED};
    OK(grt_state_create(session, &pair, 1, &state));
    OK(grt_context_set_state(context, state));
    OK(grt_context_set_input(context, 0, &t));
    for (int i = 1; i <= 5; i++)
        OK(grt_context_run_async(context, NULL));
    expect(state, 5, 10); /* waits */
    OK(grt_context_run(context));
    expect(state, 6, 12);
    grt_context_release(context);
    OK(grt_context_create(session, &context));
    grt_session_free_host(session, data);
    close_with_state();
}
END_TEST

/* ---- what is refused ---- */

START_TEST(refused)
{
    onnx_model m = summing();
    open_on(&m, NULL, devices[_i], NULL);
    grt_tensor wrong = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {3}};
    grt_state_pair pairs[2] = {{.output = "next", .input = "sum"}, {.output = "y", .input = "sum"}};
    REFUSED(grt_state_create(session, pairs, 2, &state), "two pairs");
    REFUSED(grt_state_create(session, NULL, 0, &state), "graphc optimize --state");
    REFUSED(grt_state_create(session, NULL, 1, &state), "NULL");
    pairs[0].initial = &wrong;
    REFUSED(grt_state_create(session, pairs, 1, &state), "must be float32[2], found float32[3]");
    pairs[0] = (grt_state_pair){.output = "next", .input = "none"};
    REFUSED(grt_state_create(session, pairs, 1, &state), "no input 'none'");
    pairs[0] = (grt_state_pair){.output = NULL, .input = "sum"};
    REFUSED(grt_state_create(session, pairs, 1, &state), "no output ''");
    pairs[0] = (grt_state_pair){.output = "next", .input = "sum", .reserved = {1}};
    ck_assert_int_eq(grt_state_create(session, pairs, 1, &state), GRT_STATUS_UNSUPPORTED);
    pairs[0].reserved[0] = 0;
    OK(grt_state_create(session, pairs, 1, &state));
    OK(grt_context_set_state(context, state));
    const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = x};
    REFUSED(grt_context_set_input(context, 1, &t), "input 'sum' belongs to the context's state");
    REFUSED(grt_context_set_output(context, 1, &t), "output 'next' belongs to the context's state");
    grt_value *value;
    REFUSED(grt_state_save(state, 1, &value), "pair 1 does not exist");
    REFUSED(grt_state_restore(state, 0, &wrong), "found float32[3]");
    REFUSED(grt_context_run(context), "input 'x' is not set");
    ck_assert(!info_of(state).lost);
    /* an output of the caller's over the state */
    bind_x(1);
    grt_tensor over = info_of(state).tensor;
    OK(grt_context_set_output(context, 0, &over));
    REFUSED(grt_context_run(context), "overlaps");
    OK(grt_context_set_output(context, 0, NULL));
    OK(grt_context_run(context));
    OK(grt_context_set_state(context, NULL));
    REFUSED(grt_context_run(context), "input 'sum' is not set");
    REFUSED(grt_context_set_state(NULL, state), "NULL");
    close_with_state();
}
END_TEST

START_TEST(of_another_model)
{
    onnx_model m = growing();
    open_on(&m, NULL, "cpu", NULL);
    const grt_state_pair pair = {.output = "next", .input = "cache"},
                         twice = {.output = "next", .input = "sum"};
    REFUSED(grt_state_create(session, &pair, 1, &state), "symbolic dims");
    grt_session *old_session = session;
    grt_context *old = context;
    m = summing();
    open_on(&m, NULL, "cpu", NULL);
    OK(grt_state_create(session, &twice, 1, &state));
    REFUSED(grt_context_set_state(old, state), "another model");
    grt_context_release(old);
    grt_session_release(old_session);
    close_with_state();
}
END_TEST

Suite *suite_test_state(void);
Suite *suite_test_state(void)
{
    Suite *s = suite_create("test_state");
    TCase *t = tcase_create("test_state");
    tcase_add_checked_fixture(t, runtime_open, teardown);
    tcase_add_loop_test(t, carries_on, 0, 2 * N_DEVICES);
    tcase_add_loop_test(t, grows, 0, N_DEVICES);
    tcase_add_loop_test(t, caches, 0, N_DEVICES);
    tcase_add_loop_test(t, of_unknown_size, 0, N_DEVICES);
    tcase_add_loop_test(t, trades_places, 0, N_DEVICES);
    tcase_add_loop_test(t, many_streams, 0, N_DEVICES);
    tcase_add_loop_test(t, declared, 0, 2);
    tcase_add_loop_test(t, a_stopped_run, 0, 2 * N_DEVICES);
    tcase_add_loop_test(t, enqueued, 0, 2);
    tcase_add_loop_test(t, refused, 0, N_DEVICES);
    tcase_add_test(t, of_another_model);
    suite_add_tcase(s, t);
    return s;
}

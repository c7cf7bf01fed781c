/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices through the API, outputs that the caller gives memory for, and contexts that give theirs
 * back. */
#include "tests/unit/opened.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

enum { N = 6 };

static float x[N] = {0, 3, 0, -1, 5, 0};
static const grt_tensor x_in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {N}, .data = x};

/* y = Relu(x), places = NonZero(x): of a size that depends on data */
static void open_relu_on(const char *device)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n");
    onnx_node(&m, m.graph, "Relu", "x", "y");
    onnx_node(&m, m.graph, "NonZero", "x", "places");
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "places");
    open_on(&m, NULL, device, "cpu");
}

START_TEST(device_memory)
{
    void *a, *b;
    int32_t device;
    float back[N] = {0};
    open_relu_on(devices[_i]);
    OK(grt_session_alloc_device(session, sizeof x, &a, &device));
    OK(grt_session_alloc_device(session, sizeof x, &b, NULL));
    ck_assert_int_eq(device, _i ? 0 : -1);
    const grt_memory memory = _i ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST;
    grt_tensor at_a = x_in, at_b = x_in, host = x_in, other;
    at_a.data = a;
    at_b.data = b;
    at_a.memory = at_b.memory = memory;
    host.data = back;
    OK(grt_session_copy(session, &at_a, &x_in));
    OK(grt_session_copy(session, &at_b, &at_a));
    OK(grt_session_copy(session, &host, &at_b));
    ck_assert_mem_eq(back, x, sizeof x);
    OK(grt_context_set_input(context, 0, &at_b)); /* used in place */
    OK(grt_context_set_output(context, 0, &at_a));
    OK(grt_context_run(context));
    OK(grt_session_copy(session, &host, &at_a));
    ck_assert_float_eq(back[1], 3);
    ck_assert_float_eq(back[3], 0);
    other = host;
    other.dims[0] = N - 1;
    REFUSED(grt_session_copy(session, &other, &at_a), "`to` is for float32[5]");
    other = at_a;
    other.memory = GRT_MEMORY_DEVICE;
    other.device = 7;
    REFUSED(grt_session_copy(session, &host, &other), "another device");
    other = at_a;
    other.data = NULL;
    REFUSED(grt_session_copy(session, &other, &host), "`to` has no data");
    grt_session_free_device(session, a);
    grt_session_free_device(session, b);
    grt_session_free_device(session, NULL);
    close_all();
}
END_TEST

static struct {
    int calls;
    size_t index, bytes;
    grt_tensor type;
    void *data;
    bool none;
} asked;

static void *allocate(void *user, size_t index, const grt_tensor *tensor, size_t bytes)
{
    ck_assert_ptr_eq(user, &asked);
    ck_assert_uint_eq(bytes, grt_tensor_bytes(tensor));
    asked.calls++;
    asked.index = index;
    asked.bytes = bytes;
    asked.type = *tensor;
    asked.data = NULL;
    if (!asked.none && grt_session_alloc_device(session, bytes, &asked.data, NULL) != GRT_OK)
        return NULL;
    return asked.data;
}

START_TEST(of_known_and_unknown_size)
{
    const size_t index = (size_t)_i & 1;
    const bool device = _i / 2 == 1;
    const grt_memory memory = device ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST;
    memset(&asked, 0, sizeof asked);
    open_relu_on(devices[device]);
    OK(grt_context_set_input(context, 0, &x_in));
    OK(grt_context_set_output_allocator(context, index, allocate, &asked, memory));
    for (int run = 0; run < 3; run++) {
        grt_tensor out, host;
        char bytes[64];
        asked.calls = 0;
        OK(grt_context_run(context));
        ck_assert_int_eq(asked.calls, 1);
        ck_assert_uint_eq(asked.index, index);
        ck_assert_int_eq(asked.type.memory, memory);
        OK(grt_context_get_output(context, index, &out));
        ck_assert_ptr_eq(out.data, asked.data);
        ck_assert_int_eq(out.memory, memory);
        host = out;
        host.memory = GRT_MEMORY_HOST;
        host.data = bytes;
        OK(grt_session_copy(session, &host, &out));
        if (index == 0)
            ck_assert_float_eq(((float *)host.data)[4], 5);
        else {
            ck_assert_int_eq(out.dims[1], 3);
            ck_assert_int_eq(((int64_t *)host.data)[2], 4);
        }
        grt_session_free_device(session, asked.data);
    }
    asked.none = true;
    REFUSED_AS(GRT_STATUS_OUT_OF_MEMORY, grt_context_run(context), "the caller's allocator gave no memory");
    OK(grt_context_set_output_allocator(context, index, NULL, NULL, GRT_MEMORY_HOST));
    OK(grt_context_run(context));
    close_all();
}
END_TEST

START_TEST(refused)
{
    open_relu_on("cpu");
    REFUSED(grt_context_set_output_allocator(context, 2, allocate, NULL, GRT_MEMORY_HOST),
            "output 2 does not exist");
    REFUSED(grt_context_set_output_allocator(context, 0, allocate, NULL, GRT_MEMORY_DEVICE),
            "has no memory of kind 2");
    REFUSED(grt_context_set_output_allocator(NULL, 0, allocate, NULL, GRT_MEMORY_HOST), "NULL");
    close_all();
}
END_TEST

/* a chain that needs activations: MatMul, Softmax */
static void open_wide(const char *device)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,64");
    onnx_node(&m, m.graph, "MatMul", "x,w", "a");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "64,64"));
    onnx_node(&m, m.graph, "Softmax", "a", "b");
    onnx_node(&m, m.graph, "MatMul", "b,w", "y");
    onnx_output(&m, m.graph, "y");
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    OK(grt_session_create(model, device, NULL, &session));
    OK(grt_context_create(session, &context));
    grt_model_release(model);
}

START_TEST(idle)
{
    enum { ROWS = 100 };
    static float rows[ROWS * 64];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, 64}, .data = rows};
    uint64_t bytes = 1;
    grt_tensor y;
    open_wide(devices[_i]);
    OK(grt_context_trim(context, &bytes)); /* nothing was there */
    ck_assert_uint_eq(bytes, 0);
    for (int i = 0; i < ROWS * 64; i++)
        rows[i] = (float)(i % 7) * 1e-3f;
    OK(grt_context_set_input(context, 0, &in));
    float first = 0;
    for (int round = 0; round < 3; round++) {
        for (int run = 0; run < 3; run++) /* captured and replayed on the mirror */
            OK(grt_context_run(context));
        OK(grt_context_get_output(context, 0, &y));
        first = round ? first : *(float *)y.data;
        ck_assert_float_eq(*(float *)y.data, first);
        OK(grt_context_trim(context, &bytes));
        ck_assert_uint_ge(bytes, ROWS * 64 * sizeof(float));
        ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_STATUS_INVALID_ARGUMENT);
        OK(grt_context_trim(context, &bytes));
        ck_assert_uint_eq(bytes, 0);
    }
    grt_context_stats stats = {.struct_size = sizeof stats};
    OK(grt_context_get_stats(context, &stats));
    ck_assert_uint_eq(stats.reshapes, 3);
    ck_assert_int_eq(grt_context_trim(NULL, NULL), GRT_STATUS_INVALID_ARGUMENT);
    close_all();
}
END_TEST

static struct {
    int runs, prepares, computes, steps;
    double begin, end, at;
    grt_status status;
    char names[256];
} told;

static void take_event(void *user, const grt_profile_event *e)
{
    ck_assert_ptr_eq(user, &told);
    ck_assert_uint_eq(e->struct_size, sizeof *e);
    ck_assert_double_le(e->begin_ms, e->end_ms);
    if (e->kind == GRT_PROFILE_RUN) {
        told.runs++;
        told.begin = told.at = e->begin_ms;
        told.end = e->end_ms;
        told.status = e->status;
        return;
    }
    ck_assert_double_ge(e->begin_ms, told.begin);
    told.prepares += e->kind == GRT_PROFILE_PREPARE;
    told.computes += e->kind == GRT_PROFILE_COMPUTE;
    if (e->kind != GRT_PROFILE_STEP)
        return;
    ck_assert_double_ge(e->begin_ms, told.at); /* in order */
    told.at = e->begin_ms;
    told.steps++;
    strncat(told.names, e->op, sizeof told.names - strlen(told.names) - 1);
}

START_TEST(profile)
{
    grt_profile_options options = {
        .struct_size = sizeof options, .event = take_event, .user = &told, .steps = true};
    memset(&told, 0, sizeof told);
    open_relu_on(devices[_i]);
    OK(grt_context_set_input(context, 0, &x_in));
    OK(grt_context_set_profile(context, &options));
    OK(grt_context_run(context));
    ck_assert(told.runs == 1 && told.prepares == 1 && told.computes == 1 && told.steps == 2);
    ck_assert_ptr_nonnull(strstr(told.names, "NonZero"));
    OK(grt_context_run(context));
    ck_assert(told.runs == 2 && told.prepares == 1 && told.computes == 2 && told.steps == 4);
    options.steps = false;
    OK(grt_context_set_profile(context, &options));
    OK(grt_context_run(context));
    ck_assert(told.runs == 3 && told.computes == 3 && told.steps == 4);
    OK(grt_context_set_input(context, 0, NULL));
    ck_assert_int_eq(grt_context_run(context), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert(told.runs == 4 && told.computes == 3 && told.status == GRT_STATUS_INVALID_ARGUMENT);
    OK(grt_context_set_input(context, 0, &x_in));
    OK(grt_context_set_profile(context, NULL));
    OK(grt_context_run(context));
    ck_assert_int_eq(told.runs, 4);
    options.event = NULL;
    REFUSED(grt_context_set_profile(context, &options), "event is NULL");
    close_all();
}
END_TEST

Suite *suite_test_memory_api(void);
Suite *suite_test_memory_api(void)
{
    Suite *s = suite_create("test_memory_api");
    TCase *t = tcase_create("test_memory_api");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_add_loop_test(t, device_memory, 0, N_DEVICES);
    tcase_add_loop_test(t, of_known_and_unknown_size, 0, 2 * N_DEVICES);
    tcase_add_test(t, refused);
    tcase_add_loop_test(t, idle, 0, N_DEVICES);
    tcase_add_loop_test(t, profile, 0, N_DEVICES);
    suite_add_tcase(s, t);
    return s;
}

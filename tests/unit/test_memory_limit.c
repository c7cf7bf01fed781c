/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions have of memory: counted, bounded, and predicted. */
#include "src/session/session.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 256, MB = 1 << 20 };

#define BEYOND(call, text) REFUSED_AS(GRT_STATUS_OUT_OF_MEMORY, call, text)

/* x [rows,256] -> MatMul -> Softmax -> Transpose -> y */
static grt_model *open_product(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "rows,256");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "256,256"));
    onnx_node(&m, m.graph, "MatMul", "x,w", "h")->name = "product";
    onnx_node(&m, m.graph, "Softmax", "h", "s")->name = "middle";
    onnx_node(&m, m.graph, "Transpose", "s", "y")->name = "last";
    onnx_output(&m, m.graph, "y");
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    return model;
}

static grt_memory_info predict(grt_model *model, const char *device, int64_t rows)
{
    const grt_input_shape shape = {.input = "x", .rank = 2, .dims = {rows, WIDE}};
    const grt_memory_options options = {
        .struct_size = sizeof options, .threads = 1, .shapes = &shape, .n_shapes = 1};
    grt_memory_info info = {.struct_size = sizeof info};
    OK(grt_model_predict_memory(model, device, &options, &info));
    return info;
}

static grt_status open_limited(grt_model *model, const char *device, uint64_t limit,
                               grt_session **out_session)
{
    const grt_session_options options = {
        .struct_size = sizeof options, .threads = 1, .fallback = "cpu", .memory_limit = limit};
    return grt_session_create(model, device, &options, out_session);
}

static grt_status run_rows(grt_context *context, int64_t rows)
{
    static float *x;
    free(x);
    x = calloc((size_t)(rows * WIDE), sizeof *x);
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, WIDE}, .data = x};
    OK(grt_context_set_input(context, 0, &in));
    return grt_context_run(context);
}

static grt_memory_info memory_of(const grt_session *session)
{
    grt_memory_info info = {.struct_size = sizeof info};
    OK(grt_session_get_memory(session, &info));
    return info;
}

/* The prediction is what is then counted, a limit of so much is enough, and of a byte less is not. */
START_TEST(prediction_is_a_limit)
{
    enum { ROWS = 100 };
    const char *device = devices[_i];
    grt_model *model = open_product();
    grt_session *session;
    grt_context *context;
    const grt_memory_info predicted = predict(model, device, ROWS);
    ck_assert_uint_ge(predicted.activations_bytes, 4 * ROWS * WIDE);
    ck_assert_uint_ge(predicted.weights_bytes, 4 * WIDE * WIDE);
    OK(open_limited(model, device, predicted.total_bytes, &session));
    OK(grt_context_create(session, &context));
    OK(run_rows(context, ROWS));
    const grt_memory_info used = memory_of(session);
    ck_assert_uint_eq(used.total_bytes, predicted.total_bytes);
    ck_assert_uint_eq(used.activations_bytes, predicted.activations_bytes);
    ck_assert_uint_eq(used.workspaces_bytes, predicted.workspaces_bytes);
    ck_assert_uint_eq(used.inputs_bytes, predicted.inputs_bytes);
    ck_assert_uint_eq(used.limit_bytes, predicted.total_bytes);
    ck_assert_uint_ge(used.peak_bytes, used.total_bytes);
    if (_i == 0) { /* room for the larger arena alone; on devices, each combination of dims has inputs, too */
        grt_context_release(context);
        OK(grt_context_create(session, &context));
        OK(run_rows(context, ROWS / 2));
        OK(run_rows(context, ROWS));
    }
    BEYOND(run_rows(context, 2 * ROWS), "memory_limit is");
    ck_assert_msg(strstr(grt_last_error(), "node '"), "%s", grt_last_error());
    OK(run_rows(context, ROWS));
    grt_context_release(context);
    ck_assert_uint_eq(memory_of(session).activations_bytes, 0);
    ck_assert_uint_eq(memory_of(session).inputs_bytes, 0);
    grt_session_release(session);
    OK(open_limited(model, device, predicted.total_bytes - 1, &session));
    OK(grt_context_create(session, &context));
    BEYOND(run_rows(context, ROWS), "memory_limit is");
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

START_TEST(weights_beyond_the_limit)
{
    grt_model *model = open_product();
    grt_session *session = NULL;
    BEYOND(open_limited(model, devices[_i], 4 * WIDE * WIDE - 1, &session), "the model's weights");
    ck_assert_ptr_null(session);
    grt_model_release(model);
}
END_TEST

/* Results whose size depends on data count, too, and go with their context. */
START_TEST(values_of_the_run)
{
    enum { N = 4096 };
    static float x[N];
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n");
    onnx_node(&m, m.graph, "NonZero", "x", "places")->name = "find them";
    onnx_node(&m, m.graph, "Neg", "places", "y")->name = "turn them";
    onnx_output(&m, m.graph, "y");
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    grt_session *session;
    grt_context *context;
    OK(open_limited(model, devices[_i], 3 * N, &session));
    OK(grt_context_create(session, &context));
    grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {N / 4}, .data = x};
    OK(grt_context_set_input(context, 0, &in));
    OK(grt_context_run(context)); /* nothing is found */
    for (int i = 0; i < N / 4; i++)
        x[i] = 1;
    BEYOND(grt_context_run(context), "are wanted for results");
    ck_assert_msg(strstr(grt_last_error(), _i ? "turn them" : "find them") ||
                      strstr(grt_last_error(), "turn them"),
                  "%s", grt_last_error());
    memset(x, 0, sizeof x);
    x[7] = 1;
    OK(grt_context_run(context));
    ck_assert_uint_gt(memory_of(session).values_bytes, 0);
    grt_context_release(context);
    ck_assert_uint_eq(memory_of(session).values_bytes, 0);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

START_TEST(refused_predictions)
{
    grt_model *model = open_product();
    grt_input_shape shape = {.input = "z", .rank = 2, .dims = {1, WIDE}};
    grt_memory_options options = {.struct_size = sizeof options, .shapes = &shape, .n_shapes = 1};
    grt_memory_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_model_predict_memory(model, "cpu", &options, &info), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(grt_last_error(), "no input 'z'"), "%s", grt_last_error());
    shape.input = "x";
    shape.dims[1] = 3;
    ck_assert_int_eq(grt_model_predict_memory(model, "cpu", &options, &info), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_model_predict_memory(model, "nowhere", NULL, &info), GRT_STATUS_DEVICE);
    options.n_shapes = 0; /* one row */
    OK(grt_model_predict_memory(model, NULL, &options, &info));
    ck_assert_uint_eq(info.weights_bytes + info.kernels_bytes + info.activations_bytes +
                          info.workspaces_bytes,
                      info.total_bytes);
    grt_model_release(model);
}
END_TEST

static uint64_t private_bytes(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "Anonymous: %lu kB", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return (uint64_t)kib << 10;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LOOKS_AT_MEMORY = 0 };
#else
enum { LOOKS_AT_MEMORY = 1 };
#endif

/* Activations of 0.2 to 60 MB. */
START_TEST(process_has_what_was_predicted)
{
    static const int64_t rows[] = {100, 3000, 30000};
    grt_model *model = open_product();
    grt_session *session;
    grt_context *context;
    float *x = malloc((size_t)(rows[_i] * WIDE) * sizeof *x);
    ck_assert_ptr_nonnull(x);
    memset(x, 1, (size_t)(rows[_i] * WIDE) * sizeof *x); /* the caller's is there before */
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows[_i], WIDE}, .data = x};
    const grt_memory_info predicted = predict(model, "cpu", rows[_i]);
    OK(open_limited(model, "cpu", 0, &session));
    OK(grt_context_create(session, &context));
    OK(grt_context_set_input(context, 0, &in));
    OK(grt_context_run(context));
    const double measured = (double)private_bytes(), off = measured - (double)predicted.process_bytes;
    const double most = measured > 100.0 * MB ? measured / 100 : MB;
    if (LOOKS_AT_MEMORY && measured > 0)
        ck_assert_msg(off <= most && -off <= most, "predicted %.0f, measured %.0f",
                      (double)predicted.process_bytes, measured);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    free(x);
}
END_TEST

/* On a device blocks take whole units of its memory, those of each context too. */
START_TEST(device_has_what_was_predicted)
{
    enum { ROWS = 3000, CONTEXTS = 3 };
    const grt_input_shape shape = {.input = "x", .rank = 2, .dims = {ROWS, WIDE}};
    const grt_memory_options options = {.struct_size = sizeof options,
                                        .threads = 1,
                                        .contexts = CONTEXTS,
                                        .fallback = "cpu",
                                        .shapes = &shape,
                                        .n_shapes = 1};
    grt_memory_info predicted = {.struct_size = sizeof predicted};
    grt_model *model = open_product();
    grt_session *session;
    grt_context *contexts[CONTEXTS];
    size_t measured = 0;
    OK(grt_model_predict_memory(model, "mirror:0", &options, &predicted));
    OK(open_limited(model, "mirror:0", predicted.total_bytes, &session));
    for (int i = 0; i < CONTEXTS; i++) {
        OK(grt_context_create(session, &contexts[i]));
        OK(run_rows(contexts[i], ROWS));
    }
    OK(grt_device_in_use(session->device, &measured));
    ck_assert_uint_gt(measured, 3 * MB * CONTEXTS);
    ck_assert_uint_eq(measured, predicted.process_bytes);
    for (int i = 0; i < CONTEXTS; i++)
        grt_context_release(contexts[i]);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

/* LAYERS convolutions, whose weights are packed: 2.25 MiB each. */
static grt_model *open_convolutions(void)
{
    enum { LAYERS = 6 };
    onnx_model m = onnx_create();
    char names[LAYERS + 1][8], weights[LAYERS][8], inputs[160];
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,256,32,32");
    strcpy(names[0], "x");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(weights[i], sizeof weights[i], "w%d", i);
        snprintf(names[i + 1], sizeof names[i + 1], "y%d", i);
        snprintf(inputs, sizeof inputs, "%s,%s", names[i], weights[i]);
        onnx_initializer(&m, m.graph, onnx_tensor(&m, weights[i], "256,256,3,3"));
        onnx_node(&m, m.graph, "Conv", inputs, names[i + 1]);
    }
    onnx_output(&m, m.graph, names[LAYERS]);
    grt_model *model = onnx_open(&m, runtime);
    onnx_release(&m);
    return model;
}

/* The second rehearsal's blocks come out of the heap of glibc, which keeps what is freed there. */
START_TEST(prediction_leaves_nothing)
{
    const grt_memory_options options = {.struct_size = sizeof options, .threads = 1};
    grt_memory_info info = {.struct_size = sizeof info};
    grt_model *model = open_convolutions();
    uint64_t first = 0;
    for (int i = 0; i < 3; i++) {
        OK(grt_model_predict_memory(model, "cpu", &options, &info));
        first = i ? first : private_bytes();
    }
    const uint64_t last = private_bytes();
    ck_assert_uint_ge(info.kernels_bytes, 6 * MB);
    if (LOOKS_AT_MEMORY)
        ck_assert_msg(last <= first + MB / 4, "%.0f bytes after the first, %.0f after the third",
                      (double)first, (double)last);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_memory_limit(void);
Suite *suite_test_memory_limit(void)
{
    Suite *s = suite_create("test_memory_limit");
    TCase *t = tcase_create("test_memory_limit");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, prediction_is_a_limit, 0, N_DEVICES);
    tcase_add_loop_test(t, weights_beyond_the_limit, 0, N_DEVICES);
    tcase_add_loop_test(t, values_of_the_run, 0, N_DEVICES);
    tcase_add_test(t, refused_predictions);
    tcase_add_loop_test(t, process_has_what_was_predicted, 0, 3);
    tcase_add_test(t, device_has_what_was_predicted);
    tcase_add_test(t, prediction_leaves_nothing);
    suite_add_tcase(s, t);
    return s;
}

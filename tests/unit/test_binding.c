/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings that contexts, pools and enqueued runs refuse: overlapping memory, misaligned memory, unknown
 * dims. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { WIDE = 40, ROW = 8 };

static float memory[2 * WIDE * ROW + 1];

/* y0 = Relu(x0), y1 = Relu(x1), ... */
static grt_context *open_rows(int n, const char *device)
{
    onnx_model m = onnx_create();
    for (int i = 0; i < n; i++) {
        char x[16], y[16];
        snprintf(x, sizeof x, "x%d", i);
        snprintf(y, sizeof y, "y%d", i);
        onnx_input(&m, m.graph, x, GRT_DTYPE_FLOAT, "N");
        onnx_node(&m, m.graph, "Relu", x, y);
        onnx_output(&m, m.graph, y);
    }
    grt_model *model = onnx_open(&m, runtime);
    grt_session *session = NULL;
    grt_context *context = NULL;
    ck_assert_int_eq(grt_session_create(model, device, NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    onnx_release(&m);
    grt_session_release(session);
    grt_model_release(model);
    return context;
}

static grt_tensor row(float *data, int64_t n)
{
    return (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {n}, .data = data};
}

static void bind_input(grt_context *context, size_t i, float *data, int64_t n)
{
    const grt_tensor t = row(data, n);
    ck_assert_msg(grt_context_set_input(context, i, &t) == GRT_OK, "%s", grt_last_error());
}

static void bind_output(grt_context *context, size_t i, float *data, int64_t n)
{
    const grt_tensor t = row(data, n);
    ck_assert_msg(grt_context_set_output(context, i, &t) == GRT_OK, "%s", grt_last_error());
}

START_TEST(an_output_over_an_input)
{
    grt_context *context = open_rows(2, devices[_i]);
    bind_input(context, 0, memory, ROW);
    bind_input(context, 1, memory, ROW); /* inputs may share */
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    bind_output(context, 1, memory + ROW - 1, ROW);
    REFUSED(grt_context_run(context), "output 'y1' is bound to memory that overlaps that of input 'x");
    REFUSED(grt_context_run(context), "overlaps"); /* still */
    bind_output(context, 1, memory + ROW, ROW);    /* the next byte */
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    bind_input(context, 0, memory + 2 * ROW - 1, ROW);
    REFUSED(grt_context_run(context), "input 'x0'");
    ck_assert_int_eq(grt_context_set_output(context, 1, NULL), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    grt_context_release(context);
}
END_TEST

START_TEST(an_output_over_another)
{
    grt_context *context = open_rows(2, devices[_i]);
    bind_input(context, 0, memory, ROW);
    bind_input(context, 1, memory, ROW);
    bind_output(context, 0, memory + 2 * ROW, ROW);
    bind_output(context, 1, memory + 2 * ROW, ROW);
    REFUSED(grt_context_run(context), "overlaps that of output 'y");
    grt_context_release(context);
}
END_TEST

/* An input that spans everything hides behind many that do not. */
START_TEST(many_bindings)
{
    grt_context *context = open_rows(WIDE, "cpu");
    for (int i = 0; i < WIDE; i++) { /* 7 and 2 * WIDE have no common divisor: every row once, out of order */
        bind_input(context, (size_t)i, memory + (14 * i % (2 * WIDE)) * ROW, ROW);
        bind_output(context, (size_t)i, memory + ((14 * i + 7) % (2 * WIDE)) * ROW, ROW);
    }
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    for (int i = 0; i < WIDE; i++) {
        bind_input(context, (size_t)i, memory + ((14 * i + 7) % (2 * WIDE)) * ROW + ROW - 1, ROW);
        REFUSED(grt_context_run(context), "overlaps");
        bind_input(context, (size_t)i, memory + (14 * i % (2 * WIDE)) * ROW, ROW);
    }
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    grt_context_release(context);
}
END_TEST

START_TEST(nothing_overlaps_nothing)
{
    grt_context *context = open_rows(1, devices[_i]);
    bind_input(context, 0, memory, 0);
    bind_output(context, 0, memory, 0);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    grt_context_release(context);
}
END_TEST

START_TEST(misaligned)
{
    grt_context *context = open_rows(1, devices[_i]);
    grt_tensor t = row((float *)((char *)memory + 1), ROW);
    REFUSED(grt_context_set_input(context, 0, &t), "'x0': memory of float32 must be aligned to 4 bytes");
    REFUSED(grt_context_set_output(context, 0, &t), "'y0': memory of float32 must be aligned to 4 bytes");
    t.data = (char *)memory + 2;
    REFUSED(grt_context_set_input(context, 0, &t), "aligned");
    t.dims[0] = 0;
    ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
    grt_context_release(context);
}
END_TEST

START_TEST(negative_dims)
{
    grt_context *context = open_rows(1, "cpu");
    grt_tensor t = row(memory, -1);
    REFUSED(grt_context_set_input(context, 0, &t), "'x0': dim 0 is -1");
    REFUSED(grt_context_set_output(context, 0, &t), "'y0': dim 0 is -1");
    grt_context_release(context);
}
END_TEST

START_TEST(requests_and_enqueued_runs)
{
    onnx_model m = onnx_relu();
    grt_model *model = onnx_open(&m, runtime);
    grt_session *session = NULL;
    grt_pool *pool = NULL;
    grt_context *context = NULL;
    void *pinned = NULL;
    ck_assert_int_eq(grt_session_create(model, devices[_i], NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_pool_create(&session, 1, NULL, &pool), GRT_OK);
    grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 3}, .data = memory}, odd = t;
    odd.data = (char *)memory + 1;
    REFUSED(grt_pool_run(pool, &t, 1, &t, 1), "overlaps that of input 'x'");
    REFUSED(grt_pool_run(pool, &odd, 1, NULL, 0), "aligned");
    if (!strcmp(devices[_i], "mirror:0")) {
        ck_assert_int_eq(grt_session_alloc_host(session, sizeof memory, &pinned), GRT_OK);
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        t.data = pinned;
        t.memory = GRT_MEMORY_PINNED;
        ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
        ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
        REFUSED(grt_context_run_async(context, NULL), "overlaps that of input 'x'");
        t.data = (char *)pinned + 24;
        ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
        ck_assert_int_eq(grt_context_run_async(context, NULL), GRT_OK);
        ck_assert_int_eq(grt_context_run(context), GRT_OK); /* waits for the stream */
    }
    grt_context_release(context);
    grt_pool_release(pool);
    grt_session_free_host(session, pinned);
    grt_session_release(session);
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_binding(void)
{
    Suite *suite = suite_create("binding");
    TCase *tests = tcase_create("binding");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_loop_test(tests, an_output_over_an_input, 0, N_DEVICES);
    tcase_add_loop_test(tests, an_output_over_another, 0, N_DEVICES);
    tcase_add_test(tests, many_bindings);
    tcase_add_loop_test(tests, nothing_overlaps_nothing, 0, N_DEVICES);
    tcase_add_loop_test(tests, misaligned, 0, N_DEVICES);
    tcase_add_test(tests, negative_dims);
    tcase_add_loop_test(tests, requests_and_enqueued_runs, 0, N_DEVICES);
    suite_add_tcase(suite, tests);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are replaced while a session is in use, and the log. */
#include "tests/unit/opened.h"
#include "tests/unit/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float x[2] = {1, 2}, weight[2];
static const grt_tensor x_in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = x},
                        w_in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = weight};

/* y = (x * a) + b, where a [2] = 0, 1 and b [2] = 0, 1 */
static onnx_model scaled(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "a", "2"));
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "b", "2"));
    onnx_node(&m, m.graph, "Mul", "x,a", "p");
    onnx_node(&m, m.graph, "Add", "p,b", "y");
    onnx_output(&m, m.graph, "y");
    return m;
}

static void open_scaled_on(const char *device, const char *keep)
{
    const grt_compile_options options = {.struct_size = sizeof options, .keep_weights = keep};
    onnx_model m = scaled();
    open_on(&m, &options, device, NULL);
    OK(grt_context_set_input(context, 0, &x_in));
}

static void set(const char *name, float a, float b)
{
    weight[0] = a;
    weight[1] = b;
    OK(grt_session_set_weights(session, &name, &w_in, 1));
}

static void expect(grt_context *c, float a, float b)
{
    grt_tensor y;
    OK(grt_context_run(c));
    OK(grt_context_get_output(c, 0, &y));
    ck_assert_float_eq(((float *)y.data)[0], a);
    ck_assert_float_eq(((float *)y.data)[1], b);
}

START_TEST(between_runs)
{
    grt_context *other;
    open_scaled_on(devices[_i], "a,b");
    OK(grt_context_create(session, &other));
    OK(grt_context_set_input(other, 0, &x_in));
    for (int round = 0; round < 3; round++) {
        for (int run = 0; run < 3; run++) /* on the mirror: captured and replayed */
            expect(context, round ? 10 : 0, round ? 21 : 3);
        set("a", 10, 10);
        expect(context, 10, 21);
        expect(other, 10, 21);
    }
    set("b", 5, 6);
    expect(other, 15, 26);
    const char *both[] = {"a", "b"};
    const grt_tensor two[] = {w_in, w_in};
    weight[0] = weight[1] = 1;
    OK(grt_session_set_weights(session, both, two, 2));
    expect(context, 2, 3);
    const grt_tensor mine = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = x};
    OK(grt_context_set_input(other, 2, &mine)); /* what is bound stays */
    set("b", 100, 100);
    expect(other, 2, 4);
    expect(context, 101, 102);
    grt_context_release(other);
    close_all();
}
END_TEST

START_TEST(all_or_none)
{
    open_scaled_on(devices[_i], "a");
    const char *names[] = {"a", "b"};
    grt_tensor two[] = {w_in, w_in};
    weight[0] = weight[1] = 7;
    REFUSED(grt_session_set_weights(session, names, two, 2),
            "'b' is no weight that can be replaced: weights are folded");
    expect(context, 0, 3);
    names[1] = "x";
    REFUSED(grt_session_set_weights(session, names, two, 2), "'x' is an input without default");
    names[1] = "a";
    two[1].dims[0] = 3;
    REFUSED(grt_session_set_weights(session, names, two, 2), "'a' must be float32[2], found float32[3]");
    expect(context, 0, 3);
    REFUSED(grt_session_set_weights(NULL, names, two, 1), "NULL");
    close_all();
}
END_TEST

START_TEST(unknown_name)
{
    const grt_compile_options options = {.struct_size = sizeof options, .keep_weights = "a,c"};
    char path[] = "/tmp/graphrt-weights-XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    onnx_model m = scaled();
    onnx_write(&m, path);
    onnx_release(&m);
    grt_model *model;
    REFUSED(grt_model_open_with(runtime, path, &options, &model), "no initializer 'c'");
    remove(path);
}
END_TEST

static atomic_bool over;

/* a and b are always set together, to k and k: y0 = k + k, and never something else. */
static void *run_on(void *user)
{
    grt_context *c;
    (void)user;
    OK(grt_context_create(session, &c));
    OK(grt_context_set_input(c, 0, &x_in));
    while (!atomic_load(&over)) {
        grt_tensor y;
        OK(grt_context_run(c));
        OK(grt_context_get_output(c, 0, &y));
        const float *v = y.data;
        ck_assert_float_eq(v[1] * 2, v[0] * 3);
    }
    grt_context_release(c);
    return NULL;
}

START_TEST(while_others_run)
{
    enum { THREADS = 3, CHANGES = 300 };
    pthread_t threads[THREADS];
    open_scaled_on(devices[_i], "*");
    const char *both[] = {"a", "b"};
    const grt_tensor two[] = {w_in, w_in};
    weight[0] = weight[1] = 1;
    OK(grt_session_set_weights(session, both, two, 2));
    atomic_store(&over, false);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_on, NULL), 0);
    for (int k = 1; k <= CHANGES; k++) {
        weight[0] = weight[1] = (float)k;
        OK(grt_session_set_weights(session, both, two, 2));
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect(context, 2 * CHANGES, 3 * CHANGES);
    close_all();
}
END_TEST

static struct {
    int messages[GRT_LOG_DEBUG + 1];
    char last[512];
} heard;

static void hear(void *user, const grt_log_message *message)
{
    ck_assert_ptr_eq(user, &heard);
    heard.messages[message->level]++;
    snprintf(heard.last, sizeof heard.last, "%s: %s", message->category, message->text);
}

START_TEST(is_told)
{
    memset(&heard, 0, sizeof heard);
    grt_log_set(GRT_LOG_DEBUG, hear, &heard);
    open_scaled_on("cpu", NULL);
    ck_assert_int_eq(heard.messages[GRT_LOG_INFO], 2); /* a model and a session */
    ck_assert_msg(strstr(heard.last, "load: session on cpu:0 with"), "%s", heard.last);
    expect(context, 0, 3);
    ck_assert_int_eq(heard.messages[GRT_LOG_DEBUG], 1);
    expect(context, 0, 3); /* prepared: nothing to tell */
    ck_assert_int_eq(heard.messages[GRT_LOG_DEBUG], 1);
    OK(grt_context_set_input(context, 0, NULL));
    ck_assert_int_eq(grt_context_run(context), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_str_eq(heard.last, "run: input 'x' is not set");
    grt_log_set(GRT_LOG_OFF, NULL, NULL);
    ck_assert_int_eq(grt_context_run(context), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(heard.messages[GRT_LOG_ERROR], 1);
    close_all();
}
END_TEST

Suite *suite_test_weights_api(void);
Suite *suite_test_weights_api(void)
{
    Suite *s = suite_create("test_weights_api");
    TCase *t = tcase_create("test_weights_api");
    tcase_add_checked_fixture(t, runtime_open, runtime_close);
    tcase_add_loop_test(t, between_runs, 0, N_DEVICES);
    tcase_add_loop_test(t, all_or_none, 0, N_DEVICES);
    tcase_add_test(t, unknown_name);
    tcase_add_loop_test(t, while_others_run, 0, N_DEVICES);
    tcase_add_test(t, is_told);
    suite_add_tcase(s, t);
    return s;
}

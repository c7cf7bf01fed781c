/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions as they are misused: NULLs, sizes of structs, wrong tensors, one context in two
 * threads, forks, and that nothing of the program's own settings is changed. */
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/op_runner.h"

#include <check.h>
#include <locale.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static grt_runtime *runtime;
static grt_model *model;
static grt_session *session;
static grt_context *context;
static float numbers[64 * 64];
static grt_tensor input = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 64}, .data = numbers};

/* x [N,64] -> MatMul -> Relu -> y */
static onnx_model create_product(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,64");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "64,64"));
    onnx_node(&m, m.graph, "MatMul", "x,w", "h");
    onnx_node(&m, m.graph, "Relu", "h", "y");
    onnx_output(&m, m.graph, "y");
    return m;
}

static grt_model *open_product(void)
{
    onnx_model m = create_product();
    grt_model *opened = onnx_open(&m, runtime);
    onnx_release(&m);
    return opened;
}

static void setup(void)
{
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    model = open_product();
    const grt_session_options options = {.struct_size = sizeof options, .threads = 2};
    ck_assert_int_eq(grt_session_create(model, "cpu", &options, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)(i % 7);
}

static void teardown(void)
{
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
}

#define REFUSED(call) ck_assert_int_eq(call, GRT_STATUS_INVALID_ARGUMENT)

static void run_ok(grt_context *c)
{
    ck_assert_msg(grt_context_set_input(c, 0, &input) == GRT_OK && grt_context_run(c) == GRT_OK, "%s",
                  grt_last_error());
}

START_TEST(test_null_objects)
{
    const grt_phase *phases;
    const grt_step_time *times;
    grt_io_info io = {.struct_size = sizeof io};
    grt_tensor t;
    ck_assert_uint_eq(grt_model_input_count(NULL), 0);
    ck_assert_uint_eq(grt_model_output_count(NULL), 0);
    ck_assert_uint_eq(grt_model_phases(NULL, &phases), 0);
    ck_assert_uint_eq(grt_session_phases(NULL, &phases), 0);
    ck_assert_int_eq(grt_session_threads(NULL), 0);
    grt_context_set_timing(NULL, true);
    ck_assert(!grt_context_time_device(NULL, true));
    ck_assert_uint_eq(grt_context_step_times(NULL, &times), 0);
    ck_assert_int_eq(grt_value_kind(NULL), GRT_KIND_TENSOR);
    ck_assert_uint_eq(grt_value_count(NULL), 0);
    ck_assert_ptr_null(grt_value_item(NULL, 0));
    ck_assert_int_eq(grt_tensor_elements(NULL), -1);
    ck_assert_uint_eq(grt_tensor_bytes(NULL), SIZE_MAX);
    REFUSED(grt_model_input(NULL, 0, &io));
    REFUSED(grt_context_run(NULL));
    REFUSED(grt_context_get_output(NULL, 0, &t));
}
END_TEST

START_TEST(test_null_out_parameters)
{
    run_ok(context);
    REFUSED(grt_context_get_output(context, 0, NULL));
    REFUSED(grt_context_get_output_value(context, 0, NULL));
    REFUSED(grt_context_create(session, NULL));
    REFUSED(grt_context_get_stats(context, NULL));
    REFUSED(grt_model_get_info(model, NULL));
    ck_assert_uint_gt(grt_pass_names(NULL), 0);
    ck_assert_uint_gt(grt_model_phases(model, NULL), 0);
    ck_assert_uint_gt(grt_session_phases(session, NULL), 0);
    ck_assert_uint_eq(grt_context_step_times(context, NULL), 0);
}
END_TEST

START_TEST(test_struct_sizes)
{
    grt_session *other;
    grt_session_options options = {.threads = 1};
    REFUSED(grt_session_create(model, "cpu", &options, &other));
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "sizeof(grt_session_options)"));
    /* A program with an older header, whose struct ended with threads; one with a newer header. */
    options.struct_size = offsetof(grt_session_options, fallback);
    options.fallback = "not looked at";
    ck_assert_int_eq(grt_session_create(model, "cpu", &options, &other), GRT_OK);
    ck_assert_int_eq(grt_session_threads(other), 1);
    grt_session_release(other);
    struct {
        grt_session_options known;
        size_t unknown;
    } newer = {{.struct_size = sizeof newer}, 7};
    ck_assert_int_eq(grt_session_create(model, "cpu", &newer.known, &other), GRT_STATUS_UNSUPPORTED);
    newer.unknown = 0;
    ck_assert_int_eq(grt_session_create(model, "cpu", &newer.known, &other), GRT_OK);
    grt_session_release(other);

    grt_model_info info = {.opset = 77};
    REFUSED(grt_model_get_info(model, &info));
    info.struct_size = offsetof(grt_model_info, opset);
    ck_assert_int_eq(grt_model_get_info(model, &info), GRT_OK);
    ck_assert_int_eq(info.nodes, 2);
    ck_assert_int_eq(info.opset, 77);
    ck_assert_uint_eq(info.struct_size, offsetof(grt_model_info, opset));
    grt_compile_options compile = {0};
    REFUSED(grt_compile("no.onnx", &compile, "no.grt"));
    const grt_tune_options tune = {.seconds = 1};
    grt_tune_report report = {.struct_size = sizeof report};
    REFUSED(grt_context_tune(context, &tune, &report));
}
END_TEST

START_TEST(test_threads_of_a_session)
{
    static const int32_t wrong[] = {-1, 1025, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        grt_session *other;
        const grt_session_options options = {.struct_size = sizeof options, .threads = wrong[i]};
        REFUSED(grt_session_create(model, "cpu", &options, &other));
    }
}
END_TEST

/* A model that is compiled while it is opened, for the kind of device that it is to run on. */
START_TEST(test_open_with)
{
    grt_model *other = NULL;
    grt_model_info info = {.struct_size = sizeof info};
    char path[FILES_NAME];
    onnx_model m = create_product();
    files_fresh(path);
    onnx_write(&m, path);
    onnx_release(&m);
    grt_compile_options options = {.struct_size = sizeof options, .target = "mirror"};
    ck_assert_msg(grt_model_open_with(runtime, path, &options, &other) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_model_get_info(other, &info), GRT_OK);
    ck_assert_str_eq(info.target, "mirror");
    grt_model_release(other);
    ck_assert_int_eq(grt_model_open_with(runtime, path, NULL, &other), GRT_OK);
    ck_assert_int_eq(grt_model_get_info(other, &info), GRT_OK);
    ck_assert_str_eq(info.target, "cpu");
    grt_model_release(other);
    options.target = "nothing";
    ck_assert_int_eq(grt_model_open_with(runtime, path, &options, &other), GRT_STATUS_DEVICE);
    options.target = NULL;
    options.external_weights = true;
    REFUSED(grt_model_open_with(runtime, path, &options, &other));
    options.external_weights = false;
    options.choices = "algos.db";
    REFUSED(grt_model_open_with(runtime, path, &options, &other));
    unlink(path);
}
END_TEST

START_TEST(test_wrong_tensors)
{
    grt_tensor t = input;
    t.memory = (grt_memory)9;
    REFUSED(grt_context_set_input(context, 0, &t));
    t = input;
    t.dims[0] = INT64_MAX;
    REFUSED(grt_context_set_input(context, 0, &t));
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "overflows"));
    t.rank = 1 << 30;
    REFUSED(grt_context_set_input(context, 0, &t));
    ck_assert_int_eq(grt_tensor_elements(&t), -1);
    REFUSED(grt_model_open_memory(runtime, numbers, SIZE_MAX, &model));

    grt_value *value, *sequence, *optional;
    t = input;
    t.dtype = GRT_DTYPE_NONE;
    REFUSED(grt_value_from_tensor(&t, &value));
    t = input;
    t.memory = GRT_MEMORY_DEVICE;
    REFUSED(grt_value_from_tensor(&t, &value));
    ck_assert_int_eq(grt_value_from_tensor(&input, &value), GRT_OK);
    REFUSED(grt_value_sequence((grt_dtype)999, NULL, 0, &sequence));
    REFUSED(grt_value_optional(GRT_DTYPE_INT64, value, &optional));
    ck_assert_int_eq(grt_value_optional(GRT_DTYPE_FLOAT, value, &optional), GRT_OK);
    REFUSED(grt_value_sequence(GRT_DTYPE_FLOAT, &optional, 1, &sequence));
    grt_value_release(optional);
    grt_value_release(value);
}
END_TEST

/* What get_output gives is what the last run wrote, whatever has been bound since. */
START_TEST(test_output_bound_after_a_run)
{
    float mine[2 * 64], other[2 * 64];
    grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 64}, .data = mine}, found;
    run_ok(context);
    ck_assert_int_eq(grt_context_get_output(context, 0, &found), GRT_OK);
    const void *own = found.data;
    ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &found), GRT_OK);
    ck_assert_ptr_eq(found.data, own);
    run_ok(context);
    t.data = other;
    ck_assert_int_eq(grt_context_set_output(context, 0, &t), GRT_OK);
    ck_assert_int_eq(grt_context_set_output(context, 0, NULL), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &found), GRT_OK);
    ck_assert_ptr_eq(found.data, mine);
    run_ok(context);
    ck_assert_int_eq(grt_context_get_output(context, 0, &found), GRT_OK);
    ck_assert_ptr_ne(found.data, mine);
    ck_assert_ptr_ne(found.data, other);
    ck_assert_mem_eq(found.data, mine, sizeof mine);
}
END_TEST

typedef struct shared {
    grt_context *context;
    int ran, refused, wrong;
} shared;

static void *run_shared(void *arg)
{
    shared *s = arg;
    for (int i = 0; i < 200; i++) {
        grt_status status = grt_context_run(s->context);
        s->ran += status == GRT_OK;
        s->refused +=
            status == GRT_STATUS_INVALID_ARGUMENT && strstr(grt_last_error(), "another thread") != NULL;
        s->wrong += status != GRT_OK && status != GRT_STATUS_INVALID_ARGUMENT;
    }
    return NULL;
}

START_TEST(test_two_threads_in_one_context)
{
    shared s[2] = {{.context = context}, {.context = context}};
    pthread_t threads[2];
    run_ok(context);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_shared, &s[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(s[i].wrong, 0);
        ck_assert_int_eq(s[i].ran + s[i].refused, 200);
    }
    run_ok(context);
}
END_TEST

/* Programs that load once and fork workers. The product is large enough for a team. */
START_TEST(test_fork_after_a_run)
{
#if defined(__SANITIZE_THREAD__)
    return; /* it does not follow forks of programs with threads */
#endif
    input.dims[0] = 64;
    run_ok(context);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        grt_session *other = NULL;
        grt_context *fresh = NULL;
        bool ok = grt_context_run(context) == GRT_OK &&
                  grt_session_create(model, "cpu", NULL, &other) == GRT_OK &&
                  grt_context_create(other, &fresh) == GRT_OK &&
                  grt_context_set_input(fresh, 0, &input) == GRT_OK && grt_context_run(fresh) == GRT_OK;
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    run_ok(context);
    input.dims[0] = 2;
}
END_TEST

START_TEST(test_openmp_settings_stay)
{
#ifdef _OPENMP
    omp_set_num_threads(5);
    run_ok(context);
    ck_assert_int_eq(omp_get_max_threads(), 5);
    REFUSED(grt_context_set_input(context, 0, &(grt_tensor){.rank = 3}));
    ck_assert_int_eq(grt_context_set_input(context, 0, NULL), GRT_OK);
    REFUSED(grt_context_run(context));
    ck_assert_int_eq(omp_get_max_threads(), 5);
#endif
}
END_TEST

/* In a program whose locale has a decimal comma. */
START_TEST(test_locale)
{
    char directory[FILES_NAME], command[256];
    files_directory(directory);
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             directory);
    const int made = system(command);
    setenv("LOCPATH", directory, 1);
    const bool comma = made == 0 && setlocale(LC_ALL, "de_DE.UTF-8") && localeconv()->decimal_point[0] == ',';
    if (comma) { /* else this machine has no such locale */
        op_runner r;
        op_begin(&r, "", "Cast");
        op_int(&r, "to", GRT_DTYPE_STRING);
        op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){1}, (const float[]){0.25f});
        op_run_ok(&r, 1);
        const grt_string *text = r.out[0].t.data;
        ck_assert_uint_eq(text->size, 4);
        ck_assert_mem_eq(text->data, "0.25", 4);
        op_end(&r);
        op_begin(&r, "", "Cast");
        op_int(&r, "to", GRT_DTYPE_DOUBLE);
        op_add(&r, GRT_DTYPE_STRING, 1, (const int64_t[]){1}, &(grt_string){"-1.5e1", 6});
        op_run_ok(&r, 1);
        ck_assert(*(const double *)r.out[0].t.data == -15);
        op_end(&r);
        ck_assert_str_eq(localeconv()->decimal_point, ",");
    }
    files_remove(directory);
}
END_TEST

Suite *suite_test_api(void);
Suite *suite_test_api(void)
{
    Suite *suite = suite_create("api");
    TCase *tc = tcase_create("misuse");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_null_objects);
    tcase_add_test(tc, test_open_with);
    tcase_add_test(tc, test_null_out_parameters);
    tcase_add_test(tc, test_struct_sizes);
    tcase_add_test(tc, test_threads_of_a_session);
    tcase_add_test(tc, test_wrong_tensors);
    tcase_add_test(tc, test_output_bound_after_a_run);
    tcase_add_test(tc, test_two_threads_in_one_context);
    tcase_add_test(tc, test_fork_after_a_run);
    tcase_add_test(tc, test_openmp_settings_stay);
    tcase_add_test(tc, test_locale);
    suite_add_tcase(suite, tc);
    return suite;
}

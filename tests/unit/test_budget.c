/* SPDX-License-Identifier: Apache-2.0 */
/* The bound that the header states for grt_compile, on small models made to exceed it. Also cancellation. */
#include "tests/unit/bounded.h"
#include "tests/unit/files.h"
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *name_of(char prefix, int i)
{
    static char names[4][16];
    static int at;
    at = (at + 1) % 4;
    snprintf(names[at], sizeof names[at], "%c%d", prefix, i);
    return names[at];
}

static Onnx__NodeProto *add_node(onnx_model *m, const char *op, const char *a, const char *b, const char *out)
{
    char inputs[64];
    snprintf(inputs, sizeof inputs, b ? "%s,%s" : "%s", a, b);
    return onnx_node(m, m->graph, op, inputs, out);
}

static void add_ints(onnx_model *m, const char *name, int64_t n, const int64_t *values)
{
    char dims[24];
    snprintf(dims, sizeof dims, "%lld", (long long)n);
    onnx_initializer(m, m->graph,
                     onnx_raw(m, name, GRT_DTYPE_INT64, dims, values, (size_t)n * sizeof *values));
}

static void add_list(onnx_model *m, Onnx__NodeProto *node, const char *name, size_t n, int64_t value)
{
    Onnx__AttributeProto *attr = onnx_attr(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    attr->ints = grt_arena_alloc(m->arena, n * sizeof *attr->ints);
    attr->n_ints = n;
    for (size_t i = 0; i < n; i++)
        attr->ints[i] = value;
}

static void add_floats(onnx_model *m, const char *name, const char *dims, size_t n, float value)
{
    float *values = malloc(n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++)
        values[i] = value;
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_FLOAT, dims, values, n * sizeof *values));
    free(values);
}

/* n constants of `elements` each, of one value: all of them used. */
static void add_filled(onnx_model *m, int n, int64_t elements, grt_dtype dtype)
{
    add_ints(m, "shape", 1, &elements);
    onnx_input(m, m->graph, "x", dtype, "1");
    for (int i = 0; i < n; i++) {
        const int64_t number = i;
        const float real = (float)i;
        Onnx__NodeProto *fill = onnx_node(m, m->graph, "ConstantOfShape", "shape", name_of('c', i));
        onnx_attr(m, fill, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
            dtype == GRT_DTYPE_FLOAT ? onnx_raw(m, "", dtype, "1", &real, sizeof real)
                                     : onnx_raw(m, "", dtype, "1", &number, sizeof number);
        add_node(m, "Add", "x", name_of('c', i), name_of('d', i));
        onnx_output(m, m->graph, name_of('d', i));
    }
}

static void fill_large(onnx_model *m)
{
    add_filled(m, 2000, 262144, GRT_DTYPE_FLOAT);
}

/* Contents of integers are known as dims too. */
static void fill_dims(onnx_model *m)
{
    add_filled(m, 5000, 1024, GRT_DTYPE_INT64);
}

/* One weight that each product has in another form. */
static void scale_one_weight(onnx_model *m)
{
    add_floats(m, "w", "512,512", 512 * 512, 1);
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "n,512");
    for (int i = 0; i < 300; i++) {
        add_floats(m, name_of('s', i), "1", 1, (float)i);
        add_node(m, "Mul", "w", name_of('s', i), name_of('t', i));
        add_node(m, "MatMul", "x", name_of('t', i), name_of('y', i));
        onnx_output(m, m->graph, name_of('y', i));
    }
}

/* A chain of scales that go into one weight, one after the other. */
static void scale_again(onnx_model *m)
{
    add_floats(m, "w", "256,256,3,3", 256 * 256 * 9, 1);
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "n,256,h,w");
    add_node(m, "Conv", "x", "w", "y0");
    for (int i = 0; i < 200; i++) {
        add_floats(m, name_of('s', i), "1,256,1,1", 256, 1 + (float)i);
        add_node(m, "Mul", name_of('y', i), name_of('s', i), name_of('y', i + 1));
    }
    onnx_output(m, m->graph, "y200");
}

/* Convolutions' input, scaled again and again, beside one of large weights: each is a part of these weights.
 * What is subtracted from turns the sign of all of them. */
static void join_scaled(onnx_model *m, const char *sum, bool before)
{
    enum { N = 4000, CHANNELS = 512 };
    add_floats(m, "w", "512,512,3,3", (size_t)CHANNELS * CHANNELS * 9, 1);
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "1,512,8,8");
    add_list(m, add_node(m, "Conv", "x", "w", "y0"), "pads", 4, 1);
    for (int i = 0; i < N; i++) {
        add_floats(m, name_of('s', i), "512,1,1", CHANNELS, (float)i);
        add_node(m, "Mul", "x", name_of('s', i), name_of('t', i));
        add_node(m, sum, name_of(before ? 't' : 'y', i), name_of(before ? 'y' : 't', i), name_of('y', i + 1));
    }
    onnx_output(m, m->graph, "y4000");
}

static void join_added(onnx_model *m)
{
    join_scaled(m, "Add", false);
}

static void join_subtracted(onnx_model *m)
{
    join_scaled(m, "Sub", true);
}

/* A bias of one number for a million columns. */
static void widen_bias(onnx_model *m)
{
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "n,2");
    onnx_input(m, m->graph, "b", GRT_DTYPE_FLOAT, "2,1048576");
    for (int i = 0; i < 200; i++) {
        char inputs[32];
        add_floats(m, name_of('c', i), "1", 1, (float)i);
        snprintf(inputs, sizeof inputs, "x,b,c%d", i);
        onnx_node(m, m->graph, "Gemm", inputs, name_of('y', i));
        onnx_output(m, m->graph, name_of('y', i));
    }
}

/* Columns of one, which kernels would have padded to sixteen. */
static void pad_columns(onnx_model *m)
{
    add_floats(m, "w", "4000000,1", 4000000, 1);
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "n,4000000");
    add_node(m, "MatMul", "x", "w", "y");
    onnx_output(m, m->graph, "y");
}

static void add_sparse(onnx_model *m)
{
    const float value = 1;
    const int64_t index = 0;
    Onnx__SparseTensorProto *sparse = grt_arena_alloc(m->arena, sizeof *sparse);
    int64_t *dims = grt_arena_alloc(m->arena, sizeof *dims);
    Onnx__SparseTensorProto **list = grt_arena_alloc(m->arena, sizeof *list);
    onnx__sparse_tensor_proto__init(sparse);
    sparse->values = onnx_raw(m, "w", GRT_DTYPE_FLOAT, "1", &value, sizeof value);
    sparse->indices = onnx_raw(m, "", GRT_DTYPE_INT64, "1", &index, sizeof index);
    *dims = (int64_t)1 << 25;
    sparse->dims = dims;
    sparse->n_dims = 1;
    *list = sparse;
    m->graph->sparse_initializer = list;
    m->graph->n_sparse_initializer = 1;
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "1");
    add_node(m, "Add", "x", "w", "y");
    onnx_output(m, m->graph, "y");
}

static void multiply_labels(onnx_model *m)
{
    add_floats(m, "a", "16,16,16", 4096, 1);
    add_floats(m, "b", "16,16,16", 4096, 1);
    Onnx__NodeProto *node = onnx_node(m, m->graph, "Einsum", "a,b,a,b", "y");
    Onnx__AttributeProto *equation =
        onnx_attr(m, node, "equation", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    static char text[] = "abc,def,gha,idg->bceh";
    equation->has_s = 1;
    equation->s = (ProtobufCBinaryData){sizeof text - 1, (uint8_t *)text};
    onnx_output(m, m->graph, "y");
}

static void convolve_constants(onnx_model *m)
{
    add_floats(m, "x", "1,1,700,700", 490000, 1);
    add_floats(m, "w", "1,1,350,350", 122500, 1);
    add_node(m, "Conv", "x", "w", "y");
    onnx_output(m, m->graph, "y");
}

static void pool_constants(onnx_model *m)
{
    add_floats(m, "x", "1,1,400,400", 160000, 1);
    Onnx__NodeProto *node = onnx_node(m, m->graph, "MaxPool", "x", "y");
    add_list(m, node, "kernel_shape", 2, 399);
    add_list(m, node, "pads", 4, 398);
    onnx_output(m, m->graph, "y");
}

/* Functions that call each other twice. */
static void double_functions(onnx_model *m)
{
    enum { DEPTH = 17 };
    onnx_opset(m, "my", 1);
    onnx_function_node(m, onnx_function(m, "my", "f0", "a", "b"), "", "Relu", "a", "b");
    for (int i = 1; i <= DEPTH; i++) {
        Onnx__FunctionProto *f = onnx_function(m, "my", name_of('f', i), "a", "c");
        onnx_function_node(m, f, "my", name_of('f', i - 1), "a", "b");
        onnx_function_node(m, f, "my", name_of('f', i - 1), "b", "c");
    }
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(m, m->graph, name_of('f', DEPTH), "x", "y")->domain = (char *)(uintptr_t) "my";
    onnx_output(m, m->graph, "y");
}

static const struct {
    const char *name;
    void (*add)(onnx_model *m);
    bool refused; /* else it compiles */
} cases[] = {
    {"constants that are filled", fill_large, false},
    {"constants that are dims", fill_dims, false},
    {"one weight scaled often", scale_one_weight, false},
    {"a weight scaled again and again", scale_again, false},
    {"one input scaled often, added to a convolution", join_added, false},
    {"a convolution subtracted from it", join_subtracted, false},
    {"a bias that is widened", widen_bias, false},
    {"narrow columns", pad_columns, false},
    {"a sparse tensor", add_sparse, true},
    {"a sum over many labels", multiply_labels, false},
    {"a convolution of constants", convolve_constants, false},
    {"a pool of constants", pool_constants, false},
    {"functions that double", double_functions, true},
};

typedef struct job {
    char source[FILES_NAME], plan[FILES_NAME];
} job;

static int compile(void *user)
{
    const job *j = user;
    return (int)grt_compile(j->source, NULL, j->plan);
}

static size_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

START_TEST(compiling_is_bounded_by_the_models_size)
{
    job j;
    files_fresh(j.source);
    files_fresh(j.plan);
    unlink(j.plan);
    onnx_model m = onnx_create();
    cases[_i].add(&m);
    const size_t nodes = m.graph->n_node;
    onnx_write(&m, j.source);
    onnx_release(&m);
    const double size = (double)file_size(j.source);
    const bounded_use use = bounded_run(compile, &j, 60, 0);
    const char *name = cases[_i].name;
    ck_assert_msg(use.signal == 0, "%s: signal %d", name, use.signal);
    ck_assert_msg((use.status != GRT_OK) == cases[_i].refused, "%s: status %d", name, use.status);
    const double memory = 64 * 0x1p20 + 8 * size + 2048 * (double)nodes, time = 5 + size / 1e6;
    if (bounded_measures()) {
        ck_assert_msg((double)use.peak_bytes <= memory, "%s: %zu bytes for %.0f bytes of model, allowed %.0f",
                      name, use.peak_bytes, size, memory);
        ck_assert_msg(use.cpu_seconds <= time, "%s: %.1f s, allowed %.1f", name, use.cpu_seconds, time);
    }
    unlink(j.source);
    unlink(j.plan);
}
END_TEST

/* What is over the budget is computed when the model runs, with the same result. */
START_TEST(what_is_not_folded_still_runs)
{
    onnx_model m = onnx_create();
    grt_runtime *runtime;
    grt_session *session;
    grt_context *context;
    grt_tensor out;
    enum { N = 40 };
    float one = 1;
    add_filled(&m, N, 262144, GRT_DTYPE_FLOAT);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_model *model = onnx_open_plan(&m, runtime, NULL);
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    grt_tensor x = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {1}, .data = &one};
    ck_assert_int_eq(grt_context_set_input(context, 0, &x), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(grt_context_get_output(context, (size_t)i, &out), GRT_OK);
        ck_assert_int_eq(grt_tensor_elements(&out), 262144);
        ck_assert_float_eq(((const float *)out.data)[262143], 1 + (float)i);
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

typedef struct patience {
    int left, asked;
} patience;

static bool is_over(void *user)
{
    patience *p = user;
    p->asked++;
    return p->left-- <= 0;
}

static int count_files(const char *directory)
{
    DIR *d = opendir(directory);
    int n = 0;
    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

/* Cancelled at any time: no temporary files, and an existing plan stays. */
START_TEST(compiling_can_be_cancelled)
{
    char directory[FILES_NAME], source[FILES_NAME], plan[FILES_NAME + 16];
    const bool external = _i;
    onnx_model m = onnx_create();
    scale_one_weight(&m);
    files_fresh(source);
    files_directory(directory);
    snprintf(plan, sizeof plan, "%s/m.grt", directory);
    onnx_write(&m, source);
    onnx_release(&m);
    patience p = {.left = INT32_MAX};
    grt_compile_options options = {
        .struct_size = sizeof options, .cancel = is_over, .user = &p, .external_weights = external};
    ck_assert_msg(grt_compile(source, &options, plan) == GRT_OK, "%s", grt_last_error());
    const int all = p.asked;
    const size_t size = file_size(plan);
    ck_assert_int_eq(count_files(directory), external ? 2 : 1);
    ck_assert_int_gt(all, 600); /* between nodes that are folded, at the least */
    for (int left = 0; left < all; left += left < 8 || left > all - 8 ? 1 : all / 16) {
        p = (patience){.left = left};
        ck_assert_int_eq(grt_compile(source, &options, plan), GRT_STATUS_CANCELLED);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "cancelled"));
        ck_assert_int_eq(count_files(directory), external ? 2 : 1);
        ck_assert_uint_eq(file_size(plan), size);
    }
    unlink(source);
    files_remove(directory);
}
END_TEST

/* An older program's struct ends before the field. */
START_TEST(a_shorter_struct_cancels_nothing)
{
    char source[FILES_NAME], plan[FILES_NAME];
    patience p = {0};
    onnx_model m = onnx_relu();
    files_fresh(source);
    files_fresh(plan);
    onnx_write(&m, source);
    grt_compile_options options = {
        .struct_size = offsetof(grt_compile_options, cancel), .cancel = is_over, .user = &p};
    ck_assert_msg(grt_compile(source, &options, plan) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(p.asked, 0);
    unlink(source);
    unlink(plan);
    onnx_release(&m);
}
END_TEST

/* Cancelling is asked for between nodes: nothing was compiled if nobody asked. */
START_TEST(the_plans_place_is_looked_at_first)
{
    char directory[FILES_NAME], source[FILES_NAME], plan[FILES_NAME + 32];
    onnx_model m = onnx_create();
    scale_one_weight(&m);
    files_fresh(source);
    files_directory(directory);
    snprintf(plan, sizeof plan, "%s/nothing/m.grt", directory);
    onnx_write(&m, source);
    onnx_release(&m);
    patience p = {.left = INT32_MAX};
    const grt_compile_options options = {.struct_size = sizeof options, .cancel = is_over, .user = &p};
    ck_assert_int_eq(grt_compile(source, &options, plan), GRT_STATUS_IO);
    ck_assert_msg(strstr(grt_last_error(), plan) != NULL, "%s", grt_last_error());
    ck_assert_int_eq(p.asked, 0);
    snprintf(plan, sizeof plan, "%s/m.grt", directory);
    p.left = 0;
    ck_assert_int_eq(grt_compile(source, &options, plan), GRT_STATUS_CANCELLED);
    ck_assert_int_eq(count_files(directory), 0); /* looking left nothing */
    unlink(source);
    files_remove(directory);
}
END_TEST

Suite *suite_test_budget(void);
Suite *suite_test_budget(void)
{
    Suite *suite = suite_create("budget");
    TCase *tests = tcase_create("budget");
    tcase_add_loop_test(tests, compiling_is_bounded_by_the_models_size, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, what_is_not_folded_still_runs);
    tcase_add_loop_test(tests, compiling_can_be_cancelled, 0, 2);
    tcase_add_test(tests, a_shorter_struct_cancels_nothing);
    tcase_add_test(tests, the_plans_place_is_looked_at_first);
    suite_add_tcase(suite, tests);
    return suite;
}

/* Plans with symbolic dims: what depends on dims alone is computed once for a combination of them. */
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <graphrt/graphrt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WIDTH = 16, FILTERS = 32 };

static grt_runtime *runtime;
static char path[64];

static void setup(void)
{
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    snprintf(path, sizeof path, "/tmp/test_dims_only-XXXXXX");
    close(mkstemp(path));
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
}

static void teardown(void)
{
    grt_runtime_release(runtime);
    unlink(path);
}

/* By way of a plan file: constants are packed there, and not in a model that is opened as ONNX. */
static grt_model *open_plan(onnx_model *m)
{
    char onnx[80];
    grt_model *model = NULL;
    grt_string bytes = onnx_bytes(m);
    snprintf(onnx, sizeof onnx, "%s.onnx", path);
    FILE *f = fopen(onnx, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.size, f), bytes.size);
    fclose(f);
    ck_assert_msg(grt_compile(onnx, NULL, path) == GRT_OK, "%s", grt_last_error());
    unlink(onnx);
    onnx_release(m);
    ck_assert_msg(grt_model_open(runtime, path, &model) == GRT_OK, "%s", grt_last_error());
    return model;
}

/* x [N, WIDTH] gives only its shape: a constant row is repeated N times and multiplied by packed weights. */
static onnx_model rows_of_constants(void)
{
    float row[WIDTH], weights[WIDTH * FILTERS];
    for (int i = 0; i < WIDTH; i++)
        row[i] = (float)(i % 3);
    for (int i = 0; i < WIDTH * FILTERS; i++)
        weights[i] = (float)(i % 7);
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N,16");
    onnx_initializer(&m, m.graph, onnx_raw(&m, "row", GRT_DTYPE_FLOAT, "1,16", row, sizeof row));
    onnx_initializer(&m, m.graph, onnx_raw(&m, "w", GRT_DTYPE_FLOAT, "16,32", weights, sizeof weights));
    onnx_node(&m, m.graph, "Shape", "x", "shape");
    onnx_node(&m, m.graph, "Expand", "row,shape", "rows");
    onnx_node(&m, m.graph, "MatMul", "rows,w", "product");
    onnx_node(&m, m.graph, "Sqrt", "product", "y");
    onnx_node(&m, m.graph, "Mul", "y,y", "z");
    onnx_output(&m, m.graph, "z");
    return m;
}

static void assert_rows(const grt_tensor *z, int64_t n)
{
    ck_assert_int_eq(z->rank, 2);
    ck_assert_int_eq(z->dims[0], n);
    ck_assert_int_eq(z->dims[1], FILTERS);
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < FILTERS; c++) {
            float expected = 0;
            for (int64_t k = 0; k < WIDTH; k++)
                expected += (float)(k % 3) * (float)((k * FILTERS + c) % 7);
            ck_assert_float_eq_tol(((const float *)z->data)[r * FILTERS + c], expected, 1e-3F);
        }
}

START_TEST(computed_from_dims_and_packed_constants)
{
    onnx_model m = rows_of_constants();
    grt_model *model = open_plan(&m);
    const char *const devices[] = {"cpu", "mirror:1"};
    for (int d = 0; d < 2; d++) {
        grt_session *session;
        grt_context *context;
        ck_assert_msg(grt_session_create(model, devices[d], NULL, &session) == GRT_OK, "%s",
                      grt_last_error());
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        for (int64_t n = 1; n <= 5; n += 2) {
            float x[5 * WIDTH] = {0};
            grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {n, WIDTH}, .data = x}, out;
            ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
            ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
            ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
            assert_rows(&out, n);
        }
        grt_context_release(context);
        grt_session_release(session);
    }
    grt_model_release(model);
}
END_TEST

/* A window of three over symbols of 1, as figures take them, has fewer than no places. */
START_TEST(a_window_longer_than_the_smallest_input)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,1,T");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "1,1,3"));
    onnx_node(&m, m.graph, "Conv", "x,w", "y");
    onnx_output(&m, m.graph, "y");
    grt_model_release(open_plan(&m));
}
END_TEST

/* What a body captures lives in the arena until the step with the body has run, though that step has no such
 * input: y = flag ? -x + 2 sqrt(x) : 2 sqrt(x), with -x made first. */
static onnx_model capturing(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "N");
    onnx_input(&m, m.graph, "flag", GRT_DTYPE_BOOL, "");
    onnx_node(&m, m.graph, "Neg", "x", "captured");
    onnx_node(&m, m.graph, "Sqrt", "x", "root");
    onnx_node(&m, m.graph, "MatMul", "root,x", "product"); /* keeps the others apart */
    onnx_node(&m, m.graph, "Sum", "root,root", "twice");
    Onnx__GraphProto *then_branch = onnx_graph(&m, "then"), *else_branch = onnx_graph(&m, "else");
    onnx_node(&m, then_branch, "Add", "captured,twice", "a");
    onnx_output(&m, then_branch, "a");
    onnx_node(&m, else_branch, "Identity", "twice", "b");
    onnx_output(&m, else_branch, "b");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "flag", "y");
    onnx_attr(&m, node, "then_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = then_branch;
    onnx_attr(&m, node, "else_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = else_branch;
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "product");
    return m;
}

START_TEST(captured_values_keep_their_memory)
{
    onnx_model m = capturing();
    grt_model *model = open_plan(&m);
    grt_session *session;
    grt_context *context;
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (uint8_t flag = 0; flag < 2; flag++) {
        float x[] = {1, 4, 9, 16};
        grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {4}, .data = x}, out;
        grt_tensor condition = {.dtype = GRT_DTYPE_BOOL, .data = &flag};
        ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
        ck_assert_int_eq(grt_context_set_input(context, 1, &condition), GRT_OK);
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
        for (int i = 0; i < 4; i++)
            ck_assert_float_eq_tol(((const float *)out.data)[i], (float)(2 * (i + 1)) - (flag ? x[i] : 0),
                                   1e-5F);
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
}
END_TEST

Suite *suite_test_dims_only(void)
{
    Suite *s = suite_create("dims_only");
    TCase *tc = tcase_create("plans");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, computed_from_dims_and_packed_constants);
    tcase_add_test(tc, a_window_longer_than_the_smallest_input);
    tcase_add_test(tc, captured_values_keep_their_memory);
    suite_add_tcase(s, tc);
    return s;
}

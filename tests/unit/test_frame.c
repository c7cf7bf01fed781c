/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: what is computed once for a combination of dims, because nothing but the dims decides it. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <graphrt/graphrt.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void ints(onnx_model *m, const char *name, const char *dims, int64_t value)
{
    int64_t *data = grt_arena_memdup(m->arena, &value, sizeof value);
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_INT64, dims, data, sizeof value));
}

/* x [b,n] -> n, the numbers below n and its length as a list of one */
static void count_columns(onnx_model *m)
{
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "b,n");
    ints(m, "zero", "", 0);
    ints(m, "one", "", 1);
    ints(m, "first", "1", 0);
    onnx_node(m, m->graph, "Shape", "x", "dims");
    onnx_node(m, m->graph, "Gather", "dims,one", "n");
    onnx_node(m, m->graph, "Unsqueeze", "n,first", "length");
    onnx_node(m, m->graph, "Range", "zero,n,one", "range");
}

/* A plan's session: constants are packed as they are in files. */
static grt_session *session_of(onnx_model *m)
{
    grt_model *model = onnx_open_plan(m, runtime, NULL);
    grt_session *session;
    ck_assert_msg(grt_session_create(model, "cpu", NULL, &session) == GRT_OK, "%s", grt_last_error());
    grt_model_release(model);
    onnx_release(m);
    return session;
}

/* Output 0 for an x of b rows and n columns; valid until the context's next run. */
static grt_tensor run(grt_context *context, int64_t b, int64_t n)
{
    float x[64] = {0};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {b, n}, .data = x};
    grt_tensor out;
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    return out;
}

/* The plan knows the Expand's dims, so its shape input is gone by the time that it is computed. */
START_TEST(expands_without_a_shape)
{
    onnx_model m = onnx_create();
    count_columns(&m);
    onnx_node(&m, m.graph, "Unsqueeze", "range,one", "column");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "length,length", "square"), "axis", 0);
    onnx_node(&m, m.graph, "Expand", "column,square", "y");
    onnx_output(&m, m.graph, "y");
    grt_session *session = session_of(&m);
    grt_context *context;
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (int64_t n = 1; n <= 7; n += 3) {
        const grt_tensor y = run(context, 2, n);
        ck_assert_int_eq(y.rank, 2);
        ck_assert_int_eq(y.dims[0], n);
        ck_assert_int_eq(y.dims[1], n);
        for (int64_t i = 0; i < n * n; i++)
            ck_assert_int_eq(((const int64_t *)y.data)[i], i / n);
    }
    grt_context_release(context);
    grt_session_release(session);
}
END_TEST

/* Rows of a constant, as many as there are columns, times a constant that the plan holds in packed form. */
START_TEST(does_not_compute_with_packed_weights)
{
    enum { ROWS = 16, K = 24, WIDTH = 40 };
    onnx_model m = onnx_create();
    count_columns(&m);
    float *table = grt_arena_calloc(m.arena, ROWS * K, sizeof *table);
    float *weights = grt_arena_calloc(m.arena, K * WIDTH, sizeof *weights);
    for (int i = 0; i < ROWS * K; i++)
        table[i] = (float)(i % 7);
    for (int i = 0; i < K * WIDTH; i++)
        weights[i] = (float)(i % 11);
    onnx_initializer(&m, m.graph,
                     onnx_raw(&m, "table", GRT_DTYPE_FLOAT, "16,24", table, ROWS * K * sizeof *table));
    onnx_initializer(&m, m.graph,
                     onnx_raw(&m, "w", GRT_DTYPE_FLOAT, "24,40", weights, K * WIDTH * sizeof *weights));
    onnx_node(&m, m.graph, "Slice", "table,first,length,first", "rows");
    onnx_node(&m, m.graph, "MatMul", "rows,w", "y");
    onnx_output(&m, m.graph, "y");
    grt_session *session = session_of(&m);
    grt_context *context;
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (int64_t n = 3; n <= 13; n += 5) {
        const grt_tensor y = run(context, 1, n);
        ck_assert_int_eq(y.dims[0], n);
        for (int i = 0; i < n * WIDTH; i++) {
            float expected = 0;
            for (int k = 0; k < K; k++)
                expected += (float)((i / WIDTH * K + k) % 7) * (float)((k * WIDTH + i % WIDTH) % 11);
            ck_assert_float_eq(((const float *)y.data)[i], expected);
        }
    }
    grt_context_release(context);
    grt_session_release(session);
}
END_TEST

/* A context of a model of one node, y = op(a, b), both of symbolic dims. */
static grt_context *context_of(const char *op, const char *a, const char *b, const char *attr, int64_t value,
                               grt_session **out_session)
{
    onnx_model m = onnx_create();
    grt_context *context;
    onnx_input(&m, m.graph, "a", GRT_DTYPE_FLOAT, a);
    onnx_input(&m, m.graph, "b", GRT_DTYPE_FLOAT, b);
    Onnx__NodeProto *node = onnx_node(&m, m.graph, op, "a,b", "y");
    if (attr)
        onnx_attr_int(&m, node, attr, value);
    onnx_output(&m, m.graph, "y");
    *out_session = session_of(&m);
    ck_assert_int_eq(grt_context_create(*out_session, &context), GRT_OK);
    return context;
}

static void bind(grt_context *context, size_t index, int64_t d0, int64_t d1)
{
    static float data[4096];
    const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {d0, d1}, .data = data};
    ck_assert_int_eq(grt_context_set_input(context, index, &t), GRT_OK);
}

/* Whether two symbols fit each other shows when they are bound: a run that would read or write beyond its
 * tensors says so instead, and the next one may be right. */
START_TEST(dims_that_do_not_fit_are_refused)
{
    static const struct {
        const char *op, *a, *b, *attr, *message;
        int64_t value, good[4], bad[4];
    } cases[] = {
        {"MatMul", "n,k", "m,p", NULL, "inner dims differ", 0, {4, 3, 3, 5}, {4, 64, 3, 5}},
        {"Concat", "n,2", "m,2", "axis", "input", 1, {3, 2, 3, 2}, {64, 2, 3, 2}},
        {"Add", "n,1", "64,1", NULL, "broadcast", 0, {64, 1, 64, 1}, {3, 1, 64, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grt_session *session;
        grt_context *context =
            context_of(cases[i].op, cases[i].a, cases[i].b, cases[i].attr, cases[i].value, &session);
        for (int round = 0; round < 4; round++) {
            const int64_t *dims = round % 2 ? cases[i].good : cases[i].bad;
            bind(context, 0, dims[0], dims[1]);
            bind(context, 1, dims[2], dims[3]);
            const grt_status status = grt_context_run(context);
            ck_assert_int_eq(status, round % 2 ? GRT_OK : GRT_STATUS_INVALID_ARGUMENT);
            if (status != GRT_OK)
                ck_assert_msg(strstr(grt_last_error(), cases[i].message) && strstr(grt_last_error(), "'the_"),
                              "%s", grt_last_error());
        }
        grt_context_release(context);
        grt_session_release(session);
    }
}
END_TEST

/* The same for shapes that the model fixes. */
START_TEST(shapes_that_do_not_fit_are_refused)
{
    static const struct {
        const char *op, *dims;
        int64_t shape[2], bad, good;
    } cases[] = {
        {"Reshape", "n,4", {1000, 4}, 2, 1000},
        {"Reshape", "n,4", {-1, 8}, 3, 4},
        {"Expand", "n,1", {4, 4}, 3, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_model m = onnx_create();
        grt_context *context;
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, cases[i].dims);
        onnx_initializer(&m, m.graph,
                         onnx_raw(&m, "shape", GRT_DTYPE_INT64, "2", cases[i].shape, sizeof cases[i].shape));
        onnx_node(&m, m.graph, cases[i].op, "x,shape", "y");
        onnx_output(&m, m.graph, "y");
        grt_session *session = session_of(&m);
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        const int64_t columns = cases[i].dims[2] - '0';
        bind(context, 0, cases[i].bad, columns);
        ck_assert_int_eq(grt_context_run(context), GRT_STATUS_INVALID_ARGUMENT);
        bind(context, 0, cases[i].good, columns);
        ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
        grt_context_release(context);
        grt_session_release(session);
    }
}
END_TEST

/* With a length of 1, which stands for what is not known, the window does not fit: that is no fault of the
 * model's. */
START_TEST(windows_on_open_lengths)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,2,length");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "1,2,3"));
    onnx_node(&m, m.graph, "Conv", "x,w", "y");
    onnx_output(&m, m.graph, "y");
    grt_session *session = session_of(&m);
    grt_context *context;
    const float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {1, 2, 4}, .data = (void *)x};
    grt_tensor out;
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    ck_assert_int_eq(grt_context_set_input(context, 0, &in), GRT_OK);
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    ck_assert_int_eq(out.dims[2], 2);
    ck_assert_float_eq(((const float *)out.data)[1], 15.0f);
    grt_context_release(context);
    grt_session_release(session);
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
    grt_session *session = session_of(&m);
    grt_context *context;
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
}
END_TEST

Suite *suite_test_frame(void)
{
    Suite *suite = suite_create("frame");
    TCase *tcase = tcase_create("frame");
    tcase_add_checked_fixture(tcase, runtime_open, runtime_close);
    tcase_add_test(tcase, expands_without_a_shape);
    tcase_add_test(tcase, does_not_compute_with_packed_weights);
    tcase_add_test(tcase, dims_that_do_not_fit_are_refused);
    tcase_add_test(tcase, shapes_that_do_not_fit_are_refused);
    tcase_add_test(tcase, windows_on_open_lengths);
    tcase_add_test(tcase, captured_values_keep_their_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Views that are parts of a value use its memory. */
#include "src/plan/memory_plan.h"
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <graphrt/graphrt.h>

#include <check.h>
#include <string.h>

static const char *const kinds[] = {"cpu", "mirror"};

static void sizes(onnx_model *m, const char *name, const char *n, const int64_t *values, size_t bytes)
{
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_INT64, n, values, bytes));
}

static void split(onnx_model *m, Onnx__GraphProto *graph, const char *inputs, const char *outputs,
                  int64_t axis)
{
    onnx_attr_int(m, onnx_node(m, graph, "Split", inputs, outputs), "axis", axis);
}

static grt_context *context_of(onnx_model *m, const char *device)
{
    grt_model *model = onnx_open(m, runtime);
    grt_session *session;
    grt_context *context;
    const grt_session_options options = {.struct_size = sizeof options, .fallback = "cpu"};
    ck_assert_msg(grt_session_create(model, device, &options, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    grt_session_release(session);
    grt_model_release(model);
    return context;
}

static void bind_floats(grt_context *context, size_t index, float *data, int64_t rows, int64_t columns)
{
    const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {rows, columns}, .data = data};
    ck_assert_int_eq(grt_context_set_input(context, index, &t), GRT_OK);
}

static const float *run(grt_context *context)
{
    grt_tensor out;
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &out), GRT_OK);
    return out.data;
}

static const float *output(grt_context *context, size_t index)
{
    grt_tensor out;
    ck_assert_int_eq(grt_context_get_output(context, index, &out), GRT_OK);
    return out.data;
}

/* n = -x; a, b, c are its parts; outputs: b, n, sqrt(-a), -c */
static onnx_model parts_of(const char *dims, const int64_t *of)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, dims);
    sizes(&m, "sizes", "3", of, 3 * sizeof *of);
    onnx_node(&m, m.graph, "Neg", "x", "n");
    split(&m, m.graph, "n,sizes", "a,b,c", 1);
    onnx_node(&m, m.graph, "Neg", "a", "p");
    onnx_node(&m, m.graph, "Sqrt", "p", "r");
    onnx_node(&m, m.graph, "Neg", "c", "s");
    onnx_output(&m, m.graph, "b");
    onnx_output(&m, m.graph, "n");
    onnx_output(&m, m.graph, "r");
    onnx_output(&m, m.graph, "s");
    return m;
}

static void check_parts(grt_context *context, const float *x, int rows, const int64_t *of)
{
    const float *b = run(context), *n = output(context, 1), *r = output(context, 2), *s = output(context, 3);
    const int64_t columns = of[0] + of[1] + of[2];
    for (int64_t row = 0; row < rows; row++, x += columns, n += columns) {
        for (int64_t i = 0; i < columns; i++)
            ck_assert_float_eq(n[i], -x[i]);
        for (int64_t i = 0; i < of[0]; i++)
            ck_assert_float_eq_tol(r[row * of[0] + i] * r[row * of[0] + i], x[i], 1e-4F);
        for (int64_t i = 0; i < of[1]; i++)
            ck_assert_float_eq(b[row * of[1] + i], -x[of[0] + i]);
        for (int64_t i = 0; i < of[2]; i++)
            ck_assert_float_eq(s[row * of[2] + i], x[of[0] + of[1] + i]);
    }
}

/* Also with outputs in the caller's memory, of which a part and the whole cannot both be. */
START_TEST(parts_share_memory)
{
    static const struct {
        const char *dims;
        int rows;
        bool shared;
        int64_t of[3];
    } cases[] = {
        {"1,96", 1, true, {32, 16, 48}},  {"1,96", 1, true, {32, 64, 0}},
        {"1,96", 1, true, {0, 96, 0}},    {"1,96", 1, false, {8, 40, 48}}, /* not aligned */
        {"2,48", 2, false, {16, 16, 16}}, {"n,96", 1, true, {32, 16, 48}}, /* of one row in this run */
        {"n,48", 2, false, {16, 16, 16}},
    };
    const size_t n = sizeof cases / sizeof *cases;
    const float untouched = 0.5F;
    float x[96], theirs[4][97];
    for (int i = 0; i < 96; i++)
        x[i] = (float)i;
    for (size_t i = 0; i < 2 * n; i++) {
        const int64_t *of = cases[i % n].of, columns = of[0] + of[1] + of[2];
        onnx_model m = parts_of(cases[i % n].dims, of);
        grt_context *context = context_of(&m, kinds[i / n]);
        bind_floats(context, 0, x, cases[i % n].rows, columns);
        check_parts(context, x, cases[i % n].rows, of);
        if (i < n && of[0] < columns && of[1] < columns)
            ck_assert_int_eq(output(context, 0) == output(context, 1) + of[0], cases[i % n].shared);
        int64_t ends[4];
        for (size_t k = 0; k < 4; k++) {
            const int64_t width = k == 1 ? columns : of[k == 0 ? 1 : k == 2 ? 0 : 2];
            const grt_tensor out = {
                .dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {cases[i % n].rows, width}, .data = theirs[k]};
            ends[k] = cases[i % n].rows * width;
            theirs[k][ends[k]] = untouched;
            ck_assert_int_eq(grt_context_set_output(context, k, &out), GRT_OK);
        }
        check_parts(context, x, cases[i % n].rows, of);
        for (size_t k = 0; k < 4; k++)
            ck_assert_float_eq(theirs[k][ends[k]], untouched);
        ck_assert_ptr_eq(output(context, 1), theirs[1]);
        grt_context_release(context);
        onnx_release(&m);
    }
}
END_TEST

/* What is made is larger than the memory that the caller has for a part of it. */
START_TEST(an_output_that_is_a_part)
{
    const int64_t of[2] = {16, 16};
    const float untouched = 0.5F;
    float x[32], theirs[32];
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,32");
    sizes(&m, "sizes", "2", of, sizeof of);
    onnx_node(&m, m.graph, "Neg", "x", "n");
    split(&m, m.graph, "n,sizes", "a,b", 1);
    onnx_node(&m, m.graph, "Sqrt", "b", "root"); /* in memory of its own */
    onnx_output(&m, m.graph, "a");
    onnx_output(&m, m.graph, "root");
    for (int i = 0; i < 32; i++) {
        x[i] = (float)-i;
        theirs[i] = untouched;
    }
    for (size_t d = 0; d < 2; d++) {
        grt_context *context = context_of(&m, kinds[d]);
        const grt_tensor out = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 16}, .data = theirs};
        ck_assert_int_eq(grt_context_set_output(context, 0, &out), GRT_OK);
        bind_floats(context, 0, x, 1, 32);
        ck_assert_ptr_eq(run(context), theirs);
        for (int i = 0; i < 16; i++) {
            ck_assert_float_eq(theirs[i], -x[i]);
            ck_assert_float_eq(theirs[16 + i], untouched);
            ck_assert_float_eq_tol(output(context, 1)[i] * output(context, 1)[i], -x[16 + i], 1e-4F);
        }
        grt_context_release(context);
    }
    onnx_release(&m);
}
END_TEST

static uint32_t may_take_input_0(void *user, int32_t step)
{
    (void)user;
    (void)step;
    return 1;
}

/* n; a, b are its parts; c is made of b, d of a, and is as large as n; e is made of d. Only e takes the place
 * of what it is made of: n is still read when c is made, and d would write over a while it reads it. */
START_TEST(steps_in_place_take_wholes)
{
    enum { X, N, A, B, C, D, E, VALUES };
    static const int32_t x[] = {X}, n[] = {N}, ab[] = {A, B}, a[] = {A}, b[] = {B}, c[] = {C}, d[] = {D},
                         e[] = {E};
    static const int32_t outputs[] = {C, E};
    const grt_plan_step steps[] = {{.n_in = 1, .n_out = 1, .in = x, .out = n},
                                   {.kind = GRT_STEP_VIEW, .n_in = 1, .n_out = 2, .in = n, .out = ab},
                                   {.n_in = 1, .n_out = 1, .in = b, .out = c},
                                   {.n_in = 1, .n_out = 1, .in = a, .out = d},
                                   {.n_in = 1, .n_out = 1, .in = d, .out = e}};
    const grt_plan_body body = {
        .n_values = VALUES, .n_steps = 5, .n_outputs = 2, .steps = steps, .outputs = outputs};
    const size_t bytes[] = {192, 192, 64, 128, 128, 192, 192};
    const int64_t elements[] = {48, 48, 16, 32, 32, 48, 48};
    const bool planned[] = {false, true, true, true, true, true, true},
               step_planned[] = {true, true, true, true, true};
    const grt_memory_request request = {.body = &body,
                                        .bytes = bytes,
                                        .elements = elements,
                                        .planned = planned,
                                        .step_planned = step_planned,
                                        .in_place = may_take_input_0};
    grt_memory_plan plan;
    ck_assert_int_eq(grt_memory_plan_make(&request, &plan), GRT_OK);
    const int32_t storage[] = {X, N, N, N, C, D, D};
    const size_t within[] = {0, 0, 0, 64, 0, 0, 0};
    for (int32_t v = 0; v < VALUES; v++) {
        ck_assert_int_eq(plan.storage[v], storage[v]);
        ck_assert_uint_eq(plan.within[v], within[v]);
        if (v != X)
            ck_assert_uint_eq(plan.offset[v], plan.offset[storage[v]] + within[v]);
    }
    ck_assert_uint_eq(plan.arena_bytes, 192 + 128 + 192);
    grt_memory_plan_release(&plan);
}
END_TEST

/* In a body, where memory comes with the run: a Loop that exchanges the halves of its state. */
START_TEST(parts_in_a_body)
{
    const int64_t of[2] = {16, 16};
    const bool yes = true;
    for (size_t d = 0; d < 2; d++) {
        for (int64_t trips = 0; trips < 4; trips++) {
            onnx_model m = onnx_create();
            float x[32];
            onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,32");
            sizes(&m, "trips", "", &trips, sizeof trips);
            sizes(&m, "sizes", "2", of, sizeof of);
            onnx_initializer(&m, m.graph, onnx_raw(&m, "yes", GRT_DTYPE_BOOL, "", &yes, sizeof yes));
            Onnx__GraphProto *body = onnx_graph(&m, "body");
            onnx_input(&m, body, "i", GRT_DTYPE_INT64, "");
            onnx_input(&m, body, "go", GRT_DTYPE_BOOL, "");
            onnx_input(&m, body, "state", GRT_DTYPE_FLOAT, "1,32");
            onnx_node(&m, body, "Identity", "go", "still");
            split(&m, body, "state,sizes", "a,b", 1);
            onnx_attr_int(&m, onnx_node(&m, body, "Concat", "b,a", "next"), "axis", 1);
            onnx_node(&m, body, "Identity", "a", "seen");
            onnx_output(&m, body, "still");
            onnx_output(&m, body, "next");
            onnx_output(&m, body, "seen");
            Onnx__NodeProto *loop = onnx_node(&m, m.graph, "Loop", "trips,yes,x", "y,all");
            onnx_attr(&m, loop, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
            onnx_output(&m, m.graph, "y");
            onnx_output(&m, m.graph, "all");
            for (int i = 0; i < 32; i++)
                x[i] = (float)i;
            grt_context *context = context_of(&m, kinds[d]);
            bind_floats(context, 0, x, 1, 32);
            const float *y = run(context), *all = output(context, 1);
            for (int64_t i = 0; i < 32; i++)
                ck_assert_float_eq(y[i], x[(i + trips * 16) % 32]);
            for (int64_t i = 0; i < trips * 16; i++)
                ck_assert_float_eq(all[i], x[i % 32]);
            grt_context_release(context);
            onnx_release(&m);
        }
    }
}
END_TEST

/* Of what dims alone decide. */
START_TEST(parts_of_dims)
{
    const int64_t of[2] = {8, 8};
    for (size_t d = 0; d < 2; d++) {
        onnx_model m = onnx_create();
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,1,2,1,1,1,1,1,1,1,1,3,1,1,1,m");
        sizes(&m, "sizes", "2", of, sizeof of);
        onnx_node(&m, m.graph, "Shape", "x", "dims");
        onnx_node(&m, m.graph, "Neg", "dims", "n");
        split(&m, m.graph, "n,sizes", "a,b", 0);
        onnx_output(&m, m.graph, "b");
        onnx_output(&m, m.graph, "a");
        grt_context *context = context_of(&m, kinds[d]);
        float x[120] = {0};
        for (int64_t n = 1; n < 4; n++) {
            const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT,
                                  .rank = 16,
                                  .dims = {n, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 1, 5},
                                  .data = x};
            ck_assert_int_eq(grt_context_set_input(context, 0, &t), GRT_OK);
            const int64_t *b = (const int64_t *)run(context), *a = (const int64_t *)output(context, 1);
            for (int i = 0; i < 8; i++) {
                ck_assert_int_eq(b[i], -t.dims[8 + i]);
                ck_assert_int_eq(a[i], -t.dims[i]);
            }
        }
        grt_context_release(context);
        onnx_release(&m);
    }
}
END_TEST

/* A context of the plan that is made for the device, and how many Split steps that has. */
static grt_context *context_of_plan(onnx_model *m, const char *device, int *out_splits)
{
    const grt_compile_options options = {
        .struct_size = sizeof options, .optimization = GRT_OPTIMIZATION_FULL, .target = device};
    grt_model *model = onnx_open_plan(m, runtime, &options);
    grt_session *session;
    grt_context *context;
    grt_step_info step = {.struct_size = sizeof step};
    *out_splits = 0;
    for (size_t i = 0; grt_model_step(model, i, &step) == GRT_OK; i++)
        *out_splits += !strcmp(step.op, "Split");
    ck_assert_msg(grt_session_create(model, device, NULL, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    grt_session_release(session);
    grt_model_release(model);
    return context;
}

/* Results are equal with and without joined products. */
START_TEST(joined_products)
{
    float x[24], kept[2][80];
    for (size_t d = 0; d < 2; d++) {
        onnx_model m = onnx_create();
        int splits;
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,24");
        onnx_initializer(&m, m.graph, onnx_tensor(&m, "a", "24,32"));
        onnx_initializer(&m, m.graph, onnx_tensor(&m, "b", "24,48"));
        onnx_node(&m, m.graph, "MatMul", "x,a", "y");
        onnx_node(&m, m.graph, "MatMul", "x,b", "z");
        onnx_output(&m, m.graph, "z");
        onnx_output(&m, m.graph, "y");
        for (int i = 0; i < 24; i++)
            x[i] = (float)(i % 5) / 64;
        grt_context *context = context_of_plan(&m, kinds[d], &splits);
        ck_assert_int_eq(splits, (int)d);
        bind_floats(context, 0, x, 1, 24);
        memcpy(kept[d], run(context), 48 * sizeof(float));
        memcpy(kept[d] + 48, output(context, 1), 32 * sizeof(float));
        grt_context_release(context);
        onnx_release(&m);
    }
    for (int i = 0; i < 80; i++)
        ck_assert_float_eq(kept[0][i], kept[1][i]); /* both are the CPU's arithmetic */
}
END_TEST

/* A constant seen with other dims, which are known before the run although the shape is an input: it has no
 * elements. */
START_TEST(a_view_of_a_constant)
{
    const int64_t nothing = 0;
    const grt_tensor shape = {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {0}, .data = (void *)&nothing};
    for (size_t d = 0; d < 2; d++) {
        onnx_model m = onnx_create();
        const float one = 1.5F;
        onnx_input(&m, m.graph, "shape", GRT_DTYPE_INT64, NULL);
        onnx_initializer(&m, m.graph, onnx_raw(&m, "c", GRT_DTYPE_FLOAT, "1", &one, sizeof one));
        onnx_node(&m, m.graph, "Reshape", "c,shape", "v");
        onnx_node(&m, m.graph, "Neg", "v", "w");
        onnx_output(&m, m.graph, "v");
        onnx_output(&m, m.graph, "w");
        grt_context *context = context_of(&m, kinds[d]);
        ck_assert_int_eq(grt_context_set_input(context, 0, &shape), GRT_OK);
        const float *v = run(context);
        ck_assert_ptr_nonnull(v);
        ck_assert_float_eq(*v, one);
        ck_assert_float_eq(*output(context, 1), -one);
        grt_context_release(context);
        onnx_release(&m);
    }
}
END_TEST

Suite *suite_test_view(void);
Suite *suite_test_view(void)
{
    Suite *suite = suite_create("view");
    TCase *tests = tcase_create("view");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, parts_share_memory);
    tcase_add_test(tests, an_output_that_is_a_part);
    tcase_add_test(tests, steps_in_place_take_wholes);
    tcase_add_test(tests, parts_in_a_body);
    tcase_add_test(tests, parts_of_dims);
    tcase_add_test(tests, joined_products);
    tcase_add_test(tests, a_view_of_a_constant);
    suite_add_tcase(suite, tests);
    return suite;
}

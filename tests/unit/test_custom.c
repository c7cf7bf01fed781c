/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators: what the register refuses, and what their functions are told and may ask. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/runtime.h"

#include <graphrt/graphrt.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* y is x [n, m] twice, one below the other, times a factor; b is left out, or added to the first row. */
static int creations;

static grt_status infer_twice(void *user, const grt_custom_node *node, const grt_custom_type *in,
                              grt_custom_type *out)
{
    int64_t size;
    (void)user;
    if (in[0].rank >= 0 && in[0].rank != 2)
        return node->host->fail_node(node, GRT_STATUS_INVALID_MODEL, "x must have rows");
    out[0].dtype = in[0].dtype;
    out[0].rank = in[0].rank;
    if (in[0].rank < 0)
        return GRT_OK;
    if (node->host->dim_value(node, in[0].dims[1], &size) && size == 13)
        return GRT_STATUS_INVALID_MODEL; /* says nothing */
    out[0].reserved[5] = node->host->dim_value(node, in[0].dims[1], &size) && size == 14;
    out[0].dims[0] = node->host->dim_compute(node, '*', in[0].dims[0], node->host->dim_constant(node, 2));
    out[0].dims[1] = in[0].dims[1];
    return GRT_OK;
}

static grt_status create_twice(void *user, const grt_custom_node *node, void **out_state)
{
    float *factor = malloc(sizeof *factor);
    (void)user;
    if (!factor || !node->host->get_float(node, "factor", factor))
        return free(factor), node->host->fail_node(node, GRT_STATUS_INVALID_MODEL, "no factor");
    ck_assert(!node->host->get_int(node, "factor", &(int64_t){0})); /* of another kind */
    creations++;
    *out_state = factor;
    return GRT_OK;
}

static void release_twice(void *user, void *state)
{
    (void)user;
    creations--;
    free(state);
}

static grt_status run_twice(void *user, void *state, const grt_custom_run *run)
{
    const grt_tensor *x = run->inputs[0];
    const int64_t n = grt_tensor_elements(x);
    ck_assert_ptr_eq(user, &creations);
    ck_assert_uint_eq(run->node->n_inputs, 1); /* a trailing input that is left out is not there */
    for (int64_t i = 0; i < 2 * n; i++)
        ((float *)run->outputs[0]->data)[i] = ((const float *)x->data)[i % n] * *(float *)state;
    return ((const float *)x->data)[0] < 0
               ? run->node->host->fail_node(run->node, GRT_STATUS_INVALID_ARGUMENT, "x begins below zero")
               : GRT_OK;
}

static const grt_custom_attribute attributes[] = {
    {.name = "factor", .kind = GRT_ATTRIBUTE_FLOAT, .required = true}};
static const uint64_t floats[] = {1 << GRT_DTYPE_FLOAT};

static grt_custom_op twice(void)
{
    return (grt_custom_op){.struct_size = sizeof(grt_custom_op),
                           .domain = "test",
                           .name = "Twice",
                           .min_inputs = 1,
                           .max_inputs = 2,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .attributes = attributes,
                           .n_attributes = 1,
                           .input_dtypes = floats,
                           .n_input_dtypes = 1,
                           .infer = infer_twice,
                           .create = create_twice,
                           .release = release_twice,
                           .run = run_twice,
                           .user = &creations};
}

static onnx_model twice_model(grt_dtype dtype, const char *dims)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", dtype, dims);
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Twice", "x,", "t");
    node->domain = "test";
    Onnx__AttributeProto *a = onnx_attr(&m, node, "factor", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = 3;
    onnx_node(&m, m.graph, "Relu", "t", "y");
    onnx_output(&m, m.graph, "y");
    onnx_opset(&m, "test", 1);
    return m;
}

START_TEST(models_and_plans_use_them)
{
    const grt_custom_op op = twice();
    onnx_model m = twice_model(GRT_DTYPE_FLOAT, "n,m");
    ck_assert_int_eq(grt_custom_ops_register(&op, 1), GRT_OK);
    grt_model *model = onnx_open_plan(&m, runtime, NULL);
    grt_io_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_model_output(model, 0, &info), GRT_OK);
    ck_assert_str_eq(info.symbols[0], "n*2");
    grt_session *session;
    grt_context *context;
    ck_assert_msg(grt_session_create(model, "cpu", NULL, &session) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(creations, 1);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    float data[] = {1, 2, 3};
    const grt_tensor x = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {1, 3}, .data = data};
    grt_tensor y;
    ck_assert_int_eq(grt_context_set_input(context, 0, &x), GRT_OK);
    ck_assert_int_eq(grt_context_run(context), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    ck_assert_int_eq(y.dims[0], 2);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(((const float *)y.data)[i], 3 * data[i % 3]);
    data[0] = -1;
    ck_assert_int_eq(grt_context_run(context), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "x begins below zero"));
    grt_context_release(context);
    grt_session_release(session);
    ck_assert_int_eq(creations, 0);
    grt_model_release(model);
    onnx_release(&m);
}
END_TEST

static void expect_refused(grt_dtype dtype, const char *dims, const char *message)
{
    onnx_model m = twice_model(dtype, dims);
    const grt_string bytes = onnx_bytes(&m);
    grt_model *model;
    ck_assert_int_ne(grt_model_open_memory(runtime, bytes.data, bytes.size, &model), GRT_OK);
    ck_assert_msg(strstr(grt_last_error(), message), "%s", grt_last_error());
    onnx_release(&m);
}

START_TEST(models_that_do_not_fit_are_refused)
{
    const grt_custom_op op = twice();
    expect_refused(GRT_DTYPE_FLOAT, "n,m", "Twice");
    ck_assert_int_eq(grt_custom_ops_register(&op, 1), GRT_OK);
    expect_refused(GRT_DTYPE_FLOAT, "n", "x must have rows");
    expect_refused(GRT_DTYPE_FLOAT, "n,13", "failed with status 2 and no message");
    expect_refused(GRT_DTYPE_FLOAT, "n,14", "grt_custom_type.reserved");
    expect_refused(GRT_DTYPE_INT32, "n,m", "input 0 is int32, which this custom operator does not take");
}
END_TEST

#define NOT_REGISTERED(change, message)                                                 \
    do {                                                                                \
        grt_custom_op two[] = {twice(), twice()};                                       \
        two[0].name = "Other";                                                          \
        grt_custom_op *op = &two[1];                                                    \
        change;                                                                         \
        ck_assert_int_eq(grt_custom_ops_register(two, 2), GRT_STATUS_INVALID_ARGUMENT); \
        ck_assert_msg(strstr(grt_last_error(), message), "%s", grt_last_error());       \
    } while (0)

START_TEST(registration_is_all_or_nothing)
{
    NOT_REGISTERED(op->domain = "", "it must be one of its own");
    NOT_REGISTERED(op->domain = "ai.onnx.ml", "it must be one of its own");
    NOT_REGISTERED(op->name = NULL, "a name, a shape rule");
    NOT_REGISTERED(op->infer = NULL, "a name, a shape rule");
    NOT_REGISTERED(op->run = NULL, "a name, a shape rule");
    NOT_REGISTERED(op->name = "Other", "there is one of this name");
    NOT_REGISTERED((op->domain = "com.microsoft", op->name = "Gelu"), "there is one of this name");
    NOT_REGISTERED(op->max_inputs = 0, "minima");
    NOT_REGISTERED(op->min_outputs = 0, "at least one output");
    NOT_REGISTERED(op->attributes = NULL, "a list is NULL");
    NOT_REGISTERED(op->struct_size = 0, "struct_size");
    ck_assert_int_eq(grt_custom_ops_register(NULL, 1), GRT_STATUS_INVALID_ARGUMENT);
    const grt_custom_attribute newer = {.name = "factor", .kind = GRT_ATTRIBUTE_FLOAT, .reserved = {1}};
    grt_custom_op op = twice();
    op.attributes = &newer;
    ck_assert_int_eq(grt_custom_ops_register(&op, 1), GRT_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "grt_custom_attribute.reserved"));
    op.attributes = attributes;
    ck_assert_int_eq(grt_custom_ops_register(&op, 1), GRT_OK);
    ck_assert_int_eq(grt_custom_ops_register(&op, 1), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* Programs compiled with an older header have shorter structs. */
START_TEST(older_structs_are_read_as_far_as_they_go)
{
    grt_custom_op op = twice();
    op.struct_size = offsetof(grt_custom_op, run_cuda);
    op.user = (void *)"beyond";
    onnx_model m = twice_model(GRT_DTYPE_FLOAT, "n,m");
    ck_assert_int_eq(grt_custom_ops_register(&op, 1), GRT_OK);
    grt_model_release(onnx_open(&m, runtime));
    onnx_release(&m);
}
END_TEST

START_TEST(libraries_are_refused_that_have_none)
{
    ck_assert_int_eq(grt_custom_ops_load(NULL), GRT_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(grt_custom_ops_load("no-such.so"), GRT_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "'no-such.so' cannot be loaded"));
}
END_TEST

Suite *suite_test_custom(void)
{
    Suite *suite = suite_create("custom");
    TCase *tests = tcase_create("custom");
    tcase_add_checked_fixture(tests, runtime_open, runtime_close);
    tcase_add_test(tests, models_and_plans_use_them);
    tcase_add_test(tests, models_that_do_not_fit_are_refused);
    tcase_add_test(tests, registration_is_all_or_nothing);
    tcase_add_test(tests, older_structs_are_read_as_far_as_they_go);
    tcase_add_test(tests, libraries_are_refused_that_have_none);
    suite_add_tcase(suite, tests);
    return suite;
}

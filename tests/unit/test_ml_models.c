/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of ai.onnx.ml that are said with simpler ones: what comes out of a whole model. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/suite.h"
#include "tests/unit/runtime.h"

#include <graphrt/graphrt.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 6, INTS = 7, STRINGS = 8, STRING = 3 }; /* AttributeProto.AttributeType */

static Onnx__NodeProto *ml_node(onnx_model *m, const char *op, const char *in, const char *out)
{
    Onnx__NodeProto *node = onnx_node(m, m->graph, op, in, out);
    node->domain = "ai.onnx.ml";
    return node;
}

static void floats(onnx_model *m, Onnx__NodeProto *node, const char *name, size_t n, const float *v)
{
    Onnx__AttributeProto *a = onnx_attr(m, node, name, FLOATS);
    a->n_floats = n;
    a->floats = grt_arena_memdup(m->arena, v, n * sizeof *v);
}

static void ints(onnx_model *m, Onnx__NodeProto *node, const char *name, size_t n, const int64_t *v)
{
    Onnx__AttributeProto *a = onnx_attr(m, node, name, INTS);
    a->n_ints = n;
    a->ints = grt_arena_memdup(m->arena, v, n * sizeof *v);
}

static void strings(onnx_model *m, Onnx__NodeProto *node, const char *name, size_t n, const char *const *v)
{
    Onnx__AttributeProto *a = onnx_attr(m, node, name, STRINGS);
    a->n_strings = n;
    a->strings = grt_arena_calloc(m->arena, n, sizeof *a->strings);
    for (size_t i = 0; i < n; i++)
        a->strings[i] = (ProtobufCBinaryData){strlen(v[i]), (uint8_t *)v[i]};
}

static void string(onnx_model *m, Onnx__NodeProto *node, const char *name, const char *v)
{
    Onnx__AttributeProto *a = onnx_attr(m, node, name, STRING);
    a->has_s = true;
    a->s = (ProtobufCBinaryData){strlen(v), (uint8_t *)v};
}

typedef struct run_state {
    grt_session *session;
    grt_context *context;
} run_state;

static run_state open_model(onnx_model *m)
{
    run_state r;
    onnx_opset(m, "ai.onnx.ml", 3);
    grt_model *model = onnx_open(m, runtime);
    ck_assert_msg(grt_session_create(model, "cpu", NULL, &r.session) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_create(r.session, &r.context), GRT_OK);
    grt_model_release(model);
    onnx_release(m);
    return r;
}

static void close_model(run_state r)
{
    grt_context_release(r.context);
    grt_session_release(r.session);
}

static grt_status run(run_state r, grt_dtype dtype, int64_t rows, int64_t columns, const void *x)
{
    const grt_tensor in = {.dtype = dtype, .rank = 2, .dims = {rows, columns}, .data = (void *)x};
    ck_assert_int_eq(grt_context_set_input(r.context, 0, &in), GRT_OK);
    return grt_context_run(r.context);
}

static void expect_floats(run_state r, size_t output, int64_t n, const float *expected)
{
    grt_tensor out;
    ck_assert_int_eq(grt_context_get_output(r.context, output, &out), GRT_OK);
    ck_assert_int_eq(out.dtype, GRT_DTYPE_FLOAT);
    ck_assert_int_eq(grt_tensor_elements(&out), n);
    for (int64_t i = 0; i < n; i++)
        ck_assert_float_eq_tol(((const float *)out.data)[i], expected[i], 1e-6f);
}

static void expect_strings(run_state r, size_t output, int64_t n, const char *const *expected)
{
    grt_tensor out;
    ck_assert_int_eq(grt_context_get_output(r.context, output, &out), GRT_OK);
    ck_assert_int_eq(out.dtype, GRT_DTYPE_STRING);
    ck_assert_int_eq(grt_tensor_elements(&out), n);
    for (int64_t i = 0; i < n; i++) {
        const grt_string *s = &((const grt_string *)out.data)[i];
        ck_assert(s->size == strlen(expected[i]) && !memcmp(s->data, expected[i], s->size));
    }
}

/* Two trees, x0 <= 1 ? leaf 1 : (x1 <= 2 ? leaf 3 : leaf 4), and one that is a leaf; leaves with a weight for
 * each of three classes, or for some. */
START_TEST(trees_with_several_weights_a_leaf)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,2");
    Onnx__NodeProto *node = ml_node(&m, "TreeEnsembleClassifier", "x", "label,scores");
    ints(&m, node, "nodes_treeids", 6, (int64_t[]){0, 0, 0, 0, 0, 7});
    ints(&m, node, "nodes_nodeids", 6, (int64_t[]){0, 1, 2, 3, 4, 0});
    ints(&m, node, "nodes_featureids", 6, (int64_t[]){0, 0, 1, 0, 0, 0});
    ints(&m, node, "nodes_truenodeids", 6, (int64_t[]){1, 0, 3, 0, 0, 0});
    ints(&m, node, "nodes_falsenodeids", 6, (int64_t[]){2, 0, 4, 0, 0, 0});
    floats(&m, node, "nodes_values", 6, (float[]){1, 0, 2, 0, 0, 0});
    strings(&m, node, "nodes_modes", 6,
            (const char *[]){"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"});
    ints(&m, node, "class_treeids", 7, (int64_t[]){0, 0, 0, 0, 0, 0, 7});
    ints(&m, node, "class_nodeids", 7, (int64_t[]){1, 1, 1, 3, 4, 4, 0});
    ints(&m, node, "class_ids", 7, (int64_t[]){0, 1, 2, 2, 0, 1, 1});
    floats(&m, node, "class_weights", 7, (float[]){0.5f, 0.25f, 0.125f, 3, 1, 2, 0.0625f});
    strings(&m, node, "classlabels_strings", 3, (const char *[]){"a", "b", "c"});
    onnx_output(&m, m.graph, "label");
    onnx_output(&m, m.graph, "scores");
    const run_state r = open_model(&m);
    const float x[] = {1, 9, 2, 2, 2, 3};
    ck_assert_msg(run(r, GRT_DTYPE_FLOAT, 3, 2, x) == GRT_OK, "%s", grt_last_error());
    expect_strings(r, 0, 3, (const char *[]){"a", "c", "b"});
    expect_floats(r, 1, 9, (float[]){0.5f, 0.3125f, 0.125f, 0, 0.0625f, 3, 1, 2.0625f, 0});
    close_model(r);
}
END_TEST

/* A forest of many samples: whole groups of samples and what is left over. */
START_TEST(a_single_score_for_two_classes)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,1");
    Onnx__NodeProto *node = ml_node(&m, "TreeEnsembleClassifier", "x", "label,scores");
    ints(&m, node, "nodes_treeids", 3, (int64_t[]){0, 0, 0});
    ints(&m, node, "nodes_nodeids", 3, (int64_t[]){0, 1, 2});
    ints(&m, node, "nodes_featureids", 3, (int64_t[]){0, 0, 0});
    ints(&m, node, "nodes_truenodeids", 3, (int64_t[]){1, 0, 0});
    ints(&m, node, "nodes_falsenodeids", 3, (int64_t[]){2, 0, 0});
    ints(&m, node, "nodes_missing_value_tracks_true", 3, (int64_t[]){1, 0, 0});
    floats(&m, node, "nodes_values", 3, (float[]){0.5f, 0, 0});
    strings(&m, node, "nodes_modes", 3, (const char *[]){"BRANCH_LEQ", "LEAF", "LEAF"});
    ints(&m, node, "class_treeids", 2, (int64_t[]){0, 0});
    ints(&m, node, "class_nodeids", 2, (int64_t[]){1, 2});
    ints(&m, node, "class_ids", 2, (int64_t[]){0, 0});
    floats(&m, node, "class_weights", 2, (float[]){-1, 2});
    ints(&m, node, "classlabels_int64s", 2, (int64_t[]){5, 9});
    string(&m, node, "post_transform", "LOGISTIC");
    onnx_output(&m, m.graph, "label");
    onnx_output(&m, m.graph, "scores");
    const run_state r = open_model(&m);
    enum { ROWS = 75 };
    float x[ROWS];
    grt_tensor label, scores;
    for (int i = 0; i < ROWS; i++)
        x[i] = i % 5 == 4 ? NAN : (float)(i % 3) * 0.5f;
    ck_assert_msg(run(r, GRT_DTYPE_FLOAT, ROWS, 1, x) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(r.context, 0, &label), GRT_OK);
    ck_assert_int_eq(grt_context_get_output(r.context, 1, &scores), GRT_OK);
    for (int i = 0; i < ROWS; i++) {
        const bool low = isnan(x[i]) || x[i] <= 0.5f;
        ck_assert_int_eq(((const int64_t *)label.data)[i], low ? 5 : 9);
        const float p = 1 / (1 + expf(low ? 1.0f : -2.0f));
        ck_assert_float_eq_tol(((const float *)scores.data)[2 * i + 1], p, 1e-6f);
        ck_assert_float_eq_tol(((const float *)scores.data)[2 * i], 1 - p, 1e-6f);
    }
    close_model(r);
}
END_TEST

START_TEST(a_pipeline_of_scalings_and_a_linear_classifier)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,2");
    Onnx__NodeProto *node = ml_node(&m, "Imputer", "x", "full");
    floats(&m, node, "imputed_value_floats", 2, (float[]){3, 5});
    Onnx__AttributeProto *hole = onnx_attr(&m, node, "replaced_value_float", 1);
    hole->has_f = true;
    hole->f = NAN;
    node = ml_node(&m, "Scaler", "full", "scaled");
    floats(&m, node, "offset", 2, (float[]){1, 2});
    floats(&m, node, "scale", 1, (float[]){2});
    node = ml_node(&m, "Normalizer", "scaled", "unit");
    string(&m, node, "norm", "L1");
    node = ml_node(&m, "LinearClassifier", "unit", "label,scores");
    floats(&m, node, "coefficients", 6, (float[]){1, 0, 0, 1, -1, -1});
    floats(&m, node, "intercepts", 3, (float[]){0, 0.25f, 0.5f});
    strings(&m, node, "classlabels_strings", 3, (const char *[]){"one", "two", "three"});
    node = ml_node(&m, "LinearRegressor", "unit", "value");
    floats(&m, node, "coefficients", 2, (float[]){1, 10});
    floats(&m, node, "intercepts", 1, (float[]){100});
    onnx_output(&m, m.graph, "label");
    onnx_output(&m, m.graph, "scores");
    onnx_output(&m, m.graph, "value");
    const run_state r = open_model(&m);
    const float x[] = {NAN, 2, 1, NAN, 1, 2}; /* scaled: 4 0, 0 6, 0 0 */
    ck_assert_msg(run(r, GRT_DTYPE_FLOAT, 3, 2, x) == GRT_OK, "%s", grt_last_error());
    expect_strings(r, 0, 3, (const char *[]){"one", "two", "three"});
    expect_floats(r, 1, 9, (float[]){1, 0.25f, -0.5f, 0, 1.25f, -0.5f, 0, 0.25f, 0.5f});
    expect_floats(r, 2, 3, (float[]){101, 110, 100});
    close_model(r);
}
END_TEST

/* A category that is not known has zeros, or is an error where the model wants that. */
START_TEST(one_hot)
{
    for (int zeros = 0; zeros < 2; zeros++) {
        onnx_model m = onnx_create();
        onnx_input(&m, m.graph, "x", GRT_DTYPE_INT64, "n,1");
        Onnx__NodeProto *node = ml_node(&m, "OneHotEncoder", "x", "y");
        ints(&m, node, "cats_int64s", 3, (int64_t[]){7, -2, 4});
        onnx_attr_int(&m, node, "zeros", zeros);
        onnx_output(&m, m.graph, "y");
        const run_state r = open_model(&m);
        const int64_t known[] = {4, 7}, unknown[] = {-2, 5};
        ck_assert_msg(run(r, GRT_DTYPE_INT64, 2, 1, known) == GRT_OK, "%s", grt_last_error());
        expect_floats(r, 0, 6, (float[]){0, 0, 1, 1, 0, 0});
        ck_assert_int_eq(run(r, GRT_DTYPE_INT64, 2, 1, unknown),
                         zeros ? GRT_OK : GRT_STATUS_INVALID_ARGUMENT);
        if (zeros)
            expect_floats(r, 0, 6, (float[]){0, 1, 0, 0, 0, 0});
        close_model(r);
    }
}
END_TEST

/* What it costs grows with the categories, not with their square. */
START_TEST(one_hot_of_many_categories)
{
    enum { MANY = 6000 };
    int64_t categories[MANY];
    for (int i = 0; i < MANY; i++)
        categories[i] = 3 * i;
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_INT64, "n,1");
    ints(&m, ml_node(&m, "OneHotEncoder", "x", "y"), "cats_int64s", MANY, categories);
    onnx_output(&m, m.graph, "y");
    onnx_opset(&m, "ai.onnx.ml", 3);
    grt_model *model = onnx_open(&m, runtime);
    grt_model_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(grt_model_get_info(model, &info), GRT_OK);
    ck_assert_uint_lt(info.weights_bytes, (uint64_t)64 * MANY);
    grt_model_release(model);
    const run_state r = open_model(&m);
    ck_assert_msg(run(r, GRT_DTYPE_INT64, 2, 1, (int64_t[]){3 * 5999, 1}) == GRT_OK, "%s", grt_last_error());
    float expected[2 * MANY] = {0};
    expected[5999] = 1;
    expect_floats(r, 0, (int64_t)2 * MANY, expected);
    close_model(r);
}
END_TEST

/* A stump for three classes, with whatever attributes a test adds. */
static Onnx__NodeProto *stump(onnx_model *m)
{
    *m = onnx_create();
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "n,2");
    onnx_opset(m, "ai.onnx.ml", 3);
    Onnx__NodeProto *node = ml_node(m, "TreeEnsembleClassifier", "x", "label,scores");
    for (size_t i = 0; i < 5; i++)
        ints(m, node,
             ((const char *const[]){"nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
                                    "nodes_falsenodeids"})[i],
             1, (int64_t[]){0});
    floats(m, node, "nodes_values", 1, (float[]){0});
    strings(m, node, "nodes_modes", 1, (const char *[]){"LEAF"});
    for (size_t i = 0; i < 3; i++)
        ints(m, node, ((const char *const[]){"class_treeids", "class_nodeids", "class_ids"})[i], 1,
             (int64_t[]){0});
    floats(m, node, "class_weights", 1, (float[]){1});
    ints(m, node, "classlabels_int64s", 3, (int64_t[]){0, 1, 2});
    onnx_output(m, m->graph, "scores");
    return node;
}

static void expect_refused(onnx_model *m, const char *part)
{
    grt_model *model = NULL;
    const grt_string bytes = onnx_bytes(m);
    ck_assert_int_eq(grt_model_open_memory(runtime, bytes.data, bytes.size, &model),
                     GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), part), "'%s' is not in '%s'", part, grt_last_error());
    onnx_release(m);
}

/* Not "there is no kernel for this op", which is what remains where an expansion gives no reason. */
START_TEST(refusals_name_the_attribute)
{
    onnx_model m;
    floats(&m, stump(&m), "base_values", 1, (float[]){0});
    expect_refused(&m, "base_values has 1 numbers; there are 3 scores");
    string(&m, stump(&m), "post_transform", "SIGMOID");
    expect_refused(&m, "post_transform is 'SIGMOID'; it must be NONE");
    m = onnx_create();
    onnx_opset(&m, "ai.onnx.ml", 3);
    onnx_input(&m, m.graph, "x", GRT_DTYPE_INT64, "n,2");
    floats(&m, ml_node(&m, "Imputer", "x", "y"), "imputed_value_floats", 1, (float[]){1});
    onnx_output(&m, m.graph, "y");
    expect_refused(&m, "imputed_value_int64s is missing, and the input is int64");
}
END_TEST

UNIT_SUITE(test_ml_models, runtime_open, runtime_close, trees_with_several_weights_a_leaf,
           a_single_score_for_two_classes, a_pipeline_of_scalings_and_a_linear_classifier, one_hot,
           one_hot_of_many_categories, refusals_name_the_attribute)

/* SPDX-License-Identifier: Apache-2.0 */
/* Regressions: semantically wrong models that once crashed, read out of bounds or did not end. Found by
 * tests/mutate. */
#include "tests/unit/onnx_model.h"
#include "tests/unit/op_runner.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* The model's status when it is opened, and run with `x` as its first input unless that is NULL. */
static grt_status try_model(onnx_model *m, const grt_tensor *x)
{
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    const grt_string bytes = onnx_bytes(m);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_status status = grt_model_open_memory(runtime, bytes.data, bytes.size, &model);
    if (status == GRT_OK && x) {
        ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
        ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
        status = grt_context_set_input(context, 0, x);
        if (status == GRT_OK)
            status = grt_context_run(context);
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return status;
}

static void assert_says(onnx_model *m, const grt_tensor *x, grt_status status, const char *word)
{
    ck_assert_int_eq(try_model(m, x), status);
    ck_assert_msg(strstr(grt_last_error(), word) != NULL, "'%s' does not say '%s'", grt_last_error(), word);
    onnx_release(m);
}

START_TEST(a_sequence_is_no_tensor)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,3");
    onnx_node(&m, m.graph, "SequenceConstruct", "x", "s");
    onnx_node(&m, m.graph, "Relu", "s", "y");
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "input 0 is a sequence; it must be a tensor");
}
END_TEST

START_TEST(an_optional_is_no_index)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,3");
    onnx_input(&m, m.graph, "i", GRT_DTYPE_INT64, "");
    onnx_node(&m, m.graph, "SequenceConstruct", "x", "s");
    onnx_node(&m, m.graph, "Optional", "i", "o");
    onnx_node(&m, m.graph, "SequenceAt", "s,o", "y");
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "input 1 is an optional; it must be a tensor");
}
END_TEST

START_TEST(old_resize_without_scales)
{
    onnx_model m = onnx_create();
    m.proto->opset_import[0]->version = 10;
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,1,2,2");
    onnx_node(&m, m.graph, "Resize", "x", "y");
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "Resize");
}
END_TEST

/* One of several that belong together. */
START_TEST(a_feature_is_missing)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "1,2");
    onnx_opset(&m, "ai.onnx.ml", 3);
    onnx_node(&m, m.graph, "FeatureVectorizer", "x,,x", "y")->domain = (char *)"ai.onnx.ml";
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "input 1 is missing");
}
END_TEST

START_TEST(a_default_of_other_dims)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "100");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "x", "2"));
    onnx_node(&m, m.graph, "Mish", "x", "y");
    onnx_output(&m, m.graph, "y");
    m.proto->opset_import[0]->version = 22;
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "'x' has other dims");
}
END_TEST

/* A number that is no dtype, and one that is if cut to 32 bits. */
START_TEST(dtypes_that_there_are_not)
{
    static const int64_t numbers[] = {-9, INT64_C(1) << 40, (INT64_C(1) << 32) + 1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        onnx_model m = onnx_create();
        m.proto->opset_import[0]->version = 22;
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
        onnx_attr_int(&m, onnx_node(&m, m.graph, "Bernoulli", "x", "y"), "dtype", numbers[i]);
        onnx_output(&m, m.graph, "y");
        assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "attribute dtype");
    }
}
END_TEST

START_TEST(flex_attention_of_complex_numbers)
{
    onnx_model m = onnx_create();
    onnx_opset(&m, "ai.onnx.preview", 1);
    onnx_input(&m, m.graph, "q", GRT_DTYPE_COMPLEX128, "1,1,2,4");
    onnx_node(&m, m.graph, "FlexAttention", "q,q,q", "y")->domain = "ai.onnx.preview";
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "input 0, 'q', is complex128; allowed are float32");
}
END_TEST

/* It names the type in which the softmax is computed: none, none that is floating-point, one whose low bits
 * are those of float32. */
START_TEST(flex_attention_in_a_type_of_no_fractions)
{
    static const int64_t numbers[] = {-1, GRT_DTYPE_INT64, GRT_DTYPE_STRING,
                                      ((int64_t)1 << 32) + GRT_DTYPE_FLOAT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        onnx_model m = onnx_create();
        onnx_opset(&m, "ai.onnx.preview", 1);
        onnx_input(&m, m.graph, "q", GRT_DTYPE_FLOAT, "1,1,2,4");
        Onnx__NodeProto *node = onnx_node(&m, m.graph, "FlexAttention", "q,q,q", "y");
        node->domain = "ai.onnx.preview";
        onnx_attr_int(&m, node, "softmax_precision", numbers[i]);
        onnx_output(&m, m.graph, "y");
        assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "attribute softmax_precision is");
    }
}
END_TEST

/* Batches that the compiler cannot see. */
START_TEST(a_grid_of_fewer_batches)
{
    float data[3 * 2 * 2] = {0};
    const grt_tensor x = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {3, 1, 2, 2}, .data = data};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,1,2,2");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "grid", "1,1,1,2"));
    onnx_node(&m, m.graph, "GridSample", "x,grid", "y");
    onnx_output(&m, m.graph, "y");
    assert_says(&m, &x, GRT_STATUS_INVALID_ARGUMENT, "X has 3 batches and grid has 1");
}
END_TEST

/* The rank is known in the run; that of the result only to the kernel. */
START_TEST(an_axis_beyond_the_rank)
{
    float data[4] = {0};
    const bool take[] = {true, false};
    const grt_tensor x = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {4}, .data = data};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, NULL);
    onnx_initializer(&m, m.graph, onnx_raw(&m, "take", GRT_DTYPE_BOOL, "2", take, sizeof take));
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Compress", "x,take", "y"), "axis", 1);
    onnx_output(&m, m.graph, "y");
    assert_says(&m, &x, GRT_STATUS_INVALID_ARGUMENT, "axis");
}
END_TEST

START_TEST(an_only_output_that_is_left_out)
{
    onnx_model m = onnx_create();
    m.proto->opset_import[0]->version = 8;
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,3,4");
    onnx_node(&m, m.graph, "Relu", "x", "y");
    onnx_node(&m, m.graph, "LogSoftmax", "x", "y2")->output[0] = "";
    onnx_output(&m, m.graph, "y");
    ck_assert_int_eq(try_model(&m, NULL), GRT_OK);
    onnx_release(&m);
}
END_TEST

START_TEST(a_past_of_another_dtype)
{
    float x[4] = {0};
    uint16_t past[4] = {0};
    op_runner r;
    op_begin(&r, "", "Attention");
    for (int i = 0; i < 3; i++)
        op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 1, 4}, x);
    op_omit(&r);
    op_add(&r, GRT_DTYPE_FLOAT, 4, (const int64_t[]){1, 1, 1, 4}, x);
    op_add(&r, GRT_DTYPE_BFLOAT16, 4, (const int64_t[]){1, 1, 1, 4}, past);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "inputs 2 and 5 must have the same dtype"));
    op_end(&r);
}
END_TEST

START_TEST(pads_beyond_all_images)
{
    const int64_t image[] = {5, 5}, block[] = {1, 5}, pads[] = {0, 0, INT64_C(1) << 62, 0};
    float x[25] = {0};
    op_runner r;
    op_begin(&r, "", "Col2Im");
    op_ints(&r, "pads", pads, 4);
    op_add(&r, GRT_DTYPE_FLOAT, 3, (const int64_t[]){1, 5, 5}, x);
    op_add(&r, GRT_DTYPE_INT64, 1, (const int64_t[]){2}, image);
    op_add(&r, GRT_DTYPE_INT64, 1, (const int64_t[]){2}, block);
    r.constants = 6;
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(
        strstr(grt_last_error(), "attribute pads has the value 4611686018427387904 at index 2"));
    op_end(&r);
}
END_TEST

START_TEST(skips_beyond_all_texts)
{
    const int64_t counts[] = {0, 0}, columns[] = {0, 1}, pool[] = {1, 3, 7, 7}, x[] = {1, 2, 3};
    op_runner r;
    op_begin(&r, "", "TfIdfVectorizer");
    op_string(&r, "mode", "TF");
    op_int(&r, "min_gram_length", 2);
    op_int(&r, "max_gram_length", 2);
    op_int(&r, "max_skip_count", INT64_MAX);
    op_ints(&r, "pool_int64s", pool, 4);
    op_ints(&r, "ngram_counts", counts, 2);
    op_ints(&r, "ngram_indexes", columns, 2);
    op_add(&r, GRT_DTYPE_INT64, 1, (const int64_t[]){3}, x);
    op_run_ok(&r, 1);
    ck_assert(((const float *)r.out[0].t.data)[0] == 1); /* 1 and 3, with a gap */
    op_end(&r);
}
END_TEST

/* An empty tensor with NULL as data: no byte may be accessed. */
START_TEST(empty_tensors)
{
    static const char *const ops[] = {"Softmax", "Dropout", "BitCast"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        op_runner r;
        op_begin(&r, "", ops[i]);
        if (!strcmp(ops[i], "BitCast"))
            op_int(&r, "to", GRT_DTYPE_INT32);
        op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){3, 0}, NULL);
        op_run_ok(&r, 1);
        ck_assert_int_eq(grt_tensor_elements(&r.out[0].t), 0);
        op_end(&r);
    }
}
END_TEST

static void add_int(onnx_model *m, const char *name, int64_t value)
{
    onnx_initializer(m, m->graph, onnx_raw(m, name, GRT_DTYPE_INT64, "1", &value, sizeof value));
}

/* Each round's dim contains the previous one twice: 2^60 parts if they are counted one by one. */
START_TEST(dims_that_share_parts)
{
    onnx_model m = onnx_create();
    char in[64], half[8], third[8], out[8] = "x";
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n");
    add_int(&m, "zero", 0);
    add_int(&m, "end", INT64_MAX);
    add_int(&m, "two", 2);
    add_int(&m, "three", 3);
    for (int i = 0; i < 60; i++) {
        snprintf(half, sizeof half, "h%d", i);
        snprintf(third, sizeof third, "t%d", i);
        snprintf(in, sizeof in, "%s,zero,end,zero,two", out);
        onnx_node(&m, m.graph, "Slice", in, half);
        snprintf(in, sizeof in, "%s,zero,end,zero,three", out);
        onnx_node(&m, m.graph, "Slice", in, third);
        snprintf(in, sizeof in, "%s,%s", half, third);
        snprintf(out, sizeof out, "y%d", i);
        onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", in, out), "axis", 0);
    }
    onnx_output(&m, m.graph, out);
    float x[8] = {0};
    const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {8}, .data = x};
    ck_assert_msg(try_model(&m, &t) == GRT_OK, "%s", grt_last_error());
    onnx_release(&m);
}
END_TEST

/* What does not fit is named with its type: as the model has it, and as it is in the run. */
START_TEST(errors_name_the_inputs)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "a", GRT_DTYPE_FLOAT, "n,3");
    onnx_input(&m, m.graph, "b", GRT_DTYPE_FLOAT, "4,5");
    onnx_node(&m, m.graph, "MatMul", "a,b", "y");
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, "(inputs: 'a' float32[nx3], 'b' float32[4x5])");
    float data[6] = {0};
    const grt_tensor x = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {2, 3}, .data = data};
    m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,m");
    onnx_node(&m, m.graph, "Det", "x", "y");
    onnx_output(&m, m.graph, "y");
    assert_says(&m, &x, GRT_STATUS_INVALID_ARGUMENT, "found 2 x 3 (inputs: 'x' float32[2x3])");
}
END_TEST

/* Offsets, bias and mask of half the width would be read behind their ends. */
START_TEST(a_deformed_convolution_of_two_dtypes)
{
    const int32_t odd = 2 + _i; /* offset, bias, mask */
    static const int64_t dims[][4] = {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 8, 2, 2}, {1}, {1, 4, 2, 2}};
    op_runner r;
    op_begin(&r, "", "DeformConv");
    static float values[32];
    for (int32_t i = 0; i < 5; i++)
        op_add(&r, i == odd ? GRT_DTYPE_BFLOAT16 : GRT_DTYPE_FLOAT, i == 3 ? 1 : 4, dims[i], values);
    char says[64];
    snprintf(says, sizeof says, "inputs 0 and %d must have the same dtype", odd);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), says) != NULL, "%s", grt_last_error());
    op_end(&r);
}
END_TEST

/* Of an input of unknown rank: the rule knows no sizes, and a kernel is made all the same. */
START_TEST(windows_that_there_are_not)
{
    static const struct {
        const char *op, *attr;
        int64_t value;
        const char *says;
    } cases[] = {
        {"Conv", "dilations", -INT64_MAX,
         "attribute dilations has the value -9223372036854775807 at index 1; it must lie in [1, 2147483647]"},
        {"Conv", "strides", 0, "attribute strides has the value 0 at index 1"},
        {"Conv", "pads", INT64_MIN, "it must lie in [-2147483647, 2147483647]"},
        {"Conv", "kernel_shape", INT64_MAX, "attribute kernel_shape"},
        {"Conv", "group", 0, "attribute group has the value 0; it must lie in [1, 2147483647]"},
        {"ConvTranspose", "output_padding", -1, "it must lie in [0, 2147483647]"},
        {"ConvTranspose", "output_shape", -1, "attribute output_shape has the value -1 at index 1"},
    };
    int64_t both[] = {1, cases[_i].value};
    const float weights[4] = {0};
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, NULL);
    onnx_initializer(&m, m.graph, onnx_raw(&m, "w", GRT_DTYPE_FLOAT, "1,1,2,2", weights, sizeof weights));
    Onnx__NodeProto *node = onnx_node(&m, m.graph, cases[_i].op, "x,w", "y");
    if (!strcmp(cases[_i].attr, "group"))
        onnx_attr_int(&m, node, "group", cases[_i].value);
    else {
        Onnx__AttributeProto *ints =
            onnx_attr(&m, node, cases[_i].attr, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
        ints->n_ints = 2;
        ints->ints = both;
    }
    onnx_output(&m, m.graph, "y");
    assert_says(&m, NULL, GRT_STATUS_INVALID_MODEL, cases[_i].says);
}
END_TEST

Suite *suite_test_bad_models(void)
{
    Suite *suite = suite_create("bad models");
    TCase *tests = tcase_create("bad models");
    tcase_add_test(tests, a_sequence_is_no_tensor);
    tcase_add_test(tests, an_optional_is_no_index);
    tcase_add_test(tests, old_resize_without_scales);
    tcase_add_test(tests, a_feature_is_missing);
    tcase_add_test(tests, a_default_of_other_dims);
    tcase_add_test(tests, dtypes_that_there_are_not);
    tcase_add_test(tests, flex_attention_of_complex_numbers);
    tcase_add_test(tests, flex_attention_in_a_type_of_no_fractions);
    tcase_add_test(tests, a_grid_of_fewer_batches);
    tcase_add_test(tests, an_axis_beyond_the_rank);
    tcase_add_test(tests, an_only_output_that_is_left_out);
    tcase_add_test(tests, a_past_of_another_dtype);
    tcase_add_test(tests, pads_beyond_all_images);
    tcase_add_test(tests, skips_beyond_all_texts);
    tcase_add_test(tests, errors_name_the_inputs);
    tcase_add_test(tests, empty_tensors);
    tcase_add_test(tests, dims_that_share_parts);
    tcase_add_loop_test(tests, windows_that_there_are_not, 0, 7);
    tcase_add_loop_test(tests, a_deformed_convolution_of_two_dtypes, 0, 3);
    suite_add_tcase(suite, tests);
    return suite;
}

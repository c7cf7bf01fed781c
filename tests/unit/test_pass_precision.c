/* SPDX-License-Identifier: Apache-2.0 */
/* Narrowing to 16-bit floats: what switches, what stays, where casts lie; TF32 marks. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include "src/base/text.h"

#include <math.h>
#include <string.h>

static const char *ops_after(const char *text, grt_precision precision, ir_module **out_module)
{
    ir_module *module = ir_text(text);
    grt_target target = ir_text_target();
    pass_context context = {.module = module, .target = &target, .level = 2, .precision = precision};
    ck_assert_int_eq(pass_precision(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(module), GRT_OK);
    *out_module = module;
    return ir_text_ops(module);
}

static void check(const char *text, grt_precision precision, const char *expected)
{
    ir_module *module;
    ck_assert_str_eq(ops_after(text, precision, &module), expected);
    for (int32_t i = 0; i < module->main->n_outputs; i++)
        ck_assert_int_eq(module->main->outputs[i].value->type.dtype, GRT_DTYPE_FLOAT);
    ir_module_release(module);
}

START_TEST(a_chain_has_casts_at_its_ends)
{
    check("in x f32 2,4\n"
          "const w f32 4,4\n"
          "const b f32 4\n"
          "a = MatMul x w\n"
          "c = Add a b\n"
          "d = Relu c\n"
          "e = MatMul d w\n"
          "out e\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul Add Relu MatMul Cast");
}
END_TEST

/* Linear attention divides a sum of products by another, both far beyond float16 with many tokens; a product
 * that is divided by something else is not. */
START_TEST(quotients_of_products_stay_wide)
{
    check("in q f32 2,9,4\n"
          "in k f32 2,4,9\n"
          "in v f32 2,9,5\n"
          "const w f32 4,4\n"
          "const s f32 - 1e-3\n"
          "const b i64 1 0\n"
          "const m i64 1 4\n"
          "const e i64 1 5\n"
          "const x i64 1 2\n"
          "p = MatMul q w\n"
          "a = MatMul k v\n"
          "y = MatMul p a\n"
          "n = Slice y b m x\n"
          "r = Slice y m e x\n"
          "d = Add r s\n"
          "z = Div n d\n"
          "o = MatMul z w\n"
          "out o\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul Cast MatMul MatMul Slice Slice Add Div Cast MatMul Cast");
    check("in q f32 2,9,4\n"
          "in k f32 2,4,9\n"
          "in d f32 2,9,1\n"
          "y = MatMul q k\n"
          "z = Div y d\n"
          "out z\n",
          GRT_PRECISION_FLOAT16, "Cast Cast Cast MatMul Div Cast");
}
END_TEST

/* What is left of small networks that read the value t. */
static void check_networks(const char *before, const char *expected)
{
    grt_text text = {0};
    grt_text_add(&text,
                 "%sconst w f32 20,6,5\nt = Transpose x perm=1,0,2\nu = graphrt::MatMul t w activation=Relu\n"
                 "y = Transpose u perm=1,0,2\nout y\n",
                 before);
    ir_module *module = ir_text(grt_text_get(&text));
    grt_target target = ir_text_target();
    pass_context context = {
        .module = module, .target = &target, .level = 2, .precision = GRT_PRECISION_FLOAT16};
    (void)ir_text_pass(module, "networks");
    (void)ir_text_pass(module, "dce");
    ck_assert_int_eq(pass_precision(&context), GRT_OK);
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
    grt_text_release(&text);
}

/* Reading takes all of their time. */
START_TEST(networks_follow_what_they_read)
{
    check_networks("in x f32 3,20,6\n", "graphrt::Networks");
    check_networks("in z f32 3,20,6\nconst v f32 6,6\nx = MatMul z v\n",
                   "Cast MatMul graphrt::Networks Cast");
}
END_TEST

START_TEST(what_overflows_stays)
{
    check("in x f32 2,4\n"
          "const w f32 4,4\n"
          "a = MatMul x w\n"
          "e = Exp a\n"
          "d = Div e a\n"
          "y = MatMul d w\n"
          "out y\n",
          GRT_PRECISION_BFLOAT16, "Cast MatMul Cast Exp Div Cast MatMul Cast");
}
END_TEST

/* A sum of few numbers is narrow as Adds of them are. */
START_TEST(short_sums_are_narrow)
{
    check("in x f32 2,4,2\n"
          "const w f32 2,2\n"
          "const last i64 1 -1\n"
          "a = MatMul x w\n"
          "y = ReduceSum a last\n"
          "out y\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul ReduceSum Cast");
    check("in x f32 2,4,9\n"
          "const w f32 9,9\n"
          "const last i64 1 -1\n"
          "a = MatMul x w\n"
          "y = ReduceSum a last\n"
          "out y\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul graphrt::ReduceSum");
}
END_TEST

START_TEST(long_sums_read_narrow_numbers)
{
    check("in x f32 2,4,16\n"
          "const w f32 16,16\n"
          "const middle i64 1 1\n"
          "a = MatMul x w\n"
          "y = ReduceL2 a middle\n"
          "z = ReduceLogSum x middle\n"
          "out y\n"
          "out z\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul graphrt::ReduceL2 ReduceLogSum");
    check("in x f32 2,4,16\n"
          "const middle i64 1 1\n"
          "y = ReduceL1 x middle\n"
          "out y\n",
          GRT_PRECISION_FLOAT16, "ReduceL1");
}
END_TEST

static void check_exceptions(grt_precision precision, const char *exceptions, const char *expected)
{
    ir_module *module = ir_text("in x f32 2,4\n"
                                "const w f32 4,4\n"
                                "a = MatMul x w\n"
                                "b = MatMul a w\n"
                                "c = MatMul b w\n"
                                "out c\n");
    grt_target target = ir_text_target();
    const char *const names[] = {"first", "second+bias", "third"};
    int i = 0;
    IR_FOR_EACH_NODE (node, module->main)
        node->desc.name = names[i++];
    pass_context context = {
        .module = module, .target = &target, .level = 2, .precision = precision, .exceptions = exceptions};
    ck_assert_int_eq(pass_precision(&context), GRT_OK);
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
}

START_TEST(nodes_are_excepted_by_name)
{
    check_exceptions(GRT_PRECISION_FLOAT16, "second=fp32", "Cast MatMul Cast MatMul Cast MatMul Cast");
    check_exceptions(GRT_PRECISION_FLOAT16, "bi?s=fp32", "Cast MatMul Cast MatMul Cast MatMul Cast");
    check_exceptions(GRT_PRECISION_FLOAT16, "f*=fp32,th*=fp32", "MatMul Cast MatMul Cast MatMul");
    check_exceptions(GRT_PRECISION_MODEL, "third=bf16", "MatMul MatMul Cast MatMul Cast");
    check_exceptions(GRT_PRECISION_TF32, "first=fp16", "Cast MatMul Cast MatMul MatMul");
}
END_TEST

/* A mask that hides by a number beyond float16, or is bounded by one, keeps it: rows that are hidden
 * altogether have equal weights. Others are narrowed. */
START_TEST(masks_that_hide_keep_their_type)
{
    const char *start = "in q f32 2,2,3,4\n"
                        "in m bool 2,1,3,3\n"
                        "in a f32 2,1,3,3\n"
                        "const z f32 - 0\n"
                        "const low f32 - -3e38\n"
                        "const mild f32 - -10000\n";
    const char *masks[] = {"w = Where m z low\n", "w = Where m z mild\n", "w = Relu a\n", "w = Max a low\n",
                           "w = Max a mild\n"};
    const char *expected[] = {"Cast Where Attention Cast", "Cast Where Cast Attention Cast",
                              "Cast Relu Cast Attention Cast", "Cast Max Attention Cast",
                              "Cast Max Cast Attention Cast"};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        grt_text text = {0};
        grt_text_add(&text, "%s%sy = Attention q q q w\nout y\n", start, masks[i]);
        check(grt_text_get(&text), GRT_PRECISION_FLOAT16, expected[i]);
        grt_text_release(&text);
    }
}
END_TEST

/* What a model widened and moved is moved as it was; computed in float32, it is narrowed behind that. The
 * nodes that others may read are left. */
START_TEST(moves_of_what_was_widened)
{
    static const char *const between[] = {"u = Reshape t shape\n", "u = Exp t\n"};
    static const char *const expected[] = {"Cast Transpose Transpose Reshape Reshape MatMul Cast",
                                           "Cast Transpose Exp Cast MatMul Cast"};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        grt_text text = {0};
        grt_text_add(&text,
                     "in x f16 2,3,4\nconst w f32 3,5\nconst shape i64 3 2 4 3\nc = Cast x to=1\n"
                     "t = Transpose c perm=0,2,1\n%sy = MatMul u w\nout y\n",
                     between[i]);
        check(grt_text_get(&text), GRT_PRECISION_FLOAT16, expected[i]);
        grt_text_release(&text);
    }
}
END_TEST

START_TEST(one_cast_serves_all_users)
{
    check("in x f32 4,4\n"
          "const w f32 4,4\n"
          "a = MatMul x w\n"
          "b = MatMul w x\n"
          "c = Exp a\n"
          "d = Log a\n"
          "e = Add b a\n"
          "f = Add e e\n"
          "out c\n"
          "out d\n"
          "out f\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul Cast MatMul Exp Log Add Add Cast");
}
END_TEST

START_TEST(elementwise_work_on_inputs_stays)
{
    check("in x f32 2,4\n"
          "const s f32 - 2\n"
          "a = Mul x s\n"
          "y = Relu a\n"
          "out y\n",
          GRT_PRECISION_FLOAT16, "Mul Relu");
}
END_TEST

START_TEST(an_epsilon_does_not_vanish)
{
    check("in x f32 4,4\n"
          "const w f32 4,4\n"
          "const eps f32 - 1e-12\n"
          "a = MatMul x w\n"
          "b = Add a eps\n"
          "out b\n",
          GRT_PRECISION_FLOAT16, "Cast MatMul Cast Add");
    check("in x f32 4,4\n"
          "const w f32 4,4\n"
          "const eps f32 - 1e-12\n"
          "a = MatMul x w\n"
          "b = Add a eps\n"
          "out b\n",
          GRT_PRECISION_BFLOAT16, "Cast MatMul Add Cast");
}
END_TEST

START_TEST(limits_stay_finite)
{
    ir_module *module;
    ops_after("in x f32 4,4\n"
              "const w f32 4,4 -3e38\n"
              "a = MatMul x w\n"
              "out a\n",
              GRT_PRECISION_FLOAT16, &module);
    const ir_node *product = ir_text_node(module, "MatMul", 0);
    const grt_tensor *w = ir_in(product, 1)->type.data;
    ck_assert_int_eq(w->dtype, GRT_DTYPE_FLOAT16);
    ck_assert_uint_eq(((const uint16_t *)w->data)[0], 0xfbffu);
    ir_module_release(module);
}
END_TEST

START_TEST(tables_are_narrowed_where_they_are_read)
{
    check("in i i64 3\n"
          "const t f32 8,4\n"
          "const w f32 4,4\n"
          "a = Gather t i\n"
          "b = MatMul a w\n"
          "out b\n",
          GRT_PRECISION_FLOAT16, "Gather MatMul Cast");
}
END_TEST

START_TEST(tf32_marks_products)
{
    ir_module *module;
    ck_assert_str_eq(ops_after("in x f32 4,4\n"
                               "const w f32 4,4\n"
                               "a = MatMul x w\n"
                               "b = Relu a\n"
                               "out b\n",
                               GRT_PRECISION_TF32, &module),
                     "MatMul Relu");
    ck_assert_str_eq(grt_attr_string(&ir_text_node(module, "MatMul", 0)->desc, "math", ""), "tf32");
    ck_assert_str_eq(grt_attr_string(&ir_text_node(module, "Relu", 0)->desc, "math", ""), "");
    ir_module_release(module);
}
END_TEST

/* Where the target gains by products alone: their math is bfloat16, and values between stay as they are. */
START_TEST(products_by_constants_are_bfloat16)
{
    ir_module *module = ir_text("in x f32 4,4\n"
                                "in v f32 4,4\n"
                                "const w f32 4,4\n"
                                "a = MatMul x w\n"
                                "b = Relu a\n"
                                "c = MatMul b v\n"
                                "d = Gemm c w transA=1\n"
                                "e = Gemm d w transB=1\n"
                                "out e\n");
    static const char *const expected[] = {"bf16", "", "", "", "bf16"};
    grt_target target = ir_text_target();
    pass_context context = {
        .module = module, .target = &target, .level = 2, .precision = GRT_PRECISION_BFLOAT16};
    ck_assert(target.traits->bfloat16_products);
    ck_assert_int_eq(pass_bfloat16_products(&context), GRT_OK);
    ck_assert_int_eq(pass_precision(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(module), GRT_OK);
    ck_assert_str_eq(ir_text_ops(module), "MatMul Relu MatMul Gemm Gemm");
    int i = 0;
    IR_FOR_EACH_NODE (node, module->main)
        ck_assert_str_eq(grt_attr_string(&node->desc, "math", ""), expected[i++]);
    ir_module_release(module);
}
END_TEST

START_TEST(what_is_narrow_by_itself_is_left_alone)
{
    ir_module *module;
    ck_assert_str_eq(ops_after("in x f16 4,4\n"
                               "const w f16 4,4\n"
                               "a = MatMul x w\n"
                               "b = Relu a\n"
                               "out b\n",
                               GRT_PRECISION_FLOAT16, &module),
                     "MatMul Relu");
    ir_module_release(module);
}
END_TEST

START_TEST(nothing_is_done_unasked)
{
    check("in x f32 4,4\n"
          "const w f32 4,4\n"
          "a = MatMul x w\n"
          "out a\n",
          GRT_PRECISION_MODEL, "MatMul");
}
END_TEST

/* 8-bit numbers become 16-bit ones at once; float32 is for others that read them. */
START_TEST(what_is_dequantised_is_narrow)
{
    check("in x u8 4,8\n"
          "const s f32 - 0.5\n"
          "const w f32 8,4\n"
          "d = DequantizeLinear x s\n"
          "y = MatMul d w\n"
          "out y\n",
          GRT_PRECISION_FLOAT16, "DequantizeLinear DequantizeLinear MatMul Cast");
}
END_TEST

Suite *suite_test_pass_precision(void);
UNIT_SUITE(test_pass_precision, NULL, NULL, a_chain_has_casts_at_its_ends, quotients_of_products_stay_wide,
           networks_follow_what_they_read, what_overflows_stays, short_sums_are_narrow,
           long_sums_read_narrow_numbers, nodes_are_excepted_by_name, masks_that_hide_keep_their_type,
           moves_of_what_was_widened, one_cast_serves_all_users, elementwise_work_on_inputs_stays,
           an_epsilon_does_not_vanish, limits_stay_finite, tables_are_narrowed_where_they_are_read,
           tf32_marks_products, products_by_constants_are_bfloat16, what_is_narrow_by_itself_is_left_alone,
           nothing_is_done_unasked, what_is_dequantised_is_narrow)

/* SPDX-License-Identifier: Apache-2.0 */
/* Products by constant weights normalise their input and gate their result. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define NORM     "const g f16 64\nn = RMSNormalization x g axis=-1\n"
#define PRODUCT  "const w u8 64,32\nconst s f16 32\na = graphrt::WMatMul n w s axis=1\n"
#define HALVES   "const h i64 2 16 16\nb,c = Split a h axis=-1\n"
#define GATE     "d = Swish b\ny = Mul d c\n"
#define EXAMPLE  "in x f16 2,64\n" NORM PRODUCT HALVES GATE "out y\n"
#define EXPECTED "graphrt::WMatMul"

/* For a device that has every kernel. */
static ir_module *weight_steps_run(const char *text, const char *expected)
{
    ir_module *m = ir_text(text);
    grt_target target = ir_text_target();
    target.supports = ir_text_takes_all;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_weight_steps(&context), GRT_OK);
    ck_assert_int_eq(pass_dce(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_str_eq(ir_text_ops(m), expected);
    return m;
}

START_TEST(a_product_takes_both)
{
    ir_module *m = weight_steps_run(EXAMPLE, EXPECTED);
    const ir_node *node = ir_text_node(m, "WMatMul", 0);
    ck_assert_int_eq(node->n_in, 7);
    ck_assert_int_eq(ir_in(node, 6)->type.rank, 1);
    ck_assert_int_eq(grt_attr_int(&node->desc, "gated", 0), 1);
    ck_assert(grt_attr_float(&node->desc, "epsilon", 0) > 0);
    ck_assert(grt_dim_equals(m->dims, node->out[0]->type.dims[1], 16));
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ir_module_release(m);
}
END_TEST

START_TEST(what_others_read_stays)
{
    /* the normalised x; a half; the gate's other half twice */
    ir_module_release(weight_steps_run("in x f16 2,64\n" NORM PRODUCT "out a\nout n\n",
                                       "RMSNormalization graphrt::WMatMul"));
    ir_module_release(weight_steps_run("in x f16 2,64\n" NORM PRODUCT HALVES GATE "out y\nout c\n",
                                       "graphrt::WMatMul Split Swish Mul"));
    ir_module_release(weight_steps_run("in x f16 2,64\n" NORM PRODUCT HALVES
                                       "d = Swish b\ny = Mul d d\nout y\nout c\n",
                                       "graphrt::WMatMul Split Swish Mul"));
}
END_TEST

START_TEST(other_axes_and_parts_stay)
{
    ir_module_release(weight_steps_run(
        "in x f16 2,64\nconst g f16 2,64\nn = RMSNormalization x g axis=0\n" PRODUCT "out a\n",
        "RMSNormalization graphrt::WMatMul"));
    ir_module_release(weight_steps_run("in n f16 2,64\n" PRODUCT
                                       "const h i64 2 8 24\nb,c = Split a h axis=-1\nd = Swish b\n"
                                       "e = Swish c\nout d\nout e\n",
                                       "graphrt::WMatMul Split Swish Swish"));
}
END_TEST

/* The CPU has no such kernel. */
START_TEST(targets_without_kernels_keep_the_steps)
{
    ir_text_check(
        "in x f32 2,64\nconst g f32 64\nn = RMSNormalization x g axis=-1\nconst w u8 64,32\nconst s f32 32\n"
        "a = graphrt::WMatMul n w s axis=1\n" HALVES GATE "out y\n",
        "weight_steps", "RMSNormalization graphrt::WMatMul Split Swish Mul");
}
END_TEST

UNIT_SUITE(test_pass_weight_steps, NULL, NULL, a_product_takes_both, what_others_read_stays,
           other_axes_and_parts_stay, targets_without_kernels_keep_the_steps)

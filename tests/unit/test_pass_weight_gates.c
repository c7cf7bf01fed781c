/* SPDX-License-Identifier: Apache-2.0 */
/* The two products of a gated layer become one. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include "src/base/tensor.h"

#define INPUT   "in x f16 2,64\n"
#define FIRST   "const w u8 64,16\nconst s f16 16\na = graphrt::WMatMul x w s axis=1\n"
#define SECOND  "const v u8 64,16\nconst t f16 16\nb = graphrt::WMatMul x v t axis=1\n"
#define GATE    "c = Swish a\ny = Mul c b\nout y\n"
#define BLOCKED "transB=1 axis=1 block_size=32"

/* For a device that has every kernel, and gains by larger products or does not. */
static ir_module *weight_gates_run_for(bool gains, const char *text, const char *expected)
{
    ir_module *m = ir_text(text);
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.merges_products = gains;
    target.traits = &traits;
    target.supports = ir_text_takes_all;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_weight_gates(&context), GRT_OK);
    ck_assert_int_eq(pass_dce(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_str_eq(ir_text_ops(m), expected);
    return m;
}

static ir_module *weight_gates_run(const char *text, const char *expected)
{
    return weight_gates_run_for(true, text, expected);
}

START_TEST(two_products_become_one)
{
    ir_module *m = weight_gates_run(INPUT FIRST SECOND GATE, "graphrt::WMatMul");
    const ir_node *node = ir_text_node(m, "WMatMul", 0);
    ck_assert_int_eq(grt_attr_int(&node->desc, "gated", 0), 1);
    ck_assert_int_eq(ir_in(node, 1)->type.data->dims[1], 32);
    ck_assert_int_eq(ir_in(node, 2)->type.data->dims[0], 32);
    ck_assert(grt_dim_equals(m->dims, node->out[0]->type.dims[1], 16));
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ir_module_release(m);
    /* whichever is written first */
    ir_module_release(
        weight_gates_run(INPUT SECOND FIRST "c = Swish a\ny = Mul b c\nout y\n", "graphrt::WMatMul"));
}
END_TEST

/* Bytes of input i of the product, in a row of `row` of them: `first` in the first half, then `second`. */
static void weight_gates_check(const ir_node *node, int32_t i, int row, int first, int second)
{
    const grt_tensor *data = ir_in(node, i)->type.data;
    for (int k = 0; k < (int)grt_tensor_bytes(data); k++)
        ck_assert_int_eq(((const uint8_t *)data->data)[k], k % row < row / 2 ? first : second);
}

/* Those of the gate come first, whichever product is first in the model. */
START_TEST(weights_lie_side_by_side)
{
    ir_module *m =
        weight_gates_run(INPUT "const w u8 64,16 3\nconst s f16 16\nconst v u8 64,16 5\nconst t f16 16\n"
                               "b = graphrt::WMatMul x v t axis=1\n"
                               "a = graphrt::WMatMul x w s axis=1\n" GATE,
                         "graphrt::WMatMul");
    weight_gates_check(ir_text_node(m, "WMatMul", 0), 1, 32, 3, 5);
    ir_module_release(m);
    m = weight_gates_run(INPUT "const w u8 16,64 3\nconst s f16 16,2\nconst z u8 16,2 7\nconst k f16 16\n"
                               "const v u8 16,64 5\nconst t f16 16,2\nconst u u8 16,2 9\nconst l f16 16\n"
                               "b = graphrt::WMatMul x v t u l " BLOCKED "\n"
                               "a = graphrt::WMatMul x w s z k " BLOCKED "\n" GATE,
                         "graphrt::WMatMul");
    const ir_node *node = ir_text_node(m, "WMatMul", 0);
    ck_assert_int_eq(node->n_in, 5);
    for (int32_t i = 1; i < 5; i++)
        ck_assert_int_eq(ir_in(node, i)->type.data->dims[0], 32);
    weight_gates_check(node, 1, 32 * 64, 3, 5);
    weight_gates_check(node, 3, 32 * 2, 7, 9);
    ir_module_release(m);
}
END_TEST

START_TEST(one_zero_point_stays_one)
{
    ir_module *m =
        weight_gates_run(INPUT "const z u8 - 8\n"
                               "const w u8 64,16\nconst s f16 16\na = graphrt::WMatMul x w s z axis=1\n"
                               "const v u8 64,16\nconst t f16 16\nb = graphrt::WMatMul x v t z axis=1\n" GATE,
                         "graphrt::WMatMul");
    ck_assert_int_eq(ir_in(ir_text_node(m, "WMatMul", 0), 3)->type.rank, 0);
    ir_module_release(m);
}
END_TEST

START_TEST(other_products_stay)
{
    static const char kept[] = "graphrt::WMatMul graphrt::WMatMul Swish Mul";
    /* one of them is read by others too */
    ir_module_release(weight_gates_run(INPUT FIRST SECOND GATE "out b\n", kept));
    ir_module_release(weight_gates_run(INPUT FIRST SECOND GATE "out c\n", kept));
    /* another x; other widths; a scale of all columns; one weight for both */
    ir_module_release(
        weight_gates_run(INPUT "in n f16 2,64\n" FIRST
                               "const v u8 64,16\nconst t f16 16\nb = graphrt::WMatMul n v t axis=1\n" GATE,
                         kept));
    ir_module_release(weight_gates_run(
        INPUT FIRST "const v u8 64,1\nconst t f16 1\nb = graphrt::WMatMul x v t axis=1\n" GATE, kept));
    ir_module_release(weight_gates_run(
        INPUT FIRST "const v u8 64,16\nconst t f16 1\nb = graphrt::WMatMul x v t axis=1\n" GATE, kept));
    ir_module_release(
        weight_gates_run(INPUT FIRST "const t f16 16\nb = graphrt::WMatMul x w t axis=1\n" GATE, kept));
    /* Swish with a factor */
    ir_module_release(
        weight_gates_run(INPUT FIRST SECOND "c = Swish a alpha=2.0\ny = Mul c b\nout y\n", kept));
}
END_TEST

START_TEST(targets_that_do_not_gain_keep_both)
{
    ir_module_release(
        weight_gates_run_for(false, INPUT FIRST SECOND GATE, "graphrt::WMatMul graphrt::WMatMul Swish Mul"));
}
END_TEST

UNIT_SUITE(test_pass_weight_gates, NULL, NULL, two_products_become_one, weights_lie_side_by_side,
           one_zero_point_stays_one, other_products_stay, targets_that_do_not_gain_keep_both)

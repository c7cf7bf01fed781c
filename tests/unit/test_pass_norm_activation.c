/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of groups and images apply the activation behind them. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define GROUP            \
    "in x f32 2,8,5,5\n" \
    "const s f32 8\n"    \
    "const b f32 8\n"    \
    "h = GroupNormalization x s b num_groups=4\n"

static int64_t join(ir_module *m, bool gains)
{
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.merges_small_steps = gains;
    target.traits = &traits;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_norm_activation(&context), GRT_OK);
    return context.changed;
}

START_TEST(norms_take_the_activation)
{
    ir_module *m = ir_text(GROUP "y = Swish h alpha=1.0\nout y\n");
    ck_assert_int_eq(join(m, true), 1);
    ck_assert_str_eq(ir_text_ops(m), "graphrt::GroupNormalization");
    const ir_node *norm = ir_text_node(m, "GroupNormalization", 0);
    ck_assert_str_eq(grt_attr_string(&norm->desc, "activation", ""), "Silu");
    ck_assert_float_eq(grt_attr_float(&norm->desc, "alpha", 0), 1);
    ck_assert_int_eq(grt_attr_int(&norm->desc, "num_groups", 0), 4);
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_int_eq(join(m, true), 0);
    ir_module_release(m);
}
END_TEST

/* Results stay the same. */
START_TEST(as_by_two_steps)
{
    ir_text_check(GROUP "y = Swish h alpha=1.0\nout y\n", "norm_activation", "graphrt::GroupNormalization");
}
END_TEST

START_TEST(one_activation_alone)
{
    ir_module *m = ir_text("in x f32 2,8,5,5\nconst s f32 8\nconst b f32 8\n"
                           "h = InstanceNormalization x s b\nr = Relu h\ny = Tanh r\nout y\n");
    ck_assert_int_eq(join(m, true), 1);
    ck_assert_str_eq(ir_text_ops(m), "graphrt::InstanceNormalization Tanh");
    ir_module_release(m);
}
END_TEST

START_TEST(others_read_the_norm)
{
    ir_module *m = ir_text(GROUP "r = Relu h\ny = Add r h\nout y\n");
    ck_assert_int_eq(join(m, true), 0);
    ck_assert_str_eq(ir_text_ops(m), "GroupNormalization Relu Add");
    ir_module_release(m);
    m = ir_text(GROUP "y = Relu h\nout h\nout y\n");
    ck_assert_int_eq(join(m, true), 0);
    ir_module_release(m);
}
END_TEST

START_TEST(only_targets_that_gain)
{
    ir_module *m = ir_text(GROUP "y = Relu h\nout y\n");
    ck_assert_int_eq(join(m, false), 0);
    ck_assert_str_eq(ir_text_ops(m), "GroupNormalization Relu");
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_pass_norm_activation, NULL, NULL, norms_take_the_activation, as_by_two_steps,
           one_activation_alone, others_read_the_norm, only_targets_that_gain)

/* SPDX-License-Identifier: Apache-2.0 */
/* The IR verifier: a sound graph passes, each kind of damage is found and named. */
#include "tests/unit/onnx_model.h"

#include <check.h>
#include <string.h>

static onnx_model model;
static ir_module *module;
static ir_node *relu, *add; /* y = Relu(x); z = Add(y, y) */

static void setup(void)
{
    model = onnx_relu();
    onnx_node(&model, model.graph, "Add", "y,y", "z");
    onnx_output(&model, model.graph, "z");
    ck_assert_msg(onnx_import(&model, &module) == GRT_OK, "%s", grt_last_error());
    relu = module->main->first;
    add = module->main->last;
}

static void teardown(void)
{
    ir_module_release(module);
    onnx_release(&model);
}

static void assert_broken(const char *a, const char *b)
{
    ck_assert_int_eq(ir_verify(module), GRT_STATUS_INTERNAL);
    ck_assert_msg(strstr(grt_last_error(), a) && strstr(grt_last_error(), b),
                  "'%s' does not say '%s' and '%s'", grt_last_error(), a, b);
}

START_TEST(sound)
{
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(relu->out[0]->n_uses, 3); /* Add uses it twice, the graph once */
}
END_TEST

START_TEST(wrong_order)
{
    ir_node_move_before(add, relu);
    assert_broken("'the_Add'", "uses 'y', which is not defined before it");
}
END_TEST

START_TEST(removed_producer)
{
    ir_node_remove(relu);
    assert_broken("'the_Add'", "not defined");
}
END_TEST

START_TEST(miscounted_uses)
{
    relu->out[0]->n_uses++;
    assert_broken("'y'", "counts 4");
}
END_TEST

START_TEST(use_that_nobody_has)
{
    ir_value *stray = ir_value_create(module->main, "stray");
    ir_node_create(module->main, NULL, "", "Relu", "left", 1, &stray, 1);
    assert_broken("'left'", "'stray'");
}
END_TEST

START_TEST(two_of_one_name)
{
    add->out[0]->name = "y";
    assert_broken("two values", "'y'");
}
END_TEST

START_TEST(wrong_producer)
{
    add->out[0]->producer = relu;
    assert_broken("'the_Add'", "'z'");
}
END_TEST

START_TEST(wrong_arity)
{
    ir_node_drop_inputs(add, 1);
    assert_broken("Add node 'the_Add'", "1 inputs");
}
END_TEST

START_TEST(wrong_row)
{
    add->row = relu->row;
    assert_broken("Add node 'the_Add'", "row of another op");
}
END_TEST

START_TEST(foreign_dim)
{
    static const grt_dim dims[] = {0, 1 << 30};
    add->out[0]->type.rank = 2;
    add->out[0]->type.dims = dims;
    assert_broken("'z'", "dim 1");
}
END_TEST

START_TEST(torn_list)
{
    module->main->n_nodes++;
    assert_broken("graph 'g'", "counts 3");
}
END_TEST

Suite *suite_test_verify(void);
Suite *suite_test_verify(void)
{
    Suite *suite = suite_create("verify");
    TCase *tcase = tcase_create("damage");
    tcase_add_checked_fixture(tcase, setup, teardown);
    const TTest *const tests[] = {
        sound,           wrong_order,    removed_producer, miscounted_uses, use_that_nobody_has,
        two_of_one_name, wrong_producer, wrong_arity,      wrong_row,       foreign_dim,
        torn_list};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}

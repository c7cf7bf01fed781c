/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inputs go where the plan has the dims that they give, and stay where only the run can tell. */
#include "tests/unit/ir_text.h"

#include <check.h>

/* Ops that are left when the pass, and dce behind it, are through. */
static void check_left(const char *text, const char *expected, int64_t dropped)
{
    ir_module *m = ir_text(text);
    ck_assert_int_eq(ir_text_pass(m, "drop_shape_inputs"), dropped);
    ir_text_pass(m, "dce");
    ck_assert_str_eq(ir_text_ops(m), expected);
    ir_module_release(m);
}

START_TEST(dims_of_inputs_are_known)
{
    check_left("in x f32 n,6\n"
               "s = Shape x start=0 end=1\n"
               "const r i64 2 2 3\n"
               "c = Concat s r axis=0\n"
               "y = Reshape x c\n"
               "out y\n",
               "Reshape", 1);
    check_left("in x f32 n,1\n"
               "const ax i64 1 1\n"
               "a = Squeeze x ax\n"
               "b = Unsqueeze a ax\n"
               "const t i64 2 1 3\n"
               "y = Tile b t\n"
               "out y\n",
               "Squeeze Unsqueeze Tile", 3);
}
END_TEST

START_TEST(dims_of_data_are_not)
{
    check_left("in x f32 n,6\n"
               "in s i64 2\n"
               "y = Reshape x s\n"
               "out y\n",
               "Reshape", 0);
    /* nor what is computed from such a value */
    check_left("in x f32 n,6\n"
               "in s i64 2\n"
               "a = Reshape x s\n"
               "b = Relu a\n"
               "t = Shape b\n"
               "y = Reshape b t\n"
               "out y\n",
               "Reshape Relu Shape Reshape", 0);
}
END_TEST

START_TEST(an_expand_that_may_not_fit_keeps_its_shape)
{
    check_left("in x f32 1,6\n"
               "in z f32 n\n"
               "s = Shape z\n"
               "const six i64 1 6\n"
               "c = Concat s six axis=0\n"
               "y = Expand x c\n"
               "out y\n",
               "Expand", 1);
    ir_module *m = ir_text("in x f32 n,6\n"
                           "in z f32 m\n"
                           "s = Shape z\n"
                           "const six i64 1 6\n"
                           "c = Concat s six axis=0\n"
                           "y = Expand x c\n"
                           "out y\n");
    /* n and m broadcast: whichever it is, the rule's own dims say so */
    ck_assert_int_eq(ir_text_pass(m, "drop_shape_inputs"), 1);
    ir_node *expand = ir_text_node(m, "Expand", 0);
    ck_assert_ptr_null(ir_in(expand, 1));
    ir_module_release(m);
}
END_TEST

START_TEST(bodies_keep_theirs)
{
    ir_module *m = ir_text("in x f32 2,6\n"
                           "in go bool -\n"
                           "const s i64 2 3 4\n"
                           "y = Reshape x s\n"
                           "out y\n");
    ir_node *branch = ir_node_create(m->main, NULL, "", "If", "if", 1, &m->main->inputs[1], 1);
    static const char *const names[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        ir_graph *body = ir_graph_create(m, branch, names[i]);
        ir_value *in[] = {m->main->inputs[0], ir_text_node(m, "Reshape", 0)->in[1].value};
        ir_node *inner = ir_node_create(body, NULL, "", "Reshape", "inner", 2, in, 1);
        ir_graph_add_output(body, inner->out[0]);
        ir_attr_set(branch, (grt_attr){.name = names[i], .kind = GRT_ATTR_GRAPH, .graph = body});
    }
    ir_graph_add_output(m->main, branch->out[0]);
    ck_assert_int_eq(op_infer_node(branch), GRT_OK);
    ck_assert_int_eq(ir_text_pass(m, "drop_shape_inputs"), 1);
    ck_assert_ptr_null(ir_in(ir_text_node(m, "Reshape", 0), 1));
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(ir_in(grt_attr_find(&branch->desc, names[i])->graph->first, 1));
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_drop_shape_inputs(void);
Suite *suite_test_pass_drop_shape_inputs(void)
{
    Suite *suite = suite_create("pass_drop_shape_inputs");
    TCase *all = tcase_create("all");
    tcase_add_test(all, dims_of_inputs_are_known);
    tcase_add_test(all, dims_of_data_are_not);
    tcase_add_test(all, an_expand_that_may_not_fit_keeps_its_shape);
    tcase_add_test(all, bodies_keep_theirs);
    suite_add_tcase(suite, all);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* If with a known condition: the branch that is taken moves out, in order, the other goes. */
#include "graph/ir/constant.h"
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"

#include <check.h>

/* An If over `condition` whose branches are Neg (then) and Abs, Exp (else) of x. */
static ir_node *add_if(ir_graph *graph, ir_value *condition, ir_value *x)
{
    ir_node *node = ir_node_create(graph, NULL, "", "If", "if", 1, &condition, 1);
    ir_graph *yes = ir_graph_create(graph->module, node, "then_branch");
    ir_graph *no = ir_graph_create(graph->module, node, "else_branch");
    ir_graph_add_output(yes, ir_node_create(yes, NULL, "", "Neg", "neg", 1, &x, 1)->out[0]);
    ir_node *abs = ir_node_create(no, NULL, "", "Abs", "abs", 1, &x, 1);
    ir_graph_add_output(no, ir_node_create(no, NULL, "", "Exp", "exp", 1, &abs->out[0], 1)->out[0]);
    ir_attr_set(node, (grt_attr){.name = "then_branch", .kind = GRT_ATTR_GRAPH, .graph = yes});
    ir_attr_set(node, (grt_attr){.name = "else_branch", .kind = GRT_ATTR_GRAPH, .graph = no});
    return node;
}

static ir_value *constant(ir_graph *graph, bool value)
{
    grt_tensor *t = ir_constant_create(graph->module, GRT_DTYPE_BOOL, 0, NULL);
    *(uint8_t *)t->data = value;
    return ir_constant(graph, NULL, t);
}

static void finish(ir_module *m, const ir_node *node)
{
    node->out[0]->name = "y";
    ir_graph_add_output(m->main, node->out[0]);
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
}

START_TEST(the_branch_that_is_taken_moves_out)
{
    for (int taken = 0; taken < 2; taken++) {
        ir_module *m = ir_text("in x f32 2,n\n");
        finish(m, add_if(m->main, constant(m->main, taken), m->main->inputs[0]));
        ck_assert_int_eq(ir_text_pass(m, "fold_if"), 1);
        ck_assert_str_eq(ir_text_ops(m), taken ? "Neg" : "Abs Exp");
        ck_assert_str_eq(m->main->outputs[0].value->name, "y");
        ck_assert_str_eq(m->main->last->desc.name, taken ? "neg" : "exp");
        ck_assert_int_eq(m->main->inputs[0]->n_uses, 1);
        ir_module_release(m);
    }
}
END_TEST

START_TEST(a_condition_of_the_run_stays)
{
    ir_module *m = ir_text("in x f32 2,n\nin go bool -\n");
    finish(m, add_if(m->main, m->main->inputs[1], m->main->inputs[0]));
    ck_assert_int_eq(ir_text_pass(m, "fold_if"), 0);
    ck_assert_str_eq(ir_text_ops(m), "If");
    ir_module_release(m);
}
END_TEST

/* Known in a branch that is not: that branch alone changes. Known around one that is: both go in one sweep.
 */
START_TEST(branches_of_branches)
{
    for (int outer = 0; outer < 2; outer++) {
        ir_module *m = ir_text("in x f32 2,n\nin go bool -\n");
        ir_value *x = m->main->inputs[0];
        ir_node *node = add_if(m->main, outer ? constant(m->main, true) : m->main->inputs[1], x);
        ir_graph *yes = grt_attr_find(&node->desc, "then_branch")->graph;
        ir_node *inner = add_if(yes, constant(m->main, false), yes->first->out[0]);
        ir_graph_set_output(yes, 0, inner->out[0]);
        finish(m, node);
        ck_assert_int_eq(ir_text_pass(m, "fold_if"), outer ? 2 : 1);
        ck_assert_str_eq(ir_text_ops(m), outer ? "Neg Abs Exp" : "If");
        ck_assert_int_eq(outer ? 3 : yes->n_nodes, 3);
        ir_module_release(m);
    }
}
END_TEST

Suite *suite_test_pass_fold_if(void);
Suite *suite_test_pass_fold_if(void)
{
    Suite *suite = suite_create("pass_fold_if");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_branch_that_is_taken_moves_out);
    tcase_add_test(all, a_condition_of_the_run_stays);
    tcase_add_test(all, branches_of_branches);
    suite_add_tcase(suite, all);
    return suite;
}

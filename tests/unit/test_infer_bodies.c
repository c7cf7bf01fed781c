/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of bodies: what If joins, and how Loop and Scan widen their states. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"

#include "graph/compile.h"

#include <check.h>
#include <string.h>

static ir_value *input(ir_graph *graph, const char *name, grt_dtype dtype, int32_t rank, const grt_dim *dims)
{
    ir_value *value = ir_value_create(graph, name);
    value->type = (ir_type){.dtype = dtype, .rank = rank, .dims = dims};
    ir_graph_add_input(graph, value, NULL);
    return value;
}

static ir_value *node(ir_graph *graph, const char *op, ir_value *a, ir_value *b)
{
    return ir_node_out(ir_node_create(graph, NULL, "", op, op, b ? 2 : 1, (ir_value *[]){a, b}, 1));
}

static ir_graph *body_of(ir_node *owner, const char *name)
{
    ir_graph *body = ir_graph_create(owner->graph->module, owner, name);
    ir_attr_set(owner, (grt_attr){.name = name, .kind = GRT_ATTR_GRAPH, .graph = body});
    return body;
}

static ir_module *module_with(grt_dim **out_dims)
{
    ir_module *m;
    ck_assert_int_eq(ir_module_create(&m), GRT_OK);
    m->main = ir_graph_create(m, NULL, "main");
    *out_dims = GRT_ARENA_ARRAY(m->arena, grt_dim, 2);
    (*out_dims)[0] = grt_dim_symbol(m->dims, "n");
    (*out_dims)[1] = grt_dim_const(m->dims, 4);
    return m;
}

/* x [n,4]; a Loop with one state that starts as x, and one scan output; `grow`: the state is doubled along
 * dim 0. */
static ir_node *loop_of(ir_module *m, const grt_dim *dims, bool grow)
{
    ir_value *x = input(m->main, "x", GRT_DTYPE_FLOAT, 2, dims), *in[3] = {NULL, NULL, x};
    ir_node *loop = ir_node_create(m->main, NULL, "", "Loop", "loop", 3, in, 2);
    ir_graph *body = body_of(loop, "body");
    input(body, "i", GRT_DTYPE_NONE, -1, NULL);
    ir_value *go_on = input(body, "go_on", GRT_DTYPE_NONE, -1, NULL);
    ir_value *state = input(body, "state", GRT_DTYPE_NONE, -1, NULL);
    ir_value *next = node(body, grow ? "Concat" : "Add", state, state);
    if (grow)
        ir_attr_set_int(next->producer, "axis", 0);
    ir_graph_add_output(body, node(body, "Identity", go_on, NULL));
    ir_graph_add_output(body, next);
    ir_graph_add_output(body, node(body, "Neg", state, NULL));
    ir_graph_add_output(m->main, loop->out[0]);
    ir_graph_add_output(m->main, loop->out[1]);
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
    return loop;
}

START_TEST(a_state_that_keeps_its_shape)
{
    grt_dim *dims;
    ir_module *m = module_with(&dims);
    ir_node *loop = loop_of(m, dims, false);
    const ir_type *state = &loop->out[0]->type, *stacked = &loop->out[1]->type;
    ck_assert_int_eq(state->dtype, GRT_DTYPE_FLOAT);
    ck_assert_int_eq(state->rank, 2);
    ck_assert_int_eq(state->dims[0], dims[0]);
    ck_assert_int_eq(state->dims[1], dims[1]);
    ck_assert_int_eq(stacked->rank, 3);
    ck_assert(!grt_dim_is_const(m->dims, stacked->dims[0], NULL));
    ck_assert_int_eq(stacked->dims[2], dims[1]);
    ir_module_release(m);
}
END_TEST

START_TEST(a_state_that_grows)
{
    grt_dim *dims;
    ir_module *m = module_with(&dims);
    ir_node *loop = loop_of(m, dims, true);
    const ir_type *state = &loop->out[0]->type;
    ck_assert_int_eq(state->rank, 2);
    ck_assert_int_ne(state->dims[0], dims[0]);
    ck_assert_int_eq(state->dims[1], dims[1]);
    /* what the body calls its first dim means nothing outside */
    const ir_graph *body = grt_attr_find(&loop->desc, "body")->graph;
    ck_assert_int_ne(state->dims[0], body->inputs[2]->type.dims[0]);
    ir_module_release(m);
}
END_TEST

START_TEST(branches_are_joined)
{
    grt_dim *dims;
    ir_module *m = module_with(&dims);
    ir_value *x = input(m->main, "x", GRT_DTYPE_FLOAT, 2, dims);
    ir_value *choice = input(m->main, "choice", GRT_DTYPE_BOOL, 0, dims);
    ir_node *branch = ir_node_create(m->main, NULL, "", "If", "if", 1, &choice, 2);
    ir_graph *yes = body_of(branch, "then_branch"), *no = body_of(branch, "else_branch");
    ir_value *wide = node(yes, "Concat", x, x);
    ir_attr_set_int(wide->producer, "axis", 0);
    ir_graph_add_output(yes, wide);
    ir_graph_add_output(yes, node(yes, "Neg", x, NULL));
    ir_graph_add_output(no, node(no, "Abs", x, NULL));
    ir_graph_add_output(no, node(no, "Shape", x, NULL));
    /* float32 against int64 */
    ck_assert_int_eq(ir_infer(m), GRT_STATUS_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "'if'"));
    ir_value *fixed = node(no, "Exp", x, NULL);
    ir_graph_set_output(no, 1, fixed);
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
    const ir_type *a = &branch->out[0]->type, *b = &branch->out[1]->type;
    ck_assert_int_eq(a->rank, 2);
    ck_assert_int_ne(a->dims[0], dims[0]);
    ck_assert_int_eq(a->dims[1], dims[1]);
    ck_assert_int_eq(b->dims[0], dims[0]);
    ir_module_release(m);
}
END_TEST

START_TEST(a_known_branch_moves_out)
{
    grt_dim *dims;
    ir_module *m = module_with(&dims);
    ir_value *x = input(m->main, "x", GRT_DTYPE_FLOAT, 2, dims);
    static uint8_t truth = 1;
    static const grt_tensor yes_please = {.dtype = GRT_DTYPE_BOOL, .data = &truth};
    ir_value *choice = ir_constant(m->main, "choice", &yes_please);
    ir_node *branch = ir_node_create(m->main, NULL, "", "If", "if", 1, &choice, 2);
    ir_graph *yes = body_of(branch, "then_branch"), *no = body_of(branch, "else_branch");
    ir_graph_add_output(yes, node(yes, "Neg", x, NULL));
    ir_graph_add_output(yes, x); /* a branch may hand on what is outside */
    ir_graph_add_output(no, node(no, "Abs", x, NULL));
    ir_graph_add_output(no, node(no, "Exp", x, NULL));
    branch->out[0]->name = "y";
    branch->out[1]->name = "z";
    ir_graph_add_output(m->main, branch->out[0]);
    ir_graph_add_output(m->main, branch->out[1]);
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(ir_text_pass(m, "fold_if"), 1);
    ck_assert_str_eq(ir_text_ops(m), "Neg Identity");
    ck_assert_str_eq(m->main->outputs[0].value->name, "y");
    ck_assert_str_eq(m->main->outputs[1].value->name, "z");
    ir_module_release(m);
}
END_TEST

START_TEST(nested_loops_end)
{
    grt_dim *dims;
    ir_module *m = module_with(&dims);
    ir_graph *graph = m->main;
    ir_value *x = input(graph, "x", GRT_DTYPE_FLOAT, 2, dims);
    enum { DEPTH = 30 };
    for (int i = 0; i < DEPTH; i++) {
        ir_node *loop = ir_node_create(graph, NULL, "", "Loop", "loop", 3, (ir_value *[]){NULL, NULL, x}, 1);
        ir_graph *body = body_of(loop, "body");
        input(body, "i", GRT_DTYPE_NONE, -1, NULL);
        ir_value *go_on = input(body, "go_on", GRT_DTYPE_NONE, -1, NULL);
        x = input(body, "state", GRT_DTYPE_NONE, -1, NULL);
        ir_value *wide = node(body, "Concat", x, x);
        ir_attr_set_int(wide->producer, "axis", 0);
        ir_graph_add_output(graph, loop->out[0]);
        ir_graph_add_output(body, go_on);
        if (i == DEPTH - 1)
            ir_graph_add_output(body, wide);
        graph = body;
        x = wide;
    }
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
    ir_module_release(m);
}
END_TEST

Suite *suite_test_infer_bodies(void)
{
    Suite *suite = suite_create("infer_bodies");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, a_state_that_keeps_its_shape);
    tcase_add_test(tc, a_state_that_grows);
    tcase_add_test(tc, branches_are_joined);
    tcase_add_test(tc, a_known_branch_moves_out);
    tcase_add_test(tc, nested_loops_end);
    suite_add_tcase(suite, tc);
    return suite;
}

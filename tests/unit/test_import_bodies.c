/* Import of nodes with bodies: what is seen from inside, and what from outside. */
#include "tests/unit/import_check.h"

/* y = If(c) { then: Abs(x) } { else: Neg(x) }: both bodies call their value v. */
static onnx_model branches(Onnx__GraphProto **out_then)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__GraphProto *then = onnx_graph(&m, "then"), *other = onnx_graph(&m, "else");
    onnx_node(&m, then, "Abs", "x", "v");
    onnx_output(&m, then, "v");
    onnx_node(&m, other, "Neg", "x", "v");
    onnx_output(&m, other, "v");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "c", "y");
    onnx_attr(&m, node, "then_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = then;
    onnx_attr(&m, node, "else_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = other;
    onnx_output(&m, m.graph, "y");
    *out_then = then;
    return m;
}

START_TEST(bodies_capture_outer_values)
{
    Onnx__GraphProto *then;
    onnx_model m = branches(&then);
    onnx_node(&m, m.graph, "Relu", "y", "v"); /* taken by the bodies before: the main graph keeps its name */
    onnx_output(&m, m.graph, "v");
    ir_module *module = import_ok(&m);
    ir_node *node = module->main->first;
    ir_graph *a = grt_attr_find(&node->desc, "then_branch")->graph,
             *b = grt_attr_find(&node->desc, "else_branch")->graph;
    ck_assert_ptr_eq(a->parent, node);
    ck_assert_ptr_eq(a->first->in[0].value, module->main->inputs[1]);
    ck_assert_int_eq(module->main->inputs[1]->n_uses, 2);
    ck_assert_str_ne(a->first->out[0]->name, b->first->out[0]->name);
    ck_assert_str_eq(module->main->outputs[1].value->name, "v");
    ck_assert_int_eq(module->source_nodes, 4);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(body_values_stay_inside)
{
    Onnx__GraphProto *then;
    onnx_model m = branches(&then);
    onnx_node(&m, m.graph, "Relu", "v", "z");
    import_refused(&m, "Relu node", "input 'v' is not defined");
}
END_TEST

START_TEST(nesting_is_bounded)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    Onnx__GraphProto *g = m.graph;
    for (int i = 0; i < 60; i++) {
        Onnx__GraphProto *inner = onnx_graph(&m, "inner");
        onnx_attr(&m, onnx_node(&m, g, "If", "c", ""), "then_branch",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)
            ->g = inner;
        g = inner;
    }
    import_refused(&m, "nested deeper than 100 levels", "byte");
}
END_TEST

Suite *suite_test_import_bodies(void);
Suite *suite_test_import_bodies(void)
{
    Suite *suite = suite_create("import_bodies");
    const TTest *const bodies[] = {bodies_capture_outer_values, body_values_stay_inside, nesting_is_bounded,
                                   NULL};
    import_add(suite, "bodies", bodies);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Import of nodes with bodies: scopes of names. */
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

/* A Loop that collects Compress(v, keep): how long a row of it is, only the body's declaration says. */
static onnx_model collector(const char *declared)
{
    onnx_model m = onnx_create();
    Onnx__GraphProto *body = onnx_graph(&m, "body"), *types = onnx_graph(&m, "types");
    onnx_input(&m, m.graph, "trips", GRT_DTYPE_INT64, "");
    onnx_input(&m, m.graph, "v", GRT_DTYPE_FLOAT, "3,2");
    onnx_input(&m, m.graph, "keep", GRT_DTYPE_BOOL, "3");
    onnx_input(&m, body, "i", GRT_DTYPE_INT64, "");
    onnx_input(&m, body, "c", GRT_DTYPE_BOOL, "");
    onnx_node(&m, body, "Identity", "c", "go");
    onnx_attr_int(&m, onnx_node(&m, body, "Compress", "v,keep", "row"), "axis", 0);
    onnx_output(&m, body, "go");
    onnx_output(&m, body, "row");
    onnx_input(&m, types, "row", GRT_DTYPE_FLOAT, declared);
    body->output[1]->type = types->input[0]->type;
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Loop", "trips,", "y");
    onnx_attr(&m, node, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_output(&m, m.graph, "y");
    return m;
}

START_TEST(a_scan_without_trips_has_the_declared_shape)
{
    static const struct {
        const char *declared;
        int64_t trips, dims[3];
    } runs[] = {
        {"1,2", 0, {0, 1, 2}}, {"?,2", 0, {0, 0, 2}},
        {NULL, 0, {0, 0, 2}},  {"5", 0, {0, 0, 2}}, /* the wrong rank says nothing */
        {"1,9", 0, {0, 1, 2}},                      /* what inference knows goes before */
        {"1,2", 4, {4, 2, 2}},                      /* and what iterations make */
    };
    onnx_model m = collector(runs[_i].declared);
    float v[6] = {0};
    bool keep[3] = {true, false, true};
    const grt_tensor in[] = {
        {.dtype = GRT_DTYPE_INT64, .data = (void *)(uintptr_t)&runs[_i].trips},
        {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {3, 2}, .data = v},
        {.dtype = GRT_DTYPE_BOOL, .rank = 1, .dims = {3}, .data = keep},
    };
    grt_runtime *runtime;
    grt_session *session;
    grt_context *context;
    grt_tensor y;
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
    grt_model *model = onnx_open_plan(&m, runtime, NULL); /* plans keep the declaration */
    ck_assert_int_eq(grt_session_create(model, "cpu", NULL, &session), GRT_OK);
    ck_assert_int_eq(grt_context_create(session, &context), GRT_OK);
    for (size_t i = 0; i < 3; i++)
        ck_assert_msg(grt_context_set_input(context, i, &in[i]) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(grt_context_run(context) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(grt_context_get_output(context, 0, &y), GRT_OK);
    ck_assert_int_eq(y.rank, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(y.dims[i], runs[_i].dims[i]);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_import_bodies(void);
Suite *suite_test_import_bodies(void)
{
    Suite *suite = suite_create("import_bodies");
    const TTest *const bodies[] = {bodies_capture_outer_values, body_values_stay_inside, nesting_is_bounded,
                                   NULL};
    import_add(suite, "bodies", bodies);
    TCase *scans = tcase_create("scans");
    tcase_add_loop_test(scans, a_scan_without_trips_has_the_declared_shape, 0, 6);
    suite_add_tcase(suite, scans);
    return suite;
}

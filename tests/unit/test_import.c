/* SPDX-License-Identifier: Apache-2.0 */
/* Import of models: valid models are imported, invalid ones refused with the culprit's name. Graphs,
 * their constants and names; nodes, bodies, functions, tensors and bytes have files of their own. */
#include "tests/unit/import_check.h"

START_TEST(ordinary_model)
{
    onnx_model m = onnx_relu();
    ir_module *module = import_ok(&m);
    ir_graph *g = module->main;
    ck_assert_int_eq(g->n_inputs, 1);
    ck_assert_str_eq(g->inputs[0]->name, "x");
    ck_assert_int_eq(g->inputs[0]->type.rank, 2);
    ck_assert(grt_dim_equals(module->dims, g->inputs[0]->type.dims[1], 3));
    ck_assert_int_eq(g->n_nodes, 1);
    ck_assert_str_eq(g->first->desc.op, "Relu");
    ck_assert_str_eq(g->first->desc.name, "the_Relu");
    ck_assert_ptr_eq(g->outputs[0].value, g->first->out[0]);
    ck_assert_str_eq(g->outputs[0].value->name, "y");
    ck_assert_int_eq(module->opset, 20);
    ck_assert_int_eq(module->source_nodes, 1);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(symbols_and_unknown_dims)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "a", GRT_DTYPE_FLOAT, "n,?,-1");
    onnx_input(&m, m.graph, "b", GRT_DTYPE_FLOAT, "n,4");
    onnx_input(&m, m.graph, "c", GRT_DTYPE_FLOAT, NULL);
    onnx_node(&m, m.graph, "Sum", "a,b,c", "y");
    onnx_output(&m, m.graph, "y");
    ir_module *module = import_ok(&m);
    const ir_type *a = &module->main->inputs[0]->type, *b = &module->main->inputs[1]->type;
    ck_assert_int_eq(a->dims[0], b->dims[0]);
    ck_assert_int_ne(a->dims[1], a->dims[2]);
    ck_assert(!grt_dim_is_const(module->dims, a->dims[2], NULL));
    ck_assert_int_eq(module->main->inputs[2]->type.rank, -1);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(omitted_operands)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_input(&m, m.graph, "top", GRT_DTYPE_FLOAT, "");
    onnx_node(&m, m.graph, "Clip", "x,,top", "y");
    onnx_node(&m, m.graph, "Clip", "y,,", "z");
    onnx_output(&m, m.graph, "z");
    ir_module *module = import_ok(&m);
    ir_node *first = module->main->first;
    ck_assert_ptr_null(first->in[1].value);
    ck_assert_ptr_nonnull(first->in[2].value);
    ck_assert_int_eq(first->next->n_in, 1);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(initializer_is_constant)
{
    onnx_model m = onnx_relu();
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "2,3"));
    onnx_node(&m, m.graph, "Add", "y,w", "z");
    onnx_output(&m, m.graph, "z");
    ir_module *module = import_ok(&m);
    const ir_value *w = module->main->last->in[1].value;
    ck_assert_str_eq(w->name, "w");
    ck_assert_ptr_nonnull(w->type.data);
    ck_assert(((const float *)w->type.data->data)[5] == 5);
    ck_assert_int_eq(module->main->n_inputs, 1);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

/* The same model means two things: see ModelProto.ir_version. */
static onnx_model listed_initializer(int64_t ir_version)
{
    onnx_model m = onnx_relu();
    m.proto->ir_version = ir_version;
    onnx_input(&m, m.graph, "w", GRT_DTYPE_FLOAT, "2,3");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "2,3"));
    onnx_node(&m, m.graph, "Add", "y,w", "z");
    onnx_output(&m, m.graph, "z");
    return m;
}

START_TEST(listed_initializer_is_default)
{
    onnx_model m = listed_initializer(4);
    ir_module *module = import_ok(&m);
    ck_assert_int_eq(module->main->n_inputs, 2);
    ck_assert_ptr_null(module->main->defaults[0]);
    ck_assert_ptr_nonnull(module->main->defaults[1]);
    ck_assert_ptr_null(module->main->last->in[1].value->type.data);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(listed_initializer_is_constant_in_old_models)
{
    onnx_model m = listed_initializer(3);
    ir_module *module = import_ok(&m);
    ck_assert_int_eq(module->main->n_inputs, 1);
    ck_assert_ptr_nonnull(module->main->last->in[1].value->type.data);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(default_of_another_dtype)
{
    onnx_model m = onnx_relu();
    onnx_input(&m, m.graph, "w", GRT_DTYPE_DOUBLE, "2");
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "2"));
    import_refused(&m, "input 'w' is float64", "its default, is float32");
}
END_TEST

START_TEST(constant_nodes_become_constants)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *c = onnx_node(&m, m.graph, "Constant", "", "c");
    onnx_attr(&m, c, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = onnx_tensor(&m, "", "3");
    Onnx__NodeProto *i = onnx_node(&m, m.graph, "Constant", "", "i");
    Onnx__AttributeProto *ints = onnx_attr(&m, i, "value_ints", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t values[] = {7, 8};
    ints->ints = values;
    ints->n_ints = 2;
    onnx_node(&m, m.graph, "Sum", "y,c,i", "z");
    onnx_output(&m, m.graph, "z");
    ir_module *module = import_ok(&m);
    ck_assert_int_eq(module->main->n_nodes, 2);
    ck_assert_int_eq(module->source_nodes, 4);
    const int64_t *read;
    int64_t n;
    ck_assert(ir_const_ints(module->main->last->in[2].value, &read, &n));
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(read[1], 8);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(constant_scalars)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *i = onnx_node(&m, m.graph, "Constant", "", "i");
    onnx_attr_int(&m, i, "value_int", -5);
    Onnx__NodeProto *f = onnx_node(&m, m.graph, "Constant", "", "f");
    Onnx__AttributeProto *attr =
        onnx_attr(&m, f, "value_float", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    attr->has_f = 1;
    attr->f = 2.5f;
    Onnx__NodeProto *s = onnx_node(&m, m.graph, "Constant", "", "s");
    attr = onnx_attr(&m, s, "value_string", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    attr->has_s = 1;
    attr->s = (ProtobufCBinaryData){2, (uint8_t *)"hi"};
    onnx_node(&m, m.graph, "Sum", "i,f,s", "z");
    ir_module *module = import_ok(&m);
    const ir_node *sum = module->main->last;
    double value;
    ck_assert(ir_const_float(sum->in[0].value, &value) && value == -5);
    ck_assert(ir_const_float(sum->in[1].value, &value) && value == 2.5);
    const grt_tensor *text = sum->in[2].value->type.data;
    ck_assert_int_eq(text->dtype, GRT_DTYPE_STRING);
    ck_assert_int_eq(text->rank, 0);
    ck_assert_uint_eq(((const grt_string *)text->data)->size, 2);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(constant_with_two_values)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *c = onnx_node(&m, m.graph, "Constant", "", "c");
    onnx_attr_int(&m, c, "value_int", 1);
    onnx_attr_int(&m, c, "value_float", 1);
    import_refused(&m, "Constant node 'the_Constant'", "exactly one of value");
}
END_TEST

START_TEST(undefined_input)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Add", "y,nowhere", "z");
    import_refused(&m, "Add node 'the_Add' (opset 20)", "input 'nowhere' is not defined");
}
END_TEST

START_TEST(defined_twice)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Abs", "x", "y");
    import_refused(&m, "Abs node 'the_Abs'", "'y' is defined twice");
}
END_TEST

START_TEST(undefined_output)
{
    onnx_model m = onnx_relu();
    onnx_output(&m, m.graph, "nothing");
    import_refused(&m, "graph output 'nothing'", "is not defined");
}
END_TEST

START_TEST(no_outputs)
{
    onnx_model m = onnx_create();
    import_refused(&m, "graph 'g'", "no outputs");
}
END_TEST

START_TEST(control_character_in_name)
{
    onnx_model m = onnx_relu();
    m.graph->node[0]->output[0] = (char *)"y\n";
    import_refused(&m, "NodeProto.output", "control character 0x0a");
}
END_TEST

START_TEST(input_without_type)
{
    onnx_model m = onnx_relu();
    m.graph->input[0]->type = NULL;
    import_refused(&m, "'x'", "has no type");
}
END_TEST

Suite *suite_test_import(void);
Suite *suite_test_import(void)
{
    Suite *suite = suite_create("import");
    const TTest *const models[] = {ordinary_model,
                                   symbols_and_unknown_dims,
                                   omitted_operands,
                                   initializer_is_constant,
                                   listed_initializer_is_default,
                                   listed_initializer_is_constant_in_old_models,
                                   default_of_another_dtype,
                                   constant_nodes_become_constants,
                                   constant_scalars,
                                   constant_with_two_values,
                                   NULL};
    const TTest *const names[] = {
        undefined_input,    defined_twice, undefined_output, no_outputs, control_character_in_name,
        input_without_type, NULL};
    import_add(suite, "models", models);
    import_add(suite, "names", names);
    return suite;
}

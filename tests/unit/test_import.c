/* Import of models: what ONNX allows comes in, what it forbids is refused and the culprit named. */
#include "tests/unit/onnx_model.h"

#include "graph/op.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static ir_module *imported(onnx_model *m)
{
    ir_module *module = NULL;
    ck_assert_msg(onnx_import(m, &module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

/* Import fails, says `a` and `b`, and leaves nothing behind. */
static void assert_refused(onnx_model *m, grt_status status, const char *a, const char *b)
{
    ir_module *module = NULL;
    ck_assert_int_eq(onnx_import(m, &module), status);
    ck_assert_ptr_null(module);
    ck_assert_msg(strstr(grt_last_error(), a) && strstr(grt_last_error(), b),
                  "'%s' does not say '%s' and '%s'", grt_last_error(), a, b);
    onnx_release(m);
}
#define INVALID GRT_STATUS_INVALID_MODEL

START_TEST(ordinary_model)
{
    onnx_model m = onnx_relu();
    ir_module *module = imported(&m);
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
    ir_module *module = imported(&m);
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
    ir_module *module = imported(&m);
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
    ir_module *module = imported(&m);
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
    ir_module *module = imported(&m);
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
    ir_module *module = imported(&m);
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
    assert_refused(&m, INVALID, "input 'w' is float64", "its default, is float32");
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
    ir_module *module = imported(&m);
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
    ir_module *module = imported(&m);
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
    assert_refused(&m, INVALID, "Constant node 'the_Constant'", "exactly one of value");
}
END_TEST

/* ---- names and order ---- */

START_TEST(undefined_input)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Add", "y,nowhere", "z");
    assert_refused(&m, INVALID, "Add node 'the_Add' (opset 20)", "input 'nowhere' is not defined");
}
END_TEST

START_TEST(wrong_order)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "Relu", "later", "y");
    onnx_node(&m, m.graph, "Abs", "x", "later");
    onnx_output(&m, m.graph, "y");
    assert_refused(&m, INVALID, "Relu node 'the_Relu'", "'later' is made by a later node");
}
END_TEST

START_TEST(cycle)
{
    onnx_model m = onnx_create();
    onnx_node(&m, m.graph, "Relu", "b", "a");
    onnx_node(&m, m.graph, "Abs", "a", "b");
    onnx_output(&m, m.graph, "a");
    assert_refused(&m, INVALID, "Relu node", "topological order, without cycles");
}
END_TEST

START_TEST(defined_twice)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Abs", "x", "y");
    assert_refused(&m, INVALID, "Abs node 'the_Abs'", "'y' is defined twice");
}
END_TEST

START_TEST(undefined_output)
{
    onnx_model m = onnx_relu();
    onnx_output(&m, m.graph, "nothing");
    assert_refused(&m, INVALID, "graph output 'nothing'", "is not defined");
}
END_TEST

START_TEST(no_outputs)
{
    onnx_model m = onnx_create();
    assert_refused(&m, INVALID, "graph 'g'", "no outputs");
}
END_TEST

START_TEST(control_character_in_name)
{
    onnx_model m = onnx_relu();
    m.graph->node[0]->output[0] = (char *)"y\n";
    assert_refused(&m, INVALID, "NodeProto.output", "control character 0x0a");
}
END_TEST

START_TEST(input_without_type)
{
    onnx_model m = onnx_relu();
    m.graph->input[0]->type = NULL;
    assert_refused(&m, INVALID, "'x'", "has no type");
}
END_TEST

/* ---- operators ---- */

START_TEST(unknown_attribute)
{
    onnx_model m = onnx_relu();
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Concat", "y,y", "z"), "axes", 1);
    assert_refused(&m, INVALID, "attribute 'axes' is not known", "Concat has axis");
}
END_TEST

START_TEST(missing_attribute)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Concat", "y,y", "z");
    assert_refused(&m, INVALID, "Concat node", "attribute 'axis' (int) is required");
}
END_TEST

START_TEST(attribute_of_wrong_kind)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Concat", "y,y", "z");
    Onnx__AttributeProto *attr = onnx_attr(&m, node, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    attr->has_f = 1;
    assert_refused(&m, INVALID, "attribute 'axis' must be int", "found float");
}
END_TEST

START_TEST(attribute_twice)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Concat", "y,y", "z");
    onnx_attr_int(&m, node, "axis", 0);
    onnx_attr_int(&m, node, "axis", 1);
    assert_refused(&m, INVALID, "Concat node", "'axis' is given twice");
}
END_TEST

START_TEST(attribute_with_two_values)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Concat", "y,y", "z");
    onnx_attr_int(&m, node, "axis", 0);
    node->attribute[0]->has_f = 1;
    assert_refused(&m, INVALID, "attribute 'axis'", "exactly one");
}
END_TEST

START_TEST(too_many_inputs)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Add", "y,y,y", "z");
    assert_refused(&m, INVALID, "Add node", "has 3 inputs, 2 expected");
}
END_TEST

START_TEST(unknown_op_is_kept)
{
    onnx_model m = onnx_relu();
    onnx_opset(&m, "my.domain", 3);
    onnx_node(&m, m.graph, "Frobnicate", "y", "z")->domain = (char *)"my.domain";
    onnx_output(&m, m.graph, "z");
    ir_module *module = imported(&m);
    ck_assert_ptr_null(module->main->last->row);
    ck_assert_int_eq(module->main->last->opset, 3);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(domain_not_imported)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Frobnicate", "y", "z")->domain = (char *)"my.domain";
    assert_refused(&m, INVALID, "my.domain::Frobnicate", "opset_import does not list it");
}
END_TEST

START_TEST(internal_domain)
{
    onnx_model m = onnx_relu();
    onnx_opset(&m, "graphrt", 1);
    onnx_node(&m, m.graph, "Pointwise", "y", "z")->domain = (char *)"graphrt";
    assert_refused(&m, INVALID, "graphrt::Pointwise", "a model cannot use it");
}
END_TEST

START_TEST(opset_too_new)
{
    onnx_model m = onnx_relu();
    m.proto->opset_import[0]->version = 99;
    assert_refused(&m, GRT_STATUS_UNSUPPORTED, "opset 99 of domain 'ai.onnx'", "newest known, 28");
}
END_TEST

START_TEST(ir_version_too_new)
{
    onnx_model m = onnx_relu();
    m.proto->ir_version = 99;
    assert_refused(&m, GRT_STATUS_UNSUPPORTED, "IR version 99", "newest known");
}
END_TEST

START_TEST(ai_onnx_is_the_empty_domain)
{
    onnx_model m = onnx_relu();
    m.graph->node[0]->domain = (char *)"ai.onnx";
    ir_module *module = imported(&m);
    ck_assert_ptr_nonnull(module->main->first->row);
    ck_assert_str_eq(module->main->first->desc.domain, "");
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(old_form_is_upgraded)
{
    onnx_model m = onnx_create();
    m.proto->opset_import[0]->version = 6;
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__NodeProto *clip = onnx_node(&m, m.graph, "Clip", "x", "y");
    Onnx__AttributeProto *max = onnx_attr(&m, clip, "max", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    max->has_f = 1;
    max->f = 6;
    onnx_output(&m, m.graph, "y");
    ir_module *module = imported(&m);
    ir_node *node = module->main->first;
    double value;
    ck_assert_int_eq(node->n_in, 3);
    ck_assert(ir_const_float(node->in[2].value, &value) && value == 6);
    ck_assert_uint_eq(node->desc.n_attrs, 0);
    ck_assert_int_eq(node->opset, node->row->since);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

/* Before opset 14, BatchNormalization with more outputs trained, and the last two were the batch's
 * statistics. */
START_TEST(saved_statistics_of_a_batch)
{
    onnx_model m = onnx_create();
    m.proto->opset_import[0]->version = 9;
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,3,4");
    for (int i = 0; i < 4; i++)
        onnx_initializer(&m, m.graph, onnx_tensor(&m, (const char *[]){"s", "b", "m", "v"}[i], "3"));
    onnx_node(&m, m.graph, "BatchNormalization", "x,s,b,m,v", "y,rm,rv,sm,sv");
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "rv");
    onnx_output(&m, m.graph, "sv");
    ir_module *module = imported(&m);
    const ir_node *batch = module->main->first, *node = batch->next;
    ck_assert_int_eq(node->n_out, 3);
    ck_assert_int_eq(batch->n_out, 3);
    ck_assert_ptr_eq(module->main->outputs[0].value, node->out[0]);
    ck_assert_ptr_eq(module->main->outputs[1].value, node->out[2]);
    ck_assert_ptr_eq(module->main->outputs[2].value, batch->out[2]);
    ck_assert_int_eq(batch->out[2]->out_index, 2);
    ck_assert_str_eq(batch->out[2]->name, "sv");
    ck_assert_int_eq(grt_attr_int(&node->desc, "training_mode", 0), 1);
    ck_assert_int_eq(grt_attr_int(&batch->desc, "training_mode", 0), 1);
    ck_assert(grt_attr_float(&batch->desc, "momentum", 1) == 0);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

/* ---- subgraphs ---- */

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
    ir_module *module = imported(&m);
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

START_TEST(body_must_not_shadow)
{
    Onnx__GraphProto *then;
    onnx_model m = branches(&then);
    onnx_node(&m, then, "Relu", "v", "x");
    assert_refused(&m, INVALID, "Relu node 'the_Relu'", "'x' is already defined in a graph around");
}
END_TEST

START_TEST(body_values_stay_inside)
{
    Onnx__GraphProto *then;
    onnx_model m = branches(&then);
    onnx_node(&m, m.graph, "Relu", "v", "z");
    assert_refused(&m, INVALID, "Relu node", "input 'v' is not defined");
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
    assert_refused(&m, INVALID, "nested deeper than 100 levels", "byte");
}
END_TEST

/* ---- functions ---- */

/* twice(a) = once(once(a)); once(a) = LeakyRelu(a, alpha = ref slope) */
static onnx_model with_functions(void)
{
    onnx_model m = onnx_create();
    onnx_opset(&m, "my", 1);
    Onnx__FunctionProto *once = onnx_function(&m, "my", "once", "a", "b");
    onnx_attr_ref(&m, onnx_function_node(&m, once, "", "LeakyRelu", "a", "b"), "alpha",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "slope");
    Onnx__FunctionProto *twice = onnx_function(&m, "my", "twice", "a", "b");
    Onnx__NodeProto *first = onnx_function_node(&m, twice, "my", "once", "a", "t");
    onnx_attr_ref(&m, first, "slope", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "s");
    onnx_function_node(&m, twice, "my", "once", "t", "b");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "twice", "x", "y");
    node->domain = (char *)"my";
    Onnx__AttributeProto *s = onnx_attr(&m, node, "s", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    s->has_f = 1;
    s->f = 0.5f;
    onnx_output(&m, m.graph, "y");
    return m;
}

START_TEST(functions_are_inlined)
{
    onnx_model m = with_functions();
    ir_module *module = imported(&m);
    ir_node *a = module->main->first, *b = a->next;
    ck_assert_int_eq(module->main->n_nodes, 2);
    ck_assert_int_eq(module->source_nodes, 2);
    ck_assert_str_eq(a->desc.name, "the_twice/the_once/the_LeakyRelu");
    ck_assert(grt_attr_float(&a->desc, "alpha", 0) == 0.5f);
    ck_assert_uint_eq(b->desc.n_attrs, 0); /* no slope was given: the reference is left out */
    ck_assert_ptr_eq(b->in[0].value, a->out[0]);
    ck_assert_str_eq(b->out[0]->name, "y");
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(function_hands_input_through)
{
    onnx_model m = onnx_create();
    onnx_opset(&m, "my", 1);
    Onnx__FunctionProto *f = onnx_function(&m, "my", "copy", "a,missing", "a,b,b");
    onnx_function_node(&m, f, "", "Clip", "a,,missing", "b");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "copy", "x", "p,q,r")->domain = (char *)"my";
    onnx_output(&m, m.graph, "p");
    onnx_output(&m, m.graph, "q");
    onnx_output(&m, m.graph, "r");
    ir_module *module = imported(&m);
    ck_assert_int_eq(module->main->first->n_in, 3);
    ck_assert_ptr_null(module->main->first->in[2].value);
    ck_assert_str_eq(module->main->outputs[0].value->producer->desc.op, "Identity");
    ck_assert_str_eq(module->main->outputs[1].value->producer->desc.op, "Clip");
    ck_assert_str_eq(module->main->outputs[2].value->producer->desc.op, "Identity");
    ck_assert_str_eq(module->main->outputs[2].value->name, "r");
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(recursive_function)
{
    onnx_model m = with_functions();
    onnx_function_node(&m, m.proto->functions[0], "my", "twice", "a", "again");
    assert_refused(&m, INVALID, "my::twice", "calls itself");
}
END_TEST

/* f0 calls f1 twice, f1 calls f2 twice, ...: 2^60 nodes if nobody counts. */
START_TEST(function_bomb)
{
    onnx_model m = onnx_create();
    onnx_opset(&m, "my", 1);
    char names[61][8];
    for (int i = 0; i <= 60; i++)
        snprintf(names[i], sizeof names[i], "f%d", i);
    for (int i = 0; i < 60; i++) {
        Onnx__FunctionProto *f = onnx_function(&m, "my", names[i], "a", "b");
        onnx_function_node(&m, f, "my", names[i + 1], "a", "t");
        onnx_function_node(&m, f, "my", names[i + 1], "t", "b");
    }
    onnx_function_node(&m, onnx_function(&m, "my", names[60], "a", "b"), "", "Relu", "a", "b");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "f0", "x", "y")->domain = (char *)"my";
    onnx_output(&m, m.graph, "y");
    assert_refused(&m, INVALID, "inlining functions", "out of proportion");
}
END_TEST

START_TEST(function_does_not_see_its_caller)
{
    onnx_model m = with_functions();
    onnx_function_node(&m, m.proto->functions[1], "", "Relu", "x", "leak");
    assert_refused(&m, INVALID, "the_twice/the_Relu", "'x' is not defined");
}
END_TEST

/* ---- all problems at once ---- */

typedef struct found {
    int n;
    char text[4096];
} found;

static void collect(void *user, const grt_finding *finding)
{
    found *f = user;
    f->n++;
    strncat(f->text, finding->op, sizeof f->text - strlen(f->text) - 1);
    strncat(f->text, ": ", sizeof f->text - strlen(f->text) - 1);
    strncat(f->text, finding->message, sizeof f->text - strlen(f->text) - 1);
    strncat(f->text, "\n", sizeof f->text - strlen(f->text) - 1);
}

START_TEST(check_lists_everything)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Add", "y,nowhere", "z");
    onnx_node(&m, m.graph, "Concat", "z,z", "u");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "Abs", "u", "y"), "what", 1);
    onnx_node(&m, m.graph, "Frobnicate", "x", "v");
    onnx_output(&m, m.graph, "nothing");
    grt_string bytes = onnx_bytes(&m);
    compile_source source = {.bytes = bytes.data, .size = bytes.size};
    ir_module *module = NULL;
    found f = {0};
    ck_assert_int_eq(ir_import_check(&source, collect, &f, &module), GRT_OK);
    ck_assert_ptr_null(module);
    ck_assert_msg(f.n == 6, "%d: %s", f.n, f.text);
    ck_assert_ptr_nonnull(strstr(f.text, "Add: input 'nowhere' is not defined"));
    ck_assert_ptr_nonnull(strstr(f.text, "Concat: attribute 'axis' (int) is required"));
    ck_assert_ptr_nonnull(strstr(f.text, "Abs: attribute 'what' is not known"));
    ck_assert_ptr_nonnull(strstr(f.text, "Abs: 'y' is defined twice"));
    ck_assert_ptr_nonnull(strstr(f.text, "graph output 'nothing'"));
    ck_assert_ptr_nonnull(strstr(f.text, "Frobnicate: this op is not known"));
    onnx_release(&m);
}
END_TEST

/* ---- bytes ---- */

/* However a file is cut, import ends with a message. */
START_TEST(truncated_anywhere)
{
    onnx_model m = with_functions();
    onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "2,3"));
    grt_string bytes = onnx_bytes(&m);
    for (size_t n = 1; n < bytes.size; n++) {
        compile_source source = {.bytes = bytes.data, .size = n};
        ir_module *module = NULL;
        grt_status status = ir_import(&source, &module);
        ck_assert_msg(status == GRT_OK || *grt_last_error(), "at %zu", n);
        if (status == GRT_OK)
            ir_module_release(module);
    }
    onnx_release(&m);
}
END_TEST

START_TEST(every_bit_flipped)
{
    onnx_model m = with_functions();
    grt_string bytes = onnx_bytes(&m);
    char *copy = grt_arena_memdup(m.arena, bytes.data, bytes.size);
    for (size_t i = 0; i < 8 * bytes.size; i++) {
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        compile_source source = {.bytes = copy, .size = bytes.size};
        ir_module *module = NULL;
        if (ir_import(&source, &module) == GRT_OK)
            ck_assert_msg(ir_verify(module) == GRT_OK, "bit %zu: %s", i, grt_last_error());
        ir_module_release(module);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
    }
    onnx_release(&m);
}
END_TEST

START_TEST(not_a_model)
{
    static const char *const files[] = {
        "", "\n", "PK\3\4", "hello, world", "\x0a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        compile_source source = {.bytes = files[i], .size = strlen(files[i])};
        ir_module *module = NULL;
        ck_assert_int_eq(ir_import(&source, &module), GRT_STATUS_INVALID_MODEL);
        ck_assert_msg(strstr(grt_last_error(), "ONNX"), "%s", grt_last_error());
    }
    compile_source nothing = {0};
    ir_module *module = NULL;
    ck_assert_int_eq(ir_import(&nothing, &module), GRT_STATUS_INVALID_ARGUMENT);
}
END_TEST

START_TEST(field_given_twice)
{
    onnx_model m = onnx_relu();
    grt_string bytes = onnx_bytes(&m);
    char *twice = grt_arena_alloc(m.arena, 2 * bytes.size);
    memcpy(twice, bytes.data, bytes.size);
    memcpy(twice + bytes.size, bytes.data, bytes.size);
    compile_source source = {.bytes = twice, .size = 2 * bytes.size};
    ir_module *module = NULL;
    ck_assert_int_eq(ir_import(&source, &module), INVALID);
    ck_assert_msg(strstr(grt_last_error(), "is given twice"), "%s", grt_last_error());
    onnx_release(&m);
}
END_TEST

/* Two bytes make an empty node of over a hundred: memory has to stay in proportion. */
START_TEST(empty_messages_are_bounded)
{
    size_t n = 4 << 20, head = 6;
    onnx_model m = onnx_create();
    uint8_t *bytes = grt_arena_alloc(m.arena, head + n);
    memcpy(bytes, "\x3a\x80\x80\x80\x02", 5); /* graph, 4 MiB */
    for (size_t i = 0; i < n; i += 2)
        bytes[5 + i] = 0x0a; /* node, 0 bytes */
    compile_source source = {.bytes = bytes, .size = 5 + n};
    ir_module *module = NULL;
    ck_assert_int_eq(ir_import(&source, &module), INVALID);
    ck_assert_msg(strstr(grt_last_error(), "out of proportion"), "%s", grt_last_error());
    onnx_release(&m);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *const *tests)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    for (; *tests; tests++)
        tcase_add_test(tcase, *tests);
    suite_add_tcase(suite, tcase);
}

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
    const TTest *const naming[] = {
        undefined_input,           wrong_order,        cycle, defined_twice, undefined_output, no_outputs,
        control_character_in_name, input_without_type, NULL};
    const TTest *const operators[] = {
        unknown_attribute,    missing_attribute,           attribute_of_wrong_kind,
        attribute_twice,      attribute_with_two_values,   too_many_inputs,
        unknown_op_is_kept,   domain_not_imported,         internal_domain,
        opset_too_new,        ir_version_too_new,          ai_onnx_is_the_empty_domain,
        old_form_is_upgraded, saved_statistics_of_a_batch, NULL};
    const TTest *const nesting[] = {bodies_capture_outer_values, body_must_not_shadow,
                                    body_values_stay_inside, nesting_is_bounded, NULL};
    const TTest *const functions[] = {
        functions_are_inlined, function_hands_input_through,     recursive_function,
        function_bomb,         function_does_not_see_its_caller, NULL};
    const TTest *const bytes[] = {check_lists_everything,
                                  truncated_anywhere,
                                  every_bit_flipped,
                                  not_a_model,
                                  field_given_twice,
                                  empty_messages_are_bounded,
                                  NULL};
    add(suite, "models", models);
    add(suite, "names", naming);
    add(suite, "operators", operators);
    add(suite, "subgraphs", nesting);
    add(suite, "functions", functions);
    add(suite, "bytes", bytes);
    return suite;
}

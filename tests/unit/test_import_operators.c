/* SPDX-License-Identifier: Apache-2.0 */
/* Import of nodes: their attributes and operands, which operators and versions there are, and old forms of
 * them. */
#include "tests/unit/import_check.h"

#include "graph/ir/op.h"

START_TEST(missing_attribute)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Concat", "y,y", "z");
    import_refused(&m, "Concat node", "attribute 'axis' (int) is required");
}
END_TEST

START_TEST(attribute_of_wrong_kind)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Concat", "y,y", "z");
    Onnx__AttributeProto *attr = onnx_attr(&m, node, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    attr->has_f = 1;
    import_refused(&m, "attribute 'axis' must be int", "found float");
}
END_TEST

START_TEST(attribute_twice)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Concat", "y,y", "z");
    onnx_attr_int(&m, node, "axis", 0);
    onnx_attr_int(&m, node, "axis", 1);
    import_refused(&m, "Concat node", "'axis' is given twice");
}
END_TEST

START_TEST(attribute_with_two_values)
{
    onnx_model m = onnx_relu();
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Concat", "y,y", "z");
    onnx_attr_int(&m, node, "axis", 0);
    node->attribute[0]->has_f = 1;
    import_refused(&m, "attribute 'axis'", "exactly one");
}
END_TEST

START_TEST(too_many_inputs)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Add", "y,y,y", "z");
    import_refused(&m, "Add node", "has 3 inputs, 2 expected");
}
END_TEST

START_TEST(unknown_op_is_kept)
{
    onnx_model m = onnx_relu();
    onnx_opset(&m, "my.domain", 3);
    onnx_node(&m, m.graph, "Frobnicate", "y", "z")->domain = (char *)"my.domain";
    onnx_output(&m, m.graph, "z");
    ir_module *module = import_ok(&m);
    ck_assert_ptr_null(module->main->last->row);
    ck_assert_int_eq(module->main->last->opset, 3);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(internal_domain)
{
    onnx_model m = onnx_relu();
    onnx_opset(&m, "graphrt", 1);
    onnx_node(&m, m.graph, "Pointwise", "y", "z")->domain = (char *)"graphrt";
    import_refused(&m, "graphrt::Pointwise", "a model cannot use it");
}
END_TEST

START_TEST(opset_too_new)
{
    onnx_model m = onnx_relu();
    m.proto->opset_import[0]->version = 99;
    import_refused_as(&m, GRT_STATUS_UNSUPPORTED, "opset 99 of domain 'ai.onnx'", "newest known, 28");
}
END_TEST

START_TEST(ir_version_too_new)
{
    onnx_model m = onnx_relu();
    m.proto->ir_version = 99;
    import_refused_as(&m, GRT_STATUS_UNSUPPORTED, "IR version 99", "newest known");
}
END_TEST

START_TEST(ai_onnx_is_the_empty_domain)
{
    onnx_model m = onnx_relu();
    m.graph->node[0]->domain = (char *)"ai.onnx";
    ir_module *module = import_ok(&m);
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
    ir_module *module = import_ok(&m);
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
    ir_module *module = import_ok(&m);
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

Suite *suite_test_import_operators(void);
Suite *suite_test_import_operators(void)
{
    Suite *suite = suite_create("import_operators");
    const TTest *const operators[] = {missing_attribute,
                                      attribute_of_wrong_kind,
                                      attribute_twice,
                                      attribute_with_two_values,
                                      too_many_inputs,
                                      unknown_op_is_kept,
                                      internal_domain,
                                      opset_too_new,
                                      ir_version_too_new,
                                      ai_onnx_is_the_empty_domain,
                                      old_form_is_upgraded,
                                      saved_statistics_of_a_batch,
                                      NULL};
    import_add(suite, "operators", operators);
    return suite;
}

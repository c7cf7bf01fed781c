/* SPDX-License-Identifier: Apache-2.0 */
/* Import of models with functions of their own, which are inlined. */
#include "tests/unit/import_check.h"

#include <stdio.h>

START_TEST(functions_are_inlined)
{
    onnx_model m = onnx_functions();
    ir_module *module = import_ok(&m);
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
    ir_module *module = import_ok(&m);
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
    onnx_model m = onnx_functions();
    onnx_function_node(&m, m.proto->functions[0], "my", "twice", "a", "again");
    import_refused(&m, "my::twice", "calls itself");
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
    import_refused(&m, "inlining functions", "out of proportion");
}
END_TEST

START_TEST(function_does_not_see_its_caller)
{
    onnx_model m = onnx_functions();
    onnx_function_node(&m, m.proto->functions[1], "", "Relu", "x", "leak");
    import_refused(&m, "the_twice/the_Relu", "'x' is not defined");
}
END_TEST

Suite *suite_test_import_functions(void);
Suite *suite_test_import_functions(void)
{
    Suite *suite = suite_create("import_functions");
    const TTest *const functions[] = {
        functions_are_inlined, function_hands_input_through,     recursive_function,
        function_bomb,         function_does_not_see_its_caller, NULL};
    import_add(suite, "functions", functions);
    return suite;
}

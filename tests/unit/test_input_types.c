/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes of inputs: that every row has what the schemas say, and that models which break it are refused. */
#include "graph/ir/infer.h"
#include "graph/ir/input_types.h"
#include "tests/unit/import_check.h"

#include <string.h>

/* ---- the table ---- */

START_TEST(operators_are_sorted)
{
    const input_types *types, *before = NULL;
    for (size_t i = 0; (types = input_types_at(i)); before = types, i++) {
        const int domains = before ? strcmp(before->domain, types->domain) : -1;
        ck_assert_msg(domains < 0 || (!domains && strcmp(before->op, types->op) < 0), "%s::%s", types->domain,
                      types->op);
        ck_assert_ptr_eq(input_types_find(types->domain, types->op), types);
    }
    ck_assert_ptr_nonnull(before);
    ck_assert_ptr_null(input_types_find("", "Aaa"));
    ck_assert_ptr_null(input_types_find("", "Reshapes"));
    ck_assert_ptr_null(input_types_find("zzz", "Add"));
}
END_TEST

START_TEST(operators_have_few_inputs_and_repeat_the_last)
{
    const input_types *types;
    for (size_t i = 0; (types = input_types_at(i)); i++) {
        ck_assert_msg(types->n > 0 && types->n <= MAX_INPUT_TYPES, "%s::%s", types->domain, types->op);
        for (int32_t k = 0; k < types->n - 1; k++)
            ck_assert_msg(!types->inputs[k].repeated, "%s::%s", types->domain, types->op);
    }
}
END_TEST

START_TEST(exporters_write_more_than_schemas_allow)
{
    const input_types *types = input_types_find("ai.onnx.ml", "ZipMap");
    ck_assert_uint_eq(types->inputs[0].dtypes, GRT_BIT(FLOAT) | GRT_BIT(DOUBLE));
}
END_TEST

/* Operators that neither the standard nor ONNX Runtime has a schema of, in this domain. */
static bool has_no_schema(const op_row *row)
{
    return !strcmp(row->domain, "graphrt") ||
           (!strcmp(row->domain, "com.microsoft") && !strcmp(row->name, "SimplifiedLayerNormalization"));
}

START_TEST(rows_of_models_have_a_schema)
{
    const op_row *row;
    for (size_t i = 0; (row = op_at(i)); i++) {
        const input_types *types = input_types_find(row->domain, row->name);
        if (!row->max_in)
            continue;
        ck_assert_msg(!types == has_no_schema(row), "%s::%s: is there a schema? see scripts/input_types.py",
                      row->domain, row->name);
        if (types)
            ck_assert_msg(types->inputs[types->n - 1].repeated ? row->max_in >= types->n
                                                               : row->max_in <= types->n,
                          "%s::%s: the row takes %d inputs, the schema has %d", row->domain, row->name,
                          row->max_in, types->n);
    }
}
END_TEST

/* ---- models ---- */

/* Inputs f, g (float32), h (float16), i (int64), b (bool), q (int8) and u (uint8), all [2,3], k (int32), [2],
 * and the scalar s (float32). */
static onnx_model of_inputs(void)
{
    static const struct {
        const char *name;
        grt_dtype dtype;
    } inputs[] = {{"f", GRT_DTYPE_FLOAT}, {"g", GRT_DTYPE_FLOAT}, {"h", GRT_DTYPE_FLOAT16},
                  {"i", GRT_DTYPE_INT64}, {"b", GRT_DTYPE_BOOL},  {"q", GRT_DTYPE_INT8},
                  {"u", GRT_DTYPE_UINT8}};
    onnx_model m = onnx_create();
    m.proto->opset_import[0]->version = 27;
    onnx_opset(&m, "com.microsoft", 1);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        onnx_input(&m, m.graph, inputs[i].name, inputs[i].dtype, "2,3");
    onnx_input(&m, m.graph, "k", GRT_DTYPE_INT32, "2");
    onnx_input(&m, m.graph, "s", GRT_DTYPE_FLOAT, "");
    return m;
}

/* Imports and infers. Releases the model; the module is NULL if inference failed. */
static ir_module *inferred(onnx_model *m)
{
    ir_module *module = import_ok(m);
    if (ir_infer(module) != GRT_OK) {
        ir_module_release(module);
        module = NULL;
    }
    onnx_release(m);
    return module;
}

static void infer_refused(onnx_model *m, const char *what)
{
    ck_assert_ptr_null(inferred(m));
    ck_assert_msg(strstr(grt_last_error(), what) != NULL, "%s", grt_last_error());
}

static const struct {
    const char *domain, *op, *inputs;
    const char *error; /* NULL: what the schemas allow */
} nodes[] = {
    {"", "Add", "f,i",
     "Add node 'the_Add': input 1, 'i', is int64; it must be float32 like input 0, 'f', as both are of the "
     "type "
     "parameter T; cast one of them, or export the model again"},
    {"", "Pow", "f,i", NULL},
    {"", "Where", "b,f,g", NULL},
    {"", "Where", "b,f,i", "input 2, 'i', is int64; it must be float32 like input 1, 'f'"},
    {"", "Clip", "f,,i", "input 2, 'i', is int64; it must be float32 like input 0, 'f'"},
    {"", "Clip", "f,,s", NULL},
    {"", "Max", "f,g,f,g,i", "input 4, 'i', is int64; it must be float32 like input 0, 'f'"},
    {"", "Max", "f,g,f,g,f", NULL},
    {"", "MatMulInteger", "q,q,,u", "input 3, 'u', is uint8; it must be int8 like input 1, 'q'"},
    {"com.microsoft", "BiasGelu", "f,h",
     "com.microsoft::BiasGelu node 'the_BiasGelu': input 1, 'h', is float16; it must be float32"},
    {"com.microsoft", "BiasGelu", "f,g", NULL},
    {"", "Reshape", "f,k",
     "Reshape node 'the_Reshape': input 1, 'k', is int32; allowed are int64; cast it, or export the model "
     "again"},
    {"", "Tile", "f,s", "input 1, 's', is float32; allowed are int64"},
    {"", "ReduceSum", "b", "input 0, 'b', is bool; allowed are float32, int32, int64, float16, float64"},
    {"", "Where", "f,f,g", "input 0, 'f', is float32; allowed are bool"},
    {"", "Max", "b,b", "input 0, 'b', is bool; allowed are float32"},
    {"", "ReduceLogSum", "i", NULL}, /* the newest form allows no integers, older ones do */
    {"com.microsoft", "BiasGelu", "i,i", "input 0, 'i', is int64; allowed are"},
};
enum { N_NODES = sizeof nodes / sizeof *nodes };

START_TEST(nodes_of_models)
{
    onnx_model m = of_inputs();
    onnx_node(&m, m.graph, nodes[_i].op, nodes[_i].inputs, "y")->domain = (char *)nodes[_i].domain;
    onnx_output(&m, m.graph, "y");
    if (nodes[_i].error) {
        infer_refused(&m, nodes[_i].error);
        return;
    }
    ir_module *module = inferred(&m);
    ck_assert_msg(module != NULL, "%s", grt_last_error());
    ir_module_release(module);
}
END_TEST

START_TEST(in_a_function)
{
    onnx_model m = of_inputs();
    onnx_opset(&m, "my", 1);
    onnx_function_node(&m, onnx_function(&m, "my", "sum", "a,b", "c"), "", "PRelu", "a,b", "c");
    onnx_node(&m, m.graph, "sum", "f,h", "y")->domain = (char *)"my";
    onnx_output(&m, m.graph, "y");
    infer_refused(
        &m, "PRelu node 'the_sum/the_PRelu': input 1, 'h', is float16; it must be float32 like input 0, 'f'");
}
END_TEST

START_TEST(in_a_body_with_a_value_from_outside)
{
    onnx_model m = of_inputs();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_input(&m, body, "t", GRT_DTYPE_INT64, "");
    onnx_input(&m, body, "go", GRT_DTYPE_BOOL, "");
    onnx_input(&m, body, "x", GRT_DTYPE_FLOAT, "2,3");
    onnx_node(&m, body, "PRelu", "x,h", "r");
    onnx_output(&m, body, "go");
    onnx_output(&m, body, "r");
    Onnx__NodeProto *loop = onnx_node(&m, m.graph, "Loop", ",,f", "y");
    onnx_attr(&m, loop, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_output(&m, m.graph, "y");
    infer_refused(&m, "input 1, 'h', is float16; it must be float32 like input 0, 'x'");
}
END_TEST

START_TEST(in_a_node_with_bodies)
{
    onnx_model m = of_inputs();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_node(&m, body, "Neg", "f", "r");
    onnx_output(&m, body, "r");
    Onnx__NodeProto *choice = onnx_node(&m, m.graph, "If", "s", "y");
    onnx_attr(&m, choice, "then_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_attr(&m, choice, "else_branch", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    onnx_output(&m, m.graph, "y");
    infer_refused(&m, "If node 'the_If': input 0, 's', is float32; allowed are bool");
}
END_TEST

/* Passes may give the node inputs of other dtypes, and make another op of it. */
START_TEST(nodes_are_asked_once)
{
    onnx_model m = of_inputs();
    onnx_node(&m, m.graph, "Add", "f,g", "x");
    onnx_node(&m, m.graph, "Neg", "x", "y");
    onnx_output(&m, m.graph, "y");
    ir_module *module = import_ok(&m);
    ck_assert(module->main->first->check_types && module->main->last->check_types);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    ck_assert(!module->main->first->check_types && !module->main->last->check_types);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_input_types(void)
{
    Suite *suite = suite_create("input_types");
    TCase *table = tcase_create("table"), *models = tcase_create("models");
    tcase_add_test(table, operators_are_sorted);
    tcase_add_test(table, operators_have_few_inputs_and_repeat_the_last);
    tcase_add_test(table, exporters_write_more_than_schemas_allow);
    tcase_add_test(table, rows_of_models_have_a_schema);
    tcase_add_loop_test(models, nodes_of_models, 0, N_NODES);
    tcase_add_test(models, in_a_function);
    tcase_add_test(models, in_a_body_with_a_value_from_outside);
    tcase_add_test(models, in_a_node_with_bodies);
    tcase_add_test(models, nodes_are_asked_once);
    suite_add_tcase(suite, table);
    suite_add_tcase(suite, models);
    return suite;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that share a type parameter: that rows say what the schemas say, and that models which mix dtypes
 * are refused. */
#include "graph/ir/infer.h"
#include "tests/unit/import_check.h"

#include <string.h>

static const struct {
    const char *domain, *op;
    int32_t version;
    const char *types;
} schemas[] = {
#define TYPES(domain, op, version, types) {domain, op, version, types},
#include "tests/unit/type_parameters.def"
#undef TYPES
};
enum { N_SCHEMAS = sizeof schemas / sizeof *schemas };

static bool is_of(size_t schema, const op_row *row)
{
    return !strcmp(schemas[schema].domain, row->domain) && !strcmp(schemas[schema].op, row->name);
}

static const char *types_of(const op_row *row)
{
    return row->types ? row->types : "";
}

/* Operators that neither the standard nor ONNX Runtime has a schema of, in this domain. */
static bool has_no_schema(const op_row *row)
{
    return !strcmp(row->domain, "graphrt") ||
           (!strcmp(row->domain, "com.microsoft") && !strcmp(row->name, "SimplifiedLayerNormalization"));
}

START_TEST(rows_say_what_the_newest_schemas_say)
{
    const op_row *row;
    for (size_t i = 0; (row = op_at(i)); i++) {
        const char *types = NULL;
        for (size_t k = 0; k < N_SCHEMAS; k++) /* in the order of their versions */
            if (is_of(k, row))
                types = schemas[k].types;
        ck_assert_msg(!types == has_no_schema(row), "%s::%s: is there a schema?", row->domain, row->name);
        if (types)
            ck_assert_msg(!strcmp(types_of(row), types),
                          "%s::%s: the row has .types = \"%s\", the schema \"%s\"", row->domain, row->name,
                          types_of(row), types);
    }
}
END_TEST

/* A node of an older form is asked what the newest form says, as rows are of that. Where the older one was
 * different: */
START_TEST(older_schemas_differ_where_it_is_known)
{
    static const struct {
        const char *op, *why;
    } known[] = {
        {"BatchNormalization", "one type for all: mixed ones mean the same in the newest form"},
        {"Clip", "limits were attributes, which get the input's type"},
        {"DequantizeLinear", "another name"},
        {"Pad", "the constant was an attribute, which gets the input's type"},
        {"Pow", "one type for both: mixed ones mean the same in the newest form"},
        {"QLinearMatMul", "scales were all float32"},
        {"QuantizeLinear", "one type for input and scale: mixed ones mean the same in the newest form"},
        {"Slice", "limits were attributes, which get one type"},
        {"Split", "sizes had the input's type: mixed ones mean the same in the newest form"},
        {"Tile", "another form, whose numbers had the input's type"},
    };
    enum { N_KNOWN = sizeof known / sizeof *known };
    bool found[N_KNOWN] = {false};
    const op_row *row;
    for (size_t i = 0; (row = op_at(i)); i++)
        for (size_t k = 0; k < N_SCHEMAS; k++) {
            size_t at = 0;
            if (!is_of(k, row) || !strcmp(schemas[k].types, types_of(row)))
                continue;
            while (at < N_KNOWN && strcmp(known[at].op, row->name) != 0)
                at++;
            ck_assert_msg(at < N_KNOWN, "%s of version %d has \"%s\"", row->name, (int)schemas[k].version,
                          schemas[k].types);
            found[at] = true;
        }
    for (size_t i = 0; i < N_KNOWN; i++)
        ck_assert_msg(found[i], "%s: no older form is different (%s)", known[i].op, known[i].why);
}
END_TEST

START_TEST(ops_have_few_type_parameters)
{
    const op_row *row;
    for (size_t i = 0; (row = op_at(i)); i++) {
        char text[256], *rest = text, *seen[32];
        size_t n = 0;
        ck_assert_uint_lt(strlen(types_of(row)), sizeof text);
        strcpy(text, types_of(row));
        for (char *word; (word = strtok_r(rest, " ", &rest));) {
            size_t k = 0;
            while (k < n && strcmp(seen[k], word) != 0)
                k++;
            if (k == n && *word != '-')
                seen[n++] = word;
        }
        ck_assert_msg(n <= OP_MAX_TYPES, "%s::%s has %zu type parameters", row->domain, row->name, n);
    }
}
END_TEST

/* ---- models ---- */

/* Inputs f, g (float32), h (float16), i (int64), b (bool) and q (int8), all [2,3], and the scalar s
 * (float32). */
static onnx_model of_inputs(void)
{
    static const struct {
        const char *name;
        grt_dtype dtype;
    } inputs[] = {{"f", GRT_DTYPE_FLOAT}, {"g", GRT_DTYPE_FLOAT}, {"h", GRT_DTYPE_FLOAT16},
                  {"i", GRT_DTYPE_INT64}, {"b", GRT_DTYPE_BOOL},  {"q", GRT_DTYPE_INT8}};
    onnx_model m = onnx_create();
    m.proto->opset_import[0]->version = 27;
    onnx_opset(&m, "com.microsoft", 1);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        onnx_input(&m, m.graph, inputs[i].name, inputs[i].dtype, "2,3");
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
    const char *error; /* NULL: no dtypes are mixed */
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
    {"", "MatMulInteger", "q,q,,i", "input 3, 'i', is int64; it must be int8 like input 1, 'q'"},
    {"com.microsoft", "BiasGelu", "f,h",
     "com.microsoft::BiasGelu node 'the_BiasGelu': input 1, 'h', is float16; it must be float32"},
    {"com.microsoft", "BiasGelu", "f,g", NULL},
};
enum { N_NODES = sizeof nodes / sizeof *nodes };

START_TEST(nodes_that_mix_dtypes)
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

Suite *suite_test_type_parameters(void)
{
    Suite *suite = suite_create("type_parameters");
    TCase *rows = tcase_create("rows"), *models = tcase_create("models");
    tcase_add_test(rows, rows_say_what_the_newest_schemas_say);
    tcase_add_test(rows, older_schemas_differ_where_it_is_known);
    tcase_add_test(rows, ops_have_few_type_parameters);
    tcase_add_loop_test(models, nodes_that_mix_dtypes, 0, N_NODES);
    tcase_add_test(models, in_a_function);
    tcase_add_test(models, in_a_body_with_a_value_from_outside);
    tcase_add_test(models, nodes_are_asked_once);
    suite_add_tcase(suite, rows);
    suite_add_tcase(suite, models);
    return suite;
}

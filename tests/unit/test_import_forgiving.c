/* SPDX-License-Identifier: Apache-2.0 */
/* Models that break a rule but have one meaning: imported with a warning; an error when strict or when
 * ambiguous. */
#include "graph/ir/infer.h"
#include "tests/unit/import_check.h"

#include "tests/unit/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct told {
    int n;
    char text[8192];
} told;

static void tell(void *user, const grt_finding *f)
{
    told *t = user;
    char line[2300];
    ck_assert_int_eq(f->status, GRT_OK);
    snprintf(line, sizeof line, "%s '%s': %s\n", f->op, f->node, f->message);
    strncat(t->text, line, sizeof t->text - strlen(t->text) - 1);
    t->n++;
}

static ir_module *import_told(onnx_model *m, told *t)
{
    grt_string bytes = onnx_bytes(m);
    compile_source source = {.bytes = bytes.data, .size = bytes.size, .warn = tell, .warn_user = t};
    ir_module *module = NULL;
    ck_assert_msg(ir_import(&source, &module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

/* Imports with one warning that says `what`, and not when strict. */
static ir_module *forgiven(onnx_model *m, const char *what)
{
    told t = {0};
    ir_module *module = import_told(m, &t), *none = NULL;
    ck_assert_msg(t.n == 1 && strstr(t.text, what), "%d warnings: %s", t.n, t.text);
    module->warnings = (ir_warnings){0}; /* t ends here, and the module may have more to tell */
    grt_string bytes = onnx_bytes(m);
    compile_source strict = {.bytes = bytes.data, .size = bytes.size, .strict = true};
    ck_assert_int_eq(ir_import(&strict, &none), GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), what) != NULL, "%s", grt_last_error());
    onnx_release(m);
    return module;
}

static void graph_attr(onnx_model *m, Onnx__NodeProto *node, const char *name, Onnx__GraphProto *graph)
{
    onnx_attr(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = graph;
}

/* ---- order ---- */

START_TEST(nodes_are_sorted)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "Add", "b,c", "y");
    onnx_node(&m, m.graph, "Neg", "x", "a");
    onnx_node(&m, m.graph, "Abs", "a", "b");
    onnx_node(&m, m.graph, "Exp", "x", "c");
    onnx_output(&m, m.graph, "y");
    ir_module *module = forgiven(&m, "Add");
    const char *const order[] = {"Neg", "Abs", "Exp", "Add"};
    int i = 0;
    IR_FOR_EACH_NODE (node, module->main)
        ck_assert_str_eq(node->desc.op, order[i++]);
    ck_assert_int_eq(i, 4);
    ir_module_release(module);
}
END_TEST

START_TEST(sorted_nodes_stay)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Neg", "x", "a");
    onnx_node(&m, m.graph, "Abs", "y", "b");
    told t = {0};
    ir_module *module = import_told(&m, &t);
    ck_assert_int_eq(t.n, 0);
    ck_assert_str_eq(module->main->last->desc.op, "Abs");
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

/* What a body takes from around it is needed by its node; what it makes itself is not. */
START_TEST(bodies_count_for_order)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__GraphProto *then = onnx_graph(&m, "then"), *other = onnx_graph(&m, "else");
    onnx_node(&m, then, "Abs", "late", "v");
    onnx_output(&m, then, "v");
    onnx_output(&m, other, "later");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "c", "y");
    graph_attr(&m, node, "then_branch", then);
    graph_attr(&m, node, "else_branch", other);
    onnx_node(&m, m.graph, "Neg", "x", "late");
    onnx_node(&m, m.graph, "Sin", "late", "later");
    onnx_node(&m, m.graph, "Exp", "y", "v"); /* the body's v is its own */
    onnx_output(&m, m.graph, "v");
    ir_module *module = forgiven(&m, "it uses 'late'");
    ck_assert_str_eq(module->main->first->next->next->desc.op, "If");
    ir_module_release(module);
}
END_TEST

START_TEST(bodies_are_sorted)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__GraphProto *then = onnx_graph(&m, "then");
    onnx_node(&m, then, "Abs", "u", "v");
    onnx_node(&m, then, "Neg", "x", "u");
    onnx_output(&m, then, "v");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "c", "y");
    graph_attr(&m, node, "then_branch", then);
    graph_attr(&m, node, "else_branch", then);
    onnx_output(&m, m.graph, "y");
    told t = {0};
    ir_module *module = import_told(&m, &t);
    ck_assert_msg(t.n >= 1 && strstr(t.text, "'u'") && strstr(t.text, "of 'then'"), "%s", t.text);
    ck_assert_str_eq(grt_attr_find(&module->main->first->desc, "then_branch")->graph->first->desc.op, "Neg");
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

START_TEST(functions_are_sorted)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_opset(&m, "my", 1);
    Onnx__FunctionProto *f = onnx_function(&m, "my", "twice", "a", "c");
    onnx_function_node(&m, f, "", "Neg", "b", "c");
    onnx_function_node(&m, f, "", "Abs", "a", "b");
    onnx_node(&m, m.graph, "twice", "x", "y")->domain = (char *)"my";
    onnx_output(&m, m.graph, "y");
    ir_module *module = forgiven(&m, "'b'");
    ck_assert_str_eq(module->main->first->desc.op, "Abs");
    ck_assert_str_eq(module->main->last->desc.op, "Neg");
    ir_module_release(module);
}
END_TEST

START_TEST(cycle_names_its_nodes)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "Neg", "x", "other");
    onnx_node(&m, m.graph, "Add", "b,x", "a");
    onnx_node(&m, m.graph, "Abs", "a", "b");
    onnx_output(&m, m.graph, "a");
    import_refused(&m, "Add node 'the_Add'",
                   "cycle of nodes, each of which needs the next one's output: Add "
                   "'the_Add', Abs 'the_Abs'");
    m = onnx_create();
    onnx_node(&m, m.graph, "Relu", "a", "a");
    onnx_output(&m, m.graph, "a");
    import_refused(&m, "Relu node 'the_Relu'", "its own output");
}
END_TEST

START_TEST(cycle_through_a_body)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    Onnx__GraphProto *then = onnx_graph(&m, "then");
    onnx_output(&m, then, "z");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "c", "y");
    graph_attr(&m, node, "then_branch", then);
    graph_attr(&m, node, "else_branch", then);
    onnx_node(&m, m.graph, "Neg", "y", "z");
    onnx_output(&m, m.graph, "z");
    import_refused(&m, "If 'the_If'", "Neg 'the_Neg'");
}
END_TEST

/* A chain, first to last or last to first. */
static onnx_model chain(int n, bool backwards)
{
    onnx_model m = onnx_create();
    char in[32], out[32];
    onnx_input(&m, m.graph, "v0", GRT_DTYPE_FLOAT, "2");
    m.graph->node = GRT_ARENA_ARRAY(m.arena, Onnx__NodeProto *, n);
    for (int k = 0; k < n; k++) {
        const int i = backwards ? n - 1 - k : k;
        Onnx__NodeProto *node = GRT_ARENA_NEW(m.arena, Onnx__NodeProto);
        onnx__node_proto__init(node);
        snprintf(in, sizeof in, "v%d", i);
        snprintf(out, sizeof out, "v%d", i + 1);
        node->op_type = (char *)"Neg";
        node->n_input = node->n_output = 1;
        node->input = GRT_ARENA_NEW(m.arena, char *);
        node->output = GRT_ARENA_NEW(m.arena, char *);
        node->input[0] = grt_arena_strdup(m.arena, in);
        node->output[0] = grt_arena_strdup(m.arena, out);
        m.graph->node[m.graph->n_node++] = node;
    }
    onnx_output(&m, m.graph, out);
    if (backwards) {
        snprintf(out, sizeof out, "v%d", n);
        m.graph->output[0]->name = grt_arena_strdup(m.arena, out);
    }
    return m;
}

static double import_seconds(int n, bool backwards)
{
    struct timespec from, to;
    onnx_model m = chain(n, backwards);
    const grt_string bytes = onnx_bytes(&m);
    compile_source source = {.bytes = bytes.data, .size = bytes.size};
    ir_module *module = NULL;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    ck_assert_msg(ir_import(&source, &module) == GRT_OK, "%s", grt_last_error());
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    ck_assert_int_eq(module->main->n_nodes, n);
    ir_module_release(module);
    onnx_release(&m);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* A quadratic search would take minutes. */
START_TEST(order_is_linear)
{
    const double sorted = import_seconds(100000, false), backwards = import_seconds(100000, true);
    ck_assert_msg(sorted < 5 && backwards < 5, "sorted %.2f s, backwards %.2f s", sorted, backwards);
    if (getenv("GRAPHRT_TEST_SHOW"))
        fprintf(stderr, "sorted %.3f s, backwards %.3f s\n", sorted, backwards);
}
END_TEST

/* ---- names ---- */

START_TEST(inner_name_wins)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "c", GRT_DTYPE_BOOL, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    onnx_node(&m, m.graph, "Neg", "x", "v");
    Onnx__GraphProto *then = onnx_graph(&m, "then"), *other = onnx_graph(&m, "else");
    onnx_node(&m, then, "Abs", "x", "v");
    onnx_output(&m, then, "v");
    onnx_output(&m, other, "v");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "If", "c", "y");
    graph_attr(&m, node, "then_branch", then);
    graph_attr(&m, node, "else_branch", other);
    onnx_output(&m, m.graph, "y");
    ir_module *module = forgiven(&m, "'v' is the name of a value in a graph around 'then', too");
    const grt_op_desc *desc = &module->main->last->desc;
    ck_assert_str_eq(grt_attr_find(desc, "then_branch")->graph->outputs[0].value->producer->desc.op, "Abs");
    ck_assert_str_eq(grt_attr_find(desc, "else_branch")->graph->outputs[0].value->producer->desc.op, "Neg");
    ir_module_release(module);
}
END_TEST

START_TEST(initializer_twice)
{
    for (int different = 0; different < 2; different++) {
        onnx_model m = onnx_relu();
        onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "3"));
        onnx_initializer(&m, m.graph, onnx_tensor(&m, "w", "3"));
        onnx_node(&m, m.graph, "Add", "y,w", "z");
        onnx_output(&m, m.graph, "z");
        if (different) {
            m.graph->initializer[1]->float_data[2] = 7;
            import_refused(&m, "initializer 'w' is given twice", "different content");
        } else {
            ir_module_release(forgiven(&m, "initializer 'w' is given twice"));
        }
    }
}
END_TEST

START_TEST(nodes_of_one_name)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Relu", "y", "z");
    onnx_node(&m, m.graph, "Relu", "z", "u");
    onnx_output(&m, m.graph, "u");
    ir_module_release(forgiven(&m, "another node has this name, too"));
}
END_TEST

START_TEST(dims_without_a_name)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,n");
    for (int i = 0; i < 2; i++)
        m.graph->input[0]->type->tensor_type->shape->dim[i]->dim_param = (char *)"?";
    onnx_node(&m, m.graph, "Relu", "x", "y");
    onnx_output(&m, m.graph, "y");
    ir_module *module = forgiven(&m, "called '?', which is no name");
    const grt_dim *dims = module->main->inputs[0]->type.dims;
    ck_assert_int_ne(dims[0], dims[1]);
    ir_module_release(module);
}
END_TEST

START_TEST(free_dims)
{
    static const char *const lists[] = {NULL, "m", "m,n", "*", "nn,n", "nn"};
    static const bool is_free[] = {false, false, true, true, true, false};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        onnx_model m = onnx_create();
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "n,n");
        onnx_node(&m, m.graph, "Relu", "x", "y");
        onnx_output(&m, m.graph, "y");
        grt_string bytes = onnx_bytes(&m);
        compile_source source = {.bytes = bytes.data, .size = bytes.size, .free_dims = lists[i]};
        ir_module *module = NULL;
        ck_assert_int_eq(ir_import(&source, &module), GRT_OK);
        const grt_dim *dims = module->main->inputs[0]->type.dims;
        ck_assert_msg((dims[0] != dims[1]) == is_free[i], "%s", lists[i]);
        ir_module_release(module);
        onnx_release(&m);
    }
}
END_TEST

/* ---- versions, attributes, types ---- */

START_TEST(domain_is_not_listed)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "LabelEncoder", "y", "z")->domain = (char *)"ai.onnx.ml";
    ir_module_release(forgiven(&m, "domain 'ai.onnx.ml' is used, but no opset_import lists it; version 5"));
}
END_TEST

START_TEST(unknown_domain_is_not_listed)
{
    onnx_model m = onnx_relu();
    onnx_node(&m, m.graph, "Frobnicate", "y", "z")->domain = (char *)"my.domain";
    ir_module *module = forgiven(&m, "domain 'my.domain' is used");
    ck_assert_ptr_null(module->main->last->row);
    ir_module_release(module);
}
END_TEST

START_TEST(domain_is_listed_twice)
{
    onnx_model m = onnx_relu();
    onnx_opset(&m, "", 17);
    ir_module *module = forgiven(&m, "opset_import lists domain '' twice, with versions 20 and 17");
    ck_assert_int_eq(module->opset, 17);
    ir_module_release(module);
}
END_TEST

START_TEST(unknown_attribute)
{
    onnx_model m = onnx_relu();
    onnx_attr_int(&m, m.graph->node[0], "alhpa", 1);
    ir_module *module = forgiven(&m, "attribute 'alhpa' is not known and was left out; Relu has none");
    ck_assert_int_eq((int)module->main->first->desc.n_attrs, 0);
    ir_module_release(module);
}
END_TEST

/* A body that is left out uses nothing of the graph around it. */
START_TEST(unknown_body)
{
    onnx_model m = onnx_relu();
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_node(&m, body, "Neg", "x", "inner");
    onnx_output(&m, body, "inner");
    onnx_attr(&m, m.graph->node[0], "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = body;
    ir_module *module = forgiven(&m, "attribute 'body' is not known and was left out; Relu has none");
    ck_assert_int_eq((int)module->main->first->desc.n_attrs, 0);
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    ir_module_release(module);
}
END_TEST

START_TEST(iteration_of_rank_one)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "n", GRT_DTYPE_INT64, "");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_INT64, "1");
    Onnx__GraphProto *body = onnx_graph(&m, "body");
    onnx_input(&m, body, "i", GRT_DTYPE_INT64, "1");
    onnx_input(&m, body, "go", GRT_DTYPE_BOOL, "");
    onnx_input(&m, body, "s", GRT_DTYPE_INT64, "1");
    onnx_node(&m, body, "Add", "s,i", "t");
    onnx_output(&m, body, "go");
    onnx_output(&m, body, "t");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "Loop", "n,,x", "y");
    graph_attr(&m, node, "body", body);
    onnx_output(&m, m.graph, "y");
    ir_module *module = forgiven(&m, "declares the number of the iteration, 'i', with rank 1");
    ck_assert_int_eq(ir_infer(module), GRT_OK);
    const ir_node *add = grt_attr_find(&module->main->first->desc, "body")->graph->last;
    ck_assert_int_eq(add->in[1].value->type.rank, 1);
    ir_module_release(module);
}
END_TEST

/* The same for what inference forgives. */
static ir_module *inferred(onnx_model *m, const char *what)
{
    static told t;
    t = (told){0};
    ir_module *module = import_told(m, &t), *strict = NULL;
    ck_assert_int_eq(t.n, 0);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(t.n == 1 && strstr(t.text, what), "%d warnings: %s", t.n, t.text);
    module->warnings = (ir_warnings){0}; /* t ends here, and the module may have more to tell */
    grt_string bytes = onnx_bytes(m);
    compile_source source = {.bytes = bytes.data, .size = bytes.size, .strict = true};
    ck_assert_int_eq(ir_import(&source, &strict), GRT_OK);
    ck_assert_int_eq(ir_infer(strict), GRT_STATUS_INVALID_MODEL);
    ck_assert_msg(strstr(grt_last_error(), what) != NULL, "%s", grt_last_error());
    ir_module_release(strict);
    onnx_release(m);
    return module;
}

START_TEST(declared_types)
{
    static const char *const said[] = {"declared with dtype float16, but has float32",
                                       "declared with rank 1, but has 2", "declared with dim 1 7, but has 3"};
    static const char *const dims[] = {"2,3", "2", "2,7"};
    for (int i = 0; i < 3; i++) {
        onnx_model m = onnx_relu();
        onnx_input(&m, m.graph, "t", i == 0 ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_FLOAT, dims[i]);
        m.graph->output[0]->type = m.graph->input[1]->type;
        ir_module *module = inferred(&m, said[i]);
        ck_assert_int_eq(module->main->outputs[0].value->type.dtype, GRT_DTYPE_FLOAT);
        ir_module_release(module);
    }
}
END_TEST

START_TEST(half_constant_beside_floats)
{
    static const uint16_t half[] = {0x3c00, 0x4000, 0x3800}; /* 1, 2, 0.5 */
    onnx_model m = onnx_relu();
    onnx_initializer(&m, m.graph, onnx_raw(&m, "h", GRT_DTYPE_FLOAT16, "3", half, sizeof half));
    onnx_node(&m, m.graph, "Mul", "y,h", "z");
    onnx_output(&m, m.graph, "z");
    ir_module *module = inferred(&m, "input 1 is a constant of float16 beside values of float32");
    const float *taken = module->main->last->in[1].value->type.data->data;
    ck_assert(taken[0] == 1 && taken[1] == 2 && taken[2] == 0.5f);
    ir_module_release(module);
}
END_TEST

START_TEST(half_scale_of_a_norm_of_floats)
{
    static const uint16_t half[] = {0x3c00, 0x4000, 0x3800};
    onnx_model m = onnx_relu();
    onnx_initializer(&m, m.graph, onnx_raw(&m, "h", GRT_DTYPE_FLOAT16, "3", half, sizeof half));
    onnx_node(&m, m.graph, "LayerNormalization", "y,h", "z");
    onnx_output(&m, m.graph, "z");
    ir_module *module = inferred(&m, "input 1 is a constant of float16 beside values of float32");
    ck_assert_int_eq(ir_in(module->main->last, 1)->type.dtype, GRT_DTYPE_FLOAT);
    ir_module_release(module);
}
END_TEST

START_TEST(scalar_reduced_over_an_axis)
{
    static const int64_t first = 0, last = -1, second = 1;
    const int64_t *const axes[] = {&first, &last, &second};
    for (int i = 0; i < 3; i++) {
        onnx_model m = onnx_create();
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "");
        onnx_initializer(&m, m.graph, onnx_raw(&m, "axes", GRT_DTYPE_INT64, "1", axes[i], sizeof first));
        onnx_node(&m, m.graph, "ReduceSum", "x,axes", "y");
        onnx_output(&m, m.graph, "y");
        if (i < 2) {
            ir_module *module = inferred(&m, "of a scalar, which has none");
            ck_assert_int_eq(module->main->last->out[0]->type.rank, 0);
            ck_assert_ptr_null(ir_in(module->main->last, 1));
            ir_module_release(module);
            continue;
        }
        told t = {0};
        ir_module *module = import_told(&m, &t);
        ck_assert_int_eq(ir_infer(module), GRT_STATUS_INVALID_MODEL);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "an entry of axes is 1; the input is a scalar"));
        ir_module_release(module);
        onnx_release(&m);
    }
}
END_TEST

/* A perm that counts from the end has one meaning, but for an axis that is not there. */
START_TEST(perm_from_the_end)
{
    static int64_t perms[][3] = {{0, -1, -2}, {0, -1, -4}};
    for (int i = 0; i < 2; i++) {
        onnx_model m = onnx_create();
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,3,4");
        Onnx__AttributeProto *perm = onnx_attr(&m, onnx_node(&m, m.graph, "Transpose", "x", "y"), "perm",
                                               ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
        perm->n_ints = 3;
        perm->ints = perms[i];
        onnx_output(&m, m.graph, "y");
        if (i == 0) {
            ir_module *module = inferred(&m, "perm has the entry -1");
            int64_t dim;
            ck_assert(grt_dim_is_const(module->dims, module->main->last->out[0]->type.dims[1], &dim));
            ck_assert_int_eq(dim, 4);
            ir_module_release(module);
            continue;
        }
        told t = {0};
        ir_module *module = import_told(&m, &t);
        ck_assert_int_eq(ir_infer(module), GRT_STATUS_INVALID_MODEL);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "is -4; expected one in [0, 3)"));
        ir_module_release(module);
        onnx_release(&m);
    }
}
END_TEST

/* Several float32 numbers cannot be narrowed without loss, and of two computed types none is the right one.
 */
START_TEST(mixed_floats_with_two_meanings)
{
    for (int i = 0; i < 2; i++) {
        onnx_model m = onnx_create();
        onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT16, "3");
        onnx_input(&m, m.graph, "w", GRT_DTYPE_FLOAT, "3");
        onnx_initializer(&m, m.graph, onnx_tensor(&m, "v", "3"));
        onnx_node(&m, m.graph, "Mul", i ? "x,v" : "x,w", "z");
        onnx_output(&m, m.graph, "z");
        told t = {0};
        ir_module *module = import_told(&m, &t);
        ck_assert_int_eq(ir_infer(module), GRT_STATUS_INVALID_MODEL);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "both are of the type parameter T"));
        ir_module_release(module);
        onnx_release(&m);
    }
}
END_TEST

START_TEST(warnings_are_bounded)
{
    onnx_model m = onnx_relu();
    for (int i = 0; i < 300; i++) {
        char out[16];
        snprintf(out, sizeof out, "z%d", i);
        onnx_attr_int(&m, onnx_node(&m, m.graph, "Abs", "y", out), "what", 1);
        m.graph->node[m.graph->n_node - 1]->name = (char *)"";
    }
    told t = {0};
    ir_module_release(import_told(&m, &t));
    ck_assert_int_eq(t.n, 100);
    onnx_release(&m);
}
END_TEST

/* ---- through the library ---- */

static void add_finding(void *user, const grt_finding *f)
{
    strncat(user, f->status == GRT_OK ? "warning " : "problem ", 1000 - strlen(user) - 1);
    strncat(user, f->message, 1000 - strlen(user) - 1);
}

START_TEST(check_and_compile_tell)
{
    onnx_model m = onnx_relu();
    onnx_opset(&m, "", 17);
    char path[FILES_NAME], plan[FILES_NAME], text[1000] = "";
    size_t n = 1;
    files_fresh(path);
    files_fresh(plan);
    onnx_write(&m, path);
    ck_assert_int_eq(grt_check_model(path, NULL, add_finding, text, &n), GRT_OK);
    ck_assert_int_eq((int)n, 0);
    ck_assert_msg(!strncmp(text, "warning opset_import", 20), "%s", text);
    grt_compile_options options = {.struct_size = sizeof options, .strict = true};
    *text = 0;
    ck_assert_int_eq(grt_check_model_with(path, &options, add_finding, text, &n), GRT_OK);
    ck_assert_int_eq((int)n, 1);
    ck_assert_msg(!strncmp(text, "problem opset_import", 20), "%s", text);
    ck_assert_int_eq(grt_compile(path, &options, plan), GRT_STATUS_INVALID_MODEL);
    *text = 0;
    options = (grt_compile_options){.struct_size = sizeof options, .warning = add_finding, .user = text};
    ck_assert_int_eq(grt_compile(path, &options, plan), GRT_OK);
    ck_assert_msg(!strncmp(text, "warning opset_import", 20), "%s", text);
    unlink(path);
    unlink(plan);
    onnx_release(&m);
}
END_TEST

Suite *suite_test_import_forgiving(void);
Suite *suite_test_import_forgiving(void)
{
    Suite *suite = suite_create("import_forgiving");
    const TTest *const order[] = {nodes_are_sorted,     sorted_nodes_stay,    bodies_count_for_order,
                                  bodies_are_sorted,    functions_are_sorted, cycle_names_its_nodes,
                                  cycle_through_a_body, order_is_linear,      NULL};
    const TTest *const names[] = {inner_name_wins,     initializer_twice, nodes_of_one_name,
                                  dims_without_a_name, free_dims,         NULL};
    const TTest *const rest[] = {domain_is_not_listed,
                                 unknown_domain_is_not_listed,
                                 domain_is_listed_twice,
                                 unknown_attribute,
                                 unknown_body,
                                 iteration_of_rank_one,
                                 warnings_are_bounded,
                                 check_and_compile_tell,
                                 declared_types,
                                 half_constant_beside_floats,
                                 half_scale_of_a_norm_of_floats,
                                 mixed_floats_with_two_meanings,
                                 scalar_reduced_over_an_axis,
                                 perm_from_the_end,
                                 NULL};
    import_add(suite, "order", order);
    import_add(suite, "names", names);
    import_add(suite, "rest", rest);
    return suite;
}

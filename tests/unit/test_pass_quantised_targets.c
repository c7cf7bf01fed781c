/* SPDX-License-Identifier: Apache-2.0 */
/* Passes `quantised` and `quantised_epilogues` for targets whose steps do more than the CPU's. */
#include "graph/ir/infer.h"
#include "graph/passes/quantised.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/quantised_text.h"
#include "tests/unit/suite.h"

#include <string.h>

/* A target with steps that the CPU has not: residuals, rounding behind any activation, quantised norms and
 * attention. */
static bool takes_products(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                           int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    const grt_target plain = ir_text_target();
    (void)target;
    return grt_op_is(desc, "graphrt", "QConv") || grt_op_is(desc, "graphrt", "QMatMul") ||
           grt_op_is(desc, "graphrt", "QLayerNormalization") || grt_op_is(desc, "graphrt", "QAttention") ||
           plain.supports(&plain, desc, in, n_in, out, n_out, why);
}

static void compile_module_for_other(ir_module *module, grt_precision precision)
{
    grt_target target = ir_text_target();
    target.supports = target.runs = takes_products;
    pass_context context = {.module = module, .target = &target, .level = 2, .precision = precision};
    ck_assert_msg(pass_run_enabled(&context) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
}

static ir_module *compile_for_other(const char *text, grt_precision precision)
{
    ir_module *module = ir_text(text);
    compile_module_for_other(module, precision);
    return module;
}

START_TEST(sums_join_products_that_are_rounded)
{
    ir_module *module =
        compile_for_other("in x f32 1,4,6,6\n" X_QUANTISED "const w i8 4,4,1,1" WEIGHTS "const u f32 - 0.25\n"
                          "wd = DequantizeLinear w ws wz\n"
                          "c = Conv xd wd\n"
                          "cq = QuantizeLinear c u z\n"
                          "cd = DequantizeLinear cq u z\n"
                          "a = Add cd xd\n"
                          "r = Relu a\n" Y_QUANTISED,
                          GRT_PRECISION_MODEL);
    const ir_node *conv = ir_text_node(module, "QConv", 0);
    double scale;
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QAdd"));
    ck_assert_str_eq(grt_attr_string(&conv->desc, "sum_activation", ""), "Relu");
    ck_assert_str_eq(grt_attr_string(&conv->desc, "activation", ""), "");
    ck_assert(ir_const_float(ir_in(conv, QP_Y_SCALE), &scale) && scale == 0.25);
    ck_assert(ir_const_float(ir_in(conv, QP_SUM_SCALE), &scale) && scale == 0.5);
    ck_assert(ir_const_float(ir_in(conv, QP_R_SCALE), &scale) && scale == 0.0078125);
    ck_assert_str_eq(conv->out[0]->name, "yq"); /* as on targets where the sum is a step of its own */
    ir_module_release(module);
}
END_TEST

/* Behind a Reshape that parts the sum from its product until moves of rows have gone. */
START_TEST(sums_join_products_of_matrices)
{
    ir_module *module =
        compile_for_other("in x f32 2,3,16\n" X_QUANTISED "const m i64 2 6 16\nconst b i64 3 2 3 16\n"
                          "const w i8 16,16" WEIGHTS "const u f32 - 0.25\n"
                          "wd = DequantizeLinear w ws wz\n"
                          "xm = Reshape xd m\n"
                          "p = MatMul xm wd\n"
                          "pq = QuantizeLinear p u z\n"
                          "pd = DequantizeLinear pq u z\n"
                          "pb = Reshape pd b\n"
                          "r = Add pb xd\n" Y_QUANTISED,
                          GRT_PRECISION_MODEL);
    double scale;
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QAdd"));
    ck_assert(ir_const_float(ir_in(ir_text_node(module, "QMatMul", 0), QP_SUM_SCALE), &scale) &&
              scale == 0.5);
    ir_module_release(module);
}
END_TEST

/* A bias that a quantiser put behind the product's rounding, and a function of the sum. */
START_TEST(rows_and_tables_join_products_of_matrices)
{
#define ROW(dims)                                                                                        \
    "in x f32 2,16\n" X_QUANTISED "const w i8 16,12" WEIGHTS "const u f32 - 0.25\nconst v f32 - 0.125\n" \
    "const c u8 " dims " 7 9\n"                                                                          \
    "wd = DequantizeLinear w ws wz\n"                                                                    \
    "p = MatMul xd wd\n"                                                                                 \
    "pq = QuantizeLinear p u z\n"                                                                        \
    "pd = DequantizeLinear pq u z\n"                                                                     \
    "cd = DequantizeLinear c v z\n"                                                                      \
    "a = Add cd pd\n"                                                                                    \
    "aq = QuantizeLinear a v z\n"                                                                        \
    "ad = DequantizeLinear aq v z\n"                                                                     \
    "r = Tanh ad\n" Y_QUANTISED
    ir_module *module = compile_for_other(ROW("12"), GRT_PRECISION_MODEL);
    const ir_node *product = ir_text_node(module, "QMatMul", 0);
    ck_assert_str_eq(ir_text_ops(module), "QuantizeLinear graphrt::QMatMul DequantizeLinear");
    ck_assert_int_eq(grt_tensor_elements(ir_in(product, QP_RESIDUAL)->type.data), 12);
    ck_assert_int_eq(grt_tensor_elements(ir_in(product, QP_TABLE)->type.data), 256);
    ck_assert_str_eq(product->out[0]->name, "yq");
    ir_module_release(module);
    /* A constant of each number of the result is no row, and one of all is no sum, but a table. */
    module = compile_for_other(ROW("2,1"), GRT_PRECISION_MODEL);
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "QAdd"));
    ir_module_release(module);
    module = compile_for_other(ROW("1"), GRT_PRECISION_MODEL);
    ck_assert_str_eq(ir_text_ops(module), "QuantizeLinear graphrt::QMatMul DequantizeLinear");
    ck_assert_ptr_null(ir_in(ir_text_node(module, "QMatMul", 0), QP_RESIDUAL));
    ir_module_release(module);
    /* Steps of their own on the CPU. */
    module = ir_text(ROW("12"));
    ir_text_pass(module, "");
    ck_assert_str_eq(ir_text_ops(module),
                     "QuantizeLinear graphrt::QMatMul graphrt::QAdd graphrt::QTable DequantizeLinear");
    ir_module_release(module);
#undef ROW
}
END_TEST

static ir_value *add_branch(ir_node *owner, const char *name, const char *domain, const char *op,
                            int32_t n_in, ir_value *const *in)
{
    ir_graph *body = ir_graph_create(owner->graph->module, owner, name);
    ir_attr_set(owner, (grt_attr){.name = name, .kind = GRT_ATTR_GRAPH, .graph = body});
    ir_value *y = ir_node_out(ir_node_create(body, NULL, domain, op, op, n_in, in, 1));
    ir_graph_add_output(body, y);
    return y;
}

/* In a body, which may run many times, a product would be made as often. */
START_TEST(products_stay_outside_of_bodies)
{
    ir_module *module = ir_text("in x u8 2,16\nin b bool -\nin e u8 2,12\n"
                                "const s f32 - 0.5\nconst z u8 - 128\nconst w u8 16,12\n"
                                "p = graphrt::QMatMul x s z w s z s z\nq = Identity p\nout q\n");
    ir_graph *graph = module->main;
    ir_node *product = graph->first, *copy = product->next;
    ir_value *p = product->out[0], *s = ir_in(product, QP_X_SCALE), *z = ir_in(product, QP_X_ZERO);
    ir_value *b = graph->inputs[1], *e = graph->inputs[2];
    ir_node *branch = ir_node_create(graph, NULL, "", "If", "branch", 1, &b, 1);
    add_branch(branch, "then_branch", "graphrt", "QAdd", 8, (ir_value *[]){p, s, z, e, s, z, s, z});
    add_branch(branch, "else_branch", "", "Identity", 1, &e);
    ir_value_replace(copy->out[0], branch->out[0]);
    ir_node_remove(copy);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    compile_module_for_other(module, GRT_PRECISION_MODEL);
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QMatMul If");
    ir_module_release(module);
}
END_TEST

START_TEST(activations_join_what_is_rounded_behind_them)
{
    const char *text =
        "in x f32 2,16\n" X_QUANTISED "const w i8 16,12" WEIGHTS "wd = DequantizeLinear w ws wz\n"
        "m = MatMul xd wd\n"
        "r = Gelu m\n" Y_QUANTISED;
    ir_module *module = compile_for_other(text, GRT_PRECISION_MODEL);
    ck_assert_str_eq(ir_text_ops(module), "QuantizeLinear graphrt::QMatMul DequantizeLinear");
    ck_assert_str_eq(grt_attr_string(&ir_text_node(module, "QMatMul", 0)->desc, "activation", ""), "Gelu");
    ir_module_release(module);
    /* The CPU's step does not round behind it. */
    module = ir_text(text);
    ir_text_pass(module, "");
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "Gelu"));
    ir_module_release(module);
}
END_TEST

START_TEST(float_products_add_residuals_and_are_narrow)
{
    ir_module *module = compile_for_other("in x f32 2,16\n"
                                          "in o f32 2,12\n" X_QUANTISED "const w i8 16,12" WEIGHTS
                                          "wd = DequantizeLinear w ws wz\n"
                                          "e = Relu o\n"
                                          "m = MatMul xd wd\n"
                                          "y = Add e m\n"
                                          "out y\n",
                                          GRT_PRECISION_FLOAT16);
    const ir_node *product = ir_text_node(module, "QMatMul", 0);
    ck_assert_int_eq(product->out[0]->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_int_eq(ir_in(product, QP_RESIDUAL)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "Add"));
    ir_module_release(module);
}
END_TEST

START_TEST(norms_quantise_their_results)
{
#define NORM                 \
    "in x f32 2,16\n"        \
    "const t f32 - 0.5\n"    \
    "const z u8 - 128\n"     \
    "const g f32 16 1 2 3\n" \
    "const b f32 16 5 4\n"   \
    "e = Relu x\n"           \
    "r = LayerNormalization e g b\n" Y_QUANTISED
    ir_module *module = compile_for_other(NORM, GRT_PRECISION_FLOAT16);
    const ir_node *norm = ir_text_node(module, "QLayerNormalization", 0);
    ck_assert_int_eq(norm->n_out, 1);
    ck_assert_int_eq(ir_in(norm, 0)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QuantizeLinear"));
    ir_module_release(module);
    /* Others read the float result. */
    module = compile_for_other(NORM "o = Tanh r\nout o\n", GRT_PRECISION_MODEL);
    ck_assert_int_eq(ir_text_node(module, "QLayerNormalization", 0)->n_out, 2);
    ir_module_release(module);
    /* The CPU's step does not quantise. */
    module = ir_text(NORM);
    ir_text_pass(module, "");
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "QuantizeLinear"));
    ir_module_release(module);
#undef NORM
}
END_TEST

START_TEST(attention_quantises_its_result)
{
#define HEADS             \
    "in q f32 1,2,4,16\n" \
    "in k f32 1,2,6,16\n" \
    "in v f32 1,2,6,16\n" \
    "const t f32 - 0.5\n" \
    "const z u8 - 128\n"
    ir_module *module =
        compile_for_other(HEADS "r = Attention q k v is_causal=1\n" Y_QUANTISED, GRT_PRECISION_FLOAT16);
    const ir_node *attention = ir_text_node(module, "QAttention", 0);
    ck_assert_ptr_nonnull(attention);
    ck_assert_int_eq(ir_in(attention, 0)->type.dtype, GRT_DTYPE_FLOAT16);
    ck_assert_int_eq(attention->out[0]->type.dtype, GRT_DTYPE_UINT8);
    ck_assert_int_eq(grt_attr_int(&attention->desc, "is_causal", 0), 1);
    ck_assert_int_eq(grt_attr_int(&attention->desc, "joined", 1), 0);
    ir_module_release(module);
    /* Queries, keys and values side by side. */
    module = compile_for_other("in x f32 2,4,48\n"
                               "const t f32 - 0.5\n"
                               "const z i8 - -3\n"
                               "r = graphrt::Attention x q_num_heads=1 kv_num_heads=1\n" Y_QUANTISED,
                               GRT_PRECISION_FLOAT16);
    attention = ir_text_node(module, "QAttention", 0);
    ck_assert_int_eq(grt_attr_int(&attention->desc, "joined", 0), 1);
    ck_assert_int_eq(attention->out[0]->type.dtype, GRT_DTYPE_INT8);
    ck_assert(attention->out[0]->type.rank == 3 && !ir_in(attention, 1));
    ir_module_release(module);
    /* Others read the float result, or what else attention makes. */
    module = compile_for_other(HEADS "r = Attention q k v\n" Y_QUANTISED "o = Tanh r\nout o\n",
                               GRT_PRECISION_FLOAT16);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QAttention"));
    ir_module_release(module);
    module =
        compile_for_other(HEADS "r,ok,ov,p = Attention q k v\n" Y_QUANTISED "out p\n", GRT_PRECISION_FLOAT16);
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QAttention"));
    ir_module_release(module);
    /* The CPU's step does not quantise. */
    module = ir_text(HEADS "r = Attention q k v\n" Y_QUANTISED);
    ir_text_pass(module, "");
    ck_assert_ptr_null(strstr(ir_text_ops(module), "QAttention"));
    ir_module_release(module);
#undef HEADS
}
END_TEST

/* Two convolutions, of which the second one has these pads; what it reads has this zero point. */
static ir_module *after_unsigned_windows(const char *pads, int zero)
{
    grt_text text = {0};
    grt_text_add(&text,
                 "in x i8 1,4,6,6\nconst s f32 - 0.5\nconst n i8 - %d\nconst ws f32 - 0.03125\n"
                 "const wz i8 - 0\nconst w i8 4,4,3,3" WEIGHTS
                 "h = graphrt::QConv x s n w ws wz s n pads=1,1,1,1\n"
                 "y = graphrt::QConv h s n w ws wz s n pads=%s\nout y\n",
                 zero, pads);
    ir_module *module = ir_text(grt_text_get(&text));
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    pass_context context = {.module = module, .target = &target, .level = 2};
    grt_text_release(&text);
    target.supports = target.runs = takes_products;
    target.traits = &traits;
    traits.own_memory = true;
    ck_assert_int_eq(pass_unsigned_windows(&context), GRT_OK);
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

START_TEST(windows_see_zeros_outside)
{
    static const struct {
        const char *pads;
        int zero;
        grt_dtype expected;
    } cases[] = {{"1,1,1,1", -128, GRT_DTYPE_UINT8},
                 {"0,0,0,0", -128, GRT_DTYPE_INT8},
                 {"1,1,1,1", -127, GRT_DTYPE_INT8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ir_module *module = after_unsigned_windows(cases[i].pads, cases[i].zero);
        const ir_node *first = ir_text_node(module, "QConv", 0), *second = ir_text_node(module, "QConv", 1);
        double zero;
        ck_assert_int_eq(first->out[0]->type.dtype, cases[i].expected);
        ck_assert(ir_const_float(ir_in(second, QP_X_ZERO), &zero));
        ck_assert(zero == (cases[i].expected == GRT_DTYPE_UINT8 ? 0 : cases[i].zero));
        ck_assert_ptr_eq(ir_in(first, QP_Y_ZERO), ir_in(second, QP_X_ZERO));
        ck_assert_int_eq(second->out[0]->type.dtype, GRT_DTYPE_INT8);
        ir_module_release(module);
    }
}
END_TEST

UNIT_SUITE(test_pass_quantised_targets, NULL, NULL, sums_join_products_that_are_rounded,
           sums_join_products_of_matrices, rows_and_tables_join_products_of_matrices,
           products_stay_outside_of_bodies, activations_join_what_is_rounded_behind_them,
           float_products_add_residuals_and_are_narrow, norms_quantise_their_results,
           attention_quantises_its_result, windows_see_zeros_outside)

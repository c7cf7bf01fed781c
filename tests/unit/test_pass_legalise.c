/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of what the target has no kernel for, in all graphs, until nothing is left to expand. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

/* The CPU without kernels for one op. */
static bool supports_all_but(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                             int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    const grt_target cpu = ir_text_target();
    return strcmp(desc->op, target->user) != 0 && cpu.supports(&cpu, desc, in, n_in, out, n_out, why);
}

static int64_t legalise_without(ir_module *m, char *op)
{
    grt_target target = ir_text_target();
    target.supports = supports_all_but;
    target.user = op;
    pass_context context = {.module = m, .target = &target};
    ck_assert_msg(pass_legalise(&context) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(m) == GRT_OK, "%s", grt_last_error());
    return context.changed;
}

START_TEST(what_has_no_kernel_is_expanded)
{
    ir_module *m = ir_text("in x f32 2,n\n"
                           "y = ai.onnx.ml::Normalizer x norm=MAX\n"
                           "z = Relu y\n"
                           "out z\n");
    ck_assert_int_eq(ir_text_pass(m, "legalise"), 1);
    ck_assert_str_eq(ir_text_ops(m), "ReduceMax Equal Where Div Relu");
    const ir_type *z = &m->main->outputs[0].value->type;
    ck_assert_int_eq(z->dims[1], grt_dim_symbol(m->dims, "n"));
    ir_module_release(m);
}
END_TEST

START_TEST(what_has_one_stays)
{
    static const char text[] = "in x f32 2,4,2,8\n"
                               "const c f32 1,2,4\n"
                               "y = RotaryEmbedding x c c\n"
                               "out y\n";
    ir_module *m = ir_text(text);
    ck_assert_int_gt(legalise_without(m, "RotaryEmbedding"), 0);
    ck_assert_ptr_nonnull(strstr(ir_text_ops(m), "Expand"));
    ir_module_release(m);
    ir_text_check("in x f32 2,4,2,8\n"
                  "const c f32 2,2,4\n"
                  "y = RotaryEmbedding x c c\n"
                  "out y\n",
                  "legalise", "RotaryEmbedding");
}
END_TEST

/* Weights of bytes, where only an LSTM of floats has a kernel. */
START_TEST(dynamic_lstm_is_dequantised)
{
    static const char text[] =
        "in x f32 s,1,3\n"
        "in w i8 1,3,16\n"
        "in r i8 1,4,16\n"
        "in scale f32 1\n"
        "in zero i8 1\n"
        "y,h,c = com.microsoft::DynamicQuantizeLSTM x w r _ _ _ _ _ scale zero scale zero hidden_size=4\n"
        "out y\n";
    ir_module *m = ir_text(text);
    ck_assert_int_eq(legalise_without(m, "DynamicQuantizeLSTM"), 1);
    const ir_node *lstm = m->main->outputs[0].value->producer;
    ck_assert_str_eq(lstm->desc.op, "LSTM");
    ck_assert_str_eq(ir_in(lstm, 1)->producer->desc.op, "Transpose");
    ck_assert_int_eq(m->main->outputs[0].value->type.rank, 4);
    ir_module_release(m);
    ir_text_check(text, "legalise", "com.microsoft::DynamicQuantizeLSTM");
}
END_TEST

/* Einsum has a kernel; of many operands it is faster in pairs. */
START_TEST(some_are_expanded_always)
{
    ir_module *m = ir_text("in x f32 2,3\nin w f32 3,4\nin v f32 4,5\n"
                           "y = Einsum x w v equation=ij,jk,kl->il\nout y\n");
    ck_assert_int_gt(ir_text_pass(m, "legalise"), 0);
    ck_assert_str_ne(ir_text_ops(m), "Einsum");
    ir_module_release(m);
}
END_TEST

/* Of two operands it is a product, also where a size is not known. In order: moves alone, a sum over two
 * letters, sizes that stretch, and without a sum: a table, rows with a scale each. */
START_TEST(einsum_of_two_is_a_product)
{
    ir_text_check("in x f32 2,3,4\nin w f32 3,5,4\ny = Einsum x w equation=bim,iom->bom\nout y\n", "legalise",
                  "Transpose Transpose MatMul Transpose");
    ir_text_check("in x f32 2,3,4\nconst w f32 3,4,5\ny = Einsum x w equation=bij,ijo->bo\nout y\n",
                  "legalise", "Reshape Reshape MatMul");
    ir_text_check("in x f32 1,3\nin w f32 2,3\ny = Einsum x w equation=bi,bi->b\nout y\n", "legalise",
                  "Einsum");
    ir_text_check("in x f32 3\nin w f32 4\ny = Einsum x w equation=i,j->ij\nout y\n", "legalise",
                  "Unsqueeze Unsqueeze Mul");
    ir_text_check("in x f32 2,3,4\nin w f32 2,4\ny = Einsum x w equation=bij,bj->jbi\nout y\n", "legalise",
                  "Transpose Transpose Unsqueeze Mul");
    ir_module *m =
        ir_text("in q f32 n,t,4,8\nin k f32 n,s,4,8\ny = Einsum q k equation=nthd,nshd->nhts\nout y\n");
    ir_text_pass(m, "legalise");
    ck_assert_str_eq(ir_text_ops(m), "Transpose Transpose MatMul");
    ir_module_release(m);
}
END_TEST

/* What inference refuses of a pair is no lack of memory: the whole says what is wrong when it is inferred. */
START_TEST(einsum_of_pairs_that_do_not_fit_stays)
{
    ir_module *m = ir_text("in x f32 2,3\nin u f32 9\nin w f32 3,4\nin v f32 4,5\n"
                           "y = Einsum x u w v equation=ij,m,jk,kl->il\nout y\n");
    ir_node *node = ir_text_node(m, "Einsum", 0);
    const grt_dim other[] = {grt_dim_const(m->dims, 7), grt_dim_const(m->dims, 4)};
    bool done = true;
    ir_in(node, 2)->type.dims = other;
    ck_assert_msg(node->row->expand(node, &done) == GRT_OK, "%s", grt_last_error());
    ck_assert(!done);
    ck_assert_str_eq(ir_text_ops(m), "Einsum");
    ir_module_release(m);
}
END_TEST

START_TEST(bodies_are_expanded_too)
{
    ir_module *m = ir_text("in x f32 2,3\nin go bool -\n");
    ir_node *branch = ir_node_create(m->main, NULL, "", "If", "if", 1, &m->main->inputs[1], 1);
    static const char *const names[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        ir_graph *body = ir_graph_create(m, branch, names[i]);
        ir_node *inner =
            ir_node_create(body, NULL, "ai.onnx.ml", "Normalizer", "inner", 1, &m->main->inputs[0], 1);
        ir_attr_set_string(inner, "norm", "MAX");
        ir_graph_add_output(body, inner->out[0]);
        ir_attr_set(branch, (grt_attr){.name = names[i], .kind = GRT_ATTR_GRAPH, .graph = body});
    }
    ir_graph_add_output(m->main, branch->out[0]);
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(ir_text_pass(m, "legalise"), 2);
    for (int i = 0; i < 2; i++)
        IR_FOR_EACH_NODE (node, grt_attr_find(&branch->desc, names[i])->graph)
            ck_assert_str_eq(node->desc.domain, "");
    ir_module_release(m);
}
END_TEST

START_TEST(outputs_keep_their_names)
{
    ir_module *m = ir_text("in x f32 2,3\n"
                           "y = ai.onnx.ml::Normalizer x norm=MAX\n"
                           "z = Neg y\n"
                           "out y\n"
                           "out z\n");
    ir_text_pass(m, "legalise");
    ck_assert_str_eq(ir_text_ops(m), "ReduceMax Equal Where Div Neg");
    ck_assert_str_eq(m->main->outputs[0].value->name, "y");
    ck_assert_str_eq(m->main->outputs[1].value->name, "z");
    ir_module_release(m);
}
END_TEST

/* A row that expands into itself. */
static grt_status expand_for_ever(ir_node *node, bool *out_done)
{
    ir_node *again = ir_node_create(node->graph, node, "", "Relu", node->desc.name, 1, &node->in[0].value, 1);
    again->row = node->row;
    ir_value_replace(node->out[0], again->out[0]);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

START_TEST(expansions_end)
{
    ir_module *m = ir_text("in x f32 2,3\ny = Relu x\nz = Neg y\nout z\n");
    op_row endless = *op_find("", "Relu");
    endless.expand = expand_for_ever;
    endless.flags |= OP_EXPANDS_ALWAYS;
    ir_text_node(m, "Relu", 0)->row = &endless;
    grt_target target = ir_text_target();
    pass_context context = {.module = m, .target = &target};
    ck_assert_int_eq(pass_legalise(&context), GRT_STATUS_INTERNAL);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "does not come to an end"));
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_legalise(void);
Suite *suite_test_pass_legalise(void)
{
    Suite *suite = suite_create("pass_legalise");
    TCase *all = tcase_create("all");
    tcase_add_test(all, what_has_no_kernel_is_expanded);
    tcase_add_test(all, what_has_one_stays);
    tcase_add_test(all, dynamic_lstm_is_dequantised);
    tcase_add_test(all, some_are_expanded_always);
    tcase_add_test(all, einsum_of_two_is_a_product);
    tcase_add_test(all, einsum_of_pairs_that_do_not_fit_stays);
    tcase_add_test(all, bodies_are_expanded_too);
    tcase_add_test(all, outputs_keep_their_names);
    tcase_add_test(all, expansions_end);
    suite_add_tcase(suite, all);
    return suite;
}

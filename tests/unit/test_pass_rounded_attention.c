/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `rounded_attention`: one step of an attention that is rounded behind each of its nodes. */
#include "src/base/rounded_attention.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include "graph/passes/quantised.h"

#include <string.h>

/* Queries, keys and values of the dims TOKENS as heads, 64 numbers each, and constants. */
#define ROUNDED_INPUTS(dims)                                                                   \
    "in q u8 " dims "\nin k u8 " dims "\nin v u8 " dims "\n"                                   \
    "const s f32 - 0.0078125\nconst z u8 - 128\nconst t f32 - 0.5\nconst p f32 - 0.00390625\n" \
    "const n u8 - 0\n"                                                                         \
    "qd = DequantizeLinear q s z\nkd = DequantizeLinear k s z\nvd = DequantizeLinear v s z\n"  \
    "qh = Transpose qd perm=0,2,1,3\nkh = Transpose kd perm=0,2,3,1\nvh = Transpose vd perm=0,2,1,3\n"
#define ROUNDED_SCORES "m = MatMul qh kh\nmq = QuantizeLinear m t z\nmd = DequantizeLinear mq t z\n"
#define ROUNDED_SHARES(of) \
    "e = Softmax " of " axis=-1\neq = QuantizeLinear e p n\ned = DequantizeLinear eq p n\n"
#define ROUNDED_RESULT "o = MatMul ed vh\noq = QuantizeLinear o s z\n"
#define ROUNDED_TURNED                                                                        \
    "od = DequantizeLinear oq s z\nh = Transpose od perm=0,2,1,3\ny = QuantizeLinear h s z\n" \
    "out y\n"

/* A target with attention that is rounded behind each node. */
static bool takes_rounded(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                          int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    const grt_target plain = ir_text_target();
    (void)target;
    return grt_op_is(desc, "graphrt", "QRoundedAttention") || grt_op_is(desc, "graphrt", "QMatMul") ||
           plain.supports(&plain, desc, in, n_in, out, n_out, why);
}

static ir_module *compile_rounded(const char *text)
{
    ir_module *module = ir_text(text);
    grt_target target = ir_text_target();
    target.supports = target.runs = takes_rounded;
    pass_context context = {.module = module, .target = &target, .level = 2};
    ck_assert_msg(pass_run_enabled(&context) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

static bool is_number(const ir_node *node, int32_t i, double expected)
{
    double found;
    return ir_in(node, i) && ir_const_float(ir_in(node, i), &found) && found == expected;
}

START_TEST(rounded_nodes_are_one_step)
{
    ir_module *module = compile_rounded(ROUNDED_INPUTS("2,5,3,64") ROUNDED_SCORES ROUNDED_SHARES("md")
                                            ROUNDED_RESULT ROUNDED_TURNED);
    const ir_node *node = ir_text_node(module, "QRoundedAttention", 0);
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QRoundedAttention");
    ck_assert(is_number(node, QR_Q_SCALE, 0.0078125) && is_number(node, QR_SCORE_SCALE, 0.5));
    ck_assert(is_number(node, QR_SCORE_ZERO, 128) && is_number(node, QR_SHARE_SCALE, 0.00390625));
    ck_assert(is_number(node, QR_SHARE_ZERO, 0) && is_number(node, QR_READ_SCALE, 0.00390625));
    ck_assert(is_number(node, QR_V_ZERO, 128) && is_number(node, QR_Y_SCALE, 0.0078125));
    ck_assert(!ir_in(node, QR_MASK) && !ir_in(node, QR_TABLE));
    ck_assert_str_eq(ir_in(node, QR_Q)->name, "q");
    ck_assert_str_eq(ir_in(node, QR_K)->name, "k");
    ck_assert_str_eq(ir_in(node, QR_V)->name, "v");
    ck_assert_int_eq(grt_attr_int(&node->desc, "q_tokens", 0) + grt_attr_int(&node->desc, "k_tokens", 0) +
                         grt_attr_int(&node->desc, "v_tokens", 0) + grt_attr_int(&node->desc, "y_tokens", 0),
                     4);
    ck_assert_str_eq(node->out[0]->name, "y");
    ir_module_release(module);
}
END_TEST

START_TEST(masks_and_tables_join_the_step)
{
    ir_module *module = compile_rounded(ROUNDED_INPUTS(
        "2,5,3,64") "in mask u8 2,1,5,5\nconst r f32 - 0.25\n"
                    "maskd = DequantizeLinear mask r n\n" ROUNDED_SCORES
                    "a = Add md maskd\naq = QuantizeLinear a r n\nad = DequantizeLinear aq r n\n"
                    "e = Softmax ad axis=-1\neq = QuantizeLinear e p n\nex = DequantizeLinear eq p n\n"
                    "c = Mul ex t\ncq = QuantizeLinear c s z\n"
                    "ed = DequantizeLinear cq s z\n" ROUNDED_RESULT ROUNDED_TURNED);
    const ir_node *node = ir_text_node(module, "QRoundedAttention", 0);
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QRoundedAttention");
    ck_assert_str_eq(ir_in(node, QR_MASK)->name, "mask");
    ck_assert(is_number(node, QR_MASK_SCALE, 0.25) && is_number(node, QR_SUM_ZERO, 0));
    ck_assert(ir_in(node, QR_TABLE) && grt_tensor_elements(ir_in(node, QR_TABLE)->type.data) == 256);
    ck_assert(is_number(node, QR_READ_SCALE, 0.0078125) && is_number(node, QR_READ_ZERO, 128));
    ir_module_release(module);
}
END_TEST

/* Scores that a mask of their own dims has joined. */
START_TEST(masks_that_scores_add_join_the_step)
{
    ir_module *module = compile_rounded(
        ROUNDED_INPUTS("2,5,3,64") "in mask i8 2,3,5,5\nconst r f32 - 0.25\nconst rz i8 - 1\n"
                                   "maskd = DequantizeLinear mask r rz\n" ROUNDED_SCORES
                                   "a = Add maskd md\naq = QuantizeLinear a p n\nad = DequantizeLinear aq p "
                                   "n\n" ROUNDED_SHARES("ad") ROUNDED_RESULT ROUNDED_TURNED);
    const ir_node *node = ir_text_node(module, "QRoundedAttention", 0);
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QRoundedAttention");
    ck_assert_str_eq(ir_in(node, QR_MASK)->name, "mask");
    ck_assert(is_number(node, QR_MASK_SCALE, 0.25) && is_number(node, QR_MASK_ZERO, 1));
    ck_assert(is_number(node, QR_SCORE_SCALE, 0.5) && is_number(node, QR_SUM_SCALE, 0.00390625));
    ir_module_release(module);
}
END_TEST

/* The step has no table behind scores. */
START_TEST(scores_that_are_looked_up_stay)
{
#define SCORES(table)                                                                           \
    "in q u8 2,3,5,64\nin k u8 2,3,5,64\nin v u8 2,3,5,64\nin mask u8 2,3,5,5\n"                \
    "const s f32 - 0.0078125\nconst z u8 - 128\nconst r f32 - 0.25\nconst p f32 - 0.00390625\n" \
    "const n u8 - 0\nconst levels u8 256\n"                                                     \
    "m = graphrt::QMatMul q s z k s z r z _ mask r n r n " table " transB=1\n"                  \
    "e = graphrt::QSoftmax m r p n\ny = graphrt::QMatMul e p n v s z s z\nout y\n"
    ir_module *module = compile_rounded(SCORES("_"));
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QRoundedAttention");
    ir_module_release(module);
    module = compile_rounded(SCORES("levels"));
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QMatMul graphrt::QSoftmax graphrt::QMatMul");
    ir_module_release(module);
#undef SCORES
}
END_TEST

/* The step makes nothing else, sums over keys, and has no scale twice. */
START_TEST(other_readers_and_other_forms_stay)
{
    static const char *const texts[] = {
        ROUNDED_INPUTS("2,5,3,64") ROUNDED_SCORES ROUNDED_SHARES("md") ROUNDED_RESULT ROUNDED_TURNED
        "out mq\n",
        ROUNDED_INPUTS("2,5,3,64") ROUNDED_SCORES ROUNDED_SHARES("md") ROUNDED_RESULT ROUNDED_TURNED
        "out eq\n",
        ROUNDED_INPUTS("2,5,5,64") ROUNDED_SCORES
        "e = Softmax md axis=-2\neq = QuantizeLinear e p n\ned = DequantizeLinear eq p n\n" ROUNDED_RESULT
            ROUNDED_TURNED,
        ROUNDED_INPUTS("2,5,3,64") "mx = MatMul qh kh\nmq = QuantizeLinear mx t z\n"
                                   "md = DequantizeLinear mq p z\n" ROUNDED_SHARES("md")
                                       ROUNDED_RESULT ROUNDED_TURNED};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_module *module = compile_rounded(texts[i]);
        ck_assert_msg(!strstr(ir_text_ops(module), "QRoundedAttention"), "text %zu: %s", i,
                      ir_text_ops(module));
        ir_module_release(module);
    }
}
END_TEST

/* As an export with one projection leaves them: parts of one value, whose queries and keys are scaled. */
START_TEST(parts_and_tables_of_levels_are_read_where_they_are)
{
    ir_module *module = compile_rounded(
        "in x u8 2,5,3,4,64\nconst s f32 - 0.0078125\nconst z u8 - 128\nconst t f32 - 0.5\nconst p f32 - "
        "0.00390625\n"
        "const n u8 - 0\nconst g f32 - 0.25\nconst d i64 4 2 4 5 64\n"
        "xd = DequantizeLinear x s z\nxt = Transpose xd perm=2,0,3,1,4\n"
        "qp,kp,vp = Split xt axis=0 num_outputs=3\n"
        "q = Reshape qp d\nk = Reshape kp d\nvh = Reshape vp d\n"
        "qs = Mul q g\nqq = QuantizeLinear qs s n\nqh = DequantizeLinear qq s n\n"
        "kt = Transpose k perm=0,1,3,2\nks = Mul kt g\nkq = QuantizeLinear ks s n\nkh = DequantizeLinear kq "
        "s n\n" ROUNDED_SCORES ROUNDED_SHARES("md") ROUNDED_RESULT ROUNDED_TURNED);
    const ir_node *node = ir_text_node(module, "QRoundedAttention", 0);
    static const char *const parts[] = {"q_part", "k_part", "v_part"};
    static const int32_t at[] = {QR_Q, QR_K, QR_V};
    ck_assert_str_eq(ir_text_ops(module), "graphrt::QRoundedAttention");
    for (int32_t i = 0; i < 3; i++) {
        ck_assert_str_eq(ir_in(node, at[i])->name, "x");
        ck_assert_int_eq(grt_attr_int(&node->desc, parts[i], -1), i);
    }
    ck_assert(ir_in(node, QR_Q_TABLE) && ir_in(node, QR_K_TABLE));
    ck_assert(is_number(node, QR_Q_ZERO, 0) && is_number(node, QR_K_ZERO, 0));
    ir_module_release(module);
}
END_TEST

/* A result that is read as heads too keeps its Transpose. */
START_TEST(results_that_are_read_twice_keep_their_turn)
{
    ir_module *module = compile_rounded(ROUNDED_INPUTS("2,5,3,64") ROUNDED_SCORES ROUNDED_SHARES("md")
                                            ROUNDED_RESULT ROUNDED_TURNED "out oq\n");
    const ir_node *node = ir_text_node(module, "QRoundedAttention", 0);
    ck_assert_int_eq(grt_attr_int(&node->desc, "y_tokens", 0), 0);
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "Transpose"));
    ir_module_release(module);
}
END_TEST

UNIT_SUITE(test_pass_rounded_attention, NULL, NULL, rounded_nodes_are_one_step,
           masks_and_tables_join_the_step, masks_that_scores_add_join_the_step,
           scores_that_are_looked_up_stay, other_readers_and_other_forms_stay,
           parts_and_tables_of_levels_are_read_where_they_are, results_that_are_read_twice_keep_their_turn)

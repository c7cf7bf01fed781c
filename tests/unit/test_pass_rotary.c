/* SPDX-License-Identifier: Apache-2.0 */
/* Exported decompositions of rotary position embedding become one node. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* x rotated by halves: x * cos + (-high, low) * sin. */
#define TABLES                                                            \
    "const cos f32 1,1,3,4 1 0.5 1 0.5 0.9 0.4 0.9 0.4 0.8 0.3 0.8 0.3\n" \
    "const sin f32 3,4 0 0.5 0 0.5 0.1 0.6 0.1 0.6 0.2 0.7 0.2 0.7\n"
#define CUTS   "const z i64 1 0\nconst h i64 1 2\nconst big i64 1 99\nconst ax i64 1 3\n"
#define SLICES "a = Slice x z h ax\nb = Slice x h big ax\n"
#define TURN   "n = Neg b\nt = Concat n a axis=-1\n"
#define SUM    "p = Mul x cos\nq = Mul t sin\ny = Add p q\nout y\n"

START_TEST(heads_first)
{
    ir_text_check("in x f32 2,2,3,4\n" TABLES CUTS SLICES TURN SUM, "rotary",
                  "Slice Slice Neg Concat Mul Mul RotaryEmbedding");
}
END_TEST

/* The tables have a row for each token; how many images there are only the run knows. */
START_TEST(an_open_batch)
{
    ir_text_check("in x f32 b,2,3,4\n" TABLES CUTS SLICES TURN SUM, "rotary",
                  "Slice Slice Neg Concat Mul Mul Shape Concat Expand Shape Concat Expand RotaryEmbedding");
}
END_TEST

START_TEST(halves_of_one_split)
{
    ir_text_check("in x f32 2,2,3,4\n" TABLES "a,b = Split x axis=3 num_outputs=2\n" TURN SUM, "rotary",
                  "Split Neg Concat Mul Mul RotaryEmbedding");
}
END_TEST

/* Each half by itself, as GPT-OSS and much handwritten code: tables have half the size. */
#define HALVES(low, high)                           \
    "in x f32 2,3,2,4\n"                            \
    "const cos f32 1,1,3,2 1 0.5 0.9 0.4 0.8 0.3\n" \
    "const sin f32 3,2 0 0.5 0.1 0.6 0.2 0.7\n"     \
    "t = Transpose x perm=0,2,1,3\n"                \
    "a,b = Split t axis=3 num_outputs=2\n"          \
    "ac = Mul a cos\n"                              \
    "bs = Mul sin b\n"                              \
    "bc = Mul b cos\n"                              \
    "as = Mul a sin\n"                              \
    "low = Sub ac bs\n"                             \
    "high = Add bc as\n"                            \
    "y = Concat " low " " high " axis=-1\n"         \
    "out y\n"

START_TEST(each_half_by_itself)
{
    ir_text_check(HALVES("low", "high"), "rotary",
                  "Transpose Split Mul Mul Mul Mul Sub Add Reshape RotaryEmbedding Reshape Transpose");
    ir_text_check(HALVES("high", "low"), "rotary", "Transpose Split Mul Mul Mul Mul Sub Add Concat");
    /* tables that are computed, for a batch that is not known */
    ir_module *module = ir_text("in x f32 n,2,s,4\n"
                                "in angle f32 n,s,2\n"
                                "const one i64 1 1\n" CUTS "c = Cos angle\n"
                                "d = Sin angle\n"
                                "cos = Unsqueeze c one\n"
                                "sin = Unsqueeze d one\n" SLICES "ac = Mul a cos\n"
                                "bs = Mul b sin\n"
                                "bc = Mul b cos\n"
                                "as = Mul a sin\n"
                                "low = Sub ac bs\n"
                                "high = Add as bc\n"
                                "y = Concat low high axis=3\n"
                                "out y\n");
    ck_assert_int_eq(ir_text_pass(module, "rotary"), 1);
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), "Cos Sin RotaryEmbedding");
    ir_module_release(module);
}
END_TEST

/* Halves that take turns in what is rotated, and not in the result, as DeepSeek. */
#define IN_TURNS(first, second, step)               \
    "in x f32 2,2,3,4\n"                            \
    "const cos f32 1,1,3,2 1 0.5 0.9 0.4 0.8 0.3\n" \
    "const sin f32 3,2 0 0.5 0.1 0.6 0.2 0.7\n"     \
    "const ax i64 1 3\nconst big i64 1 99\n"        \
    "const i i64 1 " first "\n"                     \
    "const j i64 1 " second "\n"                    \
    "const k i64 1 " step "\n"                      \
    "a = Slice x i big ax k\n"                      \
    "b = Slice x j big ax k\n"                      \
    "ac = Mul a cos\nbs = Mul b sin\n"              \
    "bc = Mul b cos\nas = Mul a sin\n"              \
    "low = Sub ac bs\nhigh = Add bc as\n"           \
    "y = Concat low high axis=-1\nout y\n"

START_TEST(halves_in_turns)
{
    ir_text_check(IN_TURNS("0", "1", "2"), "rotary",
                  "Slice Slice Mul Mul Mul Mul Sub Add Reshape Transpose Reshape RotaryEmbedding");
    ir_text_check(IN_TURNS("1", "0", "2"), "rotary", "Slice Slice Mul Mul Mul Mul Sub Add Concat");
}
END_TEST

/* Halves that are joined with the rest of each head at once, in any order. */
START_TEST(halves_beside_the_rest)
{
    static const char *const lists[] = {"rest low high", "low high rest", "rest low high rest"};
    char text[700];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        snprintf(text, sizeof text,
                 "in x f32 2,2,3,4\nin rest f32 2,2,3,2\nconst cos f32 1,1,3,2 1 0.5 0.9 0.4 0.8 0.3\n"
                 "const sin f32 3,2 0 0.5 0.1 0.6 0.2 0.7\na,b = Split x axis=3 num_outputs=2\n"
                 "ac = Mul a cos\nbs = Mul b sin\nbc = Mul b cos\nas = Mul a sin\n"
                 "low = Sub ac bs\nhigh = Add bc as\ny = Concat %s axis=-1\nout y\n",
                 lists[i]);
        ir_text_check(text, "rotary", "Split Mul Mul Mul Mul Sub Add RotaryEmbedding Concat");
    }
}
END_TEST

static ir_value *of_two(const char *op, ir_value *a, ir_value *b)
{
    return ir_node_out(ir_node_create(a->graph, NULL, "", op, "", 2, (ir_value *[]){a, b}, 1));
}

/* Bytes of nodes that the pass makes where n pairs of halves are joined, with a rest behind each. */
static size_t bytes_for_pairs(int32_t n)
{
    ir_module *module =
        ir_text("in x f32 2,2,3,4\nin rest f32 2,2,3,2\nconst cos f32 1,1,3,2 1 0.5 0.9 0.4 0.8 0.3\n"
                "const sin f32 3,2 0 0.5 0.1 0.6 0.2 0.7\na,b = Split x axis=3 num_outputs=2\n"
                "ac = Mul a cos\nbs = Mul b sin\nr = Neg rest\nout ac\nout bs\nout r\n");
    const ir_node *ac = ir_text_node(module, "Mul", 0), *bs = ir_text_node(module, "Mul", 1);
    ir_value *a = ir_in(ac, 0), *cos = ir_in(ac, 1), *b = ir_in(bs, 0), *sin = ir_in(bs, 1),
             **in = GRT_ARENA_ARRAY(module->arena, ir_value *, 3 * (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        in[3 * i] = of_two("Sub", of_two("Mul", a, cos), of_two("Mul", b, sin));
        in[3 * i + 1] = of_two("Add", of_two("Mul", b, cos), of_two("Mul", a, sin));
        in[3 * i + 2] = ir_text_node(module, "Neg", 0)->out[0];
    }
    ir_node *joined = ir_node_create(module->main, NULL, "", "Concat", "", 3 * n, in, 1);
    ir_attr_set_int(joined, "axis", 3);
    ir_graph_add_output(module->main, joined->out[0]);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    const size_t before = grt_arena_bytes(module->arena);
    ck_assert_int_eq(ir_text_pass(module, "rotary"), n);
    ck_assert_int_eq(joined->n_in, 2 * n);
    ck_assert_str_eq(ir_in(joined, 2 * n - 1)->producer->desc.op, "Neg");
    const size_t bytes = grt_arena_bytes(module->arena) - before;
    ir_module_release(module);
    return bytes;
}

/* Inputs of the Concat close up once, not for each pair. */
START_TEST(many_halves_beside_the_rest)
{
    enum { FEW = 300, FACTOR = 8 };
    const size_t few = bytes_for_pairs(FEW), many = bytes_for_pairs(FEW * FACTOR);
    ck_assert_msg(many < 2 * FACTOR * few, "%zu bytes for %d pairs, %zu for %d times as many", few, FEW, many,
                  FACTOR);
}
END_TEST

/* As ONNX Runtime's optimiser leaves it, which pushes transposes through one branch and not the other. */
START_TEST(transposes_in_between)
{
    const char *tables = "in w f32 2,3,2,4\n"
                         "const cos f32 1,1,3,4 1 0.5 1 0.5 0.9 0.4 0.9 0.4 0.8 0.3 0.8 0.3\n"
                         "const sin f32 1,1,3,4 0 0.5 0 0.5 0.1 0.6 0.1 0.6 0.2 0.7 0.2 0.7\n"
                         "const rcos f32 1,3,1,4 1 0.5 1 0.5 0.9 0.4 0.9 0.4 0.8 0.3 0.8 0.3\n"
                         "const rsin f32 3,1,4 0 0.5 0 0.5 0.1 0.6 0.1 0.6 0.2 0.7 0.2 0.7\n";
    const struct {
        const char *text, *ops;
    } cases[] = {
        /* behind the product with the cosine, in front of the halves */
        {"p = Mul w rcos\n"
         "pt = Transpose p perm=0,2,1,3\n"
         "x = Transpose w perm=0,2,1,3\n"
         "a,b = Split x axis=3 num_outputs=2\n" TURN "q = Mul t sin\n"
         "y = Add pt q\n",
         "Mul Transpose Transpose Split Neg Concat Mul Reshape RotaryEmbedding Reshape Transpose"},
        /* behind all of it */
        {"a,b = Split w axis=3 num_outputs=2\n"
         "n = Neg b\n"
         "t = Concat n a axis=3\n"
         "p = Mul w rcos\n"
         "q = Mul t rsin\n"
         "s = Add p q\n"
         "y = Transpose s perm=0,2,1,3\n",
         "Split Neg Concat Mul Mul Reshape RotaryEmbedding Reshape Transpose"},
        /* in the midst of the half turn */
        {"x = Transpose w perm=0,2,1,3\n"
         "a,b = Split w axis=3 num_outputs=2\n"
         "n = Neg b\n"
         "nt = Transpose n perm=0,2,1,3\n"
         "at = Transpose a perm=0,2,1,3\n"
         "t = Concat nt at axis=3\n"
         "p = Mul x cos\n"
         "q = Mul t sin\n"
         "y = Add p q\n",
         "Transpose Split Neg Transpose Transpose Concat Mul Mul Reshape RotaryEmbedding Reshape Transpose"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grt_text text = {0};
        grt_text_add(&text, "%s%sout y\n", tables, cases[i].text);
        ir_text_check(grt_text_get(&text), "rotary", cases[i].ops);
        grt_text_release(&text);
    }
}
END_TEST

/* One position: transposes have become reshapes, and one of them has joined the one before. */
START_TEST(one_position)
{
    ir_text_check("in f f32 2,1,8\n"
                  "const rows i64 4 2 1 2 4\n"
                  "const heads i64 4 2 2 1 4\n"
                  "const cos f32 1,1,1,4 1 0.5 1 0.5\n"
                  "const sin f32 1,1,1,4 0 0.5 0 0.5\n"
                  "w = Reshape f rows\n"
                  "x = Reshape f heads\n"
                  "p = Mul w cos\n"
                  "pt = Reshape p heads\n"
                  "a,b = Split x axis=3 num_outputs=2\n" TURN "q = Mul t sin\n"
                  "y = Add pt q\n"
                  "out y\n",
                  "rotary", "Reshape Reshape Mul Reshape Split Neg Concat Mul RotaryEmbedding");
}
END_TEST

/* Rounding comes once instead of three times, so only the ops and the tables are compared. */
START_TEST(tables_of_16_bits)
{
    ir_module *module =
        ir_text("in x f16 2,2,3,4\n"
                "const cos f16 1,1,3,4 1 0.5 1 0.5 0.25 0.75 0.25 0.75 2 3 2 3\n"
                "const sin f16 3,4 0 0.5 0 0.5 0.125 0.625 0.125 0.625 4 5 4 5\n" CUTS SLICES TURN SUM);
    ir_text_pass(module, "rotary");
    const ir_node *node = ir_text_node(module, "RotaryEmbedding", 0);
    const grt_tensor *cosine = ir_in(node, 1)->type.data;
    ck_assert_int_eq(cosine->dtype, GRT_DTYPE_FLOAT16);
    ck_assert_int_eq(cosine->dims[0], 2);
    ck_assert_int_eq(cosine->dims[2], 2);
    const uint16_t expected[] = {0x3c00, 0x3800, 0x3400, 0x3a00, 0x4000, 0x4200}; /* 1 0.5 0.25 0.75 2 3 */
    ck_assert_mem_eq(cosine->data, expected, sizeof expected);
    ck_assert_mem_eq((const char *)cosine->data + sizeof expected, expected, sizeof expected);
    ir_module_release(module);
}
END_TEST

START_TEST(before_the_transpose)
{
    ir_text_check("in w f32 2,3,2,4\n"
                  "x = Transpose w perm=0,2,1,3\n" TABLES CUTS SLICES TURN SUM,
                  "rotary",
                  "Transpose Slice Slice Neg Concat Mul Mul Reshape RotaryEmbedding Reshape Transpose");
}
END_TEST

START_TEST(halves_that_differ_stay)
{
    ir_text_check("in x f32 2,2,3,4\n"
                  "const cos f32 3,4 1 2 3 4\n"
                  "const sin f32 3,4 0 0.5 0 0.5 0.1 0.6 0.1 0.6 0.2 0.7 0.2 0.7\n" CUTS SLICES TURN SUM,
                  "rotary", "Slice Slice Neg Concat Mul Mul Add");
}
END_TEST

START_TEST(the_other_half_is_not_it)
{
    ir_text_check("in x f32 2,2,3,4\n" TABLES CUTS SLICES "n = Neg a\n"
                  "t = Concat n b axis=-1\n" SUM,
                  "rotary", "Slice Slice Neg Concat Mul Mul Add");
}
END_TEST

/* Tables that are computed from angles that are joined with themselves, as most exports of decoders do. */
START_TEST(computed_tables)
{
    ir_text_check("in w f32 2,3,2,4\n"
                  "in f f32 2,3,2\n"
                  "x = Transpose w perm=0,2,1,3\n"
                  "const one i64 1 1\n" CUTS "e = Concat f f axis=-1\n"
                  "c = Cos e\n"
                  "s = Sin e\n"
                  "cos = Unsqueeze c one\n"
                  "sin = Unsqueeze s one\n" SLICES TURN SUM,
                  "rotary",
                  "Transpose Concat Cos Sin Unsqueeze Unsqueeze Slice Slice Neg Concat Mul Mul Cos Sin "
                  "Reshape RotaryEmbedding Reshape Transpose");
}
END_TEST

/* A rotation that was one node from the start leaves the transpose to heads behind, too. */
START_TEST(one_node_before_the_transpose)
{
    ir_text_check("in w f32 2,3,2,4\n"
                  "in c f32 2,3,2\n"
                  "in s f32 2,3,2\n"
                  "x = Transpose w perm=0,2,1,3\n"
                  "y = RotaryEmbedding x c s\n"
                  "out y\n",
                  "rotary", "Transpose Reshape RotaryEmbedding Reshape Transpose");
}
END_TEST

/* The same with angles that are repeated for a batch of unknown size, which is read from what is rotated. */
START_TEST(one_node_and_its_batch)
{
    ir_module *module = ir_text("in w f32 b,3,2,4\n"
                                "in c f32 1,3,2\n"
                                "const two i64 2 1 1\n"
                                "x = Transpose w perm=0,2,1,3\n"
                                "z = Shape x start=0 end=1\n"
                                "e = Concat z two axis=0\n"
                                "r = Expand c e\n"
                                "y = RotaryEmbedding x r r\n"
                                "out y\n");
    ir_text_pass(module, "rotary");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), "Shape Concat Expand Reshape RotaryEmbedding Reshape Transpose");
    ir_module_release(module);
}
END_TEST

/* Angles that all of a batch shares are repeated for each, whether or not the target has a kernel. */
START_TEST(one_row_of_angles_for_a_batch)
{
    ir_module *module = ir_text("in x f32 batch,2,seq,4\n"
                                "in c f32 1,seq,2\n"
                                "in s f32 batch,seq,2\n"
                                "y = RotaryEmbedding x c s\n"
                                "out y\n");
    ir_text_pass(module, "legalise");
    ck_assert_str_eq(ir_text_ops(module), "Shape Concat Expand RotaryEmbedding");
    const ir_node *node = ir_text_node(module, "RotaryEmbedding", 0);
    ck_assert_int_eq(ir_in(node, 1)->type.dims[0], ir_in(node, 0)->type.dims[0]);
    ck_assert_int_eq(ir_in(node, 1)->type.dims[1], ir_in(node, 0)->type.dims[2]);
    ir_module_release(module);
}
END_TEST

Suite *suite_test_pass_rotary(void)
{
    Suite *suite = suite_create("pass_rotary");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, heads_first);
    tcase_add_test(tc, an_open_batch);
    tcase_add_test(tc, transposes_in_between);
    tcase_add_test(tc, one_position);
    tcase_add_test(tc, halves_of_one_split);
    tcase_add_test(tc, each_half_by_itself);
    tcase_add_test(tc, halves_in_turns);
    tcase_add_test(tc, halves_beside_the_rest);
    tcase_add_test(tc, many_halves_beside_the_rest);
    tcase_add_test(tc, tables_of_16_bits);
    tcase_add_test(tc, before_the_transpose);
    tcase_add_test(tc, halves_that_differ_stay);
    tcase_add_test(tc, the_other_half_is_not_it);
    tcase_add_test(tc, computed_tables);
    tcase_add_test(tc, one_node_before_the_transpose);
    tcase_add_test(tc, one_node_and_its_batch);
    tcase_add_test(tc, one_row_of_angles_for_a_batch);
    suite_add_tcase(suite, tc);
    return suite;
}

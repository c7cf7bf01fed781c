/* SPDX-License-Identifier: Apache-2.0 */
/* Exported decompositions of rotary position embedding of neighbours become one node. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

#define COS "const cos f32 1,1,3,4 1 1 0.5 0.5 0.9 0.9 0.4 0.4 0.8 0.8 0.3 0.3\n"
#define SIN "const sin f32 3,4 0 0 0.5 0.5 0.1 0.1 0.6 0.6 0.2 0.2 0.7 0.7\n"
#define INTS                                                                                                \
    "const z i64 1 0\nconst o i64 1 1\nconst w i64 1 2\nconst big i64 1 99\nconst ax i64 1 3\nconst l i64 " \
    "1 -1\n"
#define PARTS "a = Slice x z big ax w\nb = Slice x o big ax w\n"
#define TURNS                                             \
    "n = Neg b\nnu = Unsqueeze n l\nau = Unsqueeze a l\n" \
    "st = Concat nu au axis=-1\nconst sh i64 4 0 0 0 4\n" \
    "t = Reshape st sh\n"
#define SUM   "p = Mul x cos\nq = Mul t sin\ny = Add p q\nout y\n"
#define WHOLE "Slice Slice Neg Unsqueeze Unsqueeze Concat Reshape Mul Mul "

static const char name[] = "interleaved_rotary";

START_TEST(heads_first)
{
    ir_text_check("in x f32 2,2,3,4\n" COS SIN INTS PARTS TURNS SUM, name, WHOLE "RotaryEmbedding");
    /* operands the other way round */
    ir_text_check("in x f32 2,2,3,4\n" COS SIN INTS PARTS TURNS
                  "p = Mul cos x\nq = Mul sin t\ny = Add q p\nout y\n",
                  name, WHOLE "RotaryEmbedding");
}
END_TEST

START_TEST(positions_first)
{
    ir_text_check("in x f32 2,3,5,4\n"
                  "const cos f32 1,3,1,4 1 1 0.5 0.5 0.9 0.9 0.4 0.4 0.8 0.8 0.3 0.3\n"
                  "const sin f32 3,1,4 0 0 0.5 0.5 0.1 0.1 0.6 0.6 0.2 0.2 0.7 0.7\n" INTS PARTS TURNS SUM,
                  name, WHOLE "Reshape RotaryEmbedding Reshape");
}
END_TEST

/* As many heads as positions: only the table says which are which. */
START_TEST(as_many_heads_as_positions)
{
    ir_text_check("in x f32 2,3,3,4\n" COS SIN INTS PARTS TURNS SUM, name, WHOLE "RotaryEmbedding");
    ir_text_check("in x f32 2,3,3,4\n"
                  "const cos f32 1,3,1,4 1 1 0.5 0.5 0.9 0.9 0.4 0.4 0.8 0.8 0.3 0.3\n"
                  "const sin f32 3,1,4 0 0 0.5 0.5 0.1 0.1 0.6 0.6 0.2 0.2 0.7 0.7\n" INTS PARTS TURNS SUM,
                  name, WHOLE "Reshape RotaryEmbedding Reshape");
    /* one for positions, the other for heads */
    ir_text_check("in x f32 2,3,3,4\n" COS
                  "const sin f32 3,1,4 0 0 0.5 0.5 0.1 0.1 0.6 0.6 0.2 0.2 0.7 0.7\n" INTS PARTS TURNS SUM,
                  name, WHOLE "Add");
}
END_TEST

/* A batch that is not known. */
START_TEST(any_batch)
{
    ir_module *module = ir_text("in x f32 n,2,3,4\n" COS SIN INTS PARTS TURNS SUM);
    ck_assert_int_eq(ir_text_pass(module, name), 1);
    ir_text_pass(module, "dce");
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "Expand RotaryEmbedding"));
    const ir_node *node = ir_text_node(module, "RotaryEmbedding", 0);
    ck_assert_int_eq(grt_attr_int(&node->desc, "interleaved", 0), 1);
    ir_module_release(module);
}
END_TEST

START_TEST(half_the_table)
{
    ir_module *module = ir_text("in x f32 2,2,3,4\n" COS SIN INTS PARTS TURNS SUM);
    ck_assert_int_eq(ir_text_pass(module, name), 1);
    const ir_node *node = ir_text_node(module, "RotaryEmbedding", 0);
    const grt_tensor *table = ir_in(node, 1)->type.data;
    const float expected[] = {1, 0.5F, 0.9F, 0.4F, 0.8F, 0.3F};
    ck_assert_int_eq(table->dims[0], 2);
    ck_assert_int_eq(table->dims[2], 2);
    ck_assert_mem_eq(table->data, expected, sizeof expected);
    ck_assert_mem_eq((const char *)table->data + sizeof expected, expected, sizeof expected);
    ir_module_release(module);
}
END_TEST

/* Each of the neighbours by itself: tables have half the size. */
#define BY_ITSELF(even, odd, first, second)                                                           \
    "in x f32 2,2,3,4\nconst cos f32 1,1,3,2 1 0.5 0.9 0.4 0.8 0.3\n"                                 \
    "const sin f32 3,2 0 0.5 0.1 0.6 0.2 0.7\n" INTS PARTS                                            \
    "ac = Mul a cos\nbs = Mul sin b\nbc = Mul b cos\nas = Mul a sin\n"                                \
    "even = Sub " even "\nodd = Add " odd "\nu = Unsqueeze " first " l\nv = Unsqueeze " second " l\n" \
    "st = Concat u v axis=4\nconst sh i64 4 2 2 3 4\ny = Reshape st sh\nout y\n"
#define ITSELF "Slice Slice Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat "

START_TEST(each_by_itself)
{
    ir_text_check(BY_ITSELF("ac bs", "bc as", "even", "odd"), name, ITSELF "RotaryEmbedding");
    ir_text_check(BY_ITSELF("ac bs", "as bc", "even", "odd"), name, ITSELF "RotaryEmbedding");
    ir_text_check(BY_ITSELF("ac bs", "as bc", "odd", "even"), name, ITSELF "Reshape");
    ir_text_check(BY_ITSELF("bs ac", "as bc", "even", "odd"), name, ITSELF "Reshape");
    /* a sum for a difference, and the other way round */
    ir_text_check(BY_ITSELF("as bc", "bc as", "even", "odd"), name, ITSELF "Reshape");
    /* the tables have changed places, so that it is another rotation */
    ir_text_check(BY_ITSELF("as bc", "bs ac", "even", "odd"), name, ITSELF "RotaryEmbedding");
}
END_TEST

#define ITS_TABLES "const cos f32 1,1,3,2 1 0.5 0.9 0.4 0.8 0.3\nconst sin f32 3,2 0 0.5 0.1 0.6 0.2 0.7\n"
#define ITS_SUMS                                                                     \
    "ac = Mul a cos\nbs = Mul sin b\nbc = Mul b cos\nas = Mul a sin\n"               \
    "even = Sub ac bs\nodd = Add bc as\nu = Unsqueeze even l\nv = Unsqueeze odd l\n" \
    "st = Concat u v axis=4\nconst sh i64 4 0 0 0 4\ny = Reshape st sh\nout y\n"

/* Heads and positions are exchanged behind the slices, of both or of one of them. */
START_TEST(exchanged_parts)
{
    ir_text_check("in x f32 2,3,3,4\n" ITS_TABLES INTS
                  "c = Slice x z big ax w\na = Transpose c perm=0,2,1,3\n"
                  "d = Slice x o big ax w\nb = Transpose d perm=0,2,1,3\n" ITS_SUMS,
                  name,
                  "Slice Transpose Slice Transpose Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat "
                  "Transpose RotaryEmbedding");
    ir_text_check("in x f32 2,3,3,4\n" ITS_TABLES INTS
                  "c = Slice x z big ax w\na = Transpose c perm=0,2,1,3\n"
                  "b = Slice x o big ax w\n" ITS_SUMS,
                  name, "Slice Transpose Slice Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat Reshape");
    ir_text_check(
        "in x f32 2,2,3,4\n" ITS_TABLES INTS "c = Slice x z big ax w\na = Transpose c perm=2,1,0,3\n"
        "d = Slice x o big ax w\nb = Transpose d perm=2,1,0,3\n"
        "const cos3 f32 2,2 1 0.5 0.9 0.4\n"
        "ac = Mul a cos3\nbs = Mul b cos3\nbc = Mul b cos3\nas = Mul a cos3\n"
        "even = Sub ac bs\nodd = Add bc as\nu = Unsqueeze even l\nv = Unsqueeze odd l\n"
        "st = Concat u v axis=4\nconst sh i64 4 0 0 0 4\ny = Reshape st sh\nout y\n",
        name, "Slice Transpose Slice Transpose Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat Reshape");
}
END_TEST

/* The last dim is cut into pairs, which a Split takes apart. */
START_TEST(parts_of_a_split)
{
    const char *const rest = "a = Squeeze e l\nb = Squeeze f l\n" ITS_SUMS;
    const struct {
        const char *split, *ops;
    } cases[] = {
        {"e,f = Split x axis=4 num_outputs=2\n", "Reshape RotaryEmbedding"},
        {"f,e = Split x axis=-1 num_outputs=2\n", "Reshape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grt_text text = {0}, ops = {0};
        grt_text_add(&text, "in x f32 2,2,3,2,2\n" ITS_TABLES INTS "%s%s", cases[i].split, rest);
        grt_text_add(&ops, "Split Squeeze Squeeze Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat %s",
                     cases[i].ops);
        ir_text_check(grt_text_get(&text), name, grt_text_get(&ops));
        grt_text_release(&text);
        grt_text_release(&ops);
    }
    ir_text_check("in x f32 2,2,3,2,2\n" ITS_TABLES INTS
                  "e = Slice x z o l\nf = Slice x o w l\na = Squeeze e l\nb = Squeeze f l\n" ITS_SUMS,
                  name,
                  "Slice Slice Squeeze Squeeze Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat "
                  "Reshape RotaryEmbedding");
    ir_text_check("in x f32 2,2,3,2,2\n" ITS_TABLES INTS
                  "e = Slice x z o ax\nf = Slice x o w ax\na = Squeeze e ax\nb = Squeeze f ax\n" ITS_SUMS,
                  name,
                  "Slice Slice Squeeze Squeeze Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat Reshape");
    /* halves, not pairs */
    ir_text_check("in x f32 2,2,3,2,2\n" ITS_TABLES INTS "e,f = Split x axis=3 num_outputs=2\n"
                  "a = Squeeze e ax\nb = Squeeze f ax\n" ITS_SUMS,
                  name, "Split Squeeze Squeeze Mul Mul Mul Mul Sub Add Unsqueeze Unsqueeze Concat Reshape");
}
END_TEST

START_TEST(columns_that_differ_stay)
{
    ir_text_check(
        "in x f32 2,2,3,4\nconst cos f32 3,4 1 1 0.5 0.5 0.9 0.9 0.4 0.4 0.8 0.8 0.3 0.31\n" SIN INTS PARTS
            TURNS SUM,
        name, WHOLE "Add");
    /* equal halves are not equal pairs */
    ir_text_check("in x f32 2,2,3,4\nconst cos f32 3,4 1 0.5 1 0.5 0.9 0.4 0.9 0.4 0.8 0.3 0.8 0.3\n" SIN INTS
                      PARTS TURNS SUM,
                  name, WHOLE "Add");
    /* a table for each of the batch */
    ir_text_check(
        "in x f32 2,1,1,4\nconst cos f32 2,1,1,4 1 1 2 2 3 3 4 4\nconst sin f32 1,4 0 0 1 1\n" INTS PARTS
            TURNS SUM,
        name, WHOLE "Add");
}
END_TEST

/* Tables that are computed of angles, for a batch and a length that are not known. */
#define MADE(repeat)                                                                               \
    "in x f32 n,2,s,4\nin f f32 n,s,2\nconst r i64 4 1 1 1 2\nconst th i64 3 0 -1 4\n" INTS repeat \
    "c = Cos m\ns = Sin m\ncos = Unsqueeze c o\nsin = Unsqueeze s o\n" PARTS TURNS SUM

START_TEST(computed_tables)
{
    static const struct {
        const char *text;
        int64_t found;
    } cases[] = {
        {MADE("g = Unsqueeze f ax\nh = Expand g r\nm = Reshape h th\n"), 1},
        {MADE("g = Unsqueeze f ax\nh = Tile g r\nm = Reshape h th\n"), 1},
        {MADE("g = Unsqueeze f ax\nh = Concat g g axis=-1\nm = Reshape h th\n"), 1},
        /* the next are not pairs that are equal */
        {MADE("m = Concat f f axis=-1\n"), 0},
        {MADE("g = Unsqueeze f w\nh = Concat g g axis=2\nm = Reshape h th\n"), 0},
        {MADE("g = Unsqueeze f ax\ng2 = Neg g\nh = Concat g g2 axis=-1\nm = Reshape h th\n"), 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ir_module *module = ir_text(cases[i].text);
        ck_assert_int_eq(ir_text_pass(module, name), cases[i].found);
        ir_module_release(module);
    }
    /* with known sizes, so that results are compared */
    ir_text_check("in x f32 2,2,3,4\nin f f32 2,3,2\nconst r i64 4 1 1 1 2\nconst th i64 3 0 -1 4\n" INTS
                  "g = Unsqueeze f ax\nh = Expand g r\nm = Reshape h th\nc = Cos m\ns = Sin m\n"
                  "cos = Unsqueeze c o\nsin = Unsqueeze s o\n" PARTS TURNS SUM,
                  name,
                  "Unsqueeze Expand Reshape Cos Sin Unsqueeze Unsqueeze " WHOLE
                  "Slice Squeeze Slice Squeeze RotaryEmbedding");
    /* positions in front of heads */
    ir_text_check("in x f32 2,3,2,4\nin f f32 2,3,2\nconst r i64 4 1 1 1 2\nconst th i64 3 0 -1 4\n" INTS
                  "g = Unsqueeze f ax\nh = Expand g r\nm = Reshape h th\nc = Cos m\ns = Sin m\n"
                  "cos = Unsqueeze c w\nsin = Unsqueeze s w\n" PARTS TURNS SUM,
                  name,
                  "Unsqueeze Expand Reshape Cos Sin Unsqueeze Unsqueeze " WHOLE
                  "Reshape Slice Squeeze Slice Squeeze RotaryEmbedding Reshape");
    /* each by itself, one row of angles for a batch */
    ir_text_check("in x f32 2,2,3,4\nin f f32 1,3,2\n" INTS
                  "c = Cos f\ns = Sin f\ncos = Unsqueeze c o\nsin = Unsqueeze s o\n" PARTS ITS_SUMS,
                  name, NULL);
}
END_TEST

START_TEST(other_turns_stay)
{
    /* the other of both is negated */
    ir_text_check("in x f32 2,2,3,4\n" COS SIN INTS
                  "b = Slice x z big ax w\na = Slice x o big ax w\n" TURNS SUM,
                  name, WHOLE "Add");
    /* both from the same place on */
    ir_text_check("in x f32 2,2,3,4\n" COS SIN INTS
                  "a = Slice x o big ax w\nb = Slice x o big ax w\n" TURNS SUM,
                  name, WHOLE "Add");
    /* halves instead of every second */
    ir_text_check("in x f32 2,2,3,4\n" COS SIN INTS
                  "a = Slice x z w ax o\nb = Slice x w big ax o\n" TURNS SUM,
                  name, WHOLE "Add");
    /* another x is scaled by the cosine */
    ir_text_check("in x f32 2,2,3,4\nin z2 f32 2,2,3,4\n" COS SIN INTS PARTS TURNS
                  "p = Mul z2 cos\nq = Mul t sin\ny = Add p q\nout y\n",
                  name, WHOLE "Add");
    /* -b in front of a, not in turns with it */
    ir_text_check("in x f32 2,2,3,4\n" COS SIN INTS PARTS
                  "n = Neg b\nnu = Unsqueeze n ax\nau = Unsqueeze a ax\n"
                  "st = Concat nu au axis=3\nconst sh i64 4 0 0 0 4\nt = Reshape st sh\n" SUM,
                  name, WHOLE "Add");
}
END_TEST

/* Others read what is on the way. */
START_TEST(shared_steps_stay)
{
    static const char *const shared[] = {"t", "st", "n", "nu", "p", "q"};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        grt_text text = {0};
        grt_text_add(&text, "%sout %s\n", "in x f32 2,2,3,4\n" COS SIN INTS PARTS TURNS SUM, shared[i]);
        ir_text_check(grt_text_get(&text), name, WHOLE "Add");
        grt_text_release(&text);
    }
}
END_TEST

Suite *suite_test_pass_interleaved_rotary(void);
Suite *suite_test_pass_interleaved_rotary(void)
{
    Suite *suite = suite_create("pass_interleaved_rotary");
    TCase *tests = tcase_create("pass_interleaved_rotary");
    tcase_add_test(tests, heads_first);
    tcase_add_test(tests, positions_first);
    tcase_add_test(tests, as_many_heads_as_positions);
    tcase_add_test(tests, any_batch);
    tcase_add_test(tests, half_the_table);
    tcase_add_test(tests, each_by_itself);
    tcase_add_test(tests, exchanged_parts);
    tcase_add_test(tests, parts_of_a_split);
    tcase_add_test(tests, columns_that_differ_stay);
    tcase_add_test(tests, computed_tables);
    tcase_add_test(tests, other_turns_stay);
    tcase_add_test(tests, shared_steps_stay);
    suite_add_tcase(suite, tests);
    return suite;
}

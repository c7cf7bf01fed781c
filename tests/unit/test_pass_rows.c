/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise nodes around reductions of rows become one step. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(a_norm)
{
    ir_text_check("in x f32 6,40\n"
                  "const last i64 1 -1\n"
                  "const eps f32 - 0.001\n"
                  "const w f32 40\n"
                  "m = ReduceMean x last\n"
                  "c = Sub x m\n"
                  "s = Mul c c\n"
                  "v = ReduceMean s last\n"
                  "e = Add v eps\n"
                  "d = Sqrt e\n"
                  "n = Div c d\n"
                  "y = Mul n w\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
}
END_TEST

START_TEST(a_softmax_of_two_row_dims)
{
    ir_text_check("in x f32 n,3,5,7\n"
                  "const space i64 2 2 3\n"
                  "m = ReduceMax x space\n"
                  "s = Sub x m\n"
                  "e = Exp s\n"
                  "t = ReduceSum e space\n"
                  "y = Div e t\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
}
END_TEST

START_TEST(every_reduction)
{
    static const char *const ops[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                      "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                      "ReduceLogSum", "ReduceLogSumExp"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "in x f32 9,33\nconst last i64 1 -1\na = Abs x\nr = %s a last\ny = Sub x r\nout y\n",
                 ops[i]);
        ir_text_check(text, "rows", "graphrt::Rows");
    }
}
END_TEST

/* Blocks of several rows, pieces of one row, and what lies between. */
START_TEST(rows_of_every_length)
{
    static const int lengths[] = {1, 2, 3, 16, 17, 31, 255, 257, 511, 512, 513, 1023, 1024, 1025, 2048, 5000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "in x f32 7,%d\nin u f32 7,1\nconst w f32 %d\nconst last i64 1 -1\n"
                 "a = Mul x w\nm = ReduceMax a last\ns = Sub a m\ne = Exp s\nt = ReduceSum e last\n"
                 "q = Add t u\nd = Div e q\ny = Add d x\nout y\n",
                 lengths[i], lengths[i]);
        ir_text_check(text, "rows", "graphrt::Rows");
    }
}
END_TEST

START_TEST(one_number_for_each_row)
{
    ir_text_check("in x f32 5,64\n"
                  "const last i64 1 -1\n"
                  "e = Exp x\n"
                  "t = ReduceSum e last\n"
                  "y = Log t\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
    ir_text_check("in x f32 5,64\n"
                  "const last i64 1 -1\n"
                  "const two f32 - 2\n"
                  "e = Exp x\n"
                  "t = ReduceSum e last keepdims=0\n"
                  "l = Log t\n"
                  "y = Mul l two\n"
                  "out y\n",
                  "rows", "graphrt::Rows Reshape");
}
END_TEST

START_TEST(dims_that_are_dropped_and_come_back)
{
    ir_text_check("in x f32 5,64\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMean x last keepdims=0\n"
                  "u = Unsqueeze m last\n"
                  "y = Sub x u\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
    /* They come back elsewhere: the mean of row j is subtracted from column j. */
    ir_text_check("in x f32 8,8\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMean x last keepdims=0\n"
                  "y = Sub x m\n"
                  "out y\n",
                  "rows", "ReduceMean Sub");
    ir_text_check("in x f32 8,8\n"
                  "in w f32 8\n"
                  "const last i64 1 -1\n"
                  "a = Exp x\n"
                  "m = ReduceSum a last keepdims=0\n"
                  "y = Mul m w\n"
                  "out y\n",
                  "rows", "graphrt::Rows Reshape Mul");
}
END_TEST

START_TEST(inputs_of_every_place)
{
    ir_text_check("in x f32 2,3,4,24\n"
                  "in a f32 2,1,4,24\n"
                  "in b f32 3,1,24\n"
                  "in c f32 2,3,4,1\n"
                  "in d f32 24\n"
                  "in e f32 1\n"
                  "in f f32 3,1,1\n"
                  "const last i64 1 -1\n"
                  "xa = Add x a\n"
                  "xb = Mul xa b\n"
                  "xc = Add xb c\n"
                  "xd = Add xc d\n"
                  "xe = Add xd e\n"
                  "xf = Add xe f\n"
                  "m = ReduceL2 xf last\n"
                  "y = Div xf m\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
}
END_TEST

START_TEST(halves)
{
    ir_text_check("in x f16 4,48\n"
                  "const last i64 1 -1\n"
                  "w = Cast x to=1\n"
                  "s = Mul w w\n"
                  "m = ReduceMean s last\n"
                  "r = Sqrt m\n"
                  "n = Div w r\n"
                  "y = Cast n to=10\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
    ir_text_check("in x f16 4,48\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMax x last\n"
                  "y = Sub x m\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
    /* What a Cast rounds stays rounded. */
    ir_text_check("in x f32 4,48\n"
                  "const last i64 1 -1\n"
                  "h = Cast x to=10\n"
                  "w = Cast h to=1\n"
                  "m = ReduceSum w last\n"
                  "y = Sub w m\n"
                  "out y\n",
                  "rows", "Cast graphrt::Rows");
}
END_TEST

START_TEST(truth)
{
    ir_text_check("in x f32 4,48\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMax x last\n"
                  "y = Less x m\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
}
END_TEST

START_TEST(a_reduction_alone_stays)
{
    ir_text_check("in x f32 4,48\n"
                  "const last i64 1 -1\n"
                  "y = ReduceSum x last\n"
                  "out y\n",
                  "rows", "ReduceSum");
}
END_TEST

START_TEST(rows_that_are_not_known)
{
    ir_text_check("in x f32 4,n\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMax x last\n"
                  "y = Sub x m\n"
                  "out y\n",
                  "rows", "ReduceMax Sub");
    ir_text_check("in x f32 4,48\n"
                  "in last i64 1\n"
                  "m = ReduceMax x last\n"
                  "y = Sub x m\n"
                  "out y\n",
                  "", "ReduceMax Sub");
}
END_TEST

START_TEST(columns_stay)
{
    ir_text_check("in x f32 4,48\n"
                  "const first i64 1 0\n"
                  "m = ReduceMax x first\n"
                  "y = Sub x m\n"
                  "out y\n",
                  "rows", "ReduceMax Sub");
}
END_TEST

START_TEST(long_rows_stay)
{
    ir_text_check("in x f32 2,20000\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMax x last\n"
                  "y = Sub x m\n"
                  "out y\n",
                  "rows", "ReduceMax Sub");
}
END_TEST

/* m is needed outside the group: it stays a step of its own. */
START_TEST(two_readers)
{
    ir_text_check("in x f32 4,48\n"
                  "const last i64 1 -1\n"
                  "a = Exp x\n"
                  "m = ReduceMax a last\n"
                  "y = Sub a m\n"
                  "out y\n"
                  "out m\n",
                  "rows", "Exp ReduceMax Sub");
    ir_text_check("in x f32 48,48\n"
                  "const last i64 1 -1\n"
                  "m = ReduceMax x last\n"
                  "c = Sub x m\n"
                  "p = MatMul c c\n"
                  "s = ReduceSum c last\n"
                  "d = Div c s\n"
                  "y = Add d p\n"
                  "out y\n",
                  "rows", "graphrt::Rows MatMul graphrt::Rows");
}
END_TEST

/* What an input alone decides for each row is computed once a row. */
START_TEST(plain_numbers_stay_outside)
{
    ir_text_check("in x f32 4,48\n"
                  "in u f32 4,1\n"
                  "const last i64 1 -1\n"
                  "v = Exp u\n"
                  "m = ReduceMax x last\n"
                  "q = Mul m v\n"
                  "y = Sub x q\n"
                  "out y\n",
                  "rows", "Exp graphrt::Rows");
}
END_TEST

/* A row of one element: the view of a reduction has the shape of all elements, but its reduction, which is
 * read twice, is no member. */
START_TEST(views_of_reductions_outside)
{
    ir_text_check("in x f32 2,3,4\n"
                  "in z f32 2,3,1\n"
                  "const last i64 1 -1\n"
                  "a = ReduceSum x last keepdims=0\n"
                  "u = Unsqueeze a last\n"
                  "m = Mul u z\n"
                  "y = ReduceSum m last keepdims=0\n"
                  "out y\n"
                  "out a\n",
                  "rows", "ReduceSum Unsqueeze graphrt::Rows Reshape");
}
END_TEST

START_TEST(part_of_a_row_as_input)
{
    ir_text_check("in x f32 4,6,8\n"
                  "in u f32 6,1\n"
                  "const both i64 2 1 2\n"
                  "a = Mul x u\n"
                  "m = ReduceMax a both\n"
                  "y = Sub a m\n"
                  "out y\n",
                  "rows", "Mul ReduceMax Sub");
}
END_TEST

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Functions and reductions in any order, of elements and of numbers, with several readers and outputs. */
/* Each dim in front of the row is another input's. */
START_TEST(many_groups_stay)
{
    static const char form[] = "in x f32 2,3,2,3,2,8\n"
                               "in a f32 1,3,1,3,1,8\n"
                               "in b f32 %s,1,8\n"
                               "const last i64 1 -1\n"
                               "p = Add x a\n"
                               "q = Add p b\n"
                               "m = ReduceMax q last\n"
                               "y = Sub q m\n"
                               "out y\n";
    char text[512];
    snprintf(text, sizeof text, form, "1,3,1,3");
    ir_text_check(text, "rows", "Add Add ReduceMax Sub");
    snprintf(text, sizeof text, form, "2,3,2,3");
    ir_text_check(text, "rows", "Add Add ReduceMax Sub");
    ir_text_check("in x f32 2,3,2,3,8\n"
                  "in a f32 1,3,1,3,8\n"
                  "const last i64 1 -1\n"
                  "p = Add x a\n"
                  "m = ReduceMax p last\n"
                  "y = Sub p m\n"
                  "out y\n",
                  "rows", "graphrt::Rows");
}
END_TEST

START_TEST(drawn_graphs)
{
    static const char *const unary[] = {"Tanh", "Abs", "Sigmoid", "Neg", "Softplus"},
                             *const binary[] = {"Add", "Sub", "Mul", "Max"},
                             *const folds[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2",
                                               "ReduceLogSumExp"};
    static const int lengths[] = {1, 3, 8, 31, 64, 200, 1025};
    enum { NODES = 12 };
    uint32_t seed = (uint32_t)_i * 7919u + 1;
    char text[2048];
    const int length = lengths[draw(&seed, 7)];
    int at =
        snprintf(text, sizeof text, "in v0 f32 %d,%d\nin v1 f32 %d\nin v2 f32 %d,1\nconst last i64 1 -1\n",
                 1 + (int)draw(&seed, 9), length, length, 1);
    for (int n = 3; n < NODES; n++) {
        const uint32_t from = draw(&seed, (uint32_t)n), other = draw(&seed, (uint32_t)n),
                       how = draw(&seed, 8);
        if (how < 2)
            at += snprintf(text + at, sizeof text - (size_t)at, "v%d = %s v%u\n", n, unary[draw(&seed, 5)],
                           from);
        else if (how < 5)
            at += snprintf(text + at, sizeof text - (size_t)at, "v%d = %s v%u v%u\n", n,
                           binary[draw(&seed, 4)], from, other);
        else
            at += snprintf(text + at, sizeof text - (size_t)at, "w%d = %s v%u last\nv%d = Tanh w%d\n", n,
                           folds[draw(&seed, 5)], from, n, n);
    }
    for (int n = NODES; n-- > NODES - 1 - (int)draw(&seed, 3);)
        at += snprintf(text + at, sizeof text - (size_t)at, "out v%d\n", n);
    ir_text_check(text, "rows", NULL);
}
END_TEST

START_TEST(only_where_it_gains)
{
    const char *text = "in x f32 4,48\nconst last i64 1 -1\nm = ReduceMax x last\ny = Sub x m\nout y\n";
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.folds_rows = false;
    target.traits = &traits;
    ir_module *m = ir_text(text);
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_rows(&context), GRT_OK);
    ck_assert_int_eq(context.changed, 0);
    context.enabled = "fold,rows";
    ck_assert_int_eq(pass_rows(&context), GRT_OK);
    ck_assert_int_eq(context.changed, 1);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_rows(void);
Suite *suite_test_pass_rows(void)
{
    Suite *s = suite_create("pass_rows");
    TCase *tc = tcase_create("rows");
    tcase_add_test(tc, a_norm);
    tcase_add_test(tc, a_softmax_of_two_row_dims);
    tcase_add_test(tc, every_reduction);
    tcase_add_test(tc, rows_of_every_length);
    tcase_add_test(tc, one_number_for_each_row);
    tcase_add_test(tc, dims_that_are_dropped_and_come_back);
    tcase_add_test(tc, inputs_of_every_place);
    tcase_add_test(tc, halves);
    tcase_add_test(tc, truth);
    tcase_add_test(tc, a_reduction_alone_stays);
    tcase_add_test(tc, rows_that_are_not_known);
    tcase_add_test(tc, columns_stay);
    tcase_add_test(tc, long_rows_stay);
    tcase_add_test(tc, two_readers);
    tcase_add_test(tc, plain_numbers_stay_outside);
    tcase_add_test(tc, views_of_reductions_outside);
    tcase_add_test(tc, part_of_a_row_as_input);
    tcase_add_test(tc, many_groups_stay);
    tcase_add_test(tc, only_where_it_gains);
    tcase_add_loop_test(tc, drawn_graphs, 0, 150);
    suite_add_tcase(s, tc);
    return s;
}

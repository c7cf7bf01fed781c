/* SPDX-License-Identifier: Apache-2.0 */
/* Products get their columns in the order in which they are read. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* x W + b of two groups of two queries, a key and a value, four numbers each. */
#define GROUPS(BATCH, ROWS)                                                    \
    "in x f32 " BATCH "," ROWS ",6\n"                                          \
    "const w f32 6,32\n"                                                       \
    "const b f32 32\n"                                                         \
    "const apart i64 5 0 0 2 4 4\n"                                            \
    "const ax i64 1 3\n"                                                       \
    "const c0 i64 1 0\nconst c2 i64 1 2\nconst c3 i64 1 3\nconst c4 i64 1 4\n" \
    "m = MatMul x w\n"                                                         \
    "y = Add m b\n"                                                            \
    "g = Reshape y apart\n"                                                    \
    "q = Slice g c0 c2 ax\n"                                                   \
    "k = Slice g c2 c3 ax\n"

#define READ "r = Relu q\ns = Neg k\nt = Exp v\nout r\nout s\nout t\n"

static void check_sorted(const char *text, const char *expected)
{
    ir_module *module = ir_text(text);
    ck_assert_int_gt(ir_text_pass(module, "column_order"), 0);
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), expected);
    ir_module_release(module);
    ir_text_check(text, "column_order", NULL);
}

static void check_stays(const char *text)
{
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "column_order"), 0);
    ir_module_release(module);
}

START_TEST(groups_of_heads)
{
    check_sorted(GROUPS("2", "3") "v = Slice g c3 c4 ax\n" READ,
                 "MatMul Add Split Reshape Reshape Reshape Relu Neg Exp");
    check_sorted(GROUPS("batch", "rows") "v = Slice g c3 c4 ax\n" READ,
                 "MatMul Add Split Reshape Reshape Reshape Relu Neg Exp");
}
END_TEST

/* Heads in front of rows behind the cut: what moves a part as a whole is done behind its columns. */
START_TEST(heads_in_front)
{
    check_sorted("in x f32 2,3,6\nconst w f32 6,24\nconst apart i64 4 2 3 4 6\nconst sizes i64 2 4 2\n"
                 "y = MatMul x w\nh = Reshape y apart\nt = Transpose h perm=0,2,1,3\n"
                 "a,b = Split t sizes axis=3\nl = Relu a\nm = Exp b\nout l\nout m\n",
                 "MatMul Split Reshape Transpose Reshape Transpose Relu Exp");
}
END_TEST

/* Queries, keys and values as the parts of a dim within each head, put in front of all. */
START_TEST(parts_in_front)
{
    check_sorted("in x f32 2,3,6\nconst w f32 6,24\nconst apart i64 5 2 3 2 3 4\n"
                 "const i i64 - 0\nconst j i64 - 1\nconst l i64 - 2\n"
                 "y = MatMul x w\nh = Reshape y apart\nf = Transpose h perm=3,0,2,1,4\n"
                 "q = Gather f i axis=0\nk = Gather f j axis=0\nv = Gather f l axis=0\n" READ,
                 "MatMul Split Reshape Transpose Reshape Transpose Reshape Transpose Relu Neg Exp");
}
END_TEST

/* Neighbours become halves, in one part of the columns, or in all of them. */
START_TEST(neighbours_as_halves)
{
    check_sorted("in x f32 2,3,6\nconst w f32 6,10\nconst sizes i64 2 4 6\nconst pairs i64 4 2 3 3 2\n"
                 "const flat i64 3 2 3 6\n"
                 "y = MatMul x w\na,b = Split y sizes axis=2\nn = Reshape b pairs\n"
                 "t = Transpose n perm=0,1,3,2\nf = Reshape t flat\nl = Relu a\nm = Exp f\nout l\nout m\n",
                 "MatMul Split Relu Exp");
    check_sorted("in x f32 2,3,6\nconst w f32 6,12\nconst pairs i64 5 2 3 2 3 2\nconst heads i64 4 2 3 2 6\n"
                 "y = MatMul x w\nn = Reshape y pairs\nt = Transpose n perm=0,1,2,4,3\n"
                 "f = Reshape t heads\nl = Relu f\nout l\n",
                 "MatMul Reshape Relu");
}
END_TEST

/* Names of the file stay with its tensors, outputs included. */
START_TEST(names)
{
    ir_module *module = ir_text(GROUPS("2", "3") "v = Slice g c3 c4 ax\nout v\nr = Relu q\ns = Neg k\n"
                                                 "out r\nout s\n");
    ck_assert_int_eq(ir_text_pass(module, "column_order"), 3);
    ck_assert_str_eq(module->main->outputs[0].value->name, "v");
    ck_assert_str_eq(ir_in(ir_text_node(module, "Relu", 0), 0)->name, "q");
    ir_module_release(module);
}
END_TEST

START_TEST(ranges_stay)
{
    check_stays("in x f32 2,3,6\nconst w f32 6,12\nconst apart i64 4 2 3 2 3\nconst sizes i64 2 6 6\n"
                "y = MatMul x w\na,b = Split y sizes axis=2\nh = Reshape a apart\n"
                "t = Transpose h perm=0,2,1,3\nl = Relu t\nm = Exp b\nout l\nout m\n");
}
END_TEST

/* Ranges that slices cut out of split dims: the weights stay as they are, and one Split cuts. */
#define UNBOUND(moved)                                                                                    \
    "in x f32 2,3,6\nconst w f32 6,12\nconst apart i64 5 2 3 3 2 2\nconst c0 i64 1 0\nconst c1 i64 1 1\n" \
    "const c2 i64 1 2\nconst c3 i64 1 3\nconst ax i64 1 2\ny = MatMul x w\ng = Reshape y apart\n"         \
    "q = Slice g c0 c1 ax\nk = Slice g c1 c2 ax\nv = Slice g c2 c3 ax\nt = Transpose v "                  \
    "perm=0,3,1,2,4\n" moved

START_TEST(slices_of_ranges)
{
    const char text[] = UNBOUND("a = Relu q\nb = Neg k\nd = Exp t\nout a\nout b\nout d\n");
    ir_module *module = ir_text(text);
    ck_assert_int_eq(ir_text_pass(module, "column_order"), 3);
    ir_text_pass(module, "dce");
    ck_assert_ptr_nonnull(strstr(ir_text_ops(module), "MatMul Split Reshape"));
    ck_assert_ptr_null(strstr(ir_text_ops(module), "Slice"));
    ir_module *plain = ir_text(text);
    ir_text_compare(plain, module);
    ir_module_release(plain);
    ir_module_release(module);
}
END_TEST

/* All parts are moved: one Transpose does that for all of them. */
START_TEST(moved_ranges_stay)
{
    check_stays(
        UNBOUND("r = Transpose q perm=0,3,1,2,4\ns = Transpose k perm=0,3,1,2,4\na = Relu r\nb = Neg s\n"
                "d = Exp t\nout a\nout b\nout d\n"));
}
END_TEST

/* A batch normalisation between the product and its parts is in the weights before columns are sorted. */
START_TEST(behind_a_batch_norm)
{
    const char text[] =
        "in x f32 2,3,6\nconst w f32 6,24\nconst g f32 24 2\nconst b f32 24\nconst m f32 24\nconst v f32 24 "
        "4\n"
        "const rows i64 2 6 24\nconst heads i64 4 2 3 4 6\nconst c0 i64 1 0\nconst c2 i64 1 2\n"
        "const c4 i64 1 4\nconst c6 i64 1 6\nconst ax i64 1 3\na = MatMul x w\nf = Reshape a rows\n"
        "n = BatchNormalization f g b m v\nh = Reshape n heads\nq = Slice h c0 c2 ax\nk = Slice h c2 c4 ax\n"
        "u = Slice h c4 c6 ax\nl = Softmax q\ns = LogSoftmax k\nt = Hardmax u\nout l\nout s\nout t\n";
    ir_text_check(text, "", "graphrt::MatMul Split Reshape Reshape Reshape Softmax LogSoftmax Hardmax");
}
END_TEST

/* Parts that share columns, or leave some out; rows that are cut off; all columns read beside parts. */
START_TEST(what_is_not_parted_stays)
{
    check_stays(GROUPS("2", "3") "v = Slice g c2 c4 ax\n" READ);
    check_stays(GROUPS("2", "3") "v = Slice g c2 c3 ax\n" READ);
    check_stays(GROUPS("2", "3") "r = Relu q\ns = Neg k\nout r\nout s\n");
    check_stays(GROUPS("2", "3") "v = Slice g c3 c4 ax\nu = Sigmoid y\nout u\n" READ);
    check_stays("in x f32 2,3,6\nconst w f32 6,12\nconst pairs i64 5 2 3 2 3 2\nconst c0 i64 1 0\n"
                "const c2 i64 1 2\nconst ax i64 1 1\n"
                "y = MatMul x w\nn = Reshape y pairs\nt = Transpose n perm=0,1,2,4,3\n"
                "f = Slice t c0 c2 ax\nl = Relu f\nout l\n");
}
END_TEST

/* Weights without rows have no element to pay for their columns, so many can be claimed. */
START_TEST(columns_without_rows_stay)
{
    check_stays("in x f32 2,0\nconst w f32 0,1099511627776\nconst apart i64 4 2 2 2 274877906944\n"
                "const ax i64 1 2\nconst c0 i64 1 0\nconst c1 i64 1 1\nconst c2 i64 1 2\n"
                "y = MatMul x w\ng = Reshape y apart\np = Slice g c0 c1 ax\nq = Slice g c1 c2 ax\n"
                "r = Relu p\ns = Neg q\nout r\nout s\n");
}
END_TEST

/* Weights that another product reads would be stored twice. */
START_TEST(shared_weights_stay)
{
    check_stays(GROUPS("2", "3") "v = Slice g c3 c4 ax\nz = MatMul x w\nout z\n" READ);
}
END_TEST

/* Ten times the columns in as many parts: no more than are looked for. */
START_TEST(many_parts_stay)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "in x f32 2,6\nconst w f32 6,80\nconst apart i64 3 2 2 40\nconst ax i64 1 2\n"
                     "const c0 i64 1 0\ny = MatMul x w\ng = Reshape y apart\n");
    for (int i = 0; i < 40; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "const c%d i64 1 %d\np%d = Slice g c%d c%d ax\nr%d = Relu p%d\nout r%d\n", i + 1, i + 1,
                      i, i, i + 1, i, i, i);
    check_stays(text);
}
END_TEST

UNIT_SUITE(test_pass_column_order, NULL, NULL, groups_of_heads, heads_in_front, parts_in_front,
           neighbours_as_halves, names, ranges_stay, slices_of_ranges, behind_a_batch_norm, moved_ranges_stay,
           what_is_not_parted_stays, columns_without_rows_stay, shared_weights_stay, many_parts_stay)

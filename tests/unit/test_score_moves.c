/* SPDX-License-Identifier: Apache-2.0 */
/* Attention whose scores are moved, transposed or weighted between its products; what looks like it and is
 * none stays products. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

/* Queries of groups of heads that share keys, as einsums. */
#define GROUPED(b, t, s)                                         \
    "in x f32 " b "," t ",8\nin y f32 " b "," s ",8\n"           \
    "const wq f32 8,24\nconst wk f32 8,8\nconst wv f32 8,8\n"    \
    "const f i64 5 0 0 2 3 4\nconst g i64 4 0 0 2 4\n"           \
    "q0 = MatMul x wq\nk0 = MatMul y wk\nv0 = MatMul y wv\n"     \
    "q = Reshape q0 f\nk = Reshape k0 g\nv = Reshape v0 g\n"     \
    "s = Einsum q k equation=btkgd,bskd->bkgts\np = Softmax s\n" \
    "o = Einsum p v equation=bkgts,bskd->btkgd\nout o\n"

START_TEST(heads_that_share_keys)
{
    ir_text_check(GROUPED("2", "5", "7"), "",
                  "graphrt::MatMul graphrt::MatMul graphrt::MatMul Attention Reshape");
    ir_text_check(GROUPED("b", "t", "s"), "",
                  "graphrt::MatMul graphrt::MatMul graphrt::MatMul Attention Reshape");
    ir_text_check(GROUPED("1", "1", "1"), "", NULL);
}
END_TEST

/* One head of keys for all of the queries', which are folded with the queries themselves. */
START_TEST(queries_folded_with_heads)
{
    ir_text_check("in x f32 2,5,32\nin k f32 2,7,8\nin v f32 2,7,8\nin mask f32 2,1,5,7\n"
                  "const f i64 4 2 5 4 8\nconst folded i64 3 2 20 8\nconst apart i64 4 2 4 5 7\n"
                  "const again i64 3 2 20 7\n"
                  "x1 = Reshape x f\nx2 = Transpose x1 perm=0,2,1,3\nq = Reshape x2 folded\n"
                  "kt = Transpose k perm=0,2,1\nqk = MatMul q kt\ns = Reshape qk apart\nm = Add s mask\n"
                  "p = Softmax m\nr = Reshape p again\ny = MatMul r v\nout y\n",
                  "", "Attention Reshape Transpose Reshape");
}
END_TEST

#define TURNED(product, axis, last)                                                                 \
    "in q f32 2,3,5,4\nin k f32 2,3,7,4\nin v f32 2,3,7,8\n"                                        \
    "qt = Transpose q perm=0,1,3,2\nkt = Transpose k perm=0,1,3,2\nvt = Transpose v perm=0,1,3,2\n" \
    "s = MatMul " product "\np = Softmax s axis=" axis "\npt = Transpose p perm=0,1,3,2\n"          \
    "y = MatMul " last "\nout y\n"

START_TEST(transposed_scores)
{
    ir_text_check(TURNED("q kt", "-1", "vt pt"), "", "Attention Transpose");
    ir_text_check(TURNED("k qt", "-2", "pt v"), "", "Attention");
    ir_text_check(TURNED("k qt", "-2", "vt p"), "", "Attention Transpose");
}
END_TEST

/* Sizes that agree by accident: the softmax is over queries. */
#define SQUARE(axis, last)                                                          \
    "in q f32 2,3,5,4\nin k f32 2,3,5,4\nin v f32 2,3,5,5\n"                        \
    "kt = Transpose k perm=0,1,3,2\nvt = Transpose v perm=0,1,3,2\n"                \
    "s = MatMul q kt\np = Softmax s axis=" axis "\npt = Transpose p perm=0,1,3,2\n" \
    "y = MatMul " last "\nout y\n"

START_TEST(softmax_over_queries_stays)
{
    ir_text_check(SQUARE("-2", "p v"), "attention", "Transpose Transpose MatMul Softmax Transpose MatMul");
    ir_text_check(SQUARE("-1", "pt v"), "", "graphrt::MatMul Softmax graphrt::MatMul");
    ir_text_check(SQUARE("-1", "vt p"), "", "graphrt::MatMul Softmax graphrt::MatMul");
}
END_TEST

#define WEIGHTED(mask)                                                              \
    "in q f32 2,4,5,8\nin kt f32 2,4,8,5\nin v f32 2,4,5,8\nin mask f32 " mask "\n" \
    "s = MatMul q kt\np = Softmax s\nw = Mul p mask\ny = MatMul w v\nout y\n"

START_TEST(factors_behind_the_softmax)
{
    ir_text_check(WEIGHTED("4,1,1"), "", "Transpose Attention Mul");
    ir_text_check(WEIGHTED("2,4,1,1"), "", "Transpose Attention Mul");
    ir_text_check(WEIGHTED("-"), "", "Transpose Attention Mul");
    ir_text_check(WEIGHTED("5"), "attention", "MatMul Softmax Mul MatMul");
    ir_text_check(WEIGHTED("4,5,1"), "attention", "MatMul Softmax Mul MatMul");
}
END_TEST

/* Rows are sorted so that the softmax has others than the product: keys differ along the last of them. */
START_TEST(rows_of_other_keys_stay)
{
    ir_text_check("in q f32 2,3,5,4\nin kt f32 2,3,4,7\nin v f32 2,5,7,4\n"
                  "s = MatMul q kt\nt = Transpose s perm=0,2,1,3\np = Softmax t\ny = MatMul p v\nout y\n",
                  "", "graphrt::MatMul Transpose Softmax graphrt::MatMul");
    ir_text_check("in q f32 2,3,6,4\nin kt f32 2,3,4,7\nin v f32 2,6,7,4\nconst f i64 4 2 6 3 7\n"
                  "s = MatMul q kt\nt = Reshape s f\np = Softmax t\ny = MatMul p v\nout y\n",
                  "attention", "MatMul Reshape Softmax Reshape MatMul");
    /* a mask that lies on the rows before they are moved */
    ir_text_check("in q f32 2,6,4\nin kt f32 2,4,7\nin v f32 2,7,4\nin mask f32 6,7\n"
                  "const f i64 4 2 2 3 7\nconst g i64 3 2 6 7\n"
                  "s = MatMul q kt\nm = Add s mask\nt = Reshape m f\np = Softmax t\nr = Reshape p g\n"
                  "y = MatMul r v\nout y\n",
                  "attention", "MatMul Add Reshape Softmax Reshape MatMul");
}
END_TEST

/* torch.nn.MultiheadAttention for other keys than queries: one projection makes keys and values. */
#define CROSS(x, y, in, turn_out)                                                                  \
    "in x f32 " x ",8\nin y f32 " y ",8\nconst wq f32 8,8\nconst wkv f32 8,16\nconst bkv f32 16\n" \
    "const o f32 8,8\n" in "q0 = MatMul x1 wq\nkv0 = MatMul y1 wkv\nkv = Add kv0 bkv\n"            \
    "k0,v0 = Split kv axis=2\nconst f i64 3 5 -1 4\nconst g i64 3 7 -1 4\nconst h i64 3 5 -1 8\n"  \
    "q1 = Reshape q0 f\nk1 = Reshape k0 g\nv1 = Reshape v0 g\nq = Transpose q1 perm=1,0,2\n"       \
    "kt = Transpose k1 perm=1,2,0\nv = Transpose v1 perm=1,0,2\ns = MatMul q kt\np = Softmax s\n"  \
    "a = MatMul p v\na1 = Transpose a perm=1,0,2\na2 = Reshape a1 h\nz = MatMul a2 o\n" turn_out

START_TEST(keys_and_values_of_one_projection)
{
    ir_text_check(CROSS("5,3", "7,3", "x1 = Identity x\ny1 = Identity y\n", "out z\n"), "",
                  "graphrt::MatMul graphrt::MatMul graphrt::MatMul Reshape Reshape Reshape Attention Reshape "
                  "graphrt::MatMul");
    ir_text_check(CROSS("3,5", "3,7", "x1 = Transpose x perm=1,0,2\ny1 = Transpose y perm=1,0,2\n",
                        "u = Transpose z perm=1,0,2\nout u\n"),
                  "", "graphrt::MatMul graphrt::MatMul graphrt::MatMul Attention graphrt::MatMul");
}
END_TEST

/* Keys that others read too: the projection stays one. */
START_TEST(keys_that_others_read)
{
    ir_text_check(
        CROSS("5,3", "7,3", "x1 = Identity x\ny1 = Identity y\n", "out z\nout k1\n"), "",
        "graphrt::MatMul graphrt::MatMul Split Reshape Reshape Reshape Transpose Transpose Reshape Transpose "
        "Reshape Reshape Attention Reshape Transpose Reshape graphrt::MatMul");
}
END_TEST

/* Scores that are kept finite: a row that is hidden altogether, by two masks, has equal weights. */
#define BOUNDED(bound, sum)                                                                   \
    "in q f32 2,3,5,4\nin kt f32 2,3,4,7\nin v f32 2,3,7,4\nconst a f32 5,7 -inf 0 -3e38 1\n" \
    "const b f32 5,1 -inf 0 -inf 0 -3e38\nconst least f32 - " bound "\n"                      \
    "s = MatMul q kt\n" sum "m = Max s2 least\np = Softmax m\ny = MatMul p v\nout y\n"

START_TEST(bounded_scores)
{
    ir_text_check(BOUNDED("-3.4e38", "s1 = Add s a\ns2 = Add s1 b\n"), "", "Transpose Attention");
    ir_text_check(BOUNDED("-3.4e38", "c = Neg a\ns1 = Sub s c\ns2 = Add s1 b\n"), "", "Transpose Attention");
    ir_text_check(BOUNDED("-1", "s1 = Add s a\ns2 = Add s1 b\n"), "attention",
                  "MatMul Add Add Max Softmax MatMul");
}
END_TEST

/* [b, h, s, d] to [b * h, s, d] and back, where only h and d are known. */
START_TEST(heads_folded_into_a_symbolic_batch)
{
    ir_module *m =
        ir_text("in x f32 b,t,8\nin y f32 b,s,8\nconst f i64 4 0 0 2 4\n"
                "q0 = Reshape x f\nk0 = Reshape y f\nq1 = Transpose q0 perm=0,2,1,3\n"
                "k1 = Transpose k0 perm=0,2,1,3\nq2 = Flatten q1 axis=2\nk2 = Flatten k1 axis=2\n"
                "const g i64 3 0 -1 4\nq = Reshape q2 g\nk = Reshape k2 g\nkt = Transpose k perm=0,2,1\n"
                "s = MatMul q kt\np = Softmax s\na = MatMul p k\nout a\n");
    ir_text_pass(m, "");
    ck_assert_str_eq(ir_text_ops(m), "Attention Reshape Transpose Flatten Reshape");
    ir_module_release(m);
}
END_TEST

/* The least float32 is none of float16's, beside queries of which a row that is hidden altogether would have
 * no weights. */
START_TEST(least_scores_beside_narrow_queries)
{
    enum { MASK = 3 };
    ir_module *m = ir_text("in q f16 1,2,3,8\nin kt f16 1,2,8,4\nin v f16 1,2,4,8\nin mask f32 1,1,3,4\n"
                           "const least f32 - -3.4028235e38\n"
                           "s = MatMul q kt\nw = Cast s to=1\na = Add w mask\nm = Max a least\n"
                           "p = Softmax m\nn = Cast p to=10\ny = MatMul n v\nout y\n");
    ir_text_pass(m, "attention");
    ck_assert_int_eq(ir_in(ir_text_node(m, "Attention", 0), MASK)->type.dtype, GRT_DTYPE_FLOAT);
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_score_moves, NULL, NULL, heads_that_share_keys, queries_folded_with_heads, transposed_scores,
           softmax_over_queries_stays, factors_behind_the_softmax, rows_of_other_keys_stay,
           keys_and_values_of_one_projection, keys_that_others_read, bounded_scores,
           heads_folded_into_a_symbolic_batch, least_scores_beside_narrow_queries)

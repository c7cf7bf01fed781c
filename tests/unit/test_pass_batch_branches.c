/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of one form become one branch on a batch. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"

#include "graph/compile.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 16384 };

/* The text with, for i in [from, to), `branch` in which '#' is i, '<' is i * width and '>' where that range
 * ends. */
static void add(char *text, const char *branch, int from, int to, int width)
{
    size_t n = strlen(text);
    for (int i = from; i < to; i++)
        for (const char *p = branch; *p; p++) {
            const int number = *p == '#' ? i : *p == '<' ? i * width : (i + 1) * width;
            if (strchr("#<>", *p))
                n += (size_t)snprintf(text + n, TEXT - n, "%d", number);
            else
                n += (size_t)snprintf(text + n, TEXT - n, "%c", *p);
            ck_assert_uint_lt(n, TEXT);
        }
}

static void add_text(char *text, const char *more)
{
    add(text, more, 0, 1, 0);
}

#define CUT              \
    "const s# i64 1 <\n" \
    "const e# i64 1 >\n" \
    "x# = Slice x s# e# one\n"
#define LAYER            \
    "const w# f32 3,5\n" \
    "const b# f32 3\n"   \
    "h# = Gemm x# w# b# transB=1\n"
#define LAST             \
    "const v# f32 1,3\n" \
    "const c# f32 1\n"   \
    "y# = Gemm h# v# c# transB=1\n"

/* n branches on ranges of x [rows, n * 5], joined in order along axis 1. */
static void check(const char *rows, int n, const char *branch, const char *pass, const char *expected)
{
    char text[TEXT];
    snprintf(text, sizeof text, "in x f32 %s,%d\nconst one i64 1 1\n", rows, n * 5);
    add(text, branch, 0, n, 5);
    add_text(text, "y = Concat");
    add(text, " y#", 0, n, 0);
    add_text(text, " axis=1\nout y\n");
    ir_text_check(text, pass, expected);
}

/* What two layers are in the end: the bias is a row for each matrix. */
#define TWO_LAYERS "graphrt::MatMul graphrt::MatMul"
#define MANY_ROWS  "Reshape Transpose " TWO_LAYERS " Transpose Reshape"

START_TEST(as_exported)
{
    check("2", 4, CUT LAYER LAST, "batch_branches",
          "Reshape Transpose Transpose MatMul Add Transpose MatMul Add Transpose Reshape");
    check("2", 6, CUT LAYER LAST, "", MANY_ROWS);
    check("n", 6, CUT LAYER LAST, "", MANY_ROWS);
    /* Of one row there is nothing to move. */
    check("1", 6, CUT LAYER LAST, "", "Reshape " TWO_LAYERS " Reshape");
}
END_TEST

START_TEST(what_is_between)
{
    static const char *const between[] = {"Relu", "Gelu", "LeakyRelu alpha=0.3"};
    char branch[1024], op[32], attr[32];
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        *attr = 0;
        sscanf(between[i], "%31s %31s", op, attr);
        snprintf(branch, sizeof branch, "%sg# = %s h# %s\nconst v# f32 1,3\ny# = Gemm g# v# transB=1\n",
                 CUT LAYER, op, attr);
        check("2", 4, branch, "", MANY_ROWS);
    }
    check("2", 4,
          CUT LAYER "const lo f32 - 0\n"
                    "const hi f32 - 0.5\n"
                    "g# = Clip h# _ hi\n"
                    "y# = Softmax g# axis=1\n",
          "batch_branches", "Reshape Transpose Transpose MatMul Add Clip Softmax Transpose Reshape");
    check("2", 4,
          CUT LAYER "const scale f32 3\n"
                    "const bias f32 3\n"
                    "y# = LayerNormalization h# scale bias axis=1\n",
          "batch_branches", "Reshape Transpose Transpose MatMul Add LayerNormalization Transpose Reshape");
    check("2", 4,
          CUT LAYER "const scale# f32 3\n"
                    "const bias# f32 3\n"
                    "y# = LayerNormalization h# scale# bias#\n",
          "batch_branches",
          "Reshape Transpose Transpose MatMul Add LayerNormalization Mul Add Transpose Reshape");
    check("2", 4, CUT "const w# f32 5,3\nh# = MatMul x# w#\nconst k# f32 - #\ny# = Mul k# h#\n",
          "batch_branches", "Reshape Transpose MatMul Mul Transpose Reshape");
}
END_TEST

START_TEST(scaled_products)
{
    check("2", 4, CUT "const w# f32 5,3\nconst b# f32 2,1\ny# = Gemm x# w# b# alpha=0.5 beta=2\n",
          "batch_branches", "Reshape Transpose MatMul Mul Mul Add Transpose Reshape");
    check("2", 4, CUT "const w# f32 2,3\ny# = Gemm x# w# transA=1\n", "batch_branches",
          "Reshape Transpose Transpose MatMul Transpose Reshape");
}
END_TEST

START_TEST(residuals)
{
    check("2", 4,
          CUT "const w# f32 5,5\n"
              "h# = MatMul x# w#\n"
              "g# = Relu h#\n"
              "const v# f32 5,5\n"
              "k# = MatMul g# v#\n"
              "y# = Add g# k#\n",
          "", "Reshape Transpose graphrt::MatMul graphrt::MatMul Transpose Reshape");
    check("2", 4, CUT "const w# f32 5,5\nh# = MatMul x# w#\ny# = Sub x# h#\n", "batch_branches",
          "Reshape Transpose MatMul Sub Transpose Reshape");
}
END_TEST

static void check_text(const char *begin, const char *branch, int n, int width, const char *end,
                       const char *pass, const char *expected)
{
    char text[TEXT] = "";
    add_text(text, begin);
    add(text, branch, 0, n, width);
    add_text(text, end);
    ir_text_check(text, pass, expected);
}

START_TEST(other_ways_to_cut)
{
    check_text("in x f32 2,20\n"
               "x0,x1,x2,x3 = Split x axis=1 num_outputs=4\n",
               LAYER, 4, 0, "y = Concat h0 h1 h2 h3 axis=1\nout y\n", "",
               "Reshape Transpose graphrt::MatMul Transpose Reshape");
    /* Neither the first nor the last columns. */
    check_text("in x f32 2,23\n"
               "const sizes i64 6 1 5 5 5 5 2\n"
               "a,x0,x1,x2,x3,b = Split x sizes axis=-1\n",
               LAYER, 4, 0, "y = Concat h0 h1 h2 h3 axis=1\nout y\n", "batch_branches",
               "Slice Reshape Transpose Transpose MatMul Add Transpose Reshape");
    /* Ranges that overlap, and one that two branches read. */
    check_text("in x f32 2,20\n"
               "const one i64 1 1\n"
               "const s0 i64 1 0\nconst e0 i64 1 5\nx0 = Slice x s0 e0 one\n"
               "const s1 i64 1 3\nconst e1 i64 1 8\nx1 = Slice x s1 e1 one\n"
               "const s2 i64 1 -6\nconst e2 i64 1 -1\nx2 = Slice x s2 e2 one\n"
               "x3 = Identity x1\n"
               "const w3 f32 5,3\nh3 = MatMul x1 w3\n",
               "const w# f32 5,3\nh# = MatMul x# w#\n", 3, 0,
               "y = Concat h0 h1 h2 h3 axis=1\nout y\nout x3\n", "batch_branches",
               "Gather Reshape Transpose Slice Identity MatMul Transpose Reshape");
    /* One element, whose dim is gone. */
    check_text("in x f32 2,4,5\n",
               "const i# i64 - #\n"
               "x# = Gather x i# axis=1\n" LAYER,
               4, 0, "y = Concat h0 h1 h2 h3 axis=1\nout y\n", "batch_branches",
               "Transpose Transpose MatMul Add Transpose Reshape");
}
END_TEST

START_TEST(other_ways_to_join)
{
    static const char begin[] = "in x f32 2,20\nconst one i64 1 1\nconst zero i64 1 0\n";
    check_text(begin, CUT LAYER "u# = Unsqueeze h# zero\n", 4, 5, "y = Concat u0 u1 u2 u3 axis=0\nout y\n",
               "", "Reshape Transpose graphrt::MatMul");
    check_text(begin, CUT LAYER "u# = Unsqueeze h# one\n", 4, 5, "y = Concat u0 u1 u2 u3 axis=1\nout y\n", "",
               "Reshape Transpose graphrt::MatMul Reshape Transpose Reshape");
    check_text(begin, CUT LAYER, 4, 5, "y = Concat h0 h1 h2 h3 axis=0\nout y\n", "",
               "Reshape Transpose graphrt::MatMul Reshape");
    check_text(begin, CUT LAYER, 4, 5, "y = Concat h3 h2 h1 h0 axis=1\nout y\n", "",
               "Gather Reshape Transpose graphrt::MatMul Transpose Reshape");
    /* Two heads of each branch. */
    check_text(
        begin, CUT LAYER LAST "const u# f32 3,2\nz# = MatMul h# u#\n", 4, 5,
        "y = Concat y0 y1 y2 y3 axis=1\n"
        "z = Concat z0 z1 z2 z3 axis=1\n"
        "out y\n"
        "out z\n",
        "",
        "Reshape Transpose graphrt::MatMul graphrt::MatMul graphrt::MatMul Transpose Reshape Transpose "
        "Reshape");
}
END_TEST

/* Sums of what branches give: additive models, ensembles. */
START_TEST(added_up)
{
    static const char begin[] = "in x f32 2,20\nconst one i64 1 1\nin z f32 2,3\n",
                      batch[] = "Reshape Transpose Transpose MatMul Add ReduceSum";
    static const char *const ops[][2] = {
        {"Sum", "ReduceSum"}, {"Mean", "ReduceMean"}, {"Max", "ReduceMax"}, {"Min", "ReduceMin"}};
    char end[256], expected[256];
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        snprintf(end, sizeof end, "y = %s h0 h1 h2 h3\nout y\n", ops[i][0]);
        snprintf(expected, sizeof expected, "Reshape Transpose Transpose MatMul Add %s", ops[i][1]);
        check_text(begin, CUT LAYER, 4, 5, end, "batch_branches", expected);
    }
    check_text(begin, CUT LAYER, 4, 5, "p = Add h0 h1\nq = Add h2 p\ny = Add q h3\nout y\n", "batch_branches",
               batch);
    /* Terms that are sums. */
    check_text(begin, CUT LAYER "k# = Add h# z\n", 4, 5,
               "p = Add k0 k1\nq = Add p k2\ny = Add q k3\nr = Relu y\nout r\n", "batch_branches",
               "Reshape Transpose Transpose MatMul Add Add ReduceSum Relu");
    /* Other terms before and after. */
    check_text(begin, CUT LAYER, 4, 5,
               "o = Add z h0\np = Add o h1\nq = Add p h2\nr = Add h3 q\ns = Add r z\ny = Add z s\nout y\n",
               "batch_branches", "Reshape Transpose Transpose MatMul Add ReduceSum Add Add Add");
    /* Not all have one form; a sum on the way that somebody else reads. */
    check_text(begin, CUT LAYER, 4, 5, "p = Add h0 h1\nq = Add p z\nr = Add q h2\ny = Add r h3\nout y\n",
               "batch_branches", "Slice Gemm Slice Gemm Slice Gemm Slice Gemm Add Add Add Add");
    check_text(begin, CUT LAYER, 4, 5, "p = Add h0 h1\nq = Add p h2\ny = Add q h3\nout y\nout p\n",
               "batch_branches", "Slice Gemm Slice Gemm Slice Gemm Slice Gemm Add Add Add");
}
END_TEST

START_TEST(one_that_differs)
{
    char text[TEXT] = "in x f32 2,45\nconst one i64 1 1\n";
    add(text, CUT LAYER "y# = Relu h#\n", 0, 4, 5);
    add(text, CUT LAYER "y# = Tanh h#\n", 4, 5, 5);
    add(text, CUT LAYER "y# = Relu h#\n", 5, 9, 5);
    add_text(text, "y = Concat");
    add(text, " y#", 0, 9, 0);
    add_text(text, " axis=1\nout y\n");
    ir_text_check(
        text, "batch_branches",
        "Slice Reshape Transpose Transpose MatMul Add Relu Slice Gemm Tanh "
        "Slice Reshape Transpose Transpose MatMul Add Relu Transpose Reshape Transpose Reshape Concat");
}
END_TEST

START_TEST(what_branches_share)
{
    check_text("in x f32 2,5\n", "const w# f32 5,3\nconst b# f32 3\ny# = Gemm x w# b#\n", 4, 0,
               "y = Concat y0 y1 y2 y3 axis=1\nout y\n", "batch_branches", "MatMul Add Transpose Reshape");
    /* One matrix for all; the bias must not be taken for one of that matrix. */
    check_text("in x f32 2,20\nconst one i64 1 1\nconst w f32 5,3\n",
               CUT "const b# f32 3\ny# = Gemm x# w b#\n", 4, 5, "y = Concat y0 y1 y2 y3 axis=1\nout y\n", "",
               "Reshape Transpose graphrt::MatMul Transpose Reshape");
    /* A value that is computed, and has more dims than what it is added to. */
    check_text("in x f32 2,20\nin t f32 4,2,3\nconst one i64 1 1\nr = Exp t\n", CUT LAYER "y# = Add h# r\n",
               4, 5, "y = Concat y0 y1 y2 y3 axis=2\nout y\n", "batch_branches",
               "Exp Reshape Transpose Transpose MatMul Add Unsqueeze Add Transpose Reshape");
}
END_TEST

/* Of x [4, 2, 6, 5]: dims in front of the matrices, views, other axes. */
START_TEST(more_dims)
{
    check_text("in x f32 4,2,6,5\n"
               "const shape i64 3 2,15,2\n"
               "x0,x1,x2,x3 = Split x num_outputs=4\n"
               "const zero i64 1 0\n",
               "v# = Squeeze x# zero\n"
               "const w# f32 5,5\n"
               "h# = MatMul v# w#\n"
               "t# = Transpose h# perm=0,2,1\n"
               "p# = MatMul h# t#\n"
               "f# = Flatten p# axis=1\n"
               "const u# f32 36,2\n"
               "y# = MatMul f# u#\n",
               4, 0, "y = Concat y0 y1 y2 y3 axis=1\nout y\n", "batch_branches",
               "Reshape Reshape MatMul Transpose MatMul Reshape MatMul Transpose Reshape");
    check_text("in x f32 n,s,20\nconst one i64 1 2\n", CUT "const w# f32 5,3\ny# = MatMul x# w#\n", 4, 5,
               "y = Concat y0 y1 y2 y3 axis=-1\nout y\n", "batch_branches",
               "Reshape Transpose MatMul Transpose Reshape");
}
END_TEST

/* What a branch cuts its own values into, and joins. */
START_TEST(cut_and_joined_in_branches)
{
    static const char begin[] = "in x f32 2,20\nin t f32 n,6\nconst one i64 1 1\n",
                      end[] = "y = Concat y0 y1 y2 y3 axis=1\nout y\n";
    check_text(begin,
               CUT "const w# f32 5,6\nh# = MatMul x# w#\n"
                   "a#,g# = Split h# axis=-1 num_outputs=2\n"
                   "q# = Sigmoid g#\n"
                   "y# = Mul a# q#\n",
               4, 5, end, "batch_branches",
               "Reshape Transpose MatMul Slice Slice Sigmoid Mul Transpose Reshape");
    check_text(begin,
               CUT "const w# f32 5,6\nh# = MatMul x# w#\n"
                   "const last i64 - -1\n"
                   "a# = Gather h# last axis=1\n"
                   "y# = Unsqueeze a# one\n",
               4, 5, end, "batch_branches", "Reshape Transpose MatMul Gather Reshape Transpose Reshape");
    check_text("in x f32 n,20\nin t f32 n,6\nconst one i64 1 1\n",
               CUT "c# = Concat x# t axis=1\nconst w# f32 11,3\ny# = MatMul c# w#\n", 4, 5, end,
               "batch_branches", "Reshape Transpose Expand Concat MatMul Transpose Reshape");
    check_text(begin,
               CUT LAYER "m# = ReduceMean h# one keepdims=1\n"
                         "y# = Sub h# m#\n",
               4, 5, end, "batch_branches",
               "Reshape Transpose Transpose MatMul Add ReduceMean Sub Transpose Reshape");
    check_text(begin, CUT LAYER "y# = ReduceMax h# keepdims=1\n", 4, 5, end, "batch_branches",
               "Reshape Transpose Transpose MatMul Add ReduceMax Transpose Reshape");
    /* Of each branch four are joined as well; all branches are worth more. */
    check_text(
        "in x f32 2,80\n"
        "const one i64 1 1\n",
        CUT "const v# f32 5,3\nh# = MatMul x# v#\n", 16, 5,
        "c0 = Concat h0 h1 h2 h3 axis=1\n"
        "c1 = Concat h4 h5 h6 h7 axis=1\n"
        "c2 = Concat h8 h9 h10 h11 axis=1\n"
        "c3 = Concat h12 h13 h14 h15 axis=1\n"
        "const u0 f32 12,2\nconst u1 f32 12,2\nconst u2 f32 12,2\nconst u3 f32 12,2\n"
        "y0 = MatMul c0 u0\ny1 = MatMul c1 u1\ny2 = MatMul c2 u2\ny3 = MatMul c3 u3\n"
        "y = Concat y0 y1 y2 y3 axis=1\nout y\n",
        "batch_branches",
        "Gather Reshape Transpose MatMul Gather Reshape Transpose MatMul Gather Reshape Transpose MatMul "
        "Gather Reshape Transpose MatMul Concat MatMul Transpose Reshape");
}
END_TEST

/* One family reads a member of another one, which is taken out of its batch first, or later. */
START_TEST(families_that_read_each_other)
{
    static const char first[] = CUT LAYER, later[] = "const v# f32 3,3\nk# = MatMul h1 v#\ny# = Relu k#\n";
    char text[TEXT];
    for (int order = 0; order < 2; order++) {
        snprintf(text, sizeof text, "in x f32 2,20\nconst one i64 1 1\n");
        add(text, first, 0, 4, 5);
        add(text, later, 0, 4, 5);
        add_text(text, order ? "y = Concat y0 y1 y2 y3 axis=1\nh = Concat h0 h1 h2 h3 axis=1\n"
                             : "h = Concat h0 h1 h2 h3 axis=1\ny = Concat y0 y1 y2 y3 axis=1\n");
        add_text(text, "out h\nout y\n");
        ir_text_check(text, "batch_branches",
                      "Reshape Transpose Transpose MatMul Add Gather MatMul Relu Transpose Reshape Transpose "
                      "Reshape");
    }
    /* One family reads the sum of another one, whose members are joined once more at the end. */
    snprintf(text, sizeof text, "in x f32 2,20\nconst one i64 1 1\n");
    add(text, first, 0, 4, 5);
    add_text(text, "p = Add h0 h1\nq = Add p h2\nk1 = Add q h3\n");
    add(text, "const u# f32 3,3\nk# = MatMul k1 u#\n", 4, 8, 0);
    add_text(text, "y = Concat k4 k5 k6 k7 axis=1\nh = Concat h0 h1 h2 h3 axis=1\nout h\nout y\n");
    ir_text_check(
        text, "batch_branches",
        "Reshape Transpose Transpose MatMul Add ReduceSum MatMul Transpose Reshape Transpose Reshape");
    snprintf(text, sizeof text, "in x f32 2,20\nconst one i64 1 1\n");
    add(text, CUT "const w# f32 5,20\nh# = MatMul x# w#\n", 0, 4, 5);
    add_text(text, "p0,p1,p2,p3 = Split h1 axis=1 num_outputs=4\n");
    add(text, "const v# f32 5,3\nk# = MatMul p# v#\n", 0, 4, 5);
    add_text(text, "y = Concat k0 k1 k2 k3 axis=1\nh = Concat h0 h1 h2 h3 axis=1\nout h\nout y\n");
    ir_text_check(
        text, "batch_branches",
        "Reshape Transpose MatMul Gather Reshape Transpose MatMul Transpose Reshape Transpose Reshape");
}
END_TEST

/* ---- drawn graphs ---- */

static unsigned seed;

static int draw(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (unsigned)n);
}

/* A level for all branches, of v0_#, v1_#.. [rows, 4]: '@' is the level, '~' the one before, '^' an earlier
 * one.
 */
static void add_level(char *text, int level, int branches)
{
    static const char *const levels[] = {
        "const w@_# f32 4,4\nv@_# = MatMul v~_# w@_#\n",
        "const w@_# f32 4,4\nconst b@_# f32 4\nv@_# = Gemm v^_# w@_# b@_# transB=1 alpha=0.5\n",
        "const b@_# f32 1,4\nv@_# = Gemm v~_# shared b@_# beta=2\n",
        "v@_# = Relu v~_#\n",
        "v@_# = Tanh v^_#\n",
        "v@_# = Add v~_# v^_#\n",
        "v@_# = Add v~_# v^_0\n",
        "v@_# = Mul shared1 v~_#\n",
        "const c@_# f32 -\nv@_# = Sub c@_# v~_#\n",
        "v@_# = Softmax v~_# axis=1\n",
        "const g@_# f32 4\nv@_# = LayerNormalization v~_# g@_# g@_#\n",
        "m@_# = ReduceMean v~_# one keepdims=1\nv@_# = Sub v^_# m@_#\n",
        "l@_#,r@_# = Split v~_# axis=1 num_outputs=2\nv@_# = Concat r@_# l@_# axis=1\n",
    };
    char filled[512];
    size_t n = 0;
    const int earlier = draw(level);
    for (const char *p = levels[draw(sizeof levels / sizeof *levels)]; *p; p++) {
        const int number = *p == '@' ? level : *p == '~' ? level - 1 : earlier;
        n += (size_t)(strchr("@~^", *p) ? snprintf(filled + n, sizeof filled - n, "%d", number)
                                        : snprintf(filled + n, sizeof filled - n, "%c", *p));
        ck_assert_uint_lt(n, sizeof filled);
    }
    add(text, filled, 0, branches, 4);
}

static void draw_graph(char *text)
{
    static const char *const rows[] = {"1", "2", "n"}, *const joins[] = {
                                                           "y = Concat l0 l1 l2 l3 axis=1\n",
                                                           "y = Concat l3 l0 l2 l1 axis=1\n",
                                                           "y = Mean l0 l1 l2 l3\n",
                                                           "a = Add l0 l1\nb = Add a l2\ny = Add b l3\n"};
    const int levels = 1 + draw(6);
    char last[64];
    snprintf(text, TEXT, "in x f32 %s,16\nconst one i64 1 1\nconst shared f32 4,4\nconst shared1 f32 4\n",
             rows[draw(3)]);
    add(text, "const s# i64 1 <\nconst e# i64 1 >\nv0_# = Slice x s# e# one\n", 0, 4, 4);
    for (int level = 1; level <= levels; level++)
        add_level(text, level, 4);
    snprintf(last, sizeof last, "l# = Neg v%d_#\n", levels);
    add(text, last, 0, 4, 4);
    add_text(text, joins[draw(4)]);
    add_text(text, draw(4) ? "out y\n" : "out y\nout l2\n");
}

START_TEST(drawn)
{
    char text[TEXT];
    int64_t batched = 0;
    for (seed = 0; seed < 150; seed++) {
        const unsigned kept = seed;
        draw_graph(text);
        ir_module *m = ir_text(text);
        batched += ir_text_pass(m, "batch_branches");
        ir_text_check(text, "batch_branches", ir_text_ops(m));
        ir_module_release(m);
        seed = kept;
    }
    ck_assert_int_gt(batched, 100);
}
END_TEST

START_TEST(other_types)
{
    check_text("in x f16 2,20\nconst one i64 1 1\n", CUT "const w# f16 5,3\ny# = Gemm x# w#\n", 4, 5,
               "y = Concat y0 y1 y2 y3 axis=1\nout y\n", "batch_branches",
               "Reshape Transpose MatMul Transpose Reshape");
    check_text("in x f64 2,20\nconst one i64 1 1\n",
               CUT "const w# f64 5,3\nconst b# f64 3\nh# = Gemm x# w# b#\ny# = Relu h#\n", 4, 5,
               "y = Concat y0 y1 y2 y3 axis=1\nout y\n", "",
               "Reshape Transpose MatMul Add Relu Transpose Reshape");
    check_text("in x f32 2,20\nconst one i64 1 1\n",
               CUT "const w# f32 5,3\nh# = MatMul x# w#\n"
                   "const z f32 1 0\ng# = Greater h# z\ny# = Where g# h# z\n",
               4, 5, "y = Concat y0 y1 y2 y3 axis=1\nout y\n", "batch_branches",
               "Reshape Transpose MatMul Greater Where Transpose Reshape");
}
END_TEST

/* What others read of it is taken out of the batch again, if it is little. */
START_TEST(members_that_others_read)
{
    static const char begin[] = "in x f32 2,20\nconst one i64 1 1\n", branch[] = CUT LAYER LAST;
    check_text(begin, branch, 4, 5,
               "y = Concat y0 y1 y2 y3 axis=1\n"
               "out h2\n"
               "out y\n",
               "batch_branches",
               "Reshape Transpose Transpose MatMul Add Gather Transpose MatMul Add Transpose Reshape");
    check_text(begin, branch, 4, 5,
               "y = Concat y0 y1 y2 y3 axis=1\n"
               "out y\n"
               "out h0\n"
               "out h3\n",
               "batch_branches", "Slice Gemm Gemm Slice Gemm Gemm Slice Gemm Gemm Slice Gemm Gemm Concat");
    /* The sum of one branch goes into all others. */
    check_text(begin, CUT LAYER "z# = Add h# h0\n", 4, 5, "y = Concat z0 z1 z2 z3 axis=1\nout y\n",
               "batch_branches", "Reshape Transpose Transpose MatMul Add Gather Add Transpose Reshape");
    check_text(begin, CUT LAYER "z# = Add h# h0\n", 4, 5,
               "z = Concat z0 z1 z2 z3 axis=1\n"
               "k = Relu z2\n"
               "out z\n"
               "out k\n"
               "out x1\n",
               "batch_branches",
               "Reshape Transpose Transpose MatMul Add Gather Add Gather Slice Transpose Reshape Relu");
}
END_TEST

START_TEST(what_stays)
{
    static const char begin[] = "in x f32 2,20\nin z f32 2,3\nconst one i64 1 1\n";
    check("2", 3, CUT LAYER "y# = Relu h#\n", "batch_branches",
          "Slice Gemm Relu Slice Gemm Relu Slice Gemm Relu Concat"); /* few */
    check("2", 4, CUT "y# = Relu x#\n", "batch_branches",
          "Slice Relu Slice Relu Slice Relu Slice Relu Concat"); /* little to do */
    check("2", 4, CUT "const w# f32 5,3\nconst b# i64 2 -1 #\nh# = MatMul x# w#\ny# = CumSum h# one\n",
          "batch_branches",
          "Slice MatMul CumSum Slice MatMul CumSum Slice MatMul CumSum Slice MatMul CumSum Concat");
    /* A branch twice. */
    check_text(begin, CUT LAYER, 4, 5, "y = Concat h0 h1 h2 h2 axis=1\nout y\nout h3\n", "batch_branches",
               "Slice Gemm Slice Gemm Slice Gemm Slice Gemm Concat");
    /* A chain through the branches. */
    check_text(begin, CUT "const w# f32 5,3\nh# = MatMul x# w#\n", 4, 5,
               "y0 = Add h0 z\ny1 = Add h1 y0\ny2 = Add h2 y1\ny3 = Add h3 y2\n"
               "y = Concat y0 y1 y2 y3 axis=1\nout y\n",
               "batch_branches",
               "Slice MatMul Slice MatMul Slice MatMul Slice MatMul Add Add Add Add Concat");
}
END_TEST

/* Weights are kept once: large ones that somebody else reads stay where they are, and those that take longer
 * to read than a launch. */
START_TEST(weights_that_stay)
{
    static const char stays[] = "Split MatMul MatMul MatMul MatMul Concat MatMul";
    check_text("in x f32 2,160\nin z f32 1,40\nx0,x1,x2,x3 = Split x axis=1 num_outputs=4\n",
               "const w# f32 40,40\nh# = MatMul x# w#\n", 4, 0,
               "y = Concat h0 h1 h2 h3 axis=1\nout y\nk = MatMul z w1\nout k\n", "batch_branches", stays);
    check_text("in x f32 2,20\nin z f32 1,5\nx0,x1,x2,x3 = Split x axis=1 num_outputs=4\n",
               "const w# f32 5,5\nh# = MatMul x# w#\n", 4, 0,
               "y = Concat h0 h1 h2 h3 axis=1\nout y\nk = MatMul z w1\nout k\n", "batch_branches",
               "Reshape Transpose MatMul Transpose Reshape MatMul");
    check_text("in x f32 1,4400\nx0,x1,x2,x3 = Split x axis=1 num_outputs=4\n",
               "const w# f32 1100,1000\nh# = MatMul x# w#\n", 4, 0, "y = Concat h0 h1 h2 h3 axis=1\nout y\n",
               "batch_branches", "Split MatMul MatMul MatMul MatMul Concat");
}
END_TEST

START_TEST(products_that_have_enough_to_do)
{
    static const char text[] = "in x f32 64,20\n"
                               "x0,x1,x2,x3 = Split x axis=1 num_outputs=4\n"
                               "const a f32 5,8\n"
                               "const b f32 5,8\n"
                               "const c f32 5,8\n"
                               "const d f32 5,8\n"
                               "p = MatMul x0 a\n"
                               "q = MatMul x1 b\n"
                               "r = MatMul x2 c\n"
                               "s = MatMul x3 d\n"
                               "y = Concat p q r s axis=1\n"
                               "out y\n";
    for (int less = 0; less < 2; less++) {
        ir_module *m = ir_text(text);
        grt_target target = ir_text_target();
        grt_device_traits traits = *target.traits;
        traits.lone_product = 64 * 5 * 8 + less;
        target.traits = &traits;
        pass_context context = {.module = m, .target = &target, .level = 2};
        ck_assert_int_eq(pass_batch_branches(&context), GRT_OK);
        ck_assert_int_eq(context.changed, less);
        ir_module_release(m);
    }
}
END_TEST

/* Names stay short; and outputs of the model keep theirs. */
START_TEST(names)
{
    char text[TEXT] = "in x f32 2,20\nconst one i64 1 1\n";
    add(text, CUT LAYER, 0, 4, 5);
    add_text(text, "y = Concat h0 h1 h2 h3 axis=1\nout h1\nout y\n");
    ir_module *m = ir_text(text);
    ck_assert_int_eq(ir_text_pass(m, "batch_branches"), 1);
    ck_assert_str_eq(ir_text_node(m, "MatMul", 0)->desc.name, "h0+3 more");
    ck_assert_str_eq(ir_text_node(m, "Gather", 0)->out[0]->name, "h1");
    ck_assert_str_eq(m->main->outputs[1].value->name, "y");
    ck_assert_str_eq(m->main->outputs[1].value->producer->desc.op, "Reshape");
    ir_module_release(m);
}
END_TEST

static ir_value *make(ir_graph *graph, const char *op, ir_value *a, ir_value *b)
{
    return ir_node_out(ir_node_create(graph, NULL, "", op, op, b ? 2 : 1, (ir_value *[]){a, b}, 1));
}

/* Branches in a body, on ranges of a value outside it and of one inside. */
START_TEST(in_bodies)
{
    enum { N = 4 };
    ir_module *m = ir_text("in x f32 2,20\n"
                           "in c bool -\n"
                           "const w f32 5,3\n"
                           "y = Identity x\n"
                           "out y\n");
    ir_value *choice = m->main->inputs[1];
    ir_node *branch = ir_node_create(m->main, NULL, "", "If", "if", 1, &choice, 1);
    for (int inside = 0; inside < 2; inside++) {
        ir_graph *body = ir_graph_create(m, branch, inside ? "then_branch" : "else_branch");
        ir_attr_set(branch, (grt_attr){.name = body->name, .kind = GRT_ATTR_GRAPH, .graph = body});
        ir_value *in = inside ? make(body, "Relu", m->main->inputs[0], NULL) : m->main->inputs[0], *joined[N];
        ir_node *split = ir_node_create(body, NULL, "", "Split", "split", 1, &in, N);
        ir_attr_set_int(split, "axis", 1);
        ir_attr_set_int(split, "num_outputs", N);
        for (int i = 0; i < N; i++) {
            static float data[N][15];
            const grt_tensor w = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {5, 3}, .data = data[i]};
            joined[i] = make(body, "MatMul", split->out[i],
                             ir_constant(body, NULL, grt_arena_memdup(m->arena, &w, sizeof w)));
        }
        ir_node *concat = ir_node_create(body, NULL, "", "Concat", "concat", N, joined, 1);
        ir_attr_set_int(concat, "axis", 1);
        ir_graph_add_output(body, concat->out[0]);
    }
    ir_graph_add_output(m->main, branch->out[0]);
    ck_assert_msg(ir_infer(m) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(ir_text_pass(m, "batch_branches"), 2);
    for (size_t i = 0; i < branch->desc.n_attrs; i++) {
        const ir_graph *body = branch->desc.attrs[i].graph;
        ck_assert_int_eq(body->n_nodes, 5 + (int)i);
        ck_assert_str_eq(body->outputs[0].value->producer->desc.op, "Reshape");
    }
    ir_module_release(m);
}
END_TEST

Suite *suite_test_pass_batch_branches(void);
Suite *suite_test_pass_batch_branches(void)
{
    Suite *suite = suite_create("test_pass_batch_branches");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, as_exported);
    tcase_add_test(tests, what_is_between);
    tcase_add_test(tests, scaled_products);
    tcase_add_test(tests, residuals);
    tcase_add_test(tests, other_ways_to_cut);
    tcase_add_test(tests, other_ways_to_join);
    tcase_add_test(tests, added_up);
    tcase_add_test(tests, one_that_differs);
    tcase_add_test(tests, what_branches_share);
    tcase_add_test(tests, more_dims);
    tcase_add_test(tests, cut_and_joined_in_branches);
    tcase_add_test(tests, families_that_read_each_other);
    tcase_add_test(tests, drawn);
    tcase_add_test(tests, other_types);
    tcase_add_test(tests, members_that_others_read);
    tcase_add_test(tests, what_stays);
    tcase_add_test(tests, weights_that_stay);
    tcase_add_test(tests, products_that_have_enough_to_do);
    tcase_add_test(tests, names);
    tcase_add_test(tests, in_bodies);
    suite_add_tcase(suite, tests);
    return suite;
}

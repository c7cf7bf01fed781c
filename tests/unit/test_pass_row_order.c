/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of rows get the order of their first two dims in which fewest elements are moved. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

/* Batch in front outside, sequence in front inside, as of attention whose batch is a symbol: nothing is left
 * to move. A softmax over the middle dim stands for what needs one order. */
START_TEST(a_region_is_turned)
{
    ir_text_check("in x f32 b,3,8\nconst w f32 8,8\nconst n f32 8\n"
                  "a = Transpose x perm=1,0,2\np = MatMul a w\nr = Relu p\n"
                  "t = Transpose r perm=1,0,2\ns = Softmax t axis=1\nu = Transpose s perm=1,0,2\n"
                  "v = Add u a\nl = LayerNormalization v n axis=-1\nq = MatMul l w\n"
                  "y = Transpose q perm=1,0,2\nout y\n",
                  "row_order",
                  "Transpose MatMul MatMul Relu Relu Transpose Softmax Transpose Add Add LayerNormalization "
                  "LayerNormalization MatMul MatMul Transpose");
    ir_text_check("in x f32 b,3,8\nconst w f32 8,8\nconst n f32 8\n"
                  "a = Transpose x perm=1,0,2\np = MatMul a w\nr = Relu p\n"
                  "t = Transpose r perm=1,0,2\ns = Softmax t axis=1\nu = Transpose s perm=1,0,2\n"
                  "v = Add u a\nl = LayerNormalization v n axis=-1\nq = MatMul l w\n"
                  "y = Transpose q perm=1,0,2\nout y\n",
                  "", "graphrt::MatMul Softmax Add LayerNormalization graphrt::MatMul");
}
END_TEST

/* Where the sequence is in front outside too, one Transpose is left at each end, however many layers are
 * between. */
START_TEST(the_ends_are_moved)
{
    grt_text text = {0}, expected = {0};
    enum { LAYERS = 3 };
    grt_text_add(&text, "in x0 f32 4,b,8\nconst w f32 8,8\n");
    grt_text_add(&expected, "Transpose");
    for (int i = 0; i < LAYERS; i++) {
        grt_text_add(&text,
                     "p%d = MatMul x%d w\nt%d = Transpose p%d perm=1,0,2\ns%d = Softmax t%d axis=1\n"
                     "u%d = Transpose s%d perm=1,0,2\nx%d = Add u%d x%d\n",
                     i, i, i, i, i, i, i, i, i + 1, i, i);
        grt_text_add(&expected, " MatMul Softmax Add");
    }
    grt_text_add(&text, "out x%d\n", LAYERS);
    grt_text_add(&expected, " Transpose");
    ir_module *module = ir_text(grt_text_get(&text));
    ir_text_pass(module, "row_order");
    ir_text_pass(module, "dce");
    ck_assert_str_eq(ir_text_ops(module), grt_text_get(&expected));
    ir_module_release(module);
    ir_text_check(grt_text_get(&text), "row_order", NULL);
    grt_text_release(&text);
    grt_text_release(&expected);
}
END_TEST

/* What is broadcast to rows is turned with them: positions, rows of a batch, and both at once. */
START_TEST(beside_rows)
{
    static const char *const beside[] = {"in z f32 4,1,8",    "in z f32 1,3,8",    "in z f32 3,8",
                                         "in z f32 3,1",      "in z f32 4,1,1",    "const z f32 1,1,8",
                                         "const z f32 8",     "const z f32 -",     "in z f32 4,3,1",
                                         "const z f32 4,3,8", "const z f32 4,1,8", "const z f32 1,8"};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        char text[500];
        snprintf(
            text, sizeof text,
            "in x f32 3,4,8\n%s\nconst w f32 8,8\na = Transpose x perm=1,0,2\np = MatMul a w\nv = Add p z\n"
            "m = Mul z v\nq = MatMul m w\ny = Transpose q perm=1,0,2\nout y\n",
            beside[i]);
        ir_text_check(text, "row_order", NULL);
        ir_text_check(text, "", NULL);
        ir_module *module = ir_text(text);
        ck_assert_int_gt(ir_text_pass(module, "row_order"), 0);
        ir_module_release(module);
    }
}
END_TEST

/* Fewer elements of a row are moved in front of a product that widens it. */
START_TEST(the_narrow_side)
{
    ir_text_check("in x f32 3,4,8\nconst w f32 8,24\np = MatMul x w\nt = Transpose p perm=1,0,2\n"
                  "y = Softmax t axis=1\nout y\n",
                  "row_order", "Transpose MatMul MatMul Transpose Softmax");
}
END_TEST

/* Nothing is gained: as many elements are moved either way, a dim is 1, rows are read elsewhere, a product is
 * by a matrix for each of the first dim, the norm is over two dims. */
START_TEST(near_misses)
{
    static const char *const texts[] = {
        "in x f32 3,4,8\nconst w f32 8,8\np = MatMul x w\nt = Transpose p perm=1,0,2\ny = Softmax t "
        "axis=1\nout y\n",
        "in x f32 1,4,8\nconst w f32 8,8\na = Transpose x perm=1,0,2\np = MatMul a w\n"
        "t = Transpose p perm=1,0,2\ny = Softmax t axis=1\nout y\n",
        "in x f32 3,4,8\nconst w f32 8,8\na = Transpose x perm=1,0,2\np = MatMul a w\nz = Softmax a "
        "axis=1\nout p\nout z\n",
        "in x f32 3,4,8\nconst w f32 4,8,8\na = Transpose x perm=1,0,2\np = MatMul a w\n"
        "y = Transpose p perm=1,0,2\nout y\n",
        "in x f32 3,4,8\nconst n f32 3,8\na = Transpose x perm=1,0,2\np = LayerNormalization a n axis=1\n"
        "y = Transpose p perm=1,0,2\nout y\n",
        "in x f32 3,4,8\na = Transpose x perm=1,2,0\np = Relu a\ny = Transpose p perm=2,0,1\nout y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_module *module = ir_text(texts[i]);
        ck_assert_msg(ir_text_pass(module, "row_order") == 0, "%s", texts[i]);
        ir_module_release(module);
        ir_text_check(texts[i], "row_order", NULL);
    }
}
END_TEST

/* A Transpose from a region to itself stays one, whichever order the region has. */
START_TEST(a_region_beside_itself_turned)
{
    static const char *const texts[] = {
        "in x f32 4,4,8\na = Transpose x perm=1,0,2\nr = Relu a\nt = Transpose r perm=1,0,2\ns = Add r t\n"
        "u = Transpose s perm=1,0,2\ny = Neg u\nout y\nout s\n",
        "in x f32 4,4,8\nconst w f32 8,8\nr = Relu x\nt = Transpose r perm=1,0,2\np = MatMul t w\n"
        "y = Transpose p perm=1,0,2\nz = Add y r\nout z\nout t\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_text_check(texts[i], "row_order", NULL);
        ir_text_check(texts[i], "", NULL);
    }
}
END_TEST

static int count_moves(const ir_module *module)
{
    int n = 0;
    for (const char *at = ir_text_ops(module); (at = strstr(at, "Transpose")); at++)
        n++;
    return n;
}

/* Transposes left by the passes. */
static int moves_behind(const char *text, const char *pass)
{
    ir_module *module = ir_text(text);
    ir_text_pass(module, "dce");
    ir_text_pass(module, pass);
    ir_text_pass(module, "dce");
    const int n = count_moves(module);
    ir_module_release(module);
    return n;
}

/* A Transpose between two regions vanishes if one of them is turned, and is there again if both are. */
START_TEST(neighbours_share_a_move)
{
    static const char *const texts[] = {
        "in x f32 3,4,1\nin z f32 3,8\nconst w f32 1,8\np = MatMul x w\nt = Transpose p perm=1,0,2\n"
        "v = Mul t z\ny = Transpose v perm=1,0,2\nout v\nout y\n",
        "in x f32 3,4,8\nconst w f32 8,8\na = Transpose x perm=1,0,2\np = MatMul a w\n"
        "b = Transpose p perm=1,0,2\nq = MatMul b w\nc = Transpose q perm=1,0,2\nr = MatMul c w\n"
        "y = Transpose r perm=1,0,2\nout y\n",
        "in x f32 3,4,8\nconst w f32 8,8\np = MatMul x w\nt = Transpose p perm=1,0,2\nr = Relu t\n"
        "s = Softmax t axis=1\nu = Transpose r perm=1,0,2\nq = MatMul u w\ny = Transpose q perm=1,0,2\n"
        "out y\nout s\n"};
    static const int left[] = {1, 0, 1};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_text_check(texts[i], "row_order", NULL);
        ck_assert_int_eq(moves_behind(texts[i], "row_order"), left[i]);
    }
}
END_TEST

/* A graph drawn at random: rows in either order, what treats them alike and what does not, what is broadcast
 * to them, and Transposes anywhere. swapped: values whose order is the other one. */
static void draw_graph(uint32_t state, const char *second, grt_text *text)
{
    enum { NODES = 14, OUTPUTS = 2 };
    bool swapped[NODES + 1] = {false};
    grt_text_add(text, "in v0 f32 3,%s,8\nin a f32 3,1,8\nin b f32 %s,8\nin c f32 1,3,8\nin d f32 %s,1,1\n",
                 second, second, second);
    grt_text_add(text, "const w f32 8,8\nconst n f32 8\n");
    for (int i = 1; i <= NODES; i++) {
        state = state * 1664525u + 1013904223u;
        const int from = i - 1 - (int)((state >> 8) % (uint32_t)(i < 4 ? i : 4)),
                  what = (int)((state >> 16) % 8);
        int other = i - 1;
        while (swapped[other] != swapped[from])
            other--;
        swapped[i] = swapped[from] != (what < 2);
        if (what < 2)
            grt_text_add(text, "v%d = Transpose v%d perm=1,0,2\n", i, from);
        else if (what == 2)
            grt_text_add(text, "v%d = MatMul v%d w\n", i, from);
        else if (what == 3)
            grt_text_add(text, "v%d = LayerNormalization v%d n axis=-1\n", i, from);
        else if (what == 4)
            grt_text_add(text, "v%d = Softmax v%d axis=1\n", i, from);
        else if (what == 5)
            grt_text_add(text, "v%d = Add v%d v%d\n", i, from, other);
        else if (what == 6)
            grt_text_add(text, "v%d = Mul %s v%d\n", i, swapped[from] ? "c" : "b", from);
        else
            grt_text_add(text, "v%d = Sub v%d %s\n", i, from, swapped[from] ? "d" : "a");
    }
    for (int i = NODES - OUTPUTS; i <= NODES; i++)
        grt_text_add(text, "out v%d\n", i);
}

/* A width that a model only claims: a move at each end, of as many elements as can be counted. */
START_TEST(widths_without_a_sum)
{
    ir_module *m = ir_text("in x f32 2,4,9223372036854775807\ny = Exp x\nout y\n");
    ck_assert_int_eq(ir_text_pass(m, "row_order"), 0);
    ir_module_release(m);
}
END_TEST

START_TEST(drawn_graphs)
{
    static const char *const second[] = {"4", "b", "3", "1"};
    enum { GRAPHS = 60 };
    int64_t changed = 0;
    for (uint32_t seed = 0; seed < GRAPHS; seed++)
        for (size_t k = 0; k < sizeof second / sizeof *second; k++) {
            grt_text text = {0};
            draw_graph(seed * 97 + (uint32_t)k, second[k], &text);
            ir_text_check(grt_text_get(&text), "row_order", NULL);
            ir_text_check(grt_text_get(&text), "", NULL);
            ir_module *module = ir_text(grt_text_get(&text));
            changed += ir_text_pass(module, "row_order");
            ir_module_release(module);
            ck_assert_int_le(moves_behind(grt_text_get(&text), "row_order"),
                             moves_behind(grt_text_get(&text), "dce"));
            grt_text_release(&text);
        }
    ck_assert_int_gt(changed, GRAPHS);
}
END_TEST

UNIT_SUITE(test_pass_row_order, NULL, NULL, a_region_is_turned, the_ends_are_moved, beside_rows,
           the_narrow_side, near_misses, a_region_beside_itself_turned, neighbours_share_a_move,
           widths_without_a_sum, drawn_graphs)

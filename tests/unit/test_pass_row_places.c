/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of rows pass what works row by row, where that makes fewer of them. */
#include "graph/passes/row_tables.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

/* A block of windows of 2 x 2 pixels in an image of 4 x 6, which are shifted or not; a softmax over the
 * pixels of a window stands for attention. Its input is x<i>, its result x<i + 1>. */
static void add_block(grt_text *text, int i, bool shifted, bool norm_first)
{
    const char *in = norm_first ? "n" : "x";
    if (norm_first)
        grt_text_add(text, "n%d = LayerNormalization x%d s axis=-1\n", i, i);
    if (shifted)
        grt_text_add(text, "r%d = graphrt::Roll %s%d shifts=0,1,1,0\n", i, in, i);
    grt_text_add(text,
                 "c%d = Reshape %s%d cut\nt%d = Transpose c%d perm=0,1,3,2,4,5\nw%d = Reshape t%d windows\n",
                 i, shifted ? "r" : in, i, i, i, i, i);
    grt_text_add(text, "q%d = MatMul w%d m\na%d = Softmax q%d axis=1\np%d = MatMul a%d m\n", i, i, i, i, i,
                 i);
    grt_text_add(text,
                 "d%d = Reshape p%d back\nu%d = Transpose d%d perm=0,1,3,2,4,5\ne%d = Reshape u%d image\n", i,
                 i, i, i, i, i);
    if (shifted)
        grt_text_add(text, "f%d = graphrt::Roll e%d shifts=0,3,5,0\n", i, i);
    if (!norm_first)
        grt_text_add(text, "n%d = LayerNormalization %s%d s axis=-1\n", i, shifted ? "f" : "e", i);
    grt_text_add(text, "y%d = Add x%d %s%d\n", i, i, norm_first ? shifted ? "f" : "e" : "n", i);
    grt_text_add(text, "l%d = LayerNormalization y%d s axis=-1\ng%d = MatMul l%d wide\nh%d = Relu g%d\n", i,
                 i, i, i, i, i);
    grt_text_add(text, "o%d = MatMul h%d narrow\nx%d = Add y%d o%d\n", i, i, i + 1, i, i);
}

/* shifted: of each block, '0' or '1'. */
static void add_blocks(grt_text *text, const char *batch, const char *shifted, bool norm_first)
{
    grt_text_add(text, "in x0 f32 %s,4,6,16\nconst s f32 16\nconst m f32 16,16\nconst wide f32 16,64\n",
                 batch);
    grt_text_add(text,
                 "const narrow f32 64,16\nconst cut i64 6 -1 2 2 3 2 16\nconst windows i64 3 -1 4 16\n");
    grt_text_add(text, "const back i64 6 -1 2 3 2 2 16\nconst image i64 4 -1 4 6 16\n");
    for (int i = 0; shifted[i]; i++)
        add_block(text, i, shifted[i] == '1', norm_first);
    grt_text_add(text, "z = Softmax x%zu axis=1\nout z\n", strlen(shifted));
}

static int count_of(const ir_module *module, const char *op)
{
    int n = 0;
    for (const char *at = ir_text_ops(module); (at = strstr(at, op)); at++)
        n++;
    return n;
}

/* Steps that move rows, behind the pass. */
static int moves_of(const char *text, const char *pass)
{
    ir_module *module = ir_text(text);
    ir_text_pass(module, "dce");
    ir_text_pass(module, pass);
    ir_text_pass(module, "dce");
    const int n =
        count_of(module, "Transpose") + count_of(module, "graphrt::Roll") + count_of(module, "Gather");
    ir_module_release(module);
    return n;
}

/* One move in front of each block that has other windows than the one before, and one behind the last. */
START_TEST(blocks_of_windows)
{
    static const struct {
        const char *batch, *shifted;
        int before, after;
    } cases[] = {{"1", "0", 2, 2},     {"1", "1", 4, 2},      {"1", "01", 6, 3}, {"b", "01", 6, 3},
                 {"3", "0101", 12, 5}, {"3", "0000", 8, 2},   {"b", "11", 8, 2}, {"2", "10", 6, 3},
                 {"b", "0110", 12, 4}, {"2", "101010", 18, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int norm_first = 0; norm_first < 2; norm_first++) {
            grt_text text = {0};
            add_blocks(&text, cases[i].batch, cases[i].shifted, norm_first);
            ir_text_check(grt_text_get(&text), "row_places", NULL);
            ir_text_check(grt_text_get(&text), "", NULL);
            ck_assert_int_eq(moves_of(grt_text_get(&text), "dce"), cases[i].before);
            ck_assert_msg(moves_of(grt_text_get(&text), "row_places") == cases[i].after,
                          "batch %s, blocks %s: %d moves", cases[i].batch, cases[i].shifted,
                          moves_of(grt_text_get(&text), "row_places"));
            grt_text_release(&text);
        }
}
END_TEST

/* A roll in front of a Transpose, without anything that works row by row, is one move with it. */
START_TEST(moves_beside_each_other)
{
    static const char text[] =
        "in x f32 b,4,6,16\nconst cut i64 6 -1 2 2 3 2 16\nconst windows i64 3 -1 4 16\n"
        "s = Softmax x axis=1\nr = graphrt::Roll s shifts=0,1,1,0\nc = Reshape r cut\n"
        "t = Transpose c perm=0,1,3,2,4,5\nw = Reshape t windows\ny = Softmax w axis=1\nout y\n";
    ir_text_check(text, "row_places", NULL);
    ck_assert_int_eq(moves_of(text, "dce"), 2);
    ck_assert_int_eq(moves_of(text, "row_places"), 1);
}
END_TEST

/* Nothing is gained, or nothing may change: one move either way, a move whose result is read by the caller,
 * rows of a few bytes in an order that no Transpose makes, a last dim that moves, and rows that are not all
 * alike. */
START_TEST(nothing_to_gain)
{
    static const char *const texts[] = {
        "in x f32 b,4,6,16\nconst w f32 16,16\np = MatMul x w\nt = Transpose p perm=0,2,1,3\n"
        "y = Softmax t axis=1\nout y\n",
        "in x f32 2,4,6,16\na = Relu x\nt = Transpose a perm=0,2,1,3\ny = Softmax t axis=1\nout t\nout y\n",
        "in x f32 2,4,6,8\nr = graphrt::Roll x shifts=0,1,1,0\nt = Transpose r perm=0,2,1,3\n"
        "y = Softmax t axis=1\nout y\n",
        "in x f32 2,4,4,4\nt = Transpose x perm=0,2,3,1\nr = Relu t\nu = Transpose r perm=0,3,1,2\n"
        "y = Softmax u axis=1\nout y\n",
        "in x f32 2,4,6,16\nconst z f32 4,6,16\nconst k i64 4 2 4 6 16\nt = Transpose x perm=0,2,1,3\nr = "
        "Reshape t k\n"
        "a = Add r z\nu = Transpose a perm=0,2,1,3\ny = Softmax u axis=1\nout y\n",
        "in x f32 2,h,6,16\nt = Transpose x perm=0,2,1,3\nr = Relu t\nu = Transpose r perm=0,2,1,3\n"
        "y = Softmax u axis=1\nout y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ir_module *module = ir_text(texts[i]);
        ck_assert_msg(ir_text_pass(module, "row_places") == 0, "%s", texts[i]);
        ir_module_release(module);
        ir_text_check(texts[i], "row_places", NULL);
    }
}
END_TEST

/* Rows that a model only claims: as many as there is room for, and more. */
START_TEST(sizes_that_are_claimed)
{
    static const char *const dims[] = {"2,1048576,4,16", "3000000000,3000000000,2,16", "4,0,6,16",
                                       "2,2,2,9223372036854775807", "1,1048576,1048576,16"};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "in x f32 %s\nr = Relu x\nt = Transpose r perm=1,0,2,3\na = Exp t\n"
                 "u = Transpose a perm=0,2,1,3\nb = Abs u\nv = Transpose b perm=1,0,2,3\ny = Neg v\nout y\n",
                 dims[i]);
        ir_module *module = ir_text(text);
        ir_text_pass(module, "row_places");
        ir_module_release(module);
    }
}
END_TEST

static void draw_move(grt_text *text, uint32_t state, int i, int from)
{
    switch ((state >> 20) % 4) {
    case 0:
        grt_text_add(text, "v%d = graphrt::Roll v%d shifts=0,%u,%u,0\n", i, from, (state >> 24) % 4,
                     (state >> 26) % 6);
        return;
    case 1:
        grt_text_add(text, "c%d = Transpose v%d perm=0,2,1,3\n", i, from);
        break;
    default:
        grt_text_add(text, "b%d = Reshape v%d %s\nc%d = Transpose b%d perm=0,1,3,2,4,5\n", i, from,
                     (state >> 21) & 1 ? "cut" : "back", i, i);
        break;
    }
    grt_text_add(text, "v%d = Reshape c%d image\n", i, i);
}

/* A graph drawn at random: images whose pixels move, what works pixel by pixel, and what does not. */
static void draw_graph_of_rows(uint32_t state, const char *batch, grt_text *text)
{
    enum { NODES = 16, OUTPUTS = 2 };
    grt_text_add(text, "in v0 f32 %s,4,6,16\nin z f32 4,6,1\nconst w f32 16,16\nconst n f32 16\n", batch);
    grt_text_add(text, "const cut i64 6 -1 2 2 3 2 16\nconst back i64 6 -1 2 3 2 2 16\n");
    grt_text_add(text, "const image i64 4 -1 4 6 16\nconst flat i64 2 -1 16\n");
    for (int i = 1; i <= NODES; i++) {
        state = state * 1664525u + 1013904223u;
        const int from = i - 1 - (int)((state >> 8) % (uint32_t)(i < 4 ? i : 4)),
                  other = (int)((state >> 13) % (uint32_t)i), what = (int)((state >> 16) % 12);
        static const char *const singles[][2] = {{"MatMul", "w"},        {"LayerNormalization", "n axis=-1"},
                                                 {"Softmax", "axis=-1"}, {"Softmax", "axis=1"},
                                                 {"Mul", "n"},           {"Add", "z"}};
        if (what < 4) {
            draw_move(text, state, i, from);
        } else if (what < 10) {
            grt_text_add(text, "v%d = %s v%d %s\n", i, singles[what - 4][0], from, singles[what - 4][1]);
        } else {
            grt_text_add(text, "v%d = Add v%d v%d\n", i, from, other);
        }
    }
    for (int i = NODES - OUTPUTS; i <= NODES; i++)
        grt_text_add(text, "out v%d\n", i);
}

START_TEST(drawn_graphs_of_rows)
{
    static const char *const batches[] = {"1", "b", "2"};
    enum { GRAPHS = 80 };
    int64_t changed = 0;
    for (uint32_t seed = 0; seed < GRAPHS; seed++)
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
            grt_text text = {0};
            draw_graph_of_rows(seed * 89 + (uint32_t)k, batches[k], &text);
            ir_text_check(grt_text_get(&text), "row_places", NULL);
            ir_text_check(grt_text_get(&text), "", NULL);
            ir_module *module = ir_text(grt_text_get(&text));
            changed += ir_text_pass(module, "row_places");
            ir_module_release(module);
            ck_assert_msg(moves_of(grt_text_get(&text), "row_places") <= moves_of(grt_text_get(&text), "dce"),
                          "%s", grt_text_get(&text));
            grt_text_release(&text);
        }
    ck_assert_int_gt(changed, GRAPHS);
}
END_TEST

/* Equal permutations have equal numbers, whatever nodes make them and of however many images. */
START_TEST(tables_of_rows)
{
    ir_module *m = ir_text("in x f32 4,4,6,16\nin b f32 b,4,6,16\na = Transpose x perm=0,2,1,3\n"
                           "c = Transpose a perm=0,2,1,3\nd = Transpose b perm=0,2,1,3\n"
                           "r = graphrt::Roll b shifts=0,1,0,0\ns = graphrt::Roll b shifts=0,3,0,0\n"
                           "t = graphrt::Roll b shifts=0,2,0,0\nk = Transpose x perm=1,0,2,3\n"
                           "l = Transpose x perm=0,1,3,2\nn = Neg x\n"
                           "out c\nout d\nout r\nout s\nout t\nout k\nout l\nout n\n");
    grt_arena *arena = grt_arena_create();
    row_tables *t = GRT_ARENA_NEW(arena, row_tables);
    ck_assert(arena && t);
    row_tables_start(t, arena, &m->budget);
    const int32_t a = row_tables_of_node(t, ir_text_node(m, "Transpose", 0)),
                  c = row_tables_of_node(t, ir_text_node(m, "Transpose", 1)),
                  one = row_tables_of_node(t, ir_text_node(m, "Roll", 0)),
                  three = row_tables_of_node(t, ir_text_node(m, "Roll", 1)),
                  two = row_tables_of_node(t, ir_text_node(m, "Roll", 2));
    ck_assert_int_gt(a, ROWS_AS_THEY_ARE);
    ck_assert_int_eq(t->all[a].size, 24);
    ck_assert(t->all[a].loops && t->all[a].loops->n == 2 && !t->all[one].loops);
    ck_assert_int_eq(row_tables_inverse(t, a), c);
    ck_assert_int_eq(row_tables_joined(t, a, c), ROWS_AS_THEY_ARE);
    ck_assert_int_eq(row_tables_of_node(t, ir_text_node(m, "Transpose", 2)), a);
    ck_assert_int_eq(row_tables_inverse(t, one), three);
    ck_assert_int_eq(row_tables_joined(t, one, one), two);
    ck_assert_int_eq(row_tables_joined(t, row_tables_joined(t, a, one), row_tables_inverse(t, one)), a);
    ck_assert_int_ne(row_tables_joined(t, a, one), row_tables_joined(t, one, a));
    ck_assert_int_eq(t->all[row_tables_of_node(t, ir_text_node(m, "Transpose", 3))].size, 96);
    ck_assert_int_eq(row_tables_of_node(t, ir_text_node(m, "Transpose", 4)), ROWS_UNKNOWN);
    ck_assert_int_eq(row_tables_of_node(t, ir_text_node(m, "Neg", 0)), ROWS_UNKNOWN);
    ck_assert_int_eq(row_tables_joined(t, ROWS_UNKNOWN, a), ROWS_UNKNOWN);
    grt_arena_release(arena);
    ir_module_release(m);
}
END_TEST

UNIT_SUITE(test_pass_row_places, NULL, NULL, tables_of_rows, blocks_of_windows, moves_beside_each_other,
           nothing_to_gain, sizes_that_are_claimed, drawn_graphs_of_rows)

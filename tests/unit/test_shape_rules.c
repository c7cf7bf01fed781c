/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of data movement on symbolic dims, and upgrades of old forms. */
#include "graph/ir/ir.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A rule's surroundings: inputs are types made by the test. */
typedef struct bench {
    grt_arena *arena;
    grt_dims *dims;
    grt_attr attrs[8];
    grt_op_desc desc;
    ir_type in[8], out[8];
    int32_t n_in;
} bench;

static void start(bench *b)
{
    *b = (bench){.arena = grt_arena_create(), .dims = grt_dims_create()};
}

static void stop(bench *b)
{
    grt_arena_release(b->arena);
    grt_dims_release(b->dims);
}

static void op(bench *b, const char *name)
{
    b->desc = (grt_op_desc){.domain = "", .op = name, .name = "n", .attrs = b->attrs};
    b->n_in = 0;
}

static void attr_int(bench *b, const char *name, int64_t value)
{
    b->attrs[b->desc.n_attrs++] = (grt_attr){.name = name, .kind = GRT_ATTR_INT, .i = value};
}

/* Dims are names, numbers, or handles that came out of a rule; written as text: "batch", "-batch", "3". */
static grt_dim dim_of(bench *b, const char *text)
{
    if (text[0] == '-' && text[1] >= 'a')
        return grt_dim_mulc(b->dims, grt_dim_symbol(b->dims, text + 1), -1);
    return text[0] == '-' || (text[0] >= '0' && text[0] <= '9') ? grt_dim_const(b->dims, atoll(text))
                                                                : grt_dim_symbol(b->dims, text);
}

static grt_dim *dims_of(bench *b, int32_t n, const char *const *text)
{
    grt_dim *dims = GRT_ARENA_ARRAY(b->arena, grt_dim, n);
    for (int32_t k = 0; k < n; k++)
        dims[k] = dim_of(b, text[k]);
    return dims;
}

#define LIST(...)  ((const char *const[]){__VA_ARGS__})
#define COUNT(...) ((int32_t)(sizeof LIST(__VA_ARGS__) / sizeof(const char *)))
/* A float tensor of these dims; a list of int64 with this content. */
#define TENSOR(b, ...) add_tensor(b, COUNT(__VA_ARGS__), LIST(__VA_ARGS__))
#define INTS(b, ...)   add_ints(b, COUNT(__VA_ARGS__), LIST(__VA_ARGS__))

static void add_tensor(bench *b, int32_t rank, const char *const *text)
{
    b->in[b->n_in++] = (ir_type){.dtype = GRT_DTYPE_FLOAT, .rank = rank, .dims = dims_of(b, rank, text)};
}

static void add_ints(bench *b, int32_t n, const char *const *text)
{
    grt_dim *length = GRT_ARENA_ARRAY(b->arena, grt_dim, 1);
    length[0] = grt_dim_const(b->dims, n);
    b->in[b->n_in++] = (ir_type){
        .dtype = GRT_DTYPE_INT64, .rank = 1, .dims = length, .elems = dims_of(b, n, text), .n_elems = n};
}

static grt_status infer_now(bench *b, int32_t n_out)
{
    const ir_type *in[8];
    for (int32_t i = 0; i < b->n_in; i++)
        in[i] = &b->in[i];
    memset(b->out, 0, sizeof b->out);
    infer inf = {&b->desc, b->dims, b->arena, b->n_in, n_out, in, b->out};
    const op_row *row = op_find("", b->desc.op);
    ck_assert_ptr_nonnull(row);
    return op_infer_types(row, &inf);
}

/* "batchx3": dims of output i, or its content after '='. */
static const char *shown(bench *b, int32_t i)
{
    grt_text text = {0};
    const ir_type *t = &b->out[i];
    if (t->rank < 0)
        grt_text_add(&text, "?");
    for (int32_t k = 0; k < t->rank; k++) {
        grt_text_add(&text, k ? "x" : "");
        grt_dim_print(b->dims, t->dims[k], &text);
    }
    for (int64_t k = 0; t->elems && k < t->n_elems; k++) {
        grt_text_add(&text, k ? "," : "=");
        grt_dim_print(b->dims, t->elems[k], &text);
    }
    const char *kept = grt_arena_strdup(b->arena, grt_text_get(&text));
    grt_text_release(&text);
    return kept;
}

#define EXPECT(b, text)                                                   \
    do {                                                                  \
        ck_assert_msg(infer_now(b, 1) == GRT_OK, "%s", grt_last_error()); \
        ck_assert_str_eq(shown(b, 0), text);                              \
    } while (0)
#define REFUSED(b, part)                                                       \
    do {                                                                       \
        ck_assert_int_eq(infer_now(b, 1), GRT_STATUS_INVALID_MODEL);           \
        ck_assert_msg(strstr(grt_last_error(), part), "%s", grt_last_error()); \
    } while (0)

START_TEST(shape_chains_fold)
{
    bench b;
    start(&b);
    op(&b, "Shape"), TENSOR(&b, "batch", "seq", "64");
    EXPECT(&b, "3=batch,seq,64");
    ir_type shape = b.out[0];
    op(&b, "Gather"), b.in[b.n_in++] = shape, INTS(&b, "1");
    EXPECT(&b, "1=seq");
    ir_type seq = b.out[0];
    op(&b, "Slice"), b.in[b.n_in++] = shape, INTS(&b, "-1"), INTS(&b, "-4"), INTS(&b, "0"), INTS(&b, "-1");
    EXPECT(&b, "3=64,seq,batch");
    op(&b, "Concat"), attr_int(&b, "axis", 0), b.in[b.n_in++] = seq, INTS(&b, "-1", "8");
    EXPECT(&b, "3=seq,-1,8");
    ir_type wanted = b.out[0];
    op(&b, "Reshape"), TENSOR(&b, "batch", "seq", "64"), b.in[b.n_in++] = wanted;
    EXPECT(&b, "seqxbatch*8x8");
    op(&b, "ReduceProd"), b.in[b.n_in++] = shape, INTS(&b, "0"), attr_int(&b, "keepdims", 0);
    ck_assert_int_eq(infer_now(&b, 1), GRT_OK);
    ck_assert_int_eq(b.out[0].elems[0],
                     grt_dim_mulc(b.dims, grt_dim_mul(b.dims, dim_of(&b, "batch"), dim_of(&b, "seq")), 64));
    op(&b, "Range"), INTS(&b, "0"), b.in[b.n_in++] = seq, INTS(&b, "1");
    EXPECT(&b, "seq");
    stop(&b);
}
END_TEST

START_TEST(reshape_finds_the_missing_dim)
{
    bench b;
    start(&b);
    op(&b, "Reshape"), TENSOR(&b, "batch", "12", "seq"), INTS(&b, "0", "3", "-1", "seq");
    EXPECT(&b, "batchx3x4xseq");
    op(&b, "Reshape"), TENSOR(&b, "0", "3"), INTS(&b, "0", "-1");
    EXPECT(&b, "0x3");
    op(&b, "Reshape"), TENSOR(&b, "0", "4"), INTS(&b, "0");
    EXPECT(&b, "0");
    op(&b, "Reshape"), TENSOR(&b, "5", "4"), INTS(&b, "0");
    REFUSED(&b, "1 elements where the input has 4");
    op(&b, "Reshape"), attr_int(&b, "allowzero", 1), TENSOR(&b, "0", "3"), INTS(&b, "3", "0");
    EXPECT(&b, "3x0");
    op(&b, "Reshape"), TENSOR(&b, "5", "3"), INTS(&b, "-1", "2");
    REFUSED(&b, "15 elements");
    op(&b, "Reshape"), TENSOR(&b, "5", "3"), INTS(&b, "-1", "-1");
    REFUSED(&b, "-1 twice");
    op(&b, "Reshape"), TENSOR(&b, "5"), INTS(&b, "5", "0");
    REFUSED(&b, "rank 1");
    op(&b, "Flatten"), attr_int(&b, "axis", -1), TENSOR(&b, "a", "2", "3");
    EXPECT(&b, "a*2x3");
    stop(&b);
}
END_TEST

START_TEST(views_keep_and_drop_axes)
{
    bench b;
    start(&b);
    op(&b, "Squeeze"), TENSOR(&b, "1", "n", "1"), INTS(&b, "-1");
    EXPECT(&b, "1xn");
    op(&b, "Squeeze"), TENSOR(&b, "1", "3", "1");
    EXPECT(&b, "3");
    op(&b, "Squeeze"), TENSOR(&b, "1", "n");
    EXPECT(&b, "?");
    op(&b, "Squeeze"), TENSOR(&b, "2", "n"), INTS(&b, "0");
    REFUSED(&b, "size 2");
    op(&b, "Unsqueeze"), TENSOR(&b, "n"), INTS(&b, "-1", "0");
    EXPECT(&b, "1xnx1");
    op(&b, "Unsqueeze"), TENSOR(&b, "n"), INTS(&b, "0", "-3");
    REFUSED(&b, "twice");
    stop(&b);
}
END_TEST

START_TEST(slices_of_symbolic_axes)
{
    bench b;
    start(&b);
    op(&b, "Slice"), TENSOR(&b, "n"), INTS(&b, "0"), INTS(&b, "9223372036854775807");
    EXPECT(&b, "n");
    op(&b, "Slice"), TENSOR(&b, "n"), INTS(&b, "0"), INTS(&b, "n");
    EXPECT(&b, "n");
    op(&b, "Slice"), TENSOR(&b, "n"), INTS(&b, "-n"), INTS(&b, "9223372036854775807");
    EXPECT(&b, "n");
    op(&b, "Slice"), TENSOR(&b, "n"), INTS(&b, "-m"), INTS(&b, "9223372036854775807");
    EXPECT(&b, "?0"); /* all of it where m is 0, else the last m */
    op(&b, "Slice"), TENSOR(&b, "n"), INTS(&b, "1"), INTS(&b, "9223372036854775807");
    ck_assert_int_eq(infer_now(&b, 1), GRT_OK);
    ck_assert_int_eq(b.out[0].dims[0],
                     grt_dim_make(b.dims, GRT_DIM_MAX, grt_dim_addc(b.dims, dim_of(&b, "n"), -1),
                                  grt_dim_const(b.dims, 0)));
    op(&b, "Slice"), TENSOR(&b, "10"), INTS(&b, "-1"), INTS(&b, "-9223372036854775807"), INTS(&b, "0"),
        INTS(&b, "-3");
    EXPECT(&b, "4");
    op(&b, "Slice"), TENSOR(&b, "10"), INTS(&b, "20"), INTS(&b, "30");
    EXPECT(&b, "0");
    op(&b, "Slice"), TENSOR(&b, "10"), INTS(&b, "0"), INTS(&b, "1"), INTS(&b, "0"), INTS(&b, "0");
    REFUSED(&b, "steps[0] is 0");
    op(&b, "Split"), TENSOR(&b, "n", "7"), attr_int(&b, "axis", 1), attr_int(&b, "num_outputs", 3);
    ck_assert_int_eq(infer_now(&b, 3), GRT_OK);
    ck_assert_str_eq(shown(&b, 0), "nx3");
    ck_assert_str_eq(shown(&b, 2), "nx1");
    stop(&b);
}
END_TEST

START_TEST(unknown_contents_leave_unknown_dims)
{
    bench b;
    start(&b);
    op(&b, "Reshape"), TENSOR(&b, "n"), INTS(&b, "1", "1");
    b.in[1].elems = NULL;
    ck_assert_int_eq(infer_now(&b, 1), GRT_OK);
    ck_assert_int_eq(b.out[0].rank, 2);
    op(&b, "ReduceSum"), TENSOR(&b, "n", "3"), INTS(&b, "0");
    b.in[1].elems = NULL;
    ck_assert_int_eq(infer_now(&b, 1), GRT_OK);
    ck_assert_int_eq(b.out[0].rank, 2);
    op(&b, "Expand"), TENSOR(&b, "n", "1"), INTS(&b, "2", "1", "seq");
    EXPECT(&b, "2xnxseq");
    op(&b, "TopK"), TENSOR(&b, "n", "5"), INTS(&b, "6");
    REFUSED(&b, "K is 6");
    op(&b, "Gather"), INTS(&b, "7", "8"), INTS(&b, "2");
    REFUSED(&b, "index 2");
    op(&b, "Transpose"), TENSOR(&b, "a", "b", "3");
    EXPECT(&b, "3xbxa");
    stop(&b);
}
END_TEST

static ir_node *old_node(ir_module *m, const char *name, int32_t n_in)
{
    ir_value *in[3];
    for (int32_t i = 0; i < n_in; i++) {
        in[i] = ir_value_fresh(m->main, "x");
        in[i]->type.dtype = GRT_DTYPE_FLOAT;
    }
    return ir_node_create(m->main, NULL, "", name, name, n_in, in, 1);
}

static void expect_ints(const ir_value *value, int64_t n, const int64_t *expected)
{
    const int64_t *found;
    int64_t count;
    ck_assert_ptr_nonnull(value);
    ck_assert(ir_const_ints(value, &found, &count));
    ck_assert_int_eq(count, n);
    for (int64_t k = 0; k < n; k++)
        ck_assert_int_eq(found[k], expected[k]);
}

START_TEST(old_attributes_become_inputs)
{
    ir_module *m;
    ck_assert_int_eq(ir_module_create(&m), GRT_OK);
    m->main = m->main ? m->main : ir_graph_create(m, NULL, "g");
    static const int64_t two[] = {0, 2}, four[] = {1, 1, 2, 2};
    static const struct {
        const char *op, *attr;
        int32_t opset, input;
    } lists[] = {{"Squeeze", "axes", 11, 1},   {"Unsqueeze", "axes", 11, 1}, {"ReduceSum", "axes", 12, 1},
                 {"ReduceMax", "axes", 13, 1}, {"Split", "split", 11, 1},    {"Slice", "starts", 9, 1},
                 {"Slice", "ends", 9, 2},      {"Slice", "axes", 9, 3},      {"Reshape", "shape", 1, 1}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ir_node *node = old_node(m, lists[i].op, 1);
        ir_attr_set_ints(node, lists[i].attr, two, 2);
        ck_assert_int_eq(node->row->upgrade(node, lists[i].opset), GRT_OK);
        expect_ints(ir_in(node, lists[i].input), 2, two);
        ck_assert_ptr_null(grt_attr_find(&node->desc, lists[i].attr));
    }
    ir_node *pad = old_node(m, "Pad", 1);
    ir_attr_set_ints(pad, "pads", four, 4);
    ir_attr_set_float(pad, "value", 2.5f);
    ck_assert_int_eq(pad->row->upgrade(pad, 2), GRT_OK);
    expect_ints(ir_in(pad, 1), 4, four);
    double value;
    ck_assert(ir_const_float(ir_in(pad, 2), &value) && value == 2.5);
    ir_node *top = old_node(m, "TopK", 1);
    ir_attr_set_int(top, "k", 3);
    ck_assert_int_eq(top->row->upgrade(top, 9), GRT_OK);
    expect_ints(ir_in(top, 1), 1, (const int64_t[]){3});
    ir_module_release(m);
}
END_TEST

START_TEST(old_ops_become_new_ones)
{
    ir_module *m;
    ck_assert_int_eq(ir_module_create(&m), GRT_OK);
    m->main = m->main ? m->main : ir_graph_create(m, NULL, "g");
    ir_node *node = old_node(m, "Upsample", 1);
    ir_value *out = ir_node_out(node);
    static const float scales[] = {1, 1, 2, 2};
    ir_attr_set(node, (grt_attr){.name = "scales", .kind = GRT_ATTR_FLOATS, .floats = {scales, 4}});
    ck_assert_int_eq(node->row->upgrade(node, 7), GRT_OK);
    ck_assert_str_eq(node->desc.op, "Resize");
    ck_assert_str_eq(grt_attr_string(&node->desc, "nearest_mode", ""), "floor");
    ck_assert_ptr_nonnull(ir_in(node, 2));
    ck_assert_ptr_null(ir_in(node, 1));
    ck_assert_ptr_eq(ir_node_out(node), out);
    node = old_node(m, "Hardmax", 1);
    out = ir_node_out(node);
    ck_assert_int_eq(node->row->upgrade(node, 11), GRT_OK);
    ck_assert_str_eq(node->desc.op, "Reshape");
    ck_assert_ptr_eq(ir_node_out(node), out);
    ck_assert_str_eq(ir_in(node, 0)->producer->desc.op, "Hardmax");
    node = old_node(m, "Scatter", 3);
    ck_assert_int_eq(node->row->upgrade(node, 9), GRT_OK);
    ck_assert_str_eq(node->desc.op, "ScatterElements");
    node = old_node(m, "Tile", 3);
    ck_assert_int_eq(node->row->upgrade(node, 1), GRT_OK);
    ck_assert_int_eq(node->n_in, 2);
    ck_assert_str_eq(ir_in(node, 1)->producer->desc.op, "ScatterElements");
    node = old_node(m, "Concat", 1);
    ck_assert_int_eq(node->row->upgrade(node, 1), GRT_OK);
    ck_assert_int_eq(grt_attr_int(&node->desc, "axis", 0), 1);
    ir_module_release(m);
}
END_TEST

Suite *suite_test_shape_rules(void)
{
    Suite *suite = suite_create("shape_rules");
    TCase *tc = tcase_create("shape_rules");
    tcase_add_test(tc, shape_chains_fold);
    tcase_add_test(tc, reshape_finds_the_missing_dim);
    tcase_add_test(tc, views_keep_and_drop_axes);
    tcase_add_test(tc, slices_of_symbolic_axes);
    tcase_add_test(tc, unknown_contents_leave_unknown_dims);
    tcase_add_test(tc, old_attributes_become_inputs);
    tcase_add_test(tc, old_ops_become_new_ones);
    suite_add_tcase(suite, tc);
    return suite;
}

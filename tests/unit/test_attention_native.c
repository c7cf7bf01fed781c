/* SPDX-License-Identifier: Apache-2.0 */
/* Attention nodes of a model read rows, and heads that are not repeated. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#include <check.h>

/* Rows of 8 numbers, 3 queries and 5 keys; heads of 4. */
#define ROWS(heads)                        \
    "in x f32 2,3,8\nin a f32 2,5,8\n"     \
    "in b f32 2,5,8\n"                     \
    "const h i64 4 0 0 " heads " 4\n"      \
    "q0 = Reshape x h\nk0 = Reshape a h\n" \
    "v0 = Reshape b h\n"
#define TURNED                        \
    "q = Transpose q0 perm=0,2,1,3\n" \
    "k = Transpose k0 perm=0,2,1,3\n" \
    "v = Transpose v0 perm=0,2,1,3\n"
#define JOIN "z = Transpose y perm=0,2,1,3\nconst f i64 3 0 0 -1\nw = Reshape z f\nout w\n"

static ir_node *native_rewritten(const char *text, ir_module **out)
{
    ir_text_check(text, "attention", NULL);
    *out = ir_text(text);
    ir_text_pass(*out, "attention");
    return ir_text_node(*out, "Attention", 0);
}

/* The results are equal, and the node has its inputs in that many dims with these heads. */
static void native_check(const char *text, int32_t rank, int64_t q_heads, int64_t kv_heads)
{
    ir_module *m;
    const ir_node *node = native_rewritten(text, &m);
    ck_assert_int_eq(ir_in(node, 0)->type.rank, rank);
    ck_assert_int_eq(grt_attr_int(&node->desc, "q_num_heads", 0), q_heads);
    ck_assert_int_eq(grt_attr_int(&node->desc, "kv_num_heads", 0), kv_heads);
    ir_module_release(m);
}

static void native_stays(const char *text)
{
    ir_module *m = ir_text(text);
    ir_text_check(text, "attention", NULL);
    ck_assert_int_eq(ir_text_pass(m, "attention"), 0);
    ir_module_release(m);
}

START_TEST(rows_are_read_where_they_are)
{
    ir_text_check(ROWS("2") TURNED "y = Attention q k v\n" JOIN, "", "Attention");
    native_check(ROWS("2") TURNED "y = Attention q k v\n" JOIN, 3, 2, 2);
    /* the result as the model gives it */
    native_check(ROWS("2") TURNED "y = Attention q k v\nout y\n", 3, 2, 2);
    /* other readers of what was turned */
    native_check(ROWS("2") TURNED "y = Attention q k v\nu = Neg q\nout u\nout k\n" JOIN, 3, 2, 2);
}
END_TEST

START_TEST(attributes_and_masks_stay)
{
    ir_module *m;
    const ir_node *node = native_rewritten(
        ROWS("2") TURNED "in m f32 1,2,3,5\n"
                         "y = Attention q k v m scale=0.7 softcap=1.5 is_causal=1 left_window_size=1\n" JOIN,
        &m);
    ck_assert_int_eq(ir_in(node, 0)->type.rank, 3);
    ck_assert_str_eq(ir_in(node, 3)->name, "m");
    ck_assert_float_eq(grt_attr_float(&node->desc, "scale", 0), 0.7F);
    ck_assert_float_eq(grt_attr_float(&node->desc, "softcap", 0), 1.5F);
    ck_assert_int_eq(grt_attr_int(&node->desc, "is_causal", 0), 1);
    ck_assert_int_eq(grt_attr_int(&node->desc, "left_window_size", -1), 1);
    ir_module_release(m);
    native_check(ROWS("2") TURNED "in m bool 3,5\ny = Attention q k v m\n" JOIN, 3, 2, 2);
    native_check(ROWS("2") TURNED "in m f32 2,1,3,5\ny = Attention q k v m\n" JOIN, 3, 2, 2);
}
END_TEST

#define JOINED                                   \
    "in x f32 2,3,24\nconst h i64 5 2 3 3 2 4\n" \
    "r = Reshape x h\n"
#define PARTS(order)                           \
    "t = Transpose r perm=" order "\n"         \
    "const i i64 - 0\nconst j i64 - 1\n"       \
    "const l i64 - 2\nq = Gather t i axis=0\n" \
    "k = Gather t j axis=0\nv = Gather t l axis=0\n"

START_TEST(one_tensor_is_read_as_it_is)
{
    ir_text_check(JOINED PARTS("2,0,3,1,4") "y = Attention q k v is_causal=1\n" JOIN, "",
                  "graphrt::Attention");
    ir_text_check(JOINED PARTS("2,0,3,1,4") "in m f32 1,1,3,3\ny = Attention q k v m\n" JOIN, "",
                  "graphrt::Attention");
}
END_TEST

/* Grouped heads: of the node itself, and repeated in front of it. */
#define GROUPED                                         \
    "in x f32 2,3,16\nin a f32 2,5,8\nin b f32 2,5,8\n" \
    "const g i64 4 2 3 4 4\nconst h i64 4 2 5 2 4\n"    \
    "q0 = Reshape x g\nk0 = Reshape a h\nv0 = Reshape b h\n" TURNED
#define REPEAT(side, at)                                                                                   \
    side "1 = Unsqueeze " side " u" at "\n" side "2 = Expand " side "1 e" at "\n" side "3 = Reshape " side \
         "2 c\n"
#define REPEATS                                                           \
    "const u2 i64 1 2\nconst e2 i64 5 2 2 2 5 4\nconst c i64 4 2 4 5 4\n" \
    "const u1 i64 1 1\nconst e1 i64 5 2 2 2 5 4\n"

START_TEST(grouped_heads)
{
    native_check(GROUPED "y = Attention q k v\n" JOIN, 3, 4, 2);
    native_check(GROUPED REPEATS REPEAT("k", "2") REPEAT("v", "2") "y = Attention q k3 v3\n" JOIN, 3, 4, 2);
    /* queries in no rows */
    native_check(GROUPED REPEATS REPEAT("k", "2") REPEAT(
                     "v", "2") "o = Sin q\nin m f32 2,4,3,5\ny = Attention o k3 v3 m is_causal=1\n" JOIN,
                 4, 0, 0);
}
END_TEST

START_TEST(repeated_heads_of_four_dims)
{
    ir_module *m;
    const ir_node *node =
        native_rewritten("in q f32 2,4,3,4\nin k f32 2,2,5,4\nin v f32 2,2,5,6\n" REPEATS
                         "const d i64 5 2 2 2 5 6\nconst p i64 4 2 4 5 6\n" REPEAT(
                             "k", "2") "v1 = Unsqueeze v u2\nv2 = Expand v1 d\nv3 = Reshape v2 p\n"
                                       "y = Attention q k3 v3\nout y\n",
                         &m);
    ck_assert_str_eq(ir_in(node, 1)->name, "k");
    ck_assert_str_eq(ir_in(node, 2)->name, "v");
    ir_module_release(m);
}
END_TEST

START_TEST(heads_that_are_repeated_otherwise_stay)
{
    /* all heads one after another; only the keys; the whole in another batch */
    native_stays("in q f32 2,4,3,4\nin k f32 2,2,5,4\nin v f32 2,2,5,4\n" REPEATS REPEAT("k", "1")
                     REPEAT("v", "1") "y = Attention q k3 v3\nout y\n");
    native_stays("in q f32 2,4,3,4\nin k f32 2,2,5,4\nin v f32 2,4,5,4\n" REPEATS REPEAT(
        "k", "2") "y = Attention q k3 v\nout y\n");
    native_stays("in q f32 2,4,3,4\nin k f32 1,4,5,4\nin v f32 1,4,5,4\nconst c i64 4 2 4 5 4\n"
                 "k1 = Expand k c\nv1 = Expand v c\ny = Attention q k1 v1\nout y\n");
}
END_TEST

START_TEST(other_orders_stay)
{
    native_stays("in q f32 2,2,3,4\nin k f32 2,2,5,4\nin v f32 2,2,5,4\ny = Attention q k v\nout y\n");
    /* the heads' numbers lie apart */
    native_stays(
        "in x f32 2,3,8\nin k f32 2,2,5,4\nin v f32 2,2,5,4\nconst h i64 4 2 3 4 2\nr = Reshape x h\n"
        "q = Transpose r perm=0,3,1,2\ny = Attention q k v\n" JOIN);
    /* heads in front of the batch */
    native_stays("in x f32 2,2,3,4\nin k f32 2,2,5,4\nin v f32 2,2,5,4\n"
                 "q = Transpose x perm=1,0,2,3\ny = Attention q k v\n" JOIN);
}
END_TEST

#define PAST "in pk f32 2,2,1,4\nin pv f32 2,2,1,4\n"

/* A cache has the node's heads; rows of queries, keys and values go beside it. */
START_TEST(caches_stay_beside_rows)
{
    native_check(ROWS("2") TURNED PAST "y,ok,ov = Attention q k v _ pk pv\nout ok\nout ov\n" JOIN, 3, 2, 2);
    native_check(ROWS("2") TURNED PAST "y,ok,ov = Attention q k v _ pk pv\nout ov\n" JOIN, 3, 2, 2);
    native_check(ROWS("2") TURNED PAST "y = Attention q k v _ pk pv is_causal=1\n" JOIN, 3, 2, 2);
    native_check(ROWS("2") TURNED PAST "in m f32 3,6\ny,ok,ov = Attention q k v m pk pv\nu = Neg ok\n"
                                       "out u\n" JOIN,
                 3, 2, 2);
    native_check(ROWS("2") TURNED "y,ok,ov = Attention q k v\nout ok\n" JOIN, 3, 2, 2);
    native_check(ROWS("2") TURNED "const n i64 2 3 5\ny = Attention q k v _ _ _ n\n" JOIN, 3, 2, 2);
}
END_TEST

/* Keys and values whose heads are repeated for the cache, and scores that are read. */
START_TEST(repeated_heads_of_caches_and_scores_stay)
{
    native_stays("in x f32 2,3,16\nin a f32 2,5,8\nconst h i64 4 0 0 4 4\nconst g i64 4 0 0 2 4\n"
                 "const u i64 1 2\nconst e i64 5 2 2 2 5 4\nconst r i64 4 2 4 5 4\n"
                 "in pk f32 2,4,1,4\nin pv f32 2,4,1,4\n"
                 "q0 = Reshape x h\nq = Transpose q0 perm=0,2,1,3\nk0 = Reshape a g\n"
                 "k1 = Transpose k0 perm=0,2,1,3\nk2 = Unsqueeze k1 u\nk3 = Expand k2 e\nk = Reshape k3 r\n"
                 "y,ok,ov = Attention q k k _ pk pv\nout y\nout ok\n");
    native_stays(ROWS("2") TURNED "y,ok,ov,s = Attention q k v qk_matmul_output_mode=1\nout s\n" JOIN);
}
END_TEST

START_TEST(batch_and_sequence_of_unknown_size)
{
    static const char text[] = "in x f32 n,s,8\nin a f32 n,s,8\nin b f32 n,s,8\nconst h i64 4 0 0 2 4\n"
                               "q0 = Reshape x h\nk0 = Reshape a h\nv0 = Reshape b h\n" TURNED
                               "y = Attention q k v is_causal=1\n" JOIN;
    ir_module *m = ir_text(text);
    ir_text_pass(m, "");
    ck_assert_str_eq(ir_text_ops(m), "Attention");
    ir_module_release(m);
    /* a batch of keys that may be another */
    native_stays(
        "in x f32 n,s,8\nin k f32 m,2,t,4\nin v f32 m,2,t,4\nconst h i64 4 0 0 2 4\nr = Reshape x h\n"
        "q = Transpose r perm=0,2,1,3\ny = Attention q k v\nout y\n");
}
END_TEST

UNIT_SUITE(test_attention_native, NULL, NULL, rows_are_read_where_they_are, attributes_and_masks_stay,
           one_tensor_is_read_as_it_is, grouped_heads, repeated_heads_of_four_dims,
           heads_that_are_repeated_otherwise_stay, other_orders_stay, caches_stay_beside_rows,
           repeated_heads_of_caches_and_scores_stay, batch_and_sequence_of_unknown_size)

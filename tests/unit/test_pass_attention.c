/* SPDX-License-Identifier: Apache-2.0 */
/* Exported decompositions of attention become one node. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(plain)
{
    ir_text_check("in q f32 2,2,3,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "const c f32 - 0.5\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "s = MatMul q t\n"
                  "u = Mul s c\n"
                  "p = Softmax u\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "attention", "Transpose MatMul Mul Softmax Transpose Attention");
}
END_TEST

/* Windows of some images: a table for each head, and a mask for each window. Windows are heads then, so that
 * neither is repeated for the images. */
#define WINDOWS                            \
    "in q f32 6,2,3,5\n"                   \
    "in k f32 6,2,3,5\n"                   \
    "in v f32 6,2,3,5\n"                   \
    "const table f32 2,3,3\n"              \
    "const mask f32 1,2,1,3,3 0 -1 -2 3\n" \
    "const f i64 5 3 2 2 3 3\n"            \
    "const g i64 4 6 2 3 3\n"              \
    "t = Transpose k perm=0,1,3,2\n"       \
    "s = MatMul q t\n"                     \
    "a = Add s table\n"                    \
    "b = Reshape a f\n"                    \
    "c = Add b mask\n"                     \
    "d = Reshape c g\n"                    \
    "p = Softmax d\n"                      \
    "y = MatMul p v\n"                     \
    "out y\n"
START_TEST(masks_of_windows)
{
    ir_text_check(WINDOWS, "attention", NULL);
    ir_module *m = ir_text(WINDOWS);
    ir_text_pass(m, "attention");
    const ir_value *mask = ir_in(ir_text_node(m, "Attention", 0), 3);
    static const int64_t wanted[] = {1, 4, 3, 3};
    for (int32_t i = 0; i < 4; i++) {
        int64_t dim;
        ck_assert(grt_dim_is_const(m->dims, mask->type.dims[i], &dim));
        ck_assert_int_eq(dim, wanted[i]);
    }
    ir_module_release(m);
}
END_TEST

/* Heads of keys and values out of rows, repeated for groups of queries' heads that are in no rows themselves:
 * they are not repeated, and a scale of the keys counts. */
START_TEST(repeated_heads_of_other_queries)
{
    ir_text_check("in q f32 2,4,3,4\n"
                  "in a f32 2,5,8\n"
                  "in b f32 2,5,8\n"
                  "const f i64 4 2 5 2 4\n"
                  "const u i64 1 2\n"
                  "const e i64 5 2 2 2 5 4\n"
                  "const h i64 4 2 4 5 4\n"
                  "const c f32 - 0.5\n"
                  "k0 = Reshape a f\n"
                  "k1 = Transpose k0 perm=0,2,1,3\n"
                  "k2 = Unsqueeze k1 u\n"
                  "k3 = Expand k2 e\n"
                  "k4 = Reshape k3 h\n"
                  "k5 = Mul k4 c\n"
                  "v0 = Reshape b f\n"
                  "v1 = Transpose v0 perm=0,2,1,3\n"
                  "v2 = Unsqueeze v1 u\n"
                  "v3 = Expand v2 e\n"
                  "v4 = Reshape v3 h\n"
                  "t = Transpose k5 perm=0,1,3,2\n"
                  "s = MatMul q t\n"
                  "p = Softmax s\n"
                  "y = MatMul p v4\n"
                  "out y\n",
                  "attention", NULL);
    ir_module *m = ir_text("in q f32 2,4,3,4\n"
                           "in a f32 2,5,8\n"
                           "const f i64 4 2 5 2 4\n"
                           "const u i64 1 2\n"
                           "const e i64 5 2 2 2 5 4\n"
                           "const h i64 4 2 4 5 4\n"
                           "k0 = Reshape a f\n"
                           "k1 = Transpose k0 perm=0,2,1,3\n"
                           "k2 = Unsqueeze k1 u\n"
                           "k3 = Expand k2 e\n"
                           "k4 = Reshape k3 h\n"
                           "t = Transpose k4 perm=0,1,3,2\n"
                           "s = MatMul q t\n"
                           "p = Softmax s\n"
                           "y = MatMul p k4\n"
                           "out y\n");
    ir_text_pass(m, "attention");
    const ir_node *made = ir_text_node(m, "Attention", 0);
    int64_t heads;
    ck_assert(grt_dim_is_const(m->dims, ir_in(made, 1)->type.dims[1], &heads));
    ck_assert_int_eq(heads, 2);
    ir_module_release(m);
}
END_TEST

/* Attention over channels: rows of so many tokens have no fast kernel where float16 is fast, and the scores
 * are small. A row of a multiple of 16 bytes has one, up to 256 numbers. */
START_TEST(over_channels)
{
    static const struct {
        int tokens;
        bool stays;
    } cases[] = {{49, true}, {48, false}, {256, false}, {260, true}, {9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "in q f32 2,2,16,%d\n"
                 "in k f32 2,2,16,%d\n"
                 "in v f32 2,2,16,%d\n"
                 "t = Transpose k perm=0,1,3,2\n"
                 "s = MatMul q t\n"
                 "p = Softmax s\n"
                 "y = MatMul p v\n"
                 "out y\n",
                 cases[i].tokens, cases[i].tokens, cases[i].tokens);
        ir_module *module = ir_text(text);
        ck_assert_int_eq(ir_text_pass(module, "attention"), cases[i].stays ? 0 : 1);
        ir_module_release(module);
    }
}
END_TEST

/* As few tokens as a head has numbers, in heads that are no whole vectors: these lie side by side, so that
 * attention reads them where they are, and products would want them moved. */
START_TEST(few_tokens_of_odd_heads)
{
    ir_module *module = ir_text("in x f32 2,7,30\n"
                                "const f i64 4 2 7 3 10\n"
                                "a = Reshape x f\n"
                                "q = Transpose a perm=0,2,1,3\n"
                                "t = Transpose a perm=0,2,3,1\n"
                                "s = MatMul q t\n"
                                "p = Softmax s\n"
                                "y = MatMul p q\n"
                                "out y\n");
    ck_assert_int_eq(ir_text_pass(module, "attention"), 1);
    ir_module_release(module);
}
END_TEST

START_TEST(mask_and_guard)
{
    ir_text_check("in q f32 2,2,3,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "const c f32 - 0.5\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "in m f32 1,1,3,5\n"
                  "const z f32 - 0\n"
                  "s = MatMul q t\n"
                  "u = Add s m\n"
                  "p = Softmax u\n"
                  "n = IsNaN p\n"
                  "w = Where n z p\n"
                  "y = MatMul w v\n"
                  "out y\n",
                  "attention", "Transpose MatMul Add Softmax IsNaN Where Transpose Attention");
}
END_TEST

/* In float32 from the mask on, as PyTorch's exporter writes models in half: no type is lost. */
START_TEST(scores_and_values_that_were_widened)
{
    ir_module *module = ir_text("in q f16 2,2,3,4\n"
                                "in k f16 2,2,4,5\n"
                                "in v f16 2,2,5,4\n"
                                "in m bool 1,1,3,5\n"
                                "const z f32 1 0\n"
                                "const h f32 1 -3e38\n"
                                "s = MatMul q k\n"
                                "a = Cast s to=1\n"
                                "b = Where m z h\n"
                                "u = Add a b\n"
                                "p = Softmax u\n"
                                "w = Cast v to=1\n"
                                "y = MatMul p w\n"
                                "out y\n");
    ck_assert_int_eq(ir_text_pass(module, "attention"), 1);
    ck_assert_str_eq(ir_text_ops(module),
                     "MatMul Cast Where Add Softmax Cast Transpose Cast Cast Cast Attention");
    const ir_node *made = ir_text_node(module, "Attention", 0);
    for (int32_t i = 0; i < 4; i++)
        ck_assert_int_eq(ir_in(made, i)->type.dtype, GRT_DTYPE_FLOAT);
    ir_module_release(module);
}
END_TEST

START_TEST(scales_on_both_sides)
{
    ir_text_check("in q f32 2,2,3,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "const c f32 - 0.5\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "a = Mul q c\n"
                  "b = Mul t c\n"
                  "s = MatMul a b\n"
                  "p = Softmax s\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "attention", "Transpose Mul Mul MatMul Softmax Transpose Attention");
}
END_TEST

/* Cosine attention: queries and keys of length one, and a factor for each head. */
START_TEST(scale_of_each_head)
{
    ir_text_check("in q f32 2,3,4,4\n"
                  "in k f32 2,3,4,4\n"
                  "in v f32 2,3,4,4\n"
                  "in m f32 1,3,4,4\n"
                  "const c f32 3,1,1 0.5 2 7\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "s = MatMul q t\n"
                  "u = Mul s c\n"
                  "w = Add u m\n"
                  "p = Softmax w\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "attention", "Transpose Mul MatMul Mul Add Softmax Transpose Attention");
}
END_TEST

/* The same with heads in rows: the factors are along the heads there, and what is left in front is none. */
START_TEST(scale_of_each_head_in_rows)
{
    static const char text[] = "in q f32 2,4,3,4\n"
                               "in k f32 2,4,3,4\n"
                               "in v f32 2,4,3,4\n"
                               "const c f32 3,1,1 0.5 2 7\n"
                               "h = Transpose q perm=0,2,1,3\n"
                               "t = Transpose k perm=0,2,3,1\n"
                               "w = Transpose v perm=0,2,1,3\n"
                               "s = MatMul h t\n"
                               "u = Mul s c\n"
                               "p = Softmax u\n"
                               "o = MatMul p w\n"
                               "y = Transpose o perm=0,2,1,3\n"
                               "out y\n";
    ir_text_check(text, "attention", NULL);
    ir_module *m = ir_text(text);
    ir_text_pass(m, "attention");
    const ir_node *made = ir_text_node(m, "Attention", 0);
    ck_assert_int_eq(ir_in(made, 0)->type.rank, 3);
    ir_text_pass(m, "moves");
    ir_text_pass(m, "dce");
    ck_assert_ptr_null(strstr(ir_text_ops(m), "Transpose"));
    ir_module_release(m);
}
END_TEST

/* The factors are of columns, not of heads. */
START_TEST(scale_of_each_key_stops_it)
{
    ir_text_check("in q f32 2,3,4,4\n"
                  "in k f32 2,3,4,4\n"
                  "in v f32 2,3,4,4\n"
                  "const c f32 3,1,4 1 2 3 4 5 6 7 8 9 1 2 3\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "s = MatMul q t\n"
                  "u = Mul s c\n"
                  "p = Softmax u\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "attention", "Transpose MatMul Mul Softmax MatMul");
}
END_TEST

START_TEST(two_masks)
{
    ir_text_check("in q f32 2,2,3,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "const c f32 - 0.5\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "in m f32 1,1,3,5\n"
                  "in o f32 2,1,1,5\n"
                  "s = MatMul q t\n"
                  "u = Add s m\n"
                  "w = Add o u\n"
                  "p = Softmax w\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "attention", "Transpose MatMul Add Add Softmax Transpose Add Attention");
}
END_TEST

/* XLNet, Funnel: what is hidden is subtracted. Only what is taken from scores is a mask. */
START_TEST(subtracted_mask)
{
    static const char *const text = "in q f32 2,2,3,4\n"
                                    "in k f32 2,2,4,5\n"
                                    "in v f32 2,2,5,4\n"
                                    "in m f32 1,1,3,5\n"
                                    "s = MatMul q k\n"
                                    "u = Sub %s\n"
                                    "p = Softmax u\n"
                                    "y = MatMul p v\n"
                                    "out y\n";
    char model[512];
    snprintf(model, sizeof model, text, "s m");
    ir_text_check(model, "attention", "MatMul Sub Softmax Transpose Mul Attention");
    snprintf(model, sizeof model, text, "m s");
    ir_text_check(model, "attention", "MatMul Sub Softmax MatMul");
}
END_TEST

/* GPT-OSS: a score for each head is joined to the scores and dropped behind the softmax. */
START_TEST(sinks)
{
#define SINKS(dropped)              \
    "in q f32 2,2,3,4\n"            \
    "in k f32 2,2,4,5\n"            \
    "in v f32 2,2,5,4\n"            \
    "in m f32 1,1,3,5\n"            \
    "in sink f32 1,2,1,1\n"         \
    "const all i64 4 2 2 3 1\n"     \
    "const zero i64 1 0\n"          \
    "const end i64 1 " dropped "\n" \
    "const last i64 1 3\n"          \
    "s = MatMul q k\n"              \
    "u = Add s m\n"                 \
    "e = Expand sink all\n"         \
    "c = Concat u e axis=-1\n"      \
    "p = Softmax c\n"               \
    "w = Slice p zero end last\n"
    ir_text_check(SINKS("-1") "y = MatMul w v\nout y\n", "attention",
                  "MatMul Add Expand Concat Softmax Slice Transpose IsNaN Where Concat Pad Pad Attention");
    /* the weight of the sink is read */
    ir_text_check(SINKS("-1") "y = MatMul w v\nz = ReduceSum p last\nout y\nout z\n", "attention",
                  "MatMul Add Expand Concat Softmax Slice MatMul ReduceSum");
    /* no column is dropped: values of as many rows */
    ir_text_check(SINKS("9") "const o f32 2,2,6,4\ny = MatMul w o\nout y\n", "attention",
                  "MatMul Add Expand Concat Softmax Slice MatMul");
}
END_TEST

START_TEST(packed_heads)
{
    ir_text_check("in a f32 2,3,8\n"
                  "in b f32 2,5,8\n"
                  "in d f32 2,5,8\n"
                  "const h i64 4 0 0 2 4\n"
                  "const j i64 3 0 0 8\n"
                  "q3 = Reshape a h\n"
                  "k3 = Reshape b h\n"
                  "v3 = Reshape d h\n"
                  "q = Transpose q3 perm=0,2,1,3\n"
                  "t = Transpose k3 perm=0,2,3,1\n"
                  "v = Transpose v3 perm=0,2,1,3\n"
                  "s = MatMul q t\n"
                  "p = Softmax s\n"
                  "y4 = MatMul p v\n"
                  "y3 = Transpose y4 perm=0,2,1,3\n"
                  "y = Reshape y3 j\n"
                  "out y\n",
                  "", "Attention");
}
END_TEST

/* Back to [B * S, H * D], for a product that wants a matrix: that Reshape stays. */
START_TEST(packed_heads_as_a_matrix)
{
    ir_text_check("in a f32 2,3,8\n"
                  "in b f32 2,5,8\n"
                  "in d f32 2,5,8\n"
                  "const h i64 4 0 0 2 4\n"
                  "const j i64 2 -1 8\n"
                  "q3 = Reshape a h\n"
                  "k3 = Reshape b h\n"
                  "v3 = Reshape d h\n"
                  "q = Transpose q3 perm=0,2,1,3\n"
                  "t = Transpose k3 perm=0,2,3,1\n"
                  "v = Transpose v3 perm=0,2,1,3\n"
                  "s = MatMul q t\n"
                  "p = Softmax s\n"
                  "y4 = MatMul p v\n"
                  "y3 = Transpose y4 perm=0,2,1,3\n"
                  "y = Reshape y3 j\n"
                  "z = Relu y\n"
                  "out z\n",
                  "", "Attention Reshape Relu");
}
END_TEST

START_TEST(scores_that_others_use_stop_it)
{
    ir_text_check("in q f32 2,2,3,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "const c f32 - 0.5\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "s = MatMul q t\n"
                  "p = Softmax s\n"
                  "y = MatMul p v\n"
                  "out y\n"
                  "out p\n",
                  "attention", "Transpose MatMul Softmax MatMul");
}
END_TEST

START_TEST(softmax_over_another_axis)
{
    ir_text_check("in q f32 2,2,3,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "const c f32 - 0.5\n"
                  "t = Transpose k perm=0,1,3,2\n"
                  "s = MatMul q t\n"
                  "p = Softmax s axis=2\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "attention", "Transpose MatMul Softmax MatMul");
}
END_TEST

Suite *suite_test_pass_attention(void)
{
    Suite *suite = suite_create("pass_attention");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, plain);
    tcase_add_test(tc, masks_of_windows);
    tcase_add_test(tc, repeated_heads_of_other_queries);
    tcase_add_test(tc, over_channels);
    tcase_add_test(tc, few_tokens_of_odd_heads);
    tcase_add_test(tc, mask_and_guard);
    tcase_add_test(tc, scores_and_values_that_were_widened);
    tcase_add_test(tc, scales_on_both_sides);
    tcase_add_test(tc, scale_of_each_head);
    tcase_add_test(tc, scale_of_each_head_in_rows);
    tcase_add_test(tc, scale_of_each_key_stops_it);
    tcase_add_test(tc, two_masks);
    tcase_add_test(tc, subtracted_mask);
    tcase_add_test(tc, sinks);
    tcase_add_test(tc, packed_heads);
    tcase_add_test(tc, packed_heads_as_a_matrix);
    tcase_add_test(tc, scores_that_others_use_stop_it);
    tcase_add_test(tc, softmax_over_another_axis);
    suite_add_tcase(suite, tc);
    return suite;
}

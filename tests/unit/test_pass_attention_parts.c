/* SPDX-License-Identifier: Apache-2.0 */
/* Attention reads queries, keys and values where they lie side by side. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"

#define PARTS  "in x f16 1,n,16\nconst h i64 3 8 4 4\nq,k,v = Split x h axis=-1\n"
#define ANGLES "in cos f16 1,n,2\nin sin f16 1,n,2\n"
#define ROTATE "a = RotaryEmbedding q cos sin num_heads=2\nb = RotaryEmbedding k cos sin num_heads=1\n"
#define PAST   "in pk f16 1,1,5,4\nin pv f16 1,1,5,4\n"

/* For a device that has every kernel, and gains by fewer steps. */
static ir_module *attention_parts_run(const char *text, const char *expected)
{
    ir_module *m = ir_text(text);
    grt_target target = ir_text_target();
    grt_device_traits traits = *target.traits;
    traits.merges_small_steps = true;
    target.traits = &traits;
    target.supports = ir_text_takes_all;
    pass_context context = {.module = m, .target = &target, .level = 2};
    ck_assert_int_eq(pass_attention_parts(&context), GRT_OK);
    ck_assert_int_eq(pass_dce(&context), GRT_OK);
    ck_assert_int_eq(ir_verify(m), GRT_OK);
    ck_assert_str_eq(ir_text_ops(m), expected);
    return m;
}

START_TEST(a_token_is_read_where_it_is)
{
    ir_module *m = attention_parts_run(
        PARTS ANGLES PAST ROTATE
        "y,ok,ov = Attention a b v _ pk pv q_num_heads=2 kv_num_heads=1 is_causal=1\nout y\nout ok\nout ov\n",
        "graphrt::RotaryEmbedding graphrt::Attention");
    const ir_node *rotation = ir_text_node(m, "RotaryEmbedding", 0), *node = ir_text_node(m, "Attention", 0);
    ck_assert_int_eq(grt_attr_int(&rotation->desc, "num_heads", 0), 4);
    ck_assert_int_eq(grt_attr_int(&rotation->desc, "rotated_heads", 0), 3);
    ck_assert_ptr_eq(ir_in(node, 0), rotation->out[0]);
    ck_assert_int_eq(node->n_in, 6);
    ck_assert_int_eq(grt_attr_int(&node->desc, "is_causal", 0), 1);
    ck_assert_str_eq(node->out[0]->name, "y");
    ck_assert_str_eq(node->out[2]->name, "ov");
    ck_assert(grt_dim_equals(m->dims, node->out[0]->type.dims[2], 8));
    ck_assert(grt_dim_equals(m->dims, node->out[1]->type.dims[1], 1));
    ck_assert_int_eq(ir_infer(m), GRT_OK);
    ir_module_release(m);
}
END_TEST

START_TEST(without_rotation)
{
    ir_module_release(attention_parts_run(PARTS "y = Attention q k v q_num_heads=2 kv_num_heads=1\nout y\n",
                                          "graphrt::Attention"));
}
END_TEST

START_TEST(what_others_read_stays)
{
    /* a rotated key; the values */
    ir_module_release(attention_parts_run(PARTS ANGLES ROTATE
                                          "y = Attention a b v q_num_heads=2 kv_num_heads=1\nout y\nout b\n",
                                          "Split RotaryEmbedding RotaryEmbedding Attention"));
    ir_module_release(attention_parts_run(
        PARTS "y = Attention q k v q_num_heads=2 kv_num_heads=1\nout y\nout v\n", "Split Attention"));
}
END_TEST

START_TEST(other_forms_stay)
{
    /* parts in another order; one rotation; other angles; heads of another size */
    ir_module_release(attention_parts_run(PARTS "y = Attention q v k q_num_heads=2 kv_num_heads=1\nout y\n",
                                          "Split Attention"));
    ir_module_release(attention_parts_run(PARTS ANGLES
                                          "a = RotaryEmbedding q cos sin num_heads=2\n"
                                          "y = Attention a k v q_num_heads=2 kv_num_heads=1\nout y\n",
                                          "Split RotaryEmbedding Attention"));
    ir_module_release(attention_parts_run(PARTS ANGLES
                                          "a = RotaryEmbedding q cos sin num_heads=2\n"
                                          "b = RotaryEmbedding k sin cos num_heads=1\n"
                                          "y = Attention a b v q_num_heads=2 kv_num_heads=1\nout y\n",
                                          "Split RotaryEmbedding RotaryEmbedding Attention"));
    ir_module_release(attention_parts_run("in x f16 1,n,16\nconst h i64 3 4 4 8\nq,k,v = Split x h axis=-1\n"
                                          "y = Attention q k v q_num_heads=1 kv_num_heads=1\nout y\n",
                                          "Split Attention"));
}
END_TEST

/* The CPU reads a past and one tensor of all three from nowhere else. */
START_TEST(targets_without_kernels_keep_the_steps)
{
    ir_text_check(PARTS PAST "y = Attention q k v _ pk pv q_num_heads=2 kv_num_heads=1\nout y\n",
                  "attention_parts", "Split Attention");
}
END_TEST

UNIT_SUITE(test_pass_attention_parts, NULL, NULL, a_token_is_read_where_it_is, without_rotation,
           what_others_read_stays, other_forms_stay, targets_without_kernels_keep_the_steps)

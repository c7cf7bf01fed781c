/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of other domains: errors name the node, its operator and attribute, and nodes made of it keep its
 * name. (Results: the suite "com.microsoft operators" of the conformance tests.) */
#include "graph/ir/infer.h"
#include "tests/unit/import_check.h"

#include "graph/ir/op.h"

#include <stdlib.h>
#include <string.h>

typedef struct bad {
    const char *op, *inputs; /* of those that add_inputs adds */
    const char *ints;        /* attributes: "name=1,other=2" */
    const char *says;
    int status;
} bad;

static void add_inputs(onnx_model *m)
{
    onnx_input(m, m->graph, "x", GRT_DTYPE_FLOAT, "2,3,8");
    onnx_input(m, m->graph, "ids", GRT_DTYPE_INT64, "2,3");
    onnx_input(m, m->graph, "tokens", GRT_DTYPE_INT32, "2,3");
    onnx_input(m, m->graph, "n", GRT_DTYPE_INT32, "2");
    onnx_input(m, m->graph, "total", GRT_DTYPE_INT32, "");
    onnx_input(m, m->graph, "w", GRT_DTYPE_FLOAT, "8,8");
    onnx_input(m, m->graph, "b", GRT_DTYPE_FLOAT, "8");
    onnx_input(m, m->graph, "u8", GRT_DTYPE_UINT8, "4,1,16");
    onnx_input(m, m->graph, "f8", GRT_DTYPE_FLOAT8E4M3FN, "4,1,16");
    onnx_input(m, m->graph, "unknown", GRT_DTYPE_FLOAT, NULL);
    onnx_input(m, m->graph, "unknown_mask", GRT_DTYPE_INT32, NULL);
}

static Onnx__NodeProto *add_node(onnx_model *m, const char *op, const char *inputs, const char *ints)
{
    Onnx__NodeProto *node = onnx_node(m, m->graph, op, inputs, "y");
    node->domain = (char *)"com.microsoft";
    for (const char *p = ints; *p; p += strcspn(p, ","), p += *p == ',') {
        const size_t n = strcspn(p, "=");
        onnx_attr_int(m, node, grt_arena_strndup(m->arena, p, n), strtoll(p + n + 1, NULL, 10));
    }
    onnx_output(m, m->graph, "y");
    onnx_opset(m, "com.microsoft", 1);
    return node;
}

static void refused(const bad *b)
{
    onnx_model m = onnx_create();
    add_inputs(&m);
    add_node(&m, b->op, b->inputs, b->ints);
    ir_module *module = NULL;
    grt_status status = onnx_import(&m, &module);
    if (status == GRT_OK)
        status = ir_infer(module);
    ck_assert_msg((int)status == b->status && strstr(grt_last_error(), "the_") &&
                      strstr(grt_last_error(), b->says),
                  "%s(%s) %s: status %d, '%s'", b->op, b->inputs, b->ints, (int)status,
                  status == GRT_OK ? "" : grt_last_error());
    ir_module_release(module);
    onnx_release(&m);
}

enum { INVALID = GRT_STATUS_INVALID_MODEL, UNSUPPORTED = GRT_STATUS_UNSUPPORTED };
static const bad cases[] = {
    {"Gelu", "x,b", "", "has 2 inputs, 1 expected", INVALID},
    {"Gelu", "x", "alpha=1", "attribute 'alpha' is not known", INVALID},
    {"MultiHeadAttention", "x,x,x", "", "attribute 'num_heads' (int) is required", INVALID},
    {"MultiHeadAttention", "x,x,x", "num_heads=0", "num_heads is 0; it must be at least 1", INVALID},
    {"MultiHeadAttention", "x,x,x", "num_heads=3", "does not divide", INVALID},
    {"MultiHeadAttention", "x,w,x", "num_heads=2", "have ranks 3, 2 and 3", UNSUPPORTED},
    {"MultiHeadAttention", "unknown,x,x", "num_heads=2", "the rank of input 0", UNSUPPORTED},
    {"MultiHeadAttention", "x,x,x,,,,x", "num_heads=2", "past_key and past_value must", INVALID},
    {"Attention", "x,w", "num_heads=2,do_rotary=1", "do_rotary is 1", UNSUPPORTED},
    {"Attention", "x,w", "num_heads=2,past_present_share_buffer=1", "there is no past", INVALID},
    {"Attention", "x,w,b,unknown_mask", "num_heads=2", "the rank of input 3 (the mask)", UNSUPPORTED},
    {"GroupQueryAttention", "x,x,x,,,n,total", "num_heads=4,kv_num_heads=3", "kv_num_heads is 3", INVALID},
    {"GroupQueryAttention", "x,x,x,,,n,total", "num_heads=2,kv_num_heads=2,do_rotary=1",
     "input 7 (cos_cache)", INVALID},
    {"GroupQueryAttention", "x,x,x,,,n,total",
     "num_heads=2,kv_num_heads=2,qk_output=1,sliding_window_cache=1,local_window_size=4",
     "qk_output are not supported together", UNSUPPORTED},
    {"GroupQueryAttention", "x,x,x,,,n,total", "num_heads=2,kv_num_heads=2,qk_output=3",
     "attribute qk_output is 3", INVALID},
    {"GroupQueryAttention", "x,x,x,,,n,total", "num_heads=2,kv_num_heads=2,sliding_window_cache=1",
     "needs local_window_size, which is -1", INVALID},
    {"GroupQueryAttention", "x,x,x,,,n,total",
     "num_heads=2,kv_num_heads=2,sliding_window_cache=1,local_window_size=4", "input 3 (past_key", INVALID},
    {"GroupQueryAttention", "x,x,,,,n,total", "num_heads=2,kv_num_heads=2", "must be given together",
     INVALID},
    {"RotaryEmbedding", "x,ids,w,w", "", "num_heads is not given", UNSUPPORTED},
    {"MatMulNBits", "x,u8,b", "K=8,N=4,block_size=12", "block_size 12", INVALID},
    {"MatMulNBits", "x,u8,b", "K=8,N=4,block_size=16,bits=3", "bits is 3", UNSUPPORTED},
    {"MatMulNBits", "x,u8,b", "K=9223372036854775807,N=9223372036854775807,block_size=16", "too large",
     INVALID},
    {"MatMulNBits", "x,u8,b", "K=8,N=4,block_size=16,weight_prepacked=1", "weight_prepacked", UNSUPPORTED},
    {"GatherBlockQuantized", "u8,ids,b", "gather_axis=5", "out of range", INVALID},
    {"GatherBlockQuantized", "f8,ids,b", "", "data is float8e4m3fn", UNSUPPORTED},
    {"FusedMatMul", "unknown,w", "transA=1", "the rank of input 0", UNSUPPORTED},
    {"GroupNorm", "x,b,b", "groups=2,activation=7", "activation is 7", INVALID},
    {"EmbedLayerNormalization", "tokens,,w,w,w,b,b", "", "must be given together", INVALID},
    {"QLinearConcat", "b,u8,u8,b", "axis=0", "must come in threes", INVALID},
    {"SkipLayerNormalization", "x,x,b", "what=1", "SkipLayerNormalization has epsilon", INVALID},
};

START_TEST(bad_nodes)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&cases[i]);
}
END_TEST

/* Nodes that were made bear the name of the node that they were made of; outputs keep theirs. */
START_TEST(names_are_kept)
{
    onnx_model m = onnx_create();
    add_inputs(&m);
    add_node(&m, "BiasGelu", "x,b", "");
    ir_module *module = import_ok(&m);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_int_eq(module->main->n_nodes, 2);
    IR_FOR_EACH_NODE (node, module->main) {
        ck_assert_str_eq(node->desc.domain, "");
        ck_assert_str_eq(node->desc.name, "the_BiasGelu");
    }
    ck_assert_str_eq(module->main->outputs[0].value->name, "y");
    ck_assert_int_eq(module->main->outputs[0].value->type.rank, 3);
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

/* LayerNormalization of opset 16; the status of inference. */
static grt_status infer_old_norm(grt_dtype x, grt_dtype scale, grt_dtype bias, grt_dtype *out)
{
    onnx_model m = onnx_create();
    ir_module *module = NULL;
    m.proto->opset_import[0]->version = 16;
    onnx_input(&m, m.graph, "x", x, "2,3,8");
    onnx_input(&m, m.graph, "scale", scale, "8");
    onnx_input(&m, m.graph, "bias", bias, "8");
    onnx_attr_int(&m, onnx_node(&m, m.graph, "LayerNormalization", "x,scale,bias", "y,mean"), "unknown",
                  1); /* is left out, as of all of ai.onnx */
    onnx_output(&m, m.graph, "y");
    onnx_output(&m, m.graph, "mean");
    grt_status status = onnx_import(&m, &module);
    if (status == GRT_OK)
        status = ir_infer(module);
    if (status == GRT_OK) {
        ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
        ck_assert_str_eq(module->main->outputs[0].value->name, "y");
        *out = module->main->outputs[0].value->type.dtype;
        if (x == scale)
            ck_assert_int_eq(module->main->n_nodes, 1);
    }
    ir_module_release(module);
    onnx_release(&m);
    return status;
}

/* Its result has the scale's type, whatever that of its input. */
START_TEST(old_norms_have_two_types)
{
    static const grt_dtype floats[] = {GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, GRT_DTYPE_DOUBLE,
                                       GRT_DTYPE_BFLOAT16};
    grt_dtype out;
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            ck_assert_msg(infer_old_norm(floats[i], floats[k], floats[k], &out) == GRT_OK, "%s",
                          grt_last_error());
            ck_assert_int_eq(out, floats[k]);
        }
    ck_assert_int_eq(infer_old_norm(GRT_DTYPE_INT32, GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT, &out), INVALID);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "input 0, 'x', is int32; it must be floating point"));
    ck_assert_int_eq(infer_old_norm(GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT, GRT_DTYPE_FLOAT16, &out), INVALID);
    ck_assert_ptr_nonnull(strstr(grt_last_error(), "input 2, 'bias', is float16; it must be float32"));
}
END_TEST

/* A value that the rewrite uses itself and hands out as well. */
START_TEST(outputs_are_values_of_their_own)
{
    onnx_model m = onnx_create();
    add_inputs(&m);
    Onnx__NodeProto *node = add_node(&m, "SkipLayerNormalization", "x,x,b", "");
    char *out[] = {(char *)"y", (char *)"", (char *)"", (char *)"sum"};
    node->output = out;
    node->n_output = 4;
    onnx_output(&m, m.graph, "sum");
    ir_module *module = import_ok(&m);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_str_eq(module->main->outputs[1].value->name, "sum");
    ir_module_release(module);
    onnx_release(&m);
}
END_TEST

/* A row is rewritten or executed; com.microsoft is executed only where a device without a kernel can do with
 * an expansion. */
START_TEST(rows_have_one_way_to_run)
{
    for (size_t i = 0; op_at(i); i++) {
        const op_row *row = op_at(i);
        ck_assert_msg(!row->rewrite || (!row->infer && !row->expand && !row->upgrade), "%s", row->name);
        ck_assert_msg(row->rewrite || row->expand || strcmp(row->domain, "com.microsoft") != 0, "%s",
                      row->name);
    }
}
END_TEST

Suite *suite_test_foreign(void);
Suite *suite_test_foreign(void)
{
    Suite *suite = suite_create("foreign");
    const TTest *const tests[] = {bad_nodes,
                                  names_are_kept,
                                  outputs_are_values_of_their_own,
                                  old_norms_have_two_types,
                                  rows_have_one_way_to_run,
                                  NULL};
    import_add(suite, "all", tests);
    return suite;
}

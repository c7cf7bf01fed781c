/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding; graphrt::RotaryEmbeddings, which rotates queries and keys; and graphrt::RotaryEmbedding,
 * which rotates them where values lie beside them. */
#include "graph/ir/ir.h"
#include "graph/ops/heads.h"

static const op_attr rotary_attrs[] = {
    {"interleaved", GRT_ATTR_INT, false},
    {"num_heads", GRT_ATTR_INT, false},
    {"rotary_embedding_dim", GRT_ATTR_INT, false},
    {0},
};

static const op_attr rotary_pair_attrs[] = {
    {"interleaved", GRT_ATTR_INT, false},
    {"kv_num_heads", GRT_ATTR_INT, false},
    {"q_num_heads", GRT_ATTR_INT, false},
    {"rotary_embedding_dim", GRT_ATTR_INT, false},
    {0},
};

static const op_attr rotary_joined_attrs[] = {
    {"interleaved", GRT_ATTR_INT, false},
    {"num_heads", GRT_ATTR_INT, false},
    {"rotary_embedding_dim", GRT_ATTR_INT, false},
    {"rotated_heads", GRT_ATTR_INT, false},
    {0},
};

/* Input i, whose heads `attr` counts. */
static grt_status check_rotated(infer *inf, int32_t i, const char *attr)
{
    const ir_type *x = inf->in[i];
    heads split;
    int64_t size, rotated = grt_attr_int(inf->desc, "rotary_embedding_dim", 0);
    if (x->rank >= 0) {
        GRT_TRY(heads_split(inf, i, attr, &split));
        if (infer_const(inf, split.size, &size) &&
            (rotated < 0 || rotated > size || (rotated ? rotated : size) % 2))
            return infer_fail(
                inf, "attribute rotary_embedding_dim is %lld; it must be even and at most the head size %lld",
                (long long)rotated, (long long)size);
    }
    return GRT_OK;
}

static grt_status check_caches(infer *inf)
{
    int32_t want = infer_has(inf, 3) ? 2 : 3;
    for (int32_t i = 1; i <= 2; i++)
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != want)
            return infer_fail(inf, "input %d has rank %d; it must be %d (%s position_ids)", i,
                              inf->in[i]->rank, want, want == 2 ? "with" : "without");
    return GRT_OK;
}

static grt_status infer_rotary(infer *inf)
{
    GRT_TRY(check_rotated(inf, 0, "num_heads"));
    GRT_TRY(check_caches(inf));
    return infer_same_as_first(inf);
}

/* graphrt::RotaryEmbeddings(q, cos, sin, ids, k): both by the angles of the same positions. */
static grt_status infer_rotary_pair(infer *inf)
{
    enum { Q = 0, K = 4 };
    if (!infer_has(inf, K))
        return infer_fail(inf, "input %d is missing", K);
    GRT_TRY(check_rotated(inf, Q, "q_num_heads"));
    GRT_TRY(check_rotated(inf, K, "kv_num_heads"));
    GRT_TRY(check_caches(inf));
    if (inf->in[K]->dtype != inf->in[Q]->dtype)
        return infer_fail(inf, "inputs %d and %d are of different types", Q, K);
    inf->out[0] = *inf->in[Q];
    inf->out[1] = *inf->in[K];
    return GRT_OK;
}

/* graphrt::RotaryEmbedding(x, cos, sin, ids): x is [batch, sequence, num_heads * size], of which the first
 * rotated_heads are rotated. */
static grt_status infer_rotary_joined(infer *inf)
{
    const int64_t all = grt_attr_int(inf->desc, "num_heads", 0),
                  rotated = grt_attr_int(inf->desc, "rotated_heads", 0);
    if (inf->in[0]->rank != 3 || rotated < 0 || rotated > all)
        return infer_fail(inf,
                          "input 0 has rank %d, and %lld of %lld heads are rotated; it must be 3, and they "
                          "must be heads that there are",
                          inf->in[0]->rank, (long long)rotated, (long long)all);
    return infer_rotary(inf);
}

/* [batch, 1, 1], batch as in x. */
static ir_value *batch_shape(ir_node *node)
{
    ir_graph *graph = node->graph;
    const char *name = node->desc.name;
    ir_value *ones = ir_constant_ints(graph, name, (int64_t[]){1, 1}, 2);
    ir_node *batch = ir_node_create(graph, node, "", "Shape", name, 1, &node->in[0].value, 1);
    if (!ones || !batch)
        return NULL;
    ir_attr_set_int(batch, "start", 0);
    ir_attr_set_int(batch, "end", 1);
    ir_node *shape =
        ir_node_create(graph, node, "", "Concat", name, 2, (ir_value *[]){batch->out[0], ones}, 1);
    if (shape)
        ir_attr_set_int(shape, "axis", 0);
    return shape ? shape->out[0] : NULL;
}

/* Exporters give one row of angles for all of a batch, as ONNX's function body would take it; kernels want a
 * row for each. */
static grt_status expand_rotary(ir_node *node, bool *out_done)
{
    const grt_dims *dims = node->graph->module->dims;
    const ir_type *x = &node->in[0].value->type;
    *out_done = false;
    for (int32_t i = 1; i <= 2 && !ir_in(node, 3) && x->rank > 0; i++) {
        const ir_type *cache = &node->in[i].value->type;
        if (cache->rank != 3 || !grt_dim_equals(dims, cache->dims[0], 1) ||
            grt_dim_equals(dims, x->dims[0], 1))
            continue;
        ir_value *shape = batch_shape(node);
        ir_node *wide = shape ? ir_node_create(node->graph, node, "", "Expand", node->desc.name, 2,
                                               (ir_value *[]){node->in[i].value, shape}, 1)
                              : NULL;
        if (!wide)
            return grt_fail_memory(0);
        ir_node_set_input(node, i, wide->out[0]);
        *out_done = true;
    }
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "RotaryEmbedding",
     .since = 23,
     .min_in = 3,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = rotary_attrs,
     .flags = OP_EXPANDS_ALWAYS,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .infer = infer_rotary,
     .expand = expand_rotary},
    {.domain = "graphrt",
     .name = "RotaryEmbeddings",
     .since = 1,
     .min_in = 3,
     .max_in = 5,
     .min_out = 2,
     .max_out = 2,
     .attrs = rotary_pair_attrs,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .infer = infer_rotary_pair},
    {.domain = "graphrt",
     .name = "RotaryEmbedding",
     .since = 1,
     .min_in = 3,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = rotary_joined_attrs,
     .precision = OP_NARROW,
     .cost = OP_COST_COMPUTE,
     .infer = infer_rotary_joined},
};
OP_TABLE(rotary, rows);

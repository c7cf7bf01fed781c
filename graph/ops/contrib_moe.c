/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: mixtures of experts, MoE and QMoE. Every expert computes every token, and the router's
 * weights, 0 for those that were not chosen, add the results up: no operator of ai.onnx sends rows to
 * experts. */
#include "graph/ops/contrib_nbits.h"
#include "graph/ops/foreign.h"

#include <string.h>

#define SHARED_ATTRS                                                                                \
    {"activation_alpha", GRT_ATTR_FLOAT, false}, {"activation_beta", GRT_ATTR_FLOAT, false},        \
        {"activation_type", GRT_ATTR_STRING, false}, {"k", GRT_ATTR_INT, false},                    \
        {"normalize_routing_weights", GRT_ATTR_INT, false}, {"swiglu_fusion", GRT_ATTR_INT, false}, \
        {"swiglu_limit", GRT_ATTR_FLOAT, false},                                                    \
    {                                                                                               \
        "use_sparse_mixer", GRT_ATTR_INT, false                                                     \
    }
static const op_attr moe_attrs[] = {SHARED_ATTRS, {0}};
static const op_attr quantized_attrs[] = {SHARED_ATTRS,
                                          {"accuracy_level", GRT_ATTR_INT, false},
                                          {"block_size", GRT_ATTR_INT, false},
                                          {"expert_weight_bits", GRT_ATTR_INT, false},
                                          {"fc1_expert_weight_bits", GRT_ATTR_INT, false},
                                          {"fc2_expert_weight_bits", GRT_ATTR_INT, false},
                                          {"fc3_expert_weight_bits", GRT_ATTR_INT, false},
                                          {"quant_type", GRT_ATTR_STRING, false},
                                          {"weights_prepacked", GRT_ATTR_INT, false},
                                          {0}};

/* One layer of all experts: weights [experts, out, in] and, or NULL, biases [experts, out]. */
typedef struct layer {
    ir_value *weights, *bias;
} layer;

typedef struct mixture {
    ir_node *node;
    grt_dtype dtype;
    layer fc1, fc2, fc3;      /* fc3.weights may be NULL */
    ir_value *router_weights; /* NULL: what the router's scores say */
    double alpha, beta;
    const char *activation;
    int64_t fusion;
} mixture;

static grt_status contrib_moe_begin(ir_node *node, mixture *m)
{
    *m = (mixture){.node = node,
                   .alpha = (double)grt_attr_float(&node->desc, "activation_alpha", 1),
                   .beta = (double)grt_attr_float(&node->desc, "activation_beta", 0),
                   .activation = grt_attr_string(&node->desc, "activation_type", "relu"),
                   .fusion = grt_attr_int(&node->desc, "swiglu_fusion", 0)};
    GRT_TRY(foreign_need(node, 0, "input"));
    GRT_TRY(foreign_need(node, 1, "router_probs"));
    m->dtype = ir_in(node, 0)->type.dtype;
    if (!m->dtype)
        return foreign_unsupported(node, "the dtype of input 0 must be known to the compiler");
    if (grt_attr_int(&node->desc, "use_sparse_mixer", 0))
        return foreign_unsupported(node, "use_sparse_mixer is not supported");
    if (grt_attr_int(&node->desc, "k", 1) < 1)
        return foreign_invalid(node, "attribute k is %lld; it must be positive",
                               (long long)grt_attr_int(&node->desc, "k", 1));
    return GRT_OK;
}

/* [experts, tokens, in] or [1, tokens, in] to [experts, tokens, out] */
static ir_value *through(const mixture *m, const layer *l, ir_value *x)
{
    static const int64_t swap[] = {0, 2, 1}, row[] = {1};
    ir_value *y = put2(m->node, "MatMul", x, put_transpose(m->node, l->weights, swap, 3));
    return l->bias ? put2(m->node, "Add", y, put_unsqueeze(m->node, l->bias, row, 1)) : y;
}

/* gate * sigmoid(alpha * gate) * (linear + beta), both clamped */
static ir_value *swiglu(const mixture *m, ir_value *gate, ir_value *line)
{
    ir_node *node = m->node;
    const grt_attr *limit = grt_attr_find(&node->desc, "swiglu_limit");
    if (limit) {
        ir_value *most = put_scalar(node, m->dtype, (double)limit->f);
        gate = put3(node, "Clip", gate, NULL, most);
        line = put3(node, "Clip", line, put_scalar(node, m->dtype, -(double)limit->f), most);
    }
    ir_value *swish = with_float(put1(node, "Swish", gate), "alpha", m->alpha);
    return put2(node, "Mul", swish, put2(node, "Add", line, put_scalar(node, m->dtype, m->beta)));
}

/* The two parts of a layer that was fused: one behind the other, or by turns. */
static ir_value *fused_swiglu(const mixture *m, ir_value *both)
{
    static const int64_t pairs[] = {0, 0, -1, 2};
    ir_node *node = m->node;
    if (m->fusion == 1) {
        ir_value *apart = put_reshape(node, both, pairs, 4);
        return swiglu(m, put_item(node, apart, 3, 0), put_item(node, apart, 3, 1));
    }
    ir_node *split = ir_node_create(node->graph, node, "", "Split", node->desc.name, 1, &both, 2);
    if (!split)
        return NULL;
    ir_attr_set_int(split, "axis", -1);
    ir_attr_set_int(split, "num_outputs", 2);
    return swiglu(m, split->out[0], split->out[1]);
}

static grt_status activated(const mixture *m, ir_value *x, ir_value **out)
{
    static const char *const names[][2] = {
        {"relu", "Relu"}, {"gelu", "Gelu"}, {"silu", "Swish"}, {"identity", "Identity"}};
    ir_node *node = m->node;
    ir_value *first = through(m, &m->fc1, x), *third = m->fc3.weights ? through(m, &m->fc3, x) : NULL;
    if (!strcmp(m->activation, "swiglu")) {
        if (!m->fusion && !third)
            return foreign_invalid(node, "swiglu without fusion needs the weights of fc3");
        *out = m->fusion ? fused_swiglu(m, first) : swiglu(m, first, third);
        return GRT_OK;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(m->activation, names[i][0]) != 0)
            continue;
        *out = put1(node, names[i][1], first);
        if (third)
            *out = put2(node, "Mul", *out, third);
        return GRT_OK;
    }
    return foreign_invalid(
        node, "attribute activation_type is '%s'; it must be relu, gelu, silu, swiglu or identity",
        m->activation);
}

/* [experts, tokens, 1]: 0 for the experts that a token does not go to. */
static ir_value *shares(const mixture *m)
{
    static const int64_t swap[] = {1, 0}, last[] = {-1}, behind[] = {2};
    ir_node *node = m->node;
    const int64_t k = grt_attr_int(&node->desc, "k", 1);
    ir_value *scores = ir_in(node, 1);
    ir_value *p = with_int(put1(node, "Softmax", scores), "axis", -1);
    ir_value *in[] = {p, put_ints(node, &k, 1)};
    ir_node *best = ir_node_create(node->graph, node, "", "TopK", node->desc.name, 2, in, 2);
    if (!best)
        return NULL;
    ir_value *which = best->out[1], *share = best->out[0];
    if (m->router_weights)
        share = with_int(put2(node, "GatherElements", m->router_weights, which), "axis", -1);
    if (grt_attr_int(&node->desc, "normalize_routing_weights", 0))
        share = put2(node, "Div", share, put_reduce(node, "ReduceSum", share, last, 1));
    ir_value *nothing = put2(node, "Mul", p, put_scalar(node, m->dtype, 0));
    ir_value *all = with_int(put3(node, "ScatterElements", nothing, which, share), "axis", -1);
    return put_unsqueeze(node, put_transpose(node, all, swap, 2), behind, 1);
}

static grt_status contrib_moe_mix(const mixture *m)
{
    static const int64_t front[] = {0};
    ir_node *node = m->node;
    ir_value *input = ir_in(node, 0), *width = put_dim(node, input, -1);
    ir_value *flat = put_concat(node, 0, 2, (ir_value *[]){put_ints(node, (int64_t[]){-1}, 1), width});
    ir_value *x = put_unsqueeze(node, put2(node, "Reshape", input, flat), front, 1), *hidden;
    GRT_TRY(activated(m, x, &hidden));
    ir_value *each = put2(node, "Mul", through(m, &m->fc2, hidden), shares(m));
    ir_value *axes = put_ints(node, front, 1);
    ir_value *sum = with_int(put2(node, "ReduceSum", each, axes), "keepdims", 0);
    return foreign_done1(node, put2(node, "Reshape", sum, put1(node, "Shape", input)));
}

/* (input, router_probs, fc1, fc1_bias, fc2, fc2_bias, fc3, fc3_bias) */
static grt_status rewrite_moe(ir_node *node)
{
    mixture m;
    GRT_TRY(contrib_moe_begin(node, &m));
    GRT_TRY(foreign_need(node, 2, "fc1_experts_weights"));
    GRT_TRY(foreign_need(node, 4, "fc2_experts_weights"));
    m.fc1 = (layer){ir_in(node, 2), ir_in(node, 3)};
    m.fc2 = (layer){ir_in(node, 4), ir_in(node, 5)};
    m.fc3 = (layer){ir_in(node, 6), ir_in(node, 7)};
    return contrib_moe_mix(&m);
}

/* Weights [experts, out, in * bits / 8] with scales [experts, out], or [experts, out, blocks]; zero points
 * are packed along their last dim. */
static grt_status dequantized(const mixture *m, int32_t weights, int32_t zero, const char *bits_attr,
                              ir_value **out)
{
    static const int64_t last[] = {-1}, blocks[] = {0, 0, -1};
    ir_node *node = m->node;
    const int64_t bits = grt_attr_int(&node->desc, bits_attr,
                                      grt_attr_int(&node->desc, "expert_weight_bits", 4)),
                  block = grt_attr_int(&node->desc, "block_size", 0);
    if (bits != 2 && bits != 4 && bits != 8)
        return foreign_unsupported(node, "weights of %lld bits are not supported; 2, 4 and 8 are",
                                   (long long)bits);
    GRT_TRY(foreign_need(node, weights, "weights"));
    GRT_TRY(foreign_need(node, weights + 1, "scales"));
    if (ir_in(node, weights)->type.dtype != GRT_DTYPE_UINT8)
        return foreign_unsupported(node, "weights of another type than uint8 are not supported");
    GRT_TRY(foreign_need_rank(node, weights + 1, "scales"));
    const bool blocked = foreign_rank(node, weights + 1) == 3;
    if (blocked && block < 16)
        return foreign_invalid(node, "attribute block_size is %lld; scales per block need it, at least 16",
                               (long long)block);
    const int64_t apart[] = {0, 0, -1, block};
    ir_value *q = put_cast(node, nbits_unpack(node, ir_in(node, weights), bits, 2), m->dtype);
    ir_value *scale = put_unsqueeze(node, put_cast(node, ir_in(node, weights + 1), m->dtype), last, 1);
    ir_value *middle = put_scalar(node, m->dtype, (double)(1 << (bits - 1)));
    if (ir_in(node, zero)) {
        ir_value *numbers = nbits_unpack(node, ir_in(node, zero), bits, blocked ? 2 : 1);
        const int64_t axis = blocked ? 2 : 1;
        numbers = put_slice(node, numbers, axis, put_ints(node, (int64_t[]){0}, 1),
                            put_dim(node, ir_in(node, weights + 1), axis));
        middle = put_unsqueeze(node, put_cast(node, numbers, m->dtype), last, 1);
    }
    if (blocked)
        q = put_reshape(node, q, apart, 4);
    *out = put2(node, "Mul", put2(node, "Sub", q, middle), scale);
    if (blocked)
        *out = put_reshape(node, *out, blocks, 3);
    return GRT_OK;
}

/* (input, router_probs, fc1, scales, bias, fc2, scales, bias, fc3, scales, bias, zero points of the three,
 * router_weights, ...) */
static grt_status rewrite_quantized(ir_node *node)
{
    mixture m;
    GRT_TRY(contrib_moe_begin(node, &m));
    if (strcmp(grt_attr_string(&node->desc, "quant_type", "int"), "int") != 0 ||
        grt_attr_int(&node->desc, "weights_prepacked", -1) > 0)
        return foreign_unsupported(
            node, "quant_type must be int, and the weights not packed for one kind of device");
    for (int32_t i = 15; i < node->n_in; i++)
        if (ir_in(node, i))
            return foreign_unsupported(node, "input %d, for floats of 4 and 8 bits, is not supported", i);
    GRT_TRY(dequantized(&m, 2, 11, "fc1_expert_weight_bits", &m.fc1.weights));
    GRT_TRY(dequantized(&m, 5, 12, "fc2_expert_weight_bits", &m.fc2.weights));
    if (ir_in(node, 8))
        GRT_TRY(dequantized(&m, 8, 13, "fc3_expert_weight_bits", &m.fc3.weights));
    m.fc1.bias = ir_in(node, 4);
    m.fc2.bias = ir_in(node, 7);
    m.fc3.bias = ir_in(node, 10);
    m.router_weights = ir_in(node, 14);
    return contrib_moe_mix(&m);
}

static const op_row rows[] = {
    FOREIGN(MS, "MoE", 5, 8, 1, 1, moe_attrs, rewrite_moe),
    FOREIGN(MS, "QMoE", 6, 21, 1, 1, quantized_attrs, rewrite_quantized),
};
OP_TABLE(contrib_moe, rows);

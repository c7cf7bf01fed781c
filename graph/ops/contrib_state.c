/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: parts of decoders with recurrent state (gated delta networks, Mamba). */
#include "graph/ops/foreign.h"

#include <string.h>

static const op_attr linear_attrs[] = {
    {"chunk_size", GRT_ATTR_INT, false},
    {"kv_num_heads", GRT_ATTR_INT, true},
    {"q_num_heads", GRT_ATTR_INT, true},
    {"scale", GRT_ATTR_FLOAT, false},
    {"state_window", GRT_ATTR_INT, false},
    {"update_rule", GRT_ATTR_STRING, false},
    {0},
};
static const op_attr conv_attrs[] = {
    {"activation", GRT_ATTR_STRING, false}, {"channels_last", GRT_ATTR_INT, false},
    {"dilation", GRT_ATTR_INT, false},      {"ndim", GRT_ATTR_INT, false},
    {"state_window", GRT_ATTR_INT, false},  {0},
};
static const op_attr norm_attrs[] = {
    {"activation", GRT_ATTR_STRING, false}, {"epsilon", GRT_ATTR_FLOAT, false}, {0}};
static const op_attr branch_attrs[] = {
    {"epsilon", GRT_ATTR_FLOAT, false}, {"num_branches", GRT_ATTR_INT, false}, {0}};
static const op_attr silu_attrs[] = {{"alpha", GRT_ATTR_FLOAT, false}, {0}};

/* Attributes whose other values ai.onnx's operator does not have. */
static grt_status only(const ir_node *node, const char *name, int64_t value)
{
    const int64_t found = grt_attr_int(&node->desc, name, value);
    return found == value ? GRT_OK
                          : foreign_unsupported(node, "attribute %s is %lld; supported is %lld", name,
                                                (long long)found, (long long)value);
}

/* A node of ai.onnx with this node's inputs, in two outputs. */
static ir_node *namesake(ir_node *node, int32_t n, ir_value *const *in)
{
    return ir_node_create(node->graph, node, "", node->desc.op, node->desc.name, n, in, 2);
}

static grt_status contrib_state_rewrite_linear(ir_node *node)
{
    static const char *const same[] = {"chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"};
    GRT_TRY(only(node, "state_window", 0));
    ir_value *in[6];
    for (int32_t i = 0; i < 6; i++)
        in[i] = ir_in(node, i);
    ir_node *made = namesake(node, node->n_in, in);
    if (!made)
        return grt_fail_memory(0);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        with_attr_of(made->out[0], node, same[i]);
    return foreign_done(node, 2, made->out);
}

static grt_status contrib_state_rewrite_conv(ir_node *node)
{
    static const int64_t swap[] = {0, 2, 1};
    const bool last = grt_attr_int(&node->desc, "channels_last", 0) != 0;
    GRT_TRY(only(node, "state_window", 0));
    GRT_TRY(only(node, "dilation", 1));
    GRT_TRY(only(node, "ndim", 1));
    ir_value *in[] = {ir_in(node, 0), ir_in(node, 1), ir_in(node, 2), ir_in(node, 3)};
    for (int32_t i = 0; last && i < 4; i += 3)
        in[i] = in[i] ? put_transpose(node, in[i], swap, 3) : NULL;
    ir_node *made = namesake(node, 4, in);
    if (!made)
        return grt_fail_memory(0);
    with_attr_of(made->out[0], node, "activation");
    ir_value *out[] = {made->out[0], made->out[1]};
    for (int32_t i = 0; last && i < 2; i++)
        out[i] = put_transpose(node, out[i], swap, 3);
    return foreign_done(node, 2, out);
}

/* x / sqrt(mean(x^2) + epsilon) over the last dim. */
static ir_value *unit_rows(ir_node *node, ir_value *x)
{
    static const int64_t last[] = {-1};
    const double epsilon = (double)grt_attr_float(&node->desc, "epsilon", 1e-6f);
    ir_value *mean = put_reduce(node, "ReduceMean", put2(node, "Mul", x, x), last, 1);
    ir_value *size = put2(node, "Add", mean, put_scalar(node, GRT_DTYPE_FLOAT, epsilon));
    return put2(node, "Div", x, put1(node, "Sqrt", size));
}

/* [..., n * size] as [..., n, size], or back with size 0; one of n and size is -1. */
static ir_value *regroup(ir_node *node, ir_value *x, int32_t rank, int64_t n, int64_t size)
{
    int64_t dims[GRT_MAX_RANK + 1] = {0};
    dims[rank - 1] = n;
    dims[rank] = size;
    return put_reshape(node, x, dims, size ? rank + 1 : rank);
}

static grt_status contrib_state_need_dtype(const ir_node *node, grt_dtype *out)
{
    GRT_TRY(foreign_need_rank(node, 0, "the input"));
    *out = ir_in(node, 0)->type.dtype;
    if (!*out)
        return foreign_unsupported(node, "the dtype of input 0 must be known to the compiler");
    return foreign_rank(node, 0) > 0 && foreign_rank(node, 0) < GRT_MAX_RANK
               ? GRT_OK
               : foreign_invalid(node, "the input has rank %d", foreign_rank(node, 0));
}

/* (x, scale, gate): rows of scale's length are normalised; all in float32. */
static grt_status rewrite_gated_norm(ir_node *node)
{
    const char *activation = grt_attr_string(&node->desc, "activation", "silu");
    const bool sigmoid = !strcmp(activation, "sigmoid");
    int64_t size;
    grt_dtype dtype;
    GRT_TRY(contrib_state_need_dtype(node, &dtype));
    if (!sigmoid && strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0)
        return foreign_invalid(node, "attribute activation is '%s'; it must be silu, swish or sigmoid",
                               activation);
    if (!foreign_dim(ir_in(node, 1), 0, &size) || size < 1)
        return foreign_unsupported(node, "the length of input 1 (scale) must be known to the compiler");
    const int32_t rank = foreign_rank(node, 0);
    ir_value *x = regroup(node, put_cast(node, ir_in(node, 0), GRT_DTYPE_FLOAT), rank, -1, size);
    x = put2(node, "Mul", unit_rows(node, x), put_cast(node, ir_in(node, 1), GRT_DTYPE_FLOAT));
    ir_value *gate =
        put1(node, sigmoid ? "Sigmoid" : "Swish", put_cast(node, ir_in(node, 2), GRT_DTYPE_FLOAT));
    ir_value *y = put2(node, "Mul", regroup(node, x, rank, -1, 0), gate);
    return foreign_done1(node, with_int(put1(node, "Cast", y), "to", dtype));
}

/* (x, scale): each branch of [..., branches, size], or of [..., branches * size], for itself. */
static grt_status rewrite_branch_norm(ir_node *node)
{
    const int64_t branches = grt_attr_int(&node->desc, "num_branches", 0);
    int64_t size, length;
    grt_dtype dtype;
    GRT_TRY(contrib_state_need_dtype(node, &dtype));
    const int32_t rank = foreign_rank(node, 0);
    ir_value *x = put_cast(node, ir_in(node, 0), GRT_DTYPE_FLOAT), *scale = ir_in(node, 1);
    if (!foreign_dim(ir_in(node, 0), -1, &size) || (branches && (branches < 0 || size % branches)))
        return foreign_unsupported(
            node, "the last dim of the input must be known to the compiler, and a multiple of num_branches");
    size = branches ? size / branches : size;
    x = unit_rows(node, branches ? regroup(node, x, rank, -1, size) : x);
    if (scale && scale->type.rank == 1 && foreign_dim(scale, 0, &length) && length != size)
        scale = put_reshape(node, scale, (int64_t[]){-1, size}, 2);
    if (scale)
        x = put2(node, "Mul", x, put_cast(node, scale, GRT_DTYPE_FLOAT));
    if (branches)
        x = regroup(node, x, rank, -1, 0);
    return foreign_done1(node, with_int(put1(node, "Cast", x), "to", dtype));
}

/* (a, dt_bias, decay_scale, b) -> (decay, beta), in float32 */
static grt_status rewrite_gate(ir_node *node)
{
    const grt_dtype wide = GRT_DTYPE_FLOAT;
    grt_dtype dtype;
    GRT_TRY(contrib_state_need_dtype(node, &dtype));
    if (foreign_wants(node, 1))
        GRT_TRY(foreign_need(node, 3, "b"));
    ir_value *sum = put2(node, "Add", put_cast(node, ir_in(node, 0), wide), ir_in(node, 1));
    ir_value *decay = put2(node, "Mul", put1(node, "Softplus", sum), ir_in(node, 2));
    ir_value *out[] = {with_int(put1(node, "Cast", decay), "to", dtype), NULL};
    if (foreign_wants(node, 1))
        out[1] = put1(node, "Sigmoid", ir_in(node, 3));
    return foreign_done(node, 2, out);
}

/* (x, scale): SiLU of x times the scale, or times alpha */
static grt_status rewrite_scaled_silu(ir_node *node)
{
    grt_dtype dtype;
    GRT_TRY(contrib_state_need_dtype(node, &dtype));
    ir_value *scale = ir_in(node, 1);
    scale = scale ? put_cast(node, put_reshape(node, scale, NULL, 0), dtype)
                  : put_scalar(node, dtype, (double)grt_attr_float(&node->desc, "alpha", 1));
    return foreign_done1(node, put1(node, "Swish", put2(node, "Mul", ir_in(node, 0), scale)));
}

/* (x, y, gate): x + y * gate */
static grt_status rewrite_gated_add(ir_node *node)
{
    return foreign_done1(
        node, put2(node, "Add", ir_in(node, 0), put2(node, "Mul", ir_in(node, 1), ir_in(node, 2))));
}

static const op_row rows[] = {
    FOREIGN(MS, "LinearAttention", 3, 6, 2, 2, linear_attrs, contrib_state_rewrite_linear),
    FOREIGN(MS, "CausalConvWithState", 2, 4, 2, 2, conv_attrs, contrib_state_rewrite_conv),
    FOREIGN(MS, "GatedRMSNorm", 3, 3, 1, 1, norm_attrs, rewrite_gated_norm),
    FOREIGN(MS, "BranchwiseRMSNorm", 1, 2, 1, 1, branch_attrs, rewrite_branch_norm),
    FOREIGN(MS, "LinearAttentionGate", 3, 4, 1, 2, NULL, rewrite_gate),
    FOREIGN(MS, "ScaledSiLU", 1, 2, 1, 1, silu_attrs, rewrite_scaled_silu),
    FOREIGN(MS, "GatedAdd", 3, 3, 1, 1, NULL, rewrite_gated_add),
};
OP_TABLE(contrib_state, rows);

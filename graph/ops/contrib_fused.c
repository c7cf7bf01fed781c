/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: operators that stand for several others of com.microsoft, or reorder one of ai.onnx. */
#include "graph/ops/foreign.h"

#include <string.h>

static const op_attr mlp_attrs[] = {
    {"K", GRT_ATTR_INT, true},
    {"N", GRT_ATTR_INT, true},
    {"accuracy_level", GRT_ATTR_INT, false},
    {"activation", GRT_ATTR_STRING, true},
    {"bits", GRT_ATTR_INT, false},
    {"block_size", GRT_ATTR_INT, true},
    {"epsilon", GRT_ATTR_FLOAT, false},
    {0},
};
static const op_attr qkv_attrs[] = {
    {"K", GRT_ATTR_INT, true},          {"Nkv", GRT_ATTR_INT, true},
    {"Nq", GRT_ATTR_INT, true},         {"accuracy_level", GRT_ATTR_INT, false},
    {"bits", GRT_ATTR_INT, false},      {"block_size", GRT_ATTR_INT, true},
    {"epsilon", GRT_ATTR_FLOAT, false}, {0},
};
static const op_attr unfold_attrs[] = {
    {"dim", GRT_ATTR_INT, false}, {"size", GRT_ATTR_INT, true}, {"step", GRT_ATTR_INT, false}, {0}};
static const op_attr transposed_attrs[] = {
    {"auto_pad", GRT_ATTR_STRING, false},
    {"dilations", GRT_ATTR_INTS, false},
    {"group", GRT_ATTR_INT, false},
    {"kernel_shape", GRT_ATTR_INTS, false},
    {"output_padding", GRT_ATTR_INTS, false},
    {"strides", GRT_ATTR_INTS, false},
    {0},
};
static const op_attr mix_attrs[] = {
    {"num_branches", GRT_ATTR_INT, false}, {"reduction_scale", GRT_ATTR_FLOAT, false}, {0}};

/* The input, with the sum and the norm before it that the node may have: (A, skip, norm_scale). */
static ir_value *normed(ir_node *node, ir_value **out_sum)
{
    ir_value *x = put_add(node, ir_in(node, 0), ir_in(node, 1));
    *out_sum = x;
    if (!ir_in(node, 2))
        return x;
    const double epsilon = (double)grt_attr_float(&node->desc, "epsilon", 1e-5f);
    return with_float(with_int(put2(node, "RMSNormalization", x, ir_in(node, 2)), "axis", -1), "epsilon",
                      epsilon);
}

/* MatMulNBits with inputs at, at + 1 and at + 2: packed weights, scales, bias. */
static ir_value *contrib_fused_product(ir_node *node, ir_value *x, int32_t at, const char *columns)
{
    ir_value *in[] = {x, ir_in(node, at), ir_in(node, at + 1), NULL, NULL, ir_in(node, at + 2)};
    ir_value *y =
        ir_node_out(ir_node_create(node->graph, node, MS, "MatMulNBits", node->desc.name, 6, in, 1));
    with_int(with_attr_of(y, node, "K"), "N", grt_attr_int(&node->desc, columns, 0));
    with_attr_of(y, node, "accuracy_level");
    return with_attr_of(with_attr_of(y, node, "bits"), node, "block_size");
}

/* (A, skip, norm_scale, gate, gate_scales, gate_bias, up, up_scales, up_bias) -> (activation(gate) * up, sum)
 */
static grt_status rewrite_mlp(ir_node *node)
{
    const char *activation = grt_attr_string(&node->desc, "activation", "");
    const bool silu = !strcmp(activation, "silu") || !strcmp(activation, "swish");
    ir_value *sum, *x = normed(node, &sum), *gate = contrib_fused_product(node, x, 3, "N");
    if (!silu && strcmp(activation, "gelu") != 0 && strcmp(activation, "relu") != 0)
        return foreign_unsupported(node, "attribute activation is '%s'; supported are silu, gelu and relu",
                                   activation);
    gate = put1(node, silu ? "Swish" : *activation == 'g' ? "Gelu" : "Relu", gate);
    return foreign_done(node, 2,
                        (ir_value *[]){put2(node, "Mul", gate, contrib_fused_product(node, x, 6, "N")), sum});
}

/* (A, skip, norm_scale, q..., k..., v...) -> (Q, K, V, sum) */
static grt_status rewrite_qkv(ir_node *node)
{
    ir_value *sum, *x = normed(node, &sum);
    ir_value *out[] = {contrib_fused_product(node, x, 3, "Nq"), contrib_fused_product(node, x, 6, "Nkv"),
                       contrib_fused_product(node, x, 9, "Nkv"), sum};
    return foreign_done(node, 4, out);
}

/* Slices of `size` elements along a dim, every `step`, in a last dim of their own. */
static grt_status rewrite_unfold(ir_node *node)
{
    GRT_TRY(foreign_need_rank(node, 0, "input"));
    const int32_t rank = foreign_rank(node, 0);
    const int64_t axis = grt_axis(grt_attr_int(&node->desc, "dim", -1), rank),
                  size = grt_attr_int(&node->desc, "size", 0), step = grt_attr_int(&node->desc, "step", 1);
    int64_t length, perm[GRT_MAX_RANK];
    if (axis < 0 || rank >= GRT_MAX_RANK || size < 1 || step < 1)
        return foreign_invalid(node, "dim, size or step is out of range");
    if (!foreign_dim(ir_in(node, 0), (int32_t)axis, &length) || length < size)
        return foreign_unsupported(node, "dim %lld must be known to the compiler, and at least size, %lld",
                                   (long long)axis, (long long)size);
    /* Indices [windows, size] give [..., windows, size, ...]. */
    ir_value *starts =
        put3(node, "Range", put_int(node, 0), put_int(node, length - size + 1), put_int(node, step));
    ir_value *indices = put2(node, "Add", put_unsqueeze(node, starts, (int64_t[]){1}, 1),
                             put_range(node, put_int(node, size)));
    ir_value *y = with_int(put2(node, "Gather", ir_in(node, 0), indices), "axis", axis);
    for (int32_t i = 0; i <= rank; i++)
        perm[i] = i <= axis ? i : i < rank ? i + 1 : axis + 1;
    return foreign_done1(node, put_transpose(node, y, perm, (size_t)rank + 1));
}

/* (x, w, pads, bias): pads as an input */
static grt_status rewrite_dynamic_pads(ir_node *node)
{
    static const char *const same[] = {"auto_pad",     "dilations",      "group",
                                       "kernel_shape", "output_padding", "strides"};
    const ir_value *pads = ir_in(node, 2);
    if (pads && !pads->type.data)
        return foreign_unsupported(node, "input 2 (Pads) must be constant");
    ir_value *y = put3(node, "ConvTranspose", ir_in(node, 0), ir_in(node, 1), ir_in(node, 3));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        with_attr_of(y, node, same[i]);
    if (pads)
        with_ints(y, "pads", pads->type.data->data, (size_t)grt_tensor_elements(pads->type.data));
    return foreign_done1(node, y);
}

/* Streams [..., branches * size] as [..., branches, size]; what is so already stays. */
static grt_status split_streams(ir_node *node, ir_value **out, int64_t *out_branches, int64_t *out_size)
{
    GRT_TRY(foreign_need_rank(node, 0, "streams"));
    const int32_t rank = foreign_rank(node, 0);
    const int64_t flat = grt_attr_int(&node->desc, "num_branches", 0);
    int64_t dims[GRT_MAX_RANK] = {0};
    *out = ir_in(node, 0);
    *out_branches = flat;
    if (rank < 1 || rank >= GRT_MAX_RANK || flat < 0 || !foreign_dim(*out, -1, out_size) ||
        (flat ? *out_size % flat != 0 : !foreign_dim(*out, -2, out_branches)))
        return foreign_unsupported(node, "the branches and their size must be known to the compiler");
    if (!flat)
        return GRT_OK;
    *out_size /= flat;
    dims[rank - 1] = flat;
    dims[rank] = *out_size;
    *out = put_reshape(node, *out, dims, rank + 1);
    return GRT_OK;
}

/* Gates of every form as [..., branches, 1 or size]. */
static grt_status split_gates(ir_node *node, int32_t input, int32_t rank, int64_t branches, int64_t size,
                              ir_value **out)
{
    int64_t dims[GRT_MAX_RANK] = {0}, last;
    GRT_TRY(foreign_need_rank(node, input, "gates"));
    *out = ir_in(node, input);
    if ((*out)->type.rank != rank - 1)
        return GRT_OK;
    if (!foreign_dim(*out, -1, &last) || (last != branches && last != branches * size))
        return foreign_unsupported(node, "the last dim of input %d must be known to the compiler", input);
    dims[rank - 2] = branches;
    dims[rank - 1] = last / branches;
    *out = put_reshape(node, *out, dims, rank);
    return GRT_OK;
}

/* (streams, pre_mix): the gated sum of the branches */
static grt_status rewrite_pre_mix(ir_node *node)
{
    static const int64_t branch[] = {-2};
    int64_t branches, size;
    ir_value *x, *gates;
    GRT_TRY(split_streams(node, &x, &branches, &size));
    const int32_t rank = foreign_rank(node, 0) + (grt_attr_int(&node->desc, "num_branches", 0) > 0);
    GRT_TRY(split_gates(node, 1, rank, branches, size, &gates));
    const grt_dtype dtype = ir_in(node, 0)->type.dtype;
    ir_value *sum =
        put2(node, "Mul", put_cast(node, x, GRT_DTYPE_FLOAT), put_cast(node, gates, GRT_DTYPE_FLOAT));
    sum = with_int(put2(node, "ReduceSum", sum, put_ints(node, branch, 1)), "keepdims", 0);
    const double scale = (double)grt_attr_float(&node->desc, "reduction_scale", 1);
    sum = scale == 1 ? sum : put2(node, "Mul", sum, put_scalar(node, GRT_DTYPE_FLOAT, scale));
    return foreign_done1(node, with_int(put1(node, "Cast", sum), "to", dtype));
}

/* (streams, block_output, post_mix, stream_mix): the streams, mixed by the transposed matrix if there is one,
 * and the gated output of the block for each */
static grt_status rewrite_post_mix(ir_node *node)
{
    static const int64_t branch[] = {-2};
    int64_t branches, size, swap[GRT_MAX_RANK], dims[GRT_MAX_RANK] = {0};
    ir_value *x, *gates, *mix = ir_in(node, 3);
    GRT_TRY(split_streams(node, &x, &branches, &size));
    const bool flat = grt_attr_int(&node->desc, "num_branches", 0) > 0;
    const int32_t rank = foreign_rank(node, 0) + flat;
    GRT_TRY(split_gates(node, 2, rank, branches, size, &gates));
    const grt_dtype wide = GRT_DTYPE_FLOAT, dtype = ir_in(node, 0)->type.dtype;
    x = put_cast(node, x, wide);
    for (int32_t i = 0; i < rank; i++)
        swap[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    if (mix)
        x = put2(node, "MatMul", put_transpose(node, put_cast(node, mix, wide), swap, (size_t)rank), x);
    ir_value *block = put_unsqueeze(node, put_cast(node, ir_in(node, 1), wide), branch, 1);
    ir_value *y = put2(node, "Add", x, put2(node, "Mul", put_cast(node, gates, wide), block));
    dims[rank - 2] = -1;
    y = flat ? put_reshape(node, y, dims, rank - 1) : y;
    return foreign_done1(node, with_int(put1(node, "Cast", y), "to", dtype));
}

static const op_row rows[] = {
    FOREIGN(MS, "MatMulNBitsMlp", 8, 9, 1, 2, mlp_attrs, rewrite_mlp),
    FOREIGN(MS, "MatMulNBitsQkv", 11, 12, 3, 4, qkv_attrs, rewrite_qkv),
    FOREIGN(MS, "UnfoldTensor", 1, 1, 1, 1, unfold_attrs, rewrite_unfold),
    FOREIGN(MS, "ConvTransposeWithDynamicPads", 2, 4, 1, 1, transposed_attrs, rewrite_dynamic_pads),
    FOREIGN(MS, "HyperConnectionPreMix", 2, 2, 1, 1, mix_attrs, rewrite_pre_mix),
    FOREIGN(MS, "HyperConnectionPostMix", 3, 4, 1, 1, mix_attrs, rewrite_post_mix),
};
OP_TABLE(contrib_fused, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: normalisations, with the sums that come before them; SimplifiedLayerNormalization and
 * LayerNormalization before opset 17, which are written in the domain of ai.onnx. */
#include "graph/ops/foreign.h"

static const op_attr simplified_attrs[] = {{"axis", GRT_ATTR_INT, false},
                                           {"epsilon", GRT_ATTR_FLOAT, false},
                                           {"stash_type", GRT_ATTR_INT, false},
                                           {0}};
static const op_attr skip_attrs[] = {{"epsilon", GRT_ATTR_FLOAT, false}, {0}};
static const op_attr embed_attrs[] = {
    {"epsilon", GRT_ATTR_FLOAT, false}, {"mask_index_type", GRT_ATTR_INT, false}, {0}};
static const op_attr group_attrs[] = {{"activation", GRT_ATTR_INT, true},
                                      {"channels_last", GRT_ATTR_INT, false},
                                      {"epsilon", GRT_ATTR_FLOAT, false},
                                      {"groups", GRT_ATTR_INT, true},
                                      {0}};

/* The operators below have another default than ai.onnx's. */
static double epsilon_of(const ir_node *node)
{
    return (double)grt_attr_float(&node->desc, "epsilon", 1e-12f);
}

static grt_status rewrite_simplified(ir_node *node)
{
    GRT_TRY(foreign_refuse_output(node, 1, "the inverse deviation"));
    ir_value *y = put2(node, "RMSNormalization", ir_in(node, 0), ir_in(node, 1));
    with_attr_of(with_attr_of(with_attr_of(y, node, "axis"), node, "epsilon"), node, "stash_type");
    return foreign_done1(node, y);
}

/* The narrowest that holds the numbers of both. */
static grt_dtype wider_of(grt_dtype a, grt_dtype b)
{
    return a == b ? a : a == GRT_DTYPE_DOUBLE || b == GRT_DTYPE_DOUBLE ? GRT_DTYPE_DOUBLE : GRT_DTYPE_FLOAT;
}

/* Input i has a floating type, if it is known. */
static grt_status need_floats(const ir_node *node, int32_t i, const char *what)
{
    GRT_TRY(foreign_need(node, i, what));
    const ir_value *value = ir_in(node, i);
    return !value->type.dtype || grt_dtype_in(value->type.dtype, GRT_SET_FLOATS)
               ? GRT_OK
               : foreign_invalid(node, "input %d, '%s', is %s; it must be floating point", i, value->name,
                                 grt_dtype_name(value->type.dtype));
}

/* (x, scale, bias): the scale and the bias have a type of their own, which the result has, too. */
static grt_status rewrite_old(ir_node *node)
{
    ir_value *in[] = {ir_in(node, 0), ir_in(node, 1), ir_in(node, 2)};
    GRT_TRY(need_floats(node, 0, "X"));
    GRT_TRY(need_floats(node, 1, "Scale"));
    const grt_dtype from = in[0]->type.dtype, to = in[1]->type.dtype;
    if (in[2] && in[2]->type.dtype != to)
        return foreign_invalid(node, "input 2, '%s', is %s; it must be %s like input 1, '%s'", in[2]->name,
                               grt_dtype_name(in[2]->type.dtype), grt_dtype_name(to), in[1]->name);
    const bool differ = from && to && from != to;
    for (int32_t i = 0; i < 3 && differ; i++)
        in[i] = in[i] ? put_cast(node, in[i], wider_of(from, to)) : NULL;
    ir_node *norm =
        ir_node_create(node->graph, node, "", "LayerNormalization", node->desc.name, node->n_in, in, 3);
    if (!norm)
        return grt_fail_memory(0);
    ir_attrs_copy(norm, node);
    ir_value *y = norm->out[0];
    if (differ && wider_of(from, to) != to)
        y = with_int(put1(node, "Cast", y), "to", to);
    return foreign_done(node, 3, (ir_value *[]){y, norm->out[1], norm->out[2]});
}

/* (input, skip, gamma, beta, bias) -> (output, mean, inv_std_var, sum) */
static grt_status rewrite_skip(ir_node *node)
{
    ir_value *sum = put_add(node, put2(node, "Add", ir_in(node, 0), ir_in(node, 1)), ir_in(node, 4));
    ir_value *in[] = {sum, ir_in(node, 2), ir_in(node, 3)};
    ir_node *norm = ir_node_create(node->graph, node, "", "LayerNormalization", node->desc.name, 3, in, 3);
    if (!norm)
        return grt_fail_memory(0);
    ir_attr_set_int(norm, "axis", -1);
    ir_attr_set_float(norm, "epsilon", (float)epsilon_of(node));
    return foreign_done(node, 4, (ir_value *[]){norm->out[0], norm->out[1], norm->out[2], sum});
}

/* (input, skip, gamma, bias) -> (output, mean, inv_std_var, sum) */
static grt_status rewrite_skip_simplified(ir_node *node)
{
    GRT_TRY(foreign_refuse_output(node, 1, "the mean"));
    GRT_TRY(foreign_refuse_output(node, 2, "the inverse deviation"));
    ir_value *sum = put_add(node, put2(node, "Add", ir_in(node, 0), ir_in(node, 1)), ir_in(node, 3));
    ir_value *y = with_int(put2(node, "RMSNormalization", sum, ir_in(node, 2)), "axis", -1);
    with_float(y, "epsilon", epsilon_of(node));
    return foreign_done(node, 4, (ir_value *[]){y, NULL, NULL, sum});
}

/* The positions' embeddings: of position_ids, or of 0, 1, ... to the sequence's length. */
static ir_value *position_embedding(ir_node *node)
{
    if (ir_in(node, 8))
        return put2(node, "Gather", ir_in(node, 3), ir_in(node, 8));
    return put_slice(node, ir_in(node, 3), 0, put_ints(node, (int64_t[]){0}, 1),
                     put_dim(node, ir_in(node, 0), 1));
}

/* How many words of each row the mask shows; 0 without a mask. */
static ir_value *mask_index(ir_node *node)
{
    const grt_dtype int32 = GRT_DTYPE_INT32;
    ir_value *mask = ir_in(node, 7);
    ir_value *ids = mask ? mask : ir_in(node, 0);
    ir_value *shown = put2(node, "Equal", ids, put_scalar(node, int32, 1));
    ir_value *ones = put_cast(node, shown, int32);
    ir_value *axes = put_ints(node, (int64_t[]){1}, 1);
    ir_value *count = with_int(put2(node, "ReduceSum", ones, axes), "keepdims", 0);
    return mask ? count : put2(node, "Mul", count, put_scalar(node, int32, 0));
}

/* (input_ids, segment_ids, word, position, segment, gamma, beta, mask, position_ids)
 * -> (output, mask_index, sum) */
static grt_status rewrite_embed(ir_node *node)
{
    static const int32_t needed[] = {0, 2, 3, 5, 6};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!ir_in(node, needed[i]))
            return foreign_invalid(node, "input %d is missing", needed[i]);
    if (!ir_in(node, 1) != !ir_in(node, 4))
        return foreign_invalid(node, "segment_ids and segment_embedding must be given together");
    ir_value *sum =
        put2(node, "Add", put2(node, "Gather", ir_in(node, 2), ir_in(node, 0)), position_embedding(node));
    if (ir_in(node, 1))
        sum = put2(node, "Add", sum, put2(node, "Gather", ir_in(node, 4), ir_in(node, 1)));
    ir_value *y = put3(node, "LayerNormalization", sum, ir_in(node, 5), ir_in(node, 6));
    with_float(with_int(y, "axis", -1), "epsilon", epsilon_of(node));
    return foreign_done(node, 3, (ir_value *[]){y, foreign_wants(node, 1) ? mask_index(node) : NULL, sum});
}

/* Elements of a quantised table, as floats: `which` of word, position, segment, gamma, beta. Rows are taken
 * before they are dequantised. */
static ir_value *dequantised(ir_node *node, ir_value *q, int32_t which)
{
    enum { SCALES = 8, ZERO_POINTS = 13 };
    ir_value *scale = put_reshape(node, ir_in(node, SCALES + which), NULL, 0),
             *zero = put_reshape(node, ir_in(node, ZERO_POINTS + which), NULL, 0);
    return put3(node, "DequantizeLinear", q, scale, zero);
}

/* (input_ids, segment_ids, word, position, segment, gamma, beta, mask, five scales, five zero points)
 * -> (output, mask_index) */
static grt_status rewrite_quantised_embed(ir_node *node)
{
    for (int32_t i = 0; i < 18; i++)
        if (i != 1 && i != 4 && i != 7 && i != 10 && i != 15)
            GRT_TRY(foreign_need(node, i, "of QEmbedLayerNormalization"));
    const bool segments = ir_in(node, 1) != NULL;
    if (segments != (ir_in(node, 4) != NULL) || segments != (ir_in(node, 10) != NULL) ||
        segments != (ir_in(node, 15) != NULL))
        return foreign_invalid(node,
                               "segment_ids, segment_embedding, its scale and its zero point must be given "
                               "together");
    ir_value *positions = put_slice(node, ir_in(node, 3), 0, put_ints(node, (int64_t[]){0}, 1),
                                    put_dim(node, ir_in(node, 0), 1));
    ir_value *sum =
        put2(node, "Add", dequantised(node, put2(node, "Gather", ir_in(node, 2), ir_in(node, 0)), 0),
             dequantised(node, positions, 1));
    if (segments)
        sum = put2(node, "Add", sum,
                   dequantised(node, put2(node, "Gather", ir_in(node, 4), ir_in(node, 1)), 2));
    ir_value *y = put3(node, "LayerNormalization", sum, dequantised(node, ir_in(node, 5), 3),
                       dequantised(node, ir_in(node, 6), 4));
    with_float(with_int(y, "axis", -1), "epsilon", epsilon_of(node));
    return foreign_done(node, 2, (ir_value *[]){y, foreign_wants(node, 1) ? mask_index(node) : NULL});
}

/* x is [batch, channels, height, width], or with channels last. */
static grt_status normalise_groups(ir_node *node, ir_value *x, ir_value **out)
{
    static const int64_t to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
    const bool last = grt_attr_int(&node->desc, "channels_last", 1) != 0;
    const int64_t activation = grt_attr_int(&node->desc, "activation", 0);
    if (activation < 0 || activation > 1)
        return foreign_invalid(node, "attribute activation is %lld; it must be 0 (none) or 1 (SiLU)",
                               (long long)activation);
    GRT_TRY(foreign_need(node, 0, "X"));
    const grt_dtype dtype = ir_in(node, 0)->type.dtype;
    ir_value *scale = ir_in(node, 1), *bias = ir_in(node, 2);
    if (dtype) {
        scale = put_cast(node, scale, dtype);
        bias = put_cast(node, bias, dtype);
    }
    ir_value *y =
        put3(node, "GroupNormalization", last ? put_transpose(node, x, to_first, 4) : x, scale, bias);
    with_int(y, "num_groups", grt_attr_int(&node->desc, "groups", 1));
    with_float(y, "epsilon", (double)grt_attr_float(&node->desc, "epsilon", 1e-5f));
    if (activation)
        y = put1(node, "Swish", y);
    *out = last ? put_transpose(node, y, to_last, 4) : y;
    return GRT_OK;
}

static grt_status rewrite_group(ir_node *node)
{
    ir_value *y;
    GRT_TRY(normalise_groups(node, ir_in(node, 0), &y));
    return foreign_done1(node, y);
}

/* (x, gamma, beta, skip, bias) -> (y, sum): the sum is what is normalised. */
static grt_status rewrite_skip_group(ir_node *node)
{
    static const int64_t spatial_last[] = {1, 2}, spatial_first[] = {2, 3}, all[] = {-1, 1, 1};
    const bool last = grt_attr_int(&node->desc, "channels_last", 1) != 0;
    ir_value *skip = ir_in(node, 3), *bias = ir_in(node, 4), *y;
    GRT_TRY(foreign_need_rank(node, 3, "skip"));
    if (skip->type.rank == 2)
        skip = put_unsqueeze(node, skip, last ? spatial_last : spatial_first, 2);
    ir_value *sum = put2(node, "Add", ir_in(node, 0), skip);
    if (bias)
        sum = put2(node, "Add", sum, last ? bias : put_reshape(node, bias, all, 3));
    GRT_TRY(normalise_groups(node, sum, &y));
    return foreign_done(node, 2, (ir_value *[]){y, sum});
}

static const op_row rows[] = {
    FOREIGN("", "SimplifiedLayerNormalization", 2, 2, 1, 2, simplified_attrs, rewrite_simplified),
    FOREIGN(MS, "SimplifiedLayerNormalization", 2, 2, 1, 2, simplified_attrs, rewrite_simplified),
    FOREIGN("graphrt", "OldLayerNormalization", 2, 3, 1, 3, simplified_attrs, rewrite_old),
    FOREIGN(MS, "SkipLayerNormalization", 3, 5, 1, 4, skip_attrs, rewrite_skip),
    FOREIGN(MS, "SkipSimplifiedLayerNormalization", 3, 4, 1, 4, skip_attrs, rewrite_skip_simplified),
    FOREIGN(MS, "EmbedLayerNormalization", 7, 9, 1, 3, embed_attrs, rewrite_embed),
    FOREIGN(MS, "QEmbedLayerNormalization", 18, 18, 2, 2, skip_attrs, rewrite_quantised_embed),
    FOREIGN(MS, "GroupNorm", 3, 3, 1, 1, group_attrs, rewrite_group),
    FOREIGN(MS, "SkipGroupNorm", 4, 5, 1, 2, group_attrs, rewrite_skip_group),
};
OP_TABLE(contrib_norm, rows);

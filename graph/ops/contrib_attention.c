/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: Attention and QAttention, which project the input themselves; MultiHeadAttention and
 * DecoderMaskedMultiHeadAttention. */
#include "graph/ops/contrib_attend.h"

static const op_attr attention_attrs[] = {{"do_rotary", GRT_ATTR_INT, false},
                                          {"mask_filter_value", GRT_ATTR_FLOAT, false},
                                          {"num_heads", GRT_ATTR_INT, true},
                                          {"past_present_share_buffer", GRT_ATTR_INT, false},
                                          {"qkv_hidden_sizes", GRT_ATTR_INTS, false},
                                          {"rotary_embedding_dim", GRT_ATTR_INT, false},
                                          {"scale", GRT_ATTR_FLOAT, false},
                                          {"unidirectional", GRT_ATTR_INT, false},
                                          {0}};
static const op_attr multi_attrs[] = {{"mask_filter_value", GRT_ATTR_FLOAT, false},
                                      {"num_heads", GRT_ATTR_INT, true},
                                      {"scale", GRT_ATTR_FLOAT, false},
                                      {"unidirectional", GRT_ATTR_INT, false},
                                      {0}};
static const op_attr decoder_attrs[] = {{"mask_filter_value", GRT_ATTR_FLOAT, false},
                                        {"num_heads", GRT_ATTR_INT, true},
                                        {"output_qk", GRT_ATTR_INT, false},
                                        {"past_present_share_buffer", GRT_ATTR_INT, false},
                                        {"scale", GRT_ATTR_FLOAT, false},
                                        {0}};

/* The length of a cache that has room for more, if that is what the node has. */
static grt_status share_cache(attend *a, ir_value *length)
{
    const bool shared = grt_attr_int(&a->node->desc, "past_present_share_buffer", 0) != 0;
    if (shared && (!length || !a->past_k))
        return foreign_invalid(a->node, "past_present_share_buffer is 1, but there is no past, or no "
                                        "past_sequence_length");
    if (length && a->past_k)
        attend_share(a, length);
    return GRT_OK;
}

/* Sizes of queries, keys and values; all 0 for thirds. */
static grt_status hidden_sizes(const ir_node *node, int64_t sizes[3])
{
    size_t n;
    const int64_t *given = grt_attr_ints(&node->desc, "qkv_hidden_sizes", &n);
    for (int i = 0; i < 3; i++)
        sizes[i] = given && n == 3 ? given[i] : 0;
    if (n && (n != 3 || sizes[0] <= 0 || sizes[0] != sizes[1] || sizes[2] <= 0))
        return foreign_invalid(node, "attribute qkv_hidden_sizes must be three sizes, the first two equal");
    return GRT_OK;
}

/* From queries, keys and values side by side to the outputs. past: [2, batch, heads, past, size]. */
static grt_status attention_of(attend *a, ir_value *qkv, int32_t mask, ir_value *past, int32_t bias,
                               ir_value *past_length)
{
    static const int64_t front[] = {0};
    ir_node *node = a->node;
    int64_t sizes[3];
    if (grt_attr_int(&node->desc, "do_rotary", 0))
        return foreign_unsupported(node, "do_rotary is 1; rotate with RotaryEmbedding instead");
    GRT_TRY(hidden_sizes(node, sizes));
    GRT_TRY(attend_split(a, qkv, sizes));
    if (past) {
        a->past_k = put_item(node, past, 0, 0);
        a->past_v = put_item(node, past, 0, 1);
    }
    GRT_TRY(share_cache(a, past_length));
    GRT_TRY(attend_mask(a, mask, bias));
    a->causal = grt_attr_int(&node->desc, "unidirectional", 0) != 0;
    const bool present = foreign_wants(node, 1);
    GRT_TRY(attend_put(a, present ? 3 : 1));
    ir_value *both = NULL;
    if (present)
        both = put_concat(node, 0, 2,
                          (ir_value *[]){put_unsqueeze(node, a->present_k, front, 1),
                                         put_unsqueeze(node, a->present_v, front, 1)});
    return foreign_done(node, 2, (ir_value *[]){a->y, both});
}

/* (input, weights, bias, mask, past, attention_bias, past_sequence_length) */
static grt_status rewrite_attention(ir_node *node)
{
    attend a;
    GRT_TRY(attend_begin(node, &a));
    ir_value *qkv = put_add(node, put2(node, "MatMul", ir_in(node, 0), ir_in(node, 1)), ir_in(node, 2));
    return attention_of(&a, qkv, 3, ir_in(node, 4), 5, ir_in(node, 6));
}

/* (input, weights, bias, mask, past, attention_bias, past_sequence_length, beam_width, cache_indirection):
 * one new position */
static grt_status rewrite_decoder_self(ir_node *node)
{
    if (ir_in(node, 8))
        return foreign_unsupported(node, "input 8 (cache_indirection) is not supported");
    GRT_TRY(foreign_need(node, 4, "past"));
    return rewrite_attention(node);
}

/* (input, weights, bias, input_scale, weight_scale, mask, input_zero_point, weight_zero_point, past) */
static grt_status rewrite_quantized_attention(ir_node *node)
{
    attend a;
    GRT_TRY(attend_begin(node, &a));
    GRT_TRY(foreign_need(node, 3, "the input's scale"));
    a.dtype = ir_in(node, 3)->type.dtype ? ir_in(node, 3)->type.dtype : GRT_DTYPE_FLOAT;
    ir_value *in[] = {ir_in(node, 0), ir_in(node, 1), ir_in(node, 6), ir_in(node, 7)};
    ir_value *sums = put_cast(node, put(node, "MatMulInteger", 4, in), a.dtype);
    ir_value *scale = put2(node, "Mul", ir_in(node, 3), ir_in(node, 4));
    ir_value *qkv = put_add(node, put2(node, "Mul", sums, scale), ir_in(node, 2));
    return attention_of(&a, qkv, 5, ir_in(node, 8), -1, NULL);
}

/* Part i of [batch, sequence, heads, parts, size], as [batch, sequence, heads * size]. */
static ir_value *unpack(ir_node *node, ir_value *packed, int64_t i)
{
    static const int64_t joined[] = {0, 0, -1};
    return put_reshape(node, put_item(node, packed, 3, i), joined, 3);
}

/* q, k and v of the forms that the first three inputs may have. */
static grt_status take_operands(attend *a)
{
    ir_node *node = a->node;
    GRT_TRY(foreign_need_rank(node, 0, "the query"));
    const int32_t q = foreign_rank(node, 0), k = foreign_rank(node, 1), v = foreign_rank(node, 2);
    a->q = ir_in(node, 0);
    a->k = ir_in(node, 1);
    a->v = ir_in(node, 2);
    if (q == 5 && !a->k && !a->v) {
        ir_value *packed = a->q;
        a->q = unpack(node, packed, 0);
        a->k = unpack(node, packed, 1);
        a->v = unpack(node, packed, 2);
    } else if (q == 3 && k == 5 && !a->v) {
        ir_value *packed = a->k;
        a->k = unpack(node, packed, 0);
        a->v = unpack(node, packed, 1);
    } else if (q == 3 && k == 4 && v == 4) {
        a->split = true;
    } else if (q == 3 && !a->k && !a->v) {
        return attend_split(a, a->q, (int64_t[]){0, 0, 0});
    } else if (q != 3 || k != 3 || v != 3) {
        return foreign_unsupported(
            node,
            "the query, key and value have ranks %d, %d and %d (-1: unknown or missing); "
            "supported are 3, 3, 3; 3, 4, 4; 3, 5, -; 5, -, - and 3, -, -",
            q, k, v);
    }
    return GRT_OK;
}

/* The projection's bias, of queries, keys and values one behind the other; keys that come from a cache have
 * theirs. */
static grt_status contrib_attention_add_bias(attend *a, int32_t index)
{
    ir_node *node = a->node;
    ir_value *bias = ir_in(node, index);
    int64_t hidden;
    if (!bias)
        return GRT_OK;
    if (!foreign_dim(a->q, -1, &hidden) &&
        !(foreign_dim(bias, 0, &hidden) && hidden % 3 == 0 && (hidden /= 3, 1)))
        return foreign_unsupported(node,
                                   "the hidden size must be known to the compiler to take the bias apart");
    if (hidden > INT64_MAX / 2)
        return foreign_invalid(node, "the hidden size is %lld, of which no bias can have three",
                               (long long)hidden);
    a->q = put2(node, "Add", a->q, put_part(node, bias, 0, 0, hidden));
    if (a->split)
        return GRT_OK;
    a->k = put2(node, "Add", a->k, put_part(node, bias, 0, hidden, 2 * hidden));
    a->v = put2(node, "Add", a->v, put_part(node, bias, 0, 2 * hidden, INT64_MAX));
    return GRT_OK;
}

/* Where the inputs of the two operators are. */
typedef struct operands {
    int32_t bias, mask, attention_bias, past_key, past_value, past_length, indirection;
} operands;

static grt_status attend_apart(ir_node *node, const operands *at)
{
    attend a;
    GRT_TRY(attend_begin(node, &a));
    GRT_TRY(take_operands(&a));
    GRT_TRY(contrib_attention_add_bias(&a, at->bias));
    if (a.split)
        a.q = attend_heads(node, a.q, a.q_heads);
    a.past_k = a.split ? NULL : ir_in(node, at->past_key);
    a.past_v = a.split ? NULL : ir_in(node, at->past_value);
    if (!a.past_k != !a.past_v)
        return foreign_invalid(node, "past_key and past_value must be given together");
    if (!a.split)
        GRT_TRY(share_cache(&a, ir_in(node, at->past_length)));
    if (a.past_k && ir_in(node, at->indirection))
        attend_redirect(&a, ir_in(node, at->indirection));
    GRT_TRY(attend_mask(&a, at->mask, at->attention_bias));
    a.causal = grt_attr_int(&node->desc, "unidirectional", 0) != 0;
    const int32_t outputs = foreign_wants(node, 3)                             ? 4
                            : foreign_wants(node, 2) || foreign_wants(node, 1) ? 3
                                                                               : 1;
    GRT_TRY(attend_put(&a, outputs));
    return foreign_done(node, 4, (ir_value *[]){a.y, a.present_k, a.present_v, a.qk});
}

/* (query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, past_sequence_length,
 * cache_indirection) */
static grt_status rewrite_multi_head(ir_node *node)
{
    return attend_apart(node, &(operands){3, 4, 5, 6, 7, 8, 9});
}

/* (query, key, value, mask, attention_bias, past_key, past_value, past_sequence_length, beam_width,
 * cache_indirection, bias) */
static grt_status rewrite_decoder_masked(ir_node *node)
{
    return attend_apart(node, &(operands){10, 3, 4, 5, 6, 7, 9});
}

static const op_row rows[] = {
    FOREIGN(MS, "Attention", 2, 7, 1, 2, attention_attrs, rewrite_attention),
    FOREIGN(MS, "QAttention", 5, 9, 1, 2, attention_attrs, rewrite_quantized_attention),
    FOREIGN(MS, "DecoderMaskedSelfAttention", 7, 9, 2, 2, attention_attrs, rewrite_decoder_self),
    FOREIGN(MS, "MultiHeadAttention", 1, 10, 1, 4, multi_attrs, rewrite_multi_head),
    FOREIGN(MS, "DecoderMaskedMultiHeadAttention", 1, 11, 1, 4, decoder_attrs, rewrite_decoder_masked),
};
OP_TABLE(contrib_attention, rows);

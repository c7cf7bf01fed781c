/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention operators of com.microsoft share: from queries, keys and values to ai.onnx's Attention.
 */
#ifndef GRT_GRAPH_OPS_CONTRIB_ATTEND_H
#define GRT_GRAPH_OPS_CONTRIB_ATTEND_H

#include "graph/ops/foreign.h"

/* Queries, keys and values are all [batch, sequence, heads * size], or all [batch, heads, sequence, size]. */
typedef struct attend {
    ir_node *node;
    ir_value *q, *k, *v;
    bool split; /* the second form */
    int64_t q_heads, kv_heads;
    double scale;   /* 0: 1 / sqrt(size) */
    double softcap; /* 0: none */
    bool causal;
    grt_dtype dtype;
    ir_value *past_k, *past_v; /* [batch, heads, past, size], or NULL */
    ir_value *room_k, *room_v; /* caches that the pasts are the beginnings of: see attend_share */
    ir_value *held;            /* what of them is past: int64[1] */
    ir_value *mask;            /* as Attention's: added to the scores, or bool; or NULL */
    /* out */
    ir_value *y; /* [batch, sequence, heads * size] */
    ir_value *present_k, *present_v, *qk;
} attend;

/* The attributes num_heads and scale, and the dtype of input 0; all else is cleared. */
grt_status attend_begin(ir_node *node, attend *out);
/* Fills q, k and v in from [batch, sequence, n * 3] with the parts of three sizes; 0: thirds. */
grt_status attend_split(attend *a, ir_value *qkv, const int64_t sizes[3]);
/* [batch, sequence, heads * size] to [batch, heads, sequence, size]. */
ir_value *attend_heads(ir_node *node, ir_value *x, int64_t heads);
/* past_k and past_v are caches with room for more than they hold: of `length` positions, one integer. The
 * present is then the whole cache, with the new keys and values behind the past. */
void attend_share(attend *a, ir_value *length);
/* Beam search: row (i, j) of batch x beams goes on with what row (i, indirection[i, j, k]) has at position k.
 */
void attend_redirect(attend *a, ir_value *indirection);
/* Make `a->mask` of a mask in any of the forms that these operators take (input `index`, int32), of values
 * above 0 where a key is seen, and of a bias that is added to the scores (input `bias`; -1: the operator has
 * none). Either may be missing. */
grt_status attend_mask(attend *a, int32_t index, int32_t bias);
/* The Attention node. `outputs`: how many of its outputs are wanted. */
grt_status attend_put(attend *a, int32_t outputs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QRoundedAttention, which pass `rounded_attention` makes: an attention of 8-bit numbers that is
 * rounded behind each of its nodes.
 *
 *   score = quantised(q k^T)                  by the scores' scale and zero point
 *   score = quantised(score + mask)           by the sums', if there is a mask
 *   share = table[quantised(softmax(score))]  by the shares', over keys; without a table as it is
 *   y     = quantised(share v)
 *
 * with levels of q and k looked up in their tables before, where there are such.
 *
 * Q: [batch, heads, queries, size], K and V: [batch, heads, keys, size], or with attribute q_tokens (k_, v_)
 * their two inner dims exchanged, as projections leave them; y likewise, by y_tokens. With five dims Q, K or
 * V is part q_part (k_, v_) of [batch, tokens, parts, heads, size]. The mask broadcasts to [batch, heads,
 * queries, keys]. Scales and zero points are constants of one element. */
#include "graph/ir/flops.h"
#include "graph/ir/ir.h"
#include "src/base/rounded_attention.h"

enum { RANK = 4, HEADS = 1, TOKENS, SIZE, OF_PARTS = 5, PARTS_AT = 2 };

static int32_t rounded_axis(const infer *inf, const char *tokens, int32_t axis)
{
    return (axis == HEADS || axis == TOKENS) && grt_attr_int(inf->desc, tokens, 0) ? HEADS + TOKENS - axis
                                                                                   : axis;
}

static grt_status infer_rounded(infer *inf)
{
    static const int32_t tensors[] = {QR_Q, QR_K, QR_V};
    for (int32_t i = 0; i < 3; i++) {
        const int32_t rank = infer_has(inf, tensors[i]) ? inf->in[tensors[i]]->rank : 0;
        if (rank >= 0 && rank != RANK && rank != OF_PARTS)
            return infer_fail(inf, "input %d must be given and have four dims, or five with parts",
                              tensors[i]);
    }
    if (!infer_has(inf, QR_Y_ZERO) || !infer_has(inf, QR_SHARE_ZERO) || !infer_has(inf, QR_SCORE_ZERO))
        return infer_fail(inf, "scores, shares and the result must have zero points");
    const grt_dtype dtype = inf->in[QR_Y_ZERO]->dtype;
    const ir_type *q = inf->in[QR_Q], *v = inf->in[QR_V];
    if (q->rank < 0 || v->rank < 0) {
        infer_set_fresh(inf, 0, dtype, RANK);
        return GRT_OK;
    }
    grt_dim *dims = infer_dims(inf, RANK);
    if (!dims)
        return GRT_OK;
    dims[0] = q->dims[0];
    for (int32_t axis = HEADS; axis <= TOKENS; axis++) {
        const int32_t of_parts = axis == HEADS ? PARTS_AT + 1 : 1;
        dims[rounded_axis(inf, "y_tokens", axis)] =
            q->dims[q->rank == OF_PARTS ? of_parts : rounded_axis(inf, "q_tokens", axis)];
    }
    dims[SIZE] = v->dims[v->rank - 1];
    infer_set(inf, 0, dtype, RANK, dims);
    return GRT_OK;
}

static const op_attr rounded_attrs[] = {{"q_tokens", GRT_ATTR_INT, false}, {"k_tokens", GRT_ATTR_INT, false},
                                        {"v_tokens", GRT_ATTR_INT, false}, {"y_tokens", GRT_ATTR_INT, false},
                                        {"q_part", GRT_ATTR_INT, false},   {"k_part", GRT_ATTR_INT, false},
                                        {"v_part", GRT_ATTR_INT, false},   {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "QRoundedAttention",
     .since = 1,
     .min_in = QR_MASK,
     .max_in = QR_INPUTS,
     .min_out = 1,
     .max_out = 1,
     .attrs = rounded_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_COMPUTE,
     .flops = flops_rounded_attention,
     .infer = infer_rounded},
};
OP_TABLE(rounded_attention, rows);

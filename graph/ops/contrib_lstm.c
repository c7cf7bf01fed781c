/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft::DynamicQuantizeLSTM: an LSTM that ONNX Runtime's dynamic quantiser has made. Its weights are
 * bytes, and what they are multiplied with is rounded to bytes of its range in every step. Where there is no
 * kernel for that, it becomes an LSTM with dequantised weights. */
#include "graph/ir/flops.h"
#include "graph/ops/foreign.h"

#include <string.h>

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

static const op_attr lstm_attrs[] = {
    {"activation_alpha", GRT_ATTR_FLOATS, false}, {"activation_beta", GRT_ATTR_FLOATS, false},
    {"activations", GRT_ATTR_STRINGS, false},     {"clip", GRT_ATTR_FLOAT, false},
    {"direction", GRT_ATTR_STRING, false},        {"hidden_size", GRT_ATTR_INT, false},
    {"input_forget", GRT_ATTR_INT, false},        {0}};

static grt_status check_rank(const infer *inf, int32_t i, int32_t rank)
{
    if (infer_has(inf, i) && inf->in[i]->rank >= 0 && inf->in[i]->rank != rank)
        return infer_fail(inf, "input %d has rank %d; expected %d", i, inf->in[i]->rank, rank);
    return GRT_OK;
}

/* Sizes beyond the directions' and the hidden values' are the kernel's to check. */
static grt_status check_inputs(const infer *inf, int64_t directions)
{
    static const int32_t scales[] = {W_SCALE, R_SCALE}, three[] = {X, W, R, INITIAL_H, INITIAL_C};
    int64_t found;
    for (int32_t i = 0; i < 2; i++)
        if (!infer_has(inf, scales[i]))
            return infer_fail(inf, "input %d, the scale of the weights, is missing", scales[i]);
    for (size_t i = 0; i < sizeof three / sizeof *three; i++)
        GRT_TRY(check_rank(inf, three[i], 3));
    for (int32_t i = W; i <= R; i++)
        if (inf->in[i]->rank == 3 && infer_const(inf, inf->in[i]->dims[0], &found) && found != directions)
            return infer_fail(inf, "input %d has weights of %lld directions; attribute direction says %lld",
                              i, (long long)found, (long long)directions);
    return GRT_OK;
}

static grt_status infer_dynamic_lstm(infer *inf)
{
    const ir_type *x = inf->in[X], *r = inf->in[R];
    const char *direction = grt_attr_string(inf->desc, "direction", "forward");
    const bool both = !strcmp(direction, "bidirectional");
    if (!both && strcmp(direction, "forward") && strcmp(direction, "reverse"))
        return infer_fail(inf, "attribute direction is '%s'; it must be forward, reverse or bidirectional",
                          direction);
    GRT_TRY(check_inputs(inf, both ? 2 : 1));
    const int64_t size = grt_attr_int(inf->desc, "hidden_size", 0);
    int64_t found;
    if (r->rank == 3 && size > 0 && infer_const(inf, r->dims[1], &found) && found != size)
        return infer_fail(inf, "attribute hidden_size is %lld, but R has %lld rows", (long long)size,
                          (long long)found);
    grt_dim hidden = r->rank == 3 ? r->dims[1]
                     : size > 0   ? grt_dim_const(inf->dims, size)
                                  : grt_dim_fresh(inf->dims);
    grt_dim *y = infer_dims(inf, 4);
    if (!y)
        return GRT_OK;
    y[0] = x->rank == 3 ? x->dims[0] : grt_dim_fresh(inf->dims);
    y[1] = grt_dim_const(inf->dims, both ? 2 : 1);
    y[2] = x->rank == 3 ? x->dims[1] : grt_dim_fresh(inf->dims);
    y[3] = hidden;
    infer_set(inf, 0, x->dtype, 4, y);
    infer_set(inf, 1, x->dtype, 3, y + 1);
    infer_set(inf, 2, x->dtype, 3, y + 1);
    return GRT_OK;
}

/* ---- without a kernel ---- */

/* Weights [directions, inputs, 4 * hidden] as LSTM has them, float and with the last two dims swapped. Scale
 * and zero point are per direction, or per direction and column. */
static grt_status lstm_weights(ir_node *node, int32_t i, int32_t scale, ir_value **out)
{
    static const int64_t swap[] = {0, 2, 1}, column[] = {1}, all[] = {1, 2};
    ir_value *parts[] = {ir_in(node, scale), ir_in(node, scale + 1)};
    for (int32_t k = 0; k < 2; k++) {
        if (k && !parts[k])
            continue;
        GRT_TRY(foreign_need_rank(node, scale + k, k ? "a zero point" : "a scale"));
        const int32_t rank = foreign_rank(node, scale + k);
        if (rank < 1 || rank > 2)
            return foreign_invalid(node,
                                   "input %d has rank %d; it must be 1 (per direction) or 2 (and column)",
                                   scale + k, rank);
        parts[k] = put_unsqueeze(node, parts[k], rank == 1 ? all : column, rank == 1 ? 2 : 1);
    }
    /* Integers may be unsigned: the difference is taken in float, which holds it exactly. */
    ir_value *w = with_int(put1(node, "Cast", ir_in(node, i)), "to", GRT_DTYPE_FLOAT);
    if (parts[1])
        w = put2(node, "Sub", w, with_int(put1(node, "Cast", parts[1]), "to", GRT_DTYPE_FLOAT));
    *out = put_transpose(node, put2(node, "Mul", w, parts[0]), swap, 3);
    return GRT_OK;
}

static grt_status expand_dynamic_lstm(ir_node *node, bool *out_done)
{
    ir_value *w, *r;
    GRT_TRY(lstm_weights(node, W, W_SCALE, &w));
    GRT_TRY(lstm_weights(node, R, R_SCALE, &r));
    ir_value *in[] = {ir_in(node, X),
                      w,
                      r,
                      ir_in(node, B),
                      ir_in(node, LENGTHS),
                      ir_in(node, INITIAL_H),
                      ir_in(node, INITIAL_C),
                      ir_in(node, PEEPHOLES)};
    ir_node *lstm = ir_node_create(node->graph, node, "", "LSTM", node->desc.name, 8, in, 3);
    if (!lstm)
        return grt_fail_memory(0);
    ir_attrs_copy(lstm, node);
    *out_done = true;
    return foreign_done(node, 3, lstm->out);
}

static const op_row rows[] = {
    {.domain = MS,
     .name = "DynamicQuantizeLSTM",
     .since = 1,
     .min_in = 3,
     .max_in = 12,
     .min_out = 0,
     .max_out = 3,
     .attrs = lstm_attrs,
     .precision = OP_WIDE,
     .flops = flops_recurrence,
     .infer = infer_dynamic_lstm,
     .expand = expand_dynamic_lstm},
};
OP_TABLE(contrib_lstm, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN; DynamicQuantizeLSTM. */
#include "graph/ir/flops.h"
#include "graph/ops/foreign.h"

#include <string.h>

/* Name, gates, and number of state outputs per op. */
static int32_t gates_of(const grt_op_desc *desc)
{
    return !strcmp(desc->op, "LSTM") ? 4 : !strcmp(desc->op, "GRU") ? 3 : 1;
}

static grt_status rnn_check_dim(const infer *inf, int32_t input, int32_t axis, int32_t rank, grt_dim expected)
{
    static const char *const names[] = {"X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"};
    const ir_type *t = infer_has(inf, input) ? inf->in[input] : NULL;
    int64_t have, want;
    if (!t || t->rank < 0)
        return GRT_OK;
    if (t->rank != rank)
        return infer_fail(inf, "%s has rank %d; expected %d", names[input], t->rank, rank);
    if (infer_const(inf, t->dims[axis], &have) && infer_const(inf, expected, &want) && have != want)
        return infer_fail(inf, "dim %d of %s is %lld; expected %lld", axis, names[input], (long long)have,
                          (long long)want);
    return GRT_OK;
}

typedef struct rnn_dims {
    grt_dim steps, batch, input, directions, hidden;
} rnn_dims;

static grt_status rnn_check_inputs(const infer *inf, const rnn_dims *s, bool batch_first)
{
    const int64_t gates = gates_of(inf->desc);
    const grt_dim stacked = grt_dim_mulc(inf->dims, s->hidden, gates);
    GRT_TRY(rnn_check_dim(inf, 1, 0, 3, s->directions));
    GRT_TRY(rnn_check_dim(inf, 1, 1, 3, stacked));
    GRT_TRY(rnn_check_dim(inf, 1, 2, 3, s->input));
    GRT_TRY(rnn_check_dim(inf, 2, 0, 3, s->directions));
    GRT_TRY(rnn_check_dim(inf, 2, 1, 3, stacked));
    GRT_TRY(rnn_check_dim(inf, 2, 2, 3, s->hidden));
    GRT_TRY(rnn_check_dim(inf, 3, 0, 2, s->directions));
    GRT_TRY(rnn_check_dim(inf, 3, 1, 2, grt_dim_mulc(inf->dims, stacked, 2)));
    GRT_TRY(rnn_check_dim(inf, 4, 0, 1, s->batch));
    for (int32_t i = 5; i <= 6; i++) {
        GRT_TRY(rnn_check_dim(inf, i, batch_first ? 1 : 0, 3, s->directions));
        GRT_TRY(rnn_check_dim(inf, i, batch_first ? 0 : 1, 3, s->batch));
        GRT_TRY(rnn_check_dim(inf, i, 2, 3, s->hidden));
    }
    GRT_TRY(rnn_check_dim(inf, 7, 0, 2, s->directions));
    return rnn_check_dim(inf, 7, 1, 2, grt_dim_mulc(inf->dims, s->hidden, 3));
}

/* What attributes and weights say. */
static grt_status rnn_read_layer(const infer *inf, rnn_dims *s)
{
    const ir_type *r = inf->in[2];
    const char *direction = grt_attr_string(inf->desc, "direction", "forward");
    const bool both = !strcmp(direction, "bidirectional");
    if (!both && strcmp(direction, "forward") && strcmp(direction, "reverse"))
        return infer_fail(inf, "attribute direction is '%s'; it must be forward, reverse or bidirectional",
                          direction);
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    GRT_TRY(infer_same_dtype(inf, 0, 2));
    if (r->rank >= 0 && r->rank != 3)
        return infer_fail(inf, "R has rank %d; expected 3", r->rank);
    const int64_t size = grt_attr_int(inf->desc, "hidden_size", 0);
    s->hidden = r->rank == 3 ? r->dims[2]
                : size > 0   ? grt_dim_const(inf->dims, size)
                             : grt_dim_fresh(inf->dims);
    s->directions = grt_dim_const(inf->dims, both ? 2 : 1);
    int64_t found;
    if (size > 0 && infer_const(inf, s->hidden, &found) && found != size)
        return infer_fail(inf, "attribute hidden_size is %lld, but R has %lld columns", (long long)size,
                          (long long)found);
    return GRT_OK;
}

static grt_status infer_rnn(infer *inf)
{
    const ir_type *x = inf->in[0];
    const bool batch_first = grt_attr_int(inf->desc, "layout", 0) != 0;
    rnn_dims s;
    GRT_TRY(rnn_read_layer(inf, &s));
    if (x->rank >= 0 && x->rank != 3)
        return infer_fail(inf, "X has rank %d; expected 3", x->rank);
    s.steps = x->rank == 3 ? x->dims[batch_first ? 1 : 0] : grt_dim_fresh(inf->dims);
    s.batch = x->rank == 3 ? x->dims[batch_first ? 0 : 1] : grt_dim_fresh(inf->dims);
    s.input = x->rank == 3 ? x->dims[2] : grt_dim_fresh(inf->dims);
    GRT_TRY(rnn_check_inputs(inf, &s, batch_first));
    grt_dim *y = infer_dims(inf, 4), *last = infer_dims(inf, 3);
    if (!y || !last)
        return GRT_OK;
    y[0] = batch_first ? s.batch : s.steps;
    y[1] = batch_first ? s.steps : s.directions;
    y[2] = batch_first ? s.directions : s.batch;
    y[3] = s.hidden;
    last[0] = batch_first ? s.batch : s.directions;
    last[1] = batch_first ? s.directions : s.batch;
    last[2] = s.hidden;
    infer_set(inf, 0, x->dtype, 4, y);
    infer_set(inf, 1, x->dtype, 3, last);
    infer_set(inf, 2, x->dtype, 3, last);
    return GRT_OK;
}

/* graphrt's forms: X [outer, steps, inner, input], Y [outer, steps, inner, directions, hidden]; all else as
 * for a batch of outer * inner rows. */
static grt_status infer_rnn_inside(infer *inf)
{
    const ir_type *x = inf->in[0];
    rnn_dims s;
    GRT_TRY(rnn_read_layer(inf, &s));
    if (x->rank != 4)
        return infer_fail(inf, "X has rank %d; expected 4", x->rank);
    s.batch = grt_dim_mul(inf->dims, x->dims[0], x->dims[2]);
    s.input = x->dims[3];
    GRT_TRY(rnn_check_inputs(inf, &s, false));
    grt_dim *y = infer_dims(inf, 5), *last = infer_dims(inf, 3);
    if (!y || !last)
        return GRT_OK;
    memcpy(y, x->dims, 3 * sizeof *y);
    y[3] = s.directions;
    y[4] = s.hidden;
    last[0] = s.directions;
    last[1] = s.batch;
    last[2] = s.hidden;
    infer_set(inf, 0, x->dtype, 5, y);
    infer_set(inf, 1, x->dtype, 3, last);
    infer_set(inf, 2, x->dtype, 3, last);
    return GRT_OK;
}

/* Version 1 could be told not to make Y; an output without a name says the same. */
static grt_status upgrade_rnn(ir_node *node, int32_t opset)
{
    if (opset < 7)
        ir_attr_remove(node, "output_sequence");
    return GRT_OK;
}

/* ---- com.microsoft::DynamicQuantizeLSTM ----
 *
 * An LSTM that ONNX Runtime's dynamic quantiser has made. Its weights are bytes, and what they are multiplied
 * with is rounded to bytes of its range in every step. Where there is no kernel for that, it becomes an LSTM
 * with dequantised weights. */

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };

static const op_attr dynamic_attrs[] = {
    {"activation_alpha", GRT_ATTR_FLOATS, false}, {"activation_beta", GRT_ATTR_FLOATS, false},
    {"activations", GRT_ATTR_STRINGS, false},     {"clip", GRT_ATTR_FLOAT, false},
    {"direction", GRT_ATTR_STRING, false},        {"hidden_size", GRT_ATTR_INT, false},
    {"input_forget", GRT_ATTR_INT, false},        {0}};

static grt_status rnn_check_rank(const infer *inf, int32_t i, int32_t rank)
{
    if (infer_has(inf, i) && inf->in[i]->rank >= 0 && inf->in[i]->rank != rank)
        return infer_fail(inf, "input %d has rank %d; expected %d", i, inf->in[i]->rank, rank);
    return GRT_OK;
}

/* Sizes beyond the directions' and the hidden values' are the kernel's to check. */
static grt_status check_dynamic(const infer *inf, int64_t directions)
{
    static const int32_t scales[] = {W_SCALE, R_SCALE}, three[] = {X, W, R, INITIAL_H, INITIAL_C};
    int64_t found;
    for (int32_t i = 0; i < 2; i++)
        if (!infer_has(inf, scales[i]))
            return infer_fail(inf, "input %d, the scale of the weights, is missing", scales[i]);
    for (size_t i = 0; i < sizeof three / sizeof *three; i++)
        GRT_TRY(rnn_check_rank(inf, three[i], 3));
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
    GRT_TRY(check_dynamic(inf, both ? 2 : 1));
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

#define RNN_ATTRS                                                                              \
    {"activation_alpha", GRT_ATTR_FLOATS, false}, {"activation_beta", GRT_ATTR_FLOATS, false}, \
        {"activations", GRT_ATTR_STRINGS, false}, {"clip", GRT_ATTR_FLOAT, false},             \
        {"direction", GRT_ATTR_STRING, false},                                                 \
    {                                                                                          \
        "hidden_size", GRT_ATTR_INT, false                                                     \
    }
#define RNN_LAYOUT                    \
    {                                 \
        "layout", GRT_ATTR_INT, false \
    }
#define GRU_RESET                                  \
    {                                              \
        "linear_before_reset", GRT_ATTR_INT, false \
    }
#define LSTM_GATES                          \
    {                                       \
        "input_forget", GRT_ATTR_INT, false \
    }

static const op_attr rnn_attrs[] = {RNN_ATTRS, RNN_LAYOUT, {0}};
static const op_attr gru_attrs[] = {RNN_ATTRS, RNN_LAYOUT, GRU_RESET, {0}};
static const op_attr lstm_attrs[] = {RNN_ATTRS, RNN_LAYOUT, LSTM_GATES, {0}};
static const op_attr rnn_inside_attrs[] = {RNN_ATTRS, {0}};
static const op_attr gru_inside_attrs[] = {RNN_ATTRS, GRU_RESET, {0}};
static const op_attr lstm_inside_attrs[] = {RNN_ATTRS, LSTM_GATES, {0}};

#define ROW(op, inputs, outputs, list)                                                                       \
    {                                                                                                        \
        .domain = "", .name = op, .since = 22, .min_in = 3, .max_in = inputs, .min_out = 0,                  \
        .max_out = outputs, .attrs = list, .precision = OP_NARROW, .flags = OP_TF32 | OP_FILTERS | OP_STEPS, \
        .flops = flops_recurrence, .infer = infer_rnn, .upgrade = upgrade_rnn                                \
    }
#define INSIDE(op, inputs, outputs, list)                                                         \
    {                                                                                             \
        .domain = "graphrt", .name = op, .since = 1, .min_in = 3, .max_in = inputs, .min_out = 0, \
        .max_out = outputs, .attrs = list, .precision = OP_NARROW, .flags = OP_TF32 | OP_FILTERS, \
        .flops = flops_recurrence, .infer = infer_rnn_inside                                      \
    }

static const op_row rows[] = {
    ROW("LSTM", 8, 3, lstm_attrs),
    ROW("GRU", 6, 2, gru_attrs),
    ROW("RNN", 6, 2, rnn_attrs),
    INSIDE("LSTM", 8, 3, lstm_inside_attrs),
    INSIDE("GRU", 6, 2, gru_inside_attrs),
    INSIDE("RNN", 6, 2, rnn_inside_attrs),
    {.domain = MS,
     .name = "DynamicQuantizeLSTM",
     .since = 1,
     .min_in = 3,
     .max_in = 12,
     .min_out = 0,
     .max_out = 3,
     .attrs = dynamic_attrs,
     .precision = OP_WIDE,
     .flops = flops_recurrence,
     .infer = infer_dynamic_lstm,
     .expand = expand_dynamic_lstm},
};
OP_TABLE(rnn, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN. */
#include "graph/ir/flops.h"
#include "graph/ir/ir.h"

#include <string.h>

/* Name, gates, and number of state outputs per op. */
static int32_t gates_of(const grt_op_desc *desc)
{
    return !strcmp(desc->op, "LSTM") ? 4 : !strcmp(desc->op, "GRU") ? 3 : 1;
}

static grt_status check_dim(const infer *inf, int32_t input, int32_t axis, int32_t rank, grt_dim expected)
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

static grt_status check_inputs(const infer *inf, grt_dim directions, grt_dim batch, grt_dim hidden,
                               grt_dim input, bool batch_first)
{
    const int64_t gates = gates_of(inf->desc);
    grt_dim stacked = grt_dim_mulc(inf->dims, hidden, gates);
    GRT_TRY(check_dim(inf, 1, 0, 3, directions));
    GRT_TRY(check_dim(inf, 1, 1, 3, stacked));
    GRT_TRY(check_dim(inf, 1, 2, 3, input));
    GRT_TRY(check_dim(inf, 2, 0, 3, directions));
    GRT_TRY(check_dim(inf, 2, 1, 3, stacked));
    GRT_TRY(check_dim(inf, 2, 2, 3, hidden));
    GRT_TRY(check_dim(inf, 3, 0, 2, directions));
    GRT_TRY(check_dim(inf, 3, 1, 2, grt_dim_mulc(inf->dims, stacked, 2)));
    GRT_TRY(check_dim(inf, 4, 0, 1, batch));
    for (int32_t i = 5; i <= 6; i++) {
        GRT_TRY(check_dim(inf, i, batch_first ? 1 : 0, 3, directions));
        GRT_TRY(check_dim(inf, i, batch_first ? 0 : 1, 3, batch));
        GRT_TRY(check_dim(inf, i, 2, 3, hidden));
    }
    GRT_TRY(check_dim(inf, 7, 0, 2, directions));
    return check_dim(inf, 7, 1, 2, grt_dim_mulc(inf->dims, hidden, 3));
}

static grt_status infer_rnn(infer *inf)
{
    const ir_type *x = inf->in[0], *r = inf->in[2];
    const char *direction = grt_attr_string(inf->desc, "direction", "forward");
    const bool both = !strcmp(direction, "bidirectional"),
               batch_first = grt_attr_int(inf->desc, "layout", 0) != 0;
    if (!both && strcmp(direction, "forward") && strcmp(direction, "reverse"))
        return infer_fail(inf, "attribute direction is '%s'; it must be forward, reverse or bidirectional",
                          direction);
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    GRT_TRY(infer_same_dtype(inf, 0, 2));
    if (x->rank >= 0 && x->rank != 3)
        return infer_fail(inf, "X has rank %d; expected 3", x->rank);
    if (r->rank >= 0 && r->rank != 3)
        return infer_fail(inf, "R has rank %d; expected 3", r->rank);
    const int64_t size = grt_attr_int(inf->desc, "hidden_size", 0);
    grt_dim hidden = r->rank == 3 ? r->dims[2]
                     : size > 0   ? grt_dim_const(inf->dims, size)
                                  : grt_dim_fresh(inf->dims);
    grt_dim directions = grt_dim_const(inf->dims, both ? 2 : 1);
    int64_t found;
    if (size > 0 && infer_const(inf, hidden, &found) && found != size)
        return infer_fail(inf, "attribute hidden_size is %lld, but R has %lld columns", (long long)size,
                          (long long)found);
    grt_dim steps = x->rank == 3 ? x->dims[batch_first ? 1 : 0] : grt_dim_fresh(inf->dims);
    grt_dim batch = x->rank == 3 ? x->dims[batch_first ? 0 : 1] : grt_dim_fresh(inf->dims);
    grt_dim input = x->rank == 3 ? x->dims[2] : grt_dim_fresh(inf->dims);
    GRT_TRY(check_inputs(inf, directions, batch, hidden, input, batch_first));
    grt_dim *y = infer_dims(inf, 4), *last = infer_dims(inf, 3);
    if (!y || !last)
        return GRT_OK;
    y[0] = batch_first ? batch : steps;
    y[1] = batch_first ? steps : directions;
    y[2] = batch_first ? directions : batch;
    y[3] = hidden;
    last[0] = batch_first ? batch : directions;
    last[1] = batch_first ? directions : batch;
    last[2] = hidden;
    infer_set(inf, 0, x->dtype, 4, y);
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

#define RNN_ATTRS                                                                              \
    {"activation_alpha", GRT_ATTR_FLOATS, false}, {"activation_beta", GRT_ATTR_FLOATS, false}, \
        {"activations", GRT_ATTR_STRINGS, false}, {"clip", GRT_ATTR_FLOAT, false},             \
        {"direction", GRT_ATTR_STRING, false}, {"hidden_size", GRT_ATTR_INT, false},           \
    {                                                                                          \
        "layout", GRT_ATTR_INT, false                                                          \
    }

static const op_attr rnn_attrs[] = {RNN_ATTRS, {NULL, 0, false}};
static const op_attr gru_attrs[] = {
    RNN_ATTRS, {"linear_before_reset", GRT_ATTR_INT, false}, {NULL, 0, false}};
static const op_attr lstm_attrs[] = {RNN_ATTRS, {"input_forget", GRT_ATTR_INT, false}, {NULL, 0, false}};

#define ROW(op, inputs, outputs, list)                                                      \
    {                                                                                       \
        .domain = "", .name = op, .since = 22, .min_in = 3, .max_in = inputs, .min_out = 0, \
        .max_out = outputs, .attrs = list, .precision = OP_NARROW, .flags = OP_TF32,        \
        .flops = flops_recurrence, .infer = infer_rnn, .upgrade = upgrade_rnn               \
    }

static const op_row rows[] = {ROW("LSTM", 8, 3, lstm_attrs), ROW("GRU", 6, 2, gru_attrs),
                              ROW("RNN", 6, 2, rnn_attrs)};
OP_TABLE(rnn, rows);

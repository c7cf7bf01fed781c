/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise steps on 8-bit tensors, which pass `quantised` makes.
 *
 * graphrt::QAdd, graphrt::QMul: a, its scale and zero point; b, likewise; y's scale and zero point. b has a's
 * dims, aligned at the end, or 1. y = quantised(act(a + b)) or of a * b.
 * graphrt::QTable: y[i] = table[x[i]], the table having 256 elements, that of x's least value first. */
#include "graph/ir/op.h"

enum { A, B = 3, Y_ZERO = 7 };

/* True unless a dim of b is known to be neither 1 nor a's. */
static bool qpointwise_repeats(const infer *inf, const ir_type *a, const ir_type *b)
{
    int64_t x, y;
    bool fits = a->rank < 0 || b->rank <= a->rank;
    for (int32_t i = 0; fits && a->rank >= 0 && i < b->rank; i++)
        fits = !infer_const(inf, a->dims[a->rank - b->rank + i], &x) || !infer_const(inf, b->dims[i], &y) ||
               x == y || y == 1;
    return fits;
}

static grt_status infer_binary(infer *inf)
{
    if (!qpointwise_repeats(inf, inf->in[A], inf->in[B]))
        return infer_fail(inf, "the second input must have the first one's dims, or 1");
    infer_set_like(inf, 0, inf->in[Y_ZERO]->dtype, inf->in[A]);
    return GRT_OK;
}

static grt_status infer_table(infer *inf)
{
    int64_t n;
    const ir_type *table = inf->in[1];
    if (table->rank >= 0 && (table->rank != 1 || (infer_const(inf, table->dims[0], &n) && n != 256)))
        return infer_fail(inf, "the table must be a vector of 256 elements");
    infer_set_like(inf, 0, table->dtype, inf->in[0]);
    return GRT_OK;
}

static const op_attr binary_attrs[] = {{"activation", GRT_ATTR_STRING, false},
                                       {"alpha", GRT_ATTR_FLOAT, false},
                                       {"beta", GRT_ATTR_FLOAT, false},
                                       {0}};

#define QUANTISED \
    .domain = "graphrt", .since = 1, .min_out = 1, .max_out = 1, .precision = OP_WIDE, .cost = OP_COST_COMPUTE
static const op_row rows[] = {
    {QUANTISED, .name = "QAdd", .layout = OP_LAYOUT_SCALED, .min_in = 8, .max_in = 8, .attrs = binary_attrs,
     .infer = infer_binary},
    {QUANTISED, .name = "QMul", .layout = OP_LAYOUT_SCALED, .min_in = 8, .max_in = 8, .attrs = binary_attrs,
     .infer = infer_binary},
    {QUANTISED, .name = "QTable", .layout = OP_LAYOUT_FIRST, .min_in = 2, .max_in = 2, .infer = infer_table},
};
OP_TABLE(qpointwise, rows);

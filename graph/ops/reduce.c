/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes: the Reduce family. */
#include "graph/ops/moves.h"

#include <string.h>

/* A list of known numbers reduced to one: sizes are computed so. */
static void reduce_elems(infer *inf)
{
    const grt_dim *elems;
    int64_t n;
    const char *op = inf->desc->op;
    grt_dim_op how = !strcmp(op, "ReduceProd")  ? GRT_DIM_MUL
                     : !strcmp(op, "ReduceSum") ? GRT_DIM_ADD
                     : !strcmp(op, "ReduceMax") ? GRT_DIM_MAX
                     : !strcmp(op, "ReduceMin") ? GRT_DIM_MIN
                                                : GRT_DIM_CONST;
    if (how == GRT_DIM_CONST || inf->in[0]->rank != 1 || !moves_elems(inf, 0, &elems, &n) || n == 0)
        return;
    grt_dim *one = infer_dims(inf, 1);
    if (!one)
        return;
    one[0] = elems[0];
    for (int64_t k = 1; k < n; k++)
        one[0] = grt_dim_make(inf->dims, how, one[0], elems[k]);
    moves_set_elems(inf, 0, one, 1);
}

/* A scalar has no axes; 0 and -1 are taken as none. */
static grt_status infer_of_scalar(infer *inf)
{
    const int64_t *axes;
    int64_t n;
    if (infer_has(inf, 1) && infer_ints(inf, 1, &axes, &n))
        for (int64_t i = 0; i < n; i++)
            if (axes[i] != 0 && axes[i] != -1)
                return infer_fail(inf, "an entry of axes is %lld; the input is a scalar, which has none",
                                  (long long)axes[i]);
    infer_set(inf, 0, inf->in[0]->dtype, 0, infer_dims(inf, 0));
    return GRT_OK;
}

static grt_status infer_reduce(infer *inf)
{
    const ir_type *data = inf->in[0];
    bool keep = grt_attr_int(inf->desc, "keepdims", 1) != 0;
    bool empty_is_none = grt_attr_int(inf->desc, "noop_with_empty_axes", 0) != 0;
    int32_t n_listed;
    if (data->rank < 0) {
        if (!keep && !empty_is_none && !infer_has(inf, 1))
            infer_set(inf, 0, data->dtype, 0, infer_dims(inf, 0));
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (data->rank == 0)
        return infer_of_scalar(inf);
    bool axes[GRT_MAX_RANK], known;
    int64_t n;
    GRT_TRY(moves_axes(inf, 1, data->rank, axes, &n, &known));
    if (!known) {
        bool counted = moves_length(inf, 1, &n_listed) && n_listed > 0 && n_listed <= data->rank;
        if (keep || counted)
            infer_set_fresh(inf, 0, data->dtype, keep ? data->rank : data->rank - n_listed);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (!infer_has(inf, 1) || n == 0)
        memset(axes, !empty_is_none, sizeof axes);
    grt_dim *dims = infer_dims(inf, data->rank);
    int32_t rank = 0;
    for (int32_t k = 0; dims && k < data->rank; k++)
        if (!axes[k])
            dims[rank++] = data->dims[k];
        else if (keep)
            dims[rank++] = grt_dim_const(inf->dims, 1);
    infer_set(inf, 0, data->dtype, rank, dims);
    if (data->rank == 1 && axes[0])
        reduce_elems(inf);
    return GRT_OK;
}

/* ReduceSum takes its axes as an input from 13 on, the others from 18 on. An empty list meant all axes before
 * that. */
static grt_status upgrade_reduce(ir_node *node, int32_t opset)
{
    size_t n;
    if (opset >= 18 || (opset >= 13 && !strcmp(node->desc.op, "ReduceSum")))
        return GRT_OK;
    grt_attr_ints(&node->desc, "axes", &n);
    if (n)
        moves_attr_to_input(node, "axes", 1);
    else
        ir_attr_remove(node, "axes");
    return GRT_OK;
}

static const op_attr reduce_attrs[] = {
    {"keepdims", GRT_ATTR_INT, false}, {"noop_with_empty_axes", GRT_ATTR_INT, false}, {0}};

/* graphrt's: a sum that may leave the range of its terms' type. */
static grt_status infer_wide(infer *inf)
{
    GRT_TRY(infer_reduce(inf));
    inf->out[0].dtype = GRT_DTYPE_FLOAT;
    return GRT_OK;
}

#define REDUCE(op, version, conduct, how)                                                                 \
    {                                                                                                     \
        .domain = "", .name = op, .since = version, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, \
        .attrs = reduce_attrs, .flags = OP_SMALL_INTS | OP_REDUCES, .precision = conduct,                 \
        .layout = OP_LAYOUT_REDUCE, .batch = how, .cost = OP_COST_COMPUTE, .infer = infer_reduce,         \
        .upgrade = upgrade_reduce                                                                         \
    }

#define WIDE(op)                                                                                           \
    {                                                                                                      \
        .domain = "graphrt", .name = op, .since = 1, .min_in = 1, .max_in = 2, .min_out = 1, .max_out = 1, \
        .attrs = reduce_attrs, .precision = OP_WIDE, .layout = OP_LAYOUT_REDUCE, .cost = OP_COST_COMPUTE,  \
        .infer = infer_wide                                                                                \
    }

static const op_row rows[] = {
    REDUCE("ReduceSum", 13, OP_WIDE_RESULT, OP_BATCH_REDUCE),
    REDUCE("ReduceMean", 18, OP_FOLLOWS_FIRST, OP_BATCH_REDUCE),
    REDUCE("ReduceMax", 20, OP_FOLLOWS_FIRST, OP_BATCH_REDUCE),
    REDUCE("ReduceMin", 20, OP_FOLLOWS_FIRST, OP_BATCH_REDUCE),
    REDUCE("ReduceProd", 18, OP_WIDE, OP_BATCH_NEVER),
    REDUCE("ReduceL1", 18, OP_WIDE_RESULT, OP_BATCH_NEVER),
    REDUCE("ReduceL2", 18, OP_WIDE_RESULT, OP_BATCH_REDUCE),
    REDUCE("ReduceLogSum", 28, OP_WIDE, OP_BATCH_NEVER),
    REDUCE("ReduceLogSumExp", 28, OP_WIDE, OP_BATCH_NEVER),
    REDUCE("ReduceSumSquare", 18, OP_WIDE_RESULT, OP_BATCH_NEVER),
    WIDE("ReduceSum"),
    WIDE("ReduceL1"),
    WIDE("ReduceL2"),
    WIDE("ReduceSumSquare"),
};
OP_TABLE(reduce, rows);

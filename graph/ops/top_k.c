/* SPDX-License-Identifier: Apache-2.0 */
/* TopK. */
#include "graph/ops/moves.h"

static grt_status infer_top_k(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *k;
    int64_t n, wanted, size;
    int32_t axis;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        infer_set_unknown(inf, 1, GRT_DTYPE_INT64);
        return GRT_OK;
    }
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -1), data->rank, &axis));
    grt_dim *dims = infer_dims(inf, data->rank);
    for (int32_t i = 0; dims && i < data->rank; i++)
        dims[i] = data->dims[i];
    if (dims && infer_elems(inf, 1, &k, &n)) {
        if (n != 1)
            return infer_fail(inf, "K must have one element, found %lld", (long long)n);
        if (infer_const(inf, k[0], &wanted) &&
            (wanted < 0 || (infer_const(inf, data->dims[axis], &size) && wanted > size)))
            return infer_fail(inf, "K is %lld; it must lie between 0 and the size of axis %d",
                              (long long)wanted, axis);
        dims[axis] = k[0];
    } else if (dims) {
        dims[axis] = grt_dim_fresh(inf->dims);
    }
    infer_set(inf, 0, data->dtype, data->rank, dims);
    infer_set(inf, 1, GRT_DTYPE_INT64, data->rank, dims);
    return GRT_OK;
}

static grt_status upgrade_top_k(ir_node *node, int32_t opset)
{
    if (opset < 10)
        moves_attr_to_input(node, "k", 1);
    return GRT_OK;
}

static const op_attr top_k_attrs[] = {
    {"axis", GRT_ATTR_INT, false}, {"largest", GRT_ATTR_INT, false}, {"sorted", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "TopK",
     .since = 24,
     .min_in = 2,
     .max_in = 2,
     .min_out = 2,
     .max_out = 2,
     .attrs = top_k_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_SORT,
     .infer = infer_top_k,
     .upgrade = upgrade_top_k},
};
OP_TABLE(top_k, rows);

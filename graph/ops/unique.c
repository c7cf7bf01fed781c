/* SPDX-License-Identifier: Apache-2.0 */
/* Unique. */
#include "graph/ops/moves.h"

static grt_status infer_unique(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_attr *attr = grt_attr_find(inf->desc, "axis");
    grt_dim *count = infer_dims(inf, 1), *all = infer_dims(inf, 1);
    if (!count || !all)
        return GRT_OK;
    count[0] = grt_dim_fresh(inf->dims);
    all[0] = GRT_DIM_NONE;
    infer_set(inf, 0, data->dtype, 1, count);
    if (attr && data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
    } else if (attr) {
        int32_t axis;
        GRT_TRY(infer_axis(inf, "attribute axis", attr->i, data->rank, &axis));
        grt_dim *dims = infer_dims(inf, data->rank);
        for (int32_t i = 0; dims && i < data->rank; i++)
            dims[i] = i == axis ? count[0] : data->dims[i];
        infer_set(inf, 0, data->dtype, data->rank, dims);
        all[0] = data->dims[axis];
    } else if (data->rank >= 0) {
        all[0] = infer_product(inf, data->dims, 0, data->rank);
    }
    if (all[0] == GRT_DIM_NONE)
        all[0] = grt_dim_fresh(inf->dims);
    infer_set(inf, 1, GRT_DTYPE_INT64, 1, count);
    infer_set(inf, 2, GRT_DTYPE_INT64, 1, all);
    infer_set(inf, 3, GRT_DTYPE_INT64, 1, count);
    return GRT_OK;
}

static const op_attr unique_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"sorted", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Unique",
     .since = 28,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 4,
     .attrs = unique_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_SORT,
     .flags = OP_SELECTS,
     .infer = infer_unique},
};
OP_TABLE(unique, rows);

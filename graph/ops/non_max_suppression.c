/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression. */
#include "graph/ir/ir.h"

static grt_status infer_nms(infer *inf)
{
    for (int32_t i = 0; i < 2; i++)
        if (inf->in[i]->rank >= 0 && inf->in[i]->rank != 3)
            return infer_fail(inf, "boxes and scores must have rank 3, input %d has rank %d", i,
                              inf->in[i]->rank);
    grt_dim *dims = infer_dims(inf, 2);
    if (dims) {
        dims[0] = grt_dim_fresh(inf->dims);
        dims[1] = grt_dim_const(inf->dims, 3);
    }
    infer_set(inf, 0, GRT_DTYPE_INT64, 2, dims);
    return GRT_OK;
}

static const op_attr nms_attrs[] = {{"center_point_box", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "NonMaxSuppression",
     .since = 11,
     .min_in = 2,
     .max_in = 5,
     .min_out = 1,
     .max_out = 1,
     .attrs = nms_attrs,
     .precision = OP_WIDE,
     .infer = infer_nms},
};
OP_TABLE(non_max_suppression, rows);

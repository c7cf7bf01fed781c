/* SPDX-License-Identifier: Apache-2.0 */
/* Det: determinants of square matrices. */
#include "graph/ir/op.h"

static grt_status infer_det(infer *inf)
{
    const ir_type *data = inf->in[0];
    int64_t rows, cols;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (data->rank < 2)
        return infer_fail(inf, "the input must have rank 2 at least, found rank %d", data->rank);
    if (infer_const(inf, data->dims[data->rank - 2], &rows) &&
        infer_const(inf, data->dims[data->rank - 1], &cols) && rows != cols)
        return infer_fail(inf, "matrices must be square, found %lld x %lld", (long long)rows,
                          (long long)cols);
    infer_set(inf, 0, data->dtype, data->rank - 2, data->dims);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Det",
     .since = 22,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_det},
};
OP_TABLE(det, rows);

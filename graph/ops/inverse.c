/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's Inverse, of square matrices. */
#include "graph/ops/foreign.h"

static grt_status infer_inverse(infer *inf)
{
    const ir_type *x = inf->in[0];
    int64_t rows, columns;
    if (x->rank >= 0 && x->rank < 2)
        return infer_fail(inf, "the input has rank %d; it must be matrices", x->rank);
    if (x->rank >= 2 && infer_const(inf, x->dims[x->rank - 2], &rows) &&
        infer_const(inf, x->dims[x->rank - 1], &columns) && rows != columns)
        return infer_fail(inf, "matrices must be square, found %lld x %lld", (long long)rows,
                          (long long)columns);
    infer_set_like(inf, 0, x->dtype, x);
    return GRT_OK;
}

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "Inverse",
     .since = 1,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .precision = OP_WIDE,
     .infer = infer_inverse},
    FOREIGN(MS, "Inverse", 1, 1, 1, 1, NULL, foreign_own),
};
OP_TABLE(inverse, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of a constant matrix of 2, 4 or 8 bits, dequantised; pass `quantised` makes it.
 *
 * Inputs: indices of rows; w, a matrix; its scales and zero points (may be omitted), as DequantizeLinear has
 * them. Attributes: axis, block_size and output_dtype as of DequantizeLinear. y = dequantised(w)[indices] */
#include "graph/ops/moves.h"

static grt_status infer_wgather(infer *inf)
{
    enum { INDICES, W, SCALE };
    const ir_type *indices = inf->in[INDICES], *w = inf->in[W];
    grt_dtype dtype = inf->in[SCALE]->dtype;
    if (w->rank != 2)
        return infer_fail(inf, "the weights must have rank 2, found %d", w->rank);
    GRT_TRY(infer_dtype_attr(inf, "output_dtype", GRT_SET_FLOATS, dtype, &dtype));
    if (indices->rank < 0) {
        infer_set_unknown(inf, 0, dtype);
        return GRT_OK;
    }
    GRT_TRY(moves_check_rank(inf, indices->rank + 1));
    grt_dim *dims = infer_dims(inf, indices->rank + 1);
    for (int32_t k = 0; dims && k < indices->rank; k++)
        dims[k] = indices->dims[k];
    if (dims)
        dims[indices->rank] = w->dims[1];
    infer_set(inf, 0, dtype, indices->rank + 1, dims);
    return GRT_OK;
}

static const op_attr attrs[] = {{"axis", GRT_ATTR_INT, false},
                                {"block_size", GRT_ATTR_INT, false},
                                {"output_dtype", GRT_ATTR_INT, false},
                                {0}};

static const op_row rows[] = {
    {.domain = "graphrt",
     .name = "WGather",
     .since = 1,
     .min_in = 3,
     .max_in = 4,
     .min_out = 1,
     .max_out = 1,
     .attrs = attrs,
     .precision = OP_WIDE,
     .infer = infer_wgather},
};
OP_TABLE(wgather, rows);

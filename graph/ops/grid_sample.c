/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid. */
#include "graph/ops/moves.h"
#include <string.h>

static grt_status infer_grid_sample(infer *inf)
{
    const ir_type *data = inf->in[0], *grid = inf->in[1];
    const char *mode = grt_attr_string(inf->desc, "mode", "linear"),
               *padding = grt_attr_string(inf->desc, "padding_mode", "zeros");
    if (strcmp(mode, "linear") && strcmp(mode, "nearest") && strcmp(mode, "cubic"))
        return infer_fail(inf, "attribute mode is '%s'; expected linear, nearest or cubic", mode);
    if (strcmp(padding, "zeros") && strcmp(padding, "border") && strcmp(padding, "reflection"))
        return infer_fail(inf, "attribute padding_mode is '%s'; expected zeros, border or reflection",
                          padding);
    if (data->rank < 0 || grid->rank < 0) {
        int32_t rank = data->rank < 0 ? grid->rank : data->rank;
        if (rank < 0)
            infer_set_unknown(inf, 0, data->dtype);
        else
            infer_set_fresh(inf, 0, data->dtype, rank);
        return GRT_OK;
    }
    int64_t coordinates, batches, grids;
    if (data->rank < 3 || data->rank != grid->rank)
        return infer_fail(inf, "X and grid must have one rank, 3 at least; found ranks %d and %d", data->rank,
                          grid->rank);
    if (infer_const(inf, grid->dims[grid->rank - 1], &coordinates) && coordinates != data->rank - 2)
        return infer_fail(inf, "the last dim of grid is %lld; X of rank %d has %d coordinates",
                          (long long)coordinates, data->rank, data->rank - 2);
    if (infer_const(inf, data->dims[0], &batches) && infer_const(inf, grid->dims[0], &grids) &&
        batches != grids)
        return infer_fail(inf, "X has %lld batches and grid has %lld", (long long)batches, (long long)grids);
    if (!strcmp(mode, "cubic") && data->rank != 4)
        return infer_fail(inf, "mode cubic needs rank 4, found rank %d", data->rank);
    grt_dim *dims = infer_dims(inf, data->rank);
    for (int32_t k = 0; dims && k < data->rank; k++)
        dims[k] = k < 2 ? data->dims[k] : grid->dims[k - 1];
    infer_set(inf, 0, data->dtype, data->rank, dims);
    return GRT_OK;
}

/* Before 20, linear and cubic were called bilinear and bicubic. */
static grt_status upgrade_grid_sample(ir_node *node, int32_t opset)
{
    const char *mode = grt_attr_string(&node->desc, "mode", "linear");
    if (opset < 20 && (!strcmp(mode, "bilinear") || !strcmp(mode, "bicubic")))
        ir_attr_set_string(node, "mode", mode + 2);
    return GRT_OK;
}

static grt_status infer_affine_grid(infer *inf)
{
    const grt_dim *size;
    int64_t n;
    int32_t length;
    grt_dtype dtype = inf->in[0]->dtype;
    if (!infer_elems(inf, 1, &size, &n)) {
        if (moves_length(inf, 1, &length))
            infer_set_fresh(inf, 0, dtype, length);
        else
            infer_set_unknown(inf, 0, dtype);
        return GRT_OK;
    }
    if (n != 4 && n != 5)
        return infer_fail(inf, "size must have 4 or 5 entries, found %lld", (long long)n);
    grt_dim *dims = infer_dims(inf, (int32_t)n);
    for (int32_t k = 0; dims && k < n; k++)
        dims[k] = k == 0 ? size[0] : k + 1 < n ? size[k + 1] : grt_dim_const(inf->dims, n - 2);
    infer_set(inf, 0, dtype, (int32_t)n, dims);
    return GRT_OK;
}

static const op_attr grid_sample_attrs[] = {{"align_corners", GRT_ATTR_INT, false},
                                            {"mode", GRT_ATTR_STRING, false},
                                            {"padding_mode", GRT_ATTR_STRING, false},
                                            {0}};

static const op_attr affine_attrs[] = {{"align_corners", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "GridSample",
     .since = 22,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = grid_sample_attrs,
     .precision = OP_WIDE,
     .infer = infer_grid_sample,
     .upgrade = upgrade_grid_sample},
    {.domain = "",
     .name = "AffineGrid",
     .since = 20,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = affine_attrs,
     .precision = OP_WIDE,
     .infer = infer_affine_grid},
};
OP_TABLE(grid_sample, rows);

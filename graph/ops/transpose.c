/* SPDX-License-Identifier: Apache-2.0 */
/* Reordering of axes: Transpose, DepthToSpace, SpaceToDepth. */
#include "graph/ops/moves.h"

#include <string.h>

static grt_status infer_transpose(infer *inf)
{
    const ir_type *data = inf->in[0];
    size_t n = 0;
    const int64_t *perm = grt_attr_ints(inf->desc, "perm", &n);
    if (perm)
        GRT_TRY(moves_check_perm(inf, "perm", 0, perm, n));
    if (data->rank < 0) {
        if (perm)
            infer_set_fresh(inf, 0, data->dtype, (int32_t)n);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    if (perm && (int64_t)n != data->rank)
        return infer_fail(inf, "perm has %zu entries; the input's rank is %d", n, data->rank);
    grt_dim *dims = infer_dims(inf, data->rank);
    for (int32_t k = 0; dims && k < data->rank; k++)
        dims[k] = data->dims[perm ? perm[k] : data->rank - 1 - k];
    infer_set(inf, 0, data->dtype, data->rank, dims);
    const grt_dim *elems;
    int64_t n_elems;
    if (moves_elems(inf, 0, &elems, &n_elems))
        moves_set_elems(inf, 0, elems, n_elems);
    return GRT_OK;
}

/* Axes of more than one element keep their order. */
static bool transpose_stays(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                            const grt_tensor *out)
{
    size_t n = 0;
    const int64_t *perm = grt_attr_ints(desc, "perm", &n);
    int64_t last = -1;
    (void)n_in;
    for (int32_t k = 0; k < out->rank; k++) {
        const int64_t from = perm ? perm[k] : out->rank - 1 - k;
        if (in[0]->dims[from] == 1)
            continue;
        if (from < last)
            return false;
        last = from;
    }
    return true;
}

static grt_status transpose_check_mode(const infer *inf, int64_t block)
{
    const char *mode = grt_attr_string(inf->desc, "mode", "DCR");
    if (block <= 0 || block > INT32_MAX)
        return infer_fail(inf, "attribute blocksize is %lld; it must be positive", (long long)block);
    if (strcmp(mode, "DCR") && strcmp(mode, "CRD"))
        return infer_fail(inf, "attribute mode is '%s'; expected DCR or CRD", mode);
    if (inf->in[0]->rank >= 0 && inf->in[0]->rank != 4)
        return infer_fail(inf, "the input must have rank 4, found rank %d", inf->in[0]->rank);
    return GRT_OK;
}

static grt_status divide(const infer *inf, int32_t axis, int64_t by, grt_dim *out_dim)
{
    int64_t v;
    if (infer_const(inf, inf->in[0]->dims[axis], &v) && v % by)
        return infer_fail(inf, "dim %d of the input is %lld, which %lld does not divide", axis, (long long)v,
                          (long long)by);
    *out_dim = grt_dim_divide_exact(inf->dims, inf->in[0]->dims[axis], grt_dim_const(inf->dims, by));
    return GRT_OK;
}

static grt_status infer_depth_to_space(infer *inf)
{
    const ir_type *data = inf->in[0];
    int64_t block = grt_attr_int(inf->desc, "blocksize", 0);
    GRT_TRY(transpose_check_mode(inf, block));
    grt_dim *dims = infer_dims(inf, 4);
    if (data->rank < 0 || !dims) {
        infer_set_fresh(inf, 0, data->dtype, 4);
        return GRT_OK;
    }
    dims[0] = data->dims[0];
    GRT_TRY(divide(inf, 1, block * block, &dims[1]));
    dims[2] = grt_dim_mulc(inf->dims, data->dims[2], block);
    dims[3] = grt_dim_mulc(inf->dims, data->dims[3], block);
    infer_set(inf, 0, data->dtype, 4, dims);
    return GRT_OK;
}

static grt_status infer_space_to_depth(infer *inf)
{
    const ir_type *data = inf->in[0];
    int64_t block = grt_attr_int(inf->desc, "blocksize", 0);
    GRT_TRY(transpose_check_mode(inf, block));
    grt_dim *dims = infer_dims(inf, 4);
    if (data->rank < 0 || !dims) {
        infer_set_fresh(inf, 0, data->dtype, 4);
        return GRT_OK;
    }
    dims[0] = data->dims[0];
    dims[1] = grt_dim_mulc(inf->dims, data->dims[1], block * block);
    GRT_TRY(divide(inf, 2, block, &dims[2]));
    GRT_TRY(divide(inf, 3, block, &dims[3]));
    infer_set(inf, 0, data->dtype, 4, dims);
    return GRT_OK;
}

static const op_attr transpose_attrs[] = {{"perm", GRT_ATTR_INTS, false}, {0}};
static const op_attr block_attrs[] = {
    {"blocksize", GRT_ATTR_INT, true}, {"mode", GRT_ATTR_STRING, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Transpose",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = transpose_attrs,
     .flags = OP_SMALL_INTS | OP_PICKS,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .layout = OP_LAYOUT_TRANSPOSE,
     .batch = OP_BATCH_TRANSPOSE,
     .infer = infer_transpose,
     .stays = transpose_stays},
    {.domain = "",
     .name = "DepthToSpace",
     .since = 28,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = block_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .layout = OP_LAYOUT_DEPTH,
     .flags = OP_PICKS,
     .infer = infer_depth_to_space},
    {.domain = "",
     .name = "SpaceToDepth",
     .since = 28,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = block_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .flags = OP_PICKS,
     .infer = infer_space_to_depth},
};
OP_TABLE(transpose, rows);

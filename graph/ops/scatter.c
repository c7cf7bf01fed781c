/* SPDX-License-Identifier: Apache-2.0 */
/* Writing by index: ScatterElements, Scatter, ScatterND, TensorScatter; and graphrt::WriteSlice, where the
 * indices are ranges. The output has the first input's shape. */
#include "graph/ops/moves.h"
#include "src/base/checked.h"

#include <string.h>

static grt_status check_reduction(const infer *inf)
{
    static const char *const known[] = {"none", "add", "mul", "max", "min"};
    const char *reduction = grt_attr_string(inf->desc, "reduction", "none");
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(reduction, known[k]))
            return infer_same_dtype(inf, 0, 2);
    return infer_fail(inf, "attribute reduction is '%s'; expected none, add, mul, max or min", reduction);
}

static grt_status infer_scatter_elements(infer *inf)
{
    const ir_type *data = inf->in[0], *indices = inf->in[1], *updates = inf->in[2];
    int32_t axis;
    GRT_TRY(check_reduction(inf));
    if (data->rank >= 0)
        GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", 0), data->rank, &axis));
    if (data->rank >= 0 && indices->rank >= 0 && indices->rank != data->rank)
        return infer_fail(inf, "indices has rank %d; data has rank %d", indices->rank, data->rank);
    if (updates->rank >= 0 && indices->rank >= 0 && updates->rank != indices->rank)
        return infer_fail(inf, "updates has rank %d; indices has rank %d", updates->rank, indices->rank);
    for (int32_t k = 0; k < indices->rank && k < updates->rank; k++) {
        int64_t x, y;
        if (infer_const(inf, indices->dims[k], &x) && infer_const(inf, updates->dims[k], &y) && x != y)
            return infer_fail(inf, "dim %d is %lld in indices and %lld in updates", k, (long long)x,
                              (long long)y);
    }
    infer_set_like(inf, 0, data->dtype, data);
    return GRT_OK;
}

/* Scatter was renamed. */
static grt_status upgrade_scatter(ir_node *node, int32_t opset)
{
    (void)opset;
    ir_node_become(node, "", "ScatterElements");
    return GRT_OK;
}

static grt_status infer_scatter_nd(infer *inf)
{
    const ir_type *data = inf->in[0], *indices = inf->in[1], *updates = inf->in[2];
    int64_t depth, x, y;
    GRT_TRY(check_reduction(inf));
    infer_set_like(inf, 0, data->dtype, data);
    if (data->rank < 0 || indices->rank < 0 || updates->rank < 0)
        return GRT_OK;
    if (data->rank < 1 || indices->rank < 1)
        return infer_fail(inf, "data and indices must have rank 1 at least, found ranks %d and %d",
                          data->rank, indices->rank);
    if (!infer_const(inf, indices->dims[indices->rank - 1], &depth))
        return GRT_OK;
    if (depth < 1 || depth > data->rank)
        return infer_fail(inf, "the last dim of indices is %lld; data of rank %d allows 1 to %d",
                          (long long)depth, data->rank, data->rank);
    int32_t lead = indices->rank - 1, rank = lead + data->rank - (int32_t)depth;
    if (updates->rank != rank)
        return infer_fail(inf, "updates has rank %d; indices and data ask for rank %d", updates->rank, rank);
    for (int32_t k = 0; k < rank; k++) {
        grt_dim wanted = k < lead ? indices->dims[k] : data->dims[k - lead + depth];
        if (infer_const(inf, wanted, &x) && infer_const(inf, updates->dims[k], &y) && x != y)
            return infer_fail(inf, "dim %d of updates is %lld; expected %lld", k, (long long)y, (long long)x);
    }
    return GRT_OK;
}

static grt_status infer_tensor_scatter(infer *inf)
{
    const ir_type *cache = inf->in[0], *update = inf->in[1];
    const char *mode = grt_attr_string(inf->desc, "mode", "linear");
    int32_t axis;
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    if (strcmp(mode, "linear") && strcmp(mode, "circular"))
        return infer_fail(inf, "attribute mode is '%s'; expected linear or circular", mode);
    infer_set_like(inf, 0, cache->dtype, cache);
    if (cache->rank < 0)
        return GRT_OK;
    GRT_TRY(infer_axis(inf, "attribute axis", grt_attr_int(inf->desc, "axis", -2), cache->rank, &axis));
    if (axis == 0)
        return infer_fail(inf, "attribute axis names the batch axis");
    if (update->rank >= 0 && update->rank != cache->rank)
        return infer_fail(inf, "update has rank %d; past_cache has rank %d", update->rank, cache->rank);
    for (int32_t k = 0; k < update->rank; k++) {
        int64_t x, y;
        if (infer_const(inf, cache->dims[k], &x) && infer_const(inf, update->dims[k], &y) &&
            (k == axis ? y > x : x != y))
            return infer_fail(inf, "dim %d is %lld in update and %lld in past_cache", k, (long long)y,
                              (long long)x);
    }
    return GRT_OK;
}

/* Element i of updates goes to starts + i * steps, dim by dim: what Slice reads, written. */
static grt_status infer_write_slice(infer *inf)
{
    const ir_type *data = inf->in[0], *updates = inf->in[1];
    size_t n_starts, n_steps;
    const int64_t *starts = grt_attr_ints(inf->desc, "starts", &n_starts),
                  *steps = grt_attr_ints(inf->desc, "steps", &n_steps);
    GRT_TRY(infer_same_dtype(inf, 0, 1));
    infer_set_like(inf, 0, data->dtype, data);
    if (n_starts != n_steps || (data->rank >= 0 && (size_t)data->rank != n_starts) ||
        (updates->rank >= 0 && (size_t)updates->rank != n_starts))
        return infer_fail(inf, "data has rank %d, updates rank %d, and there are %zu starts and %zu steps",
                          data->rank, updates->rank, n_starts, n_steps);
    for (int32_t k = 0; k < (int32_t)n_starts; k++) {
        int64_t size = 1, n = 1, distance;
        const bool known = data->rank >= 0 && updates->rank >= 0 && infer_const(inf, data->dims[k], &size) &&
                           infer_const(inf, updates->dims[k], &n);
        if (starts[k] < 0 || steps[k] < 1)
            return infer_fail(inf, "dim %d starts at %lld, with step %lld", k, (long long)starts[k],
                              (long long)steps[k]);
        if (known && n > 0 &&
            (!grt_mul_i64(n - 1, steps[k], &distance) || !grt_add_i64(distance, starts[k], &distance) ||
             distance >= size))
            return infer_fail(inf, "dim %d of updates is %lld, which does not fit into data's %lld", k,
                              (long long)n, (long long)size);
    }
    return GRT_OK;
}

static const op_attr elements_attrs[] = {
    {"axis", GRT_ATTR_INT, false}, {"reduction", GRT_ATTR_STRING, false}, {0}};
static const op_attr nd_attrs[] = {{"reduction", GRT_ATTR_STRING, false}, {0}};
static const op_attr axis_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};
static const op_attr cache_attrs[] = {{"axis", GRT_ATTR_INT, false}, {"mode", GRT_ATTR_STRING, false}, {0}};

static const op_attr slice_attrs[] = {{"starts", GRT_ATTR_INTS, true}, {"steps", GRT_ATTR_INTS, true}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "ScatterElements",
     .since = 18,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = elements_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_scatter_elements},
    {.domain = "",
     .name = "Scatter",
     .since = 11,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = axis_attrs,
     .infer = infer_scatter_elements,
     .upgrade = upgrade_scatter},
    {.domain = "",
     .name = "ScatterND",
     .since = 18,
     .min_in = 3,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = nd_attrs,
     .precision = OP_WIDE,
     .cost = OP_COST_MOVE,
     .infer = infer_scatter_nd},
    {.domain = "",
     .name = "TensorScatter",
     .since = 24,
     .min_in = 2,
     .max_in = 3,
     .min_out = 1,
     .max_out = 1,
     .attrs = cache_attrs,
     .precision = OP_WIDE,
     .infer = infer_tensor_scatter},
    {.domain = "graphrt",
     .name = "WriteSlice",
     .since = 1,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = slice_attrs,
     .precision = OP_FOLLOWS,
     .cost = OP_COST_MOVE,
     .infer = infer_write_slice},
};
OP_TABLE(scatter, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* Views: the same elements under other dims. Reshape, Flatten, Squeeze, Unsqueeze. */
#include "graph/ops/moves.h"

/* A view of a list or a number keeps the content. */
static void keep_elems(infer *inf)
{
    const grt_dim *elems;
    int64_t n;
    if (moves_elems(inf, 0, &elems, &n))
        moves_set_elems(inf, 0, elems, n);
}

typedef struct reshape_plan {
    int64_t wild; /* position of -1, or -1 */
    grt_dim before,
        now; /* elements of the dims that are not copied from the input, before and now; NONE: unknown */
} reshape_plan;

static grt_status reshape_dim(infer *inf, const grt_dim *shape, int64_t k, grt_dim *dims, bool *copied,
                              reshape_plan *plan)
{
    const ir_type *data = inf->in[0];
    int64_t v;
    dims[k] = shape[k];
    if (!infer_const(inf, shape[k], &v))
        return GRT_OK;
    if (v < -1)
        return infer_fail(inf, "shape[%lld] is %lld; expected a size, 0 or -1", (long long)k, (long long)v);
    if (v == -1) {
        if (plan->wild >= 0)
            return infer_fail(inf, "shape has -1 twice, at %lld and %lld", (long long)plan->wild,
                              (long long)k);
        plan->wild = k;
    } else if (v == 0 && !grt_attr_int(inf->desc, "allowzero", 0)) {
        if (data->rank >= 0 && k >= data->rank)
            return infer_fail(
                inf, "shape[%lld] is 0, which copies that dim of the input, but the input has rank %d",
                (long long)k, data->rank);
        dims[k] = data->rank < 0 ? grt_dim_fresh(inf->dims) : data->dims[k];
        copied[k] = true;
    }
    return GRT_OK;
}

static grt_status reshape_check(infer *inf, const reshape_plan *plan, grt_dim *dims)
{
    int64_t before, now;
    bool known_now = infer_const(inf, plan->now, &now),
         known = infer_const(inf, plan->before, &before) && known_now;
    if (plan->wild >= 0) {
        if (known_now && now == 0)
            return infer_fail(inf, "shape[%lld] is -1 but cannot be found as another dim is 0",
                              (long long)plan->wild);
        if (known && before % now)
            return infer_fail(inf, "%lld elements cannot be spread over dims whose product is %lld",
                              (long long)before, (long long)now);
        dims[plan->wild] = grt_dim_divide_exact(inf->dims, plan->before, plan->now);
    } else if (known && before != now) {
        return infer_fail(inf, "shape asks for %lld elements where the input has %lld", (long long)now,
                          (long long)before);
    }
    return GRT_OK;
}

/* A copied dim of 0: there are no elements, however the other dims are. */
static bool copies_zero(const infer *inf, const grt_dim *dims, const bool *copied, int64_t n)
{
    int64_t v;
    for (int64_t k = 0; k < n; k++)
        if (copied[k] && infer_const(inf, dims[k], &v) && v == 0)
            return true;
    return false;
}

static grt_status infer_reshape(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *shape;
    int64_t n;
    if (!infer_elems(inf, 1, &shape, &n)) {
        moves_set_fresh_by(inf, data->dtype, 1);
        return GRT_OK;
    }
    GRT_TRY(moves_check_rank(inf, n));
    grt_dim *dims = infer_dims(inf, (int32_t)n);
    if (!dims)
        return GRT_OK;
    bool copied[GRT_MAX_RANK] = {false};
    reshape_plan plan = {.wild = -1};
    for (int64_t k = 0; k < n; k++)
        GRT_TRY(reshape_dim(inf, shape, k, dims, copied, &plan));
    if (data->rank >= 0) {
        plan.before = plan.now = grt_dim_const(inf->dims, 1);
        for (int32_t k = 0; k < data->rank; k++)
            if (k >= n || !copied[k])
                plan.before = grt_dim_mul(inf->dims, plan.before, data->dims[k]);
        for (int64_t k = 0; k < n; k++)
            if (!copied[k] && k != plan.wild)
                plan.now = grt_dim_mul(inf->dims, plan.now, dims[k]);
        if (plan.wild >= 0 || !copies_zero(inf, dims, copied, n))
            GRT_TRY(reshape_check(inf, &plan, dims));
    } else if (plan.wild >= 0) {
        dims[plan.wild] = grt_dim_fresh(inf->dims);
    }
    infer_set(inf, 0, data->dtype, (int32_t)n, dims);
    keep_elems(inf);
    return GRT_OK;
}

static grt_status upgrade_reshape(ir_node *node, int32_t opset)
{
    if (opset < 5) {
        moves_attr_to_input(node, "shape", 1);
        ir_attr_remove(node, "consumed_inputs");
    }
    return GRT_OK;
}

static grt_status infer_flatten(infer *inf)
{
    const ir_type *data = inf->in[0];
    int64_t axis = grt_attr_int(inf->desc, "axis", 1);
    if (data->rank < 0) {
        infer_set_fresh(inf, 0, data->dtype, 2);
        return GRT_OK;
    }
    if (axis < -data->rank || axis > data->rank)
        return infer_fail(inf, "axis is %lld; for rank %d it must be in [%d, %d]", (long long)axis,
                          data->rank, -data->rank, data->rank);
    int32_t cut = (int32_t)(axis < 0 ? axis + data->rank : axis);
    grt_dim *dims = infer_dims(inf, 2);
    if (!dims)
        return GRT_OK;
    dims[0] = infer_product(inf, data->dims, 0, cut);
    dims[1] = infer_product(inf, data->dims, cut, data->rank);
    infer_set(inf, 0, data->dtype, 2, dims);
    return GRT_OK;
}

/* Without axes, dims that are 1 go: all must be known. */
static bool squeeze_ones(const infer *inf, const ir_type *data, bool *axes)
{
    for (int32_t k = 0; k < data->rank; k++) {
        int64_t v;
        if (!infer_const(inf, data->dims[k], &v))
            return false;
        axes[k] = v == 1;
    }
    return true;
}

static grt_status infer_squeeze(infer *inf)
{
    const ir_type *data = inf->in[0];
    bool axes[GRT_MAX_RANK], known;
    int64_t n_axes;
    int32_t n_listed;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    GRT_TRY(moves_axes(inf, 1, data->rank, axes, &n_axes, &known));
    if (known && !infer_has(inf, 1))
        known = squeeze_ones(inf, data, axes);
    if (!known) {
        if (moves_length(inf, 1, &n_listed) && n_listed <= data->rank)
            infer_set_fresh(inf, 0, data->dtype, data->rank - n_listed);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    grt_dim *dims = infer_dims(inf, data->rank);
    int32_t rank = 0;
    for (int32_t k = 0; dims && k < data->rank; k++) {
        int64_t v;
        if (!axes[k])
            dims[rank++] = data->dims[k];
        else if (infer_const(inf, data->dims[k], &v) && v != 1)
            return infer_fail(inf, "axis %d has size %lld; only axes of size 1 can be squeezed", k,
                              (long long)v);
    }
    infer_set(inf, 0, data->dtype, rank, dims);
    keep_elems(inf);
    return GRT_OK;
}

static grt_status upgrade_axes(ir_node *node, int32_t opset)
{
    if (opset < 13)
        moves_attr_to_input(node, "axes", 1);
    return GRT_OK;
}

static grt_status infer_unsqueeze(infer *inf)
{
    const ir_type *data = inf->in[0];
    const int64_t *listed;
    int64_t n;
    int32_t n_listed;
    if (data->rank < 0 || !infer_ints(inf, 1, &listed, &n)) {
        if (data->rank >= 0 && moves_length(inf, 1, &n_listed) && data->rank + n_listed <= GRT_MAX_RANK)
            infer_set_fresh(inf, 0, data->dtype, data->rank + n_listed);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    GRT_TRY(moves_check_rank(inf, data->rank + n));
    int32_t rank = data->rank + (int32_t)n;
    bool axes[GRT_MAX_RANK], known;
    GRT_TRY(moves_axes(inf, 1, rank, axes, &n, &known));
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t k = 0, from = 0; dims && k < rank; k++)
        dims[k] = axes[k] ? grt_dim_const(inf->dims, 1) : data->dims[from++];
    infer_set(inf, 0, data->dtype, rank, dims);
    keep_elems(inf);
    return GRT_OK;
}

static const op_attr reshape_attrs[] = {{"allowzero", GRT_ATTR_INT, false}, {0}};
static const op_attr flatten_attrs[] = {{"axis", GRT_ATTR_INT, false}, {0}};

static const op_row rows[] = {
    {.domain = "",
     .name = "Reshape",
     .since = 25,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .attrs = reshape_attrs,
     .flags = OP_VIEW | OP_SMALL_INTS | OP_SHAPED,
     .precision = OP_FOLLOWS_FIRST,
     .layout = OP_LAYOUT_RESHAPE,
     .infer = infer_reshape,
     .upgrade = upgrade_reshape},
    {.domain = "",
     .name = "Flatten",
     .since = 25,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = flatten_attrs,
     .flags = OP_VIEW,
     .precision = OP_FOLLOWS,
     .infer = infer_flatten},
    {.domain = "",
     .name = "Squeeze",
     .since = 25,
     .min_in = 1,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_VIEW | OP_SMALL_INTS | OP_SHAPED,
     .precision = OP_FOLLOWS_FIRST,
     .infer = infer_squeeze,
     .upgrade = upgrade_axes},
    {.domain = "",
     .name = "Unsqueeze",
     .since = 25,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_VIEW | OP_SMALL_INTS | OP_SHAPED,
     .precision = OP_FOLLOWS_FIRST,
     .infer = infer_unsqueeze,
     .upgrade = upgrade_axes},
};
OP_TABLE(reshape, rows);

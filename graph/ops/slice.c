/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting out boxes: Slice. */
#include "graph/ops/moves.h"

typedef struct cut {
    grt_dim start, end;
    int64_t step;
    bool known_step;
} cut;

/* Size of one axis when all is constant. Starts and ends are clamped as Python does. */
static int64_t cut_size(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    start = start < 0 ? (start < -dim ? low : start + dim) : start;
    end = end < 0 ? (end < -dim ? low : end + dim) : end;
    start = start < low ? low : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    uint64_t distance = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    bool any = step > 0 ? end > start : end < start;
    return any ? (int64_t)((distance - 1) / stride + 1) : 0;
}

/* True if at is -n and the axis has n entries at most: x[-n:] begins at the front, also where n is 0. */
static bool reaches_front(grt_dims *dims, grt_dim dim, grt_dim at)
{
    const grt_dim n = grt_dim_mulc(dims, at, -1);
    const grt_dim_expr e = grt_dim_get(dims, dim);
    return grt_dim_is_size(dims, n) && (n == dim || (e.op == GRT_DIM_MIN && (n == e.a || n == e.b)));
}

/* A start or end on an axis of symbolic size, clamped to [0, dim]; NONE if its sign is not known. */
static grt_dim bound(const infer *inf, grt_dim dim, grt_dim at)
{
    int64_t v;
    if (infer_const(inf, at, &v)) {
        if (v >= INT32_MAX)
            return dim; /* "to the end", as exporters write it */
        if (v <= -INT32_MAX)
            return grt_dim_const(inf->dims, 0);
        if (v < 0)
            return moves_clamp(inf->dims, grt_dim_addc(inf->dims, dim, v));
        if (v == 0)
            return at;
    } else if (reaches_front(inf->dims, dim, at)) {
        return grt_dim_const(inf->dims, 0);
    } else if (!grt_dim_is_size(inf->dims, at)) {
        return GRT_DIM_NONE;
    }
    return grt_dim_make(inf->dims, GRT_DIM_MIN, dim, at);
}

static grt_dim cut_dim(const infer *inf, grt_dim dim, const cut *c)
{
    int64_t size, start, end;
    grt_dims *dims = inf->dims;
    if (!c->known_step)
        return grt_dim_fresh(dims);
    bool known_start = infer_const(inf, c->start, &start), known_end = infer_const(inf, c->end, &end);
    if (infer_const(inf, dim, &size) && known_start && known_end)
        return grt_dim_const(dims, cut_size(size, start, end, c->step));
    if (c->step < 0) {
        bool whole = known_start && known_end && (start == -1 || start >= INT32_MAX) && end <= -INT32_MAX &&
                     c->step != INT64_MIN;
        return whole ? grt_dim_ceildiv(dims, dim, grt_dim_const(dims, -c->step)) : grt_dim_fresh(dims);
    }
    grt_dim from = bound(inf, dim, c->start), to = bound(inf, dim, c->end);
    if (from == GRT_DIM_NONE || to == GRT_DIM_NONE)
        return grt_dim_fresh(dims);
    grt_dim length;
    if (to == dim && known_start && start >= 0)
        length = moves_clamp(
            dims, grt_dim_addc(dims, dim, -start)); /* min(start, dim) is not needed under the clamp */
    else
        length = moves_clamp(dims, grt_dim_sub(dims, to, from));
    return grt_dim_ceildiv(dims, length, grt_dim_const(dims, c->step));
}

/* The cut of each axis named by axes. */
static grt_status read_cuts(infer *inf, int32_t rank, const grt_dim *starts, const grt_dim *ends,
                            const int64_t *axes, int64_t n, cut *cuts, bool *cut_here)
{
    const grt_dim *steps = NULL;
    int64_t n_steps = n;
    bool have_steps = infer_has(inf, 4), known_steps = have_steps && infer_elems(inf, 4, &steps, &n_steps);
    if (n_steps != n)
        return infer_fail(inf, "starts has %lld entries and steps %lld", (long long)n, (long long)n_steps);
    for (int64_t k = 0; k < n; k++) {
        int32_t axis;
        GRT_TRY(infer_axis(inf, "an entry of axes", axes ? axes[k] : k, rank, &axis));
        if (cut_here[axis])
            return infer_fail(inf, "axes names axis %d twice", axis);
        cut_here[axis] = true;
        cut *c = &cuts[axis];
        *c = (cut){starts[k], ends[k], 1, !have_steps};
        if (known_steps)
            c->known_step = infer_const(inf, steps[k], &c->step);
        if (c->known_step && c->step == 0)
            return infer_fail(inf, "steps[%lld] is 0; it must not be", (long long)k);
    }
    return GRT_OK;
}

/* Content of the output: a constant cut of a known list. */
static void slice_elems(infer *inf, const cut *c)
{
    const grt_dim *elems;
    int64_t n, start, end, size;
    if (!moves_elems(inf, 0, &elems, &n) || !c->known_step || !infer_const(inf, c->start, &start) ||
        !infer_const(inf, c->end, &end) || inf->out[0].rank != 1 ||
        !infer_const(inf, inf->out[0].dims[0], &size))
        return;
    grt_dim *taken = infer_dims(inf, (int32_t)size);
    int64_t first = start < 0 ? start + n : start;
    first = first < 0 ? 0 : first >= n ? n - 1 : first;
    for (int64_t k = 0; taken && k < size; k++)
        taken[k] = elems[first + k * c->step];
    moves_set_elems(inf, 0, taken, size);
}

static grt_status infer_slice(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *starts, *ends;
    const int64_t *axes = NULL;
    int64_t n, n_ends, n_axes;
    if (data->rank < 0) {
        infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    bool known_axes = !infer_has(inf, 3) || infer_ints(inf, 3, &axes, &n_axes);
    if (!infer_elems(inf, 1, &starts, &n) || !infer_elems(inf, 2, &ends, &n_ends) || !known_axes) {
        /* axes that are known to be left alone keep their size */
        infer_set_fresh(inf, 0, data->dtype, data->rank);
        grt_dim *dims = (grt_dim *)inf->out[0].dims;
        bool touched[GRT_MAX_RANK] = {false};
        for (int64_t k = 0; axes && known_axes && k < n_axes; k++) {
            int32_t axis;
            GRT_TRY(infer_axis(inf, "an entry of axes", axes[k], data->rank, &axis));
            touched[axis] = true;
        }
        for (int32_t k = 0; axes && known_axes && dims && k < data->rank; k++)
            if (!touched[k])
                dims[k] = data->dims[k];
        return GRT_OK;
    }
    if (n != n_ends || (axes && n != n_axes))
        return infer_fail(inf, "starts has %lld entries, ends %lld and axes %lld; they must be as many",
                          (long long)n, (long long)n_ends, (long long)(axes ? n_axes : n));
    cut cuts[GRT_MAX_RANK];
    bool cut_here[GRT_MAX_RANK] = {false};
    GRT_TRY(read_cuts(inf, data->rank, starts, ends, axes, n, cuts, cut_here));
    grt_dim *dims = infer_dims(inf, data->rank);
    for (int32_t k = 0; dims && k < data->rank; k++)
        dims[k] = cut_here[k] ? cut_dim(inf, data->dims[k], &cuts[k]) : data->dims[k];
    infer_set(inf, 0, data->dtype, data->rank, dims);
    const grt_dim *elems;
    int64_t n_elems;
    if (dims && data->rank == 1 && cut_here[0])
        slice_elems(inf, &cuts[0]);
    else if (dims && data->rank == 1 && moves_elems(inf, 0, &elems, &n_elems))
        moves_set_elems(inf, 0, elems, n_elems);
    return GRT_OK;
}

static grt_status upgrade_slice(ir_node *node, int32_t opset)
{
    if (opset < 10) {
        moves_attr_to_input(node, "starts", 1);
        moves_attr_to_input(node, "ends", 2);
        moves_attr_to_input(node, "axes", 3);
    }
    return GRT_OK;
}

/* All is taken, and nothing backwards. */
static bool slice_stays(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                        const grt_tensor *out)
{
    enum { STEPS = 4 };
    const grt_tensor *steps = n_in > STEPS ? in[STEPS] : NULL;
    (void)desc;
    if (grt_tensor_elements(in[0]) != grt_tensor_elements(out) || (steps && !steps->data))
        return false;
    for (int64_t i = 0; steps && i < grt_tensor_elements(steps); i++)
        if (grt_tensor_int(steps, i) < 0)
            return false;
    return true;
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Slice",
     .since = 13,
     .min_in = 3,
     .max_in = 5,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_SMALL_INTS | OP_PICKS,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .layout = OP_LAYOUT_SLICE,
     .infer = infer_slice,
     .stays = slice_stays,
     .upgrade = upgrade_slice},
};
OP_TABLE(slice, rows);

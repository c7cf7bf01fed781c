/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/slice.h"

#include "src/base/checked.h"

static grt_status bad_entry(const grt_op_desc *desc, const char *what, int64_t k, int64_t value, int32_t rank)
{
    return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                       "%s[%lld] is %lld, which does not fit an input of rank %d and this output", what,
                       (long long)k, (long long)value, rank);
}

static grt_status bad_dim(const grt_op_desc *desc, int32_t axis, int64_t found, int64_t expected)
{
    return grt_fail_op(
        desc, GRT_STATUS_INVALID_ARGUMENT,
        "dim %d of the output is %lld where that of the input is %lld, and axes does not name it", (int)axis,
        (long long)found, (long long)expected);
}

static int64_t slice_index_at(const grt_tensor *t, int64_t k)
{
    return t->dtype == GRT_DTYPE_INT64 ? ((const int64_t *)t->data)[k] : ((const int32_t *)t->data)[k];
}

static int64_t clamp_start(int64_t start, int64_t dim, int64_t step)
{
    int64_t high = step > 0 ? dim : dim - 1;
    start = start < 0 ? (start < -dim ? (step > 0 ? 0 : -1) : start + dim) : start;
    return start > high ? high : start;
}

/* Entry k of starts, axes and steps. named: one bit for each axis that an entry has been for. */
static grt_status take_entry(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in, int64_t k,
                             const grt_tensor *out, uint32_t *named, grt_slice *slice)
{
    const grt_tensor *x = in[0], *axes = n_in > 3 ? in[3] : NULL, *steps = n_in > 4 ? in[4] : NULL;
    const int64_t given = axes ? slice_index_at(axes, k) : k, axis = grt_axis(given, x->rank);
    const int64_t step = steps ? slice_index_at(steps, k) : 1, start = slice_index_at(in[1], k);
    if (axis < 0 || *named >> axis & 1)
        return bad_entry(desc, "axes", k, given, x->rank);
    *named |= 1u << axis;
    if (step == 0)
        return bad_entry(desc, "steps", k, step, x->rank);
    const int64_t dim = x->dims[axis], first = clamp_start(start, dim, step);
    int64_t way, last;
    if (!grt_mul_i64(out->dims[axis] - 1, step, &way) || !grt_add_i64(first, way, &last) || first < 0 ||
        first >= dim || last < 0 || last >= dim)
        return bad_entry(desc, "starts", k, start, x->rank);
    slice->offset += first * slice->steps[axis];
    slice->steps[axis] = out->dims[axis] == 1 ? 0 : slice->steps[axis] * step;
    return GRT_OK;
}

grt_status grt_slice_plan(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                          const grt_tensor *out, grt_slice *slice)
{
    uint32_t named = 0;
    slice->offset = 0;
    grt_dims_strides(in[0]->dims, in[0]->rank, slice->steps);
    if (!grt_tensor_elements(out))
        return GRT_OK;
    const int64_t n = grt_tensor_elements(in[1]);
    for (int64_t k = 0; k < n; k++)
        GRT_TRY(take_entry(desc, in, n_in, k, out, &named, slice));
    for (int32_t axis = 0; axis < in[0]->rank; axis++)
        if (!(named >> axis & 1) && out->dims[axis] != in[0]->dims[axis])
            return bad_dim(desc, axis, out->dims[axis], in[0]->dims[axis]);
    return GRT_OK;
}

grt_status grt_write_slice_plan(const grt_op_desc *desc, const grt_tensor *out, const grt_tensor *updates,
                                grt_slice *slice)
{
    size_t n_starts, n_steps;
    const int64_t *starts = grt_attr_ints(desc, "starts", &n_starts),
                  *steps = grt_attr_ints(desc, "steps", &n_steps);
    slice->offset = 0;
    grt_dims_strides(out->dims, out->rank, slice->steps);
    if (n_starts != (size_t)out->rank || n_steps != n_starts || updates->rank != out->rank)
        return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the output has rank %d, updates rank %d, and there are %zu starts and %zu steps",
                           out->rank, updates->rank, n_starts, n_steps);
    for (int32_t axis = 0; axis < out->rank; axis++) {
        const int64_t n = updates->dims[axis];
        int64_t last;
        if (n == 0)
            continue;
        if (starts[axis] < 0 || steps[axis] < 1 || !grt_mul_i64(n - 1, steps[axis], &last) ||
            !grt_add_i64(last, starts[axis], &last) || last >= out->dims[axis])
            return grt_fail_op(
                desc, GRT_STATUS_INVALID_ARGUMENT,
                "dim %d of updates is %lld, which does not fit into the output's %lld from %lld "
                "on, with step %lld",
                axis, (long long)n, (long long)out->dims[axis], (long long)starts[axis],
                (long long)steps[axis]);
        slice->offset += starts[axis] * slice->steps[axis];
        slice->steps[axis] *= n == 1 ? 1 : steps[axis];
    }
    return GRT_OK;
}

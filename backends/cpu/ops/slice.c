/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: one strided copy. */
#include "backends/cpu/move.h"

#include "src/base/checked.h"

static grt_status bad_entry(const grt_run *run, const char *what, int64_t k, int64_t value)
{
    return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "%s[%lld] is %lld, which does not fit an input of rank %d and this output", what,
                       (long long)k, (long long)value, run->in[0]->rank);
}

static int64_t clamp_start(int64_t start, int64_t dim, int64_t step)
{
    int64_t high = step > 0 ? dim : dim - 1;
    start = start < 0 ? (start < -dim ? (step > 0 ? 0 : -1) : start + dim) : start;
    return start > high ? high : start;
}

static grt_status run_slice(const grt_run *run)
{
    const grt_tensor *in = run->in[0], *starts = run->in[1];
    const grt_tensor *axes = run->n_in > 3 ? run->in[3] : NULL, *steps = run->n_in > 4 ? run->in[4] : NULL;
    grt_tensor *out = run->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK], offset = 0, n = grt_tensor_elements(starts);
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    if (grt_tensor_elements(out) == 0)
        return GRT_OK;
    for (int64_t k = 0; k < n; k++) {
        int64_t axis = grt_axis(axes ? cpu_index(axes, k) : k, in->rank),
                step = steps ? cpu_index(steps, k) : 1;
        if (axis < 0 || step == 0)
            return bad_entry(run, axis < 0 ? "axes" : "steps", k,
                             axis < 0 && axes ? cpu_index(axes, k)
                             : axis < 0       ? k
                                              : step);
        int64_t dim = in->dims[axis], start = clamp_start(cpu_index(starts, k), dim, step), way, last;
        if (!grt_mul_i64(out->dims[axis] - 1, step, &way) || !grt_add_i64(start, way, &last) || start < 0 ||
            start >= dim || last < 0 || last >= dim)
            return bad_entry(run, "starts", k, cpu_index(starts, k));
        offset += start * from[axis];
        from[axis] = out->dims[axis] == 1 ? 0 : from[axis] * step;
    }
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    for (int32_t k = 0; k < in->rank; k++)
        cpu_move_axis(&move, out->dims[k], to[k], from[k]);
    cpu_move_run(&move, out->data, cpu_at_const(in->data, offset, move.size), run->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Slice", .domain = "", .types = {CPU_MOVABLE, CPU_INDEX, CPU_INDEX, CPU_INDEX}, .run = run_slice},
};
CPU_KERNELS(slice, rows);

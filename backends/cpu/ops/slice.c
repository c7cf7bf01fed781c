/* SPDX-License-Identifier: Apache-2.0 */
/* Slice: one strided copy. */
#include "backends/cpu/move.h"
#include "backends/shared/slice.h"

static grt_status run_slice(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    grt_slice slice;
    int64_t to[GRT_MAX_RANK];
    if (grt_tensor_elements(out) == 0)
        return GRT_OK;
    GRT_TRY(grt_slice_plan(run->desc, run->in, run->n_in, out, &slice));
    grt_dims_strides(out->dims, out->rank, to);
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    for (int32_t k = 0; k < in->rank; k++)
        cpu_move_axis(&move, out->dims[k], to[k], slice.steps[k]);
    cpu_move_run(&move, out->data, cpu_at_const(in->data, slice.offset, move.size), run->threads);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Slice", .domain = "", .types = {CPU_MOVABLE, CPU_INDEX, CPU_INDEX, CPU_INDEX}, .run = run_slice},
};
CPU_KERNELS(slice, rows);

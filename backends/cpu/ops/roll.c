/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Roll: a copy for each of the boxes that stay together. */
#include "backends/cpu/move.h"

/* Copies what lies in the half of each axis that the bits of `halves` say: 1, what came in from the other
 * end. */
static void copy_box(const grt_run *run, const int64_t *shifts, uint32_t halves)
{
    const grt_tensor *in = run->in[0];
    int64_t strides[GRT_MAX_RANK], to = 0, from = 0;
    cpu_move move = {.size = grt_dtype_size(in->dtype)};
    grt_dims_strides(in->dims, in->rank, strides);
    for (int32_t k = 0; k < in->rank; k++) {
        const bool came_in = halves >> k & 1;
        to += came_in ? (in->dims[k] - shifts[k]) * strides[k] : 0;
        from += came_in ? 0 : shifts[k] * strides[k];
        cpu_move_axis(&move, came_in ? shifts[k] : in->dims[k] - shifts[k], strides[k], strides[k]);
    }
    cpu_move_run(&move, cpu_at(run->out[0]->data, to, move.size), cpu_at_const(in->data, from, move.size),
                 run->threads);
}

static grt_status cpu_run_roll(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    int64_t shifts[GRT_MAX_RANK];
    size_t n;
    const int64_t *given = grt_attr_ints(run->desc, "shifts", &n);
    uint32_t rolled = 0;
    if (!grt_tensor_elements(in))
        return GRT_OK;
    for (int32_t k = 0; k < in->rank; k++) {
        shifts[k] = (size_t)k < n && given[k] >= 0 ? given[k] % in->dims[k] : 0;
        rolled |= (uint32_t)(shifts[k] > 0) << k;
    }
    for (uint32_t halves = rolled;; halves = (halves - 1) & rolled) { /* all subsets of the rolled axes */
        copy_box(run, shifts, halves);
        if (!halves)
            return GRT_OK;
    }
}

static const grt_kernel_row rows[] = {
    {.op = "Roll", .domain = "graphrt", .types = {CPU_MOVABLE}, .run = cpu_run_roll},
};
CPU_KERNELS(roll, rows);

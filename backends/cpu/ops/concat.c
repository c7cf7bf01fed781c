/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split: runs along the axis are contiguous on both sides. */
#include "backends/cpu/move.h"

static grt_status concat_create_axis(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(int64_t), out_state));
    *(int64_t *)*out_state = grt_attr_int(node->desc, "axis", 0);
    return GRT_OK;
}

/* Copy all of `part` to or from the slab of `whole` that starts at `offset` along the axis. */
static void move_slab(const grt_run *run, const grt_tensor *whole, const grt_tensor *part, int32_t axis,
                      int64_t offset, bool cut)
{
    int64_t outer = grt_dims_product(part->dims, 0, axis),
            inner = grt_dims_product(part->dims, axis + 1, part->rank);
    int64_t run_part = part->dims[axis] * inner, run_whole = whole->dims[axis] * inner;
    size_t size = grt_dtype_size(part->dtype);
    cpu_move move = {.size = size};
    cpu_move_axis(&move, outer, cut ? run_part : run_whole, cut ? run_whole : run_part);
    cpu_move_axis(&move, run_part, 1, 1);
    void *slab = cpu_at(whole->data, offset * inner, size);
    cpu_move_run(&move, cut ? part->data : slab, cut ? slab : part->data, run->threads);
}

static grt_status run_concat(const grt_run *run)
{
    const grt_tensor *out = run->out[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)run->state, out->rank);
    int64_t offset = 0;
    for (int32_t i = 0; i < run->n_in; i++) {
        move_slab(run, out, run->in[i], axis, offset, false);
        offset += run->in[i]->dims[axis];
    }
    return GRT_OK;
}

static grt_status run_split(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)run->state, in->rank);
    int64_t offset = 0;
    /* Unused outputs are omitted, so their sizes must come from `split` or from equal parts. */
    const grt_tensor *split = run->n_in > 1 ? run->in[1] : NULL;
    int64_t part = (in->dims[axis] + run->n_out - 1) / run->n_out;
    for (int32_t i = 0; i < run->n_out; i++) {
        const grt_tensor *out = run->out[i];
        int64_t left = in->dims[axis] - offset, size = split         ? cpu_index(split, i)
                                                       : part < left ? part
                                                                     : left;
        if (size < 0 || size > left || (out && out->dims[axis] != size))
            return grt_fail_op(
                run->desc, GRT_STATUS_INVALID_ARGUMENT,
                "split[%d] is %lld, which does not fit: the axis has size %lld, of which %lld are left", i,
                (long long)size, (long long)in->dims[axis], (long long)left);
        if (out)
            move_slab(run, in, out, axis, offset, true);
        offset += size;
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Concat",
     .domain = "",
     .types = {CPU_MOVABLE},
     .create = concat_create_axis,
     .destroy = free,
     .run = run_concat},
    {.op = "Split",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX},
     .create = concat_create_axis,
     .destroy = free,
     .run = run_split},
};
CPU_KERNELS(concat, rows);

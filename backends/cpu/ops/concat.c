/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split: runs along the axis are contiguous on both sides. */
#include "backends/cpu/move.h"
#include "backends/shared/concat.h"

#include <string.h>

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

/* Runs of all inputs, row by row: `outer` rows of the result, shared by the threads. */
static void interleave_inputs(const grt_run *run, int32_t axis, int64_t outer)
{
    const grt_tensor *out = run->out[0];
    const size_t row_bytes =
        (size_t)grt_dims_product(out->dims, axis, out->rank) * grt_dtype_size(out->dtype);
#pragma omp parallel for num_threads(run->threads) schedule(static)
    for (int64_t i = 0; i < outer; i++) {
        char *to = cpu_at(out->data, i, row_bytes);
        for (int32_t k = 0; k < run->n_in; k++) {
            const grt_tensor *in = run->in[k];
            const size_t bytes =
                (size_t)grt_dims_product(in->dims, axis, in->rank) * grt_dtype_size(in->dtype);
            memcpy(to, cpu_at_const(in->data, i, bytes), bytes);
            to += bytes;
        }
    }
}

/* True if runs are long enough to write the result from front to back: input by input, its lines would be
 * written in parts, and a second thread might not pay for each. */
static bool pays_in_one(const grt_run *run, int32_t axis, int64_t outer)
{
    enum { LEAST_BYTES = 1 << 17, LEAST_RUN = 128 };
    const grt_tensor *out = run->out[0];
    const size_t size = grt_dtype_size(out->dtype);
    bool pays = outer >= 4 * run->threads && (size_t)grt_tensor_elements(out) * size >= LEAST_BYTES;
    for (int32_t i = 0; pays && i < run->n_in; i++)
        pays = (size_t)grt_dims_product(run->in[i]->dims, axis, out->rank) * size >= LEAST_RUN;
    return pays;
}

static grt_status run_concat(const grt_run *run)
{
    const grt_tensor *out = run->out[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)run->state, out->rank);
    const int64_t rows = grt_dims_product(out->dims, 0, axis);
    if (pays_in_one(run, axis, rows)) {
        interleave_inputs(run, axis, rows);
        return GRT_OK;
    }
    int64_t offset = 0;
    for (int32_t i = 0; i < run->n_in; i++) {
        move_slab(run, out, run->in[i], axis, offset, false);
        offset += run->in[i]->dims[axis];
    }
    return GRT_OK;
}

static grt_status cpu_concat_create_moved(const grt_kernel_node *node, void **out_state)
{
    return grt_moved_concat_read(node->desc, (grt_moved_concat **)out_state);
}

/* A part's copy, and where in the whole it goes. */
typedef struct moved_copy {
    cpu_move move;
    int64_t offset;
} moved_copy;

static grt_status cpu_concat_reshape_moved(grt_reshape *r)
{
    const grt_tensor *out = r->out[0];
    moved_copy *copies = calloc((size_t)r->n_in, sizeof *copies);
    int64_t at = 0;
    if (!copies)
        return grt_fail_memory((size_t)r->n_in * sizeof *copies);
    for (int32_t i = 0; i < r->n_in; i++) {
        grt_moved_part part;
        grt_moved_part_of(r->state, i, r->in[i], out, &at, &part);
        copies[i].offset = part.offset;
        copies[i].move.size = grt_dtype_size(out->dtype);
        for (int32_t k = 0; k < part.rank; k++)
            cpu_move_axis(&copies[i].move, part.dims[k], part.to[k], part.from[k]);
    }
    r->shape = copies;
    return GRT_OK;
}

static grt_status cpu_concat_run_moved(const grt_run *run)
{
    const moved_copy *copies = run->shape;
    for (int32_t i = 0; i < run->n_in; i++) {
        cpu_move move = copies[i].move; /* which is used up */
        cpu_move_run(&move, cpu_at(run->out[0]->data, copies[i].offset, move.size), run->in[i]->data,
                     run->threads);
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
    {.op = "Concat",
     .domain = "graphrt",
     .types = {CPU_MOVABLE},
     .create = cpu_concat_create_moved,
     .destroy = free,
     .reshape = cpu_concat_reshape_moved,
     .release_shape = free,
     .run = cpu_concat_run_moved},
    {.op = "Split",
     .domain = "",
     .types = {CPU_MOVABLE, CPU_INDEX},
     .create = concat_create_axis,
     .destroy = free,
     .run = run_split},
};
CPU_KERNELS(concat, rows);

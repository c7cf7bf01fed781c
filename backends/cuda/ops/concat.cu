/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Split. */
#include "backends/cuda/concat.h"
#include "backends/cuda/copy.h"

namespace
{

grt_status cuda_concat_create_axis(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", 0);
    *out_state = axis;
    return GRT_OK;
}

/* A copy of all of `part` to (or from, if cut) the slab of `whole` that starts at `offset` along the axis. */
void plan_slab(cuda_copy *copy, const grt_tensor *whole, const grt_tensor *part, int32_t axis, int64_t offset,
               bool cut)
{
    int64_t outer = grt_dims_product(part->dims, 0, axis),
            inner = grt_dims_product(part->dims, axis + 1, part->rank);
    int64_t run_part = part->dims[axis] * inner, run_whole = whole->dims[axis] * inner;
    cuda_copy_begin(copy, part->dtype);
    *(cut ? &copy->from_offset : &copy->to_offset) = offset * inner;
    cuda_copy_axis(copy, outer, cut ? run_part : run_whole, cut ? run_whole : run_part);
    cuda_copy_axis(copy, run_part, 1, 1);
    cuda_copy_end(copy);
}

grt_status copies(int32_t n, cuda_copy **out)
{
    *out = (cuda_copy *)calloc((size_t)(n > 0 ? n : 1), sizeof **out);
    return *out ? GRT_OK : grt_fail_memory((size_t)n * sizeof **out);
}

struct concat_shape {
    bool at_once; /* by one launch, if the pointers are aligned */
    cuda_concat all;
    cuda_copy *parts;
};

grt_status reshape_concat(grt_reshape *r)
{
    const grt_tensor *out = r->out[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)r->state, out->rank);
    int64_t offset = 0;
    concat_shape *s = (concat_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_status status = copies(r->n_in, &s->parts);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    int64_t row_bytes[CUDA_CONCAT_MOST];
    for (int32_t i = 0; i < r->n_in; i++) {
        const grt_tensor *in = r->in[i];
        plan_slab(&s->parts[i], out, in, axis, offset, false);
        offset += in->dims[axis];
        if (i < CUDA_CONCAT_MOST)
            row_bytes[i] = grt_dims_product(in->dims, axis, in->rank) * (int64_t)grt_dtype_size(in->dtype);
    }
    s->at_once = cuda_concat_plan(&s->all, grt_dims_product(out->dims, 0, axis), r->n_in, row_bytes);
    r->shape = s;
    return GRT_OK;
}

void release_concat(void *data)
{
    concat_shape *s = (concat_shape *)data;
    if (s)
        free(s->parts);
    free(s);
}

grt_status cuda_run_concat(const grt_run *r)
{
    const concat_shape *s = (const concat_shape *)r->shape;
    const void *src[CUDA_CONCAT_MOST];
    for (int32_t i = 0; s->at_once && i < r->n_in; i++)
        src[i] = r->in[i]->data;
    if (s->at_once && cuda_concat_run(&s->all, r->out[0]->data, src, cuda_stream(r))) {
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    for (int32_t i = 0; i < r->n_in; i++)
        GRT_TRY(cuda_copy_run(&s->parts[i], r->out[0]->data, r->in[i]->data, cuda_stream(r)));
    return GRT_OK;
}

grt_status reshape_split(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *split = r->n_in > 1 ? r->in[1] : NULL;
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)r->state, in->rank);
    int64_t offset = 0, part = (in->dims[axis] + r->n_out - 1) / r->n_out;
    if (split && !split->data)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input split must be known before the run");
    cuda_copy *parts;
    GRT_TRY(copies(r->n_out, &parts));
    /* Unused outputs are omitted, so their sizes must come from `split` or from equal parts. */
    for (int32_t i = 0; i < r->n_out; i++) {
        const grt_tensor *out = r->out[i];
        int64_t left = in->dims[axis] - offset, size = split         ? cuda_host_index(split, i)
                                                       : part < left ? part
                                                                     : left;
        if (size < 0 || size > left || (out && out->dims[axis] != size)) {
            free(parts);
            return grt_fail_op(
                r->desc, GRT_STATUS_INVALID_ARGUMENT,
                "split[%d] is %lld, which does not fit: the axis has size %lld, of which %lld are left", i,
                (long long)size, (long long)in->dims[axis], (long long)left);
        }
        if (out)
            plan_slab(&parts[i], in, out, axis, offset, true);
        offset += size;
    }
    r->shape = parts;
    return GRT_OK;
}

grt_status cuda_run_split(const grt_run *r)
{
    const cuda_copy *parts = (const cuda_copy *)r->shape;
    for (int32_t i = 0; i < r->n_out; i++)
        if (r->out[i])
            GRT_TRY(cuda_copy_run(&parts[i], r->out[i]->data, r->in[0]->data, cuda_stream(r)));
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Concat",
     .types = {CUDA_MOVABLE},
     .create = cuda_concat_create_axis,
     .destroy = free,
     .reshape = reshape_concat,
     .release_shape = release_concat,
     .run = cuda_run_concat},
    {.domain = "",
     .op = "Split",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1),
     .create = cuda_concat_create_axis,
     .destroy = free,
     .reshape = reshape_split,
     .release_shape = free,
     .run = cuda_run_split},
};

} // namespace
CUDA_KERNELS(concat, rows);

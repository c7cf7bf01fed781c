/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Split. */
#include "backends/cuda/concat.h"
#include "backends/cuda/copy.h"

extern "C" {
#include "backends/shared/concat.h"
}

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

void release_concat(void *data)
{
    concat_shape *s = (concat_shape *)data;
    if (s)
        free(s->parts);
    free(s);
}

grt_status make_concat_shape(int32_t n, concat_shape **out)
{
    GRT_TRY(cuda_state(out));
    const grt_status status = copies(n, &(*out)->parts);
    if (status != GRT_OK)
        free(*out);
    return status;
}

grt_status reshape_concat(grt_reshape *r)
{
    const grt_tensor *out = r->out[0];
    int32_t axis = (int32_t)grt_axis(*(const int64_t *)r->state, out->rank);
    int64_t offset = 0;
    concat_shape *s;
    GRT_TRY(make_concat_shape(r->n_in, &s));
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

bool concat_begins_early(const grt_run *r)
{
    return ((const cuda_device *)r->device)->prop.major >= 9;
}

grt_status cuda_run_concat(const grt_run *r)
{
    const concat_shape *s = (const concat_shape *)r->shape;
    void *parts[CUDA_CONCAT_MOST];
    bool done = false;
    for (int32_t i = 0; s->at_once && i < r->n_in; i++)
        parts[i] = (void *)r->in[i]->data;
    if (s->at_once)
        GRT_TRY(cuda_concat_run(&s->all, r->out[0]->data, parts, false, concat_begins_early(r),
                                cuda_stream(r), &done));
    for (int32_t i = 0; !done && i < r->n_in; i++)
        GRT_TRY(cuda_copy_run(&s->parts[i], r->out[0]->data, r->in[i]->data, cuda_stream(r)));
    return GRT_OK;
}

grt_status cuda_concat_create_moved(const grt_kernel_node *node, void **out_state)
{
    return grt_moved_concat_read(node->desc, (grt_moved_concat **)out_state);
}

/* By one launch where nothing is moved, as of a single token; else by a copy of each part. */
grt_status cuda_concat_reshape_moved(grt_reshape *r)
{
    const grt_moved_concat *c = (const grt_moved_concat *)r->state;
    const grt_tensor *out = r->out[0];
    const int32_t axis = (int32_t)grt_axis(c->axis, out->rank);
    concat_shape *s;
    int64_t at = 0, row_bytes[CUDA_CONCAT_MOST];
    bool stays = r->n_in <= CUDA_CONCAT_MOST;
    GRT_TRY(make_concat_shape(r->n_in, &s));
    for (int32_t i = 0; i < r->n_in; i++) {
        grt_moved_part part;
        cuda_copy *copy = &s->parts[i];
        grt_moved_part_of(c, i, r->in[i], out, &at, &part);
        cuda_copy_begin(copy, out->dtype);
        copy->to_offset = part.offset;
        for (int32_t k = 0; k < part.rank; k++)
            cuda_copy_axis(copy, part.dims[k], part.to[k], part.from[k]);
        cuda_copy_end(copy);
        stays = stays && part.stays;
        if (stays)
            row_bytes[i] = grt_dims_product(part.dims, axis, part.rank) * (int64_t)grt_dtype_size(out->dtype);
    }
    s->at_once = stays && cuda_concat_plan(&s->all, grt_dims_product(out->dims, 0, axis), r->n_in, row_bytes);
    r->shape = s;
    return GRT_OK;
}

/* Of several parts that are most of the whole. */
bool splits_at_once(const grt_reshape *r, const int64_t *row_bytes, int64_t outer, cuda_concat *all)
{
    int64_t whole = 0, wanted = 0;
    int32_t n = 0;
    if (r->n_out > CUDA_CONCAT_MOST)
        return false;
    for (int32_t i = 0; i < r->n_out; i++) {
        whole += row_bytes[i];
        wanted += r->out[i] ? row_bytes[i] : 0;
        n += r->out[i] && row_bytes[i];
    }
    return n > 1 && wanted >= whole / 2 && cuda_concat_plan(all, outer, r->n_out, row_bytes);
}

grt_status plan_split(const grt_reshape *r, concat_shape *s)
{
    const grt_tensor *in = r->in[0], *split = r->n_in > 1 ? r->in[1] : NULL;
    const int32_t axis = (int32_t)grt_axis(*(const int64_t *)r->state, in->rank);
    const int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank) * (int64_t)grt_dtype_size(in->dtype);
    int64_t offset = 0, part = (in->dims[axis] + r->n_out - 1) / r->n_out, row_bytes[CUDA_CONCAT_MOST];
    /* Unused outputs are omitted, so their sizes must come from `split` or from equal parts. */
    for (int32_t i = 0; i < r->n_out; i++) {
        const grt_tensor *out = r->out[i];
        int64_t left = in->dims[axis] - offset, size = split         ? cuda_host_index(split, i)
                                                       : part < left ? part
                                                                     : left;
        if (size < 0 || size > left || (out && out->dims[axis] != size))
            return grt_fail_op(
                r->desc, GRT_STATUS_INVALID_ARGUMENT,
                "split[%d] is %lld, which does not fit: the axis has size %lld, of which %lld are left", i,
                (long long)size, (long long)in->dims[axis], (long long)left);
        if (out)
            plan_slab(&s->parts[i], in, out, axis, offset, true);
        if (i < CUDA_CONCAT_MOST)
            row_bytes[i] = size * inner;
        offset += size;
    }
    s->at_once = offset == in->dims[axis] &&
                 splits_at_once(r, row_bytes, grt_dims_product(in->dims, 0, axis), &s->all);
    return GRT_OK;
}

grt_status reshape_split(grt_reshape *r)
{
    concat_shape *s;
    if (r->n_in > 1 && r->in[1] && !r->in[1]->data)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "input split must be known before the run");
    GRT_TRY(make_concat_shape(r->n_out, &s));
    const grt_status status = plan_split(r, s);
    if (status != GRT_OK) {
        release_concat(s);
        return status;
    }
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_run_split(const grt_run *r)
{
    const concat_shape *s = (const concat_shape *)r->shape;
    void *parts[CUDA_CONCAT_MOST];
    bool done = false;
    for (int32_t i = 0; s->at_once && i < r->n_out; i++)
        parts[i] = r->out[i] ? r->out[i]->data : NULL;
    if (s->at_once)
        GRT_TRY(cuda_concat_run(&s->all, (void *)r->in[0]->data, parts, true, concat_begins_early(r),
                                cuda_stream(r), &done));
    for (int32_t i = 0; !done && i < r->n_out; i++)
        if (r->out[i])
            GRT_TRY(cuda_copy_run(&s->parts[i], r->out[i]->data, r->in[0]->data, cuda_stream(r)));
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
    {.domain = "graphrt",
     .op = "Concat",
     .types = {CUDA_MOVABLE},
     .create = cuda_concat_create_moved,
     .destroy = free,
     .reshape = cuda_concat_reshape_moved,
     .release_shape = release_concat,
     .run = cuda_run_concat},
    {.domain = "",
     .op = "Split",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1),
     .create = cuda_concat_create_axis,
     .destroy = free,
     .reshape = reshape_split,
     .release_shape = release_concat,
     .run = cuda_run_split},
};

} // namespace
CUDA_KERNELS(concat, rows);

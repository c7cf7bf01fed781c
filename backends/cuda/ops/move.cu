/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that only move elements along strides: Transpose, DepthToSpace, SpaceToDepth, Concat, Split, Slice,
 * Expand, Tile, and Pad and CenterCropPad with a constant border. */
#include "backends/cuda/concat.h"
#include "backends/cuda/copy.h"
#include "backends/shared/slice.h"

#include "src/base/checked.h"

namespace
{

/* ---- Transpose ---- */

struct transpose_state {
    bool given;
    int32_t perm[GRT_MAX_RANK];
};

grt_status create_transpose(const grt_kernel_node *node, void **out_state)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(node->desc, "perm", &n);
    transpose_state *state;
    GRT_TRY(cuda_state(&state));
    state->given = perm != NULL;
    for (size_t k = 0; k < n && k < GRT_MAX_RANK; k++)
        state->perm[k] = (int32_t)(perm[k] < 0 ? perm[k] + (int64_t)n : perm[k]);
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_transpose(grt_reshape *r)
{
    const transpose_state *state = (const transpose_state *)r->state;
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(copy, in->dtype);
    for (int32_t k = 0; k < in->rank; k++)
        cuda_copy_axis(copy, out->dims[k], to[k], from[state->given ? state->perm[k] : in->rank - 1 - k]);
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

grt_status run_copy(const grt_run *r)
{
    return cuda_copy_run((const cuda_copy *)r->shape, r->out[0]->data, r->in[0]->data, cuda_stream(r));
}

/* ---- DepthToSpace, SpaceToDepth ---- */

struct block_state {
    int64_t block;
    bool columns_first; /* CRD: the depth is the slowest part of the channel */
};

grt_status create_block(const grt_kernel_node *node, void **out_state)
{
    block_state *state;
    GRT_TRY(cuda_state(&state));
    state->block = grt_attr_int(node->desc, "blocksize", 1);
    state->columns_first = !strcmp(grt_attr_string(node->desc, "mode", "DCR"), "CRD");
    *out_state = state;
    return GRT_OK;
}

/* The deep side [n, c*b*b, h, w] and the wide side [n, c, h*b, w*b] walked together. */
grt_status reshape_blocks(grt_reshape *r)
{
    const block_state *state = (const block_state *)r->state;
    bool to_wide = !strcmp(r->desc->op, "DepthToSpace");
    const grt_tensor *deep = r->in[0], *wide = r->out[0];
    if (!to_wide)
        deep = r->out[0], wide = r->in[0];
    int64_t b = state->block, c = wide->dims[1], h = deep->dims[2], w = deep->dims[3];
    int64_t area = h * w, depth_step = state->columns_first ? b * b * area : area;
    int64_t block_step = state->columns_first ? area : c * area;
    const int64_t dims[] = {deep->dims[0], c, h, b, w, b};
    const int64_t deep_strides[] = {deep->dims[1] * area, depth_step, w, b * block_step, 1, block_step};
    const int64_t wide_strides[] = {deep->dims[1] * area, area * b * b, w * b * b, w * b, b, 1};
    /* in the order of the destination */
    const int wide_order[] = {0, 1, 2, 3, 4, 5}, crd_order[] = {0, 1, 3, 5, 2, 4},
              dcr_order[] = {0, 3, 5, 1, 2, 4};
    const int *order = to_wide ? wide_order : state->columns_first ? crd_order : dcr_order;
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    cuda_copy_begin(copy, deep->dtype);
    for (int k = 0; k < 6; k++) {
        int a = order[k];
        cuda_copy_axis(copy, dims[a], to_wide ? wide_strides[a] : deep_strides[a],
                       to_wide ? deep_strides[a] : wide_strides[a]);
    }
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

/* ---- Concat, Split ---- */

grt_status create_axis(const grt_kernel_node *node, void **out_state)
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

grt_status run_concat(const grt_run *r)
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

grt_status run_split(const grt_run *r)
{
    const cuda_copy *parts = (const cuda_copy *)r->shape;
    for (int32_t i = 0; i < r->n_out; i++)
        if (r->out[i])
            GRT_TRY(cuda_copy_run(&parts[i], r->out[i]->data, r->in[0]->data, cuda_stream(r)));
    return GRT_OK;
}

/* ---- Slice ---- */

grt_status plan_slice(grt_reshape *r, cuda_copy *copy)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t to[GRT_MAX_RANK];
    grt_slice slice;
    cuda_copy_begin(copy, in->dtype);
    for (int32_t i = 1; i < r->n_in && grt_tensor_elements(out); i++)
        if (i != 2 && r->in[i] && !r->in[i]->data)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                               "inputs starts, axes and steps must be known before the run");
    GRT_TRY(grt_slice_plan(r->desc, r->in, r->n_in, out, &slice));
    grt_dims_strides(out->dims, out->rank, to);
    copy->from_offset += slice.offset;
    for (int32_t k = 0; k < in->rank; k++)
        cuda_copy_axis(copy, out->dims[k], to[k], slice.steps[k]);
    cuda_copy_end(copy);
    return GRT_OK;
}

grt_status reshape_slice(grt_reshape *r)
{
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_status status = plan_slice(r, copy);
    if (status != GRT_OK) {
        free(copy);
        return status;
    }
    r->shape = copy;
    return GRT_OK;
}

/* ---- Expand, Tile ---- */

grt_status reshape_expand(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_broadcast_strides(in->dims, in->rank, out->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(copy, in->dtype);
    for (int32_t k = 0; k < out->rank; k++)
        cuda_copy_axis(copy, out->dims[k], to[k], from[k]);
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

grt_status reshape_tile(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    bool empty = grt_tensor_elements(out) == 0;
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(copy, in->dtype);
    if (empty)
        cuda_copy_axis(copy, 0, 0, 0);
    for (int32_t k = 0; !empty && k < out->rank; k++) {
        cuda_copy_axis(copy, out->dims[k] / in->dims[k], to[k] * in->dims[k], 0);
        cuda_copy_axis(copy, in->dims[k], to[k], from[k]);
    }
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

/* ---- Pad, CenterCropPad ---- */

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/* Where the input goes: `first` and `size` say which part of each axis is used, `at` where that starts in the
 * output. */
struct placement {
    pad_mode mode;
    int32_t rank;
    int64_t total, dims[GRT_MAX_RANK], from[GRT_MAX_RANK];
    int64_t first[GRT_MAX_RANK], size[GRT_MAX_RANK], at[GRT_MAX_RANK];
};

struct pad_shape {
    bool border;
    cuda_copy copy; /* PAD_CONSTANT */
    placement p;
};

__device__ __forceinline__ int64_t source_index(pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == PAD_EDGE)
        return i < 0 ? 0 : n - 1;
    int64_t period = mode == PAD_WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
    i %= period;
    i = i < 0 ? i + period : i;
    return i < n ? i : period - i;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    pad_kernel(const __grid_constant__ placement p, T *dst, const T *src)
{
    CUDA_ITEMS (i, p.total) {
        int64_t rest = i, offset = 0;
        for (int32_t k = p.rank - 1; k >= 0; k--) {
            int64_t q = rest / p.dims[k], at = rest - q * p.dims[k];
            offset += (p.first[k] + source_index(p.mode, at - p.at[k], p.size[k])) * p.from[k];
            rest = q;
        }
        dst[i] = src[offset];
    }
}

template <typename T>
grt_status run_mirror(const placement *p, void *dst, const void *src, cudaStream_t stream)
{
    pad_kernel<T><<<cuda_grid(p->total), CUDA_BLOCK, 0, stream>>>(*p, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status create_pad(const grt_kernel_node *node, void **out_state)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = grt_attr_string(node->desc, "mode", "constant");
    pad_mode *state;
    GRT_TRY(cuda_state(&state));
    for (int k = 0; k < 4; k++)
        if (!strcmp(mode, names[k]))
            *state = (pad_mode)k;
    *out_state = state;
    return GRT_OK;
}

void place(placement *p, int32_t axis, int64_t dim, int64_t out_dim, int64_t before)
{
    p->first[axis] = before < 0 ? -before : 0;
    p->at[axis] = before > 0 ? before : 0;
    int64_t have = dim - p->first[axis], room = out_dim - p->at[axis];
    p->size[axis] = have < room ? have : room;
    p->size[axis] = p->size[axis] < 0 ? 0 : p->size[axis];
}

grt_status read_pads(grt_reshape *r, placement *p)
{
    const grt_tensor *in = r->in[0], *pads = r->in[1], *axes = r->n_in > 3 ? r->in[3] : NULL;
    int64_t n = axes ? grt_tensor_elements(axes) : in->rank;
    if (!pads->data || (axes && !axes->data))
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "inputs pads and axes must be known before the run");
    if (grt_tensor_elements(pads) != 2 * n)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "pads has %lld entries; %lld axes need %lld",
                           (long long)grt_tensor_elements(pads), (long long)n, (long long)(2 * n));
    for (int32_t k = 0; k < in->rank; k++)
        place(p, k, in->dims[k], r->out[0]->dims[k], 0);
    for (int64_t k = 0; k < n; k++) {
        int64_t axis = grt_axis(axes ? cuda_host_index(axes, k) : k, in->rank);
        if (axis < 0)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "axes[%lld] is %lld; for rank %d it must lie in [%d, %d]", (long long)k,
                               (long long)cuda_host_index(axes, k), in->rank, -in->rank, in->rank - 1);
        place(p, (int32_t)axis, in->dims[axis], r->out[0]->dims[axis], cuda_host_index(pads, k));
    }
    return GRT_OK;
}

void plan_pad(const grt_tensor *in, const grt_tensor *out, pad_shape *sh)
{
    placement *p = &sh->p;
    int64_t to[GRT_MAX_RANK], used = 1;
    p->rank = in->rank;
    p->total = grt_tensor_elements(out);
    grt_dims_strides(in->dims, in->rank, p->from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(&sh->copy, in->dtype);
    for (int32_t k = 0; k < in->rank; k++) {
        p->dims[k] = out->dims[k];
        used *= p->size[k];
        sh->copy.from_offset += p->first[k] * p->from[k];
        sh->copy.to_offset += p->at[k] * to[k];
        cuda_copy_axis(&sh->copy, p->size[k], to[k], p->from[k]);
    }
    cuda_copy_end(&sh->copy);
    sh->border = used < p->total;
}

grt_status reshape_pad(grt_reshape *r)
{
    pad_shape *sh;
    GRT_TRY(cuda_state(&sh));
    sh->p.mode = *(const pad_mode *)r->state;
    grt_status status = read_pads(r, &sh->p);
    for (int32_t k = 0; status == GRT_OK && sh->p.mode != PAD_CONSTANT && k < r->in[0]->rank; k++)
        if (sh->p.size[k] <= 0 && grt_tensor_elements(r->out[0]) > 0)
            status = grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                                 "axis %d has nothing that could fill its border", k);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    plan_pad(r->in[0], r->out[0], sh);
    r->shape = sh;
    return GRT_OK;
}

/* Both halves are rounded down at the start: the odd element is cut or added at the end. */
grt_status reshape_center(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    pad_shape *sh;
    GRT_TRY(cuda_state(&sh));
    for (int32_t k = 0; k < in->rank; k++) {
        int64_t more = out->dims[k] - in->dims[k];
        place(&sh->p, k, in->dims[k], out->dims[k], more > 0 ? more / 2 : -(-more / 2));
    }
    plan_pad(in, out, sh);
    r->shape = sh;
    return GRT_OK;
}

grt_status run_pad(const grt_run *r)
{
    const pad_shape *sh = (const pad_shape *)r->shape;
    const grt_tensor *in = r->in[0], *out = r->out[0];
    bool is_pad = !strcmp(r->desc->op, "Pad");
    const grt_tensor *value = is_pad && r->n_in > 2 ? r->in[2] : NULL;
    size_t size = grt_dtype_size(in->dtype);
    if (sh->p.total <= 0)
        return GRT_OK;
    if (sh->p.mode != PAD_CONSTANT)
        return CUDA_BY_SIZE(size, run_mirror, &sh->p, out->data, in->data, cuda_stream(r));
    if (sh->border)
        GRT_TRY(cuda_fill(out->data, size, sh->p.total, NULL,
                          value && grt_tensor_elements(value) ? value->data : NULL, cuda_stream(r)));
    return cuda_copy_run(&sh->copy, out->data, in->data, cuda_stream(r));
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Transpose",
     .types = {CUDA_MOVABLE},
     .create = create_transpose,
     .destroy = free,
     .reshape = reshape_transpose,
     .release_shape = free,
     .run = run_copy},
    {.domain = "",
     .op = "DepthToSpace",
     .types = {CUDA_MOVABLE},
     .create = create_block,
     .destroy = free,
     .reshape = reshape_blocks,
     .release_shape = free,
     .run = run_copy},
    {.domain = "",
     .op = "SpaceToDepth",
     .types = {CUDA_MOVABLE},
     .create = create_block,
     .destroy = free,
     .reshape = reshape_blocks,
     .release_shape = free,
     .run = run_copy},
    {.domain = "",
     .op = "Concat",
     .types = {CUDA_MOVABLE},
     .create = create_axis,
     .destroy = free,
     .reshape = reshape_concat,
     .release_shape = release_concat,
     .run = run_concat},
    {.domain = "",
     .op = "Split",
     .types = {CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1),
     .create = create_axis,
     .destroy = free,
     .reshape = reshape_split,
     .release_shape = free,
     .run = run_split},
    {.domain = "",
     .op = "Slice",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_INDEX, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(3) | GRT_KERNEL_READS(4),
     .reshape = reshape_slice,
     .release_shape = free,
     .run = run_copy},
    {.domain = "",
     .op = "Expand",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_expand,
     .release_shape = free,
     .run = run_copy},
    {.domain = "",
     .op = "Tile",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_tile,
     .release_shape = free,
     .run = run_copy},
    {.domain = "",
     .op = "Pad",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(3),
     .create = create_pad,
     .destroy = free,
     .reshape = reshape_pad,
     .release_shape = free,
     .run = run_pad},
    {.domain = "",
     .op = "CenterCropPad",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_center,
     .release_shape = free,
     .run = run_pad},
};

} // namespace
CUDA_KERNELS(move, rows);

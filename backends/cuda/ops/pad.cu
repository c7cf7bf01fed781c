/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, CenterCropPad: one kernel for the border and what is in it; without a border a copy. */
#include "backends/cuda/copy.h"
#include "backends/shared/pad.h"

namespace
{

/* What the kernel of borders that are made of the input knows; mode CONSTANT has the copy instead. */
struct placement {
    grt_pad_mode mode;
    int32_t rank;
    int64_t total, dims[GRT_MAX_RANK], from[GRT_MAX_RANK];
    grt_padding_plan plan;
};

/* The same for fewer than 2^31 elements: axes in front of each other that have no border are one. A thread
 * has `vector` neighbours of the last axis. */
struct border_walk {
    grt_pad_mode mode;
    int32_t rank, vector;
    int64_t total, from[GRT_MAX_RANK]; /* total: of groups of `vector` */
    cuda_divisor by[GRT_MAX_RANK];     /* of the output; the last axis in groups */
    int32_t at[GRT_MAX_RANK], size[GRT_MAX_RANK], first[GRT_MAX_RANK];
};

struct pad_shape {
    bool border, walks;
    border_walk walk;
    cuda_copy copy; /* GRT_PAD_CONSTANT */
    placement p;
};

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    pad_kernel(const __grid_constant__ placement p, T *dst, const T *src)
{
    CUDA_ITEMS (i, p.total) {
        int64_t rest = i, offset = 0;
        for (int32_t k = p.rank - 1; k >= 0; k--) {
            int64_t q = rest / p.dims[k], at = rest - q * p.dims[k];
            offset +=
                (p.plan.first[k] + grt_pad_source(p.mode, at - p.plan.at[k], p.plan.size[k])) * p.from[k];
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

/* Where position i of axis k comes from, from the axis' first used element; less than 0: from the border. */
__device__ __forceinline__ int32_t border_source(const border_walk &w, int32_t k, int32_t i)
{
    i -= w.at[k];
    if ((uint32_t)i < (uint32_t)w.size[k])
        return i;
    return w.mode == GRT_PAD_CONSTANT ? -1 : (int32_t)grt_pad_source(w.mode, i, w.size[k]);
}

template <typename T, int V>
__global__ void __launch_bounds__(CUDA_BLOCK)
    border_kernel(const __grid_constant__ border_walk w, T *dst, const T *src, const T *value)
{
    const int32_t last = w.rank - 1;
    T outside = {};
    if (value)
        outside = *value;
    CUDA_ITEMS (i, w.total) {
        uint32_t rest = (uint32_t)i;
        const uint32_t row = cuda_divide(rest, w.by[last]),
                       column = (rest - row * w.by[last].divisor) * (uint32_t)V;
        int64_t offset = 0;
        bool inside = true;
        rest = row;
        for (int32_t k = last - 1; k >= 0; k--) {
            const uint32_t q = cuda_divide(rest, w.by[k]);
            const int32_t at = border_source(w, k, (int32_t)(rest - q * w.by[k].divisor));
            inside &= at >= 0;
            offset += (w.first[k] + (int64_t)at) * w.from[k];
            rest = q;
        }
        cuda_pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const int32_t at = border_source(w, last, (int32_t)column + v);
            out.v[v] =
                inside && at >= 0 ? src[offset + (w.first[last] + (int64_t)at) * w.from[last]] : outside;
        }
        *(cuda_pack<T, V> *)(dst + i * V) = out;
    }
}

template <typename T>
grt_status run_border(const border_walk *w, void *dst, const void *src, const void *value,
                      cudaStream_t stream)
{
    const unsigned blocks = cuda_grid(w->total);
    if (w->vector == 4)
        border_kernel<T, 4>
            <<<blocks, CUDA_BLOCK, 0, stream>>>(*w, (T *)dst, (const T *)src, (const T *)value);
    else if (w->vector == 2)
        border_kernel<T, 2>
            <<<blocks, CUDA_BLOCK, 0, stream>>>(*w, (T *)dst, (const T *)src, (const T *)value);
    else
        border_kernel<T, 1>
            <<<blocks, CUDA_BLOCK, 0, stream>>>(*w, (T *)dst, (const T *)src, (const T *)value);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* Elements of a group: at most 16 bytes. */
int32_t border_vector(int64_t dim, size_t size)
{
    const int32_t most = size <= 4 ? 4 : size == 8 ? 2 : 1;
    return dim % most == 0 ? most : most > 2 && dim % 2 == 0 ? 2 : 1;
}

void plan_border(const grt_tensor *in, const grt_tensor *out, pad_shape *sh)
{
    const placement *p = &sh->p;
    const grt_padding_plan *plan = &p->plan;
    border_walk *w = &sh->walk;
    int64_t dims[GRT_MAX_RANK];
    bool whole = false; /* the axis before has no border */
    w->mode = p->mode;
    for (int32_t k = 0; k < in->rank; k++) {
        const bool is_whole = plan->first[k] == 0 && plan->at[k] == 0 && plan->size[k] == in->dims[k] &&
                              in->dims[k] == out->dims[k];
        const bool joins = w->rank > 0 && whole && is_whole;
        const int32_t at = joins ? w->rank - 1 : w->rank++;
        dims[at] = (joins ? dims[at] : 1) * out->dims[k];
        w->size[at] = (int32_t)((joins ? w->size[at] : 1) * plan->size[k]);
        w->at[at] = (int32_t)plan->at[k];
        w->first[at] = (int32_t)plan->first[k];
        w->from[at] = p->from[k];
        whole = is_whole;
    }
    w->vector = border_vector(dims[w->rank - 1], grt_dtype_size(in->dtype));
    dims[w->rank - 1] /= w->vector;
    w->total = p->total / w->vector;
    for (int32_t k = 0; k < w->rank; k++)
        w->by[k] = cuda_divisor_of(dims[k]);
}

void plan_pad(const grt_tensor *in, const grt_tensor *out, pad_shape *sh)
{
    placement *p = &sh->p;
    const grt_padding_plan *plan = &p->plan;
    int64_t to[GRT_MAX_RANK];
    p->rank = in->rank;
    p->total = grt_tensor_elements(out);
    grt_dims_strides(in->dims, in->rank, p->from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(&sh->copy, in->dtype);
    for (int32_t k = 0; k < in->rank; k++) {
        p->dims[k] = out->dims[k];
        if (plan->used > 0) {
            sh->copy.from_offset += plan->first[k] * p->from[k];
            sh->copy.to_offset += plan->at[k] * to[k];
        }
        cuda_copy_axis(&sh->copy, plan->size[k], to[k], p->from[k]);
    }
    cuda_copy_end(&sh->copy);
    sh->border = plan->used < p->total;
    sh->walks = sh->border && in->rank > 0 && plan->used > 0 && p->total < INT32_MAX &&
                grt_tensor_elements(in) < INT32_MAX;
    if (sh->walks)
        plan_border(in, out, sh);
}

grt_status cuda_reshape_pad(grt_reshape *r)
{
    pad_shape *sh;
    GRT_TRY(cuda_state(&sh));
    sh->p.mode = *(const grt_pad_mode *)r->state;
    const grt_status status = grt_pad_plan(r->desc, sh->p.mode, r->in, r->n_in, r->out[0], &sh->p.plan);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    plan_pad(r->in[0], r->out[0], sh);
    r->shape = sh;
    return GRT_OK;
}

grt_status reshape_center(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    pad_shape *sh;
    GRT_TRY(cuda_state(&sh));
    grt_center_plan(in, out, &sh->p.plan);
    plan_pad(in, out, sh);
    r->shape = sh;
    return GRT_OK;
}

grt_status cuda_run_pad(const grt_run *r)
{
    const pad_shape *sh = (const pad_shape *)r->shape;
    const grt_tensor *in = r->in[0], *out = r->out[0];
    bool is_pad = !strcmp(r->desc->op, "Pad");
    const grt_tensor *value = is_pad && r->n_in > 2 ? r->in[2] : NULL;
    size_t size = grt_dtype_size(in->dtype);
    if (sh->p.total <= 0)
        return GRT_OK;
    if (sh->walks && cuda_aligned(out->data, size * (size_t)sh->walk.vector))
        return CUDA_BY_SIZE(size, run_border, &sh->walk, out->data, in->data,
                            value && grt_tensor_elements(value) ? value->data : NULL, cuda_stream(r));
    if (sh->p.mode != GRT_PAD_CONSTANT)
        return CUDA_BY_SIZE(size, run_mirror, &sh->p, out->data, in->data, cuda_stream(r));
    if (sh->border)
        GRT_TRY(cuda_fill(out->data, size, sh->p.total, NULL,
                          value && grt_tensor_elements(value) ? value->data : NULL, cuda_stream(r)));
    return cuda_copy_run(&sh->copy, out->data, in->data, cuda_stream(r));
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Pad",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_MOVABLE, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(3),
     .create = grt_pad_create,
     .destroy = free,
     .reshape = cuda_reshape_pad,
     .release_shape = free,
     .run = cuda_run_pad},
    {.domain = "",
     .op = "CenterCropPad",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_center,
     .release_shape = free,
     .run = cuda_run_pad},
};

} // namespace
CUDA_KERNELS(pad, rows);

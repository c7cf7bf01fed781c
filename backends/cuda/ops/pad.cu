/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, CenterCropPad. */
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

struct pad_shape {
    bool border;
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

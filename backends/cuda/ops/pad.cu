/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, CenterCropPad. */
#include "backends/cuda/copy.h"

namespace
{

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
                               "axes[%lld] is %lld; for rank %d it must be in [%d, %d]", (long long)k,
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
CUDA_KERNELS(pad, rows);

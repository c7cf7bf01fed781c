/* SPDX-License-Identifier: Apache-2.0 */
/* Resize. What happens to each axis is planned on the host. Planes have a kernel of their own
 * (resize_planes.h); of everything else a thread makes one output element from its neighbours along all axes
 * at once. */
#include "backends/cuda/each.cuh"
#include "backends/cuda/resize_planes.h"

namespace
{

/* An axis of a shape, and the distances between its elements. */
struct strided_axis {
    grt_resize_axis plan;
    int64_t in_stride, out_stride;
};

struct resize_general {
    int64_t total;
    int32_t rank;
    strided_axis axes[GRT_MAX_RANK];
};

struct resize_shape {
    resize_general general;
    bool is_planes;
    cuda_resize_planes planes;
};

grt_status cuda_resize_create(const grt_kernel_node *node, void **out_state)
{
    grt_resize *s;
    GRT_TRY(cuda_state(&s));
    grt_resize_read(node->desc, s);
    *out_state = s;
    return GRT_OK;
}

grt_status cuda_resize_reshape(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    grt_resize_axis plans[GRT_MAX_RANK];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    resize_shape *sh;
    GRT_TRY(grt_resize_plan((const grt_resize *)r->state, r->desc, r->in, r->n_in, out, plans));
    GRT_TRY(cuda_state(&sh));
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    sh->general.total = grt_tensor_elements(out);
    sh->general.rank = in->rank;
    for (int32_t k = 0; k < in->rank; k++)
        sh->general.axes[k] = {plans[k], from[k], to[k]};
    sh->is_planes = cuda_resize_planes_plan(&sh->planes, (const grt_resize *)r->state, in, plans);
    r->shape = sh;
    return GRT_OK;
}

template <typename T> grt_status cuda_resize_pick(const grt_run *r)
{
    const resize_general sh = ((const resize_shape *)r->shape)->general;
    const grt_resize s = *(const grt_resize *)r->state;
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data, outside;
    uint64_t element[2] = {};
    if (grt_dtype_in(r->in[0]->dtype, GRT_SET_NUMBERS))
        grt_element_store(r->in[0]->dtype, element, 0, s.outside);
    memcpy(&outside, element, sizeof outside);
    return cuda_each(r, sh.total, [=] __device__(int64_t i) {
        int64_t rest = i, at = 0;
        for (int32_t k = 0; k < sh.rank; k++) {
            const strided_axis &a = sh.axes[k];
            int64_t o = rest / a.out_stride;
            double x = 0;
            rest -= o * a.out_stride;
            if (!a.plan.active) {
                at += o * a.in_stride;
            } else if (grt_resize_source(s.coordinates, &a.plan, o, &x)) {
                at += grt_resize_nearest(s.rounding, x, a.plan.in) * a.in_stride;
            } else {
                out[i] = outside;
                return;
            }
        }
        out[i] = in[at];
    });
}

/* How an axis contributes to one output element: neighbour `now` of those in reach. */
struct contribution {
    grt_resize_reach reach;
    int64_t now, n, stride;
    double sum;
};

grt_status blend(const grt_run *r)
{
    const resize_general sh = ((const resize_shape *)r->shape)->general;
    const grt_resize s = *(const grt_resize *)r->state;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const bool whole = grt_dtype_in(out.dtype, GRT_SET_INTS);
    return cuda_each(r, sh.total, [=] __device__(int64_t i) {
        contribution axes[GRT_MAX_RANK];
        int32_t n = 0;
        int64_t rest = i, base = 0;
        for (int32_t k = 0; k < sh.rank; k++) {
            const strided_axis &axis = sh.axes[k];
            int64_t o = rest / axis.out_stride;
            rest -= o * axis.out_stride;
            if (!axis.plan.active) {
                base += o * axis.in_stride;
                continue;
            }
            contribution *a = &axes[n++];
            if (!grt_resize_reach_of(&s, &axis.plan, o, &a->reach)) {
                out.put(i, whole ? rint(s.outside) : s.outside);
                return;
            }
            a->n = axis.plan.in;
            a->stride = axis.in_stride;
            a->now = a->reach.low;
            a->sum = 1;
            if (grt_resize_rescales(&s)) {
                double sum = 0;
                for (int64_t j = a->reach.low; j <= a->reach.high; j++)
                    sum += grt_resize_weight(&s, &a->reach, j, a->n);
                a->sum = sum != 0 ? sum : 1;
            }
        }
        double total = 0;
        for (;;) {
            double w = 1;
            int64_t at = base;
            for (int32_t k = 0; k < n && w != 0; k++) {
                const contribution &a = axes[k];
                w *= grt_resize_weight(&s, &a.reach, a.now, a.n) / a.sum;
                at += (a.now < 0 ? 0 : a.now >= a.n ? a.n - 1 : a.now) * a.stride;
            }
            if (w != 0)
                total += w * in.get(at);
            int32_t k = n - 1;
            while (k >= 0 && ++axes[k].now > axes[k].reach.high) {
                axes[k].now = axes[k].reach.low;
                k--;
            }
            if (k < 0)
                break;
        }
        out.put(i, whole ? rint(total) : total);
    });
}

grt_status cuda_resize_run(const grt_run *r)
{
    const resize_shape *sh = (const resize_shape *)r->shape;
    if (sh->is_planes) {
        cuda_resize_planes_run(&sh->planes, r->in[0]->data, r->out[0]->data, cuda_stream(r));
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    if (((const grt_resize *)r->state)->mode != GRT_RESIZE_NEAREST)
        return blend(r);
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), cuda_resize_pick, r);
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Resize",
     .types = {CUDA_MOVABLE, GRT_SET_FLOATS, GRT_SET_FLOATS, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(2) | GRT_KERNEL_READS(3),
     .supports = grt_resize_supports,
     .create = cuda_resize_create,
     .destroy = free,
     .reshape = cuda_resize_reshape,
     .release_shape = free,
     .run = cuda_resize_run},
};

} // namespace
CUDA_KERNELS(resize, rows);

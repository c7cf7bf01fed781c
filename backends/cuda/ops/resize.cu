/* SPDX-License-Identifier: Apache-2.0 */
/* Resize. What happens to each axis is planned on the host. Planes have a kernel of their own
 * (resize_planes.h); of everything else a thread makes one output element from its neighbours along all axes
 * at once. Of floats along up to three axes, what neighbours count is in a table (taps). */
#include "backends/cuda/each.cuh"
#include "backends/cuda/number.cuh"
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

/* ---- taps: one axis after the other, by tables of what neighbours count ---- */

enum { TAP_AXES = 3, MOST_TAPS = 1024 };

/* The neighbours of a position: n from `low` on, which may lie beyond the borders. */
struct tap_span {
    int32_t low, n;
};

/* A tensor [outer, in, inner] becomes [outer, out, inner]. The table has a span for each position, and behind
 * them `width` times the weights of all. */
struct tap_pass {
    grt_resize_axis plan;
    int32_t width;
    cuda_divisor by_inner, by_out;
    int64_t total, inner;
    int64_t spans, weights; /* offsets in the workspace, in bytes */
};

/* Sums between passes are float32, in turns at `between`. */
struct resize_taps {
    bool fits;
    int32_t n;
    tap_pass passes[TAP_AXES];
    int64_t between[2], bytes;
};

struct resize_shape {
    resize_general general;
    resize_taps taps;
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

/* The resized axes, those first that leave least. False: too many. */
bool taps_order_axes(const grt_resize_axis *plans, int32_t rank, int32_t *axes, int32_t *n)
{
    *n = 0;
    for (int32_t k = 0; k < rank; k++) {
        if (!plans[k].active)
            continue;
        if (*n == TAP_AXES)
            return false;
        int32_t at = (*n)++;
        const double growth = (double)plans[k].out / (double)plans[k].in;
        for (; at > 0 && growth < (double)plans[axes[at - 1]].out / (double)plans[axes[at - 1]].in; at--)
            axes[at] = axes[at - 1];
        axes[at] = k;
    }
    return *n > 0;
}

/* A pass over axis k of a tensor of these dims, which become those of its result. */
bool taps_plan_pass(tap_pass *p, const grt_resize *s, const grt_resize_axis *plan, int64_t *dims,
                    int32_t rank, int32_t k, int64_t *bytes)
{
    const double radius = grt_resize_radius(s, plan->scale);
    dims[k] = plan->out;
    p->plan = *plan;
    p->inner = grt_dims_product(dims, k + 1, rank);
    p->total = grt_dims_product(dims, 0, rank);
    if (radius > MOST_TAPS || plan->in >= INT32_MAX / 2 || p->total >= INT32_MAX || p->total <= 0)
        return false;
    p->width = 2 * (int32_t)radius + 4;
    p->by_inner = cuda_divisor_of(p->inner);
    p->by_out = cuda_divisor_of(plan->out);
    p->spans = *bytes;
    p->weights = p->spans + plan->out * (int64_t)sizeof(tap_span);
    *bytes = p->weights + plan->out * p->width * (int64_t)sizeof(float);
    return true;
}

/* Other types, crops, whose outside is no blend, and more than three axes do not fit. */
void plan_taps(resize_taps *t, const grt_resize *s, const grt_tensor *in, const grt_resize_axis *plans)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t axes[TAP_AXES];
    *t = {};
    if (s->mode == GRT_RESIZE_NEAREST || s->coordinates == GRT_RESIZE_CROP || grt_tensor_elements(in) <= 0 ||
        !grt_dtype_in(in->dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)) ||
        !taps_order_axes(plans, in->rank, axes, &t->n))
        return;
    memcpy(dims, in->dims, sizeof dims);
    for (int32_t k = 0; k < t->n; k++)
        if (!taps_plan_pass(&t->passes[k], s, &plans[axes[k]], dims, in->rank, axes[k], &t->bytes))
            return;
    for (int32_t k = 0; k + 1 < t->n; k++) {
        t->between[k] = t->bytes;
        t->bytes += t->passes[k].total * (int64_t)sizeof(float);
    }
    t->fits = true;
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
    plan_taps(&sh->taps, (const grt_resize *)r->state, in, plans);
    if (!sh->is_planes && sh->taps.fits)
        r->workspace_bytes = (size_t)sh->taps.bytes;
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

/* The table: a thread a position of an axis. */
__device__ __forceinline__ void fill_taps(const grt_resize &s, const tap_pass &p, int64_t o, char *table)
{
    float *weight = (float *)(table + p.weights) + o;
    grt_resize_reach reach;
    grt_resize_reach_of(&s, &p.plan, o, &reach); /* nothing is outside without crops */
    const int64_t wanted = reach.high - reach.low + 1;
    const int32_t n = (int32_t)(wanted < p.width ? wanted : p.width);
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += grt_resize_weight(&s, &reach, reach.low + k, p.plan.in);
    const double factor = grt_resize_rescales(&s) && sum != 0 ? 1 / sum : 1;
    for (int32_t k = 0; k < n; k++)
        weight[k * p.plan.out] = (float)(grt_resize_weight(&s, &reach, reach.low + k, p.plan.in) * factor);
    ((tap_span *)(table + p.spans))[o] = {(int32_t)reach.low, n};
}

template <typename IN, typename OUT>
__global__ void __launch_bounds__(CUDA_BLOCK)
    taps_kernel(const __grid_constant__ tap_pass p, const char *table, const IN *x, OUT *y)
{
    const int32_t last = (int32_t)p.plan.in - 1;
    CUDA_ITEMS (i, p.total) {
        const uint32_t line = cuda_divide((uint32_t)i, p.by_inner),
                       inner = (uint32_t)i - line * p.by_inner.divisor, outer = cuda_divide(line, p.by_out),
                       o = line - outer * p.by_out.divisor;
        const tap_span span = ((const tap_span *)(table + p.spans))[o];
        const float *weight = (const float *)(table + p.weights) + o;
        const IN *from = x + outer * p.plan.in * p.inner + inner;
        float sum = 0;
#pragma unroll 4
        for (int32_t k = 0; k < span.n; k++) {
            const int32_t at = span.low + k;
            const float w = weight[k * p.plan.out];
            const IN v = from[(at < 0 ? 0 : at > last ? last : at) * p.inner];
            sum += w != 0 ? w * cuda_widen(v) : 0.0f; /* infinities, too */
        }
        y[i] = cuda_narrow<OUT, float>(sum);
    }
}

template <typename IN, typename OUT>
grt_status taps_run(const grt_run *r, const tap_pass *p, const IN *x, OUT *y)
{
    taps_kernel<IN, OUT>
        <<<cuda_grid(p->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(*p, (const char *)r->workspace, x, y);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename T> grt_status blend_taps(const grt_run *r)
{
    const resize_taps *t = &((const resize_shape *)r->shape)->taps;
    const grt_resize s = *(const grt_resize *)r->state;
    const T *x = (const T *)r->in[0]->data;
    T *y = (T *)r->out[0]->data;
    char *table = (char *)r->workspace;
    const float *sums = NULL; /* of the pass before */
    for (int32_t k = 0; k < t->n; k++) {
        const tap_pass p = t->passes[k];
        const bool last = k + 1 == t->n;
        float *to = (float *)(table + (last ? 0 : t->between[k]));
        GRT_TRY(cuda_each(r, p.plan.out, [=] __device__(int64_t o) { fill_taps(s, p, o, table); }));
        if (last)
            return sums ? taps_run<float, T>(r, &p, sums, y) : taps_run<T, T>(r, &p, x, y);
        GRT_TRY(sums ? (taps_run<float, float>(r, &p, sums, to)) : (taps_run<T, float>(r, &p, x, to)));
        sums = to;
    }
    return GRT_OK;
}

grt_status cuda_resize_run(const grt_run *r)
{
    const resize_shape *sh = (const resize_shape *)r->shape;
    if (sh->is_planes) {
        cuda_resize_planes_run(&sh->planes, r->in[0]->data, r->out[0]->data, cuda_stream(r));
        CUDA_LAUNCHED();
        return GRT_OK;
    }
    if (sh->taps.fits)
        return r->in[0]->dtype == GRT_DTYPE_FLOAT     ? blend_taps<float>(r)
               : r->in[0]->dtype == GRT_DTYPE_FLOAT16 ? blend_taps<__half>(r)
                                                      : blend_taps<__nv_bfloat16>(r);
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

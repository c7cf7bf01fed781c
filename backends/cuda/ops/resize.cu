/* Resize. What happens to each axis is planned on the host; a thread makes one output element from its neighbours along all
 * axes at once. */
#include "backends/cuda/each.cuh"

namespace {

enum resize_mode { NEAREST, LINEAR, CUBIC };
enum coordinates { HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, CROP_AND_RESIZE, HALF_PIXEL_FOR_NEAREST };
enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
enum policy { STRETCH, NOT_LARGER, NOT_SMALLER };

struct resize_state {
    resize_mode mode;
    coordinates way;
    rounding round;
    policy keep;
    bool antialias, exclude_outside;
    double cubic_a, outside;
    int32_t n_axes; /* -1: all */
    int64_t axes[GRT_MAX_RANK];
};

/* An axis that changes. */
struct axis_plan {
    int64_t in, out, in_stride, out_stride;
    double scale, roi_start, roi_end;
};

struct resize_shape {
    int64_t total;
    int32_t rank;
    axis_plan axes[GRT_MAX_RANK];
    uint32_t active; /* bit per axis */
};

int choose(const grt_op_desc *desc, const char *attr, const char *const *names, int n)
{
    const char *value = grt_attr_string(desc, attr, names[0]);
    for (int k = 0; k < n; k++)
        if (!strcmp(value, names[k]))
            return k;
    return 0;
}

grt_status create(const grt_kernel_node *node, void **out_state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const ways[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                       "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    resize_state *s;
    GRT_TRY(cuda_state(&s));
    s->mode = (resize_mode)choose(node->desc, "mode", modes, 3);
    s->way = (coordinates)choose(node->desc, "coordinate_transformation_mode", ways, 7);
    s->round = (rounding)choose(node->desc, "nearest_mode", roundings, 4);
    s->keep = (policy)choose(node->desc, "keep_aspect_ratio_policy", policies, 3);
    s->antialias = grt_attr_int(node->desc, "antialias", 0) != 0;
    s->exclude_outside = grt_attr_int(node->desc, "exclude_outside", 0) != 0;
    s->cubic_a = (double)grt_attr_float(node->desc, "cubic_coeff_a", -0.75f);
    s->outside = (double)grt_attr_float(node->desc, "extrapolation_value", 0);
    size_t n;
    const int64_t *axes = grt_attr_ints(node->desc, "axes", &n);
    s->n_axes = axes ? (int32_t)n : -1;
    for (size_t k = 0; k < n && k < GRT_MAX_RANK; k++)
        s->axes[k] = axes[k];
    *out_state = s;
    return GRT_OK;
}

bool supports(const grt_kernel_node *node, grt_text *why)
{
    bool nearest = !strcmp(grt_attr_string(node->desc, "mode", "nearest"), "nearest");
    if (nearest || grt_dtype_in(node->in[0].dtype, GRT_SET_NUMBERS))
        return true;
    if (why)
        grt_text_add(why, "linear and cubic are for numbers, not %s", grt_dtype_name(node->in[0].dtype));
    return false;
}

const grt_tensor *given(const grt_reshape *r, int32_t i)
{
    return i < r->n_in && r->in[i] && grt_tensor_elements(r->in[i]) > 0 ? r->in[i] : NULL;
}

grt_status plan(const grt_reshape *r, resize_shape *sh)
{
    const resize_state *s = (const resize_state *)r->state;
    const grt_tensor *in = r->in[0], *out = r->out[0], *roi = given(r, 1), *scales = given(r, 2), *sizes = given(r, 3);
    int32_t n = s->n_axes < 0 ? in->rank : s->n_axes;
    const grt_tensor *list = scales ? scales : sizes;
    double common = s->keep == NOT_LARGER ? INFINITY : 0;
    bool crops = s->way == CROP_AND_RESIZE;
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    bool named[GRT_MAX_RANK] = {};
    if (n && (!list || grt_tensor_elements(list) != n))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "scales or sizes must be a list of %d entries", n);
    if (crops && (!roi || grt_tensor_elements(roi) != 2 * n))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "tf_crop_and_resize needs a roi of %d entries", 2 * n);
    if ((list && !list->data) || (crops && !roi->data))
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "inputs roi, scales and sizes must be known before the run");
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    sh->total = grt_tensor_elements(out);
    sh->rank = in->rank;
    for (int32_t k = 0; k < in->rank; k++)
        sh->axes[k] = {in->dims[k], out->dims[k], from[k], to[k], 1, 0, 1};
    for (int32_t k = 0; k < n; k++) {
        int64_t axis = grt_axis(s->n_axes < 0 ? k : s->axes[k], in->rank);
        axis_plan *p = &sh->axes[axis];
        p->scale = scales ? cpu_element_load(scales->dtype, scales->data, k) : (double)cuda_host_index(sizes, k) / (double)p->in;
        if (crops) {
            p->roi_start = cpu_element_load(roi->dtype, roi->data, k);
            p->roi_end = cpu_element_load(roi->dtype, roi->data, n + k);
        }
        common = s->keep == NOT_LARGER ? fmin(common, p->scale) : fmax(common, p->scale);
        named[axis] = true;
    }
    for (int32_t k = 0; k < in->rank; k++) {
        axis_plan *p = &sh->axes[k];
        if (named[k] && sizes && !scales && s->keep != STRETCH)
            p->scale = common;
        if (p->out > 0 && (p->in == 0 || !(p->scale > 0x1p-40)))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "axis %d of size %lld cannot be scaled by %g", k,
                               (long long)p->in, p->scale);
        if (named[k] && !(p->scale == 1 && p->in == p->out && p->roi_start == 0 && p->roi_end == 1))
            sh->active |= 1u << k;
    }
    return GRT_OK;
}

grt_status reshape(grt_reshape *r)
{
    resize_shape *sh;
    GRT_TRY(cuda_state(&sh));
    grt_status status = plan(r, sh);
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    r->shape = sh;
    return GRT_OK;
}

/* Where output index i lies on the input axis. False: outside of what is cropped from. */
__device__ bool source_of(coordinates way, const axis_plan &p, int64_t i, double *out_x)
{
    double x = (double)i, in = (double)p.in, width = p.scale * in;
    switch (way) {
    case HALF_PIXEL:
        *out_x = (x + 0.5) / p.scale - 0.5;
        return true;
    case HALF_PIXEL_SYMMETRIC:
        *out_x = in / 2 * (1 - (double)p.out / width) + (x + 0.5) / p.scale - 0.5;
        return true;
    case PYTORCH_HALF_PIXEL:
        *out_x = width == 1 ? -0.5 : (x + 0.5) / p.scale - 0.5;
        return true;
    case ALIGN_CORNERS:
        *out_x = width == 1 ? 0 : x * (in - 1) / (width - 1);
        return true;
    case ASYMMETRIC:
        *out_x = x / p.scale;
        return true;
    case HALF_PIXEL_FOR_NEAREST:
        *out_x = (x + 0.5) / p.scale;
        return true;
    default:
        *out_x = (width == 1 ? (p.roi_end - p.roi_start) * (in - 1) / 2 : x * (p.roi_end - p.roi_start) * (in - 1) / (width - 1)) +
                 p.roi_start * (in - 1);
        return *out_x >= 0 && *out_x <= in - 1;
    }
}

__device__ int64_t clamp_index(double x, int64_t n)
{
    return !(x > 0) ? 0 : x >= (double)n ? n - 1 : (int64_t)x;
}

__device__ double round_as(rounding how, double x)
{
    return how == PREFER_FLOOR ? ceil(x - 0.5) : how == PREFER_CEIL ? floor(x + 0.5) : how == FLOOR ? floor(x) : ceil(x);
}

template <typename T> grt_status pick(const grt_run *r)
{
    const resize_shape sh = *(const resize_shape *)r->shape;
    const resize_state *s = (const resize_state *)r->state;
    const coordinates way = s->way;
    const rounding how = s->round;
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data, outside = {};
    if (grt_dtype_in(r->in[0]->dtype, GRT_SET_NUMBERS))
        cpu_element_store(r->in[0]->dtype, &outside, 0, s->outside);
    return cuda_each(r, sh.total, [=] __device__(int64_t i) {
        int64_t rest = i, at = 0;
        for (int32_t k = 0; k < sh.rank; k++) {
            const axis_plan &p = sh.axes[k];
            int64_t o = rest / p.out_stride;
            double x = 0;
            rest -= o * p.out_stride;
            if (!(sh.active >> k & 1)) {
                at += o * p.in_stride;
            } else if (source_of(way, p, o, &x)) {
                at += clamp_index(round_as(how, x), p.in) * p.in_stride;
            } else {
                out[i] = outside;
                return;
            }
        }
        out[i] = in[at];
    });
}

/* How an axis contributes to one output element: neighbours low..high around x. */
struct reach {
    int64_t low, high, now, n, stride;
    double x, shrink, sum;
};

__device__ double weight(const reach &a, resize_mode mode, double cubic_a, bool exclude, int64_t k)
{
    double d = fabs(((double)k - a.x) * a.shrink);
    if (exclude && (k < 0 || k >= a.n))
        return 0;
    if (mode == LINEAR)
        return d < 1 ? 1 - d : 0;
    return d <= 1 ? ((cubic_a + 2) * d - (cubic_a + 3)) * d * d + 1
           : d < 2 ? ((cubic_a * d - 5 * cubic_a) * d + 8 * cubic_a) * d - 4 * cubic_a
                   : 0;
}

grt_status blend(const grt_run *r)
{
    const resize_shape sh = *(const resize_shape *)r->shape;
    const resize_state s = *(const resize_state *)r->state;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const bool whole = grt_dtype_in(out.dtype, GRT_SET_INTS);
    return cuda_each(r, sh.total, [=] __device__(int64_t i) {
        reach axes[GRT_MAX_RANK];
        int32_t n = 0;
        int64_t rest = i, base = 0;
        for (int32_t k = 0; k < sh.rank; k++) {
            const axis_plan &p = sh.axes[k];
            int64_t o = rest / p.out_stride;
            rest -= o * p.out_stride;
            if (!(sh.active >> k & 1)) {
                base += o * p.in_stride;
                continue;
            }
            reach *a = &axes[n++];
            a->n = p.in;
            a->stride = p.in_stride;
            a->shrink = s.antialias && p.scale < 1 ? p.scale : 1;
            double wide = (s.mode == LINEAR ? 1 : 2) / a->shrink;
            if (!source_of(s.way, p, o, &a->x)) {
                out.put(i, whole ? rint(s.outside) : s.outside);
                return;
            }
            /* far outside, where only the border counts, it does not matter how far */
            a->x = a->x < -2 * wide - 1 ? -2 * wide - 1 : a->x > (double)p.in + 2 * wide ? (double)p.in + 2 * wide : a->x;
            a->now = a->low = (int64_t)ceil(a->x - wide);
            a->high = (int64_t)floor(a->x + wide);
            a->sum = 1;
            if (s.antialias || s.exclude_outside) {
                double sum = 0;
                for (int64_t j = a->low; j <= a->high; j++)
                    sum += weight(*a, s.mode, s.cubic_a, s.exclude_outside, j);
                a->sum = sum != 0 ? sum : 1;
            }
        }
        double total = 0;
        for (;;) {
            double w = 1;
            int64_t at = base;
            for (int32_t k = 0; k < n && w != 0; k++) {
                const reach &a = axes[k];
                w *= weight(a, s.mode, s.cubic_a, s.exclude_outside, a.now) / a.sum;
                at += (a.now < 0 ? 0 : a.now >= a.n ? a.n - 1 : a.now) * a.stride;
            }
            if (w != 0)
                total += w * in.get(at);
            int32_t k = n - 1;
            while (k >= 0 && ++axes[k].now > axes[k].high) {
                axes[k].now = axes[k].low;
                k--;
            }
            if (k < 0)
                break;
        }
        out.put(i, whole ? rint(total) : total);
    });
}

grt_status run(const grt_run *r)
{
    if (((const resize_state *)r->state)->mode != NEAREST)
        return blend(r);
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), pick, r);
}

const grt_kernel_row rows[] = {
    {.domain = "", .op = "Resize", .types = {CUDA_MOVABLE, GRT_SET_FLOATS, GRT_SET_FLOATS, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(2) | GRT_KERNEL_READS(3), .supports = supports, .create = create,
     .destroy = free, .reshape = reshape, .release_shape = free, .run = run},
};

} // namespace
CUDA_KERNELS(resize, rows);

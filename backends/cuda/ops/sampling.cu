/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid, RoiAlign, Col2Im, LpPool, MaxUnpool, DeformConv: a thread per output element
 * gathers what makes it. */
#include "backends/cuda/each.cuh"
#include "backends/shared/window.h"
#include "src/base/checked.h"

namespace
{

/* ---- GridSample ---- */

enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };
enum grid_padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };

struct grid_state {
    grid_mode mode;
    grid_padding padding;
    bool align;
};

grt_status create_grid(const grt_kernel_node *node, void **out_state)
{
    const char *mode = grt_attr_string(node->desc, "mode", "linear");
    const char *padding = grt_attr_string(node->desc, "padding_mode", "zeros");
    grid_state *s;
    GRT_TRY(cuda_state(&s));
    s->mode = !strcmp(mode, "nearest") ? GRID_NEAREST : !strcmp(mode, "cubic") ? GRID_CUBIC : GRID_LINEAR;
    s->padding = !strcmp(padding, "border")       ? PAD_BORDER
                 : !strcmp(padding, "reflection") ? PAD_REFLECTION
                                                  : PAD_ZEROS;
    s->align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    *out_state = s;
    return GRT_OK;
}

/* Mirrored at both ends of [low, high] until it lies between them. */
__device__ double reflect(double x, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    if (x >= low && x <= high)
        return x;
    double beyond = x < low ? low - x : x - high, turns = floor(beyond / range),
           rest = beyond - turns * range;
    bool even = fmod(turns, 2.0) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

/* The elements of one axis that make a sample: at most 4. index -1: zero. */
struct taps {
    int32_t n, now;
    int64_t index[4];
    double weight[4];
};

__device__ int64_t pixel(const grid_state &s, double i, int64_t n, double low, double high)
{
    if (s.padding == PAD_ZEROS)
        return i >= 0 && i < (double)n ? (int64_t)i : -1;
    if (s.padding == PAD_REFLECTION)
        i = reflect(i, low, high);
    return i <= 0 ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

/* `at` is the grid's coordinate, -1 to 1 over an axis of n elements. */
__device__ void find_taps(const grid_state &s, double at, int64_t n, taps *t)
{
    double low = s.align ? 0 : -0.5, high = s.align ? (double)n - 1 : (double)n - 0.5;
    double x = s.align ? (at + 1) / 2 * (double)(n - 1) : ((at + 1) * (double)n - 1) / 2;
    x = (double)(float)x;
    x = x > -0x1p40 ? (x < 0x1p40 ? x : 0x1p40) : -0x1p40; /* NaN counts as far outside */
    if (s.mode == GRID_NEAREST)
        x = rint(x);
    if (x < low || x > high) {
        if (s.padding == PAD_BORDER)
            x = x < 0 ? 0 : x > (double)n - 1 ? (double)n - 1 : x;
        else if (s.padding == PAD_REFLECTION)
            x = reflect(x, low, high);
    }
    t->now = 0;
    if (s.mode == GRID_NEAREST) {
        t->n = 1;
        t->weight[0] = 1;
        t->index[0] = pixel(s, s.padding == PAD_ZEROS ? x : trunc(x), n, low, high);
        return;
    }
    double first = floor(x);
    if (s.mode == GRID_LINEAR) {
        t->n = 2;
        t->weight[0] = 1 - (x - first);
        t->weight[1] = x - first;
    } else {
        const double a = -0.75;
        t->n = 4;
        for (int k = 0; k < 4; k++) {
            double d = fabs(x - first + 1 - k);
            t->weight[k] =
                d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        }
        first -= 1;
    }
    for (int32_t k = 0; k < t->n; k++)
        t->index[k] = pixel(s, first + k, n, low, high);
}

grt_status run_grid(const grt_run *r)
{
    const grid_state s = *(const grid_state *)r->state;
    const cuda_any in = cuda_any_in(r, 0), grid = cuda_any_in(r, 1), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    const int32_t n = dims.rank - 2;
    const int64_t points = grt_dims_product(r->out[0]->dims, 2, r->out[0]->rank), channels = dims[1];
    const int64_t pixels = grt_dims_product(r->in[0]->dims, 2, dims.rank);
    if (grt_tensor_elements(r->in[0]) == 0 && grt_tensor_elements(r->out[0]) > 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "there is nothing to sample: X has no elements");
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        taps all[GRT_MAX_RANK];
        int64_t p = i % points, plane = i / points, point = plane / channels * points + p;
        for (int32_t k = 0; k < n; k++) /* the grid names the last axis first */
            find_taps(s, grid.get(point * n + n - 1 - k), dims[k + 2], &all[k]);
        double sum = 0;
        for (int32_t k = 0; k >= 0;) {
            double w = 1;
            int64_t at = 0;
            for (k = 0; k < n; k++) {
                int64_t index = all[k].index[all[k].now];
                w = index < 0 ? 0 : w * all[k].weight[all[k].now];
                at = at * dims[k + 2] + (index < 0 ? 0 : index);
            }
            if (w != 0)
                sum += w * in.get(plane * pixels + at);
            for (k = n - 1; k >= 0 && ++all[k].now == all[k].n; k--)
                all[k].now = 0;
        }
        out.put(i, sum);
    });
}

/* ---- AffineGrid ---- */

grt_status create_affine(const grt_kernel_node *node, void **out_state)
{
    bool *align;
    GRT_TRY(cuda_state(&align));
    *align = grt_attr_int(node->desc, "align_corners", 0) != 0;
    *out_state = align;
    return GRT_OK;
}

grt_status run_affine(const grt_run *r)
{
    const grt_tensor *theta = r->in[0], *y = r->out[0];
    const bool align = *(const bool *)r->state;
    const int32_t n = y->rank - 2;
    if (theta->rank != 3 || theta->dims[0] != y->dims[0] || theta->dims[1] != n || theta->dims[2] != n + 1)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "theta must be %lldx%dx%d",
                           (long long)y->dims[0], n, n + 1);
    const cuda_any matrix = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(y);
    const int64_t points = grt_dims_product(y->dims, 1, n + 1);
    return cuda_each(r, grt_tensor_elements(y), [=] __device__(int64_t i) {
        int64_t p = i / n, rest = p % points, row = (p / points * n + i % n) * (n + 1);
        double sum = matrix.get(row + n);
        for (int32_t k = n - 1; k >= 0; k--) { /* coordinates start with that of the last axis */
            int64_t size = dims[k + 1], at = rest % size;
            rest /= size;
            sum += matrix.get(row + n - 1 - k) *
                   (align ? (size > 1 ? -1 + 2.0 * (double)at / (double)(size - 1) : -1)
                          : (2.0 * (double)at + 1) / (double)size - 1);
        }
        out.put(i, sum);
    });
}

/* ---- RoiAlign ---- */

/* Limit of samples per bin. Real models stay far below; malformed boxes would run for hours. */
enum { MOST_SAMPLES = 1 << 20 };

struct roi_state {
    bool max, shifted; /* shifted: by half a pixel */
    int64_t ratio;
    double scale;
};

grt_status create_roi(const grt_kernel_node *node, void **out_state)
{
    roi_state *s;
    GRT_TRY(cuda_state(&s));
    s->max = !strcmp(grt_attr_string(node->desc, "mode", "avg"), "max");
    s->shifted =
        !strcmp(grt_attr_string(node->desc, "coordinate_transformation_mode", "half_pixel"), "half_pixel");
    s->ratio = grt_attr_int(node->desc, "sampling_ratio", 0);
    s->scale = (double)grt_attr_float(node->desc, "spatial_scale", 1);
    *out_state = s;
    return GRT_OK;
}

/* One sample: the sum of the weighted corners, or the greatest of them. */
__device__ double roi_sample(const cuda_any &in, int64_t plane, int64_t height, int64_t width, double y,
                             double x, bool max)
{
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width))
        return 0;
    y = y > 0 ? y : 0;
    x = x > 0 ? x : 0;
    int64_t top = (int64_t)y, left = (int64_t)x, bottom = top + 1, right = left + 1;
    if (top >= height - 1)
        y = (double)(top = bottom = height - 1);
    if (left >= width - 1)
        x = (double)(left = right = width - 1);
    double ly = y - (double)top, lx = x - (double)left, sum = 0, most = -INFINITY;
    const double weight[] = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
    const int64_t at[] = {top * width + left, top * width + right, bottom * width + left,
                          bottom * width + right};
    for (int k = 0; k < 4; k++) {
        double v = weight[k] * in.get(plane * height * width + at[k]);
        sum += v;
        most = fmax(most, v);
    }
    return max ? most : sum;
}

grt_status run_roi(const grt_run *r)
{
    const roi_state s = *(const roi_state *)r->state;
    const grt_tensor *x = r->in[0], *rois = r->in[1], *y = r->out[0];
    if (rois->dims[1] != 4 || grt_tensor_elements(r->in[2]) != rois->dims[0])
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "rois must be Nx4 with N batch_indices, found %lldx%lld with %lld",
                           (long long)rois->dims[0], (long long)rois->dims[1],
                           (long long)grt_tensor_elements(r->in[2]));
    if (grt_tensor_elements(x) == 0 && grt_tensor_elements(y) > 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the images have no pixels");
    const cuda_any in = cuda_any_in(r, 0), boxes = cuda_any_in(r, 1), batches = cuda_any_in(r, 2),
                   out = cuda_any_out(r, 0);
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "batch_indices", &watch));
    const int64_t images = x->dims[0], channels = x->dims[1], in_h = x->dims[2], in_w = x->dims[3],
                  h = y->dims[2], w = y->dims[3];
    return cuda_each(r, grt_tensor_elements(y), [=] __device__(int64_t i) {
        int64_t col = i % w, row = i / w % h, channel = i / (w * h) % channels, roi = i / (w * h * channels);
        double corner[4], shift = s.shifted ? 0.5 : 0;
        for (int k = 0; k < 4; k++)
            corner[k] = boxes.get(4 * roi + k) * s.scale - shift;
        double width = corner[2] - corner[0], height = corner[3] - corner[1];
        if (!s.shifted) {
            width = fmax(width, 1.0);
            height = fmax(height, 1.0);
        }
        double bin_h = height / (double)h, bin_w = width / (double)w;
        int64_t rows = s.ratio, cols = s.ratio;
        if (s.ratio <= 0) { /* NaN has no samples */
            rows = bin_h > 0 ? (int64_t)ceil(fmin(bin_h, 1024.0)) : 0;
            cols = bin_w > 0 ? (int64_t)ceil(fmin(bin_w, 1024.0)) : 0;
        }
        int64_t image = batches.whole(roi);
        if (!cuda_check(watch, image, roi, 0, images - 1))
            image = 0;
        double acc = 0;
        for (int64_t a = 0; a < rows; a++)
            for (int64_t b = 0; b < cols && rows * cols <= MOST_SAMPLES; b++) {
                double v =
                    roi_sample(in, image * channels + channel, in_h, in_w,
                               corner[1] + ((double)row + ((double)a + 0.5) / (double)rows) * bin_h,
                               corner[0] + ((double)col + ((double)b + 0.5) / (double)cols) * bin_w, s.max);
                acc = !s.max ? acc + v : a + b == 0 ? v : fmax(acc, v);
            }
        double count = rows * cols > 0 ? (double)(rows * cols) : 1;
        out.put(i, s.max ? acc : acc / count);
    });
}

/* ---- Col2Im: every pixel gathers the columns that fall on it ---- */

struct fold {
    int64_t dilations[GRT_MAX_RANK], strides[GRT_MAX_RANK], pads[2 * GRT_MAX_RANK];
    int64_t kernel[GRT_MAX_RANK], steps[GRT_MAX_RANK], volume, places;
};

void read_list(const grt_op_desc *desc, const char *name, int64_t fallback, int64_t *out, size_t room)
{
    size_t n;
    const int64_t *list = grt_attr_ints(desc, name, &n);
    for (size_t k = 0; k < room; k++)
        out[k] = list && k < n ? list[k] : fallback;
}

grt_status reshape_fold(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *block = r->in[2], *out = r->out[0];
    int32_t n = out->rank - 2;
    fold f = {};
    f.volume = f.places = 1;
    read_list(r->desc, "dilations", 1, f.dilations, GRT_MAX_RANK);
    read_list(r->desc, "strides", 1, f.strides, GRT_MAX_RANK);
    read_list(r->desc, "pads", 0, f.pads, 2 * GRT_MAX_RANK);
    if (!block->data || grt_tensor_elements(block) != n)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "input block_shape must be known before the run, a number per axis");
    for (int32_t k = 0; k < n; k++) {
        f.kernel[k] = cuda_host_index(block, k);
        if (f.kernel[k] < 1 || f.kernel[k] > INT32_MAX)
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "block_shape[%d] is %lld", k,
                               (long long)f.kernel[k]);
        int64_t room = out->dims[k + 2] + f.pads[k] + f.pads[n + k] - f.dilations[k] * (f.kernel[k] - 1) - 1;
        f.steps[k] = room < 0 ? 0 : room / f.strides[k] + 1;
        if (!grt_mul_i64(f.volume, f.kernel[k], &f.volume) || !grt_mul_i64(f.places, f.steps[k], &f.places))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "image and block ask for too much");
    }
    int64_t rows;
    if (!grt_mul_i64(out->dims[1], f.volume, &rows) || in->dims[1] != rows || in->dims[2] != f.places)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input is %lldx%lld where image and block ask for %lldx%lld",
                           (long long)in->dims[1], (long long)in->dims[2], (long long)rows,
                           (long long)f.places);
    fold *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = f;
    r->shape = kept;
    return GRT_OK;
}

grt_status run_fold(const grt_run *r)
{
    const fold f = *(const fold *)r->shape;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(r->out[0], 2);
    const int64_t pixels = grt_dims_product(r->out[0]->dims, 2, r->out[0]->rank);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        double sum = 0;
        for (int64_t tap = 0; tap < f.volume; tap++) {
            int64_t rest = tap, at = i % pixels, place = 0, scale = 1;
            bool hit = true;
            for (int32_t k = dims.rank - 1; k >= 0 && hit; k--) {
                int64_t y = at % dims[k] + f.pads[k] - rest % f.kernel[k] * f.dilations[k];
                at /= dims[k];
                rest /= f.kernel[k];
                hit = y >= 0 && y % f.strides[k] == 0 && y / f.strides[k] < f.steps[k];
                place += y / f.strides[k] * scale;
                scale *= f.steps[k];
            }
            if (hit)
                sum += in.get((i / pixels * f.volume + tap) * f.places + place);
        }
        out.put(i, sum);
    });
}

/* ---- LpPool ---- */

grt_status reshape_lp(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *y = r->out[0];
    cpu_window *w;
    GRT_TRY(cuda_state(&w));
    cpu_window_read(r->desc, x->rank - 2, x->dims + 2, y->dims + 2, NULL, false, w);
    r->shape = w;
    return GRT_OK;
}

grt_status create_lp(const grt_kernel_node *node, void **out_state)
{
    double *p;
    GRT_TRY(cuda_state(&p));
    *p = (double)grt_attr_int(node->desc, "p", 2);
    *out_state = p;
    return GRT_OK;
}

grt_status run_lp(const grt_run *r)
{
    const cpu_window w = *(const cpu_window *)r->shape;
    const double p = *(const double *)r->state;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        double sum = 0;
        int64_t plane = i / w.out_pixels;
        for (int64_t tap = 0; tap < w.taps; tap++) {
            int64_t rest = tap, place = i % w.out_pixels, at = 0, scale = 1;
            bool inside = true;
            for (int32_t k = w.spatial - 1; k >= 0 && inside; k--) {
                int64_t x = place % w.out[k] * w.stride[k] - w.begin[k] + rest % w.kernel[k] * w.dilation[k];
                place /= w.out[k];
                rest /= w.kernel[k];
                inside = x >= 0 && x < w.in[k];
                at += x * scale;
                scale *= w.in[k];
            }
            double v = inside ? fabs(in.get(plane * w.in_pixels + at)) : 0;
            sum += p == 2 ? v * v : p == 1 ? v : inside ? pow(v, p) : 0;
        }
        out.put(i, p == 2 ? sqrt(sum) : pow(sum, 1 / p));
    });
}

/* ---- MaxUnpool ---- */

/* Indices count elements of the shape that kernel, strides and pads give; a larger output_shape pads that. */

int64_t entry(const int64_t *values, size_t n, int32_t i, int64_t fallback)
{
    return i >= 0 && (size_t)i < n ? values[i] : fallback;
}

grt_status reshape_unpool(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *index = r->in[1], *y = r->out[0];
    size_t n_kernel, n_strides, n_pads;
    const int64_t *kernel = grt_attr_ints(r->desc, "kernel_shape", &n_kernel);
    const int64_t *strides = grt_attr_ints(r->desc, "strides", &n_strides);
    const int64_t *pads = grt_attr_ints(r->desc, "pads", &n_pads);
    cuda_dims d = {x->rank, {}};
    for (int32_t i = 0; i < x->rank; i++) {
        int32_t s = i - 2;
        int64_t edge = entry(kernel, n_kernel, s, 1) - entry(pads, n_pads, s, 0) -
                       entry(pads, n_pads, s + x->rank - 2, 0);
        d[i] = x->dims[i];
        if (i >= 2 && (!grt_mul_i64(x->dims[i] - 1, entry(strides, n_strides, s, 1), &d[i]) ||
                       !grt_add_i64(d[i], edge, &d[i])))
            d[i] = -1; /* refused below */
    }
    if (x->rank < 3 || y->rank != x->rank || grt_dims_product(d.d, 0, d.rank) < 0 ||
        !grt_dims_equal(x->dims, x->rank, index->dims, index->rank))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input and indices must have one shape, with spatial dims that the window fits");
    cuda_dims *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = d;
    r->shape = kept;
    return GRT_OK;
}

/* An index outside the output is reported and skipped. */
grt_status run_unpool(const grt_run *r)
{
    const cuda_dims d = *(const cuda_dims *)r->shape, to = cuda_dims_of(r->out[0]);
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int64_t *index = (const int64_t *)r->in[1]->data, elements = grt_dims_product(d.d, 0, d.rank);
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "I", &watch));
    if (grt_tensor_bytes(r->out[0]))
        CUDA_TRY(cudaMemsetAsync(out.data, 0, grt_tensor_bytes(r->out[0]), cuda_stream(r)));
    return cuda_each(r, grt_tensor_elements(r->in[0]), [=] __device__(int64_t i) {
        int64_t rest = index[i], at = 0, stride = 1;
        bool inside = rest >= 0 && rest < elements;
        for (int32_t k = d.rank - 1; inside && k >= 0; k--) {
            at += rest % d[k] * stride;
            inside = rest % d[k] < to[k];
            rest /= d[k];
            stride *= to[k];
        }
        if (inside)
            out.put(at, in.get(i));
        else
            cuda_tell(watch, index[i], i, 0, elements - 1);
    });
}

/* ---- DeformConv ---- */

enum { X, W, OFFSET, BIAS, MASK };

struct deform_shape {
    cpu_window w;
    int64_t groups, offset_groups, channels, out_channels;
};

bool supports_deform(const grt_kernel_node *node, grt_text *why)
{
    if (node->in[X].rank == 4 || node->in[X].rank < 0)
        return true;
    if (why)
        grt_text_add(why, "the input has rank %d; images with two spatial dims are supported",
                     node->in[X].rank);
    return false;
}

bool dims_are(const grt_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t want[] = {a, b, c, d};
    return !t || grt_dims_equal(t->dims, t->rank, want, 4);
}

grt_status reshape_deform(grt_reshape *r)
{
    const grt_tensor *x = r->in[X], *w = r->in[W], *y = r->out[0];
    const grt_tensor *bias = r->n_in > BIAS ? r->in[BIAS] : NULL, *mask = r->n_in > MASK ? r->in[MASK] : NULL;
    int64_t groups = grt_attr_int(r->desc, "group", 1), offsets = grt_attr_int(r->desc, "offset_group", 1);
    bool fits = x->rank == 4 && w->rank == 4 && y->rank == 4 && groups > 0 && offsets > 0 &&
                x->dims[1] == w->dims[1] * groups && w->dims[0] % groups == 0 && x->dims[1] % offsets == 0;
    if (fits) {
        int64_t taps = w->dims[2] * w->dims[3];
        fits = dims_are(r->in[OFFSET], x->dims[0], offsets * taps * 2, y->dims[2], y->dims[3]) &&
               dims_are(mask, x->dims[0], offsets * taps, y->dims[2], y->dims[3]) &&
               (!bias || grt_tensor_elements(bias) == w->dims[0]);
    }
    if (!fits)
        return grt_fail_op(
            r->desc, GRT_STATUS_INVALID_ARGUMENT,
            "input, weight, offset, bias and mask do not fit together; see DeformConv's definition");
    deform_shape *sh;
    GRT_TRY(cuda_state(&sh));
    cpu_window_read(r->desc, 2, x->dims + 2, y->dims + 2, w->dims + 2, false, &sh->w);
    sh->groups = groups;
    sh->offset_groups = offsets;
    sh->channels = x->dims[1];
    sh->out_channels = w->dims[0];
    r->shape = sh;
    return GRT_OK;
}

__device__ double image_pixel(const cpu_window &w, const cuda_any &x, int64_t plane, int64_t row,
                              int64_t column)
{
    bool inside = row >= 0 && row < w.in[0] && column >= 0 && column < w.in[1];
    return inside ? x.get(plane * w.in_pixels + row * w.in[1] + column) : 0;
}

__device__ double image_at(const cpu_window &w, const cuda_any &x, int64_t plane, double row, double column)
{
    if (!(row > -1 && row < (double)w.in[0] && column > -1 && column < (double)w.in[1]))
        return 0; /* NaN too */
    int64_t a = (int64_t)floor(row), c = (int64_t)floor(column);
    double down = row - (double)a, right = column - (double)c;
    double upper = (1 - right) * image_pixel(w, x, plane, a, c) + right * image_pixel(w, x, plane, a, c + 1);
    double lower =
        (1 - right) * image_pixel(w, x, plane, a + 1, c) + right * image_pixel(w, x, plane, a + 1, c + 1);
    return (1 - down) * upper + down * lower;
}

grt_status run_deform(const grt_run *r)
{
    const deform_shape s = *(const deform_shape *)r->shape;
    const cuda_any x = cuda_any_in(r, X), weight = cuda_any_in(r, W), offset = cuda_any_in(r, OFFSET),
                   bias = cuda_any_in(r, BIAS), mask = cuda_any_in(r, MASK), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const cpu_window &w = s.w;
        int64_t at = i % w.out_pixels, o = i / w.out_pixels % s.out_channels,
                batch = i / w.out_pixels / s.out_channels;
        int64_t group_in = s.channels / s.groups, first = o / (s.out_channels / s.groups) * group_in;
        double sum = bias ? bias.get(o) : 0;
        for (int64_t c = 0; c < group_in; c++)
            for (int64_t tap = 0; tap < w.taps; tap++) {
                int64_t g = (first + c) / (s.channels / s.offset_groups),
                        cell = (batch * s.offset_groups + g) * w.taps + tap;
                double row =
                    (double)(at / w.out[1] * w.stride[0] - w.begin[0] + tap / w.kernel[1] * w.dilation[0]);
                double column =
                    (double)(at % w.out[1] * w.stride[1] - w.begin[1] + tap % w.kernel[1] * w.dilation[1]);
                row += offset.get(cell * 2 * w.out_pixels + at);
                column += offset.get((cell * 2 + 1) * w.out_pixels + at);
                double factor = mask ? mask.get(cell * w.out_pixels + at) : 1;
                sum += factor * image_at(w, x, batch * s.channels + first + c, row, column) *
                       weight.get((o * group_in + c) * w.taps + tap);
            }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "GridSample",
     .types = {GRT_SET_NUMBERS, GRT_SET_FLOATS},
     .create = create_grid,
     .destroy = free,
     .run = run_grid},
    {.domain = "",
     .op = "AffineGrid",
     .types = {GRT_SET_FLOATS},
     .create = create_affine,
     .destroy = free,
     .run = run_affine},
    {.domain = "",
     .op = "RoiAlign",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = create_roi,
     .destroy = free,
     .run = run_roi},
    {.domain = "",
     .op = "Col2Im",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .flags = GRT_KERNEL_READS(2),
     .reshape = reshape_fold,
     .release_shape = free,
     .run = run_fold},
    {.domain = "",
     .op = "LpPool",
     .types = {GRT_SET_FLOATS},
     .create = create_lp,
     .destroy = free,
     .reshape = reshape_lp,
     .release_shape = free,
     .run = run_lp},
    {.domain = "",
     .op = "MaxUnpool",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .reshape = reshape_unpool,
     .release_shape = free,
     .run = run_unpool},
    {.domain = "",
     .op = "DeformConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = supports_deform,
     .reshape = reshape_deform,
     .release_shape = free,
     .run = run_deform},
};

} // namespace
CUDA_KERNELS(sampling, rows);

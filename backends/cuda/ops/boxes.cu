/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: candidates of every class are sorted by score, then a block per class keeps those that
 * overlap none of the kept ones. RoiAlign, Col2Im: a thread per output element gathers what makes it. */
#include "backends/cuda/order.cuh"
#include "backends/shared/order.h"
#include "src/base/checked.h"

namespace
{

enum : uint64_t { FILTERED = UINT64_MAX }; /* no number's key, as keys are turned round */

grt_status cuda_create_nms(const grt_kernel_node *node, void **out_state)
{
    bool *center;
    GRT_TRY(cuda_state(&center));
    *center = grt_attr_int(node->desc, "center_point_box", 0) != 0;
    *out_state = center;
    return GRT_OK;
}

struct rectangle {
    float top, left, bottom, right;
};

__device__ __forceinline__ rectangle rectangle_of(const float *box, bool center)
{
    if (center)
        return {box[1] - box[3] / 2, box[0] - box[2] / 2, box[1] + box[3] / 2, box[0] + box[2] / 2};
    return {fminf(box[0], box[2]), fminf(box[1], box[3]), fmaxf(box[0], box[2]), fmaxf(box[1], box[3])};
}

/* Rounded as on the CPU: a fused multiply and add could decide otherwise at the threshold. */
__device__ __forceinline__ bool overlaps(const rectangle &a, const rectangle &b, float threshold)
{
    float height = fminf(a.bottom, b.bottom) - fmaxf(a.top, b.top),
          width = fminf(a.right, b.right) - fmaxf(a.left, b.left);
    if (!(height > 0) || !(width > 0))
        return false;
    float common = __fmul_rn(height, width), area_a = __fmul_rn(a.bottom - a.top, a.right - a.left),
          area_b = __fmul_rn(b.bottom - b.top, b.right - b.left);
    float all = __fsub_rn(__fadd_rn(area_a, area_b), common);
    return area_a > 0 && area_b > 0 && all > 0 && __fdiv_rn(common, all) > threshold;
}

/* What is left of a class: kept[group * n ...] and how many. */
struct chosen {
    int64_t n, classes;
    const float *boxes, *threshold;
    const int64_t *most;
    bool center;
    int64_t *kept, *counts;
};

__device__ void choose(const chosen &c, const cuda_keyed *sorted, int64_t group, int thread, int threads)
{
    const float *boxes = c.boxes + group / c.classes * c.n * 4;
    const float threshold = c.threshold ? *c.threshold : 0;
    const int64_t most = c.most ? *c.most : 0;
    int64_t *kept = c.kept + group * c.n, count = 0;
    sorted += group * c.n;
    for (int64_t i = 0; i < c.n && count < most && sorted[i].key != FILTERED; i++) {
        const int64_t box = sorted[i].at;
        const rectangle mine = rectangle_of(boxes + 4 * box, c.center);
        bool hit = false;
        for (int64_t k = thread; k < count && !hit; k += threads)
            hit = overlaps(mine, rectangle_of(boxes + 4 * kept[k], c.center), threshold);
        if (__syncthreads_or(hit))
            continue;
        if (thread == 0)
            kept[count] = box;
        count++;
        __syncthreads();
    }
    if (thread == 0)
        c.counts[group] = count;
}

/* Keys twice, then counts of the groups and where their results begin. */
grt_status cuda_reshape_nms(grt_reshape *r)
{
    const grt_tensor *boxes = r->in[0], *scores = r->in[1];
    const int64_t total = grt_tensor_elements(scores), groups = scores->dims[0] * scores->dims[1];
    if (boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2] || boxes->dims[2] != 4)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "boxes must be %lldx%lldx4 as scores has that many", (long long)scores->dims[0],
                           (long long)scores->dims[2]);
    r->workspace_bytes = (size_t)total * 2 * sizeof(cuda_keyed) + (size_t)(2 * groups + 1) * sizeof(int64_t);
    return GRT_OK;
}

grt_status cuda_run_nms(const grt_run *r)
{
    const grt_tensor *scores = r->in[1], *limit = r->n_in > 4 ? r->in[4] : NULL;
    const int64_t n = scores->dims[2], classes = scores->dims[1], groups = scores->dims[0] * classes,
                  total = groups * n;
    const float *score = (const float *)scores->data,
                *least = limit && grt_tensor_elements(limit) ? (const float *)limit->data : NULL;
    cuda_keyed *v = (cuda_keyed *)r->workspace, *spare = v + total;
    int64_t *counts = (int64_t *)(spare + total), *begins = counts + groups, found = 0;
    GRT_TRY(cuda_each(r, total, [=] __device__(int64_t i) {
        bool in = !least || score[i] > *least;
        v[i] = {in ? ~cpu_order_float(score[i]) : (uint64_t)FILTERED, i % n};
    }));
    GRT_TRY(cuda_sort(r, groups, n, &v, &spare, cuda_keyed_less()));
    const auto scalar = [=](int32_t i) {
        return r->n_in > i && r->in[i] && grt_tensor_elements(r->in[i]) ? r->in[i]->data : NULL;
    };
    const chosen c = {n,
                      classes,
                      (const float *)r->in[0]->data,
                      (const float *)scalar(3),
                      (const int64_t *)scalar(2),
                      *(const bool *)r->state,
                      (int64_t *)spare,
                      counts};
    const cuda_keyed *sorted = v;
    GRT_TRY(cuda_each_block(r, groups, [=] __device__(int64_t group, int thread, int threads) {
        choose(c, sorted, group, thread, threads);
    }));
    GRT_TRY(cuda_each(r, 1, [=] __device__(int64_t) {
        int64_t sum = 0;
        for (int64_t g = 0; g < groups; g++) {
            begins[g] = sum;
            sum += counts[g];
        }
        begins[groups] = sum;
    }));
    GRT_TRY(cuda_read(r, begins + groups, &found));
    const int64_t dims[] = {found, 3};
    GRT_TRY(r->hooks->alloc_output(r, 0, 2, dims));
    int64_t *out = (int64_t *)r->out[0]->data;
    return cuda_each(r, found ? total : 0, [=] __device__(int64_t i) {
        const int64_t group = i / n, k = i % n;
        if (k >= counts[group])
            return;
        int64_t *triple = out + 3 * (begins[group] + k);
        triple[0] = group / classes;
        triple[1] = group % classes;
        triple[2] = c.kept[i];
    });
}

/* Limit of samples per bin. Real models stay far below; malformed boxes would run for hours. */
enum { MOST_SAMPLES = 1 << 20 };

struct roi_state {
    bool max, shifted; /* shifted: by half a pixel */
    int64_t ratio;
    double scale;
};

grt_status cuda_create_roi(const grt_kernel_node *node, void **out_state)
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

grt_status cuda_run_roi(const grt_run *r)
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

struct fold {
    int64_t dilations[GRT_MAX_RANK], strides[GRT_MAX_RANK], pads[2 * GRT_MAX_RANK];
    int64_t kernel[GRT_MAX_RANK], steps[GRT_MAX_RANK], volume, places;
    bool is_plane; /* two dims, no dilation, sizes and pads that are small and not negative */
};

bool is_plane_fold(const fold &f, const grt_tensor *out)
{
    enum { MOST = 1 << 20 };
    bool plane = out->rank == 4 && out->dims[2] * out->dims[3] <= INT32_MAX / 2;
    for (int32_t k = 0; k < 2; k++)
        plane = plane && f.dilations[k] == 1 && f.pads[k] >= 0 && f.pads[k] <= MOST && f.kernel[k] <= MOST &&
                f.strides[k] >= 1 && f.strides[k] <= MOST && f.steps[k] <= INT32_MAX / 2 &&
                out->dims[k + 2] <= INT32_MAX / 2;
    return plane;
}

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
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "block_shape[%d] is %lld; it must be positive", k, (long long)f.kernel[k]);
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
    f.is_plane = is_plane_fold(f, out);
    fold *kept;
    GRT_TRY(cuda_state(&kept));
    *kept = f;
    r->shape = kept;
    return GRT_OK;
}

/* Images of two dims: of each result only the taps that reach it, which are a stride apart. */
grt_status run_plane_fold(const grt_run *r, const fold &f)
{
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int height = (int)r->out[0]->dims[2], width = (int)r->out[0]->dims[3];
    const int kernel[2] = {(int)f.kernel[0], (int)f.kernel[1]},
              stride[2] = {(int)f.strides[0], (int)f.strides[1]}, pad[2] = {(int)f.pads[0], (int)f.pads[1]},
              steps[2] = {(int)f.steps[0], (int)f.steps[1]};
    const int64_t volume = f.volume, places = f.places;
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const int64_t channel = i / (height * width);
        const int pixel = (int)(i - channel * (height * width)), y = pixel / width + pad[0],
                  x = pixel % width + pad[1];
        double sum = 0;
        for (int down = y % stride[0]; down < kernel[0] && down <= y; down += stride[0])
            for (int right = x % stride[1]; right < kernel[1] && right <= x; right += stride[1]) {
                const int row = (y - down) / stride[0], column = (x - right) / stride[1];
                if (row < steps[0] && column < steps[1])
                    sum += in.get((channel * volume + down * kernel[1] + right) * places + row * steps[1] +
                                  column);
            }
        out.put(i, sum);
    });
}

grt_status run_fold(const grt_run *r)
{
    const fold f = *(const fold *)r->shape;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    if (f.is_plane)
        return run_plane_fold(r, f);
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

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "NonMaxSuppression",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(INT64), GRT_BIT(FLOAT)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = cuda_create_nms,
     .destroy = free,
     .reshape = cuda_reshape_nms,
     .run = cuda_run_nms},
    {.domain = "",
     .op = "RoiAlign",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = cuda_create_roi,
     .destroy = free,
     .run = cuda_run_roi},
    {.domain = "",
     .op = "Col2Im",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .flags = GRT_KERNEL_READS(2),
     .reshape = reshape_fold,
     .release_shape = free,
     .run = run_fold},
};

} // namespace
CUDA_KERNELS(boxes, rows);

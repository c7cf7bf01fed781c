/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign: a thread per output element gathers the samples of its bin. */
#include "backends/cuda/each.cuh"
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/number.cuh"
#include "backends/shared/roi_align.h"

namespace
{

grt_status cuda_create_roi(const grt_kernel_node *node, void **out_state)
{
    grt_roi_align *s;
    GRT_TRY(cuda_state(&s));
    *s = grt_roi_align_read(node->desc);
    *out_state = s;
    return GRT_OK;
}

/* One sample of a plane: the sum of the weighted corners, or the greatest of them. */
template <typename S>
__device__ double roi_sample(const S *plane, int64_t height, int64_t width, double y, double x, bool max)
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
        double v = weight[k] * (double)cuda_widen<S>(plane[at[k]]);
        sum += v;
        most = fmax(most, v);
    }
    return max ? most : sum;
}

struct roi_shape {
    int64_t images, channels, in_h, in_w, h, w;
};

/* A box in the image: where it starts and how large its bins are, and samples per bin. */
struct roi_box {
    double y, x, bin_height, bin_width;
    int64_t rows, cols;
};

__device__ roi_box roi_box_of(const grt_roi_align &s, const roi_shape &d, const cuda_any &boxes, int64_t roi)
{
    double corner[4], shift = s.shifted ? 0.5 : 0;
    for (int k = 0; k < 4; k++)
        corner[k] = boxes.get(4 * roi + k) * s.scale - shift;
    double width = corner[2] - corner[0], height = corner[3] - corner[1];
    if (!s.shifted) {
        width = fmax(width, 1.0);
        height = fmax(height, 1.0);
    }
    const double bin_height = height / (double)d.h, bin_width = width / (double)d.w;
    return {corner[1],
            corner[0],
            bin_height,
            bin_width,
            grt_roi_samples(&s, bin_height),
            grt_roi_samples(&s, bin_width)};
}

/* An output element: bin (row, col) of a box. */
template <typename S>
__device__ double roi_bin(const roi_box &box, const roi_shape &d, bool max, const S *plane, int64_t row,
                          int64_t col)
{
    double acc = 0;
    for (int64_t a = 0; a < box.rows; a++)
        for (int64_t b = 0; b < box.cols; b++) {
            const double v = roi_sample<S>(
                plane, d.in_h, d.in_w,
                box.y + ((double)row + ((double)a + 0.5) / (double)box.rows) * box.bin_height,
                box.x + ((double)col + ((double)b + 0.5) / (double)box.cols) * box.bin_width, max);
            acc = !max ? acc + v : a + b == 0 ? v : fmax(acc, v);
        }
    const int64_t samples = box.rows * box.cols;
    return max ? acc : acc / (samples > 0 ? (double)samples : 1);
}

template <typename S> grt_status roi_align(const grt_run *r, const grt_roi_align &s, const roi_shape &d)
{
    typedef typename cuda_wide<S>::type W; /* halves are rounded by way of float, as the CPU's are */
    const cuda_any boxes = cuda_any_in(r, 1), batches = cuda_any_in(r, 2);
    const S *in = (const S *)r->in[0]->data;
    S *out = (S *)r->out[0]->data;
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "batch_indices", &watch));
    cuda_watch samples = watch;
    samples.what = "rois, in samples of a bin,";
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        const cuda_divided line = cuda_divide(i, d.w), plane = cuda_divide(line.q, d.h),
                           roi = cuda_divide(plane.q, d.channels);
        int64_t image = batches.whole(roi.q);
        if (!cuda_check(watch, image, roi.q, 0, d.images - 1))
            image = 0;
        roi_box box = roi_box_of(s, d, boxes, roi.q);
        if (!grt_roi_is_bounded(box.rows, box.cols)) {
            cuda_tell(samples, box.rows * box.cols, roi.q, 0, GRT_ROI_MOST_SAMPLES);
            box.rows = 0;
        }
        const S *of = in + (image * d.channels + roi.r) * d.in_h * d.in_w;
        out[i] = cuda_narrow<S>((W)roi_bin<S>(box, d, s.max, of, plane.r, line.r));
    });
}

grt_status cuda_run_roi(const grt_run *r)
{
    const grt_roi_align s = *(const grt_roi_align *)r->state;
    const grt_tensor *x = r->in[0], *rois = r->in[1], *y = r->out[0];
    if (rois->dims[1] != 4 || grt_tensor_elements(r->in[2]) != rois->dims[0])
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "rois must be Nx4 with N batch_indices, found %lldx%lld with %lld",
                           (long long)rois->dims[0], (long long)rois->dims[1],
                           (long long)grt_tensor_elements(r->in[2]));
    if (grt_tensor_elements(x) == 0 && grt_tensor_elements(y) > 0)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the images have no pixels");
    const int64_t fixed = grt_roi_samples(&s, 0); /* of every bin, or 0: as boxes have them */
    if (grt_tensor_elements(y) > 0 && !grt_roi_is_bounded(fixed, fixed))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "a roi takes more than %d samples a bin",
                           GRT_ROI_MOST_SAMPLES);
    const roi_shape d = {x->dims[0], x->dims[1], x->dims[2], x->dims[3], y->dims[2], y->dims[3]};
    CUDA_FOR_FLOATS(x->dtype, S, return roi_align<S>(r, s, d))
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "RoiAlign",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = cuda_create_roi,
     .destroy = free,
     .run = cuda_run_roi},
};

} // namespace
CUDA_KERNELS(roi_align, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign: boxes of an image are cut into bins, and samples in a bin, between four pixels each, are pooled.
 */
#include "backends/cpu/move.h"

#include "backends/shared/roi_align.h"
#include "src/base/element.h"

static grt_status create_roi(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(grt_roi_align), out_state));
    *(grt_roi_align *)*out_state = grt_roi_align_read(node->desc);
    return GRT_OK;
}

/* Limit of values read per node beyond 16 for each output and four for each pixel of each box's image. Real
 * models stay far below; malformed ones would run for hours. */
enum { MOST_IN_ALL = 1 << 25 };

/* A box in the image: where it starts and how large its bins are, and samples per bin. */
typedef struct roi_box {
    double y, x, bin_height, bin_width;
    int64_t rows, cols;
} roi_box;

static roi_box box_of(const grt_run *run, int64_t r)
{
    const grt_roi_align *s = run->state;
    double corner[4], shift = s->shifted ? 0.5 : 0;
    for (int k = 0; k < 4; k++)
        corner[k] = grt_element_get(run->in[1], 4 * r + k) * s->scale - shift;
    double width = corner[2] - corner[0], height = corner[3] - corner[1];
    if (!s->shifted) {
        width = fmax(width, 1);
        height = fmax(height, 1);
    }
    const double bin_height = height / (double)run->out[0]->dims[2],
                 bin_width = width / (double)run->out[0]->dims[3];
    return (roi_box){corner[1],
                     corner[0],
                     bin_height,
                     bin_width,
                     grt_roi_samples(s, bin_height),
                     grt_roi_samples(s, bin_width)};
}

/* Range of the n samples, i at start + (i + 0.5) / n * bin, that may lie in [-1, size]; one more on each side
 * because of rounding. A box may be much larger than its image. */
static void samples_inside(double start, double bin, int64_t n, int64_t size, int64_t *out_from,
                           int64_t *out_to)
{
    const double a_sample = bin / (double)n, first = (-1 - start) / a_sample - 1.5,
                 last = ((double)size - start) / a_sample + 1.5;
    *out_from = 0;
    *out_to = n;
    if (!(bin > 0))
        return;
    if (first > 0)
        *out_from = first < (double)n ? (int64_t)first : n;
    if (last < (double)n)
        *out_to = last > (double)*out_from ? (int64_t)last + 1 : *out_from;
}

/* Sum of the bins' samples along one axis that lie in the image. */
static double samples_along(double start, double bin, int64_t bins, int64_t n, int64_t size)
{
    double sum = 0;
    for (int64_t i = 0; i < bins; i++) {
        int64_t from, to;
        samples_inside(start + (double)i * bin, bin, n, size, &from, &to);
        sum += (double)(to - from);
    }
    return sum;
}

/* What box r costs. */
static double samples_of_box(const grt_run *run, const roi_box *b)
{
    const grt_tensor *in = run->in[0], *out = run->out[0];
    return samples_along(b->y, b->bin_height, out->dims[2], b->rows, in->dims[2]) *
           samples_along(b->x, b->bin_width, out->dims[3], b->cols, in->dims[3]);
}

static grt_status check_rois(const grt_run *run)
{
    const grt_tensor *in = run->in[0], *rois = run->in[1], *batches = run->in[2];
    int64_t n = rois->dims[0];
    if (rois->dims[1] != 4 || grt_tensor_elements(batches) != n)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "rois must be Nx4 with N batch_indices, found %lldx%lld with %lld", (long long)n,
                           (long long)rois->dims[1], (long long)grt_tensor_elements(batches));
    if (in->dims[2] * in->dims[3] == 0 && grt_tensor_elements(run->out[0]) > 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "the images have no pixels");
    const double channels = (double)in->dims[1], pixels = (double)in->dims[2] * (double)in->dims[3];
    const double most =
        MOST_IN_ALL + 4 * (double)n * channels * pixels + 16 * (double)grt_tensor_elements(run->out[0]);
    double all = 0;
    for (int64_t r = 0; r < n; r++) {
        roi_box b = box_of(run, r);
        if (cpu_index(batches, r) < 0 || cpu_index(batches, r) >= in->dims[0])
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "batch_indices[%lld] is %lld; the batch has %lld images", (long long)r,
                               (long long)cpu_index(batches, r), (long long)in->dims[0]);
        if (!grt_roi_is_bounded(b.rows, b.cols))
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "roi %lld takes more than %d samples a bin", (long long)r,
                               GRT_ROI_MOST_SAMPLES);
        all += samples_of_box(run, &b) * channels;
        if (all > most)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "the first %lld rois read more than %.0f values; make sampling_ratio smaller",
                               (long long)r + 1, most);
    }
    return GRT_OK;
}

/* Channels per block: their part of a box stays in the cache, and each sample's position is computed once for
 * all. */
enum { CHANNELS = 64 };

/* Where a sample lies between its four neighbours, in one plane. */
typedef struct roi_sample {
    bool inside;
    int64_t at[4];
    double weight[4];
} roi_sample;

static roi_sample sample_of(const grt_tensor *in, double y, double x)
{
    int64_t height = in->dims[2], width = in->dims[3];
    bool inside = y >= -1 && y <= (double)height && x >= -1 && x <= (double)width;
    y = y > 0 ? y : 0;
    x = x > 0 ? x : 0;
    int64_t top = inside ? (int64_t)y : 0, left = inside ? (int64_t)x : 0, bottom = top + 1, right = left + 1;
    if (top >= height - 1)
        y = (double)(top = bottom = height - 1);
    if (left >= width - 1)
        x = (double)(left = right = width - 1);
    double ly = y - (double)top, lx = x - (double)left;
    return (roi_sample){
        inside,
        {top * width + left, top * width + right, bottom * width + left, bottom * width + right},
        {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx}};
}

static void roi_add_values(double *acc, double a, double b, double c, double d, bool max, bool first)
{
    if (!max)
        *acc += a + b + c + d;
    else {
        double most = fmax(fmax(a, b), fmax(c, d));
        *acc = first ? most : fmax(*acc, most);
    }
}

/* Fold one sample of `n` planes from `plane` on into acc. */
static void roi_add_sample(const grt_tensor *in, int64_t plane, int64_t n, const roi_sample *s, bool max,
                           bool first, double *acc)
{
    const int64_t area = in->dims[2] * in->dims[3], *at = s->at;
    if (!s->inside) {
        for (int64_t c = 0; max && c < n; c++)
            acc[c] = first ? 0 : fmax(acc[c], 0);
    } else if (in->dtype == GRT_DTYPE_FLOAT && !max) {
        const float *v = (const float *)in->data + plane * area, w0 = (float)s->weight[0],
                    w1 = (float)s->weight[1], w2 = (float)s->weight[2], w3 = (float)s->weight[3];
        for (int64_t c = 0; c < n; c++, v += area)
            acc[c] += (double)(w0 * v[at[0]] + w1 * v[at[1]] + w2 * v[at[2]] + w3 * v[at[3]]);
    } else {
        for (int64_t c = 0; c < n; c++) {
            double v[4];
            for (int k = 0; k < 4; k++)
                v[k] = s->weight[k] * grt_element_get(in, (plane + c) * area + at[k]);
            roi_add_values(&acc[c], v[0], v[1], v[2], v[3], max, first);
        }
    }
}

/* One box, `n` channels from `channel` on. */
static void pool_box(const grt_run *run, int64_t r, int64_t channel, int64_t n)
{
    const grt_roi_align *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    const int64_t width = out->dims[3], bins = out->dims[2] * width, channels = in->dims[1],
                  plane = cpu_index(run->in[2], r) * channels + channel;
    const roi_box b = box_of(run, r);
    const double count = b.rows * b.cols > 0 ? (double)(b.rows * b.cols) : 1;
    for (int64_t bin = 0; bin < bins; bin++) {
        double acc[CHANNELS] = {0};
        int64_t top, bottom, left, right;
        samples_inside(b.y + (double)(bin / width) * b.bin_height, b.bin_height, b.rows, in->dims[2], &top,
                       &bottom);
        samples_inside(b.x + (double)(bin % width) * b.bin_width, b.bin_width, b.cols, in->dims[3], &left,
                       &right);
        bool first = (bottom - top) * (right - left) == b.rows * b.cols; /* a sample outside counts as 0 */
        for (int64_t i = top; left < right && i < bottom; i++)
            for (int64_t k = left; k < right; k++) {
                const roi_sample sample = sample_of(
                    in, b.y + ((double)(bin / width) + ((double)i + 0.5) / (double)b.rows) * b.bin_height,
                    b.x + ((double)(bin % width) + ((double)k + 0.5) / (double)b.cols) * b.bin_width);
                roi_add_sample(in, plane, n, &sample, s->max, first, acc);
                first = false;
            }
        for (int64_t c = 0; c < n; c++)
            grt_element_put(out, (r * channels + channel + c) * bins + bin, s->max ? acc[c] : acc[c] / count);
    }
}

/* A sample of float32: where its neighbours are in a plane, and their weights. */
typedef struct roi_tap {
    int32_t at[4];
    float weight[4];
} roi_tap;

enum { ROI_TAPS = 512 };

/* The samples of bin `bin` that lie in the image, at most ROI_TAPS; returns how many. */
static int64_t list_roi_taps(const grt_run *run, const roi_box *b, int64_t bin, roi_tap *taps)
{
    const grt_tensor *in = run->in[0];
    const int64_t width = run->out[0]->dims[3];
    const double y = (double)(bin / width), x = (double)(bin % width);
    int64_t top, bottom, left, right, n = 0;
    samples_inside(b->y + y * b->bin_height, b->bin_height, b->rows, in->dims[2], &top, &bottom);
    samples_inside(b->x + x * b->bin_width, b->bin_width, b->cols, in->dims[3], &left, &right);
    for (int64_t i = top; left < right && i < bottom; i++)
        for (int64_t k = left; k < right; k++) {
            const roi_sample s =
                sample_of(in, b->y + (y + ((double)i + 0.5) / (double)b->rows) * b->bin_height,
                          b->x + (x + ((double)k + 0.5) / (double)b->cols) * b->bin_width);
            for (int j = 0; j < 4; j++) {
                taps[n].at[j] = (int32_t)s.at[j];
                taps[n].weight[j] = (float)s.weight[j];
            }
            n += s.inside;
        }
    return n;
}

/* The mean of float32 samples, some bins of all channels at a time: where samples lie is worked out once, and
 * a plane stays in the first-level cache. False: not of that kind. */
static bool pool_box_floats(const grt_run *run, int64_t r, int64_t channel, int64_t n)
{
    const grt_roi_align *s = run->state;
    const grt_tensor *in = run->in[0];
    const int64_t bins = run->out[0]->dims[2] * run->out[0]->dims[3], channels = in->dims[1],
                  area = in->dims[2] * in->dims[3];
    const roi_box b = box_of(run, r);
    const int64_t samples = b.rows * b.cols;
    if (in->dtype != GRT_DTYPE_FLOAT || s->max || samples < 1 || samples > ROI_TAPS || area > INT32_MAX)
        return false;
    const float *planes = (const float *)in->data + (cpu_index(run->in[2], r) * channels + channel) * area;
    float *out = (float *)run->out[0]->data + (r * channels + channel) * bins;
    for (int64_t bin = 0, now; bin < bins; bin += now) {
        roi_tap taps[ROI_TAPS];
        int64_t ends[ROI_TAPS], listed = 0;
        now = 0;
        for (; now < ROI_TAPS && bin + now < bins && listed + samples <= ROI_TAPS; now++) {
            listed += list_roi_taps(run, &b, bin + now, taps + listed);
            ends[now] = listed;
        }
        for (int64_t c = 0; c < n; c++) {
            const float *v = planes + c * area;
            const roi_tap *t = taps;
            for (int64_t i = 0; i < now; i++) {
                double sum = 0;
                for (; t < taps + ends[i]; t++)
                    sum += (double)(t->weight[0] * v[t->at[0]] + t->weight[1] * v[t->at[1]] +
                                    t->weight[2] * v[t->at[2]] + t->weight[3] * v[t->at[3]]);
                out[c * bins + bin + i] = (float)(sum / (double)samples);
            }
        }
    }
    return true;
}

static grt_status run_roi(const grt_run *run)
{
    const int64_t n = run->in[1]->dims[0], channels = run->in[0]->dims[1],
                  blocks = (channels + CHANNELS - 1) / CHANNELS;
    GRT_TRY(check_rois(run));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic) if (n * blocks > 1)
    for (int64_t item = 0; item < n * blocks; item++) {
        const int64_t channel = item % blocks * CHANNELS, left = channels - channel;
        const int64_t here = left < CHANNELS ? left : CHANNELS;
        if (!pool_box_floats(run, item / blocks, channel, here))
            pool_box(run, item / blocks, channel, here);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "RoiAlign",
     .domain = "",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = create_roi,
     .destroy = free,
     .run = run_roi},
};
CPU_KERNELS(roi_align, rows);

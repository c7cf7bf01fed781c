/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign, NonMaxSuppression, Col2Im. */
#include "backends/cpu/move.h"

#include "backends/cpu/dispatch.h"
#include "src/base/element.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"
#include "src/base/heap.h"

#include <string.h>

/* ---- RoiAlign ---- */

typedef struct roi_state {
    bool max, shifted; /* shifted: by half a pixel */
    int64_t ratio;
    double scale;
} roi_state;

static grt_status create_roi(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(roi_state), out_state));
    roi_state *s = *out_state;
    s->max = !strcmp(grt_attr_string(node->desc, "mode", "avg"), "max");
    s->shifted =
        !strcmp(grt_attr_string(node->desc, "coordinate_transformation_mode", "half_pixel"), "half_pixel");
    s->ratio = grt_attr_int(node->desc, "sampling_ratio", 0);
    s->scale = (double)grt_attr_float(node->desc, "spatial_scale", 1);
    return GRT_OK;
}

/* Limits of samples per bin, and of values read per node beyond 16 for each output and four for each pixel
 * of each box's image. Real models stay far below; malformed ones would run for hours. */
enum { MOST_SAMPLES = 1 << 20, MOST_IN_ALL = 1 << 25 };

/* A box in the image: where it starts and how large its bins are, and samples per bin. */
typedef struct roi_box {
    double y, x, bin_height, bin_width;
    int64_t rows, cols;
} roi_box;

static roi_box box_of(const grt_run *run, int64_t r)
{
    const roi_state *s = run->state;
    double corner[4], shift = s->shifted ? 0.5 : 0;
    for (int k = 0; k < 4; k++)
        corner[k] = grt_element_get(run->in[1], 4 * r + k) * s->scale - shift;
    double width = corner[2] - corner[0], height = corner[3] - corner[1];
    if (!s->shifted) {
        width = fmax(width, 1);
        height = fmax(height, 1);
    }
    roi_box b = {
        corner[1], corner[0], height / (double)run->out[0]->dims[2], width / (double)run->out[0]->dims[3],
        s->ratio,  s->ratio};
    if (s->ratio <= 0) { /* NaN has no samples */
        b.rows = b.bin_height > 0 ? (int64_t)ceil(fmin(b.bin_height, MOST_SAMPLES)) : 0;
        b.cols = b.bin_width > 0 ? (int64_t)ceil(fmin(b.bin_width, MOST_SAMPLES)) : 0;
    }
    return b;
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
        if (b.rows > MOST_SAMPLES || b.cols > MOST_SAMPLES || b.rows * b.cols > MOST_SAMPLES)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "roi %lld takes more than %d samples a bin", (long long)r, MOST_SAMPLES);
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

static void boxes_add_values(double *acc, double a, double b, double c, double d, bool max, bool first)
{
    if (!max)
        *acc += a + b + c + d;
    else {
        double most = fmax(fmax(a, b), fmax(c, d));
        *acc = first ? most : fmax(*acc, most);
    }
}

/* Fold one sample of `n` planes from `plane` on into acc. */
static void boxes_add_sample(const grt_tensor *in, int64_t plane, int64_t n, const roi_sample *s, bool max,
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
            boxes_add_values(&acc[c], v[0], v[1], v[2], v[3], max, first);
        }
    }
}

/* One box, `n` channels from `channel` on. */
static void pool_box(const grt_run *run, int64_t r, int64_t channel, int64_t n)
{
    const roi_state *s = run->state;
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
                boxes_add_sample(in, plane, n, &sample, s->max, first, acc);
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
    const roi_state *s = run->state;
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

/* ---- NonMaxSuppression ---- */

static grt_status create_nms(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(bool), out_state));
    *(bool *)*out_state = grt_attr_int(node->desc, "center_point_box", 0) != 0;
    return GRT_OK;
}

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

static inline bool ahead(candidate a, candidate b)
{
    return a.score > b.score || (a.score == b.score && a.box < b.box);
}

GRT_DEFINE_SIFT(sift, candidate, ahead)

/* A heap, its best on top: few of many candidates are looked at where the number of boxes is limited. */
static void heap_candidates(candidate *heap, int64_t n)
{
    for (int64_t top = n / 2 - 1; top >= 0; top--)
        sift(heap, n, top);
}

static candidate take_best(candidate *heap, int64_t *n)
{
    const candidate best = heap[0];
    heap[0] = heap[--*n];
    if (*n > 1)
        sift(heap, *n, 0);
    return best;
}

typedef struct rectangle {
    float top, left, bottom, right;
} rectangle;

static rectangle rectangle_of(const float *box, bool center)
{
    if (center)
        return (rectangle){box[1] - box[3] / 2, box[0] - box[2] / 2, box[1] + box[3] / 2,
                           box[0] + box[2] / 2};
    return (rectangle){fminf(box[0], box[2]), fminf(box[1], box[3]), fmaxf(box[0], box[2]),
                       fmaxf(box[1], box[3])};
}

/* Chosen boxes as arrays of fields, so that a candidate is compared with several at once. */
typedef struct chosen_boxes {
    float *top, *left, *bottom, *right, *area;
} chosen_boxes;

enum { TOGETHER = 64 };

/* Does `a` overlap one of n <= TOGETHER chosen boxes from `begin` on? Two loops: a single one would use fused
 * multiply-adds on some machines only, so boxes at the threshold would differ between machines. */
CPU_BODY overlaps_some_body(const chosen_boxes *chosen, int64_t begin, int64_t n, rectangle a, float area,
                            float threshold, int *out)
{
    const float *top = chosen->top + begin, *left = chosen->left + begin, *bottom = chosen->bottom + begin,
                *right = chosen->right + begin, *areas = chosen->area + begin;
    float common[TOGETHER];
    int any = 0;
#pragma omp simd
    for (int64_t k = 0; k < n; k++) {
        float height = (a.bottom < bottom[k] ? a.bottom : bottom[k]) - (a.top > top[k] ? a.top : top[k]),
              width = (a.right < right[k] ? a.right : right[k]) - (a.left > left[k] ? a.left : left[k]);
        common[k] = (height > 0 ? height : 0) * (width > 0 ? width : 0);
    }
#pragma omp simd reduction(| : any)
    for (int64_t k = 0; k < n; k++) {
        float all = area + areas[k] - common[k];
        any |= (common[k] > 0) & (areas[k] > 0) & (all > 0) & (common[k] / all > threshold);
    }
    *out = any;
}
CPU_DISPATCH(overlaps_some,
             (const chosen_boxes *chosen, int64_t begin, int64_t n, rectangle a, float area, float threshold,
              int *out),
             (chosen, begin, n, a, area, threshold, out))

/* Keep box `a` as number n unless it overlaps one that was kept. */
static bool keep_box(const chosen_boxes *chosen, int64_t n, rectangle a, float threshold)
{
    const float area = (a.bottom - a.top) * (a.right - a.left);
    int found = 0;
    for (int64_t k = 0; k < n && !found && area > 0; k += TOGETHER)
        overlaps_some(chosen, k, n - k < TOGETHER ? n - k : TOGETHER, a, area, threshold, &found);
    if (found)
        return false;
    chosen->top[n] = a.top;
    chosen->left[n] = a.left;
    chosen->bottom[n] = a.bottom;
    chosen->right[n] = a.right;
    chosen->area[n] = area;
    return true;
}

/* Candidates of one class, its chosen boxes, then the chosen triples of all. */
static grt_status reshape_nms(grt_reshape *reshape)
{
    const grt_tensor *scores = reshape->in[1];
    size_t all = (size_t)grt_tensor_elements(scores), bytes, of_class;
    if (!grt_mul_size(all, 3 * sizeof(int64_t), &bytes) ||
        !grt_mul_size((size_t)scores->dims[2], sizeof(candidate) + 5 * sizeof(float), &of_class) ||
        !grt_add_size(bytes, of_class, &bytes))
        return grt_fail_memory(SIZE_MAX);
    reshape->workspace_bytes = bytes;
    return GRT_OK;
}

static double scalar_or(const grt_run *run, int32_t i, double fallback)
{
    bool there = i < run->n_in && run->in[i] && grt_tensor_elements(run->in[i]) > 0;
    return there ? grt_element_get(run->in[i], 0) : fallback;
}

static grt_status run_nms(const grt_run *run)
{
    const grt_tensor *boxes = run->in[0], *scores = run->in[1];
    bool center = *(const bool *)run->state;
    int64_t batch = scores->dims[0], classes = scores->dims[1], n = scores->dims[2], chosen = 0;
    double most = scalar_or(run, 2, 0);
    float overlap = (float)scalar_or(run, 3, 0), least = (float)scalar_or(run, 4, -INFINITY);
    bool filtered = run->n_in > 4 && run->in[4];
    if (boxes->dims[0] != batch || boxes->dims[1] != n || boxes->dims[2] != 4)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "boxes must be %lldx%lldx4 as scores has that many", (long long)batch,
                           (long long)n);
    candidate *list = run->workspace;
    int64_t(*triples)[3] = (int64_t(*)[3])(list + n);
    float *fields = (float *)(void *)(triples + batch * classes * n);
    const chosen_boxes kept = {fields, fields + n, fields + 2 * n, fields + 3 * n, fields + 4 * n};
    const int64_t groups = n > 0 && most > 0 ? batch * classes : 0;
    for (int64_t group = 0; group < groups; group++) {
        const float *score = (const float *)scores->data + group * n,
                    *box = (const float *)boxes->data + group / classes * n * 4;
        int64_t n_list = 0, begin = chosen;
        for (int64_t i = 0; i < n; i++) { /* without a branch, which would be mispredicted */
            list[n_list] = (candidate){score[i], i};
            n_list += !filtered || score[i] > least;
        }
        heap_candidates(list, n_list);
        while (n_list > 0 && (double)(chosen - begin) < most) {
            const int64_t i = take_best(list, &n_list).box;
            if (keep_box(&kept, chosen - begin, rectangle_of(box + 4 * i, center), overlap))
                memcpy(triples[chosen++], (int64_t[]){group / classes, group % classes, i}, sizeof *triples);
        }
    }
    const int64_t dims[] = {chosen, 3};
    GRT_TRY(run->hooks->alloc_output(run, 0, 2, dims));
    if (chosen)
        memcpy(run->out[0]->data, triples, (size_t)chosen * sizeof *triples);
    return GRT_OK;
}

/* ---- Col2Im ---- */

typedef struct col2im_state {
    int64_t dilations[GRT_MAX_RANK], strides[GRT_MAX_RANK], pads[2 * GRT_MAX_RANK];
} col2im_state;

static void boxes_read_list(const grt_op_desc *desc, const char *name, int64_t fallback, int64_t *out,
                            size_t room)
{
    size_t n;
    const int64_t *list = grt_attr_ints(desc, name, &n);
    for (size_t k = 0; k < room; k++)
        out[k] = list && k < n ? list[k] : fallback;
}

static grt_status create_col2im(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(col2im_state), out_state));
    col2im_state *s = *out_state;
    boxes_read_list(node->desc, "dilations", 1, s->dilations, GRT_MAX_RANK);
    boxes_read_list(node->desc, "strides", 1, s->strides, GRT_MAX_RANK);
    boxes_read_list(node->desc, "pads", 0, s->pads, 2 * GRT_MAX_RANK);
    return GRT_OK;
}

/* What one tap adds to a plane of float32: lines of places, of which the last dim's lie a stride apart. */
CPU_BODY col2im_tap_body(const col2im_state *s, int32_t n, int64_t tap, const int64_t *kernel,
                         const int64_t *steps, const int64_t *dims, const float *from, float *plane)
{
    int64_t shift[GRT_MAX_RANK], place[GRT_MAX_RANK] = {0}, lines = 1;
    for (int32_t k = n - 1; k >= 0; k--) {
        shift[k] = tap % kernel[k] * s->dilations[k] - s->pads[k];
        tap /= kernel[k];
        lines *= k < n - 1 ? steps[k] : 1;
    }
    const int64_t width = steps[n - 1], stride = s->strides[n - 1], first = shift[n - 1];
    const int64_t low = first < 0 ? (-first + stride - 1) / stride : 0,
                  high = dims[n - 1] > first ? (dims[n - 1] - first - 1) / stride + 1 : 0;
    const int64_t count = (high < width ? high : width) - low;
    for (int64_t line = 0; line < lines && count > 0; line++, from += width) {
        int64_t at = 0;
        bool inside = true;
        for (int32_t k = 0; k < n - 1; k++) {
            const int64_t y = place[k] * s->strides[k] + shift[k];
            inside = inside && y >= 0 && y < dims[k];
            at = (at + y) * dims[k + 1];
        }
        const float *v = from + low;
        float *to = plane + (inside ? at + first + low * stride : 0);
        if (stride == 1) {
#pragma omp simd
            for (int64_t i = 0; i < (inside ? count : 0); i++)
                to[i] += v[i];
        } else {
            for (int64_t i = 0; inside && i < count; i++)
                to[i * stride] += v[i];
        }
        for (int32_t k = n - 2; k >= 0 && ++place[k] == steps[k]; k--)
            place[k] = 0;
    }
}
CPU_DISPATCH(col2im_tap,
             (const col2im_state *s, int32_t n, int64_t tap, const int64_t *kernel, const int64_t *steps,
              const int64_t *dims, const float *from, float *plane),
             (s, n, tap, kernel, steps, dims, from, plane))

static grt_status run_col2im(const grt_run *run)
{
    const col2im_state *s = run->state;
    const grt_tensor *in = run->in[0], *block = run->in[2];
    grt_tensor *out = run->out[0];
    int32_t n = out->rank - 2;
    int64_t kernel[GRT_MAX_RANK], steps[GRT_MAX_RANK], strides[GRT_MAX_RANK], volume = 1, places = 1;
    grt_dims_strides(out->dims, out->rank, strides);
    for (int32_t k = 0; k < n; k++) {
        kernel[k] = cpu_index(block, k);
        if (kernel[k] < 1 || kernel[k] > INT32_MAX)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "block_shape[%d] is %lld; it must be positive", k, (long long)kernel[k]);
        int64_t room = out->dims[k + 2] + s->pads[k] + s->pads[n + k] - s->dilations[k] * (kernel[k] - 1) - 1;
        steps[k] = room < 0 ? 0 : room / s->strides[k] + 1;
        if (!grt_mul_i64(volume, kernel[k], &volume) || !grt_mul_i64(places, steps[k], &places))
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "image and block ask for too much");
    }
    int64_t rows;
    if (!grt_mul_i64(out->dims[1], volume, &rows) || in->dims[1] != rows || in->dims[2] != places)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input is %lldx%lld where image and block ask for %lldx%lld",
                           (long long)in->dims[1], (long long)in->dims[2], (long long)rows,
                           (long long)places);
    if (grt_tensor_elements(out))
        memset(out->data, 0, grt_tensor_bytes(out));
    int64_t planes = in->dims[0] * out->dims[1];
    if (in->dtype == GRT_DTYPE_FLOAT && n > 0) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (grt_tensor_elements(in) > CPU_GRAIN)
        for (int64_t plane = 0; plane < planes; plane++)
            for (int64_t tap = 0; tap < volume && places > 0; tap++)
                col2im_tap(s, n, tap, kernel, steps, out->dims + 2,
                           (const float *)in->data + (plane * volume + tap) * places,
                           (float *)out->data + plane * strides[1]);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (grt_tensor_elements(in) > CPU_GRAIN)
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < volume * places; i++) {
            int64_t kernel_rest = i / places, place_rest = i % places, at = plane * strides[1];
            bool inside = true;
            for (int32_t k = n - 1; k >= 0; k--) {
                int64_t y = place_rest % steps[k] * s->strides[k] +
                            kernel_rest % kernel[k] * s->dilations[k] - s->pads[k];
                inside = inside && y >= 0 && y < out->dims[k + 2];
                at += y * strides[k + 2];
                place_rest /= steps[k];
                kernel_rest /= kernel[k];
            }
            if (inside)
                grt_element_put(out, at,
                                grt_element_get(out, at) + grt_element_get(in, plane * volume * places + i));
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
    {.op = "NonMaxSuppression",
     .domain = "",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(INT64), GRT_BIT(FLOAT)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = create_nms,
     .destroy = free,
     .reshape = reshape_nms,
     .run = run_nms},
    {.op = "Col2Im",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .create = create_col2im,
     .destroy = free,
     .run = run_col2im},
};
CPU_KERNELS(boxes, rows);

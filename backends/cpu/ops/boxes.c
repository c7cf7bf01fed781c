/* RoiAlign, NonMaxSuppression, Col2Im. */
#include "backends/cpu/move.h"

#include "backends/cpu/element.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"

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

static grt_status reshape_roi(grt_reshape *reshape)
{
    reshape->workspace_bytes = (size_t)reshape->in[0]->dims[1] * sizeof(double) * (size_t)reshape->threads;
    return GRT_OK;
}

/* Samples per bin beyond which a box is refused: no real one needs them, and broken ones would keep the loops
 * busy for ever. */
enum { MOST_SAMPLES = 1 << 20 };

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
        corner[k] = cpu_element_get(run->in[1], 4 * r + k) * s->scale - shift;
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
    for (int64_t r = 0; r < n; r++) {
        roi_box b = box_of(run, r);
        if (cpu_index(batches, r) < 0 || cpu_index(batches, r) >= in->dims[0])
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "batch_indices[%lld] is %lld; the batch has %lld images", (long long)r,
                               (long long)cpu_index(batches, r), (long long)in->dims[0]);
        if (b.rows > MOST_SAMPLES || b.cols > MOST_SAMPLES || b.rows * b.cols > MOST_SAMPLES)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "roi %lld takes more than %d samples a bin", (long long)r, MOST_SAMPLES);
    }
    return GRT_OK;
}

/* Fold one sample of all channels into acc. */
static void add_sample(const grt_tensor *in, int64_t batch, double y, double x, bool max, bool first,
                       double *acc)
{
    int64_t channels = in->dims[1], height = in->dims[2], width = in->dims[3], area = height * width;
    bool inside = y >= -1 && y <= (double)height && x >= -1 && x <= (double)width;
    y = y > 0 ? y : 0;
    x = x > 0 ? x : 0;
    int64_t top = inside ? (int64_t)y : 0, left = inside ? (int64_t)x : 0, bottom = top + 1, right = left + 1;
    if (top >= height - 1)
        y = (double)(top = bottom = height - 1);
    if (left >= width - 1)
        x = (double)(left = right = width - 1);
    double ly = y - (double)top, lx = x - (double)left;
    const double weight[] = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
    const int64_t at[] = {top * width + left, top * width + right, bottom * width + left,
                          bottom * width + right};
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, most = -INFINITY;
        for (int k = 0; k < 4; k++) {
            double v = inside ? weight[k] * cpu_element_get(in, (batch * channels + c) * area + at[k]) : 0;
            sum += v;
            most = fmax(most, v);
        }
        acc[c] = !max ? acc[c] + sum : first ? most : fmax(acc[c], most);
    }
}

static grt_status run_roi(const grt_run *run)
{
    const roi_state *s = run->state;
    const grt_tensor *in = run->in[0], *rois = run->in[1], *batches = run->in[2];
    grt_tensor *out = run->out[0];
    int64_t n = rois->dims[0], channels = in->dims[1], height = out->dims[2], width = out->dims[3],
            bins = height * width;
    GRT_TRY(check_rois(run));
#pragma omp parallel for num_threads(run->threads) schedule(dynamic) if (n * bins > 1)
    for (int64_t item = 0; item < n * bins; item++) {
        int64_t r = item / bins, bin = item % bins;
        double *acc = (double *)run->workspace + channels * cpu_thread();
        roi_box b = box_of(run, r);
        memset(acc, 0, (size_t)channels * sizeof *acc);
        for (int64_t i = 0; i < b.rows; i++)
            for (int64_t k = 0; k < b.cols; k++)
                add_sample(in, cpu_index(batches, r),
                           b.y + ((double)(bin / width) + ((double)i + 0.5) / (double)b.rows) * b.bin_height,
                           b.x + ((double)(bin % width) + ((double)k + 0.5) / (double)b.cols) * b.bin_width,
                           s->max, i + k == 0, acc);
        double count = b.rows * b.cols > 0 ? (double)(b.rows * b.cols) : 1;
        for (int64_t c = 0; c < channels; c++)
            cpu_element_put(out, (r * channels + c) * bins + bin, s->max ? acc[c] : acc[c] / count);
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

static inline bool behind(candidate a, candidate b)
{
    return a.score < b.score || (a.score == b.score && a.box > b.box);
}

static void sift(candidate *heap, int64_t n, int64_t i)
{
    candidate moving = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && behind(heap[child + 1], heap[child]);
        if (!behind(heap[child], moving))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

/* Best score first. */
static void sort_candidates(candidate *v, int64_t n)
{
    for (int64_t top = n / 2 - 1; top >= 0; top--)
        sift(v, n, top);
    for (int64_t left = n - 1; left > 0; left--) {
        candidate worst = v[0];
        v[0] = v[left];
        v[left] = worst;
        sift(v, left, 0);
    }
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

static bool overlaps(const float *first, const float *second, bool center, float threshold)
{
    rectangle a = rectangle_of(first, center), b = rectangle_of(second, center);
    float height = fminf(a.bottom, b.bottom) - fmaxf(a.top, b.top),
          width = fminf(a.right, b.right) - fmaxf(a.left, b.left);
    if (!(height > 0) || !(width > 0))
        return false;
    float common = height * width, area_a = (a.bottom - a.top) * (a.right - a.left),
          area_b = (b.bottom - b.top) * (b.right - b.left);
    float all = area_a + area_b - common;
    return area_a > 0 && area_b > 0 && all > 0 && common / all > threshold;
}

/* Candidates of one class, then the chosen triples of all. */
static grt_status reshape_nms(grt_reshape *reshape)
{
    const grt_tensor *scores = reshape->in[1];
    size_t all = (size_t)grt_tensor_elements(scores), bytes;
    if (!grt_mul_size(all, 3 * sizeof(int64_t), &bytes))
        return grt_fail_memory(SIZE_MAX);
    reshape->workspace_bytes = (size_t)scores->dims[2] * sizeof(candidate) + bytes;
    return GRT_OK;
}

static double scalar_or(const grt_run *run, int32_t i, double fallback)
{
    bool there = i < run->n_in && run->in[i] && grt_tensor_elements(run->in[i]) > 0;
    return there ? cpu_element_get(run->in[i], 0) : fallback;
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
    for (int64_t group = 0; group < batch * classes && most > 0; group++) {
        const float *score = (const float *)scores->data + group * n,
                    *box = (const float *)boxes->data + group / classes * n * 4;
        int64_t n_list = 0, begin = chosen;
        for (int64_t i = 0; i < n; i++)
            if (!filtered || score[i] > least)
                list[n_list++] = (candidate){score[i], i};
        sort_candidates(list, n_list);
        for (int64_t i = 0; i < n_list && (double)(chosen - begin) < most; i++) {
            bool kept = true;
            for (int64_t k = begin; k < chosen && kept; k++)
                kept = !overlaps(box + 4 * list[i].box, box + 4 * triples[k][2], center, overlap);
            if (kept)
                memcpy(triples[chosen++], (int64_t[]){group / classes, group % classes, list[i].box},
                       sizeof *triples);
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

static void read_list(const grt_op_desc *desc, const char *name, int64_t fallback, int64_t *out, size_t room)
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
    read_list(node->desc, "dilations", 1, s->dilations, GRT_MAX_RANK);
    read_list(node->desc, "strides", 1, s->strides, GRT_MAX_RANK);
    read_list(node->desc, "pads", 0, s->pads, 2 * GRT_MAX_RANK);
    return GRT_OK;
}

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
        int64_t room = out->dims[k + 2] + s->pads[k] + s->pads[n + k] - s->dilations[k] * (kernel[k] - 1) - 1;
        steps[k] = room < 0 || s->strides[k] < 1 ? 0 : room / s->strides[k] + 1;
        volume *= kernel[k];
        places *= steps[k];
    }
    if (in->dims[1] != out->dims[1] * volume || in->dims[2] != places)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input is %lldx%lld where image and block ask for %lldx%lld",
                           (long long)in->dims[1], (long long)in->dims[2], (long long)(out->dims[1] * volume),
                           (long long)places);
    memset(out->data, 0, grt_tensor_bytes(out));
    int64_t planes = in->dims[0] * out->dims[1];
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
                cpu_element_put(out, at,
                                cpu_element_get(out, at) + cpu_element_get(in, plane * volume * places + i));
        }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "RoiAlign",
     .domain = "",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_BIT(INT64)},
     .create = create_roi,
     .destroy = free,
     .reshape = reshape_roi,
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

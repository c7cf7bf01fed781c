/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: of each class the boxes with the best scores that do not overlap a better one. */
#include "backends/cpu/move.h"

#include "backends/cpu/dispatch.h"
#include "src/base/checked.h"
#include "src/base/element.h"
#include "src/base/heap.h"

#include <string.h>

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

/* Candidates of one class as a heap; returns their number. least NULL: all boxes. */
static int64_t nms_candidates(candidate *list, const float *score, int64_t n, const float *least)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) { /* without a branch, which would be mispredicted */
        list[count] = (candidate){score[i], i};
        count += !least || score[i] > *least;
    }
    heap_candidates(list, count);
    return count;
}

static grt_status run_nms(const grt_run *run)
{
    const grt_tensor *boxes = run->in[0], *scores = run->in[1];
    const bool center = *(const bool *)run->state, filtered = run->n_in > 4 && run->in[4];
    const int64_t batch = scores->dims[0], classes = scores->dims[1], n = scores->dims[2];
    const double most = scalar_or(run, 2, 0);
    const float overlap = (float)scalar_or(run, 3, 0), least = (float)scalar_or(run, 4, -INFINITY);
    if (boxes->dims[0] != batch || boxes->dims[1] != n || boxes->dims[2] != 4)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "boxes must be %lldx%lldx4 as scores has that many", (long long)batch,
                           (long long)n);
    candidate *list = run->workspace;
    int64_t(*triples)[3] = (int64_t(*)[3])(list + n);
    float *fields = (float *)(void *)(triples + batch * classes * n);
    const chosen_boxes kept = {fields, fields + n, fields + 2 * n, fields + 3 * n, fields + 4 * n};
    const int64_t groups = n > 0 && most > 0 ? batch * classes : 0;
    int64_t chosen = 0;
    for (int64_t group = 0; group < groups; group++) {
        const float *box = (const float *)boxes->data + group / classes * n * 4;
        const int64_t begin = chosen;
        int64_t left =
            nms_candidates(list, (const float *)scores->data + group * n, n, filtered ? &least : NULL);
        while (left > 0 && (double)(chosen - begin) < most) {
            const int64_t i = take_best(list, &left).box;
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

static const grt_kernel_row rows[] = {
    {.op = "NonMaxSuppression",
     .domain = "",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(INT64), GRT_BIT(FLOAT)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = create_nms,
     .destroy = free,
     .reshape = reshape_nms,
     .run = run_nms},
};
CPU_KERNELS(non_max_suppression, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: candidates of every class are sorted by score, then a block per class keeps those that
 * overlap none of the kept ones. */
#include "backends/cuda/order.cuh"
#include "backends/shared/order.h"

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

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "NonMaxSuppression",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(INT64), GRT_BIT(FLOAT)},
     .flags = GRT_KERNEL_DYNAMIC,
     .create = cuda_create_nms,
     .destroy = free,
     .reshape = cuda_reshape_nms,
     .run = cuda_run_nms},
};

} // namespace
CUDA_KERNELS(non_max_suppression, rows);

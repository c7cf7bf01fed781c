/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: candidates of every class are sorted by score, then a block per class keeps those that
 * overlap none of the kept ones, a tile of candidates at a time. */
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

struct alignas(16) rectangle {
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

enum { TILE = 64 }; /* candidates that are judged at a time: bits of a word */

/* A tile of candidates, in order of score. */
struct judged {
    rectangle box[TILE];
    uint64_t over[TILE]; /* those behind it in the tile that overlap it */
    int hit[TILE];       /* overlaps one that was kept before */
    int64_t chosen;
};

/* How many candidates a tile has: up to the first that was filtered out. */
__device__ __forceinline__ int tile_size(const chosen &c, const cuda_keyed *sorted, int64_t first)
{
    __shared__ int n;
    __syncthreads(); /* the number before may still be read */
    if (threadIdx.x == 0)
        n = 0;
    __syncthreads();
    if (threadIdx.x < TILE && first + threadIdx.x < c.n && sorted[first + threadIdx.x].key != FILTERED)
        atomicAdd(&n, 1); /* what is filtered out comes last */
    __syncthreads();
    return n;
}

/* Compare a tile with all that were kept, of which `kept` has the rectangles, and with itself. */
__device__ __forceinline__ void judge(judged &t, int n, const rectangle *kept, int64_t count, float threshold,
                                      int thread, int threads)
{
    const int mine = thread % TILE, lane = thread / TILE, lanes = threads / TILE;
    if (mine < n) {
        const rectangle box = t.box[mine];
        bool hit = false;
#pragma unroll 4
        for (int64_t k = lane; k < count; k += lanes)
            hit |= overlaps(box, kept[k], threshold);
        if (hit)
            t.hit[mine] = 1;
        uint64_t over = 0;
        for (int k = lane; k < n; k += lanes)
            over |= (uint64_t)(k > mine && overlaps(t.box[k], box, threshold)) << k;
        if (over)
            atomicOr((unsigned long long *)&t.over[mine], (unsigned long long)over);
    }
    __syncthreads();
}

/* By one thread: which of a tile are kept, as bits; at most `most`. */
__device__ __forceinline__ uint64_t chosen_of_tile(const judged &t, int n, int64_t most)
{
    uint64_t dropped = 0, chosen = 0;
    for (int k = 0; k < n && most > 0; k++) {
        if (t.hit[k] || dropped >> k & 1)
            continue;
        chosen |= UINT64_C(1) << k;
        dropped |= t.over[k];
        most--;
    }
    return chosen;
}

/* `kept_boxes`: room for the rectangles of what is kept, n of each group. */
__device__ void choose(const chosen &c, const cuda_keyed *sorted, rectangle *kept_boxes, int64_t group,
                       int thread, int threads)
{
    __shared__ judged t;
    const float *boxes = c.boxes + group / c.classes * c.n * 4;
    const float threshold = c.threshold ? *c.threshold : 0;
    const int64_t most = c.most ? *c.most : 0;
    int64_t *kept = c.kept + group * c.n, count = 0;
    rectangle *kept_box = kept_boxes + group * c.n;
    sorted += group * c.n;
    for (int64_t first = 0; first < c.n && count < most; first += TILE) {
        const int n = tile_size(c, sorted, first);
        if (n == 0)
            break;
        if (thread < TILE) {
            t.hit[thread] = 0;
            t.over[thread] = 0;
            if (thread < n)
                t.box[thread] = rectangle_of(boxes + 4 * sorted[first + thread].at, c.center);
        }
        __syncthreads();
        judge(t, n, kept_box, count, threshold, thread, threads);
        if (thread == 0)
            t.chosen = (int64_t)chosen_of_tile(t, n, most - count);
        __syncthreads();
        const uint64_t those = (uint64_t)t.chosen;
        if (thread < n && those >> thread & 1) {
            const int64_t to = count + __popcll(those & ((UINT64_C(1) << thread) - 1));
            kept[to] = sorted[first + thread].at;
            kept_box[to] = t.box[thread];
        }
        count += __popcll(those);
        __syncthreads();
    }
    if (thread == 0)
        c.counts[group] = count;
}

/* ---- masks: what every candidate overlaps of those behind it, by all multiprocessors ----
 * A word for each candidate and tile: [group, candidate, tile]. Then a block per class goes through them. */

enum { MASKED_LEAST = 256, MASKED_MOST = 32768, MASK_TILES = CUDA_BLOCK / TILE };
#define MASK_BYTES ((int64_t)64 << 20)

struct masked {
    int64_t n, tiles;
    uint64_t *words;
};

/* Room for them; 0: tiles of candidates are compared with what was kept instead. */
int64_t mask_bytes(int64_t groups, int64_t n)
{
    const int64_t tiles = (n + TILE - 1) / TILE;
    if (n < MASKED_LEAST || n > MASKED_MOST || groups > MASK_BYTES / 8 / (n * tiles))
        return 0;
    return groups * n * tiles * (int64_t)sizeof(uint64_t);
}

/* Of a tile of candidates, MASK_TILES tiles behind it. The rectangles are in order of score. */
__device__ void mask_tiles(const masked &m, const cuda_keyed *sorted, const rectangle *boxes, float threshold,
                           int64_t group, int64_t row_tile, int64_t columns, int thread)
{
    const int64_t row = row_tile * TILE + thread % TILE, tile = columns * MASK_TILES + thread / TILE,
                  first = tile * TILE;
    sorted += group * m.n;
    boxes += group * m.n;
    if (tile >= m.tiles || tile < row_tile || row >= m.n || sorted[row].key == FILTERED)
        return;
    const rectangle mine = boxes[row];
    const int n = m.n - first < TILE ? (int)(m.n - first) : TILE;
    uint64_t over = 0;
    for (int k = 0; k < n; k++)
        over |= (uint64_t)(first + k > row && overlaps(boxes[first + k], mine, threshold)) << k;
    m.words[(group * m.n + row) * m.tiles + tile] = over;
}

__device__ void choose_masked(const chosen &c, const masked &m, const cuda_keyed *sorted, int64_t group,
                              int thread, int threads)
{
    __shared__ uint64_t removed[MASKED_MOST / TILE], own[TILE], those;
    const int64_t most = c.most ? *c.most : 0;
    const uint64_t *words = m.words + group * m.n * m.tiles;
    int64_t *kept = c.kept + group * c.n, count = 0;
    sorted += group * c.n;
    for (int64_t t = thread; t < m.tiles; t += threads)
        removed[t] = 0;
    for (int64_t t = 0; t < m.tiles && count < most; t++) {
        const int64_t first = t * TILE;
        const int n = tile_size(c, sorted, first); /* all threads meet */
        if (n == 0)
            break;
        if (thread < n)
            own[thread] = words[(first + thread) * m.tiles + t];
        __syncthreads();
        if (thread == 0) {
            uint64_t dropped = removed[t], found = 0;
            int64_t left = most - count;
            for (int k = 0; k < n && left > 0; k++) {
                if (dropped >> k & 1)
                    continue;
                found |= UINT64_C(1) << k;
                dropped |= own[k];
                left--;
            }
            those = found;
        }
        __syncthreads();
        const uint64_t found = those;
        if (thread < n && found >> thread & 1)
            kept[count + __popcll(found & ((UINT64_C(1) << thread) - 1))] = sorted[first + thread].at;
        for (int64_t w = t + 1 + thread; w < m.tiles; w += threads) {
            uint64_t over = removed[w];
#pragma unroll 8
            for (int k = 0; k < n; k++)
                if (found >> k & 1)
                    over |= words[(first + k) * m.tiles + w];
            removed[w] = over;
        }
        count += __popcll(found);
        __syncthreads();
    }
    if (thread == 0)
        c.counts[group] = count;
}

grt_status run_masked(const grt_run *r, const chosen &c, const cuda_keyed *sorted, rectangle *boxes,
                      uint64_t *words, int64_t groups)
{
    const masked m = {c.n, (c.n + TILE - 1) / TILE, words};
    const int64_t columns = (m.tiles + MASK_TILES - 1) / MASK_TILES;
    GRT_TRY(cuda_each(r, groups * c.n, [=] __device__(int64_t i) {
        const int64_t batch = i / c.n / c.classes;
        boxes[i] = rectangle_of(c.boxes + (batch * c.n + sorted[i].at) * 4, c.center);
    }));
    GRT_TRY(cuda_each_block(r, groups * m.tiles * columns, [=] __device__(int64_t i, int thread, int) {
        const int64_t row = i / columns, group = row / m.tiles;
        mask_tiles(m, sorted, boxes, c.threshold ? *c.threshold : 0, group, row - group * m.tiles,
                   i - row * columns, thread);
    }));
    return cuda_each_block(r, groups, [=] __device__(int64_t group, int thread, int threads) {
        choose_masked(c, m, sorted, group, thread, threads);
    });
}

/* Keys twice, rectangles, then counts of the groups and where their results begin; masks. */
grt_status cuda_reshape_nms(grt_reshape *r)
{
    const grt_tensor *boxes = r->in[0], *scores = r->in[1];
    const int64_t total = grt_tensor_elements(scores), groups = scores->dims[0] * scores->dims[1];
    if (boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2] || boxes->dims[2] != 4)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "boxes must be %lldx%lldx4 as scores has that many", (long long)scores->dims[0],
                           (long long)scores->dims[2]);
    r->workspace_bytes = (size_t)total * (2 * sizeof(cuda_keyed) + sizeof(rectangle)) +
                         (size_t)(2 * groups + 1) * sizeof(int64_t) +
                         (size_t)mask_bytes(groups, scores->dims[2]);
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
    rectangle *kept_boxes = (rectangle *)(spare + total);
    int64_t *counts = (int64_t *)(kept_boxes + total), *begins = counts + groups, found = 0;
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
    if (mask_bytes(groups, n))
        GRT_TRY(run_masked(r, c, sorted, kept_boxes, (uint64_t *)begins + groups + 1, groups));
    else
        GRT_TRY(cuda_each_block(r, groups, [=] __device__(int64_t group, int thread, int threads) {
            choose(c, sorted, kept_boxes, group, thread, threads);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: a heap of the best k of each row, its worst on top; then the heap is sorted. Equal elements keep
 * their order. */
#include "backends/cpu/move.h"

#include "backends/cpu/dispatch.h"
#include "backends/shared/order.h"
#include "backends/cpu/threads.h"
#include "src/base/heap.h"

#include <string.h>

typedef struct top_state {
    int64_t axis;
    bool least;
} top_state;

static grt_status create_top_k(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(top_state), out_state));
    top_state *state = *out_state;
    state->axis = grt_attr_int(node->desc, "axis", -1);
    state->least = grt_attr_int(node->desc, "largest", 1) == 0;
    return GRT_OK;
}

typedef struct entry {
    uint64_t key; /* greater is better */
    int64_t at;
} entry;

static inline bool worse(entry a, entry b)
{
    return a.key < b.key || (a.key == b.key && a.at > b.at);
}

GRT_DEFINE_SIFT(sift_down, entry, worse)

/* float32 in order as cpu_order_float has it, in 32 bits. */
static inline uint32_t order_of(float v, uint32_t flip)
{
    const uint32_t bits = grt_float_to_bits(v == 0 ? 0 : v), key = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (v != v ? UINT32_MAX : key) ^ flip;
}

enum { BLOCK = 64 };

/* Keys of a block, and whether one is greater than `most`. */
CPU_BODY block_keys_body(const float *v, int64_t n, uint32_t flip, uint32_t most, uint32_t *keys,
                         uint32_t *out_greater)
{
    uint32_t greater = 0;
#pragma omp simd reduction(| : greater)
    for (int64_t i = 0; i < n; i++) {
        keys[i] = order_of(v[i], flip);
        greater |= keys[i] > most;
    }
    *out_greater = greater;
}
CPU_DISPATCH(block_keys,
             (const float *v, int64_t n, uint32_t flip, uint32_t most, uint32_t *keys, uint32_t *out_greater),
             (v, n, flip, most, keys, out_greater))

/* Elements from `from` on of a run of floats; most blocks of a long run have none that is among the best. */
static void take_floats(entry *heap, int64_t k, const float *v, int64_t from, int64_t n, uint32_t flip)
{
    uint32_t keys[BLOCK], greater;
    for (int64_t at = from; at < n; at += BLOCK) {
        const int64_t size = n - at < BLOCK ? n - at : BLOCK;
        block_keys(v + at, size, flip, (uint32_t)heap[0].key, keys, &greater);
        for (int64_t i = 0; greater && i < size; i++)
            if (keys[i] > heap[0].key) { /* equal ones come later */
                heap[0] = (entry){keys[i], at + i};
                sift_down(heap, k, 0);
            }
    }
}

static void take_elements(entry *heap, int64_t k, const grt_tensor *in, int64_t base, int64_t from, int64_t n,
                          int64_t step, uint64_t flip)
{
    for (int64_t i = from; i < n; i++) {
        const entry e = {cpu_order_key(in->dtype, in->data, base + i * step) ^ flip, i};
        if (worse(heap[0], e)) {
            heap[0] = e;
            sift_down(heap, k, 0);
        }
    }
}

/* The best k of n elements that lie `step` apart, best first. */
static void best_k(entry *heap, int64_t k, const grt_tensor *in, int64_t base, int64_t n, int64_t step,
                   bool least)
{
    const bool floats = in->dtype == GRT_DTYPE_FLOAT && step == 1;
    const float *v = floats ? (const float *)in->data + base : NULL;
    const uint32_t flip = least ? UINT32_MAX : 0;
    const uint64_t wide_flip = least ? UINT64_MAX : 0;
    for (int64_t i = 0; i < k; i++)
        heap[i] = (entry){floats ? order_of(v[i], flip)
                                 : cpu_order_key(in->dtype, in->data, base + i * step) ^ wide_flip,
                          i};
    for (int64_t top = k / 2 - 1; top >= 0; top--)
        sift_down(heap, k, top);
    if (floats)
        take_floats(heap, k, v, k, n, flip);
    else
        take_elements(heap, k, in, base, k, n, step, wide_flip);
    for (int64_t left = k - 1; left > 0; left--) {
        entry worst = heap[0];
        heap[0] = heap[left];
        heap[left] = worst;
        sift_down(heap, left, 0);
    }
}

static grt_status reshape_top_k(grt_reshape *reshape)
{
    const top_state *s = reshape->state;
    const grt_tensor *out = reshape->out[0] ? reshape->out[0] : reshape->out[1];
    if (out && out->rank)
        reshape->workspace_bytes =
            (size_t)out->dims[grt_axis(s->axis, out->rank)] * sizeof(entry) * (size_t)reshape->threads;
    return GRT_OK;
}

static grt_status run_top_k(const grt_run *run)
{
    const top_state *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *values = run->out[0], *places = run->n_out > 1 ? run->out[1] : NULL;
    const grt_tensor *out = values ? values : places;
    if (!out || in->rank == 0)
        return GRT_OK;
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    int64_t n = in->dims[axis], k = out->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    size_t size = grt_dtype_size(in->dtype);
    if (places && !grt_dims_equal(places->dims, places->rank, out->dims, out->rank))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "outputs of different shapes, %lld and %lld elements on axis %d; both have K",
                           (long long)k, (long long)places->dims[axis], axis);
    if (k > n)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "K is %lld; axis %d has size %lld",
                           (long long)k, axis, (long long)n);
    if (k == 0)
        return GRT_OK;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t row = 0; row < outer * inner; row++) {
        entry *heap = (entry *)run->workspace + k * cpu_thread();
        int64_t base = row / inner * n * inner + row % inner, to = row / inner * k * inner + row % inner;
        best_k(heap, k, in, base, n, inner, s->least);
        for (int64_t i = 0; i < k; i++) {
            if (values)
                memcpy(cpu_at(values->data, to + i * inner, size),
                       cpu_at_const(in->data, base + heap[i].at * inner, size), size);
            if (places)
                ((int64_t *)places->data)[to + i * inner] = heap[i].at;
        }
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "TopK",
     .domain = "",
     .types = {GRT_SET_NUMBERS, GRT_BIT(INT64)},
     .create = create_top_k,
     .destroy = free,
     .reshape = reshape_top_k,
     .run = run_top_k},
};
CPU_KERNELS(top_k, rows);

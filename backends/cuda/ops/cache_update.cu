/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::CacheUpdate: each entry of the result is read where it comes from, in one step. */
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/overlap.cuh"
#include "backends/shared/cache_update.h"

namespace
{

/* In numbers of vectors. */
struct cache_task {
    int64_t lines, heads, past, length, fresh, entry; /* lines: heads of all batches */
    bool circular, in_place;
};

grt_status cuda_reshape_cache_update(grt_reshape *r)
{
    grt_cache_update *s;
    GRT_TRY(cuda_state(&s));
    *s = grt_cache_update_of(r->desc, r->in[0], r->in[1], r->out[0]);
    r->shape = s;
    return GRT_OK;
}

__device__ __forceinline__ int64_t cache_start(const cache_task &s, const cuda_indexed &starts, int64_t batch)
{
    const int64_t last = s.circular ? INT64_MAX : s.length - s.fresh;
    int64_t start = starts.data ? starts[batch] : 0;
    if (!cuda_check(starts.watch, start, batch, 0, last))
        start = start < 0 ? 0 : last;
    return s.circular ? start % s.length : start;
}

/* What was there comes to the L2 cache before the kernel in front has ended, which is right whoever writes
 * it.
 */
template <class V> __device__ __forceinline__ void cache_expect(const cache_task &s, const V *past)
{
    enum { LINE = 128 / sizeof(V) };
    const int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * LINE;
    if (!s.in_place && i < s.lines * s.past * s.entry)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(past + i));
}

/* In place, only what is new is moved. */
template <class V>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cache_kernel(const __grid_constant__ cache_task s, cuda_indexed starts, V *to, const V *past,
                 const V *fresh)
{
    const int64_t moved = s.in_place ? s.fresh : s.length;
    overlap_let_next_begin();
    cache_expect(s, past);
    overlap_wait();
    CUDA_ITEMS (i, s.lines * moved * s.entry) {
        const cuda_divided column = cuda_divide(i, s.entry), row = cuda_divide(column.q, moved);
        const int64_t start = cache_start(s, starts, cuda_divide(row.q, s.heads).q);
        int64_t at = s.in_place ? row.r + start : row.r;
        at -= at >= s.length ? s.length : 0;
        int64_t from = at - start;
        from += from < 0 && s.circular ? s.length : 0;
        V v = {};
        if (from >= 0 && from < s.fresh)
            v = fresh[(row.q * s.fresh + from) * s.entry + column.r];
        else if (at < s.past)
            v = past[(row.q * s.past + at) * s.entry + column.r];
        to[(row.q * s.length + at) * s.entry + column.r] = v;
    }
}

template <class V> grt_status cuda_cache_update_launch(const grt_run *r, const grt_cache_update *s)
{
    const bool in_place = r->out[0]->data == r->in[0]->data;
    const cache_task task = {s->batch * s->heads, s->heads, s->past,
                             s->length,           s->fresh, (int64_t)(s->entry_bytes / sizeof(V)),
                             s->circular,         in_place};
    const int64_t total = task.lines * (in_place ? task.fresh : task.length) * task.entry;
    cuda_indexed starts;
    if (total <= 0)
        return GRT_OK;
    GRT_TRY(cuda_indexed_begin(r, 3, "write_indices", &starts));
    CUDA_TRY(overlap_launch(((const cuda_device *)r->device)->prop.major >= 9, cache_kernel<V>,
                            cuda_grid(total), CUDA_BLOCK, 0, cuda_stream(r), task, starts,
                            (V *)r->out[0]->data, (const V *)r->in[0]->data, (const V *)r->in[1]->data));
    return GRT_OK;
}

/* By the largest vectors that entries and addresses consist of. */
grt_status cuda_run_cache_update(const grt_run *r)
{
    const grt_cache_update *s = (const grt_cache_update *)r->shape;
    const uintptr_t all =
        (uintptr_t)r->in[0]->data | (uintptr_t)r->in[1]->data | (uintptr_t)r->out[0]->data | s->entry_bytes;
    return all % 16 == 0  ? cuda_cache_update_launch<uint4>(r, s)
           : all % 8 == 0 ? cuda_cache_update_launch<uint2>(r, s)
           : all % 4 == 0 ? cuda_cache_update_launch<uint32_t>(r, s)
           : all % 2 == 0 ? cuda_cache_update_launch<uint16_t>(r, s)
                          : cuda_cache_update_launch<uint8_t>(r, s);
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "CacheUpdate",
     .types = {CUDA_MOVABLE, CUDA_MOVABLE, GRT_BIT(INT64), CUDA_INDEX},
     .flags = GRT_KERNEL_IN_PLACE(0) | GRT_KERNEL_READS(2),
     .reshape = cuda_reshape_cache_update,
     .release_shape = free,
     .run = cuda_run_cache_update},
};

} // namespace
CUDA_KERNELS(cache_update, rows);

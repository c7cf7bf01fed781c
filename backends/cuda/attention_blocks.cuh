/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of the attention kernels by wgmma, whose blocks stay for several of them. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_BLOCKS_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_BLOCKS_CUH

#include "backends/cuda/attention_tile.cuh"

/* Rows first .. of a head; keys from .. to, `from` at a tile's begin. */
struct attention_block_task {
    int batch, head, kv_head, first, from, to;
};

/* No folded heads and no splits. Causal: late rows have most keys, so those of all heads are scheduled first.
 */
static __device__ __forceinline__ attention_block_task attention_block_task_at(const attention_shape &s,
                                                                               const int64_t *nonpad,
                                                                               uint32_t at, int block_rows,
                                                                               int tile)
{
    const uint32_t heads = (uint32_t)s.q_heads, lines = (uint32_t)s.batch * heads,
                   blocks = ((uint32_t)s.q_len + block_rows - 1) / block_rows;
    const uint32_t turn = at / lines, line = at - turn * lines, batch = line / heads,
                   head = line - batch * heads;
    const int first = (int)(blocks - 1 - turn) * block_rows, last = min(first + block_rows, (int)s.q_len) - 1;
    /* Both limits are monotonic in the query. */
    return {(int)batch,
            (int)head,
            (int)(head / (uint32_t)s.group),
            first,
            attention_limits(s, nonpad, batch, first).x / tile * tile,
            attention_limits(s, nonpad, batch, last).y};
}

/* Keys that any of `count` rows from `first` on may look at; none of rows beyond the last. */
static __device__ __forceinline__ int2 attention_group_limits(const attention_shape &s, const int64_t *nonpad,
                                                              int64_t batch, int first, int count)
{
    const int rows = (int)s.q_len;
    if (first >= rows)
        return make_int2(0, 0);
    return make_int2(attention_limits(s, nonpad, batch, first).x,
                     attention_limits(s, nonpad, batch, min(first + count, rows) - 1).y);
}

#endif

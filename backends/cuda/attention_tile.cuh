/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tiled attention kernels: tasks, and copies of keys and values to shared memory.
 */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_TILE_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_TILE_CUH

#include "backends/cuda/attention.cuh"
#include "backends/cuda/tensor_core.cuh"

#include <float.h>

#define LOG2E 1.4426950408889634f

/* Rows first .. of a head, or of folded heads one after the other; keys from .. to, `from` at a tile's begin.
 */
struct attention_task {
    int64_t batch, head, kv_head, first, rows, from, to;
    int split;
};

static inline int64_t attention_tasks(const attention_shape *s, int block_rows)
{
    return s->batch * s->heads * ((s->fold * s->q_len + block_rows - 1) / block_rows) * s->splits;
}

/* Keys that a query may look at, [x, y). */
static __device__ __forceinline__ int2 attention_limits(const attention_shape &s, const int64_t *nonpad,
                                                        int64_t batch, int64_t query)
{
    if (!s.limited && !nonpad)
        return make_int2(0, (int)s.total);
    int64_t lo, hi;
    grt_attention_range(&s, nonpad, batch, query, &lo, &hi);
    return make_int2((int)lo, (int)hi);
}

/* All counts fit 31 bits (attention_choose), where division costs a fraction of what it does in 64. */
static __device__ __forceinline__ attention_task attention_task_at(const attention_shape &s,
                                                                   const int64_t *nonpad, uint32_t at,
                                                                   uint32_t block_rows, int tile)
{
    attention_task t;
    const uint32_t fold = (uint32_t)s.fold, rows = fold * (uint32_t)s.q_len,
                   blocks = (rows + block_rows - 1) / block_rows;
    const uint32_t heads = (uint32_t)s.heads;
    t.rows = rows;
    t.split = 0;
    if (s.splits > 1) {
        t.split = (int)(at % (uint32_t)s.splits);
        at /= (uint32_t)s.splits;
    }
    const uint32_t above = at / blocks, block = at - above * blocks, batch = above / heads,
                   head = (above - batch * heads) * fold;
    t.batch = batch;
    t.head = head;
    t.kv_head = head / (uint32_t)s.group;
    /* Causal: late rows have most keys, so they are scheduled first. */
    t.first = (blocks - 1 - block) * block_rows;
    const int64_t last = t.first + block_rows < t.rows ? t.first + block_rows - 1 : t.rows - 1;
    /* Both limits are monotonic in the query. */
    t.from = attention_limits(s, nonpad, t.batch, s.fold > 1 ? 0 : t.first).x / tile * tile;
    t.to = attention_limits(s, nonpad, t.batch, s.fold > 1 ? s.q_len - 1 : last).y;
    if (s.splits > 1) {
        const int64_t tiles = (t.to - t.from + tile - 1) / tile,
                      share = (tiles + s.splits - 1) / s.splits * tile;
        t.from += t.split * share;
        t.to = t.from + share < t.to ? t.from + share : t.to;
    }
    return t;
}

/* The head and the query of a task's row. */
struct attention_row {
    int64_t head, query;
};

static __device__ __forceinline__ attention_row attention_row_at(const attention_shape &s,
                                                                 const attention_task &t, int64_t row)
{
    if (s.fold == 1)
        return {t.head, row};
    return {t.head + row / s.q_len, row % s.q_len};
}

static __device__ __forceinline__ int64_t attention_at(const attention_view &view, int64_t batch,
                                                       const attention_row &row)
{
    return batch * view.batch + row.head * view.head + row.query * view.row;
}

static __device__ __forceinline__ int64_t attention_mask_at(const attention_shape &s, int64_t batch,
                                                            const attention_row &row)
{
    return batch * s.mask_strides[0] + row.head * s.mask_strides[1] + row.query * s.mask_strides[2];
}

/* So that log2(e) times a finite number is not -inf: keys of a row that is hidden altogether by such numbers
 * have equal weights, and those of -inf have none. NaN stays. */
static __device__ __forceinline__ float attention_bounded(float x)
{
    return x > -CUDART_INF_F ? fmaxf(x, -FLT_MAX / 2) : x;
}

/* A score, times log2(e), of key j after softcap, limits and mask; with none of the first and last, a kernel
 * scales by itself. */
static __device__ __forceinline__ float attention_score(const attention_shape &s, const void *mask,
                                                        int64_t mask_at, float x, int64_t j, int64_t lo,
                                                        int64_t hi)
{
    if (j < lo || j >= hi)
        return -CUDART_INF_F;
    x *= (float)s.scale;
    if (s.softcap > 0)
        x = (float)s.softcap * tanhf(x / (float)s.softcap);
    return attention_bounded(masked<float>(s, mask, mask_at + j * s.mask_strides[3], x)) * LOG2E;
}

/* Writes a row of a split: the result before division, the largest score and the sum. */
static __device__ __forceinline__ float *attention_partial_at(const attention_shape &s, float *partial,
                                                              int64_t batch, const attention_row &row,
                                                              int split)
{
    return partial +
           (((batch * s.q_heads + row.head) * s.q_len + row.query) * s.splits + split) * (s.v_size + 2);
}

/* Rows in shared memory are padded by 16 bytes: then the 8 rows that are read at once are in different banks.
 */
template <class T> constexpr int row_pad = 16 / (int)sizeof(T);

/* Where a chunk of 16 bytes of a row goes: `Place` of the fetches. */
template <class T, int SIZE> struct padded_rows {
    T *shared;
    __device__ __forceinline__ void *operator()(int row, int chunk) const
    {
        return at(row, chunk * (16 / (int)sizeof(T)));
    }
    __device__ __forceinline__ void *at(int row, int column) const
    {
        return shared + row * (SIZE + row_pad<T>)+column;
    }
};

/* What fetch_tile does, in pieces of fewer bytes. */
template <int PIECE, class T, int SIZE, int TILE, int THREADS, class Place>
__device__ __forceinline__ void fetch_pieces(const attention_shape &s, const void *now, const void *past,
                                             const attention_view &view, int size, const attention_task &t,
                                             int64_t tile, Place place)
{
    enum { EACH = PIECE / sizeof(T), CHUNKS = SIZE / EACH };
    const int left = t.to - tile < TILE ? (int)(t.to - tile) : TILE;
#pragma unroll 2
    for (int at = threadIdx.x; at < TILE * CHUNKS; at += THREADS) {
        const int row = at / CHUNKS, column = at % CHUNKS * EACH;
        const bool there = row < left && column < size;
        const T *from = key_row<T>(s, now, past, view, size, t.batch, t.kv_head, tile + (there ? row : 0)) +
                        (there ? column : 0);
        fetch_piece<PIECE>(place.at(row, column), from, there);
    }
}

/* Keys tile .. tile + TILE of a head, those from `to` on and columns from `columns` on as zeros. WHOLE: there
 * are SIZE columns, which the compiler then knows. */
template <class T, int SIZE, bool WHOLE, int TILE, int THREADS, class Place>
__device__ __forceinline__ void fetch_tile(const attention_shape &s, const void *now, const void *past,
                                           const attention_view &view, int columns, const attention_task &t,
                                           int64_t tile, Place place)
{
    enum { EACH = 16 / sizeof(T), CHUNKS = SIZE / EACH };
    const int size = WHOLE ? SIZE : columns;
    if constexpr (!WHOLE && sizeof(T) == 2)
        if (s.piece == 4)
            return fetch_pieces<4, T, SIZE, TILE, THREADS>(s, now, past, view, size, t, tile, place);
    if constexpr (!WHOLE)
        if (s.piece == 8)
            return fetch_pieces<8, T, SIZE, TILE, THREADS>(s, now, past, view, size, t, tile, place);
    const int left = t.to - tile < TILE ? (int)(t.to - tile) : TILE;
    const T *first = key_row<T>(s, now, past, view, size, t.batch, t.kv_head, tile);
    const bool crosses = tile < s.past && tile + TILE > s.past; /* out of the past */
    const int64_t step = tile < s.past ? size : view.row;
    /* Little unrolling: with one tile per block, fetching code takes as long as running it. */
#pragma unroll 2
    for (int at = threadIdx.x; at < TILE * CHUNKS; at += THREADS) {
        const int row = at / CHUNKS, chunk = at % CHUNKS;
        const bool there = row < left && (WHOLE || chunk * EACH < size);
        const T *from = first + (there ? row : 0) * step;
        if (crosses && there)
            from = key_row<T>(s, now, past, view, size, t.batch, t.kv_head, tile + row);
        fetch(place(row, chunk), from + (WHOLE || there ? chunk : 0) * EACH, there);
    }
}

template <class T, int SIZE, bool WHOLE, int TILE, int THREADS, class Place>
__device__ __forceinline__ void fetch_keys(const attention_shape &s, const attention_data &d,
                                           const attention_task &t, int64_t tile, Place place)
{
    fetch_tile<T, SIZE, WHOLE, TILE, THREADS>(s, d.k, d.past_key, s.k, (int)s.size, t, tile, place);
}

template <class T, int SIZE, bool WHOLE, int TILE, int THREADS, class Place>
__device__ __forceinline__ void fetch_values(const attention_shape &s, const attention_data &d,
                                             const attention_task &t, int64_t tile, Place place)
{
    fetch_tile<T, SIZE, WHOLE, TILE, THREADS>(s, d.v, d.past_value, s.v, (int)s.v_size, t, tile, place);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for few query rows are made for and asked: forms, tasks, and the keys that a query, a
 * batch element and a block have (attention_keys.cu). */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_KEYS_TASK_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_KEYS_TASK_CUH

#include "backends/cuda/attention_rows.cuh"

namespace
{

/* KEYS: that an instruction takes. */
enum { KEYS = 16, MOST_ROWS = 16, MOST_WARPS = 8, MOST_PARTS = 8 };

/* EIGHTS: of query rows. GROUPS of 16 keys are a warp's at a time, as many as there are registers for. Heads
 * that leave columns free are rare: they have no kernels of their own for scores that are only scaled. */
template <class ELEMENT, int COLUMNS, bool ALL_COLUMNS, int EIGHTS_OF_ROWS, bool OF_ALL_KINDS>
struct keys_form {
    using T = ELEMENT;
    enum {
        SIZE = COLUMNS,
        WHOLE = ALL_COLUMNS,
        EIGHTS = EIGHTS_OF_ROWS,
        GENERAL = OF_ALL_KINDS || !WHOLE,
        GROUPS = SIZE * EIGHTS <= 192 ? 2 : 1,
        CHUNKS = SIZE / 32, /* of 16 bytes, by the four lanes that share a key */
        WIDE = SIZE / 64,   /* of values: the eight lanes that share four keys read 16 bytes each, or 8 */
        NARROW = SIZE % 64 / 32,
        TILES = SIZE / 16,
        ROW = SIZE + 2, /* of a part: sums, the largest score, the sum of the weights */
    };
};

template <class F> constexpr int keys_bytes(int warps, int parts, int rows)
{
    return (warps + parts) * rows * F::ROW * (int)sizeof(float);
}

/* What the kernels ask for at once, in a form that takes them little time. Query i may look at keys from
 * max(0, low + i) to min(end, high + i), before lengths. */
struct keys_task {
    const void *q, *k, *v, *past_key, *past_value;
    const int64_t *nonpad;
    void *y;
    int64_t q_batch, k_batch, v_batch, y_batch;
    int q_head, q_row, k_head, k_row, v_head, v_row, y_head, y_row;
    int q_len, fold, rows, row_blocks, kv_heads, past, total, low, high, end, size, v_size;
    float factor; /* of scores that are only scaled */
    bool clustered;
};

__device__ __forceinline__ attention_row keys_row(const keys_task &task, int row)
{
    const unsigned q_len = (unsigned)task.q_len, head = (unsigned)row / q_len;
    return {(int64_t)blockIdx.y * task.fold + head, (int64_t)((unsigned)row - head * q_len)};
}

/* What a block has of a key head's query rows: [first, first + rows). Up to 8 rows are one block's. */
struct keys_rows {
    int batch, first, rows;
};

template <class F> __device__ __forceinline__ keys_rows keys_rows_of(const keys_task &task)
{
    if (F::EIGHTS == 1)
        return {(int)blockIdx.z, 0, task.rows};
    const unsigned batch = blockIdx.z / (unsigned)task.row_blocks;
    const int first = (int)(blockIdx.z - batch * (unsigned)task.row_blocks) * MOST_ROWS;
    return {(int)batch, first, min((int)MOST_ROWS, task.rows - first)};
}

/* A batch element's lengths move all limits. */
struct keys_range {
    int low, high, end;

    __device__ __forceinline__ int2 of(int query) const
    {
        const int to = max(min(end, high + query), 0);
        return make_int2(min(max(low + query, 0), to), to);
    }
};

__device__ __forceinline__ keys_range keys_range_of(const keys_task &task, int64_t given)
{
    const int valid = given < 0            ? 0
                      : given > task.total ? task.total
                                           : (int)given,
              shift = valid - task.q_len - task.past;
    /* Limits that there are not stay far away. */
    return {task.low + shift, task.high + shift, min(task.end, valid)};
}

/* A block's keys [from, to) in groups of KEYS, of which every `warps`-th one is a warp's. */
struct keys_share {
    int from, to;
};

template <class F>
__device__ __forceinline__ keys_share keys_share_of(const keys_task &task, const keys_range &range,
                                                    const keys_rows &rows)
{
    int lowest = 0, highest = task.q_len - 1;
    if (F::EIGHTS > 1 && task.row_blocks > 1) {
        const attention_row begin = keys_row(task, rows.first),
                            last = keys_row(task, rows.first + rows.rows - 1);
        lowest = begin.head == last.head ? (int)begin.query : lowest;
        highest = begin.head == last.head ? (int)last.query : highest;
    }
    const int from = range.of(lowest).x, to = range.of(highest).y; /* both grow with the query */
    const unsigned parts = gridDim.x, groups = (unsigned)(to - from + KEYS - 1) / KEYS,
                   each = (groups + parts - 1) / parts * KEYS;
    const int first = min(from + (int)(blockIdx.x * each), to);
    return {first, min(first + (int)each, to)};
}

/* Blocks that share the query rows of a key head. */
static inline int64_t keys_row_blocks(const attention_shape *s)
{
    return (s->group * s->q_len - 1) / MOST_ROWS + 1;
}

/* Limits are far away where there are none, and stay so when lengths move them. */
keys_task keys_task_of(const attention_shape *s, const attention_data *d)
{
    enum { FAR = 1 << 29 };
    const auto near = [](int64_t x) { return (int)(x < -FAR ? -FAR : x > FAR ? FAR : x); };
    const int64_t right = s->causal ? 0 : s->right;
    return {.q = d->q,
            .k = d->k,
            .v = d->v,
            .past_key = d->past_key,
            .past_value = d->past_value,
            .nonpad = d->nonpad,
            .y = d->y,
            .q_batch = s->q.batch,
            .k_batch = s->k.batch,
            .v_batch = s->v.batch,
            .y_batch = s->y.batch,
            .q_head = (int)s->q.head,
            .q_row = (int)s->q.row,
            .k_head = (int)s->k.head,
            .k_row = (int)s->k.row,
            .v_head = (int)s->v.head,
            .v_row = (int)s->v.row,
            .y_head = (int)s->y.head,
            .y_row = (int)s->y.row,
            .q_len = (int)s->q_len,
            .fold = (int)s->fold,
            .rows = (int)(s->fold * s->q_len),
            .row_blocks = (int)keys_row_blocks(s),
            .kv_heads = (int)s->kv_heads,
            .past = (int)s->past,
            .total = (int)s->total,
            .low = s->left < 0 ? -FAR : near(s->past - s->left),
            .high = right < 0 ? FAR : near(s->past + right + 1),
            .end = (int)(s->mask_len < s->total ? s->mask_len : s->total),
            .size = (int)s->size,
            .v_size = (int)s->v_size,
            .factor = (float)s->scale * LOG2E,
            .clustered = s->clustered};
}

} // namespace

#endif

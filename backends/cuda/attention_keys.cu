/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few query rows, as when a language model adds a token: float16 and bfloat16 on tensor cores,
 * with 16 keys as the rows of the left operand, and then 16 columns of the values, so that 8 query rows are
 * enough to fill an instruction. Nothing but time on the way to memory counts here:
 *
 *   - a block has some of the keys of one key head, for all query rows that read it; a warp takes 16 or 32
 *     keys at a time, whose rows go from memory to the registers that the instructions read. Which of a row's
 *     columns an instruction calls the first does not matter, so that each lane reads 16 bytes in a row;
 *   - keys and values of a step are asked for at once, and those of the next while this one is computed;
 *   - before the kernel in front has ended, the past is asked for into the L2 cache, which is right whoever
 *     writes it;
 *   - the blocks of a head are a cluster: all but one send their sums to its shared memory. Devices without
 *     clusters, and more blocks than a cluster has, send them to the workspace (attention_split.cu). */
#include "backends/cuda/attention_rows.cuh"
#include "backends/cuda/bulk_copy.cuh"
#include "backends/cuda/cluster.cuh"
#include "backends/cuda/overlap.cuh"

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
    int q_len, fold, rows, kv_heads, past, total, low, high, end, size, v_size;
    float factor; /* of scores that are only scaled */
    bool clustered;
};

/* 16 or 8 bytes. In assembly: they leave in the order written, and not before what they wait for. */
__device__ __forceinline__ void keys_load(uint32_t (&to)[4], const void *from)
{
    asm volatile("ld.global.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(from)
                 : "memory");
}
__device__ __forceinline__ void keys_load(uint32_t (&to)[2], const void *from)
{
    asm volatile("ld.global.v2.b32 {%0,%1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "l"(from) : "memory");
}
/* The same, or zeros. */
template <int N> __device__ __forceinline__ void keys_load(uint32_t (&to)[N], const void *from, bool there)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = 0;
    if (there)
        keys_load(to, from);
}

/* The transpose of an 8 x 8 matrix of 16-bit numbers; a lane has two neighbours of a row. */
__device__ __forceinline__ uint32_t keys_turned(uint32_t x)
{
    uint32_t y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

/* Computed here, not where it is used. */
template <class T> __device__ __forceinline__ void keys_hold(const T *&pointer)
{
    asm volatile("" : "+l"(pointer)::"memory");
}

__device__ __forceinline__ attention_row keys_row(const keys_task &task, int row)
{
    const unsigned q_len = (unsigned)task.q_len, head = (unsigned)row / q_len;
    return {(int64_t)blockIdx.y * task.fold + head, (int64_t)((unsigned)row - head * q_len)};
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

__device__ __forceinline__ keys_share keys_share_of(const keys_task &task, const keys_range &range)
{
    const int from = range.of(0).x, to = range.of(task.q_len - 1).y; /* both grow with the query */
    const unsigned parts = gridDim.x, groups = (unsigned)(to - from + KEYS - 1) / KEYS,
                   each = (groups + parts - 1) / parts * KEYS;
    const int first = min(from + (int)(blockIdx.x * each), to);
    return {first, min(first + (int)each, to)};
}

/* Keys or values of a head: the past's rows, then those that came now. */
template <class F> struct keys_source {
    using T = typename F::T;
    const T *past, *now; /* now: as if its rows began at number 0 */
    int n_past, row, size;

    __device__ __forceinline__ int columns() const
    {
        return F::WHOLE ? (int)F::SIZE : size;
    }
    __device__ __forceinline__ const T *at(int j) const
    {
        return j < n_past ? past + (int64_t)j * columns() : now + (int64_t)j * row;
    }
    /* The past's rows of a block's first steps come to the L2 cache. */
    __device__ __forceinline__ void expect(const keys_share &share) const
    {
        enum { LINE = 128, MOST = 96 << 10 };
        const int rows = min(share.to, n_past) - share.from;
        if (rows <= 0)
            return;
        const char *const begin = (const char *)(past + (int64_t)share.from * columns());
        const int bytes = min(rows, MOST / (2 * (int)F::SIZE)) * columns() * (int)sizeof(T);
        for (int i = (int)threadIdx.x * LINE; i < bytes; i += (int)blockDim.x * LINE)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(begin + i));
    }
};

template <class F>
__device__ __forceinline__ keys_source<F> keys_source_of(const keys_task &task, const void *now,
                                                         int64_t batch, int head, int row, const void *past,
                                                         int size)
{
    using T = typename F::T;
    const int64_t line = (int64_t)(blockIdx.z * (unsigned)task.kv_heads + blockIdx.y) * task.past;
    return {(const T *)past + line * (F::WHOLE ? (int)F::SIZE : size),
            (const T *)now + blockIdx.z * batch + (int64_t)blockIdx.y * head - (int64_t)task.past * row,
            task.past, row, size};
}

/* What a lane has. As left operands are laid out, of 16 keys it has numbers g and g + 8, and of values those
 * of keys 2 t, 2 t + 1, 2 t + 8 and 2 t + 9; of results it has query rows 2 t and 2 t + 1. */
template <class F> struct keys_lane {
    using T = typename F::T;
    int g, t;
    uint32_t q[F::EIGHTS][F::CHUNKS][4];
    uint32_t k[F::GROUPS][2][F::CHUNKS][4];
    uint32_t wide[F::GROUPS][4][F::WIDE ? F::WIDE : 1][4], narrow[F::GROUPS][4][2];
    const T *queries[F::EIGHTS];
    int2 limits[F::EIGHTS][2];
    float top[F::EIGHTS][2], sum[F::EIGHTS][2], result[F::EIGHTS][F::TILES][4];

    /* Before the first key. Rows beyond the last are like the first. */
    __device__ __forceinline__ void begin(const keys_task &task)
    {
        g = (int)threadIdx.x % 32 / 4;
        t = (int)threadIdx.x % 4;
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++) {
            const int row = e * 8 + g;
            const attention_row of = keys_row(task, row < task.rows ? row : 0);
            queries[e] = (const T *)task.q + blockIdx.z * task.q_batch + of.head * task.q_head +
                         of.query * task.q_row + t * 8;
            keys_hold(queries[e]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                top[e][i] = -CUDART_INF_F;
                sum[e][i] = 0;
#pragma unroll
                for (int n = 0; n < F::TILES; n++)
                    result[e][n][i] = result[e][n][2 + i] = 0;
            }
        }
    }

    __device__ __forceinline__ int row(int e, int i) const
    {
        return e * 8 + 2 * t + i;
    }

    __device__ __forceinline__ void limit(const keys_task &task, const keys_range &range)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                limits[e][i] = range.of((int)keys_row(task, row(e, i) < task.rows ? row(e, i) : 0).query);
    }

    __device__ __forceinline__ void load_queries(const keys_task &task)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int c = 0; c < F::CHUNKS; c++)
                keys_load(q[e][c], queries[e] + c * 32,
                          e * 8 + g < task.rows && (F::WHOLE || c * 32 + t * 8 < task.size));
    }

    /* Those of 16 keys from number `first` on, zeros from `to` on. */
    __device__ __forceinline__ void load_group_keys(const keys_source<F> &from, int n, int first, int to)
    {
        if (F::WHOLE && first + KEYS <= min(from.n_past, to)) {
            const T *const at = from.past + (int64_t)(first + g) * F::SIZE + t * 8;
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int c = 0; c < F::CHUNKS; c++)
                    keys_load(k[n][i][c], at + i * 8 * F::SIZE + c * 32);
            return;
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int j = first + g + 8 * i;
            const T *const at = from.at(j) + t * 8;
#pragma unroll
            for (int c = 0; c < F::CHUNKS; c++)
                keys_load(k[n][i][c], at + c * 32, j < to && (F::WHOLE || c * 32 + t * 8 < from.size));
        }
    }

    __device__ __forceinline__ void load_group_values(const keys_source<F> &from, int n, int first, int to)
    {
        if (F::WHOLE && first + KEYS <= min(from.n_past, to)) {
            const T *const at = from.past + (int64_t)(first + 2 * t) * F::SIZE;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = (i & 1) + (i >> 1) * 8;
#pragma unroll
                for (int c = 0; c < F::WIDE; c++)
                    keys_load(wide[n][i][c], at + g * 8 + j * F::SIZE + c * 64);
                if constexpr (F::NARROW)
                    keys_load(narrow[n][i], at + g * 4 + j * F::SIZE + F::WIDE * 64);
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int j = first + 2 * t + (i & 1) + (i >> 1) * 8;
            const T *const at = from.at(j);
#pragma unroll
            for (int c = 0; c < F::WIDE; c++)
                keys_load(wide[n][i][c], at + c * 64 + g * 8,
                          j < to && (F::WHOLE || c * 64 + g * 8 < from.size));
            if constexpr (F::NARROW)
                keys_load(narrow[n][i], at + F::WIDE * 64 + g * 4,
                          j < to && (F::WHOLE || F::WIDE * 64 + g * 4 < from.size));
        }
    }

    __device__ __forceinline__ void load_keys(const keys_source<F> &from, int first, int step, int to)
    {
#pragma unroll
        for (int n = 0; n < F::GROUPS; n++)
            load_group_keys(from, n, first + n * step, to);
    }

    __device__ __forceinline__ void load_values(const keys_source<F> &from, int first, int step, int to)
    {
#pragma unroll
        for (int n = 0; n < F::GROUPS; n++)
            load_group_values(from, n, first + n * step, to);
    }

    __device__ __forceinline__ void multiply_keys(float (&score)[F::GROUPS][F::EIGHTS][4])
    {
#pragma unroll
        for (int n = 0; n < F::GROUPS; n++)
#pragma unroll
            for (int e = 0; e < F::EIGHTS; e++) {
                score[n][e][0] = score[n][e][1] = score[n][e][2] = score[n][e][3] = 0;
#pragma unroll
                for (int c = 0; c < F::CHUNKS; c++)
#pragma unroll
                    for (int half = 0; half < 4; half += 2) {
                        const uint32_t a[4] = {k[n][0][c][half], k[n][1][c][half], k[n][0][c][half + 1],
                                               k[n][1][c][half + 1]};
                        tensor_core<T>::mma(score[n][e], a, &q[e][c][half]);
                    }
            }
    }

    /* A score of key j, times log2(e) if it is more than scaled. */
    __device__ __forceinline__ float seen(const keys_task &task, const attention_shape &s, const void *mask,
                                          float x, int j, int to, int e, int i)
    {
        const int hi = min(limits[e][i].y, to);
        if constexpr (F::GENERAL) {
            const attention_row of = keys_row(task, row(e, i) < task.rows ? row(e, i) : 0);
            return attention_score(s, mask, attention_mask_at(s, blockIdx.z, of), x, j, limits[e][i].x, hi);
        }
        return j >= limits[e][i].x && j < hi ? x : -CUDART_INF_F;
    }

    /* Scores become weights, those of other keys zeros; earlier results are rescaled. Group n begins at key
     * first + n * step. */
    __device__ __forceinline__ void weigh(const keys_task &task, const attention_shape &s, const void *mask,
                                          float (&score)[F::GROUPS][F::EIGHTS][4], int first, int step,
                                          int to)
    {
        const float factor = F::GENERAL ? 1.0f : task.factor;
        float highest[F::EIGHTS][2];
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                highest[e][i] = -CUDART_INF_F;
#pragma unroll
                for (int n = 0; n < F::GROUPS; n++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        float &x = score[n][e][2 * h + i];
                        x = seen(task, s, mask, x, first + n * step + g + 8 * h, to, e, i);
                        highest[e][i] = fmaxf(highest[e][i], x);
                    }
            }
#pragma unroll
        for (int lanes = 4; lanes < 32; lanes *= 2)
#pragma unroll
            for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    highest[e][i] = fmaxf(highest[e][i], __shfl_xor_sync(0xffffffffu, highest[e][i], lanes));
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float now = fmaxf(top[e][i], highest[e][i] * factor);
                const float base = now == -CUDART_INF_F ? 0.0f : now; /* no key yet */
                const float shrink = power_of_two(top[e][i] - base);
                top[e][i] = now;
                sum[e][i] *= shrink;
#pragma unroll
                for (int n = 0; n < F::GROUPS; n++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        float &x = score[n][e][2 * h + i];
                        x = power_of_two(fmaf(x, factor, -base));
                        sum[e][i] += x;
                    }
#pragma unroll
                for (int n = 0; n < F::TILES; n++) {
                    result[e][n][i] *= shrink;
                    result[e][n][2 + i] *= shrink;
                }
            }
    }

    /* Two columns, x's low halves and x's high halves, of four keys. */
    __device__ __forceinline__ void add_columns(float (&sums)[4], const uint32_t (&weights)[2], uint32_t x0,
                                                uint32_t x1, uint32_t x2, uint32_t x3)
    {
        const uint32_t a[4] = {__byte_perm(x0, x1, 0x5410), __byte_perm(x0, x1, 0x7632),
                               __byte_perm(x2, x3, 0x5410), __byte_perm(x2, x3, 0x7632)};
        tensor_core<T>::mma(sums, a, weights);
    }

    __device__ __forceinline__ void add_values(const float (&score)[F::GROUPS][F::EIGHTS][4])
    {
#pragma unroll
        for (int n = 0; n < F::GROUPS; n++)
#pragma unroll
            for (int e = 0; e < F::EIGHTS; e++) {
                uint32_t weights[2];
#pragma unroll
                for (int h = 0; h < 2; h++)
                    weights[h] =
                        keys_turned(tensor_core<T>::pair(score[n][e][2 * h], score[n][e][2 * h + 1]));
#pragma unroll
                for (int c = 0; c < F::WIDE; c++)
#pragma unroll
                    for (int w = 0; w < 4; w++)
                        add_columns(result[e][c * 4 + w], weights, wide[n][0][c][w], wide[n][1][c][w],
                                    wide[n][2][c][w], wide[n][3][c][w]);
#pragma unroll
                for (int w = 0; w < 2 * F::NARROW; w++)
                    add_columns(result[e][F::WIDE * 4 + w], weights, narrow[n][0][w], narrow[n][1][w],
                                narrow[n][2][w], narrow[n][3][w]);
            }
    }

    /* To a warp's part in shared memory. */
    __device__ __forceinline__ void leave(float *part, int rows)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float all = sum[e][i];
#pragma unroll
                for (int lanes = 4; lanes < 32; lanes *= 2)
                    all += __shfl_xor_sync(0xffffffffu, all, lanes);
                if (row(e, i) >= rows)
                    continue;
                float *const to = part + row(e, i) * F::ROW;
#pragma unroll
                for (int n = 0; n < F::TILES; n++) {
                    const int column = n < F::WIDE * 4 ? n / 4 * 64 + g * 8 + n % 4 * 2
                                                       : F::WIDE * 64 + g * 4 + (n - F::WIDE * 4) * 2;
                    *(float2 *)(to + column) = make_float2(result[e][n][i], result[e][n][2 + i]);
                }
                if (g == 0)
                    *(float2 *)(to + F::SIZE) = make_float2(top[e][i], all);
            }
    }
};

/* Two columns of a row with its largest score and its sum. */
struct keys_sums {
    float2 values, ends;
};

/* Of up to MOST parts that lie `step` floats apart, all read at once. */
template <int MOST>
__device__ __forceinline__ keys_sums keys_join(const float *part, int n, int step, int column, int size)
{
    float2 values[MOST], ends[MOST];
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        ends[k] = make_float2(-CUDART_INF_F, 0);
        values[k] = make_float2(0, 0);
        if (k < n) {
            ends[k] = *(const float2 *)(part + k * step + size);
            values[k] = *(const float2 *)(part + k * step + column);
        }
    }
    keys_sums all = {{0, 0}, {-CUDART_INF_F, 0}};
#pragma unroll
    for (int k = 0; k < MOST; k++)
        all.ends.x = fmaxf(all.ends.x, ends[k].x);
    const float base = all.ends.x == -CUDART_INF_F ? 0.0f : all.ends.x;
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const float weight = power_of_two(ends[k].x - base);
        all.ends.y += weight * ends[k].y;
        all.values.x += weight * values[k].x;
        all.values.y += weight * values[k].y;
    }
    return all;
}

template <class T>
__device__ __forceinline__ void keys_store(const keys_task &task, const attention_row &of, int column,
                                           const keys_sums &all)
{
    const float inverse = all.ends.y > 0    ? __fdividef(1, all.ends.y)
                          : all.ends.y == 0 ? 0.0f
                                            : all.ends.y; /* NaN stays */
    T *const y = (T *)task.y + blockIdx.z * task.y_batch + of.head * task.y_head + of.query * task.y_row;
    tensor_core<T>::store(y + column, all.values.x * inverse, all.values.y * inverse);
}

/* A cluster's parts arrive in the first block's shared memory. */
__device__ __forceinline__ void keys_expect_parts(const keys_task &task, uint64_t *arrived)
{
#if __CUDA_ARCH__ >= 900
    if (!task.clustered)
        return;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        barrier_init(arrived, 1);
        barrier_init_done();
        barrier_expect(arrived, gridDim.x * (unsigned)(task.rows * (task.v_size + 2)) * sizeof(float));
    }
    __syncwarp();
    cluster_arrive_only();
#endif
}

template <class F>
__global__ void __launch_bounds__(MOST_WARPS * 32, 1)
    keys_kernel(const __grid_constant__ keys_task task, const __grid_constant__ attention_shape s,
                const void *mask, float *partial)
{
    using T = typename F::T;
    extern __shared__ __align__(16) float parts[]; /* of the warps, then of the cluster's blocks */
    __shared__ uint64_t arrived;
    const int warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32, part = task.rows * F::ROW;
    overlap_let_next_begin();
    keys_expect_parts(task, &arrived);
    const keys_source<F> keys = keys_source_of<F>(task, task.k, task.k_batch, task.k_head, task.k_row,
                                                  task.past_key, task.size),
                         values = keys_source_of<F>(task, task.v, task.v_batch, task.v_head, task.v_row,
                                                    task.past_value, task.v_size);
    keys_range range = {task.low, task.high, task.end};
    keys_share share = keys_share_of(task, range);
    if (!F::GENERAL || !task.nonpad) {
        keys.expect(share);
        values.expect(share);
    }
    keys_lane<F> lane;
    lane.begin(task);
    lane.limit(task, range);
    overlap_wait();
    if (F::GENERAL && task.nonpad) { /* which the kernel in front may have written */
        range = keys_range_of(task, task.nonpad[blockIdx.z]);
        share = keys_share_of(task, range);
        lane.limit(task, range);
    }
    const int step = warps * KEYS;
    int at = share.from + warp * KEYS;
    lane.load_queries(task);
    lane.load_keys(keys, at, step, share.to);
    lane.load_values(values, at, step, share.to);
    while (at < share.to) {
        const int next = at + F::GROUPS * step;
        float score[F::GROUPS][F::EIGHTS][4];
        lane.multiply_keys(score);
        if (next < share.to)
            lane.load_keys(keys, next, step, share.to);
        lane.weigh(task, s, mask, score, at, step, share.to);
        lane.add_values(score);
        if (next < share.to)
            lane.load_values(values, next, step, share.to);
        at = next;
    }
    lane.leave(parts + warp * part, task.rows);
    if (task.clustered)
        cluster_wait(); /* the first block is ready for parts */
    __syncthreads();
    float *const joined = parts + warps * part;
    for (int i = (int)threadIdx.x; i < task.rows * (F::SIZE / 2); i += (int)blockDim.x) {
        const int row = i / (F::SIZE / 2), column = i % (F::SIZE / 2) * 2;
        if (!F::WHOLE && column >= task.v_size)
            continue;
        const keys_sums all = keys_join<MOST_WARPS>(parts + row * F::ROW, warps, part, column, F::SIZE);
        if (task.clustered) {
            const float *const to = joined + (int)blockIdx.x * part + row * F::ROW;
            cluster_send(to + column, all.values, &arrived);
            if (column == 0)
                cluster_send(to + F::SIZE, all.ends, &arrived);
        } else if (gridDim.x > 1) {
            float *const to =
                attention_partial_at(s, partial, blockIdx.z, keys_row(task, row), (int)blockIdx.x);
            *(float2 *)(to + column) = all.values;
            if (column == 0)
                *(float2 *)(to + task.v_size) = all.ends;
        } else {
            keys_store<T>(task, keys_row(task, row), column, all);
        }
    }
    if (!task.clustered || blockIdx.x != 0)
        return;
    cluster_receive(&arrived);
    for (int i = (int)threadIdx.x; i < task.rows * (F::SIZE / 2); i += (int)blockDim.x) {
        const int row = i / (F::SIZE / 2), column = i % (F::SIZE / 2) * 2;
        if (F::WHOLE || column < task.v_size)
            keys_store<T>(
                task, keys_row(task, row), column,
                keys_join<MOST_PARTS>(joined + row * F::ROW, (int)gridDim.x, part, column, F::SIZE));
    }
}

/* Calls `use` with the form of a shape. */
template <class T, int SIZE, bool WHOLE, class U>
void keys_with_rows(const attention_shape *s, bool general, U use)
{
    constexpr bool ALWAYS = !WHOLE;
    if (s->fold * s->q_len <= 8)
        general ? use(keys_form<T, SIZE, WHOLE, 1, true>()) : use(keys_form<T, SIZE, WHOLE, 1, ALWAYS>());
    else if constexpr (SIZE <= 128)
        general ? use(keys_form<T, SIZE, WHOLE, 2, true>()) : use(keys_form<T, SIZE, WHOLE, 2, ALWAYS>());
}

template <class T, int SIZE, class U> void keys_with_columns(const attention_shape *s, bool general, U use)
{
    if (attention_is_whole(s))
        keys_with_rows<T, SIZE, true>(s, general, use);
    else
        keys_with_rows<T, SIZE, false>(s, general, use);
}

template <class T, class U> void keys_with_size(const attention_shape *s, bool general, U use)
{
    switch (s->columns) {
    case 32:
        return keys_with_rows<T, 32, true>(s, general, use);
    case 64:
        return keys_with_columns<T, 64>(s, general, use);
    case 96:
        return keys_with_columns<T, 96>(s, general, use);
    case 128:
        return keys_with_columns<T, 128>(s, general, use);
    default:
        return keys_with_columns<T, 256>(s, general, use);
    }
}

template <class U> void keys_with_form(const attention_shape *s, grt_dtype dtype, bool general, U use)
{
    if (dtype == GRT_DTYPE_FLOAT16)
        keys_with_size<__half>(s, general, use);
    else
        keys_with_size<__nv_bfloat16>(s, general, use);
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

/* Positions and their limits are less than 2^29, so that sums of them fit 31 bits. */
bool attention_keys_takes(const attention_shape *s, grt_dtype dtype)
{
    const int64_t rows = s->fold * s->q_len, most_rows = s->columns <= 128 ? MOST_ROWS : 8, grid = 65535,
                  most = (1 << 29) - 1;
    const attention_view *const views[] = {&s->q, &s->k, &s->v, &s->y};
    bool fits = (dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16) && s->fold == s->group &&
                rows <= most_rows && s->batch <= grid && s->kv_heads <= grid && s->total <= most &&
                s->size >= 32 && s->v_size >= 32;
    for (const attention_view *view : views)
        fits = fits && view->head <= INT32_MAX && view->row <= INT32_MAX;
    return fits;
}

/* Keys that any row may look at, without lengths. */
static int64_t keys_seen(const attention_shape *s)
{
    const bool ends = s->causal || s->right >= 0;
    if (s->left < 0 || !ends)
        return s->total;
    const int64_t seen = s->left + s->q_len + (s->causal ? 0 : s->right);
    return seen < s->total ? seen : s->total;
}

/* How many blocks share a head's keys: as many as processors have a place for at once, as long as there are
 * keys for them. Clusters leave some processors out, as all of their blocks have to be on neighbouring ones.
 */
void attention_keys_spread(attention_shape *s, const struct cudaDeviceProp *device)
{
    enum { LEAST_GROUPS = 16, GROUPS_OF_BLOCK = 8, MANY_GROUPS = 512, MOST_SPLITS = 128 };
    enum { LEAST_SPLITS = 4 /* for the second kernel to pay */ };
    const bool clusters = device->major >= 9;
    const int64_t groups = (keys_seen(s) + KEYS - 1) / KEYS, heads = s->batch * s->kv_heads,
                  processors = device->multiProcessorCount, useful = groups / GROUPS_OF_BLOCK;
    int64_t wanted = (clusters ? processors * 3 / 4 : processors) / heads;
    s->clustered = clusters && (wanted <= 2 * MOST_PARTS || groups < MANY_GROUPS);
    const int64_t most = s->clustered ? (int64_t)MOST_PARTS : (int64_t)MOST_SPLITS;
    wanted = wanted < most ? wanted : most;
    int64_t parts = wanted < useful ? wanted : useful;
    if (groups <= LEAST_GROUPS || parts < (s->clustered ? 2 : (int64_t)LEAST_SPLITS))
        parts = 1;
    const int64_t each = groups ? (groups - 1) / parts + 1 : 1;
    s->splits = groups ? (int)((groups - 1) / each + 1) : 1;
    s->clustered = s->clustered && s->splits > 1;
    s->warps = (int)(each < MOST_WARPS ? each : MOST_WARPS);
}

cudaError_t attention_keys_prepare(const attention_shape *s, grt_dtype dtype)
{
    cudaError_t error = cudaSuccess;
    for (int general = 0; general < 2 && error == cudaSuccess; general++)
        keys_with_form(s, dtype, general, [&](auto form) {
            using F = decltype(form);
            error =
                cudaFuncSetAttribute(keys_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     keys_bytes<F>(MOST_WARPS, s->clustered ? MOST_PARTS : 0, F::EIGHTS * 8));
        });
    return error;
}

cudaError_t attention_keys(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                           cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    keys_with_form(s, dtype, d->nonpad || !attention_scales_only(s, d), [&](auto form) {
        using F = decltype(form);
        const keys_task task = keys_task_of(s, d);
        cudaLaunchAttribute attributes[2];
        cudaLaunchConfig_t config = overlap_config(
            overlaps, dim3((unsigned)s->splits, (unsigned)s->kv_heads, (unsigned)s->batch),
            dim3((unsigned)s->warps * 32),
            (size_t)keys_bytes<F>(s->warps, s->clustered ? s->splits : 0, task.rows), stream, attributes);
        if (s->clustered) {
            cudaLaunchAttribute *const cluster = &attributes[config.numAttrs++];
            *cluster = {};
            cluster->id = cudaLaunchAttributeClusterDimension;
            cluster->val.clusterDim = {(unsigned)s->splits, 1, 1};
        }
        error = cudaLaunchKernelEx(&config, keys_kernel<F>, task, *s, d->mask, d->partial);
    });
    return error;
}

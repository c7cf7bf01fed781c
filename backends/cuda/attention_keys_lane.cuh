/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane does for few query rows: reads keys and values to the registers that tensor cores read, and
 * has scores, weights and results (attention_keys.cu). */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_KEYS_LANE_CUH
#define GRT_BACKENDS_CUDA_ATTENTION_KEYS_LANE_CUH

#include "backends/cuda/attention_keys_task.cuh"

namespace
{

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
__device__ __forceinline__ keys_source<F> keys_source_of(const keys_task &task, int of, const void *now,
                                                         int64_t batch, int head, int row, const void *past,
                                                         int size)
{
    using T = typename F::T;
    const int64_t line = (int64_t)((unsigned)of * (unsigned)task.kv_heads + blockIdx.y) * task.past;
    return {(const T *)past + line * (F::WHOLE ? (int)F::SIZE : size),
            (const T *)now + of * batch + (int64_t)blockIdx.y * head - (int64_t)task.past * row, task.past,
            row, size};
}

/* What a lane has. As left operands are laid out, of 16 keys it has numbers g and g + 8, and of values those
 * of keys 2 t, 2 t + 1, 2 t + 8 and 2 t + 9; of results it has query rows 2 t and 2 t + 1. */
template <class F> struct keys_lane {
    using T = typename F::T;
    int g, t;
    keys_rows rows;
    uint32_t q[F::EIGHTS][F::CHUNKS][4];
    uint32_t k[F::GROUPS][2][F::CHUNKS][4];
    uint32_t wide[F::GROUPS][4][F::WIDE ? F::WIDE : 1][4], narrow[F::GROUPS][4][2];
    const T *queries[F::EIGHTS];
    int2 limits[F::EIGHTS][2];
    uint32_t shown[F::GROUPS][F::EIGHTS][4]; /* of masks of bool; 0: hidden */
    float top[F::EIGHTS][2], sum[F::EIGHTS][2], result[F::EIGHTS][F::TILES][4];

    /* Before the first key. */
    __device__ __forceinline__ void begin(const keys_task &task, const keys_rows &of_block)
    {
        rows = of_block;
        g = (int)threadIdx.x % 32 / 4;
        t = (int)threadIdx.x % 4;
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++) {
            const attention_row of = at(task, e * 8 + g);
            queries[e] = (const T *)task.q + rows.batch * task.q_batch + of.head * task.q_head +
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
    /* Of the block's rows; those beyond the last are like the first. */
    __device__ __forceinline__ attention_row at(const keys_task &task, int row) const
    {
        return keys_row(task, rows.first + (row < rows.rows ? row : 0));
    }

    __device__ __forceinline__ void limit(const keys_task &task, const keys_range &range)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                limits[e][i] = range.of((int)at(task, row(e, i)).query);
    }

    __device__ __forceinline__ void load_queries(const keys_task &task)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int c = 0; c < F::CHUNKS; c++)
                keys_load(q[e][c], queries[e] + c * 32,
                          e * 8 + g < rows.rows && (F::WHOLE || c * 32 + t * 8 < task.size));
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

    /* Masks of bool are asked for with the keys: where they are looked at, one load would wait for another.
     */
    __device__ __forceinline__ void load_mask(const keys_task &task, const attention_shape &s,
                                              const uint8_t *mask, int first, int step, int to)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int64_t from = mask ? attention_mask_at(s, rows.batch, at(task, row(e, i))) : 0;
                const int lo = limits[e][i].x, hi = mask ? min(limits[e][i].y, to) : 0;
#pragma unroll
                for (int n = 0; n < F::GROUPS; n++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const int j = first + n * step + g + 8 * h;
                        shown[n][e][2 * h + i] = 1;
                        if (j >= lo && j < hi)
                            shown[n][e][2 * h + i] = mask[from + j * s.mask_strides[3]];
                    }
            }
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

    /* A score of key j, times log2(e) if it is more than scaled. mask: of numbers. */
    __device__ __forceinline__ float seen(const keys_task &task, const attention_shape &s, const void *mask,
                                          float x, int j, int to, int e, int i)
    {
        const int hi = min(limits[e][i].y, to);
        if constexpr (F::GENERAL) {
            return attention_score(s, mask, attention_mask_at(s, rows.batch, at(task, row(e, i))), x, j,
                                   limits[e][i].x, hi);
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
                        if (F::GENERAL && !shown[n][e][2 * h + i])
                            x = -CUDART_INF_F;
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
    __device__ __forceinline__ void leave(float *part)
    {
#pragma unroll
        for (int e = 0; e < F::EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float all = sum[e][i];
#pragma unroll
                for (int lanes = 4; lanes < 32; lanes *= 2)
                    all += __shfl_xor_sync(0xffffffffu, all, lanes);
                if (row(e, i) >= rows.rows)
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

} // namespace

#endif

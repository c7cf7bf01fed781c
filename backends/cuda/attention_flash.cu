/* Attention on tensor cores (mma.sync): float16 and bfloat16, and float32 where TF32 is allowed. A warp has 16 query rows in
 * registers, tiles of keys and values pass through shared memory in two stages, sums and softmax are float32. Scores never reach
 * memory. Few rows with many keys: several blocks share the keys of a row (attention_split.cu), and query heads that share keys are
 * rows of one block. */
#include "backends/cuda/attention_tile.cuh"

namespace {

enum { ROWS = 16, STAGES = 2 };

/* DEPTH: how much of a sum one mma takes. `operand`: 32 bits of a tensor as mma wants them. */
template <class T> struct tensor_core;

template <> struct tensor_core<__half> {
    enum { DEPTH = 16 };
    static __device__ __forceinline__ uint32_t operand(uint32_t x) { return x; }
    static __device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ uint32_t pair(float x, float y)
    {
        const __half2 h = __floats2half2_rn(x, y);
        return *(const uint32_t *)&h;
    }
    static __device__ __forceinline__ void store(__half *y, float a, float b) { *(uint32_t *)y = pair(a, b); }
};

template <> struct tensor_core<__nv_bfloat16> {
    enum { DEPTH = 16 };
    static __device__ __forceinline__ uint32_t operand(uint32_t x) { return x; }
    static __device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ uint32_t pair(float x, float y)
    {
        const __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
        return *(const uint32_t *)&h;
    }
    static __device__ __forceinline__ void store(__nv_bfloat16 *y, float a, float b) { *(uint32_t *)y = pair(a, b); }
};

template <> struct tensor_core<float> {
    enum { DEPTH = 8 };
    static __device__ __forceinline__ uint32_t rounded(float x)
    {
        uint32_t y;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
        return y;
    }
    static __device__ __forceinline__ uint32_t operand(uint32_t x) { return rounded(__uint_as_float(x)); }
    static __device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b)
    {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ void store(float *y, float a, float b) { *(float2 *)y = make_float2(a, b); }
};

__device__ __forceinline__ void load_matrices(uint32_t *r, const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_turned(uint32_t *r, const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* Adds weights times values to a warp's result. The weights are where the scores were: of keys 8 k + 2 quad and the one behind it. */
template <class T, int SIZE, int TILE>
__device__ __forceinline__ void add_values(float (*result)[4], const float (*weight)[4], const T *values, int lane)
{
    enum { STRIDE = SIZE + row_pad<T>, COLUMNS = SIZE / 8 };
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int k = 0; k < TILE / 8; k += 2) {
            const uint32_t a[4] = {tensor_core<T>::pair(weight[k][0], weight[k][1]), tensor_core<T>::pair(weight[k][2], weight[k][3]),
                                   tensor_core<T>::pair(weight[k + 1][0], weight[k + 1][1]),
                                   tensor_core<T>::pair(weight[k + 1][2], weight[k + 1][3])};
#pragma unroll
            for (int c = 0; c < COLUMNS; c += 2) {
                uint32_t b[4];
                load_matrices_turned(b, values + (k * 8 + (lane & 15)) * STRIDE + c * 8 + (lane >> 4) * 8);
                tensor_core<T>::mma(result[c], a, b);
                tensor_core<T>::mma(result[c + 1], a, b + 2);
            }
        }
    } else {
        const int group = lane >> 2, quad = lane & 3;
#pragma unroll
        for (int k = 0; k < TILE / 8; k++) {
            /* mma wants keys quad and quad + 4 here. A sum has no order, so the keys that are here stand for those. */
            const uint32_t a[4] = {tensor_core<T>::rounded(weight[k][0]), tensor_core<T>::rounded(weight[k][2]),
                                   tensor_core<T>::rounded(weight[k][1]), tensor_core<T>::rounded(weight[k][3])};
            const T *at = values + (k * 8 + 2 * quad) * STRIDE + group;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const uint32_t b[2] = {tensor_core<T>::rounded(at[c * 8]), tensor_core<T>::rounded(at[STRIDE + c * 8])};
                tensor_core<T>::mma(result[c], a, b);
            }
        }
    }
}

/* Keys in a tile: what leaves room for two blocks in 100 KiB or more of shared memory. */
template <class T, int SIZE> constexpr int tile_size = sizeof(T) == 4 && SIZE > 64 ? 32 : 64;

/* A warp's rows: two a lane, `group` and `group` + 8 of them. */
template <class T, int SIZE> struct warp_rows {
    enum { DEPTH = tensor_core<T>::DEPTH, STEPS = SIZE / DEPTH, COLUMNS = SIZE / 8, STRIDE = SIZE + row_pad<T> };
    uint32_t q[STEPS][4];
    int64_t lo[2], hi[2], mask_at[2];
    float top[2], sum[2], result[COLUMNS][4]; /* sum: of this lane's keys */

    /* TILE keys and values from number `tile` on, those beyond hi as weights of zero. GENERAL: with a mask or a softcap. Apart, as that
     * code is long, and a run without them would only stumble over it. */
    template <int TILE, bool GENERAL>
    __device__ __forceinline__ void take(const attention_shape &s, const void *mask, const T *keys, const T *values, int64_t tile, int lane)
    {
        enum { KEYS = TILE / 8 };
        const int quad = lane & 3;
        float score[KEYS][4];
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            score[k][0] = score[k][1] = score[k][2] = score[k][3] = 0;
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int k = 0; k < KEYS; k += 2) {
                /* Matrices: keys k and the second half of their columns, keys k + 1 likewise. */
                uint32_t b[4];
                load_matrices(b, keys + (k * 8 + (lane >> 4) * 8 + (lane & 7)) * STRIDE + step * DEPTH + (lane >> 3 & 1) * (DEPTH / 2));
#pragma unroll
                for (int i = 0; i < 4; i++)
                    b[i] = tensor_core<T>::operand(b[i]);
                tensor_core<T>::mma(score[k], q[step], b);
                tensor_core<T>::mma(score[k + 1], q[step], b + 2);
            }
        const bool plain = !GENERAL && tile >= lo[0] && tile >= lo[1] && tile + TILE <= hi[0] && tile + TILE <= hi[1];
        const float factor = (float)s.scale * LOG2E;
        float highest[2] = {top[0], top[1]};
        if (plain) {
#pragma unroll
            for (int k = 0; k < KEYS; k++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    score[k][c] *= factor;
                    highest[c >> 1] = fmaxf(highest[c >> 1], score[k][c]);
                }
        } else if (!GENERAL) {
            int low[2], high[2]; /* in this tile */
#pragma unroll
            for (int r = 0; r < 2; r++) {
                low[r] = lo[r] > tile ? (int)(lo[r] - tile < TILE ? lo[r] - tile : TILE) : 0;
                high[r] = hi[r] > tile ? (int)(hi[r] - tile < TILE ? hi[r] - tile : TILE) : 0;
            }
#pragma unroll
            for (int k = 0; k < KEYS; k++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const int r = c >> 1, j = k * 8 + 2 * quad + (c & 1);
                    score[k][c] = j >= low[r] && j < high[r] ? score[k][c] * factor : -CUDART_INF_F;
                    highest[r] = fmaxf(highest[r], score[k][c]);
                }
        } else {
#pragma unroll
            for (int k = 0; k < KEYS; k++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const int r = c >> 1;
                    score[k][c] = attention_score(s, mask, mask_at[r], score[k][c], tile + k * 8 + 2 * quad + (c & 1), lo[r], hi[r]);
                    highest[r] = fmaxf(highest[r], score[k][c]);
                }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            highest[r] = fmaxf(highest[r], __shfl_xor_sync(0xffffffffu, highest[r], 1));
            highest[r] = fmaxf(highest[r], __shfl_xor_sync(0xffffffffu, highest[r], 2));
            const float base = highest[r] == -CUDART_INF_F ? 0.0f : highest[r]; /* no key yet */
            const float shrink = exp2f(top[r] - base);
            top[r] = highest[r];
            float part = 0;
#pragma unroll
            for (int k = 0; k < KEYS; k++) {
                score[k][2 * r] = exp2f(score[k][2 * r] - base);
                score[k][2 * r + 1] = exp2f(score[k][2 * r + 1] - base);
                part += score[k][2 * r] + score[k][2 * r + 1];
            }
            sum[r] = sum[r] * shrink + part;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                result[c][2 * r] *= shrink;
                result[c][2 * r + 1] *= shrink;
            }
        }
        add_values<T, SIZE, TILE>(result, score, values, lane);
    }
};

/* The last keys of a sequence like 197 or 257 get code for this many. */
enum { SHORT_TILE = 16 };

template <class T, int SIZE, int WARPS, bool GENERAL>
__global__ void __launch_bounds__(WARPS * 32)
    flash(const __grid_constant__ attention_shape s, const __grid_constant__ attention_data d, uint32_t tasks)
{
    using rows = warp_rows<T, SIZE>;
    enum { TILE = tile_size<T, SIZE>, THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS, STAGE = TILE * rows::STRIDE };
    extern __shared__ char memory[];
    T *keys = (T *)memory, *values = keys + STAGES * STAGE;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = lane >> 2, quad = lane & 3;
    for (uint32_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const attention_task t = attention_task_at(s, d.nonpad, task, BLOCK_ROWS, TILE);
        const auto fetch_at = [&](int64_t tile, int stage) {
            fetch_tile<T, SIZE, TILE, THREADS>(s, d.k, d.past_key, s.k, t.batch, t.kv_head, tile, t.to, keys + stage * STAGE);
            fetch_tile<T, SIZE, TILE, THREADS>(s, d.v, d.past_value, s.v, t.batch, t.kv_head, tile, t.to, values + stage * STAGE);
        };
        __syncthreads(); /* the task before may still read what follows overwrites */
        if (t.from < t.to)
            fetch_at(t.from, 0);
        commit();
        const bool idle = t.first + warp * ROWS >= t.rows; /* such a warp only fetches */
        rows w;
        attention_row row[2];
        bool there[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int64_t i = t.first + warp * ROWS + group + 8 * r;
            there[r] = i < t.rows;
            row[r] = attention_row_at(s, t, there[r] ? i : 0);
            w.lo[r] = w.hi[r] = 0;
            if (there[r])
                range(s, d.nonpad, t.batch, row[r].query, &w.lo[r], &w.hi[r]);
            w.mask_at[r] = GENERAL ? attention_mask_at(s, t.batch, row[r]) : 0;
            const T *at = (const T *)d.q + attention_at(s.q, t.batch, row[r]) + 4 / sizeof(T) * quad;
#pragma unroll
            for (int step = 0; step < rows::STEPS; step++) {
                w.q[step][r] = there[r] ? tensor_core<T>::operand(*(const uint32_t *)(at + step * rows::DEPTH)) : 0;
                w.q[step][2 + r] = there[r] ? tensor_core<T>::operand(*(const uint32_t *)(at + step * rows::DEPTH + rows::DEPTH / 2)) : 0;
            }
            w.top[r] = -CUDART_INF_F;
            w.sum[r] = 0;
        }
#pragma unroll
        for (int c = 0; c < rows::COLUMNS; c++)
            w.result[c][0] = w.result[c][1] = w.result[c][2] = w.result[c][3] = 0;
        int stage = 0;
        for (int64_t tile = t.from; tile < t.to; tile += TILE, stage ^= 1) {
            if (tile + TILE < t.to)
                fetch_at(tile + TILE, stage ^ 1);
            commit();
            wait_for<1>();
            __syncthreads();
            if (!idle && t.to - tile > SHORT_TILE)
                w.template take<TILE, GENERAL>(s, d.mask, keys + stage * STAGE, values + stage * STAGE, tile, lane);
            else if (!idle)
                w.template take<SHORT_TILE, GENERAL>(s, d.mask, keys + stage * STAGE, values + stage * STAGE, tile, lane);
            __syncthreads(); /* the stage is free */
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float sum = w.sum[r];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (!there[r])
                continue;
            if (s.splits > 1) {
                float *y = attention_partial_at(s, d.partial, t.batch, row[r], t.split);
#pragma unroll
                for (int c = 0; c < rows::COLUMNS; c++)
                    *(float2 *)(y + c * 8 + 2 * quad) = make_float2(w.result[c][2 * r], w.result[c][2 * r + 1]);
                if (quad == 0)
                    *(float2 *)(y + SIZE) = make_float2(w.top[r], sum);
                continue;
            }
            const float inverse = sum > 0 ? 1 / sum : sum == 0 ? 0.0f : sum; /* NaN stays */
            T *y = (T *)d.y + attention_at(s.y, t.batch, row[r]) + 2 * quad;
#pragma unroll
            for (int c = 0; c < rows::COLUMNS; c++)
                tensor_core<T>::store(y + c * 8, w.result[c][2 * r] * inverse, w.result[c][2 * r + 1] * inverse);
        }
    }
}

template <class T, int SIZE> constexpr size_t shared_bytes()
{
    return (size_t)(2 * STAGES * tile_size<T, SIZE> * (SIZE + row_pad<T>)) * sizeof(T);
}

/* Call use with the kernel for a type and a size, and the shared memory that it wants. */
template <class T, int WARPS, bool GENERAL, class F> void with_kernel(int64_t size, F use)
{
    switch (size) {
    case 32:
        use(flash<T, 32, WARPS, GENERAL>, shared_bytes<T, 32>());
        break;
    case 64:
        use(flash<T, 64, WARPS, GENERAL>, shared_bytes<T, 64>());
        break;
    case 96:
        use(flash<T, 96, WARPS, GENERAL>, shared_bytes<T, 96>());
        break;
    case 128:
        use(flash<T, 128, WARPS, GENERAL>, shared_bytes<T, 128>());
        break;
    default:
        break;
    }
}

template <class T> cudaError_t prepare(const attention_shape *s)
{
    cudaError_t error = cudaSuccess;
    const auto allow = [&](auto kernel, size_t bytes) {
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    };
    with_kernel<T, 2, false>(s->size, allow);
    with_kernel<T, 4, false>(s->size, allow);
    with_kernel<T, 2, true>(s->size, allow);
    with_kernel<T, 4, true>(s->size, allow);
    return error;
}

template <class T, bool GENERAL> void launch_as(const attention_shape *s, const attention_data *d, int multiprocessors, cudaStream_t stream)
{
    enum { MANY = 4, FEW = 2 };
    const int64_t large = attention_tasks(s, MANY * ROWS), small = attention_tasks(s, FEW * ROWS);
    if (large >= 2 * multiprocessors && s->splits == 1)
        with_kernel<T, MANY, GENERAL>(s->size, [&](auto kernel, size_t bytes) {
            kernel<<<cuda_blocks(large, 1), MANY * 32, bytes, stream>>>(*s, *d, (uint32_t)large);
        });
    else
        with_kernel<T, FEW, GENERAL>(s->size, [&](auto kernel, size_t bytes) {
            kernel<<<cuda_blocks(small, 1), FEW * 32, bytes, stream>>>(*s, *d, (uint32_t)small);
        });
}

template <class T> void launch(const attention_shape *s, const attention_data *d, int multiprocessors, cudaStream_t stream)
{
    if (d->mask || s->softcap > 0)
        launch_as<T, true>(s, d, multiprocessors, stream);
    else
        launch_as<T, false>(s, d, multiprocessors, stream);
}

} // namespace

cudaError_t attention_flash_prepare(const attention_shape *s, grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16    ? prepare<__half>(s)
           : dtype == GRT_DTYPE_BFLOAT16 ? prepare<__nv_bfloat16>(s)
                                         : prepare<float>(s);
}

void attention_flash(const attention_shape *s, const attention_data *d, grt_dtype dtype, int multiprocessors, cudaStream_t stream)
{
    if (dtype == GRT_DTYPE_FLOAT16)
        launch<__half>(s, d, multiprocessors, stream);
    else if (dtype == GRT_DTYPE_BFLOAT16)
        launch<__nv_bfloat16>(s, d, multiprocessors, stream);
    else
        launch<float>(s, d, multiprocessors, stream);
}

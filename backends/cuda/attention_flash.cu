/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on tensor cores (mma.sync): float16 and bfloat16, and float32 where TF32 is allowed. A warp has
 * 16 query rows in registers, tiles of keys and values pass through shared memory in two stages, sums and
 * softmax are float32. Scores never reach memory. Few rows with many keys: several blocks share the keys of a
 * row (attention_split.cu), and query heads that share keys are rows of one block. */
#include "backends/cuda/attention_rows.cuh"
#include "backends/cuda/overlap.cuh"

namespace
{

enum { ROWS = WARP_ROWS, STAGES = 2, MANY_WARPS = 4, FEW_WARPS = 8 };

/* Adds weights times values to a warp's result. The weights replace the scores: keys 8 k + 2 quad and the
 * next. */
template <class T, int SIZE, int TILE>
__device__ __forceinline__ void add_values(float (*result)[4], const float (*weight)[4], const T *values,
                                           int lane)
{
    enum { STRIDE = SIZE + row_pad<T>, COLUMNS = SIZE / 8 };
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int k = 0; k < TILE / 8; k += 2) {
            const uint32_t a[4] = {tensor_core<T>::pair(weight[k][0], weight[k][1]),
                                   tensor_core<T>::pair(weight[k][2], weight[k][3]),
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
            /* mma expects keys quad and quad + 4 here. The order of a sum does not matter, so the keys at
             * hand take their place. */
            const uint32_t a[4] = {
                tensor_core<T>::rounded(weight[k][0]), tensor_core<T>::rounded(weight[k][2]),
                tensor_core<T>::rounded(weight[k][1]), tensor_core<T>::rounded(weight[k][3])};
            const T *at = values + (k * 8 + 2 * quad) * STRIDE + group;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                const uint32_t b[2] = {tensor_core<T>::rounded(at[c * 8]),
                                       tensor_core<T>::rounded(at[STRIDE + c * 8])};
                tensor_core<T>::mma(result[c], a, b);
            }
        }
    }
}

/* Keys per tile: up to 128 columns, two blocks fit in 100 KiB of shared memory. */
template <class T, int SIZE> constexpr int tile_size = sizeof(T) * SIZE > 256 ? 32 : 64;

/* A warp's rows with their queries. WHOLE: heads fill all columns. */
template <class T, int SIZE, bool WHOLE> struct warp_rows : attention_rows<SIZE> {
    enum {
        DEPTH = tensor_core<T>::DEPTH,
        STEPS = SIZE / DEPTH,
        COLUMNS = SIZE / 8,
        STRIDE = SIZE + row_pad<T>
    };
    uint32_t q[STEPS][4];

    template <bool GENERAL>
    __device__ __forceinline__ void begin(const attention_shape &s, const attention_data &d,
                                          const attention_task &t, int64_t first, int lane)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int64_t i = first + (lane >> 2) + 8 * r;
            const bool there = i < t.rows;
            const attention_row row = attention_row_at(s, t, there ? i : 0);
            attention_rows<SIZE>::template begin<GENERAL>(s, d, t.batch, row, there, r);
            const int mine = 4 / (int)sizeof(T) * (lane & 3);
            const T *at = (const T *)d.q + attention_at(s.q, t.batch, row) + mine;
#pragma unroll
            for (int i = 0; i < 2 * STEPS; i++) {
                const int column = i * (DEPTH / 2);
                q[i / 2][i % 2 * 2 + r] = there && (WHOLE || column + mine < s.size)
                                              ? tensor_core<T>::operand(*(const uint32_t *)(at + column))
                                              : 0;
            }
        }
    }

    /* TILE keys and values from number `tile` on, those beyond hi as weights of zero. */
    template <int TILE, bool GENERAL>
    __device__ __forceinline__ void take(const attention_shape &s, const void *mask, const T *keys,
                                         const T *values, int tile, int lane)
    {
        enum { KEYS = TILE / 8 };
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
                load_matrices(b, keys + (k * 8 + (lane >> 4) * 8 + (lane & 7)) * STRIDE + step * DEPTH +
                                     (lane >> 3 & 1) * (DEPTH / 2));
#pragma unroll
                for (int i = 0; i < 4; i++)
                    b[i] = tensor_core<T>::operand(b[i]);
                tensor_core<T>::mma(score[k], q[step], b);
                tensor_core<T>::mma(score[k + 1], q[step], b + 2);
            }
        this->template weigh<TILE, GENERAL>(s, mask, score, tile, lane);
        add_values<T, SIZE, TILE>(this->result, score, values, lane);
    }
};

/* Many rows: each warp has its own rows; tiles are double-buffered. */
template <class T, int SIZE, bool WHOLE, bool GENERAL>
__global__ void __launch_bounds__(MANY_WARPS * 32, SIZE > 128                  ? 1
                                                   : SIZE > 64                 ? 2
                                                   : sizeof(T) == 4 || GENERAL ? 3
                                                                               : 4)
    many(const __grid_constant__ attention_shape s, const __grid_constant__ attention_data d, uint32_t tasks)
{
    using rows = warp_rows<T, SIZE, WHOLE>;
    enum {
        TILE = tile_size<T, SIZE>,
        THREADS = MANY_WARPS * 32,
        BLOCK_ROWS = MANY_WARPS * ROWS,
        STAGE = TILE * rows::STRIDE
    };
    extern __shared__ char memory[];
    T *keys = (T *)memory, *values = keys + STAGES * STAGE;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = lane >> 2, quad = lane & 3;
    overlap_let_next_begin();
    overlap_wait();
    for (uint32_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const attention_task t = attention_task_at(s, d.nonpad, task, BLOCK_ROWS, TILE);
        const auto fetch_at = [&](int64_t tile, int stage) {
            fetch_keys<T, SIZE, WHOLE, TILE, THREADS>(s, d, t, tile,
                                                      padded_rows<T, SIZE>{keys + stage * STAGE});
            fetch_values<T, SIZE, WHOLE, TILE, THREADS>(s, d, t, tile,
                                                        padded_rows<T, SIZE>{values + stage * STAGE});
        };
        __syncthreads(); /* the previous task may still read this memory */
        if (t.from < t.to)
            fetch_at(t.from, 0);
        commit();
        const int64_t first = t.first + warp * ROWS;
        const bool idle = first >= t.rows; /* a warp without rows only fetches */
        rows w;
        w.template begin<GENERAL>(s, d, t, first, lane);
        int stage = 0;
        for (int64_t tile = t.from; tile < t.to; tile += TILE, stage ^= 1) {
            if (tile + TILE < t.to)
                fetch_at(tile + TILE, stage ^ 1);
            commit();
            wait_for<1>();
            __syncthreads();
            if (!idle && t.to - tile > SHORT_TILE)
                w.template take<TILE, GENERAL>(s, d.mask, keys + stage * STAGE, values + stage * STAGE,
                                               (int)tile, lane);
            else if (!idle)
                w.template take<SHORT_TILE, GENERAL>(s, d.mask, keys + stage * STAGE, values + stage * STAGE,
                                                     (int)tile, lane);
            __syncthreads(); /* the stage is free */
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int64_t i = first + group + 8 * r;
            const float inverse = w.inverse(r);
            if (i >= t.rows)
                continue;
            T *y = (T *)d.y + attention_at(s.y, t.batch, attention_row_at(s, t, i)) + 2 * quad;
#pragma unroll
            for (int c = 0; c < rows::COLUMNS; c++)
                if (WHOLE || c * 8 + 2 * quad < s.v_size)
                    tensor_core<T>::store(y + c * 8, w.result[c][2 * r] * inverse,
                                          w.result[c][2 * r + 1] * inverse);
        }
    }
}

/* Keys per warp where warps share rows: two blocks or more fit on a multiprocessor. */
template <class T, int SIZE> constexpr int part_size = sizeof(T) * SIZE <= 128 ? 32 : 16;

/* Few rows: the warps of a block share 16 rows and take different keys, all fetched at once; their results
 * are joined at the end. */
template <class T, int SIZE, bool WHOLE, bool GENERAL>
__global__ void __launch_bounds__(FEW_WARPS * 32, SIZE <= 64 ? 2 : 1)
    few(const __grid_constant__ attention_shape s, const __grid_constant__ attention_data d, uint32_t tasks)
{
    using rows = warp_rows<T, SIZE, WHOLE>;
    enum {
        PART = part_size<T, SIZE>,
        TILE = FEW_WARPS * PART,
        THREADS = FEW_WARPS * 32,
        STRIDE = rows::STRIDE,
        ENDS = FEW_WARPS * ROWS
    };
    extern __shared__ char memory[];
    T *keys = (T *)memory, *values = keys + TILE * STRIDE;
    /* The warps' results reuse the memory of the keys: rows of SIZE and two scalars each. */
    float *results = (float *)memory, *tops = results + ENDS * SIZE, *sums = tops + ENDS;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = lane >> 2, quad = lane & 3;
    overlap_let_next_begin();
    overlap_wait();
    for (uint32_t task = blockIdx.x; task < tasks; task += gridDim.x) {
        const attention_task t = attention_task_at(s, d.nonpad, task, ROWS, PART);
        rows w;
        for (int64_t tile = t.from; tile < t.to || tile == t.from; tile += TILE) {
            __syncthreads(); /* it may still be read */
            if (tile < t.to) {
                fetch_keys<T, SIZE, WHOLE, TILE, THREADS>(s, d, t, tile, padded_rows<T, SIZE>{keys});
                fetch_values<T, SIZE, WHOLE, TILE, THREADS>(s, d, t, tile, padded_rows<T, SIZE>{values});
            }
            commit();
            if (tile == t.from)
                w.template begin<GENERAL>(s, d, t, t.first, lane);
            wait_for<0>();
            __syncthreads();
            if (tile + warp * PART < t.to)
                w.template take<PART, GENERAL>(s, d.mask, keys + warp * PART * STRIDE,
                                               values + warp * PART * STRIDE, (int)tile + warp * PART, lane);
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int at = warp * ROWS + group + 8 * r;
            w.sum[r] += __shfl_xor_sync(0xffffffffu, w.sum[r], 1);
            w.sum[r] += __shfl_xor_sync(0xffffffffu, w.sum[r], 2);
#pragma unroll
            for (int c = 0; c < rows::COLUMNS; c++)
                *(float2 *)(results + at * SIZE + c * 8 + 2 * quad) =
                    make_float2(w.result[c][2 * r], w.result[c][2 * r + 1]);
            if (quad == 0) {
                tops[at] = w.top[r];
                sums[at] = w.sum[r];
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * (SIZE / 2); i += THREADS) {
            const int r = i / (SIZE / 2), c = i % (SIZE / 2) * 2;
            if (t.first + r >= t.rows)
                break;
            if (!WHOLE && c >= s.v_size)
                continue;
            float top = -CUDART_INF_F, sum = 0, a = 0, b = 0;
#pragma unroll
            for (int k = 0; k < FEW_WARPS; k++)
                top = fmaxf(top, tops[k * ROWS + r]);
            const float base = top == -CUDART_INF_F ? 0.0f : top;
#pragma unroll
            for (int k = 0; k < FEW_WARPS; k++) {
                const float weight = exp2f(tops[k * ROWS + r] - base);
                const float2 part = *(const float2 *)(results + (k * ROWS + r) * SIZE + c);
                sum += weight * sums[k * ROWS + r];
                a += weight * part.x;
                b += weight * part.y;
            }
            const attention_row row = attention_row_at(s, t, t.first + r);
            if (s.splits > 1) {
                float *y = attention_partial_at(s, d.partial, t.batch, row, t.split);
                *(float2 *)(y + c) = make_float2(a, b);
                if (c == 0)
                    *(float2 *)(y + (WHOLE ? SIZE : s.v_size)) = make_float2(top, sum);
            } else {
                const float inverse = sum > 0 ? 1 / sum : sum == 0 ? 0.0f : sum; /* NaN stays */
                tensor_core<T>::store((T *)d.y + attention_at(s.y, t.batch, row) + c, a * inverse,
                                      b * inverse);
            }
        }
    }
}

template <class T, int SIZE> constexpr size_t many_bytes()
{
    return (size_t)(2 * STAGES * tile_size<T, SIZE> * (SIZE + row_pad<T>)) * sizeof(T);
}

template <class T, int SIZE> constexpr size_t few_bytes()
{
    const size_t tiles = (size_t)(2 * FEW_WARPS * part_size<T, SIZE> * (SIZE + row_pad<T>)) * sizeof(T);
    const size_t results = (size_t)(FEW_WARPS * ROWS * (SIZE + 2)) * sizeof(float);
    return tiles > results ? tiles : results;
}

template <class T, int SIZE, bool WHOLE> void *flash_kernel(bool is_few, bool general, size_t *bytes)
{
    /* Heads that leave columns free are rare, and above 128 attention_warpgroup_tf32.cu has many rows of
     * float32: they have no kernels of their own for scores that are only scaled. */
    constexpr bool ALWAYS = !WHOLE && (SIZE <= 128 || sizeof(T) == 4);
    *bytes = is_few ? few_bytes<T, SIZE>() : many_bytes<T, SIZE>();
    return is_few    ? general ? (void *)few<T, SIZE, WHOLE, true> : (void *)few<T, SIZE, WHOLE, ALWAYS>
              : general ? (void *)many<T, SIZE, WHOLE, true>
                     : (void *)many<T, SIZE, WHOLE, ALWAYS>;
}

template <class T>
void *cuda_attention_flash_kernel_of(const attention_shape *s, bool is_few, bool general, size_t *bytes)
{
    if (attention_is_whole(s)) {
        switch (s->columns) {
        case 32:
            return flash_kernel<T, 32, true>(is_few, general, bytes);
        case 64:
            return flash_kernel<T, 64, true>(is_few, general, bytes);
        }
        /* Many rows of such heads of float32 have a kernel of their own where the module has machine code. */
        if constexpr (sizeof(T) == 2)
            switch (s->columns) {
            case 96:
                return flash_kernel<T, 96, true>(is_few, general, bytes);
            case 128:
                return flash_kernel<T, 128, true>(is_few, general, bytes);
            }
    }
    return s->columns <= 32    ? flash_kernel<T, 32, false>(is_few, general, bytes)
           : s->columns <= 64  ? flash_kernel<T, 64, false>(is_few, general, bytes)
           : s->columns <= 128 ? flash_kernel<T, 128, false>(is_few, general, bytes)
                               : flash_kernel<T, 256, false>(is_few, general, bytes);
}

void *cuda_attention_flash_kernel_for(const attention_shape *s, grt_dtype dtype, bool is_few, bool general,
                                      size_t *bytes)
{
    return dtype == GRT_DTYPE_FLOAT16 ? cuda_attention_flash_kernel_of<__half>(s, is_few, general, bytes)
           : dtype == GRT_DTYPE_BFLOAT16
               ? cuda_attention_flash_kernel_of<__nv_bfloat16>(s, is_few, general, bytes)
               : cuda_attention_flash_kernel_of<float>(s, is_few, general, bytes);
}

} // namespace

/* True if rows cannot fill all multiprocessors. Of float32, if they find a place at once, too, or have all
 * keys at once: else they wait for keys more often than in larger blocks. */
bool attention_flash_few(const attention_shape *s, grt_dtype dtype, const struct cudaDeviceProp *device)
{
    enum { FEW_BLOCKS = 2 };
    size_t bytes;
    (void)cuda_attention_flash_kernel_for(s, dtype, true, false, &bytes);
    const int64_t tasks = attention_tasks(s, ROWS),
                  keys = FEW_WARPS * (s->columns <= 32 ? part_size<float, 32> : part_size<float, 64>);
    return attention_tasks(s, MANY_WARPS * ROWS) < device->multiProcessorCount &&
           bytes <= device->sharedMemPerBlockOptin &&
           (dtype != GRT_DTYPE_FLOAT || s->fold * s->q_len <= ROWS || s->total <= keys ||
            tasks <= FEW_BLOCKS * device->multiProcessorCount);
}

cudaError_t attention_flash_prepare(const attention_shape *s, grt_dtype dtype)
{
    cudaError_t error = cudaSuccess;
    for (int general = 0; general < 2 && error == cudaSuccess; general++) {
        size_t bytes;
        void *kernel = cuda_attention_flash_kernel_for(s, dtype, s->few, general, &bytes);
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    }
    return error;
}

cudaError_t attention_flash(const attention_shape *s, const attention_data *d, grt_dtype dtype, bool overlaps,
                            cudaStream_t stream)
{
    size_t bytes;
    void *kernel = cuda_attention_flash_kernel_for(s, dtype, s->few, !attention_scales_only(s, d), &bytes);
    uint32_t tasks = (uint32_t)attention_tasks(s, s->few ? (int)ROWS : MANY_WARPS * ROWS);
    void *arguments[] = {(void *)s, (void *)d, &tasks};
    cudaLaunchAttribute early;
    const cudaLaunchConfig_t config =
        overlap_config(overlaps, dim3(cuda_blocks(tasks, 1)), dim3(32 * (s->few ? FEW_WARPS : MANY_WARPS)),
                       bytes, stream, &early);
    return cudaLaunchKernelExC(&config, kernel, arguments);
}

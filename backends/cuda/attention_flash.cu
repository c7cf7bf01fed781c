/* Attention of float16 and bfloat16 on tensor cores (mma.sync m16n8k16): a warp has 16 query rows in registers, tiles of 64 keys and
 * values pass through shared memory in two stages, sums and softmax are float32. Scores never reach memory. */
#include "backends/cuda/attention.cuh"

namespace {

enum { TILE = 64, ROWS = 16, STAGES = 2 };
/* Rows are padded by 16 bytes: with sizes that are multiples of 16, the 8 rows that ldmatrix reads at once lie in different banks. */
enum { PAD = 8 };

template <class T> struct tensor_core;

template <> struct tensor_core<__half> {
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
};

template <> struct tensor_core<__nv_bfloat16> {
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

/* 16 bytes to shared memory, zeros if there is nothing to read. */
__device__ __forceinline__ void fetch(void *to, const void *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_for() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

/* Keys tile .. tile + TILE of a head, those from `to` on as zeros. */
template <class T, int SIZE, int THREADS>
__device__ __forceinline__ void fetch_tile(const attention_shape &s, const void *now, const void *past, const attention_view &view,
                                           int64_t batch, int64_t head, int64_t tile, int64_t to, T *shared)
{
    enum { CHUNKS = SIZE / 8 };
    for (int i = threadIdx.x; i < TILE * CHUNKS; i += THREADS) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        const bool there = tile + row < to;
        const T *from = key_row<T>(s, now, past, view, SIZE, batch, head, there ? tile + row : 0);
        fetch(shared + row * (SIZE + PAD) + chunk * 8, from + chunk * 8, there);
    }
}

/* GENERAL: with a mask or a softcap. Apart, as that code is long, and a run without them would only stumble over it. */
template <class T, int SIZE, int WARPS, bool GENERAL>
__global__ void __launch_bounds__(WARPS * 32)
    flash(const __grid_constant__ attention_shape s, const __grid_constant__ attention_data d)
{
    enum { THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS, STEPS = SIZE / 16, COLUMNS = SIZE / 8, KEYS = TILE / 8 };
    extern __shared__ char memory[];
    T *keys = (T *)memory, *values = keys + STAGES * TILE * (SIZE + PAD);
    const float log2e = 1.4426950408889634f;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, group = lane >> 2, quad = lane & 3;
    const int64_t blocks = (s.q_len + BLOCK_ROWS - 1) / BLOCK_ROWS;
    for (int64_t task = blockIdx.x; task < s.batch * s.q_heads * blocks; task += gridDim.x) {
        const int64_t batch = task / (s.q_heads * blocks), head = task / blocks % s.q_heads;
        /* Late rows have most keys where attention is causal: they go first. */
        const int64_t first = (blocks - 1 - task % blocks) * BLOCK_ROWS, kv_head = head / (s.q_heads / s.kv_heads);
        const int64_t last = first + BLOCK_ROWS < s.q_len ? first + BLOCK_ROWS - 1 : s.q_len - 1;
        int64_t from, to, unused, lo[2], hi[2], row[2];
        range(s, d.nonpad, batch, first, &from, &unused); /* both ends only grow with the row */
        range(s, d.nonpad, batch, last, &unused, &to);
        from = from / TILE * TILE;
        uint32_t q[STEPS][4];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            row[r] = first + warp * ROWS + group + 8 * r;
            lo[r] = hi[r] = 0;
            if (row[r] < s.q_len)
                range(s, d.nonpad, batch, row[r], &lo[r], &hi[r]);
            const T *at = (const T *)d.q + batch * s.q.batch + head * s.q.head + row[r] * s.q.row + 2 * quad;
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                q[step][r] = row[r] < s.q_len ? *(const uint32_t *)(at + step * 16) : 0;
                q[step][2 + r] = row[r] < s.q_len ? *(const uint32_t *)(at + step * 16 + 8) : 0;
            }
        }
        float top[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {0, 0}, result[COLUMNS][4];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            result[c][0] = result[c][1] = result[c][2] = result[c][3] = 0;
        __syncthreads(); /* the task before may still read what follows overwrites */
        if (from < to) {
            fetch_tile<T, SIZE, THREADS>(s, d.k, d.past_key, s.k, batch, kv_head, from, to, keys);
            fetch_tile<T, SIZE, THREADS>(s, d.v, d.past_value, s.v, batch, kv_head, from, to, values);
        }
        commit();
        int stage = 0;
        for (int64_t tile = from; tile < to; tile += TILE, stage ^= 1) {
            const T *tile_keys = keys + stage * TILE * (SIZE + PAD), *tile_values = values + stage * TILE * (SIZE + PAD);
            if (tile + TILE < to) {
                const int next = (stage ^ 1) * TILE * (SIZE + PAD);
                fetch_tile<T, SIZE, THREADS>(s, d.k, d.past_key, s.k, batch, kv_head, tile + TILE, to, keys + next);
                fetch_tile<T, SIZE, THREADS>(s, d.v, d.past_value, s.v, batch, kv_head, tile + TILE, to, values + next);
            }
            commit();
            wait_for<1>();
            __syncthreads();
            float score[KEYS][4];
#pragma unroll
            for (int k = 0; k < KEYS; k++)
                score[k][0] = score[k][1] = score[k][2] = score[k][3] = 0;
#pragma unroll
            for (int step = 0; step < STEPS; step++)
#pragma unroll
                for (int k = 0; k < KEYS; k += 2) {
                    /* Matrices: keys k and its second half of the 16 columns, keys k + 1 likewise. */
                    uint32_t b[4];
                    load_matrices(b, tile_keys + (k * 8 + (lane >> 4) * 8 + (lane & 7)) * (SIZE + PAD) + step * 16 + (lane >> 3 & 1) * 8);
                    tensor_core<T>::mma(score[k], q[step], b);
                    tensor_core<T>::mma(score[k + 1], q[step], b + 2);
                }
            const bool plain = !GENERAL && tile >= lo[0] && tile >= lo[1] && tile + TILE <= hi[0] && tile + TILE <= hi[1];
            float highest[2] = {top[0], top[1]};
            if (plain) {
                const float factor = (float)s.scale * log2e;
#pragma unroll
                for (int k = 0; k < KEYS; k++)
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        score[k][c] *= factor;
                        highest[c >> 1] = fmaxf(highest[c >> 1], score[k][c]);
                    }
            } else if (!GENERAL) {
                const float factor = (float)s.scale * log2e;
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
                        const int64_t j = tile + k * 8 + 2 * quad + (c & 1);
                        float x = score[k][c] * (float)s.scale;
                        if (s.softcap > 0)
                            x = (float)s.softcap * tanhf(x / (float)s.softcap);
                        if (j < lo[r] || j >= hi[r])
                            x = -CUDART_INF_F;
                        else
                            x = masked<float>(s, d.mask, batch * s.mask_strides[0] + head * s.mask_strides[1] +
                                                             row[r] * s.mask_strides[2] + j * s.mask_strides[3], x);
                        score[k][c] = x * log2e;
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
                sum[r] = sum[r] * shrink + part; /* of this lane's keys */
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    result[c][2 * r] *= shrink;
                    result[c][2 * r + 1] *= shrink;
                }
            }
#pragma unroll
            for (int k = 0; k < TILE / 16; k++) {
                const uint32_t a[4] = {tensor_core<T>::pair(score[2 * k][0], score[2 * k][1]), tensor_core<T>::pair(score[2 * k][2], score[2 * k][3]),
                                       tensor_core<T>::pair(score[2 * k + 1][0], score[2 * k + 1][1]),
                                       tensor_core<T>::pair(score[2 * k + 1][2], score[2 * k + 1][3])};
#pragma unroll
                for (int c = 0; c < COLUMNS; c += 2) {
                    uint32_t b[4];
                    load_matrices_turned(b, tile_values + (k * 16 + (lane & 15)) * (SIZE + PAD) + c * 8 + (lane >> 4) * 8);
                    tensor_core<T>::mma(result[c], a, b);
                    tensor_core<T>::mma(result[c + 1], a, b + 2);
                }
            }
            __syncthreads(); /* the stage is free */
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
            sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
            const float inverse = sum[r] > 0 ? 1 / sum[r] : sum[r] == 0 ? 0.0f : sum[r]; /* NaN stays */
            if (row[r] >= s.q_len)
                continue;
            T *y = (T *)d.y + batch * s.y.batch + head * s.y.head + row[r] * s.y.row + 2 * quad;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                *(uint32_t *)(y + c * 8) = tensor_core<T>::pair(result[c][2 * r] * inverse, result[c][2 * r + 1] * inverse);
        }
    }
}

constexpr size_t shared_bytes(int64_t size)
{
    return (size_t)(2 * STAGES * TILE * (size + PAD)) * 2;
}

/* Call use with the kernel for a type and a size. */
template <class T, int WARPS, bool GENERAL, class F> void with_kernel(int64_t size, F use)
{
    switch (size) {
    case 32:
        use(flash<T, 32, WARPS, GENERAL>);
        break;
    case 64:
        use(flash<T, 64, WARPS, GENERAL>);
        break;
    case 96:
        use(flash<T, 96, WARPS, GENERAL>);
        break;
    case 128:
        use(flash<T, 128, WARPS, GENERAL>);
        break;
    default:
        break;
    }
}

template <class T> cudaError_t prepare(const attention_shape *s)
{
    cudaError_t error = cudaSuccess;
    const auto allow = [&](auto kernel) {
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes(s->size));
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
    const int64_t large = s->batch * s->q_heads * ((s->q_len + MANY * ROWS - 1) / (MANY * ROWS));
    const int64_t small = s->batch * s->q_heads * ((s->q_len + FEW * ROWS - 1) / (FEW * ROWS));
    const size_t bytes = shared_bytes(s->size);
    if (large >= 2 * multiprocessors)
        with_kernel<T, MANY, GENERAL>(s->size, [&](auto kernel) { kernel<<<cuda_blocks(large, 1), MANY * 32, bytes, stream>>>(*s, *d); });
    else
        with_kernel<T, FEW, GENERAL>(s->size, [&](auto kernel) { kernel<<<cuda_blocks(small, 1), FEW * 32, bytes, stream>>>(*s, *d); });
}

template <class T> void launch(const attention_shape *s, const attention_data *d, int multiprocessors, cudaStream_t stream)
{
    if (d->mask || s->softcap > 0)
        launch_as<T, true>(s, d, multiprocessors, stream);
    else
        launch_as<T, false>(s, d, multiprocessors, stream);
}

bool divides(const attention_view &view)
{
    return view.batch % 8 == 0 && view.head % 8 == 0 && view.row % 8 == 0;
}

} // namespace

bool attention_flash_fits(const attention_shape *s, grt_dtype dtype)
{
    return (dtype == GRT_DTYPE_FLOAT16 || dtype == GRT_DTYPE_BFLOAT16) && s->size == s->v_size &&
           (s->size == 32 || s->size == 64 || s->size == 96 || s->size == 128) && divides(s->q) && divides(s->k) && divides(s->v) && divides(s->y);
}

cudaError_t attention_flash_prepare(const attention_shape *s, grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT16 ? prepare<__half>(s) : prepare<__nv_bfloat16>(s);
}

bool attention_flash_aligned(const attention_shape *s, const attention_data *d)
{
    (void)s;
    return !d->qk && (((uintptr_t)d->q | (uintptr_t)d->k | (uintptr_t)d->v | (uintptr_t)d->past_key | (uintptr_t)d->past_value | (uintptr_t)d->y) & 15) == 0;
}

void attention_flash(const attention_shape *s, const attention_data *d, grt_dtype dtype, int multiprocessors, cudaStream_t stream)
{
    if (dtype == GRT_DTYPE_FLOAT16)
        launch<__half>(s, d, multiprocessors, stream);
    else
        launch<__nv_bfloat16>(s, d, multiprocessors, stream);
}

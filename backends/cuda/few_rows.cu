/* See few_rows.h. A block has one tile of the result and a share of the sum: slices of 64 of a and b pass through shared memory in four
 * stages. Blocks of one tile are a cluster: each adds up its part of the tile from all of them, in one order, and finishes it. */
#include "backends/cuda/few_rows.h"

#include "backends/algos.h"
#include "backends/cuda/activate.cuh"
#include "backends/cuda/tensor_core.cuh"

#include <stdio.h>
#include <stdlib.h>

namespace {

enum { DEPTH = 64, STAGES = 4, WARPS = 4, THREADS = WARPS * 32, MOST_SPLITS = 8 /* in a portable cluster */ };

/* ---- clusters ---- */

__device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/* What lies at `at` of this block's shared memory, in that of the cluster's block `rank`. */
__device__ __forceinline__ float4 read_other(const float *at, uint32_t rank)
{
    float4 x = {};
#if __CUDA_ARCH__ >= 900
    const uint32_t own = (uint32_t)__cvta_generic_to_shared(at);
    uint32_t other;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(other) : "memory");
#endif
    return x;
}

/* ---- the kernel ---- */

/* ROWS x COLUMNS of the result a block, by ROW_WARPS x (WARPS / ROW_WARPS) warps. */
template <class T, int ROWS, int COLUMNS, int ROW_WARPS> struct tile {
    enum {
        ROW_BLOCKS = ROWS / ROW_WARPS / 16,                 /* of a warp, 16 each */
        WARP_COLUMNS = COLUMNS / (WARPS / ROW_WARPS),
        COLUMN_BLOCKS = WARP_COLUMNS / 8,
        STRIDE_A = DEPTH + 8, /* 16 bytes more: rows that are read at once lie in different banks */
        STRIDE_B = COLUMNS + 8,
        STAGE = ROWS * STRIDE_A + DEPTH * STRIDE_B,
        STRIDE_SUM = COLUMNS + 8,
    };
    static constexpr size_t BYTES = (size_t)STAGES * STAGE * sizeof(T);
    static_assert(BYTES >= (size_t)ROWS * STRIDE_SUM * sizeof(float), "sums take the place of the slices");
};

template <class T, int ROWS, int COLUMNS>
__device__ __forceinline__ void fetch_slice(const cuda_few_rows &p, const cuda_few_rows_args &x, int row, int column, int depth, T *to_a,
                                            T *to_b, int stride_a, int stride_b)
{
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * DEPTH / 8; i += THREADS) {
        const int r = i / (DEPTH / 8), c = i % (DEPTH / 8) * 8;
        const bool there = row + r < p.m && depth + c < p.k;
        fetch(to_a + r * stride_a + c, there ? (const T *)x.a + (int64_t)(row + r) * p.k + depth + c : (const T *)x.a, there);
    }
#pragma unroll
    for (int i = threadIdx.x; i < DEPTH * COLUMNS / 8; i += THREADS) {
        const int r = i / (COLUMNS / 8), c = i % (COLUMNS / 8) * 8;
        const bool there = depth + r < p.k && column + c < p.n;
        fetch(to_b + r * stride_b + c, there ? (const T *)x.b + (int64_t)(depth + r) * p.n + column + c : (const T *)x.b, there);
    }
}

/* Eight sums of the tile, from all blocks of the cluster. */
template <int STRIDE> __device__ __forceinline__ void add_up(float *sum, const float *sums, int row, int column, int splits)
{
    for (int i = 0; i < 8; i++)
        sum[i] = 0;
    for (int rank = 0; rank < splits; rank++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float *at = sums + row * STRIDE + column + half * 4;
            const float4 part = splits > 1 ? read_other(at, (uint32_t)rank) : *(const float4 *)at;
            sum[half * 4] += part.x;
            sum[half * 4 + 1] += part.y;
            sum[half * 4 + 2] += part.z;
            sum[half * 4 + 3] += part.w;
        }
}

template <class T, int ROWS, int COLUMNS, int ROW_WARPS>
__global__ void __launch_bounds__(THREADS) multiply(const __grid_constant__ cuda_few_rows p, const __grid_constant__ cuda_few_rows_args x)
{
    using shape = tile<T, ROWS, COLUMNS, ROW_WARPS>;
    extern __shared__ float4 memory[];
    T *slices = (T *)memory;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int warp_row = warp % ROW_WARPS * shape::ROW_BLOCKS * 16, warp_column = warp / ROW_WARPS * shape::WARP_COLUMNS;
    const int column = blockIdx.x * COLUMNS, row = blockIdx.y * ROWS, split = blockIdx.z;
    const int steps = (p.k + DEPTH - 1) / DEPTH, share = (steps + p.splits - 1) / p.splits;
    const int begin = split * share, end = begin + share < steps ? begin + share : steps;
    const auto fetch_step = [&](int step) {
        T *to = slices + (step - begin) % STAGES * shape::STAGE;
        if (step < end)
            fetch_slice<T, ROWS, COLUMNS>(p, x, row, column, step * DEPTH, to, to + ROWS * shape::STRIDE_A, shape::STRIDE_A, shape::STRIDE_B);
        commit();
    };
    float sum[shape::ROW_BLOCKS][shape::COLUMN_BLOCKS][4];
#pragma unroll
    for (int r = 0; r < shape::ROW_BLOCKS; r++)
#pragma unroll
        for (int c = 0; c < shape::COLUMN_BLOCKS; c++)
            sum[r][c][0] = sum[r][c][1] = sum[r][c][2] = sum[r][c][3] = 0;
    for (int step = begin; step < begin + STAGES - 1; step++)
        fetch_step(step);
    for (int step = begin; step < end; step++) {
        wait_for<STAGES - 2>();
        __syncthreads(); /* the slice is there for all, and the one before is used up */
        fetch_step(step + STAGES - 1);
        const T *a = slices + (step - begin) % STAGES * shape::STAGE, *b = a + ROWS * shape::STRIDE_A;
#pragma unroll
        for (int depth = 0; depth < DEPTH; depth += 16) {
            uint32_t from_a[shape::ROW_BLOCKS][4];
#pragma unroll
            for (int r = 0; r < shape::ROW_BLOCKS; r++)
                load_matrices(from_a[r], a + (warp_row + r * 16 + (lane & 15)) * shape::STRIDE_A + depth + (lane >> 4) * 8);
#pragma unroll
            for (int c = 0; c < shape::COLUMN_BLOCKS; c += 2) {
                uint32_t from_b[4];
                load_matrices_turned(from_b, b + (depth + (lane & 15)) * shape::STRIDE_B + warp_column + c * 8 + (lane >> 4) * 8);
#pragma unroll
                for (int r = 0; r < shape::ROW_BLOCKS; r++) {
                    tensor_core<T>::mma(sum[r][c], from_a[r], from_b);
                    tensor_core<T>::mma(sum[r][c + 1], from_a[r], from_b + 2);
                }
            }
        }
    }
    wait_for<0>();
    __syncthreads();
    float *sums = (float *)memory;
#pragma unroll
    for (int r = 0; r < shape::ROW_BLOCKS; r++)
#pragma unroll
        for (int c = 0; c < shape::COLUMN_BLOCKS; c++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                *(float2 *)(sums + (warp_row + r * 16 + half * 8 + (lane >> 2)) * shape::STRIDE_SUM + warp_column + c * 8 + (lane & 3) * 2) =
                    make_float2(sum[r][c][2 * half], sum[r][c][2 * half + 1]);
    if (p.splits > 1)
        cluster_wait();
    else
        __syncthreads();
    for (int i = split * THREADS + threadIdx.x; i < ROWS * COLUMNS / 8; i += p.splits * THREADS) {
        const int r = i / (COLUMNS / 8), c = i % (COLUMNS / 8) * 8;
        if (row + r >= p.m || column + c >= p.n)
            continue;
        float y[8];
        add_up<shape::STRIDE_SUM>(y, sums, r, c, p.splits);
        const int64_t at = (int64_t)(row + r) * p.n + column + c;
        cuda_vector<T> out, bias = {}, residual = {};
        if (x.bias)
            bias = *(const cuda_vector<T> *)((const T *)x.bias + column + c);
        if (x.residual)
            residual = *(const cuda_vector<T> *)((const T *)x.residual + at);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float v = p.alpha * y[k];
            if (x.bias)
                v += cuda_widen(bias.v[k]);
            if (x.residual)
                v += cuda_widen(residual.v[k]);
            out.v[k] = cuda_narrow<T, float>(cuda_activate<float>(p.act, v));
        }
        *(cuda_vector<T> *)((T *)x.y + at) = out;
    }
    if (p.splits > 1)
        cluster_wait(); /* others may still read here */
}

/* ---- choosing ---- */

struct tile_row {
    int32_t rows, columns;
    size_t bytes;
    const void *half, *bfloat;
};

#define TILE_ROW(ROWS, COLUMNS, ROW_WARPS)                                                                             \
    {ROWS, COLUMNS, tile<__half, ROWS, COLUMNS, ROW_WARPS>::BYTES, (const void *)multiply<__half, ROWS, COLUMNS, ROW_WARPS>, \
     (const void *)multiply<__nv_bfloat16, ROWS, COLUMNS, ROW_WARPS>}
enum { ONE_NARROW, ONE_WIDE, SQUARE, N_TILES };
const tile_row tiles[N_TILES] = {TILE_ROW(16, 64, 1), TILE_ROW(16, 128, 1), TILE_ROW(64, 64, 2)};

int32_t clamp(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }

int32_t tiles_of(const cuda_few_rows *p, int32_t tile)
{
    return ((p->m + tiles[tile].rows - 1) / tiles[tile].rows) * ((p->n + tiles[tile].columns - 1) / tiles[tile].columns);
}

/* Up to 16 rows: bytes decide, and more of them are on their way with three blocks a multiprocessor. Up to 512 rows, where tiles of
 * 128 x 128 would leave multiprocessors without work: about two blocks each, of three slices or more. */
void choose_by_rule(cuda_few_rows *p, int32_t multiprocessors)
{
    const int32_t steps = (p->k + DEPTH - 1) / DEPTH;
    const int64_t large = (int64_t)((p->m + 127) / 128) * ((p->n + 127) / 128);
    p->splits = 0;
    if (p->m <= 16) {
        p->tile = tiles_of(p, ONE_WIDE) * MOST_SPLITS < 2 * multiprocessors ? ONE_NARROW : ONE_WIDE;
        p->splits = clamp(3 * multiprocessors / tiles_of(p, p->tile), 1, clamp(steps / 4, 1, MOST_SPLITS));
    } else if (p->m <= 512 && large < multiprocessors) {
        p->tile = SQUARE;
        p->splits = clamp(2 * multiprocessors / tiles_of(p, SQUARE), 1, clamp(steps / 3, 1, MOST_SPLITS));
    }
    if (p->splits) {
        const int32_t share = (steps + p->splits - 1) / p->splits;
        p->splits = (steps + share - 1) / share; /* none without a share */
    }
}

/* What is remembered: "1 TILE SPLITS". */
enum { DATA = 16 };
size_t write_choice(const cuda_few_rows *p, char *data) { return (size_t)snprintf(data, DATA, "1 %d %d", p->tile, p->splits); }

bool read_choice(const char *data, cuda_few_rows *p)
{
    int tile, splits;
    if (sscanf(data, "1 %d %d", &tile, &splits) != 2 || tile < 0 || tile >= N_TILES || splits < 0 || splits > MOST_SPLITS ||
        (splits && p->m > 8 * tiles[tile].rows))
        return false;
    p->tile = tile;
    p->splits = splits;
    return true;
}

bool recall(cuda_device *device, grt_algo_trial *trial, const char *key, cuda_few_rows *p)
{
    size_t size;
    bool known = false;
    for (char *data; !known && (data = (char *)grt_device_algo_find(&device->base, trial, key, &size)); free(data))
        if (!(known = read_choice(data, p)))
            grt_device_algo_reject(&device->base, trial, key);
    return known;
}

/* The rule's choice first, then the library, then others. */
void offer_all(grt_algo_trial *trial, const char *key, const cuda_few_rows *first)
{
    static const int32_t splits[] = {0, 1, 2, 3, 4, 6, 8};
    char data[DATA];
    bool more = grt_algo_trial_offer(trial, key, data, write_choice(first, data));
    for (size_t i = 0; more && i < sizeof splits / sizeof *splits; i++)
        for (int32_t tile = splits[i] ? 0 : N_TILES - 1; more && tile < N_TILES; tile++) {
            cuda_few_rows p = *first;
            p.tile = tile;
            p.splits = splits[i];
            if (first->m <= 8 * tiles[tile].rows && (p.splits != first->splits || (p.splits && p.tile != first->tile)))
                more = grt_algo_trial_offer(trial, key, data, write_choice(&p, data));
        }
}

const void *kernel_of(const cuda_few_rows *p)
{
    return p->dtype == GRT_DTYPE_FLOAT16 ? tiles[p->tile].half : tiles[p->tile].bfloat;
}

} // namespace

grt_status cuda_few_rows_choose(cuda_device *device, grt_algo_trial *trial, cuda_few_rows *p)
{
    p->tile = p->splits = 0;
    if ((p->dtype != GRT_DTYPE_FLOAT16 && p->dtype != GRT_DTYPE_BFLOAT16) || device->prop.major < 9 || p->n % 8 || p->k % 8 || p->m > 512 ||
        p->m < 1 || p->n < 8 || p->k < 8)
        return GRT_OK;
    grt_text key = {};
    grt_device_algo_key(&device->base, "MatMul", &key);
    grt_text_add(&key, "few_rows=1;dtype=%s;m=%d;n=%d;k=%d;act=%d;", grt_dtype_name(p->dtype), p->m, p->n, p->k, (int)p->act.kind);
    if (grt_text_get(&key) && !recall(device, trial, grt_text_get(&key), p)) {
        choose_by_rule(p, device->prop.multiProcessorCount);
        if (grt_algo_trial_lists(trial))
            offer_all(trial, grt_text_get(&key), p);
    }
    grt_text_release(&key);
    if (!p->splits)
        return GRT_OK;
    CUDA_TRY(cudaFuncSetAttribute(kernel_of(p), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)tiles[p->tile].bytes));
    return GRT_OK;
}

bool cuda_few_rows_aligned(const cuda_few_rows_args *x)
{
    return (((uintptr_t)x->a | (uintptr_t)x->b | (uintptr_t)x->bias | (uintptr_t)x->residual | (uintptr_t)x->y) & 15) == 0;
}

grt_status cuda_few_rows_run(const cuda_few_rows *p, const cuda_few_rows_args *args, cudaStream_t stream)
{
    const tile_row *t = &tiles[p->tile];
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = (unsigned)p->splits;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((p->n + t->columns - 1) / t->columns), (unsigned)((p->m + t->rows - 1) / t->rows), (unsigned)p->splits);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = t->bytes;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    void *arguments[] = {(void *)p, (void *)args};
    CUDA_TRY(cudaLaunchKernelExC(&config, kernel_of(p), arguments));
    return GRT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided boxes: an element or a vector of them per thread, or, where source and destination
 * are contiguous along different axes, tiles through shared memory; two to four planes that are woven
 * together or taken apart, through registers; rows that begin anywhere, element by element to vectors. */
#include "backends/cuda/copy.h"
#include "backends/cuda/overlap_device.cuh"

namespace
{

enum { TILE = 32, TILE_ROWS = 8, TILE_WORTH = 8, SHIFTED_ROW = 64, SHIFTED_BYTES = 2 };

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    copy_kernel(const __grid_constant__ cuda_move walk, int32_t size, char *dst, const char *src)
{
    overlap_let_next_begin();
    overlap_wait();
    CUDA_ITEMS (i, walk.total) {
        int64_t at[2];
        cuda_walk_at(walk, i, at);
        *(T *)(dst + at[0] * size) = *(const T *)(src + at[1] * size);
    }
}

/* Geometry of the tiled kernel: the plane of the two axes, and the strides of all others. */
struct planes {
    int64_t a, b;         /* sizes: the source is contiguous along a, the destination along b */
    int64_t to_a, from_b; /* strides */
    int64_t tiles_a, tiles_b, n;
    cuda_move others;
};

template <typename T>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    tile_kernel(const __grid_constant__ planes p, T *dst, const T *src)
{
    __shared__ T tile[TILE][TILE + 1];
    for (int64_t block = blockIdx.x; block < p.n; block += gridDim.x) {
        int64_t tb = block % p.tiles_b * TILE, rest = block / p.tiles_b, ta = rest % p.tiles_a * TILE, at[2];
        cuda_walk_at(p.others, rest / p.tiles_a, at);
        for (int row = threadIdx.y; row < TILE; row += TILE_ROWS) {
            int64_t a = ta + threadIdx.x, b = tb + row;
            if (a < p.a && b < p.b)
                tile[row][threadIdx.x] = src[at[1] + b * p.from_b + a];
        }
        __syncthreads();
        for (int row = threadIdx.y; row < TILE; row += TILE_ROWS) {
            int64_t a = ta + row, b = tb + threadIdx.x;
            if (a < p.a && b < p.b)
                dst[at[0] + a * p.to_a + b] = tile[threadIdx.x][row];
        }
        __syncthreads();
    }
}

/* B planes, `plane` elements from each other: a thread moves 16 bytes of each. The source's become neighbours
 * in the destination, or, APART, neighbours become the destination's planes. */
template <typename T, int B, bool APART>
__global__ void __launch_bounds__(CUDA_BLOCK)
    weave_kernel(const __grid_constant__ cuda_move walk, int64_t plane, T *dst, const T *src)
{
    enum { N = 16 / sizeof(T) };
    struct alignas(16) vector {
        T v[N];
    };
    const int64_t from = APART ? N : plane, to = APART ? plane : N;
    CUDA_ITEMS (i, walk.total) {
        int64_t at[2];
        vector in[B], out[B];
        cuda_walk_at(walk, i, at);
#pragma unroll
        for (int b = 0; b < B; b++)
            in[b] = *(const vector *)(src + at[1] + b * from);
#pragma unroll
        for (int k = 0; k < N * B; k++) {
            if (APART)
                out[k % B].v[k / B] = in[k / N].v[k % N];
            else
                out[k / N].v[k % N] = in[k % B].v[k / B];
        }
#pragma unroll
        for (int b = 0; b < B; b++)
            *(vector *)(dst + at[0] + b * to) = out[b];
    }
}

/* Rows of the source, the last axis of the walk, become neighbours. A thread writes 16 bytes; its elements
 * are those of one row, or of the ends of two. */
template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    shifted_kernel(const __grid_constant__ cuda_move walk, T *dst, const T *src)
{
    enum { N = 16 / sizeof(T) };
    const int32_t last = walk.rank - 1;
    overlap_let_next_begin();
    overlap_wait();
    CUDA_ITEMS (i, (walk.total + N - 1) / N) {
        const int64_t first = i * N, left = walk.total - first, n = left < N ? left : N;
        const int64_t row = walk.wide ? first / walk.dims[last] : cuda_divide((uint32_t)first, walk.by[last]),
                      cut = (row + 1) * walk.dims[last] - first;
        int64_t begin[2], end[2];
        cuda_pack<T, N> v;
        cuda_walk_at(walk, first, begin);
        cuda_walk_at(walk, first + n - 1, end);
        const T *here = src + begin[1], *next = src + (end[1] - (n - 1));
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < n)
                v.v[j] = (j < cut ? here : next)[j];
        if (n == N)
            *(cuda_pack<T, N> *)(dst + first) = v;
        for (int j = 0; n < N && j < n; j++)
            dst[first + j] = v.v[j];
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK) fill_kernel(int64_t n, T *dst, T host, const T *device)
{
    overlap_let_next_begin();
    overlap_wait();
    T value = device ? *device : host;
    CUDA_ITEMS (i, n)
        dst[i] = value;
}

template <typename T>
grt_status run_plain(const cuda_move *walk, int32_t size, void *dst, const void *src, cudaStream_t stream)
{
    CUDA_TRY(overlap_launch(overlap_is_possible(), copy_kernel<T>, cuda_grid(walk->total), CUDA_BLOCK, 0,
                            stream, *walk, size, (char *)dst, (const char *)src));
    return GRT_OK;
}

template <typename T>
grt_status run_shifted(const cuda_copy *copy, void *dst, const void *src, cudaStream_t stream)
{
    const int64_t vectors = (copy->walk.total * (int64_t)sizeof(T) + 15) / 16;
    CUDA_TRY(overlap_launch(overlap_is_possible(), shifted_kernel<T>, cuda_grid(vectors), CUDA_BLOCK, 0,
                            stream, copy->walk, (T *)dst, (const T *)src));
    return GRT_OK;
}

template <typename T>
grt_status run_tiled(const cuda_copy *copy, void *dst, const void *src, cudaStream_t stream)
{
    const cuda_move *walk = &copy->walk;
    int32_t last = walk->rank - 1;
    planes p = {};
    p.a = walk->dims[copy->tile_axis];
    p.b = walk->dims[last];
    p.to_a = walk->strides[0][copy->tile_axis];
    p.from_b = walk->strides[1][last];
    p.tiles_a = (p.a + TILE - 1) / TILE;
    p.tiles_b = (p.b + TILE - 1) / TILE;
    cuda_walk_begin(&p.others);
    for (int32_t i = 0; i < last; i++)
        if (i != copy->tile_axis) {
            int64_t strides[2] = {walk->strides[0][i], walk->strides[1][i]};
            cuda_walk_axis(&p.others, walk->dims[i], strides);
        }
    cuda_walk_end(&p.others);
    p.n = p.tiles_a * p.tiles_b * p.others.total;
    dim3 threads(TILE, TILE_ROWS);
    tile_kernel<T><<<cuda_grid(p.n, 1), threads, 0, stream>>>(p, (T *)dst, (const T *)src);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename T, bool APART>
void launch_woven(const cuda_copy *copy, T *to, const T *from, cudaStream_t stream)
{
    const unsigned blocks = cuda_grid(copy->grouped.total);
    switch (copy->planes) {
    case 2:
        weave_kernel<T, 2, APART><<<blocks, CUDA_BLOCK, 0, stream>>>(copy->grouped, copy->plane, to, from);
        break;
    case 3:
        weave_kernel<T, 3, APART><<<blocks, CUDA_BLOCK, 0, stream>>>(copy->grouped, copy->plane, to, from);
        break;
    default:
        weave_kernel<T, 4, APART><<<blocks, CUDA_BLOCK, 0, stream>>>(copy->grouped, copy->plane, to, from);
    }
}

template <typename T>
grt_status run_woven(const cuda_copy *copy, void *dst, const void *src, cudaStream_t stream)
{
    if (copy->apart)
        launch_woven<T, true>(copy, (T *)dst, (const T *)src, stream);
    else
        launch_woven<T, false>(copy, (T *)dst, (const T *)src, stream);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* True if elements one or two bytes at a time would be written side by side. */
bool plan_shifted(const cuda_copy *copy)
{
    const cuda_move *walk = &copy->walk;
    int64_t dense = 1;
    for (int32_t i = walk->rank - 1; i >= 0; dense *= walk->dims[i--])
        if (walk->strides[0][i] != dense)
            return false;
    return copy->size * copy->vector <= SHIFTED_BYTES && walk->dims[walk->rank - 1] >= SHIFTED_ROW;
}

/* The axis of a few planes that neighbours of the source go to, where the last axis of the walk steps over
 * them; less than 0: there is none. */
int32_t plane_axis(const cuda_move *walk)
{
    const int32_t last = walk->rank - 1;
    for (int32_t i = 0; i < last; i++)
        if (walk->strides[1][i] == 1 && walk->dims[i] >= 2 && walk->dims[i] <= 4 &&
            walk->strides[1][last] == walk->dims[i])
            return i;
    return -1;
}

/* Every other step must be one of whole vectors, on both sides. */
void plan_unweave(cuda_copy *copy)
{
    const cuda_move *walk = &copy->walk;
    const int32_t last = walk->rank - 1, planes = copy->size <= 4 ? plane_axis(walk) : -1;
    const int64_t n = 16 / copy->size;
    if (planes < 0 || walk->strides[0][last] != 1 || walk->dims[last] % n || walk->strides[0][planes] % n ||
        copy->to_offset % n || copy->from_offset % n)
        return;
    cuda_walk_begin(&copy->grouped);
    for (int32_t i = 0; i < last; i++) {
        const int64_t strides[2] = {walk->strides[0][i], walk->strides[1][i]};
        if (i == planes)
            continue;
        if (strides[0] % n || strides[1] % n)
            return;
        cuda_walk_axis(&copy->grouped, walk->dims[i], strides);
    }
    const int64_t strides[2] = {n, n * walk->dims[planes]};
    cuda_walk_axis(&copy->grouped, walk->dims[last] / n, strides);
    cuda_walk_end(&copy->grouped);
    copy->planes = (int32_t)walk->dims[planes];
    copy->apart = true;
    copy->plane = walk->strides[0][planes];
}

/* True if the last axis, a few planes, can be interleaved into the one before it. */
void plan_weave(cuda_copy *copy)
{
    const cuda_move *walk = &copy->walk;
    const int32_t last = walk->rank - 1, along = last - 1;
    const int64_t n = 16 / copy->size;
    if (along < 0 || copy->size > 4 || walk->dims[last] < 2 || walk->dims[last] > 4 ||
        walk->strides[0][last] != 1 || walk->strides[1][along] != 1 ||
        walk->strides[0][along] != walk->dims[last] || walk->dims[along] % n || walk->strides[1][last] % n ||
        copy->to_offset % n || copy->from_offset % n)
        return;
    cuda_walk_begin(&copy->grouped);
    for (int32_t i = 0; i < along; i++) {
        const int64_t strides[2] = {walk->strides[0][i], walk->strides[1][i]};
        if (strides[0] % n || strides[1] % n)
            return;
        cuda_walk_axis(&copy->grouped, walk->dims[i], strides);
    }
    const int64_t strides[2] = {walk->strides[0][along] * n, n};
    cuda_walk_axis(&copy->grouped, walk->dims[along] / n, strides);
    cuda_walk_end(&copy->grouped);
    copy->planes = (int32_t)walk->dims[last];
    copy->plane = walk->strides[1][last];
}

template <typename T>
grt_status fill(void *dst, int64_t n, const void *host, const void *device, cudaStream_t stream)
{
    T value;
    memset(&value, 0, sizeof value);
    if (host)
        memcpy(&value, host, sizeof value);
    CUDA_TRY(overlap_launch(overlap_is_possible(), fill_kernel<T>, cuda_grid(n), CUDA_BLOCK, 0, stream, n,
                            (T *)dst, value, (const T *)device));
    return GRT_OK;
}

} // namespace

void cuda_copy_begin(cuda_copy *copy, grt_dtype dtype)
{
    memset(copy, 0, sizeof *copy);
    cuda_walk_begin(&copy->walk);
    copy->size = (int32_t)grt_dtype_size(dtype);
}

void cuda_copy_axis(cuda_copy *copy, int64_t dim, int64_t to, int64_t from)
{
    int64_t strides[2] = {to, from};
    cuda_walk_axis(&copy->walk, dim, strides);
}

void cuda_copy_end(cuda_copy *copy)
{
    cuda_walk_end(&copy->walk);
    cuda_move *walk = &copy->walk;
    int32_t last = walk->rank - 1;
    copy->vector = 1;
    copy->tile_axis = -1;
    if (walk->total <= 0)
        return;
    if (walk->strides[1][last] == 1) {
        int v = cuda_walk_vector(walk, 16 / copy->size);
        while (v > 1 && (copy->to_offset % v || copy->from_offset % v))
            v /= 2;
        copy->vector = v;
        if (v > 1)
            copy->grouped = cuda_walk_grouped(walk, v);
        copy->shifted = plan_shifted(copy);
        return;
    }
    plan_weave(copy);
    if (!copy->planes)
        plan_unweave(copy);
    if (walk->strides[0][last] != 1 || walk->strides[1][last] == 0 || walk->dims[last] < TILE_WORTH)
        return;
    for (int32_t i = 0; i < last; i++)
        if (walk->strides[1][i] == 1 && walk->dims[i] >= TILE_WORTH)
            copy->tile_axis = i;
}

grt_status cuda_copy_run(const cuda_copy *copy, void *dst, const void *src, cudaStream_t stream)
{
    if (copy->walk.total <= 0)
        return GRT_OK;
    dst = (char *)dst + copy->to_offset * copy->size;
    src = (const char *)src + copy->from_offset * copy->size;
    if (copy->tile_axis >= 0)
        return CUDA_BY_SIZE(copy->size, run_tiled, copy, dst, src, stream);
    if (copy->planes && cuda_aligned(dst, 16) && cuda_aligned(src, 16))
        return copy->size == 1   ? run_woven<uint8_t>(copy, dst, src, stream)
               : copy->size == 2 ? run_woven<uint16_t>(copy, dst, src, stream)
                                 : run_woven<uint32_t>(copy, dst, src, stream);
    if (copy->shifted && cuda_aligned(dst, 16))
        return copy->size == 1 ? run_shifted<uint8_t>(copy, dst, src, stream)
                               : run_shifted<uint16_t>(copy, dst, src, stream);
    int32_t bytes = copy->size * copy->vector;
    if (copy->vector > 1 && cuda_aligned(dst, (size_t)bytes) && cuda_aligned(src, (size_t)bytes))
        return CUDA_BY_SIZE(bytes, run_plain, &copy->grouped, copy->size, dst, src, stream);
    return CUDA_BY_SIZE(copy->size, run_plain, &copy->walk, copy->size, dst, src, stream);
}

grt_status cuda_fill(void *dst, size_t size, int64_t n, const void *host, const void *device,
                     cudaStream_t stream)
{
    if (n <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(size, fill, dst, n, host, device, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See group_norm.h. Moments are joined by the differences of means (Chan), and within a thread taken around
 * its first element, so that a large mean costs no digits. */
#include "backends/cuda/group_norm.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/walk.h"
#include "src/base/checked.h"

namespace
{

/* A block takes about 40 us for 16,384 elements of its group; the three kernels here take 6. */
enum { THREADS = 256, LEAST = 1 << 16, LEAST_GROUP = 1 << 12, ROWS_EACH = 8, APPLIED_ROWS = 8 };

struct moments {
    float count, mean, squares; /* squares: of the differences from the mean */
};
/* y = (x - mean) * factor + bias */
struct affine {
    float mean, factor, bias;
};

__device__ __forceinline__ float normalised(const affine &a, float x)
{
    return (x - a.mean) * a.factor + a.bias;
}

/* y, with the activation if there is one, as N numbers of type T. */
template <class T, bool ACTS, int N>
__device__ __forceinline__ void finish(const grt_act &act, float (&y)[N], T *to)
{
    if constexpr (ACTS)
        cuda_activate_all<T, N>(act, y);
#pragma unroll
    for (int k = 0; k < N; k++)
        to[k] = cuda_narrow<T, float>(y[k]);
}

/* What one thread adds up around a value of its own. */
struct gathered {
    float around, sum, squares;

    __device__ __forceinline__ void add(float v)
    {
        const float d = v - around;
        sum += d;
        squares += d * d;
    }
    __device__ __forceinline__ moments of(float count) const
    {
        if (count == 0)
            return {0, 0, 0};
        const float shift = sum / count;
        return {count, around + shift, squares - sum * shift};
    }
};

template <class T>
__global__ void __launch_bounds__(THREADS)
    gather_first(const __grid_constant__ cuda_group_norm g, const T *x, moments *parts)
{
    enum { N = cuda_vector<T>::N };
    const int64_t n = g.per_group * g.pixels, row = blockIdx.x / g.shares, share = blockIdx.x % g.shares;
    const int64_t per_share = (n + g.shares - 1) / g.shares, begin = share * per_share;
    int64_t count = n - begin < per_share ? n - begin : per_share;
    count = count > 0 ? count : 0;
    const T *from = x + row * n + begin;
    /* Elements before and behind the vectors of 16 bytes. */
    int64_t head = (int64_t)(((16 - ((uintptr_t)from & 15)) & 15) / sizeof(T));
    head = head < count ? head : count;
    const int64_t vectors = (count - head) / N, tail = count - head - vectors * N;
    const cuda_vector<T> *body = (const cuda_vector<T> *)(from + head);
    const int thread = (int)threadIdx.x;
    gathered mine = {count ? cuda_widen(from[thread < count ? thread : 0]) : 0, 0, 0};
    float taken = 0;
    for (int64_t i = thread; i < vectors; i += THREADS) {
        const cuda_vector<T> pack = body[i];
        taken += N;
#pragma unroll
        for (int k = 0; k < N; k++)
            mine.add(cuda_widen(pack.v[k]));
    }
    for (int64_t i = thread; i < head + tail; i += THREADS) {
        mine.add(cuda_widen(from[i < head ? i : vectors * N + i]));
        taken++;
    }
    const moments m = mine.of(taken);
    const float total = (float)count;
    const float mean = count ? cuda_row_reduce<THREADS, cuda_sum, float>(m.count * m.mean, 0) / total : 0;
    const float off = m.mean - mean;
    const float squares = cuda_row_reduce<THREADS, cuda_sum, float>(m.squares + m.count * off * off, 0);
    if (thread == 0)
        parts[row * g.shares + share] = {total, mean, squares};
}

template <class T, bool ACTS>
__global__ void __launch_bounds__(THREADS)
    apply_first(const __grid_constant__ cuda_group_norm g, int64_t n, cuda_divisor pixels, const affine *by,
                const T *x, T *y)
{
    enum { N = cuda_vector<T>::N };
    CUDA_EACH(i, (n + N - 1) / N)
    {
        const uint32_t first = (uint32_t)i * N, plane = cuda_divide(first, pixels),
                       left = (plane + 1) * pixels.divisor - first; /* of this plane */
        const affine a = by[plane], b = left < N && first + left < n ? by[plane + 1] : a;
        if (first + N <= n) {
            const cuda_vector<T> pack = ((const cuda_vector<T> *)x)[i];
            cuda_vector<T> out;
            float v[N];
#pragma unroll
            for (uint32_t k = 0; k < N; k++)
                v[k] = normalised(k < left ? a : b, cuda_widen(pack.v[k]));
            finish<T, ACTS, N>(g.act, v, out.v);
            ((cuda_vector<T> *)y)[i] = out;
        } else {
            for (uint32_t k = first; k < n; k++) {
                float v[1] = {normalised(k - first < left ? a : b, cuda_widen(x[k]))};
                finish<T, ACTS, 1>(g.act, v, y + k);
            }
        }
    }
}

struct last_form {
    int vectors, lanes; /* of a pixel; pixels at a time */
};
__host__ __device__ inline last_form form_of(const cuda_group_norm &g, int n)
{
    const int vectors = (int)(g.groups * g.per_group / n);
    return {vectors, THREADS / vectors};
}

/* The moments of a group out of those of its channels in all lanes, by one thread or by a warp: `step` of
 * them, this one being `first`. */
__device__ __forceinline__ moments join_group(const moments *all, int channels, int lanes, int group,
                                              int per_group, int first, int step)
{
    float count = 0, sum = 0, squares = 0;
    for (int i = first; i < lanes * per_group; i += step) {
        const moments &m = all[i / per_group * channels + group * per_group + i % per_group];
        count += m.count;
        sum += m.count * m.mean;
    }
    if (step == 32) {
        count = cuda_warp_reduce<cuda_sum, float>(count);
        sum = cuda_warp_reduce<cuda_sum, float>(sum);
    }
    const float mean = count > 0 ? sum / count : 0;
    for (int i = first; i < lanes * per_group; i += step) {
        const moments &m = all[i / per_group * channels + group * per_group + i % per_group];
        squares += m.squares + m.count * (m.mean - mean) * (m.mean - mean);
    }
    if (step == 32)
        squares = cuda_warp_reduce<cuda_sum, float>(squares);
    return {count, mean, squares};
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    gather_last(const __grid_constant__ cuda_group_norm g, const cuda_vector<T> *x, moments *parts)
{
    enum { N = cuda_vector<T>::N };
    __shared__ moments all[THREADS * N];
    const last_form form = form_of(g, N);
    const int lane = threadIdx.x / form.vectors, vector = threadIdx.x % form.vectors;
    const int64_t image = blockIdx.x / g.shares, share = blockIdx.x % g.shares;
    const int64_t per_share = (g.pixels + g.shares - 1) / g.shares, begin = share * per_share;
    const int64_t end = begin + per_share < g.pixels ? begin + per_share : g.pixels;
    if (lane < form.lanes) {
        const cuda_vector<T> *from = x + image * g.pixels * form.vectors + vector;
        gathered mine[N] = {};
        float taken = 0;
        if (begin + lane < end) {
            const cuda_vector<T> pack = from[(begin + lane) * form.vectors];
#pragma unroll
            for (int k = 0; k < N; k++)
                mine[k].around = cuda_widen(pack.v[k]);
        }
#pragma unroll 4
        for (int64_t p = begin + lane; p < end; p += form.lanes) {
            const cuda_vector<T> pack = from[p * form.vectors];
            taken++;
#pragma unroll
            for (int k = 0; k < N; k++)
                mine[k].add(cuda_widen(pack.v[k]));
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            all[(lane * form.vectors + vector) * N + k] = mine[k].of(taken);
    }
    __syncthreads();
    const int channels = form.vectors * N, per_group = (int)g.per_group;
    const int step = form.lanes * per_group <= 32 ? 1 : 32, first = step == 1 ? 0 : (int)threadIdx.x % 32;
    for (int group = (int)threadIdx.x / step; group < g.groups; group += THREADS / step) {
        const moments m = join_group(all, channels, form.lanes, group, per_group, first, step);
        if (first == 0)
            parts[(image * g.groups + group) * g.shares + share] = m;
    }
}

template <class T, bool ACTS>
__global__ void __launch_bounds__(THREADS)
    apply_last(const __grid_constant__ cuda_group_norm g, int64_t shares, const affine *by,
               const cuda_vector<T> *x, cuda_vector<T> *y)
{
    enum { N = cuda_vector<T>::N };
    const last_form form = form_of(g, N);
    const int lane = threadIdx.x / form.vectors, vector = threadIdx.x % form.vectors;
    const int64_t image = blockIdx.x / shares, share = blockIdx.x % shares;
    const int64_t per_share = (g.pixels + shares - 1) / shares, begin = share * per_share;
    const int64_t end = begin + per_share < g.pixels ? begin + per_share : g.pixels;
    if (lane >= form.lanes)
        return;
    affine mine[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        mine[k] = by[image * form.vectors * N + vector * N + k];
    const int64_t at = image * g.pixels * form.vectors + vector;
#pragma unroll 2
    for (int64_t p = begin + lane; p < end; p += form.lanes) {
        const cuda_vector<T> pack = x[at + p * form.vectors];
        cuda_vector<T> out;
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = normalised(mine[k], cuda_widen(pack.v[k]));
        finish<T, ACTS, N>(g.act, v, out.v);
        y[at + p * form.vectors] = out;
    }
}

/* A warp per group of an image: its shares' moments become what its channels are multiplied by. */
__global__ void __launch_bounds__(THREADS)
    conclude(const __grid_constant__ cuda_group_norm g, const moments *parts, const void *scale,
             const void *bias, affine *by)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= g.batch * g.groups)
        return;
    const moments *from = parts + row * g.shares;
    float sum = 0, squares = 0;
    const float count = (float)(g.per_group * g.pixels);
    for (int64_t i = lane; i < g.shares; i += 32)
        sum += from[i].count * from[i].mean;
    const float mean = cuda_warp_reduce<cuda_sum, float>(sum) / count;
    for (int64_t i = lane; i < g.shares; i += 32)
        squares += from[i].squares + from[i].count * (from[i].mean - mean) * (from[i].mean - mean);
    squares = cuda_warp_reduce<cuda_sum, float>(squares);
    const float inverse = 1 / sqrtf(squares / count + g.epsilon);
    const int64_t first = row % g.groups * g.per_group;
    for (int64_t i = lane; i < g.per_group; i += 32)
        by[row * g.per_group + i] = {mean, inverse * cuda_load<float>(scale, g.scale_dtype, first + i),
                                     cuda_load<float>(bias, g.bias_dtype, first + i)};
}

template <class T, bool ACTS>
void apply(const cuda_group_norm *g, const affine *by, const void *x, void *y, cudaStream_t stream)
{
    const int64_t n = g->batch * g->groups * g->per_group * g->pixels;
    if (g->last) {
        const int64_t at_once = form_of(*g, cuda_vector<T>::N).lanes * (int64_t)APPLIED_ROWS,
                      shares = (g->pixels + at_once - 1) / at_once;
        apply_last<T, ACTS><<<(unsigned)(g->batch * shares), THREADS, 0, stream>>>(
            *g, shares, by, (const cuda_vector<T> *)x, (cuda_vector<T> *)y);
    } else {
        apply_first<T, ACTS><<<cuda_blocks(n / cuda_vector<T>::N + 1, THREADS), THREADS, 0, stream>>>(
            *g, n, cuda_divisor_of(g->pixels), by, (const T *)x, (T *)y);
    }
}

template <class T>
void cuda_group_norm_launch(const cuda_group_norm *g, const void *x, const void *scale, const void *bias,
                            void *y, void *workspace, cudaStream_t stream)
{
    const int64_t rows = g->batch * g->groups;
    moments *parts = (moments *)workspace;
    affine *by = (affine *)(parts + rows * g->shares);
    if (g->last)
        gather_last<T>
            <<<(unsigned)(g->batch * g->shares), THREADS, 0, stream>>>(*g, (const cuda_vector<T> *)x, parts);
    else
        gather_first<T><<<(unsigned)(rows * g->shares), THREADS, 0, stream>>>(*g, (const T *)x, parts);
    conclude<<<cuda_blocks(rows * 32, THREADS), THREADS, 0, stream>>>(*g, parts, scale, bias, by);
    if (g->act.kind == GRT_ACT_NONE)
        apply<T, false>(g, by, x, y, stream);
    else
        apply<T, true>(g, by, x, y, stream);
}

} // namespace

bool cuda_group_norm_plan(cuda_group_norm *g, grt_dtype dtype, int multiprocessors)
{
    if (dtype != GRT_DTYPE_FLOAT && dtype != GRT_DTYPE_FLOAT16 && dtype != GRT_DTYPE_BFLOAT16)
        return false;
    const int64_t size = (int64_t)grt_dtype_size(dtype), n = 16 / size;
    if (g->batch <= 0 || g->groups <= 0 || g->per_group <= 0 || g->pixels <= 0)
        return false;
    const int64_t channels = g->groups * g->per_group, image = grt_mul_saturated(channels, g->pixels),
                  all = grt_mul_saturated(g->batch, image), rows = g->batch * g->groups;
    const int64_t group = grt_mul_saturated(g->per_group, g->pixels);
    if ((all < LEAST && group < LEAST_GROUP) || all > INT32_MAX - 64 || rows > 1 << 20)
        return false;
    int64_t wanted, most;
    if (g->last) {
        if (channels % n || channels / n > THREADS)
            return false;
        wanted = 2 * (int64_t)multiprocessors / g->batch;
        most = g->pixels / (form_of(*g, (int)n).lanes * (int64_t)ROWS_EACH);
    } else {
        if (g->pixels < n)
            return false;
        wanted = 2 * (int64_t)multiprocessors / rows;
        most = g->per_group * g->pixels / (THREADS * n * 2);
    }
    g->shares = wanted < most ? wanted : most;
    g->shares = g->shares > 1 ? g->shares : 1;
    return true;
}

size_t cuda_group_norm_workspace(const cuda_group_norm *g)
{
    const int64_t rows = g->batch * g->groups;
    return (size_t)(rows * g->shares) * sizeof(moments) + (size_t)(rows * g->per_group) * sizeof(affine);
}

bool cuda_group_norm_run(const cuda_group_norm *g, grt_dtype dtype, const void *x, const void *scale,
                         const void *bias, void *y, void *workspace, cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(y))
        return false;
    if (dtype == GRT_DTYPE_FLOAT)
        cuda_group_norm_launch<float>(g, x, scale, bias, y, workspace, stream);
    else if (dtype == GRT_DTYPE_FLOAT16)
        cuda_group_norm_launch<__half>(g, x, scale, bias, y, workspace, stream);
    else
        cuda_group_norm_launch<__nv_bfloat16>(g, x, scale, bias, y, workspace, stream);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and the pools over whole images, with channels first or (domain graphrt) last. One
 * thread per result of a window; a group of threads per result of a whole image. */
#include "backends/cuda/columns.h"
#include "backends/cuda/max_bytes.cuh"
#include "backends/cuda/number.cuh"
#include "backends/cuda/overlap.cuh"

extern "C" {
#include "backends/shared/window.h"
}

#include <limits>
#include <math_constants.h>
#include <stdlib.h>

enum { SPATIAL = 3, THREADS = 256 };

/* ---- windows ---- */

/* Always three dims: leading ones of size 1. */
typedef struct pool_shape {
    bool last, max, count_padding, column_major;
    int64_t batch, channels, n; /* n: results */
    int64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], begin[SPATIAL],
        end[SPATIAL];
} pool_shape;

template <class T> struct pool_number {
    static __device__ __forceinline__ typename cuda_wide<T>::type lowest()
    {
        return -CUDART_INF_F;
    }
};
template <> struct pool_number<int8_t> {
    static __device__ __forceinline__ float lowest()
    {
        return -128;
    }
};
template <> struct pool_number<uint8_t> {
    static __device__ __forceinline__ float lowest()
    {
        return 0;
    }
};

template <class T>
__global__ void __launch_bounds__(THREADS)
    pool(const __grid_constant__ pool_shape s, const T *x, T *y, int64_t *indices)
{
    using W = typename cuda_wide<T>::type;
    CUDA_EACH(i, s.n)
    {
        int64_t rest = i, channel = 0, o[SPATIAL], first[SPATIAL], from[SPATIAL], to[SPATIAL], count = 1;
        if (s.last) {
            channel = rest % s.channels;
            rest /= s.channels;
        }
        for (int d = SPATIAL - 1; d >= 0; d--) {
            o[d] = rest % s.out[d];
            rest /= s.out[d];
            const int64_t at = o[d] * s.stride[d] - s.begin[d], step = s.dilation[d];
            first[d] = at;
            from[d] = at < 0 ? (-at + step - 1) / step : 0;
            const int64_t last = at < s.in[d] ? (s.in[d] - at + step - 1) / step : 0;
            to[d] = last < s.kernel[d] ? last : s.kernel[d];
            if (s.count_padding) { /* padding counts, but not what lies behind it */
                const int64_t room = s.in[d] + s.end[d] - at, taps = room > 0 ? (room + step - 1) / step : 0;
                count *= taps < s.kernel[d] ? taps : s.kernel[d];
            } else {
                count *= to[d] > from[d] ? to[d] - from[d] : 0;
            }
        }
        const int64_t pixels = s.in[0] * s.in[1] * s.in[2];
        /* Channels first: rest is the plane; last: the image. */
        const T *base = s.last ? x + rest * pixels * s.channels + channel : x + rest * pixels;
        const int64_t step = s.last ? s.channels : 1;
        W value = s.max ? pool_number<T>::lowest() : (W)0;
        int64_t best = -1;
        for (int64_t a = from[0]; a < to[0]; a++)
            for (int64_t b = from[1]; b < to[1]; b++)
                for (int64_t c = from[2]; c < to[2]; c++) {
                    const int64_t p = first[0] + a * s.dilation[0], q = first[1] + b * s.dilation[1];
                    const int64_t t = first[2] + c * s.dilation[2];
                    const W v = cuda_widen(base[((p * s.in[1] + q) * s.in[2] + t) * step]);
                    if (!s.max) {
                        value += v;
                    } else if (best < 0 || v > value) {
                        value = v;
                        best = s.column_major ? (t * s.in[1] + q) * s.in[0] + p
                                              : (p * s.in[1] + q) * s.in[2] + t;
                    }
                }
        if (!s.max && count > 0)
            value /= (W)count;
        y[i] = cuda_narrow<T, W>(value);
        if (indices)
            indices[i] = rest * pixels + (best < 0 ? 0 : best);
    }
}

/* Channels last: 16 bytes of channels a thread, sizes below 2^31. */
typedef struct pool_volume {
    bool max, count_padding;
    int vectors, in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL],
        begin[SPATIAL], end[SPATIAL]; /* vectors: of a pixel's channels */
    uint32_t n;                       /* results, in vectors */
} pool_volume;

/* The taps of a window along a dim that lie inside, and where the first of all lies. */
struct taps {
    int first, from, to;
};

static __device__ __forceinline__ taps pool_taps_of(const pool_volume &s, int d, int at)
{
    const int first = at * s.stride[d] - s.begin[d], dilation = s.dilation[d];
    return {first, first < 0 ? (-first + dilation - 1) / dilation : 0,
            first >= s.in[d] ? 0 : min(s.kernel[d], (s.in[d] - first + dilation - 1) / dilation)};
}

/* f(where a tap's vector lies) for all that lie inside, in the order of memory. */
template <class F>
static __device__ __forceinline__ void each_tap(const pool_volume &s, const taps *t, const F &f)
{
    for (int a = t[0].from; a < t[0].to; a++)
        for (int b = t[1].from; b < t[1].to; b++) {
            const int line = (t[0].first + a * s.dilation[0]) * s.in[1] + t[1].first + b * s.dilation[1];
            for (int c = t[2].from; c < t[2].to; c++)
                f((size_t)(line * s.in[2] + t[2].first + c * s.dilation[2]) * s.vectors);
        }
}

enum { FEW_TAPS = 3 };

static __device__ __forceinline__ bool has_few_taps(const pool_volume &s, const taps *t)
{
    return s.kernel[0] == 1 && s.kernel[1] <= FEW_TAPS && s.kernel[2] <= FEW_TAPS && t[0].from < t[0].to &&
           t[1].from < t[1].to && t[2].from < t[2].to;
}

/* The largest bytes of a window. Few taps are on their way together; twice the same changes nothing. */
template <class T>
static __device__ __forceinline__ uint4 largest_of(const pool_volume &s, const taps *t, const uint4 *image)
{
    max_bytes<(T)-1 < 0> largest;
    if (!has_few_taps(s, t)) {
        each_tap(s, t, [&](size_t at) { largest.add(image[at]); });
        return largest.largest();
    }
    uint4 bytes[FEW_TAPS][FEW_TAPS];
#pragma unroll
    for (int b = 0; b < FEW_TAPS; b++) {
        const int down = t[1].first + min(t[1].from + b, t[1].to - 1) * s.dilation[1],
                  line = (t[0].first * s.in[1] + down) * s.in[2] + t[2].first;
#pragma unroll
        for (int c = 0; c < FEW_TAPS; c++)
            bytes[b][c] = image[(size_t)(line + min(t[2].from + c, t[2].to - 1) * s.dilation[2]) * s.vectors];
    }
#pragma unroll
    for (int b = 0; b < FEW_TAPS; b++)
#pragma unroll
        for (int c = 0; c < FEW_TAPS; c++)
            largest.add(bytes[b][c]);
    return largest.largest();
}

/* Taps that lie inside or in the padding. */
static __device__ __forceinline__ int taps_with_padding(const pool_volume &s, const taps *t)
{
    int count = 1;
    for (int d = 0; d < SPATIAL; d++) {
        const int room = s.in[d] + s.end[d] - t[d].first;
        count *= room <= 0 ? 0 : min(s.kernel[d], (room + s.dilation[d] - 1) / s.dilation[d]);
    }
    return count;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    pool_vectors(const __grid_constant__ pool_volume s, const cuda_vector<T> *x, cuda_vector<T> *y)
{
    enum { N = cuda_vector<T>::N };
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    overlap_let_next_begin();
    overlap_wait();
    if (i >= s.n)
        return;
    const uint32_t vector = i % s.vectors, pixel = i / s.vectors, line = pixel / s.out[2],
                   plane = line / s.out[1];
    const taps t[] = {pool_taps_of(s, 0, (int)(plane % s.out[0])), pool_taps_of(s, 1, (int)(line % s.out[1])),
                      pool_taps_of(s, 2, (int)(pixel % s.out[2]))};
    const cuda_vector<T> *image =
        x + (size_t)(plane / s.out[0]) * s.in[0] * s.in[1] * s.in[2] * s.vectors + vector;
    if constexpr (sizeof(T) == 1)
        if (s.max) {
            ((uint4 *)y)[i] = largest_of<T>(s, t, (const uint4 *)image);
            return;
        }
    float value[N];
    int count = 0;
#pragma unroll
    for (int j = 0; j < N; j++)
        value[j] = s.max ? -CUDART_INF_F : 0.0f;
    each_tap(s, t, [&](size_t at) {
        const cuda_vector<T> pack = image[at];
        count++;
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float v = cuda_widen(pack.v[j]);
            value[j] = !s.max ? value[j] + v : count == 1 || v > value[j] ? v : value[j];
        }
    });
    if (s.count_padding)
        count = taps_with_padding(s, t);
    cuda_vector<T> result;
#pragma unroll
    for (int j = 0; j < N; j++)
        result.v[j] = cuda_narrow<T, float>(s.max || count == 0 ? value[j] : value[j] / (float)count);
    y[i] = result;
}

template <class T> static bool cuda_pool_launch_vectors(const pool_shape *s, const grt_run *r)
{
    const int64_t n = cuda_vector<T>::N, x_n = grt_tensor_elements(r->in[0]);
    if (!s->last || s->channels % n || x_n >= INT32_MAX || s->n >= INT32_MAX || (r->n_out > 1 && r->out[1]) ||
        !cuda_is_vector(r->in[0]->data) || !cuda_is_vector(r->out[0]->data))
        return false;
    pool_volume p = {s->max, s->count_padding, (int)(s->channels / n)};
    for (int d = 0; d < SPATIAL; d++) {
        const int64_t all[] = {s->in[d],       s->out[d],   s->kernel[d], s->stride[d],
                               s->dilation[d], s->begin[d], s->end[d]};
        int *const to[] = {p.in + d,       p.out + d,   p.kernel + d, p.stride + d,
                           p.dilation + d, p.begin + d, p.end + d};
        for (int k = 0; k < 7; k++) {
            if (all[k] > 1 << 24 || all[k] < -(1 << 24))
                return false;
            *to[k] = (int)all[k];
        }
        if ((int64_t)p.kernel[d] * p.dilation[d] > 1 << 28 || (int64_t)p.out[d] * p.stride[d] > 1 << 28)
            return false;
    }
    p.n = (uint32_t)(s->n / n);
    overlap_launch(((const cuda_device *)r->device)->prop.major >= 9, pool_vectors<T>,
                   (p.n + THREADS - 1) / THREADS, THREADS, 0, (cudaStream_t)r->stream, p,
                   (const cuda_vector<T> *)r->in[0]->data, (cuda_vector<T> *)r->out[0]->data);
    return true;
}

static bool pool_supports(const grt_kernel_node *node, grt_text *why)
{
    if (node->in[0].rank <= 2 + SPATIAL)
        return true;
    if (why)
        grt_text_add(why, "the input has %d spatial dims; supported are up to %d", node->in[0].rank - 2,
                     SPATIAL);
    return false;
}

static grt_status cuda_pool_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *y = r->out[0];
    const int32_t spatial = x->rank - 2;
    if (spatial < 1 || spatial > SPATIAL)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                           "the input has %d spatial dims; the CUDA backend supports 1 to %d", spatial,
                           SPATIAL);
    pool_shape *s = (pool_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->last = grt_channels_last(r->desc);
    s->max = !strcmp(r->desc->op, "MaxPool");
    s->count_padding = grt_attr_int(r->desc, "count_include_pad", 0) != 0;
    s->column_major = grt_attr_int(r->desc, "storage_order", 0) != 0;
    s->batch = x->dims[0];
    s->channels = x->dims[s->last ? x->rank - 1 : 1];
    s->n = grt_tensor_elements(y);
    cpu_window w;
    const int32_t at = s->last ? 1 : 2, skip = SPATIAL - spatial;
    cpu_window_read(r->desc, spatial, x->dims + at, y->dims + at, NULL, false, &w);
    for (int32_t d = 0; d < SPATIAL; d++) {
        const bool real = d >= skip;
        s->in[d] = real ? w.in[d - skip] : 1;
        s->out[d] = real ? w.out[d - skip] : 1;
        s->kernel[d] = real ? w.kernel[d - skip] : 1;
        s->stride[d] = real ? w.stride[d - skip] : 1;
        s->dilation[d] = real ? w.dilation[d - skip] : 1;
        s->begin[d] = real ? w.begin[d - skip] : 0;
        s->end[d] = real ? w.end[d - skip] : 0;
    }
    r->shape = s;
    return GRT_OK;
}

template <class T> static void launch_pool(const pool_shape *s, const grt_run *r)
{
    if constexpr (sizeof(T) <= 4) /* all but double */
        if (cuda_pool_launch_vectors<T>(s, r))
            return;
    int64_t *indices = r->n_out > 1 && r->out[1] ? (int64_t *)r->out[1]->data : NULL;
    pool<T><<<cuda_blocks(s->n, THREADS), THREADS, 0, (cudaStream_t)r->stream>>>(
        *s, (const T *)r->in[0]->data, (T *)r->out[0]->data, indices);
}

static grt_status cuda_pool_run(const grt_run *r)
{
    const pool_shape *s = (const pool_shape *)r->shape;
    const grt_dtype dtype = r->in[0]->dtype;
    if (s->n == 0)
        return GRT_OK;
    if (dtype == GRT_DTYPE_INT8)
        launch_pool<int8_t>(s, r);
    else if (dtype == GRT_DTYPE_UINT8)
        launch_pool<uint8_t>(s, r);
    else
        CUDA_FOR_FLOATS(dtype, T, launch_pool<T>(s, r));
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* ---- whole images ---- */

enum global_kind { AVERAGE, MAXIMUM, LP };

typedef struct global_shape {
    bool last;
    int kind;
    double power;
    int64_t batch, channels, pixels;
    bool by_columns;
    cuda_columns columns; /* channels last, in sizes that these take */
} global_shape;

template <class W> __device__ __forceinline__ W gather(const global_shape &s, W value, W v)
{
    if (s.kind == MAXIMUM)
        return cuda_top::join<W>(v, value);
    return value + (s.kind == LP ? (W)pow(v < 0 ? -v : v, (W)s.power) : v);
}

template <class W> __device__ __forceinline__ W concluded(const global_shape &s, W value)
{
    return s.kind == MAXIMUM ? value : s.kind == LP ? (W)pow(value, 1 / (W)s.power) : value / (W)s.pixels;
}

/* Channels first: a warp per plane. */
template <class T> __global__ void __launch_bounds__(THREADS) global_first(global_shape s, const T *x, T *y)
{
    using W = typename cuda_wide<T>::type;
    const int lane = threadIdx.x & 31;
    const int64_t per_block = THREADS / 32;
    for (int64_t plane = blockIdx.x * per_block + threadIdx.x / 32; plane < s.batch * s.channels;
         plane += gridDim.x * per_block) {
        W value = s.kind == MAXIMUM ? (W)-CUDART_INF_F : (W)0;
        for (int64_t i = lane; i < s.pixels; i += 32)
            value = gather<W>(s, value, cuda_widen(x[plane * s.pixels + i]));
        value =
            s.kind == MAXIMUM ? cuda_warp_reduce<cuda_top, W>(value) : cuda_warp_reduce<cuda_sum, W>(value);
        if (lane == 0)
            y[plane] = cuda_narrow<T, W>(concluded<W>(s, value));
    }
}

/* Channels last: blocks of 32 channels x 8 shares of the pixels. */
template <class T> __global__ void __launch_bounds__(THREADS) global_last(global_shape s, const T *x, T *y)
{
    using W = typename cuda_wide<T>::type;
    __shared__ W part[8][33];
    const int64_t groups = (s.channels + 31) / 32;
    for (int64_t task = blockIdx.x; task < s.batch * groups; task += gridDim.x) {
        const int64_t image = task / groups, channel = task % groups * 32 + threadIdx.x % 32;
        W value = s.kind == MAXIMUM ? (W)-CUDART_INF_F : (W)0;
        for (int64_t i = threadIdx.x / 32; channel < s.channels && i < s.pixels; i += 8)
            value = gather<W>(s, value, cuda_widen(x[(image * s.pixels + i) * s.channels + channel]));
        part[threadIdx.x / 32][threadIdx.x % 32] = value;
        __syncthreads();
        if (threadIdx.x < 32 && channel < s.channels) {
            for (int k = 1; k < 8; k++)
                value = s.kind == MAXIMUM ? cuda_top::join<W>(part[k][threadIdx.x], value)
                                          : value + part[k][threadIdx.x];
            y[image * s.channels + channel] = cuda_narrow<T, W>(concluded<W>(s, value));
        }
        __syncthreads();
    }
}

static grt_status cuda_global_pool_reshape(grt_reshape *r)
{
    global_shape *s = (global_shape *)calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_tensor *x = r->in[0];
    s->last = grt_channels_last(r->desc);
    s->kind = !strcmp(r->desc->op, "GlobalMaxPool")  ? MAXIMUM
              : !strcmp(r->desc->op, "GlobalLpPool") ? LP
                                                     : AVERAGE;
    s->power = (double)grt_attr_int(r->desc, "p", 2);
    s->batch = x->dims[0];
    s->channels = x->dims[s->last ? x->rank - 1 : 1];
    s->pixels = s->last ? grt_dims_product(x->dims, 1, x->rank - 1) : grt_dims_product(x->dims, 2, x->rank);
    s->columns.fold = s->kind == MAXIMUM ? CUDA_COLUMNS_MAX
                      : s->kind == LP    ? CUDA_COLUMNS_POWER
                                         : CUDA_COLUMNS_SUM;
    s->columns.divisor = (float)s->pixels;
    s->columns.power = (float)s->power;
    s->columns.outer = s->batch;
    s->columns.rows = s->pixels;
    s->columns.columns = s->channels;
    s->by_columns = s->last && cuda_columns_plan(&s->columns, x->dtype,
                                                 ((const cuda_device *)r->device)->prop.multiProcessorCount);
    if (s->by_columns)
        r->workspace_bytes = cuda_columns_workspace(&s->columns);
    r->shape = s;
    return GRT_OK;
}

template <class T> static void launch_global(const global_shape *s, const grt_run *r)
{
    const T *x = (const T *)r->in[0]->data;
    T *y = (T *)r->out[0]->data;
    cudaStream_t stream = (cudaStream_t)r->stream;
    if (s->last)
        global_last<T>
            <<<cuda_blocks(s->batch * ((s->channels + 31) / 32), 1), THREADS, 0, stream>>>(*s, x, y);
    else
        global_first<T><<<cuda_blocks(s->batch * s->channels, THREADS / 32), THREADS, 0, stream>>>(*s, x, y);
}

static grt_status cuda_global_pool_run(const grt_run *r)
{
    const global_shape *s = (const global_shape *)r->shape;
    if (s->batch * s->channels == 0)
        return GRT_OK;
    if (!s->by_columns || !cuda_columns_run(&s->columns, r->in[0]->dtype, r->in[0]->data, r->out[0]->data,
                                            r->workspace, (cudaStream_t)r->stream))
        CUDA_FOR_FLOATS(r->in[0]->dtype, T, launch_global<T>(s, r));
    CUDA_LAUNCHED();
    return GRT_OK;
}

#define WINDOW \
    .supports = pool_supports, .reshape = cuda_pool_reshape, .release_shape = free, .run = cuda_pool_run
#define GLOBAL                                                                             \
    .types = {GRT_SET_FLOATS}, .reshape = cuda_global_pool_reshape, .release_shape = free, \
    .run = cuda_global_pool_run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "MaxPool", .types = {GRT_SET_FLOATS | GRT_BIT(INT8) | GRT_BIT(UINT8)}, WINDOW},
    {.domain = "", .op = "AveragePool", .types = {GRT_SET_FLOATS}, WINDOW},
    {.domain = "", .op = "GlobalAveragePool", GLOBAL},
    {.domain = "", .op = "GlobalMaxPool", GLOBAL},
    {.domain = "", .op = "GlobalLpPool", GLOBAL},
    {.domain = "graphrt",
     .op = "MaxPool",
     .types = {GRT_SET_FLOATS | GRT_BIT(INT8) | GRT_BIT(UINT8)},
     WINDOW},
    {.domain = "graphrt", .op = "AveragePool", .types = {GRT_SET_FLOATS}, WINDOW},
    {.domain = "graphrt", .op = "GlobalAveragePool", GLOBAL},
};
CUDA_KERNELS(pool, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* See depthwise.h. Square windows of 3, 5 and 7 with one stride for both dims: a thread has two channels of a
 * small tile of the result, and turns what it reads into float32 once for all of the tile. Other windows: a
 * thread has 16 bytes of channels of one pixel, or fewer where channels are no whole vectors. */
#include "backends/cuda/depthwise.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/overlap_device.cuh"
#include "src/base/checked.h"

namespace
{

enum { THREADS = 128 };

struct plane {
    int channels, filters;                                                 /* of the input; of each of them */
    int units, in[2], out[2], kernel[2], stride[2], dilation[2], begin[2]; /* units of a pixel's channels */
    int strips, bands; /* of tiles: of a row, and of an image */
    uint32_t n;        /* threads */
    grt_act act;
};

template <class T> struct alignas(2 * sizeof(T)) duo {
    enum { N = 2 };
    T v[2];
};

template <class T> struct solo {
    enum { N = 1 };
    T v[1];
};

template <class T> __device__ __forceinline__ void widen(const duo<T> &from, float (&to)[2])
{
    to[0] = cuda_widen(from.v[0]);
    to[1] = cuda_widen(from.v[1]);
}

/* Two 16-bit numbers as they are moved: the compiler takes structs of them apart behind each load, so that
 * the next one waits. */
template <class T> __device__ __forceinline__ void widen_word(uint32_t word, float (&to)[2])
{
    widen<T>(*(const duo<T> *)&word, to);
}

/* Columns of one row of the input from `first` on; zeros outside. */
template <class T, int COLUMNS>
__device__ __forceinline__ void cuda_read_row(const plane &s, const duo<T> *row, int first,
                                              float (&to)[COLUMNS][2])
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        duo<T> pack = {};
        if ((unsigned)(first + c) < (unsigned)s.in[1])
            pack = row[(first + c) * s.units];
        widen<T>(pack, to[c]);
    }
}

/* A row of the window: KERNEL taps that are `units` apart. */
template <class T, int KERNEL>
__device__ __forceinline__ void read_taps(const plane &s, const duo<T> *w, float (&to)[KERNEL][2])
{
#pragma unroll
    for (int b = 0; b < KERNEL; b++)
        widen<T>(w[b * s.units], to[b]);
}

/* sum += a row of the window on a row of the input. */
template <int KERNEL, int STRIDE, int WIDE, int COLUMNS>
__device__ __forceinline__ void add_row(const float (&in)[COLUMNS][2], const float (&taps)[KERNEL][2],
                                        float *sum)
{
#pragma unroll
    for (int k = 0; k < WIDE; k++)
#pragma unroll
        for (int b = 0; b < KERNEL; b++)
#pragma unroll
            for (int j = 0; j < 2; j++)
                sum[2 * k + j] += in[k * STRIDE + b][j] * taps[b][j];
}

/* Residual, activation, out. */
template <class T, int WIDE, int TALL>
__device__ __forceinline__ void finish_tile(const plane &s, float (&sum)[TALL * WIDE * 2],
                                            const duo<T> *residual, duo<T> *y, int row, int column)
{
    if (residual) {
#pragma unroll
        for (int k = 0; k < TALL * WIDE; k++)
            if (row + k / WIDE < s.out[0] && column + k % WIDE < s.out[1]) {
                float more[2];
                widen<T>(residual[(k / WIDE * s.out[1] + k % WIDE) * s.units], more);
                sum[2 * k] += more[0];
                sum[2 * k + 1] += more[1];
            }
    }
    cuda_activate_all<T>(s.act, sum);
#pragma unroll
    for (int k = 0; k < TALL * WIDE; k++)
        if (row + k / WIDE < s.out[0] && column + k % WIDE < s.out[1])
            y[(k / WIDE * s.out[1] + k % WIDE) * s.units] = {cuda_narrow<T, float>(sum[2 * k]),
                                                             cuda_narrow<T, float>(sum[2 * k + 1])};
}

/* TALL x WIDE results of two channels. A window whose numbers would fill the registers is read row by row:
 * then TALL is 1. */
template <class T, int KERNEL, int STRIDE, int TALL, int WIDE>
__global__ void __launch_bounds__(THREADS)
    convolve_tile(const __grid_constant__ plane s, const duo<T> *x, const duo<T> *w, const duo<T> *bias,
                  const duo<T> *residual, duo<T> *y)
{
    enum { ROWS = (TALL - 1) * STRIDE + KERNEL, COLUMNS = (WIDE - 1) * STRIDE + KERNEL, HELD = KERNEL <= 5 };
    static_assert(HELD || TALL == 1, "a row of the window is read for one row of results");
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.n)
        return;
    const uint32_t unit = i % s.units, rest = i / s.units, strip = rest % s.strips, line = rest / s.strips;
    const int row = (int)(line % s.bands) * TALL, column = (int)strip * WIDE;
    const size_t image = line / s.bands;
    const int first_row = row * STRIDE - s.begin[0], first_column = column * STRIDE - s.begin[1];
    float taps[HELD ? KERNEL : 1][KERNEL][2], sum[TALL * WIDE * 2], start[2] = {};
    if (bias)
        widen<T>(bias[unit], start);
#pragma unroll
    for (int k = 0; k < TALL * WIDE * 2; k++)
        sum[k] = start[k % 2];
    if constexpr (HELD) {
#pragma unroll
        for (int a = 0; a < KERNEL; a++)
            read_taps<T>(s, w + a * KERNEL * s.units + unit, taps[a]);
    }
    const duo<T> *from = x + image * s.in[0] * s.in[1] * s.units + unit;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int p = first_row + r;
        if ((unsigned)p >= (unsigned)s.in[0])
            continue;
        float in[COLUMNS][2];
        cuda_read_row<T>(s, from + (size_t)p * s.in[1] * s.units, first_column, in);
        if constexpr (HELD) {
#pragma unroll
            for (int h = 0; h < TALL; h++)
                if (r >= h * STRIDE && r < h * STRIDE + KERNEL)
                    add_row<KERNEL, STRIDE, WIDE>(in, taps[r - h * STRIDE], sum + h * WIDE * 2);
        } else {
            read_taps<T>(s, w + r * KERNEL * s.units + unit, taps[0]);
            add_row<KERNEL, STRIDE, WIDE>(in, taps[0], sum);
        }
    }
    const size_t at = ((image * s.out[0] + row) * s.out[1] + column) * s.units + unit;
    finish_tile<T, WIDE, TALL>(s, sum, residual ? residual + at : residual, y + at, row, column);
}

/* WIDE results of one row, of two channels, where each channel of the input has several filters: the two may
 * be of one channel or of neighbours. Read row by row. */
template <class T, int KERNEL, int STRIDE, int WIDE>
__global__ void __launch_bounds__(THREADS)
    convolve_filters(const __grid_constant__ plane s, const T *x, const duo<T> *w, const duo<T> *bias,
                     const duo<T> *residual, duo<T> *y)
{
    enum { COLUMNS = (WIDE - 1) * STRIDE + KERNEL };
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.n)
        return;
    const uint32_t unit = i % s.units, rest = i / s.units, strip = rest % s.strips, line = rest / s.strips;
    const int row = (int)(line % s.out[0]), column = (int)strip * WIDE;
    const size_t image = line / s.out[0];
    const int first_row = row * STRIDE - s.begin[0], first_column = column * STRIDE - s.begin[1];
    const int channel = 2 * (int)unit / s.filters, next = (2 * (int)unit + 1) / s.filters - channel;
    const T *from = x + image * s.in[0] * s.in[1] * s.channels + channel;
    float sum[WIDE * 2], start[2] = {};
    if (bias)
        widen<T>(bias[unit], start);
#pragma unroll
    for (int k = 0; k < WIDE * 2; k++)
        sum[k] = start[k % 2];
#pragma unroll
    for (int r = 0; r < KERNEL; r++) {
        const int p = first_row + r;
        if ((unsigned)p >= (unsigned)s.in[0])
            continue;
        const T *line_at = from + (size_t)p * s.in[1] * s.channels;
        float in[COLUMNS][2] = {}, taps[KERNEL][2];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if ((unsigned)(first_column + c) < (unsigned)s.in[1]) {
                const T *at = line_at + (first_column + c) * s.channels;
                widen<T>({at[0], at[next]}, in[c]);
            }
        read_taps<T>(s, w + r * KERNEL * s.units + unit, taps);
        add_row<KERNEL, STRIDE, WIDE>(in, taps, sum);
    }
    const size_t at = ((image * s.out[0] + row) * s.out[1] + column) * s.units + unit;
    finish_tile<T, WIDE, 1>(s, sum, residual ? residual + at : residual, y + at, row, column);
}

/* WIDE results of one row, of two channels of 16-bit numbers, where there are few threads: all of the window
 * and of the input is under way at a time. What lies outside of the image is read at its edge, and is zero.
 */
template <class T, int KERNEL, int STRIDE, int WIDE>
__global__ void __launch_bounds__(THREADS)
    convolve_strip(const __grid_constant__ plane s, const duo<T> *x, const duo<T> *w, const duo<T> *bias,
                   const duo<T> *residual, duo<T> *y)
{
    enum { COLUMNS = (WIDE - 1) * STRIDE + KERNEL };
    using word = uint32_t;
    overlap_let_next_begin();
    overlap_wait();
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.n)
        return;
    const uint32_t unit = i % s.units, rest = i / s.units, strip = rest % s.strips, line = rest / s.strips;
    const int row = (int)(line % s.out[0]), column = (int)strip * WIDE;
    const size_t image = line / s.out[0];
    const int first_row = row * STRIDE - s.begin[0], first_column = column * STRIDE - s.begin[1];
    const word *from = (const word *)x + image * s.in[0] * s.in[1] * s.units + unit,
               *window = (const word *)w + unit;
    word in[KERNEL][COLUMNS], taps[KERNEL][KERNEL];
#pragma unroll
    for (int r = 0; r < KERNEL; r++) {
        const word *line_at = from + (size_t)min(max(first_row + r, 0), s.in[0] - 1) * s.in[1] * s.units;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            in[r][c] = line_at[min(max(first_column + c, 0), s.in[1] - 1) * s.units];
#pragma unroll
        for (int b = 0; b < KERNEL; b++)
            taps[r][b] = window[(r * KERNEL + b) * s.units];
    }
    float sum[WIDE * 2], start[2] = {};
    if (bias)
        widen<T>(bias[unit], start);
#pragma unroll
    for (int k = 0; k < WIDE * 2; k++)
        sum[k] = start[k % 2];
#pragma unroll
    for (int r = 0; r < KERNEL; r++) {
        const bool there = (unsigned)(first_row + r) < (unsigned)s.in[0];
        float numbers[COLUMNS][2], weights[KERNEL][2];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            widen_word<T>(there && (unsigned)(first_column + c) < (unsigned)s.in[1] ? in[r][c] : 0,
                          numbers[c]);
#pragma unroll
        for (int b = 0; b < KERNEL; b++)
            widen_word<T>(taps[r][b], weights[b]);
        add_row<KERNEL, STRIDE, WIDE>(numbers, weights, sum);
    }
    const size_t at = ((image * s.out[0] + row) * s.out[1] + column) * s.units + unit;
    finish_tile<T, WIDE, 1>(s, sum, residual ? residual + at : residual, y + at, row, column);
}

/* The channels of a pixel that the results of a unit are of. */
template <class T, class V>
__device__ __forceinline__ V read_channels(const plane &s, const T *pixel, int unit)
{
    if (s.filters == 1)
        return ((const V *)pixel)[unit];
    V pack;
#pragma unroll
    for (int j = 0; j < V::N; j++)
        pack.v[j] = pixel[(unit * V::N + j) / s.filters];
    return pack;
}

/* A vector V of one pixel's channels, with any window. */
template <class T, class V>
__global__ void __launch_bounds__(THREADS) convolve_pixel(const __grid_constant__ plane s, const T *x,
                                                          const V *w, const V *bias, const V *residual, V *y)
{
    enum { N = V::N };
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= s.n)
        return;
    const uint32_t unit = i % s.units, pixel = i / s.units, line = pixel / s.out[1];
    const int row = (int)(line % s.out[0]) * s.stride[0] - s.begin[0];
    const int first = (int)(pixel % s.out[1]) * s.stride[1] - s.begin[1];
    const T *image = x + (size_t)(line / s.out[0]) * s.in[0] * s.in[1] * s.channels;
    V start = {};
    float sum[N];
    if (bias)
        start = bias[unit];
#pragma unroll
    for (int j = 0; j < N; j++)
        sum[j] = cuda_widen(start.v[j]);
    for (int a = 0; a < s.kernel[0]; a++) {
        const int p = row + a * s.dilation[0];
        if (p < 0 || p >= s.in[0])
            continue;
        for (int b = 0; b < s.kernel[1]; b++) {
            const int q = first + b * s.dilation[1];
            if (q < 0 || q >= s.in[1])
                continue;
            const V pack = read_channels<T, V>(s, image + ((size_t)p * s.in[1] + q) * s.channels, (int)unit),
                    filter = w[(a * s.kernel[1] + b) * s.units + unit];
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += cuda_widen(pack.v[j]) * cuda_widen(filter.v[j]);
        }
    }
    V result, more = {};
    if (residual)
        more = residual[i];
#pragma unroll
    for (int j = 0; j < N; j++)
        sum[j] += cuda_widen(more.v[j]);
    cuda_activate_all<T>(s.act, sum);
#pragma unroll
    for (int j = 0; j < N; j++)
        result.v[j] = cuda_narrow<T, float>(sum[j]);
    y[i] = result;
}

struct pointers {
    const void *x, *w, *bias, *residual;
    void *y;
};

template <class T, int KERNEL, int STRIDE, int TALL, int WIDE>
void launch_tile(plane s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    using V = duo<T>;
    s.strips = (s.out[1] + WIDE - 1) / WIDE;
    s.bands = (s.out[0] + TALL - 1) / TALL;
    s.n = (uint32_t)(batch * s.bands * s.strips * s.units);
    convolve_tile<T, KERNEL, STRIDE, TALL, WIDE><<<(s.n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        s, (const V *)at.x, (const V *)at.w, (const V *)at.bias, (const V *)at.residual, (V *)at.y);
}

template <class T, int KERNEL, int STRIDE>
void launch_filters(plane s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    using V = duo<T>;
    enum { WIDE = 4 };
    s.strips = (s.out[1] + WIDE - 1) / WIDE;
    s.n = (uint32_t)(batch * s.out[0] * s.strips * s.units);
    convolve_filters<T, KERNEL, STRIDE, WIDE><<<(s.n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        s, (const T *)at.x, (const V *)at.w, (const V *)at.bias, (const V *)at.residual, (V *)at.y);
}

template <class T, int KERNEL, int STRIDE>
void launch_strip(plane s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    using V = duo<T>;
    enum { WIDE = 2 };
    s.strips = (s.out[1] + WIDE - 1) / WIDE;
    s.n = (uint32_t)(batch * s.out[0] * s.strips * s.units);
    (void)overlap_launch(overlap_is_possible(), convolve_strip<T, KERNEL, STRIDE, WIDE>,
                         (s.n + THREADS - 1) / THREADS, THREADS, 0, stream, s, (const V *)at.x,
                         (const V *)at.w, (const V *)at.bias, (const V *)at.residual, (V *)at.y);
}

/* Of float32 numbers so many loads do not pay: ConvNeXt at batch 1 took 18 % longer. */
template <class T, int KERNEL, int STRIDE>
void launch_small(const plane &s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    if constexpr (sizeof(T) == 2)
        launch_strip<T, KERNEL, STRIDE>(s, batch, at, stream);
    else
        launch_tile<T, KERNEL, STRIDE, 1, 2>(s, batch, at, stream);
}

/* Large tiles read less; with few threads a GPU waits for each of them. */
template <class T, int KERNEL, int STRIDE>
void launch_window(const plane &s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    enum { WORTH_SHARING = 1 << 16, TALL = KERNEL <= 5 ? 2 : 1, WIDE = 4 };
    const int64_t pixels = batch * s.out[0] * s.out[1];
    if (s.filters > 1)
        launch_filters<T, KERNEL, STRIDE>(s, batch, at, stream);
    else if (pixels / (TALL * WIDE) * s.units >= WORTH_SHARING)
        launch_tile<T, KERNEL, STRIDE, TALL, WIDE>(s, batch, at, stream);
    else
        launch_small<T, KERNEL, STRIDE>(s, batch, at, stream);
}

template <class T, int KERNEL>
void launch_square(const plane &s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    if (s.stride[0] == 1)
        launch_window<T, KERNEL, 1>(s, batch, at, stream);
    else
        launch_window<T, KERNEL, 2>(s, batch, at, stream);
}

/* A window for tiles; threads are counted in 32 bits. */
bool is_square(const plane &s, int64_t batch)
{
    const int side = s.kernel[0];
    return s.kernel[1] == side && (side == 3 || side == 5 || side == 7) && s.stride[0] == s.stride[1] &&
           s.stride[0] <= 2 && s.dilation[0] == 1 && s.dilation[1] == 1 &&
           s.out[0] * (int64_t)(s.out[1] + 1) < INT32_MAX / 4 / (s.units + 1) / batch;
}

template <class T, class V> void launch_pixel(plane s, int64_t batch, const pointers &at, cudaStream_t stream)
{
    s.units = s.channels * s.filters / V::N;
    s.n = (uint32_t)(batch * s.out[0] * s.out[1] * s.units);
    convolve_pixel<T, V><<<(s.n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        s, (const T *)at.x, (const V *)at.w, (const V *)at.bias, (const V *)at.residual, (V *)at.y);
}

template <class T>
void cuda_depthwise_launch(const cuda_depthwise *d, const pointers &at, cudaStream_t stream)
{
    plane s = {};
    for (int k = 0; k < 2; k++) {
        s.in[k] = (int)d->in[k];
        s.out[k] = (int)d->out[k];
        s.kernel[k] = (int)d->kernel[k];
        s.stride[k] = (int)d->stride[k];
        s.dilation[k] = (int)d->dilation[k];
        s.begin[k] = (int)d->begin[k];
    }
    s.act = d->act;
    s.channels = (int)d->channels;
    s.filters = (int)d->filters;
    const int results = s.channels * s.filters;
    s.units = results / 2;
    if (results % 2)
        launch_pixel<T, solo<T>>(s, d->batch, at, stream);
    else if (is_square(s, d->batch) && s.kernel[0] == 3)
        launch_square<T, 3>(s, d->batch, at, stream);
    else if (is_square(s, d->batch) && s.kernel[0] == 5)
        launch_square<T, 5>(s, d->batch, at, stream);
    else if (is_square(s, d->batch))
        launch_square<T, 7>(s, d->batch, at, stream);
    else if (results % cuda_vector<T>::N)
        launch_pixel<T, duo<T>>(s, d->batch, at, stream);
    else
        launch_pixel<T, cuda_vector<T>>(s, d->batch, at, stream);
}

} // namespace

bool cuda_depthwise_fits(const cuda_depthwise *d)
{
    const int64_t most = 1 << 24;
    if (d->dtype == GRT_DTYPE_DOUBLE || d->channels <= 0 || d->filters <= 0 || d->batch <= 0)
        return false;
    for (int k = 0; k < 2; k++)
        if (d->in[k] <= 0 || d->out[k] <= 0 || d->in[k] > most || d->out[k] > most || d->kernel[k] > 1024 ||
            d->stride[k] > 64 || d->dilation[k] > 1024 || d->begin[k] > most || d->begin[k] < -most)
            return false;
    const int64_t n = 16 / (int64_t)grt_dtype_size(d->dtype),
                  results = grt_mul_saturated(d->channels, d->filters),
                  unit = results % 2   ? 1
                         : results % n ? 2
                                       : n;
    return results < INT32_MAX / 2 && d->out[0] * d->out[1] < INT32_MAX / (results / unit + 1) / d->batch;
}

bool cuda_depthwise_run(const cuda_depthwise *d, const void *x, const void *w, const void *bias,
                        const void *residual, void *y, cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(w) || !cuda_is_vector(bias) || !cuda_is_vector(residual) ||
        !cuda_is_vector(y))
        return false;
    const pointers at = {x, w, bias, residual, y};
    if (d->dtype == GRT_DTYPE_FLOAT)
        cuda_depthwise_launch<float>(d, at, stream);
    else if (d->dtype == GRT_DTYPE_FLOAT16)
        cuda_depthwise_launch<__half>(d, at, stream);
    else
        cuda_depthwise_launch<__nv_bfloat16>(d, at, stream);
    return true;
}

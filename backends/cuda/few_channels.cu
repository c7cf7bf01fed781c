/* SPDX-License-Identifier: Apache-2.0 */
/* See few_channels.h and few_channels_form.h. A block keeps the weights of its output channels in shared
 * memory, in the order of the tensor cores' operands, and goes from tile to tile of pixels; while one is
 * multiplied, what the next one reads of its image is fetched. */
#include "backends/cuda/few_channels.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/tensor_core.cuh"

namespace
{

enum {
    THREADS = 128,
    QUAD = 4, /* column tiles whose results a lane writes at once */
    ALL_TILES = FEW_COLUMNS / 8,
    USUAL_SHARED = 48 << 10, /* what every kernel may have */
    MOST_SHARED = 112 << 10, /* two blocks of a multiprocessor */
    BLOCKS_EACH = 4,
    LEAST_TAPS = 25,
    LEAST_TILES_EACH = 2 /* for a multiprocessor */
};

struct stem {
    few_channels_form form;
    int images, out_channels, in[2], out[2], begin[2]; /* images: planes of results */
    int in_deep, out_deep, stride_deep, begin_deep;
    int rows_of_tiles, columns_of_tiles, column_groups, tiles;
    grt_act act;
};

/* In shared memory: operands, pairs, biases, two windows. */
template <int TILES> struct layout {
    uint2 *weights;
    few_channels_pair *pairs;
    float *bias;
    uint16_t *windows;
    int window_size;

    __device__ __forceinline__ layout(char *memory, const few_channels_form &f)
    {
        weights = (uint2 *)memory;
        pairs = (few_channels_pair *)(weights + f.steps * TILES * 32);
        bias = (float *)(pairs + f.steps * FEW_PAIRS);
        windows = (uint16_t *)(bias + TILES * 8);
        window_size = f.deep * f.window_rows * f.pitch;
    }
    __device__ __forceinline__ uint16_t *window(int buffer) const
    {
        return windows + buffer * window_size;
    }
};

size_t cuda_few_channels_shared_bytes(const few_channels_form *f, int32_t tiles)
{
    return (size_t)f->steps * ((size_t)tiles * 32 * sizeof(uint2) + FEW_PAIRS * sizeof(few_channels_pair)) +
           (size_t)tiles * 8 * sizeof(float) +
           2 * (size_t)(f->deep * f->window_rows) * (size_t)f->pitch * sizeof(uint16_t);
}

/* A tile's first output pixel. */
struct origin {
    int image, row, column;

    __device__ __forceinline__ origin(const stem &s, int tile)
    {
        const int line = tile / s.columns_of_tiles;
        column = (tile - line * s.columns_of_tiles) * s.form.tile_columns;
        image = line / s.rows_of_tiles;
        row = (line - image * s.rows_of_tiles) * s.form.tile_rows;
    }
};

__device__ __forceinline__ void fetch_word(void *to, const void *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = there ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

/* What the tile reads of its image; zeros outside. Rows of an image and their ends lie at words if PAIRED. */
template <bool PAIRED>
__device__ __forceinline__ void fetch_window(const stem &s, int tile, const uint16_t *x, uint16_t *to)
{
    const few_channels_form &f = s.form;
    const origin o(s, tile);
    enum { EACH = PAIRED ? 2 : 1 };
    const int volume = o.image / s.out_deep,
              first_plane = (o.image - volume * s.out_deep) * s.stride_deep - s.begin_deep;
    const int row_numbers = s.in[1] * f.channels, first_row = o.row * f.stride[0] - s.begin[0],
              first = (o.column * f.stride[1] - s.begin[1]) * f.channels - f.shift;
    const int per_row = f.pitch / EACH;
    /* A warp takes a row at a time. */
    for (int row = threadIdx.x / 32; row < f.deep * f.window_rows; row += THREADS / 32) {
        const int down = row / f.window_rows, plane = first_plane + down,
                  p = first_row + row - down * f.window_rows;
        const bool inside = p >= 0 && p < s.in[0] && plane >= 0 && plane < s.in_deep;
        const uint16_t *from =
            x + (inside ? ((size_t)(volume * s.in_deep + plane) * s.in[0] + p) * row_numbers : 0);
        for (int i = threadIdx.x % 32; i < per_row; i += 32) {
            const int at = first + i * EACH;
            const bool there = inside && at >= 0 && at < row_numbers;
            uint16_t *place = to + row * f.pitch + i * EACH;
            if (PAIRED)
                fetch_word(place, from + (there ? at : 0), there);
            else
                *place = there ? from[at] : 0;
        }
    }
}

template <bool PAIRED> __device__ __forceinline__ uint32_t pair_at(const uint16_t *pixel, few_channels_pair p)
{
    if (PAIRED)
        return *(const uint32_t *)(pixel + p.offset) & p.mask;
    return (pixel[p.offset] | (uint32_t)pixel[p.offset + 1] << 16) & p.mask;
}

/* Bias and activation, of both of the warp's rows of pixels. */
template <class T, int TILES, int N>
__device__ __forceinline__ void cuda_few_channels_finish(const stem &s, float (&sum)[N], const float *bias)
{
    const int quad = threadIdx.x & 3;
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[(k * (N / 8) + n) * 4 + i] += bias[n * 8 + quad * 2 + i % 2];
    cuda_activate_all<T>(s.act, sum);
}

/* Results of 16 pixels from (row, column) on: each lane writes 16 bytes. */
template <class T, int TILES>
__device__ __forceinline__ void cuda_few_channels_store(const stem &s, const float *sum, int image, int row,
                                                        int column, int first_channel, T *y)
{
    const int lane = threadIdx.x % 32, quad = lane & 3;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int at = column + lane / 4 + 8 * r;
        T *pixel = y + (((size_t)image * s.out[0] + row) * s.out[1] + at) * s.out_channels + first_channel;
#pragma unroll
        for (int n = 0; n < TILES; n += QUAD) {
            uint32_t pair[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *both = sum + (n + i) * 4 + 2 * r;
                pair[i] = tensor_core<T>::pair(both[0], both[1]);
            }
            exchange(pair, quad);
            if (row < s.out[0] && at < s.out[1] && n + quad < TILES &&
                first_channel + (n + quad) * 8 < s.out_channels)
                *(uint4 *)(pixel + (n + quad) * 8) = make_uint4(pair[0], pair[1], pair[2], pair[3]);
        }
    }
}

template <class T, int TILES>
__device__ __forceinline__ void cuda_few_channels_load_weights(const stem &s, const layout<TILES> &m,
                                                               const T *w, const T *bias, int first_channel)
{
    const few_channels_form &f = s.form;
    const int taps = f.deep * f.kernel[0] * f.kernel[1] * f.channels;
    /* A thread has one of a lane's four numbers: terms 2 quad, 2 quad + 1 and those 8 behind. */
    static_assert(THREADS == 128, "four numbers for each of 32 lanes");
    const int i = threadIdx.x, lane = i / 4;
    for (int step = 0; step < f.steps; step++) {
        const int term = step * FEW_DEPTH + lane % 4 * 2 + i % 2 + i / 2 % 2 * 8,
                  at = few_channels_weight_at(&f, term);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const int channel = first_channel + tile * 8 + lane / 4;
            ((T *)m.weights)[(step * TILES + tile) * THREADS + i] =
                at >= 0 && channel < s.out_channels ? w[channel * taps + at] : cuda_narrow<T, float>(0);
        }
    }
    for (int k = i; k < f.steps * FEW_PAIRS; k += THREADS)
        m.pairs[k] = few_channels_pair_at(&f, k);
    for (int k = i; k < TILES * 8; k += THREADS)
        m.bias[k] = bias && first_channel + k < s.out_channels ? cuda_widen(bias[first_channel + k]) : 0;
}

template <class T, bool PAIRED, int TILES>
__global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    cuda_few_channels_convolve(const __grid_constant__ stem s, const T *x, const T *w, const T *bias, T *y)
{
    extern __shared__ __align__(16) char memory[];
    const few_channels_form &f = s.form;
    enum { HELD = TILES < QUAD ? (int)QUAD : TILES }; /* of sums; those that are not computed stay zero */
    const layout<TILES> m(memory, f);
    const int lane = threadIdx.x % 32, quad = lane & 3, warp = threadIdx.x / 32;
    const int first_channel = blockIdx.x % s.column_groups * (TILES * 8),
              stride = gridDim.x / s.column_groups;
    int tile = blockIdx.x / s.column_groups, buffer = 0;
    cuda_few_channels_load_weights<T, TILES>(s, m, w, bias, first_channel);
    if (tile < s.tiles)
        fetch_window<PAIRED>(s, tile, (const uint16_t *)x, m.window(0));
    commit();
    for (; tile < s.tiles; tile += stride, buffer ^= 1) {
        if (tile + stride < s.tiles)
            fetch_window<PAIRED>(s, tile + stride, (const uint16_t *)x, m.window(buffer ^ 1));
        commit();
        wait_for<1>();
        __syncthreads();
        float sum[2 * HELD * 4] = {};
        const uint16_t *pixel[2][2]; /* of the lane's two rows of both operands */
        int row[2], column[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int first = (warp * 2 + k) * 16;
            row[k] = first / f.tile_columns;
            column[k] = first % f.tile_columns;
#pragma unroll
            for (int r = 0; r < 2; r++)
                pixel[k][r] = m.window(buffer) + row[k] * f.stride[0] * f.pitch +
                              (column[k] + lane / 4 + 8 * r) * f.stride[1] * f.channels;
        }
        for (int step = 0; step < f.steps; step++) {
            const few_channels_pair low = m.pairs[step * FEW_PAIRS + quad],
                                    high = m.pairs[step * FEW_PAIRS + quad + 4];
            uint32_t a[2][4];
#pragma unroll
            for (int k = 0; k < 2; k++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    a[k][r] = pair_at<PAIRED>(pixel[k][r], low);
                    a[k][2 + r] = pair_at<PAIRED>(pixel[k][r], high);
                }
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                const uint2 operand = m.weights[(step * TILES + n) * 32 + lane];
                const uint32_t b[2] = {operand.x, operand.y};
                tensor_core<T>::mma(sum + n * 4, a[0], b);
                tensor_core<T>::mma(sum + (HELD + n) * 4, a[1], b);
            }
        }
        cuda_few_channels_finish<T, TILES>(s, sum, m.bias);
        const origin o(s, tile);
#pragma unroll
        for (int k = 0; k < 2; k++)
            cuda_few_channels_store<T, TILES>(s, sum + k * HELD * 4, o.image, o.row + row[k],
                                              o.column + column[k], first_channel, y);
        __syncthreads(); /* this window is fetched into next */
    }
}

template <class T, bool PAIRED> const void *cuda_few_channels_kernel_of(int tiles)
{
    return tiles == 1   ? (const void *)cuda_few_channels_convolve<T, PAIRED, 1>
           : tiles <= 4 ? (const void *)cuda_few_channels_convolve<T, PAIRED, QUAD>
                        : (const void *)cuda_few_channels_convolve<T, PAIRED, ALL_TILES>;
}

template <class T> const void *cuda_few_channels_kernel_by(const cuda_few_channels *c)
{
    return c->form.paired ? cuda_few_channels_kernel_of<T, true>(c->column_tiles)
                          : cuda_few_channels_kernel_of<T, false>(c->column_tiles);
}

const void *cuda_few_channels_kernel_for(const cuda_few_channels *c)
{
    return c->dtype == GRT_DTYPE_FLOAT16 ? cuda_few_channels_kernel_by<__half>(c)
                                         : cuda_few_channels_kernel_by<__nv_bfloat16>(c);
}

stem stem_of(const cuda_few_channels *c)
{
    const cuda_conv_windows *w = &c->windows;
    stem s = {c->form, (int)(c->batch * w->out[0]), (int)c->out_channels};
    for (int d = 0; d < 2; d++) {
        s.in[d] = (int)w->in[d + 1];
        s.out[d] = (int)w->out[d + 1];
        s.begin[d] = (int)w->begin[d + 1];
    }
    s.in_deep = (int)w->in[0];
    s.out_deep = (int)w->out[0];
    s.stride_deep = (int)w->stride[0];
    s.begin_deep = (int)w->begin[0];
    s.rows_of_tiles = (s.out[0] + c->form.tile_rows - 1) / c->form.tile_rows;
    s.columns_of_tiles = (s.out[1] + c->form.tile_columns - 1) / c->form.tile_columns;
    s.column_groups = (s.out_channels + c->column_tiles * 8 - 1) / (c->column_tiles * 8);
    s.tiles = s.images * s.rows_of_tiles * s.columns_of_tiles;
    s.act = c->act;
    return s;
}

bool sizes_fit(const cuda_few_channels *c)
{
    const cuda_conv_windows *w = &c->windows;
    int64_t in = c->batch, out = c->batch;
    if ((c->dtype != GRT_DTYPE_FLOAT16 && c->dtype != GRT_DTYPE_BFLOAT16) || c->channels < 1 ||
        c->channels > 4 || c->batch < 1 || c->batch > INT32_MAX || c->out_channels < 8 ||
        c->out_channels % 8 || c->out_channels > 1 << 16)
        return false;
    for (int d = 0; d < CUDA_CONV_DIMS; d++) {
        if (w->in[d] < 1 || w->out[d] < 1 || w->in[d] > 1 << 24 || w->out[d] > 1 << 24 || w->kernel[d] > 64 ||
            w->stride[d] > 16 || w->begin[d] < 0 || w->begin[d] > 1 << 10)
            return false;
        in = grt_mul_saturated(in, w->in[d]);
        out = grt_mul_saturated(out, w->out[d]);
    }
    return in < INT32_MAX && out < INT32_MAX;
}

/* cuDNN is faster for small windows and for few pixels (docs/measurements/cuda.md). */
bool has_work(const cuda_few_channels *c)
{
    const stem s = stem_of(c);
    return (int64_t)s.tiles * s.column_groups >= (int64_t)LEAST_TILES_EACH * c->multiprocessors;
}

} // namespace

bool cuda_few_channels_plan(cuda_few_channels *c, int multiprocessors)
{
    const cuda_conv_windows *w = &c->windows;
    if (!sizes_fit(c) || w->kernel[0] * w->kernel[1] * w->kernel[2] < LEAST_TAPS)
        return false;
    const int32_t kernel[2] = {(int32_t)w->kernel[1], (int32_t)w->kernel[2]},
                  stride[2] = {(int32_t)w->stride[1], (int32_t)w->stride[2]};
    c->form = few_channels_form_of((int32_t)c->channels, (int32_t)w->kernel[0], kernel, stride,
                                   (int32_t)w->begin[2], (int32_t)w->in[2], (int32_t)w->out[2]);
    c->column_tiles = c->out_channels <= 8 ? 1 : c->out_channels <= 8 * QUAD ? (int)QUAD : (int)ALL_TILES;
    c->shared = cuda_few_channels_shared_bytes(&c->form, c->column_tiles);
    c->multiprocessors = multiprocessors;
    const bool is_plane = c->form.deep == 1;
    return c->form.steps <= (is_plane ? FEW_MOST_STEPS : VOLUME_MOST_STEPS) &&
           c->shared <= (is_plane ? USUAL_SHARED : MOST_SHARED) && has_work(c);
}

bool cuda_few_channels_run(const cuda_few_channels *c, const void *x, const void *w, const void *bias,
                           void *y, cudaStream_t stream)
{
    stem s = stem_of(c);
    const void *kernel = cuda_few_channels_kernel_for(c);
    if ((uintptr_t)x % 4 || !cuda_is_vector(y))
        return false;
    if (c->shared > USUAL_SHARED)
        (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_SHARED);
    const int most = c->multiprocessors * BLOCKS_EACH / s.column_groups;
    const int each = s.tiles < most ? s.tiles : most > 0 ? most : 1;
    void *arguments[] = {&s, &x, &w, &bias, &y};
    (void)cudaLaunchKernel(kernel, dim3((unsigned)(each * s.column_groups)), dim3(THREADS), arguments,
                           c->shared, stream); /* the caller asks for errors */
    return true;
}

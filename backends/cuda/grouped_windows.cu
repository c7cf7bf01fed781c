/* SPDX-License-Identifier: Apache-2.0 */
/* See grouped_windows.h. A block has 8 x 8 or 16 x 8 pixels of some whole groups. What its windows see of the
 * image lies in shared memory, so that it is read once for all taps. The sum runs over taps and, within,
 * channels of the group, in vectors of 16 bytes; a multiplication takes two of them, which may belong to
 * different taps. A warp has 64 pixels of eight or sixteen channels at a time, and reads their weights once
 * for all of these pixels. */
#include "backends/cuda/grouped_windows.h"

#include "backends/cuda/activate.cuh"
#include "backends/cuda/tensor_core.cuh"
#include "src/base/checked.h"

namespace
{

enum { THREADS = 128, WARPS = THREADS / 32, SIDE = 8, TILES = 4 /* of 16 pixels: 8 x 8 of them */ };
enum { MOST_GROUP = 64, MOST_CHANNELS = 64, MOST_SHARED = 48 << 10, MOST_VECTORS = 512 };

struct geometry {
    int in[2], out[2], kernel_columns, stride[2], dilation[2], begin[2];
    int channels, group, vectors, sum_vectors;          /* vectors: of a tap */
    int pixel_vectors;                                  /* of all channels */
    int tiles[2], blocks;                               /* of pixels; blocks: of channels */
    int block_channels, halves, patch[2], pitch, table; /* patch: pixels seen; pitch: vectors of one */
    grt_act act;
};

/* Numbers of a vector. */
template <class T> constexpr int vector_of = 16 / (int)sizeof(T);

/* What the block's windows see, zeros outside of the image. */
__device__ __forceinline__ void cuda_grouped_windows_fetch(const geometry &g, const uint4 *x, int image,
                                                           const int (&from)[2], int first_vector, int width,
                                                           uint4 *patch)
{
    const int together = THREADS / width, mine = threadIdx.x / width, vector = threadIdx.x % width;
    if (mine >= together)
        return;
    int row = mine / g.patch[1], column = mine % g.patch[1];
    for (int pixel = mine; pixel < g.patch[0] * g.patch[1]; pixel += together) {
        const int p = from[0] + row, q = from[1] + column;
        const bool there = p >= 0 && p < g.in[0] && q >= 0 && q < g.in[1];
        fetch(patch + pixel * g.pitch + vector,
              there ? x + (size_t)((image * g.in[0] + p) * g.in[1] + q) * g.pixel_vectors + first_vector +
                          vector
                    : x,
              there);
        for (column += together; column >= g.patch[1]; column -= g.patch[1])
            row++;
    }
}

/* A word of a weight fragment: that of number `quad` of vector `at` of a channel's sum. */
template <class T>
__device__ __forceinline__ uint32_t cuda_grouped_windows_weights(const geometry &g, const T *w, int channel,
                                                                 int at, int quad)
{
    enum { WORDS = 4 };
    return at < g.sum_vectors
               ? tensor_core<T>::operand(
                     ((const uint32_t *)w)[((size_t)channel * g.sum_vectors + at) * WORDS + quad])
               : 0;
}

/* Bias, residual, activation; results of 16 pixels a tile. */
template <class T, int COLUMNS>
__device__ __forceinline__ void
cuda_grouped_windows_store(const geometry &g, float (&sum)[TILES * COLUMNS * 4], int image, int top, int left,
                           int channel, const T *bias, const T *residual, T *y)
{
    const int lane = threadIdx.x % 32, quad = lane % 4;
    size_t places[TILES * 2];
    bool there[TILES * 2];
#pragma unroll
    for (int i = 0; i < TILES * 2; i++) { /* lane / 4: the column of eight */
        const int p = top + i, q = left + lane / 4;
        there[i] = p < g.out[0] && q < g.out[1];
        places[i] = ((size_t)(image * g.out[0] + p) * g.out[1] + q) * g.channels + channel + quad * 2;
    }
#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        float low = 0, high = 0;
        if (bias) {
            low = cuda_widen(bias[channel + n * 8 + quad * 2]);
            high = cuda_widen(bias[channel + n * 8 + quad * 2 + 1]);
        }
#pragma unroll
        for (int i = 0; i < TILES * 2; i++) {
            float *v = sum + ((i / 2) * COLUMNS + n) * 4 + i % 2 * 2;
            v[0] += low;
            v[1] += high;
            if (residual && there[i]) {
                v[0] += cuda_widen(residual[places[i] + n * 8]);
                v[1] += cuda_widen(residual[places[i] + n * 8 + 1]);
            }
        }
    }
    cuda_activate_all<T>(g.act, sum);
#pragma unroll
    for (int i = 0; i < TILES * 2; i++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            const float *v = sum + ((i / 2) * COLUMNS + n) * 4 + i % 2 * 2;
            if (there[i])
                tensor_core<T>::store(y + places[i] + n * 8, v[0], v[1]);
        }
}

template <class T, int COLUMNS>
__global__ void __launch_bounds__(THREADS)
    cuda_grouped_windows_convolve(const __grid_constant__ geometry g, const T *x, const T *w, const T *bias,
                                  const T *residual, T *y)
{
    extern __shared__ uint4 shared[]; /* the patch, a vector of zeros, the table */
    uint4 *const zeros = shared + g.patch[0] * g.patch[1] * g.pitch;
    int *const table = (int *)(zeros + 1); /* where a vector of the sum lies, from its pixel and group on */
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane % 4;
    int rest = blockIdx.x;
    const int block = rest % g.blocks;
    rest /= g.blocks;
    const int left = rest % g.tiles[1] * SIDE;
    rest /= g.tiles[1];
    const int top = rest % g.tiles[0] * SIDE * g.halves, image = rest / g.tiles[0];
    const int first = block * g.block_channels,
              channels = g.channels - first < g.block_channels ? g.channels - first : g.block_channels;
    const int from[2] = {top * g.stride[0] - g.begin[0], left * g.stride[1] - g.begin[1]};
    cuda_grouped_windows_fetch(g, (const uint4 *)x, image, from, first / vector_of<T>,
                               channels / vector_of<T>, shared);
    commit();
    if (threadIdx.x == 0)
        *zeros = make_uint4(0, 0, 0, 0);
    for (int i = threadIdx.x; i < g.sum_vectors; i += THREADS) {
        const int tap = i / g.vectors;
        table[i] =
            (tap / g.kernel_columns * g.dilation[0] * g.patch[1] + tap % g.kernel_columns * g.dilation[1]) *
                g.pitch +
            i % g.vectors;
    }
    wait_for<0>();
    __syncthreads();
    const int items = channels / (COLUMNS * 8) * g.halves;
    for (int item = warp; item < items; item += WARPS) {
        const int half = item % g.halves, column = item / g.halves * COLUMNS * 8;
        const int vector = column / g.group * g.vectors;
        /* The row of a fragment that this lane points at is pixel lane % 8 of row lane / 8 % 2. */
        const uint4 *pixels[TILES];
#pragma unroll
        for (int m = 0; m < TILES; m++)
            pixels[m] =
                shared +
                (((half * SIDE + m * 2 + lane / 8 % 2) * g.stride[0]) * g.patch[1] + lane % 8 * g.stride[1]) *
                    g.pitch +
                vector;
        float sum[TILES * COLUMNS * 4] = {};
        uint32_t b[COLUMNS][2], next[COLUMNS][2];
        auto read_weights = [&](int at, uint32_t(&to)[COLUMNS][2]) {
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
#pragma unroll
                for (int k = 0; k < 2; k++)
                    to[n][k] =
                        cuda_grouped_windows_weights(g, w, first + column + n * 8 + lane / 4, at + k, quad);
        };
        read_weights(0, next);
        for (int at = 0; at < g.sum_vectors; at += 2) {
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                b[n][0] = next[n][0];
                b[n][1] = next[n][1];
            }
            read_weights(at + 2, next);
            const int mine = at + lane / 16;
            const bool inside = mine < g.sum_vectors;
            const int offset = inside ? table[mine] : 0;
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                uint32_t a[4];
                load_matrices(a, inside ? pixels[m] + offset : zeros);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    a[k] = tensor_core<T>::operand(a[k]);
#pragma unroll
                for (int n = 0; n < COLUMNS; n++)
                    tensor_core<T>::mma(sum + (m * COLUMNS + n) * 4, a, b[n]);
            }
        }
        cuda_grouped_windows_store<T, COLUMNS>(g, sum, image, top + half * SIDE, left, first + column, bias,
                                               residual, y);
    }
}

geometry cuda_grouped_windows_geometry(const cuda_grouped_windows *c)
{
    const int vector = 16 / (int)grt_dtype_size(c->dtype);
    geometry g = {};
    g.kernel_columns = (int)c->kernel[1];
    g.channels = (int)(c->groups * c->group);
    g.group = (int)c->group;
    g.vectors = g.group / vector;
    g.pixel_vectors = g.channels / vector;
    g.sum_vectors = (int)(c->kernel[0] * c->kernel[1]) * g.vectors;
    g.block_channels = c->block_channels;
    g.halves = c->halves;
    g.blocks = (g.channels + g.block_channels - 1) / g.block_channels;
    g.pitch = g.block_channels / vector | 1; /* odd: rows that are read together lie in different banks */
    g.act = c->act;
    for (int d = 0; d < 2; d++) {
        const int side = d ? SIDE : SIDE * c->halves;
        g.in[d] = (int)c->in[d];
        g.out[d] = (int)c->out[d];
        g.stride[d] = (int)c->stride[d];
        g.dilation[d] = (int)c->dilation[d];
        g.begin[d] = (int)c->begin[d];
        g.tiles[d] = (g.out[d] + side - 1) / side;
        g.patch[d] = (side - 1) * g.stride[d] + ((int)c->kernel[d] - 1) * g.dilation[d] + 1;
    }
    return g;
}

int64_t cuda_grouped_windows_shared(const geometry *g)
{
    return ((int64_t)g->patch[0] * g->patch[1] * g->pitch + 1) * 16 + (int64_t)g->sum_vectors * 4;
}

int64_t cuda_grouped_windows_blocks(const geometry *g, int64_t batch)
{
    return grt_mul_saturated(batch, (int64_t)g->tiles[0] * g->tiles[1] * g->blocks);
}

/* Sizes that 32-bit places reach. */
bool cuda_grouped_windows_is_small(const cuda_grouped_windows *c)
{
    int64_t n_in = grt_mul_saturated(c->batch, c->groups * c->group), n_out = n_in;
    for (int d = 0; d < 2; d++) {
        if (c->in[d] <= 0 || c->out[d] <= 0 || c->in[d] > 1 << 20 || c->out[d] > 1 << 20 ||
            c->kernel[d] > 16 || c->stride[d] > 4 || c->dilation[d] > 16 || c->begin[d] > 256 ||
            c->begin[d] < -256)
            return false;
        n_in = grt_mul_saturated(n_in, c->in[d]);
        n_out = grt_mul_saturated(n_out, c->out[d]);
    }
    return n_in <= INT32_MAX && n_out <= INT32_MAX;
}

template <class T, int COLUMNS>
void cuda_grouped_windows_launch(const cuda_grouped_windows *c, const void *x, const void *w,
                                 const void *bias, const void *residual, void *y, cudaStream_t stream)
{
    const geometry g = cuda_grouped_windows_geometry(c);
    cuda_grouped_windows_convolve<T, COLUMNS><<<(unsigned)cuda_grouped_windows_blocks(&g, c->batch), THREADS,
                                                (size_t)cuda_grouped_windows_shared(&g), stream>>>(
        g, (const T *)x, (const T *)w, (const T *)bias, (const T *)residual, (T *)y);
}

template <class T>
void cuda_grouped_windows_launch_type(const cuda_grouped_windows *c, const void *x, const void *w,
                                      const void *bias, const void *residual, void *y, cudaStream_t stream)
{
    if (c->group % 16 == 0)
        cuda_grouped_windows_launch<T, 2>(c, x, w, bias, residual, y, stream);
    else
        cuda_grouped_windows_launch<T, 1>(c, x, w, bias, residual, y, stream);
}

} // namespace

bool cuda_grouped_windows_plan(cuda_grouped_windows *c, int multiprocessors)
{
    enum { COLUMNS = 8 }; /* of a multiplication */
    if (c->dtype == GRT_DTYPE_DOUBLE || c->groups < 2 || c->batch <= 0 || c->groups > 1 << 20 ||
        c->group % COLUMNS || c->group <= 0 || c->group > MOST_GROUP || (c->group & (c->group - 1)) == 0 ||
        !cuda_grouped_windows_is_small(c))
        return false;
    const int unit = (int)c->group;
    const int64_t channels = c->groups * c->group;
    const int most = channels < MOST_CHANNELS ? (int)channels : MOST_CHANNELS;
    for (c->halves = 2; c->halves >= 1; c->halves--)
        for (c->block_channels = most / unit * unit; c->block_channels >= unit; c->block_channels -= unit) {
            const geometry g = cuda_grouped_windows_geometry(c);
            if (g.sum_vectors > MOST_VECTORS || cuda_grouped_windows_shared(&g) > MOST_SHARED)
                continue;
            const int64_t blocks = cuda_grouped_windows_blocks(&g, c->batch);
            if (blocks > INT32_MAX / 2)
                return false;
            if (c->halves == 1 || (blocks >= 2 * multiprocessors && c->out[0] > SIDE))
                return true;
            break;
        }
    return false;
}

bool cuda_grouped_windows_run(const cuda_grouped_windows *c, const void *x, const void *w, const void *bias,
                              const void *residual, void *y, cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(w) || !cuda_is_vector(y))
        return false;
    if (c->dtype == GRT_DTYPE_FLOAT)
        cuda_grouped_windows_launch_type<float>(c, x, w, bias, residual, y, stream);
    else if (c->dtype == GRT_DTYPE_FLOAT16)
        cuda_grouped_windows_launch_type<__half>(c, x, w, bias, residual, y, stream);
    else
        cuda_grouped_windows_launch_type<__nv_bfloat16>(c, x, w, bias, residual, y, stream);
    return true;
}

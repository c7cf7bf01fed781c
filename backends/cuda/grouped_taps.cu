/* SPDX-License-Identifier: Apache-2.0 */
/* See grouped_taps.h. A block has ROWS pixels and COLUMNS output channels of one group. The sum runs over
 * taps and, within, channels of the group, in vectors of 16 bytes: a step is four of them, two
 * multiplications deep. Steps are fetched STAGES ahead. */
#include "backends/cuda/grouped_taps.h"

#include "backends/cuda/tensor_core.cuh"
#include "src/base/checked.h"

namespace
{

enum { ROWS = 64, COLUMNS = 64, WARPS = 4, THREADS = WARPS * 32, STEP = 4, STAGES = 4 };
enum { MANY_TAPS = 16, LEAST_STEPS = 16 };

struct geometry {
    int in[2], out[2], kernel_columns, stride[2], dilation[2], begin[2];
    int groups, out_group, tap_vectors, sum_vectors; /* vectors of 16 bytes: of a tap, of the whole sum */
    int pixels, row_tiles, column_tiles, splits, split_steps;
};

/* Rows of four vectors; eight rows read at the same place meet eight different banks. */
struct stage {
    uint4 x[ROWS * STEP], w[COLUMNS * STEP];
};
__device__ __forceinline__ int place(int row, int vector)
{
    return row * STEP + (vector ^ (row >> 1 & 3));
}

/* The vector of the sum that a thread fetches next, and its tap. */
struct walker {
    int at, tap_row, tap_column, channel;

    __device__ __forceinline__ void start(const geometry &g, int first)
    {
        at = first;
        const int tap = first / g.tap_vectors;
        channel = first % g.tap_vectors;
        tap_row = tap / g.kernel_columns;
        tap_column = tap % g.kernel_columns;
    }
    __device__ __forceinline__ void advance(const geometry &g)
    {
        at += STEP;
        for (channel += STEP; channel >= g.tap_vectors; channel -= g.tap_vectors)
            if (++tap_column == g.kernel_columns) {
                tap_column = 0;
                tap_row++;
            }
    }
};

/* One pixel's window in the input. */
struct window {
    bool there;
    int row, column;
    const uint4 *image;

    __device__ __forceinline__ void start(const geometry &g, int pixel, const uint4 *x, int group)
    {
        const int line = pixel / g.out[1];
        there = pixel < g.pixels;
        row = line % g.out[0] * g.stride[0] - g.begin[0];
        column = pixel % g.out[1] * g.stride[1] - g.begin[1];
        image = x + (size_t)(line / g.out[0]) * g.in[0] * g.in[1] * g.groups * g.tap_vectors +
                group * g.tap_vectors;
    }
    __device__ __forceinline__ void fetch_at(const geometry &g, const walker &k, uint4 *to) const
    {
        const int p = row + k.tap_row * g.dilation[0], q = column + k.tap_column * g.dilation[1];
        const bool inside = there && k.at < g.sum_vectors && p >= 0 && p < g.in[0] && q >= 0 && q < g.in[1];
        fetch(to, inside ? image + (size_t)(p * g.in[1] + q) * g.groups * g.tap_vectors + k.channel : image,
              inside);
    }
};

template <class T>
__device__ __forceinline__ void cuda_grouped_taps_multiply(const stage &s, int warp, int lane,
                                                           float (*sum)[4])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t a[4], b[4];
        /* Matrices: rows 0 to 7 and 8 to 15 of the first vector, then of the second one. */
        load_matrices(a, &s.x[place(warp * 16 + lane % 16, half * 2 + lane / 16)]);
#pragma unroll
        for (int k = 0; k < 4; k++)
            a[k] = tensor_core<T>::operand(a[k]);
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            /* Columns 0 to 7 of both vectors, then 8 to 15. */
            load_matrices(b, &s.w[place(n * 16 + lane / 16 * 8 + lane % 8, half * 2 + lane / 8 % 2)]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                b[k] = tensor_core<T>::operand(b[k]);
            tensor_core<T>::mma(sum[2 * n], a, b);
            tensor_core<T>::mma(sum[2 * n + 1], a, b + 2);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    cuda_grouped_taps_convolve(const __grid_constant__ geometry g, const uint4 *x, const uint4 *w, T *y,
                               float *parts)
{
    enum { EACH = ROWS * STEP / THREADS };
    __shared__ stage stages[STAGES];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int split = blockIdx.x % g.splits, tile = blockIdx.x / g.splits;
    const int group = tile % g.groups, rest = tile / g.groups, first_column = rest % g.column_tiles * COLUMNS,
              first_row = rest / g.column_tiles * ROWS;
    const int steps_all = (g.sum_vectors + STEP - 1) / STEP, begin = split * g.split_steps;
    const int steps = steps_all - begin < g.split_steps ? steps_all - begin : g.split_steps;
    /* Row thread / 4 of x and of w and every 32nd behind it, vector thread % 4 of each step. */
    window windows[EACH];
    const uint4 *filters[EACH];
    bool has_filter[EACH];
    walker k;
    k.start(g, begin * STEP + thread % STEP);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int row = thread / STEP + e * (THREADS / STEP);
        windows[e].start(g, first_row + row, x, group);
        has_filter[e] = first_column + row < g.out_group;
        filters[e] =
            w + (size_t)(group * g.out_group + (has_filter[e] ? first_column + row : 0)) * g.sum_vectors;
    }
    auto fetch_step = [&](int step) {
        stage &s = stages[step % STAGES];
        if (step < steps) {
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const int row = thread / STEP + e * (THREADS / STEP), at = place(row, thread % STEP);
                const bool there = has_filter[e] && k.at < g.sum_vectors;
                windows[e].fetch_at(g, k, &s.x[at]);
                fetch(&s.w[at], there ? filters[e] + k.at : filters[e], there);
            }
            k.advance(g);
        }
        commit(); /* an empty group, too: they are counted */
    };
    for (int step = 0; step < STAGES - 1; step++)
        fetch_step(step);
    float sum[COLUMNS / 8][4] = {};
    for (int step = 0; step < steps; step++) {
        wait_for<STAGES - 2>();
        __syncthreads(); /* the step has come for all, and nobody reads what is fetched into next */
        fetch_step(step + STAGES - 1);
        cuda_grouped_taps_multiply<T>(stages[step % STAGES], warp, lane, sum);
    }
    const int channels = g.groups * g.out_group;
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
        const int column = first_column + n * 8 + lane % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = first_row + warp * 16 + lane / 4 + half * 8;
            if (row >= g.pixels || column >= g.out_group)
                continue;
            const size_t at = (size_t)row * channels + group * g.out_group + column;
            if (parts)
                *(float2 *)(parts + (size_t)split * g.pixels * channels + at) =
                    make_float2(sum[n][2 * half], sum[n][2 * half + 1]);
            else
                tensor_core<T>::store(y + at, sum[n][2 * half], sum[n][2 * half + 1]);
        }
    }
}

template <class T> __global__ void join_splits(int64_t n, int splits, const float *parts, T *y)
{
    CUDA_EACH(i, n)
    {
        float sum = parts[i];
        for (int k = 1; k < splits; k++)
            sum += parts[k * n + i];
        y[i] = cuda_narrow<T, float>(sum);
    }
}

geometry cuda_geometry_of(const cuda_grouped_taps *c)
{
    const int64_t vector = 16 / (int64_t)grt_dtype_size(c->dtype);
    geometry g = {};
    for (int d = 0; d < 2; d++) {
        g.in[d] = (int)c->in[d];
        g.out[d] = (int)c->out[d];
        g.stride[d] = (int)c->stride[d];
        g.dilation[d] = (int)c->dilation[d];
        g.begin[d] = (int)c->begin[d];
    }
    g.kernel_columns = (int)c->kernel[1];
    g.groups = (int)c->groups;
    g.out_group = (int)c->out_group;
    g.tap_vectors = (int)(c->in_group / vector);
    g.sum_vectors = (int)(c->kernel[0] * c->kernel[1]) * g.tap_vectors;
    g.pixels = (int)(c->batch * c->out[0] * c->out[1]);
    g.row_tiles = (g.pixels + ROWS - 1) / ROWS;
    g.column_tiles = (g.out_group + COLUMNS - 1) / COLUMNS;
    return g;
}

int64_t cuda_grouped_taps_tiles_of(const geometry *g)
{
    return (int64_t)g->row_tiles * g->column_tiles * g->groups;
}

/* Sizes that 32-bit places reach. */
bool cuda_is_small(const cuda_grouped_taps *c)
{
    const int64_t most = 1 << 20, in = c->groups * c->in_group, out = c->groups * c->out_group;
    int64_t n_in = c->batch, n_out = c->batch;
    for (int d = 0; d < 2; d++) {
        if (c->in[d] > most || c->out[d] > most || c->kernel[d] > 4096 || c->stride[d] > 256 ||
            c->dilation[d] > 256 || c->begin[d] > most || c->begin[d] < -most)
            return false;
        n_in = grt_mul_saturated(n_in, c->in[d]);
        n_out = grt_mul_saturated(n_out, c->out[d]);
    }
    return grt_mul_saturated(n_in, in) <= INT32_MAX && grt_mul_saturated(n_out, out) <= INT32_MAX &&
           grt_mul_saturated(c->kernel[0] * c->kernel[1], c->in_group) <= INT32_MAX;
}

template <class T>
void cuda_grouped_taps_launch(const cuda_grouped_taps *c, const void *x, const void *w, void *y,
                              void *workspace, cudaStream_t stream)
{
    geometry g = cuda_geometry_of(c);
    const int steps = (g.sum_vectors + STEP - 1) / STEP;
    const int64_t n = (int64_t)g.pixels * g.groups * g.out_group;
    float *parts = c->splits > 1 ? (float *)workspace : nullptr;
    g.split_steps = (int)((steps + c->splits - 1) / c->splits);
    g.splits = (steps + g.split_steps - 1) / g.split_steps; /* none is empty */
    cuda_grouped_taps_convolve<T>
        <<<(unsigned)(cuda_grouped_taps_tiles_of(&g) * g.splits), THREADS, 0, stream>>>(
            g, (const uint4 *)x, (const uint4 *)w, (T *)y, parts);
    if (parts)
        join_splits<T><<<cuda_blocks(n, 256), 256, 0, stream>>>(n, g.splits, parts, (T *)y);
}

} // namespace

bool cuda_grouped_taps_plan(cuda_grouped_taps *c, int multiprocessors)
{
    if (c->dtype == GRT_DTYPE_DOUBLE || c->groups < 2 || c->batch <= 0)
        return false;
    const int64_t vector = 16 / (int64_t)grt_dtype_size(c->dtype);
    for (int d = 0; d < 2; d++)
        if (c->in[d] <= 0 || c->out[d] <= 0)
            return false;
    if (!cuda_is_small(c) || c->kernel[0] * c->kernel[1] < MANY_TAPS || c->in_group % vector ||
        c->out_group % 2 || c->in_group < 2 * vector)
        return false;
    const geometry g = cuda_geometry_of(c);
    const int64_t tiles = cuda_grouped_taps_tiles_of(&g), steps = (g.sum_vectors + STEP - 1) / STEP;
    /* Three blocks for each multiprocessor, unless their sums become short. */
    const int64_t wanted = 3 * (int64_t)multiprocessors / tiles, most = steps / LEAST_STEPS;
    if (tiles > INT32_MAX / 1024)
        return false;
    c->splits = wanted < most ? wanted : most;
    c->splits = c->splits > 1 ? c->splits < 16 ? c->splits : 16 : 1;
    return true;
}

size_t cuda_grouped_taps_workspace(const cuda_grouped_taps *c)
{
    const int64_t n = c->batch * c->out[0] * c->out[1] * c->groups * c->out_group;
    return c->splits > 1 ? (size_t)(c->splits * n) * sizeof(float) : 0;
}

bool cuda_grouped_taps_run(const cuda_grouped_taps *c, const void *x, const void *w, void *y, void *workspace,
                           cudaStream_t stream)
{
    if (!cuda_is_vector(x) || !cuda_is_vector(w) || !cuda_is_vector(y))
        return false;
    if (c->dtype == GRT_DTYPE_FLOAT)
        cuda_grouped_taps_launch<float>(c, x, w, y, workspace, stream);
    else if (c->dtype == GRT_DTYPE_FLOAT16)
        cuda_grouped_taps_launch<__half>(c, x, w, y, workspace, stream);
    else
        cuda_grouped_taps_launch<__nv_bfloat16>(c, x, w, y, workspace, stream);
    return true;
}

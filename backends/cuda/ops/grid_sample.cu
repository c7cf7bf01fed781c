/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid: a thread per output element gathers what makes it; of images and volumes in float32
 * or 16 bits, a thread has a point of some channels, whose neighbours it finds once. */
#include "backends/cuda/each.cuh"
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/number.cuh"
#include "backends/shared/grid_sample.h"

namespace
{

/* `now`: the tap that a walk over all combinations is at. */
struct walked_taps : grt_grid_taps {
    int32_t now;
};

enum { SAMPLED = 8 /* channels of a thread */ };

/* n axes; a plane has `pixels` elements, an image `points` of them in the result. */
struct sampled {
    grt_grid s;
    int64_t total, images, points, channels, groups, pixels;
    int64_t dims[3], stride[3];
};

/* One of the TAPS neighbours along each of N axes: where it is and what it counts. */
template <int N, int TAPS>
__device__ __forceinline__ void sampled_find(const sampled &d, const cuda_any &grid, int64_t point,
                                             int64_t (&at)[N][TAPS], float (&weight)[N][TAPS])
{
#pragma unroll
    for (int k = 0; k < N; k++) { /* the grid names the last axis first */
        grt_grid_taps t;
        grt_grid_find_taps(&d.s, grid.get(point * N + N - 1 - k), d.dims[k], &t);
#pragma unroll
        for (int j = 0; j < TAPS; j++) {
            at[k][j] = t.index[j] < 0 ? 0 : t.index[j] * d.stride[k];
            weight[k][j] = t.index[j] < 0 ? 0.0f : (float)t.weight[j];
        }
    }
}

template <typename T, int N, int TAPS>
__global__ void __launch_bounds__(CUDA_BLOCK)
    sample_kernel(const __grid_constant__ sampled d, cuda_any grid, const T *in, T *out)
{
    constexpr int DEEP = N == 3 ? TAPS : 1;
    CUDA_ITEMS (i, d.total) {
        const cuda_divided point = cuda_divide(i, d.points), of = cuda_divide(point.q, d.groups);
        int64_t at[N][TAPS];
        float weight[N][TAPS];
        sampled_find<N, TAPS>(d, grid, of.q * d.points + point.r, at, weight);
        const int64_t first = of.r * SAMPLED;
        const int n = (int)(d.channels - first < SAMPLED ? d.channels - first : SAMPLED);
        const T *from = in + (of.q * d.channels + first) * d.pixels;
        T *to = out + (of.q * d.channels + first) * d.points + point.r;
        for (int c = 0; c < n; c++, from += d.pixels, to += d.points) {
            float sum = 0;
#pragma unroll
            for (int z = 0; z < DEEP; z++)
#pragma unroll
                for (int y = 0; y < TAPS; y++)
#pragma unroll
                    for (int x = 0; x < TAPS; x++) {
                        const float w = (N == 3 ? weight[0][z] : 1.0f) * weight[N - 2][y] * weight[N - 1][x];
                        const int64_t where = (N == 3 ? at[0][z] : 0) + at[N - 2][y] + at[N - 1][x];
                        sum += w != 0 ? w * cuda_widen(from[where]) : 0.0f; /* infinities, too */
                    }
            *to = cuda_narrow<T, float>(sum);
        }
    }
}

template <typename T> grt_status sample_points(const grt_run *r, const sampled &d, int32_t n)
{
    const cuda_any grid = cuda_any_in(r, 1);
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data;
    const unsigned blocks = cuda_grid(d.total);
    cudaStream_t stream = cuda_stream(r);
    if (d.s.mode == GRT_GRID_NEAREST && n == 2)
        sample_kernel<T, 2, 1><<<blocks, CUDA_BLOCK, 0, stream>>>(d, grid, in, out);
    else if (d.s.mode == GRT_GRID_NEAREST)
        sample_kernel<T, 3, 1><<<blocks, CUDA_BLOCK, 0, stream>>>(d, grid, in, out);
    else if (d.s.mode == GRT_GRID_CUBIC)
        sample_kernel<T, 2, 4><<<blocks, CUDA_BLOCK, 0, stream>>>(d, grid, in, out);
    else if (n == 2)
        sample_kernel<T, 2, 2><<<blocks, CUDA_BLOCK, 0, stream>>>(d, grid, in, out);
    else
        sample_kernel<T, 3, 2><<<blocks, CUDA_BLOCK, 0, stream>>>(d, grid, in, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* False: another type, rank or mode. */
bool sampled_of(const grt_run *r, sampled *d)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    const int32_t n = in->rank - 2;
    *d = {};
    d->s = *(const grt_grid *)r->state;
    if ((n != 2 && n != 3) || (d->s.mode == GRT_GRID_CUBIC && n == 3) || out->dtype != in->dtype ||
        !grt_dtype_in(in->dtype, GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16)))
        return false;
    d->images = in->dims[0];
    d->channels = in->dims[1];
    d->groups = (d->channels + SAMPLED - 1) / SAMPLED;
    d->points = grt_dims_product(out->dims, 2, out->rank);
    d->pixels = grt_dims_product(in->dims, 2, in->rank);
    d->total = d->images * d->groups * d->points;
    for (int32_t k = 0; k < n; k++) {
        d->dims[k] = in->dims[k + 2];
        d->stride[k] = grt_dims_product(in->dims, k + 3, in->rank);
    }
    return d->pixels > 0;
}

grt_status cuda_run_grid(const grt_run *r)
{
    sampled d;
    if (sampled_of(r, &d) && d.total > 0) {
        const int32_t n = r->in[0]->rank - 2;
        return r->in[0]->dtype == GRT_DTYPE_FLOAT     ? sample_points<float>(r, d, n)
               : r->in[0]->dtype == GRT_DTYPE_FLOAT16 ? sample_points<__half>(r, d, n)
                                                      : sample_points<__nv_bfloat16>(r, d, n);
    }

    const grt_grid s = *(const grt_grid *)r->state;
    const cuda_any in = cuda_any_in(r, 0), grid = cuda_any_in(r, 1), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    const int32_t n = dims.rank - 2;
    const int64_t points = grt_dims_product(r->out[0]->dims, 2, r->out[0]->rank), channels = dims[1];
    const int64_t pixels = grt_dims_product(r->in[0]->dims, 2, dims.rank);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        walked_taps all[GRT_MAX_RANK];
        int64_t p = i % points, plane = i / points, point = plane / channels * points + p;
        for (int32_t k = 0; k < n; k++) { /* the grid names the last axis first */
            grt_grid_find_taps(&s, grid.get(point * n + n - 1 - k), dims[k + 2], &all[k]);
            all[k].now = 0;
        }
        double sum = 0;
        for (int32_t k = 0; k >= 0;) {
            double w = 1;
            int64_t at = 0;
            for (k = 0; k < n; k++) {
                int64_t index = all[k].index[all[k].now];
                w = index < 0 ? 0 : w * all[k].weight[all[k].now];
                at = at * dims[k + 2] + (index < 0 ? 0 : index);
            }
            if (w != 0)
                sum += w * in.get(plane * pixels + at);
            for (k = n - 1; k >= 0 && ++all[k].now == all[k].n; k--)
                all[k].now = 0;
        }
        out.put(i, sum);
    });
}

grt_status cuda_run_affine(const grt_run *r)
{
    const grt_tensor *y = r->out[0];
    const bool align = *(const bool *)r->state;
    const int32_t n = y->rank - 2;
    const cuda_any matrix = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(y);
    const int64_t points = grt_dims_product(y->dims, 1, n + 1);
    return cuda_each(r, grt_tensor_elements(y), [=] __device__(int64_t i) {
        int64_t p = i / n, rest = p % points, row = (p / points * n + i % n) * (n + 1);
        double sum = matrix.get(row + n);
        for (int32_t k = n - 1; k >= 0; k--) { /* coordinates start with that of the last axis */
            int64_t size = dims[k + 1], at = rest % size;
            rest /= size;
            sum += matrix.get(row + n - 1 - k) * grt_affine_point(align, at, size);
        }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "GridSample",
     .types = {GRT_SET_NUMBERS, GRT_SET_FLOATS},
     .create = grt_grid_create,
     .destroy = free,
     .reshape = grt_grid_reshape,
     .run = cuda_run_grid},
    {.domain = "",
     .op = "AffineGrid",
     .types = {GRT_SET_FLOATS},
     .create = grt_affine_create,
     .destroy = free,
     .reshape = grt_affine_reshape,
     .run = cuda_run_affine},
};

} // namespace
CUDA_KERNELS(grid_sample, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QGlobalAveragePool: means over images of bytes. Sums are integers, and the rest is the CPU's
 * sequence of operations, so that results are the same bytes. */
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/walk.h"
#include "backends/shared/quantised.h"
#include "src/base/tensor.h"

#include <math.h>

namespace
{

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };
enum { LANES = 32, WARPS = 8 };

struct qpool_images {
    int64_t batch, channels, pixels, step_image, step_channel, step_pixel;
    const uint8_t *x;
    const float *x_scale, *y_scale;
    const void *x_zero, *y_zero;
    uint8_t *y;
    bool x_signed, y_signed;
};

__device__ __forceinline__ int32_t level_of(const void *zero, bool is_signed)
{
    return is_signed ? *(const int8_t *)zero : *(const uint8_t *)zero;
}

/* Of a sum over all pixels. */
__device__ __forceinline__ uint8_t qpool_mean(const qpool_images &p, int64_t sum)
{
    const int32_t zero = level_of(p.y_zero, p.y_signed);
    if (p.pixels == 0)
        return (uint8_t)zero;
    const double mean = (double)(sum - p.pixels * level_of(p.x_zero, p.x_signed)) / (double)p.pixels;
    const float v = __fmul_rn((float)mean, __fdiv_rn(*p.x_scale, *p.y_scale)),
                low = (float)((p.y_signed ? -128 : 0) - zero);
    return (uint8_t)(__float_as_uint(cuda_qrounded(cuda_qlimited(v, low, low + 255.0f))) + (uint32_t)zero);
}

/* A block has V x LANES channels of an image, its warps different pixels. V: bytes of a lane, side by side.
 */
template <int V>
__global__ void __launch_bounds__(LANES *WARPS) average_images(const __grid_constant__ qpool_images p)
{
    __shared__ int64_t sums[WARPS][V][LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64_t blocks = (p.channels + V * LANES - 1) / (V * LANES), image = blockIdx.x / blocks,
                  channel = (blockIdx.x % blocks * LANES + lane) * V;
    int64_t sum[V] = {};
    overlap_let_next_begin();
    overlap_wait();
    const uint8_t *x = p.x + image * p.step_image + channel * p.step_channel;
    if (channel < p.channels)
        for (int64_t i = warp; i < p.pixels; i += WARPS) {
            uint32_t word;
            if constexpr (V == 4)
                word = *(const uint32_t *)(x + i * p.step_pixel);
            else
                word = x[i * p.step_pixel];
#pragma unroll
            for (int k = 0; k < V; k++)
                sum[k] += cuda_qwhole(word, k, p.x_signed);
        }
#pragma unroll
    for (int k = 0; k < V; k++)
        sums[warp][k][lane] = sum[k];
    __syncthreads();
    if (warp >= V || channel + warp >= p.channels)
        return;
    int64_t all = 0;
    for (int i = 0; i < WARPS; i++)
        all += sums[i][warp][lane];
    p.y[image * p.channels + channel + warp] = qpool_mean(p, all);
}

grt_status cuda_reshape_qpool(grt_reshape *r)
{
    const grt_tensor *x = r->in[X];
    const bool last = grt_channels_last(r->desc);
    qpool_images *p;
    GRT_TRY(cuda_state(&p));
    p->batch = x->dims[0];
    p->channels = x->dims[last ? x->rank - 1 : 1];
    p->pixels = last ? grt_dims_product(x->dims, 1, x->rank - 1) : grt_dims_product(x->dims, 2, x->rank);
    p->step_image = p->channels * p->pixels;
    p->step_channel = last ? 1 : p->pixels;
    p->step_pixel = last ? p->channels : 1;
    r->shape = p;
    return GRT_OK;
}

template <int V> grt_status enqueue_qpool(const grt_run *r, const qpool_images &p)
{
    const int64_t blocks = p.batch * ((p.channels + V * LANES - 1) / (V * LANES));
    const bool overlaps = ((const cuda_device *)r->device)->prop.major >= 9;
    if (blocks > INT32_MAX)
        return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED, "%lld images of %lld channels are too many",
                           (long long)p.batch, (long long)p.channels);
    CUDA_TRY(
        overlap_launch(overlaps, average_images<V>, (unsigned)blocks, LANES * WARPS, 0, cuda_stream(r), p));
    return GRT_OK;
}

grt_status run_qpool(const grt_run *r)
{
    qpool_images p = *(const qpool_images *)r->shape;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    p.x = (const uint8_t *)r->in[X]->data;
    p.x_scale = (const float *)r->in[X_SCALE]->data;
    p.x_zero = r->in[X_ZERO]->data;
    p.y_scale = (const float *)r->in[Y_SCALE]->data;
    p.y_zero = r->in[Y_ZERO]->data;
    p.y = (uint8_t *)r->out[0]->data;
    p.x_signed = r->in[X]->dtype == GRT_DTYPE_INT8;
    p.y_signed = r->in[Y_ZERO]->dtype == GRT_DTYPE_INT8;
    const bool in_fours = p.step_channel == 1 && p.channels % 4 == 0 && cuda_aligned(p.x, 4);
    return in_fours ? enqueue_qpool<4>(r, p) : enqueue_qpool<1>(r, p);
}

bool supports_qpool(const grt_kernel_node *node, grt_text *why)
{
    return grt_qbytes_fit(node, 1u << X_SCALE | 1u << Y_SCALE, why);
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QGlobalAveragePool",
     .supports = supports_qpool,
     .reshape = cuda_reshape_qpool,
     .release_shape = free,
     .run = run_qpool},
};

} // namespace
CUDA_KERNELS(qpool, rows);

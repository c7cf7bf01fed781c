/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::QSoftmax: Softmax of bytes along one axis. Exponentials are looked up and summed in units, as on
 * the CPU. */
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/walk.h"
#include "backends/shared/quantised.h"
#include "backends/shared/softmax.h"
#include "backends/shared/softmax_units.h"

namespace
{

enum { X, X_SCALE, Y_SCALE, Y_ZERO };
enum { LEVELS = 256, LANES = 32, WARPS = 8, MOST_BLOCKS = 8 /* of a multiprocessor */ };

struct qsoftmax_run {
    const uint8_t *x;
    uint8_t *y;
    const float *x_scale, *y_scale;
    const void *y_zero;
    int64_t outer, size, inner;
    bool x_signed, y_signed;
};

/* exp(-i * scale) for i from 0 on, as a number and in units. */
struct exponentials {
    float of[LEVELS];
    int32_t units[LEVELS];

    __device__ __forceinline__ void fill(float scale)
    {
        for (int i = threadIdx.x; i < LEVELS; i += blockDim.x) {
            units[i] = __double2int_rn(exp(-(double)i * (double)scale) * GRT_SOFTMAX_UNITS);
            of[i] = (float)(units[i] / GRT_SOFTMAX_UNITS);
        }
    }
};

/* Bytes of a result: its limits, and what a sum of units makes of exponentials. */
struct qsoftmax_rounding {
    float low, high, scale;
    int32_t zero;

    __device__ __forceinline__ explicit qsoftmax_rounding(const qsoftmax_run &s) : scale(*s.y_scale)
    {
        zero = s.y_signed ? *(const int8_t *)s.y_zero : *(const uint8_t *)s.y_zero;
        low = (float)((s.y_signed ? -128 : 0) - zero);
        high = low + 255.0f;
    }
    __device__ __forceinline__ float factor(int64_t sum) const
    {
        return (float)(GRT_SOFTMAX_UNITS / ((double)sum * (double)scale));
    }
    __device__ __forceinline__ uint8_t byte(float v) const
    {
        return (uint8_t)(__float_as_uint(cuda_qrounded(cuda_qlimited(v, low, high))) + (uint32_t)zero);
    }
};

/* A warp for each row. HELD: bytes of a lane that stay in registers; longer rows are read again. */
template <int HELD>
__global__ void __launch_bounds__(LANES *WARPS) qsoftmax_rows(const __grid_constant__ qsoftmax_run s)
{
    __shared__ exponentials e;
    const int lane = threadIdx.x % LANES;
    const uint32_t flip = s.x_signed ? 0x80 : 0;
    overlap_let_next_begin();
    overlap_wait();
    e.fill(*s.x_scale);
    const qsoftmax_rounding to(s);
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES; row < s.outer;
         row += (int64_t)gridDim.x * WARPS) {
        const uint8_t *x = s.x + row * s.size;
        uint8_t *y = s.y + row * s.size;
        uint32_t held[HELD], largest = 0;
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            const int64_t i = lane + k * LANES;
            held[k] = i < s.size ? x[i] ^ flip : 0;
            largest = max(largest, held[k]);
        }
        for (int64_t i = lane + HELD * LANES; i < s.size; i += LANES)
            largest = max(largest, x[i] ^ flip);
        largest = __reduce_max_sync(0xffffffffu, largest);
        int64_t sum = 0;
#pragma unroll
        for (int k = 0; k < HELD; k++)
            sum += lane + k * LANES < s.size ? e.units[largest - held[k]] : 0;
        for (int64_t i = lane + HELD * LANES; i < s.size; i += LANES)
            sum += e.units[largest - (x[i] ^ flip)];
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        const float factor = to.factor(sum);
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if (lane + k * LANES < s.size)
                y[lane + k * LANES] = to.byte(__fmul_rn(e.of[largest - held[k]], factor));
        for (int64_t i = lane + HELD * LANES; i < s.size; i += LANES)
            y[i] = to.byte(__fmul_rn(e.of[largest - (x[i] ^ flip)], factor));
    }
}

/* A thread for each column, neighbours side by side. */
__global__ void __launch_bounds__(LANES *WARPS) qsoftmax_columns(const __grid_constant__ qsoftmax_run s)
{
    __shared__ exponentials e;
    const uint32_t flip = s.x_signed ? 0x80 : 0;
    overlap_let_next_begin();
    overlap_wait();
    e.fill(*s.x_scale);
    const qsoftmax_rounding to(s);
    __syncthreads();
    CUDA_ITEMS (i, s.outer * s.inner) {
        const int64_t at = i / s.inner * s.size * s.inner + i % s.inner;
        uint32_t largest = 0;
        int64_t sum = 0;
        for (int64_t k = 0; k < s.size; k++)
            largest = max(largest, s.x[at + k * s.inner] ^ flip);
        for (int64_t k = 0; k < s.size; k++)
            sum += e.units[largest - (s.x[at + k * s.inner] ^ flip)];
        const float factor = to.factor(sum);
        for (int64_t k = 0; k < s.size; k++)
            s.y[at + k * s.inner] =
                to.byte(__fmul_rn(e.of[largest - (s.x[at + k * s.inner] ^ flip)], factor));
    }
}

grt_status run_qsoftmax(const grt_run *r)
{
    const grt_softmax *shape = (const grt_softmax *)r->shape;
    const cudaDeviceProp *prop = &((const cuda_device *)r->device)->prop;
    const qsoftmax_run s = {(const uint8_t *)r->in[X]->data,
                            (uint8_t *)r->out[0]->data,
                            (const float *)r->in[X_SCALE]->data,
                            (const float *)r->in[Y_SCALE]->data,
                            r->in[Y_ZERO]->data,
                            shape->outer,
                            shape->size,
                            shape->inner,
                            r->in[X]->dtype == GRT_DTYPE_INT8,
                            r->in[Y_ZERO]->dtype == GRT_DTYPE_INT8};
    const int64_t tasks = s.inner > 1 ? (s.outer * s.inner + LANES * WARPS - 1) / (LANES * WARPS)
                                      : (s.outer + WARPS - 1) / WARPS,
                  most = (int64_t)prop->multiProcessorCount * MOST_BLOCKS;
    if (s.outer * s.size * s.inner == 0)
        return GRT_OK;
    const auto kernel = s.inner > 1           ? qsoftmax_columns
                        : s.size <= 4 * LANES ? qsoftmax_rows<4>
                                              : qsoftmax_rows<8>;
    CUDA_TRY(overlap_launch(prop->major >= 9, kernel, (unsigned)(tasks < most ? tasks : most), LANES * WARPS,
                            0, cuda_stream(r), s));
    return GRT_OK;
}

bool supports_qsoftmax(const grt_kernel_node *node, grt_text *why)
{
    return grt_qbytes_fit(node, 1u << X_SCALE | 1u << Y_SCALE, why);
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "QSoftmax",
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_qsoftmax,
     .reshape = grt_softmax_reshape,
     .release_shape = free,
     .run = run_qsoftmax},
};

} // namespace
CUDA_KERNELS(qpool_softmax, rows);

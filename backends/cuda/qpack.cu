/* SPDX-License-Identifier: Apache-2.0 */
/* See qpack.h. */
#include "backends/cuda/qpack.h"

#include "backends/cuda/walk.h"

namespace
{

__global__ void __launch_bounds__(CUDA_BLOCK) copy_rows(const __grid_constant__ cuda_qrows r, int64_t n,
                                                        const uint8_t *from, const uint8_t *fill, uint4 *to)
{
    const int64_t chunks = (r.width + CUDA_QCHUNK - 1) / CUDA_QCHUNK;
    const uint8_t behind = fill ? *fill : 0;
    CUDA_ITEMS (i, n) {
        const int64_t chunk = i % chunks, row = i / chunks, c = row % r.count[2],
                      b = row / r.count[2] % r.count[1], a = row / r.count[2] / r.count[1];
        const uint8_t *at = from + a * r.step[0] + b * r.step[1] + c * r.step[2];
        alignas(16) uint8_t bytes[CUDA_QCHUNK];
#pragma unroll
        for (int k = 0; k < CUDA_QCHUNK; k++) {
            const int64_t d = chunk * CUDA_QCHUNK + k;
            bytes[k] = d < r.width ? at[d * r.step[3]] : behind;
        }
        to[i] = *(const uint4 *)bytes;
    }
}

__global__ void __launch_bounds__(CUDA_BLOCK)
    unfold_lines(const __grid_constant__ cuda_qlines l, int64_t n, const uint8_t *from, const uint8_t *fill,
                 uint4 *to)
{
    const int width = (int)(l.taps * l.channels), chunks = (width + CUDA_QCHUNK - 1) / CUDA_QCHUNK;
    const uint8_t outside = fill ? *fill : 0;
    CUDA_ITEMS (i, n) {
        const int chunk = (int)(i % chunks);
        const int64_t pixel = i / chunks, line = pixel / l.out, first = pixel % l.out * l.stride - l.begin;
        const uint8_t *at = from + line / l.per_image * l.step_image + line % l.per_image * l.step_line;
        int tap = chunk * CUDA_QCHUNK / (int)l.channels, channel = chunk * CUDA_QCHUNK % (int)l.channels;
        alignas(16) uint8_t bytes[CUDA_QCHUNK];
#pragma unroll
        for (int k = 0; k < CUDA_QCHUNK; k++) {
            const int64_t column = first + tap * l.dilation;
            const bool there = tap < l.taps && column >= 0 && column < l.in;
            bytes[k] = there ? at[column * l.step_pixel + channel * l.step_channel] : outside;
            if (++channel == l.channels) {
                channel = 0;
                tap++;
            }
        }
        to[i] = *(const uint4 *)bytes;
    }
}

/* A block for each filter. */
__global__ void __launch_bounds__(CUDA_BLOCK)
    pack_filters(const __grid_constant__ cuda_qrows r, const uint8_t *from, uint8_t flip, uint8_t *to,
                 int32_t *sums)
{
    const int64_t row_bytes = (r.width + CUDA_QCHUNK - 1) / CUDA_QCHUNK * CUDA_QCHUNK, rows = r.count[2],
                  filter = blockIdx.x;
    const uint8_t *first = from + filter / r.count[1] * r.step[0] + filter % r.count[1] * r.step[1];
    __shared__ int32_t total;
    int32_t sum = 0;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < rows * row_bytes; i += blockDim.x) {
        const int64_t d = i % row_bytes, row = i / row_bytes;
        uint8_t v = 0;
        if (d < r.width)
            v = first[row * r.step[2] + d * r.step[3]] ^ flip;
        sum += (int8_t)v;
        to[filter * rows * row_bytes + i] = v;
    }
    atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0)
        sums[filter] = total;
}

} // namespace

grt_status cuda_qrows_copy(const cuda_qrows *rows, const void *from, const void *fill, void *to,
                           cudaStream_t stream)
{
    const int64_t n =
        rows->count[0] * rows->count[1] * rows->count[2] * cuda_qrow_bytes(rows->width) / CUDA_QCHUNK;
    if (n <= 0)
        return GRT_OK;
    copy_rows<<<cuda_grid(n), CUDA_BLOCK, 0, stream>>>(*rows, n, (const uint8_t *)from, (const uint8_t *)fill,
                                                       (uint4 *)to);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_qlines_unfold(const cuda_qlines *lines, const void *from, const void *fill, void *to,
                              cudaStream_t stream)
{
    const int64_t n =
        lines->lines * lines->out * cuda_qrow_bytes(lines->taps * lines->channels) / CUDA_QCHUNK;
    if (n <= 0)
        return GRT_OK;
    unfold_lines<<<cuda_grid(n), CUDA_BLOCK, 0, stream>>>(*lines, n, (const uint8_t *)from,
                                                          (const uint8_t *)fill, (uint4 *)to);
    CUDA_LAUNCHED();
    return GRT_OK;
}

void cuda_qweights_pack(const cuda_qrows *rows, const void *from, bool is_signed, void *to, int32_t *sums)
{
    const int64_t row_bytes = cuda_qrow_bytes(rows->width);
    const uint8_t *bytes = (const uint8_t *)from, flip = is_signed ? 0 : 0x80;
    uint8_t *out = (uint8_t *)to;
    for (int64_t filter = 0; filter < rows->count[0] * rows->count[1]; filter++) {
        const uint8_t *first =
            bytes + filter / rows->count[1] * rows->step[0] + filter % rows->count[1] * rows->step[1];
        int32_t sum = 0;
        for (int64_t c = 0; c < rows->count[2]; c++, out += row_bytes)
            for (int64_t d = 0; d < rows->width; d++) {
                out[d] = first[c * rows->step[2] + d * rows->step[3]] ^ flip;
                sum += (int8_t)out[d];
            }
        sums[filter] = sum;
    }
}

grt_status cuda_qweights_enqueue(const cuda_qrows *rows, const void *from, bool is_signed, void *to,
                                 int32_t *sums, cudaStream_t stream)
{
    const int64_t filters = rows->count[0] * rows->count[1];
    if (filters <= 0)
        return GRT_OK;
    pack_filters<<<(unsigned)filters, CUDA_BLOCK, 0, stream>>>(*rows, (const uint8_t *)from,
                                                               is_signed ? 0 : 0x80, (uint8_t *)to, sums);
    CUDA_LAUNCHED();
    return GRT_OK;
}

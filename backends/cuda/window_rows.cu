/* SPDX-License-Identifier: Apache-2.0 */
/* See window_rows.h. A thread makes 16 bytes of a row. */
#include "backends/cuda/window_rows.h"

#include "backends/cuda/overlap.cuh"

namespace
{

enum { ROWS_THREADS = 256 };

/* T: an integer as large as a number. */
template <class T> constexpr int numbers_of_thread = 16 / (int)sizeof(T);

template <class T>
__global__ void gather_rows(const __grid_constant__ cuda_window_rows w, const T *x, uint4 *rows, int n)
{
    constexpr int EACH = numbers_of_thread<T>;
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), chunks = w.length / EACH;
    overlap_let_next_begin();
    overlap_wait();
    if (i >= n)
        return;
    const int row = i / chunks, first = (i - row * chunks) * EACH, line = row / w.out[1],
              image = line / w.out[0], top = (line - image * w.out[0]) * w.stride[0] - w.begin[0],
              left = (row - line * w.out[1]) * w.stride[1] - w.begin[1], taps = w.kernel[0] * w.kernel[1];
    const T *from = x + (size_t)image * w.in[0] * w.in[1] * w.channels;
    int tap = first / w.channels, channel = first - tap * w.channels, down = tap / w.kernel[1],
        right = tap - down * w.kernel[1];
    uint32_t word[4] = {};
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int y_at = top + down * w.dilation[0], x_at = left + right * w.dilation[1];
        if (tap < taps && y_at >= 0 && x_at >= 0 && y_at < w.in[0] && x_at < w.in[1])
            word[k * sizeof(T) / 4] |= (uint32_t)from[(y_at * w.in[1] + x_at) * w.channels + channel]
                                       << (k * sizeof(T) % 4 * 8);
        if (++channel == w.channels) {
            channel = 0;
            tap++;
            if (++right == w.kernel[1]) {
                right = 0;
                down++;
            }
        }
    }
    rows[i] = make_uint4(word[0], word[1], word[2], word[3]);
}

template <class T>
grt_status window_rows_run(const cuda_window_rows *w, const void *x, void *rows, cudaStream_t stream)
{
    const int n = w->images * w->out[0] * w->out[1] * (w->length / numbers_of_thread<T>);
    CUDA_TRY(overlap_launch(w->overlaps, gather_rows<T>, (n + ROWS_THREADS - 1) / ROWS_THREADS, ROWS_THREADS,
                            0, stream, *w, (const T *)x, (uint4 *)rows, n));
    return GRT_OK;
}

} // namespace

grt_status cuda_window_rows_run(const cuda_window_rows *w, const void *x, void *rows, cudaStream_t stream)
{
    return grt_dtype_size(w->dtype) == 4 ? window_rows_run<uint32_t>(w, x, rows, stream)
                                         : window_rows_run<uint16_t>(w, x, rows, stream);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/concat.h"

#include "backends/cuda/overlap.cuh"
#include "backends/cuda/walk.h"

namespace
{

struct concat_parts {
    void *part[CUDA_CONCAT_MOST];
};

template <class T, bool CUT>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_concat_move(const __grid_constant__ cuda_concat c, const __grid_constant__ concat_parts s, T *whole)
{
    overlap_let_next_begin();
    overlap_wait();
    const uint32_t i = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i >= c.total)
        return;
    const uint32_t row = i / c.row, at = i - row * c.row;
    int low = 0, high = c.n - 1; /* the first part that ends behind `at` */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (at < c.ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    const uint32_t begin = low ? c.ends[low - 1] : 0;
    T *part = (T *)s.part[low];
    const size_t in_part = (size_t)row * (c.ends[low] - begin) + (at - begin);
    if (!CUT)
        whole[i] = part[in_part];
    else if (part)
        part[in_part] = whole[i];
}

template <class T>
cudaError_t cuda_concat_launch(const cuda_concat *c, const concat_parts &s, void *whole, bool cut, bool early,
                               cudaStream_t stream)
{
    return overlap_launch(early, cut ? cuda_concat_move<T, true> : cuda_concat_move<T, false>,
                          cuda_grid(c->total), CUDA_BLOCK, 0, stream, *c, s, (T *)whole);
}

} // namespace

bool cuda_concat_plan(cuda_concat *c, int64_t outer, int32_t n, const int64_t *row_bytes)
{
    int64_t all = 16, row = 0;
    *c = {};
    if (n < 1 || n > CUDA_CONCAT_MOST)
        return false;
    for (int32_t i = 0; i < n; i++) {
        if (row_bytes[i] < 0 || row_bytes[i] > INT32_MAX)
            return false;
        all |= row_bytes[i];
        row += row_bytes[i];
    }
    c->n = n;
    c->unit = (uint32_t)(all & -all);
    if (c->unit < 2 || row > INT32_MAX ||
        (row && outer > (int64_t)UINT32_MAX * 3 / 4 / ((row + c->unit - 1) / c->unit)))
        return false;
    c->row = (uint32_t)(row / c->unit);
    c->total = (uint32_t)(outer * c->row);
    uint32_t end = 0;
    for (int32_t i = 0; i < n; i++)
        c->ends[i] = end += (uint32_t)(row_bytes[i] / c->unit);
    return c->total > 0 && (int64_t)c->total <= (int64_t)CUDA_BLOCK << 20; /* one thread each */
}

grt_status cuda_concat_run(const cuda_concat *c, void *whole, void *const *parts, bool cut, bool early,
                           cudaStream_t stream, bool *out_done)
{
    concat_parts s = {};
    *out_done = cuda_aligned(whole, c->unit);
    for (int32_t i = 0; i < c->n; i++) {
        s.part[i] = parts[i];
        *out_done = *out_done && cuda_aligned(parts[i], c->unit);
    }
    if (!*out_done)
        return GRT_OK;
    CUDA_TRY(c->unit == 16  ? cuda_concat_launch<cuda_bits128>(c, s, whole, cut, early, stream)
             : c->unit == 8 ? cuda_concat_launch<uint64_t>(c, s, whole, cut, early, stream)
             : c->unit == 4 ? cuda_concat_launch<uint32_t>(c, s, whole, cut, early, stream)
                            : cuda_concat_launch<uint16_t>(c, s, whole, cut, early, stream));
    return GRT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of elements along one axis, for ArgMax, TopK, CumSum and the like. A warp or a block works on a line
 * where its elements are neighbours or lines are few, else a thread does. */
#ifndef GRT_BACKENDS_CUDA_LINE_CUH
#define GRT_BACKENDS_CUDA_LINE_CUH

#include "backends/cuda/number.cuh"
#include "backends/cuda/order.cuh"
#include "backends/cuda/pointwise_eval.h"

/* Element i of line l: base(l) + i * inner. */
struct cuda_lines {
    int64_t n_lines, n, inner;
};

__device__ __forceinline__ int64_t cuda_line_base(const cuda_lines &s, int64_t line, int64_t n)
{
    int64_t outer = line / s.inner;
    return outer * n * s.inner + (line - outer * s.inner);
}

static inline void cuda_lines_of(cuda_lines *s, const grt_tensor *t, int64_t axis)
{
    s->n = t->rank ? t->dims[axis] : 1;
    s->inner = t->rank ? grt_dims_product(t->dims, (int32_t)axis + 1, t->rank) : 1;
    s->n_lines = (t->rank ? grt_dims_product(t->dims, 0, (int32_t)axis) : 1) * s->inner;
}

/* A warp per line pays if loads become contiguous or the device is filled. */
static inline bool cuda_lines_by_warp(const cuda_lines &s)
{
    return s.n > 16 && (s.inner == 1 || s.n_lines < 4096);
}

/* Lines in pieces, for lines that are too few to fill a device: piece p of a line has its elements from
 * p * per_part on. */
struct cuda_line_parts {
    int64_t parts, per_part;
};

/* One piece where lines are many or short. Where elements of a line are neighbours a block has a piece, else
 * a thread. */
static inline cuda_line_parts cuda_line_parts_of(const cuda_lines &s)
{
    enum { BLOCK_PART = 4096, THREAD_PART = 32, MOST_PARTS = 1024 };
    const int64_t least = s.inner == 1 ? BLOCK_PART : THREAD_PART, wanted = s.inner == 1 ? 1024 : 1 << 17;
    int64_t parts = s.n_lines > 0 ? (wanted + s.n_lines - 1) / s.n_lines : 1;
    parts = parts < s.n / least ? parts : s.n / least;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    parts = parts < 1 ? 1 : parts;
    return {parts, (s.n + parts - 1) / parts};
}

/* ---- order ----
 * Elements as unsigned keys in the same order; both zeros are one, every NaN is greater than all numbers. */

template <typename S> __device__ __forceinline__ uint64_t cuda_order_key(S x)
{
    typename pw_storage<S>::T v = pw_widen<S>(x);
    typedef decltype(v) T;
    if constexpr (std::is_same<T, float>::value) {
        const uint32_t bits = __float_as_uint(v == 0 ? 0.0f : v);
        return v != v ? UINT64_MAX : bits >> 31 ? (uint32_t)~bits : bits | UINT32_C(1) << 31;
    } else if constexpr (std::is_floating_point<T>::value) {
        if (v != v)
            return UINT64_MAX;
        uint64_t bits = (uint64_t)__double_as_longlong(v == 0 ? 0.0 : v);
        return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
    } else if constexpr (std::is_signed<T>::value) {
        return (uint64_t)(int64_t)v ^ UINT64_C(1) << 63;
    } else {
        return (uint64_t)v;
    }
}

struct cuda_place {
    uint64_t key;
    int64_t at; /* -1: none */
};

/* The greater key; of equal ones the first, or the last. */
__device__ __forceinline__ cuda_place cuda_better(cuda_place a, cuda_place b, bool last)
{
    if (a.at < 0 || b.at < 0)
        return a.at < 0 ? b : a;
    if (a.key != b.key)
        return a.key > b.key ? a : b;
    return (a.at < b.at) != last ? a : b;
}

__device__ __forceinline__ cuda_place cuda_better_of_warp(cuda_place a, bool last)
{
    for (int lane = 16; lane; lane /= 2) {
        cuda_place b = {__shfl_xor_sync(0xffffffffu, (unsigned long long)a.key, lane),
                        (int64_t)__shfl_xor_sync(0xffffffffu, (long long)a.at, lane)};
        a = cuda_better(a, b, last);
    }
    return a;
}

#endif

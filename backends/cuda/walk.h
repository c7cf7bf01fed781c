/* SPDX-License-Identifier: Apache-2.0 */
/* Walking strided tensors on the device, any rank: shared by element-wise and movement kernels.
 *
 * A walk is made on the host when a shape is prepared: axes are added from the outermost inwards and merged
 * where all operands allow it, so that most cases become one axis. It is passed to the kernel by value.
 * Indices are divided by multiplication while there are fewer than 2^31 of them, else in 64 bits. */
#ifndef GRT_BACKENDS_CUDA_WALK_H
#define GRT_BACKENDS_CUDA_WALK_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/watch.h"

#include <cstdlib>
#include <cstring>
#include <new>

/* Division of numbers below 2^31 by a number in [1, 2^31). */
struct cuda_divisor {
    uint32_t divisor, multiplier, shift;
};

static inline cuda_divisor cuda_divisor_of(int64_t divisor)
{
    cuda_divisor by = {(uint32_t)divisor, 0, 0};
    while (by.shift < 31 && (UINT64_C(1) << by.shift) < (uint64_t)divisor)
        by.shift++;
    uint64_t power = UINT64_C(1) << by.shift;
    by.multiplier = (uint32_t)((UINT64_C(1) << 32) * (power - (uint64_t)divisor) / (uint64_t)divisor + 1);
    return by;
}

static __host__ __device__ inline uint32_t cuda_divide(uint32_t n, cuda_divisor by)
{
#ifdef __CUDA_ARCH__
    return (__umulhi(n, by.multiplier) + n) >> by.shift;
#else
    return (uint32_t)(((uint64_t)n * by.multiplier >> 32) + n) >> by.shift;
#endif
}

/* N operands, at most R axes; operand 0 is the output. Strides are in elements; 0 and negative ones are
 * allowed. */
template <int N, int R> struct cuda_walk {
    int64_t total;
    int32_t rank;
    bool wide; /* total does not fit in 31 bits */
    int64_t dims[R];
    cuda_divisor by[R];
    int64_t strides[N][R];
};
typedef cuda_walk<2, 2 * GRT_MAX_RANK> cuda_move; /* a copy: operand 0 is written, 1 is read */

template <int N, int R> static void cuda_walk_begin(cuda_walk<N, R> *walk)
{
    memset(walk, 0, sizeof *walk);
    walk->total = 1;
}

/* Add an axis within those there are. There is room for R axes. */
template <int N, int R> static void cuda_walk_axis(cuda_walk<N, R> *walk, int64_t dim, const int64_t *strides)
{
    walk->total *= dim;
    if (dim == 1)
        return;
    int32_t last = walk->rank - 1;
    bool merges = last >= 0;
    for (int k = 0; merges && k < N; k++)
        merges = walk->strides[k][last] == strides[k] * dim;
    int32_t at = merges ? last : walk->rank++;
    walk->dims[at] = merges ? walk->dims[at] * dim : dim;
    for (int k = 0; k < N; k++)
        walk->strides[k][at] = strides[k];
}

/* After the last axis. */
template <int N, int R> static void cuda_walk_end(cuda_walk<N, R> *walk)
{
    if (walk->rank == 0)
        walk->dims[walk->rank++] = 1;
    walk->wide = walk->total > INT32_MAX;
    for (int32_t i = 0; !walk->wide && walk->total > 0 && i < walk->rank; i++)
        walk->by[i] = cuda_divisor_of(walk->dims[i]);
}

/* Largest power of two up to `limit` of elements that can be moved as one: neighbours along the last axis are
 * neighbours in every operand or the same element there, and every other step is a multiple of it. */
template <int N, int R> static int cuda_walk_vector(const cuda_walk<N, R> *walk, int limit)
{
    int v = limit;
    int32_t last = walk->rank - 1;
    while (v > 1 && walk->dims[last] % v)
        v /= 2;
    for (int k = 0; k < N; k++) {
        if (walk->strides[k][last] != 0 && walk->strides[k][last] != 1)
            return 1;
        for (int32_t i = 0; walk->strides[k][last] && i < last; i++)
            while (v > 1 && walk->strides[k][i] % v)
                v /= 2;
    }
    return v;
}

/* The walk over groups of v elements; offsets stay in elements. */
template <int N, int R> static cuda_walk<N, R> cuda_walk_grouped(const cuda_walk<N, R> *walk, int v)
{
    cuda_walk<N, R> grouped = *walk;
    int32_t last = walk->rank - 1;
    grouped.dims[last] /= v;
    grouped.total /= v;
    for (int k = 0; k < N; k++)
        grouped.strides[k][last] *= v;
    cuda_walk_end(&grouped);
    return grouped;
}

/* Strides of a tensor broadcast to `rank` axes, or a contiguous tensor's own. */
static inline void cuda_broadcast_strides(const grt_tensor *t, int32_t rank, int64_t *out)
{
    grt_broadcast_strides(t->dims, t->rank, rank, out);
}

/* The walk of operands 1.. broadcast to operand 0, the dense output. n_in < N. */
template <int N, int R>
static void cuda_walk_broadcast(cuda_walk<N, R> *walk, const grt_tensor *out, int32_t n_in,
                                const grt_tensor *const *in)
{
    int64_t strides[N][GRT_MAX_RANK] = {};
    grt_dims_strides(out->dims, out->rank, strides[0]);
    for (int32_t k = 0; k < n_in; k++)
        cuda_broadcast_strides(in[k], out->rank, strides[k + 1]);
    cuda_walk_begin(walk);
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t axis[N];
        for (int k = 0; k < N; k++)
            axis[k] = strides[k][i];
        cuda_walk_axis(walk, out->dims[i], axis);
    }
    cuda_walk_end(walk);
}

/* Offsets of item i of the walk for the first n operands. */
template <int N, int R>
static __device__ __forceinline__ void cuda_walk_at(const cuda_walk<N, R> &walk, int64_t i, int64_t *offsets,
                                                    int n = N)
{
    for (int k = 0; k < n; k++)
        offsets[k] = 0;
    if (walk.wide) {
        for (int32_t a = walk.rank - 1; a > 0; a--) {
            int64_t q = i / walk.dims[a], r = i - q * walk.dims[a];
            for (int k = 0; k < n; k++)
                offsets[k] += r * walk.strides[k][a];
            i = q;
        }
    } else {
        uint32_t rest = (uint32_t)i;
        for (int32_t a = walk.rank - 1; a > 0; a--) {
            uint32_t q = cuda_divide(rest, walk.by[a]), r = rest - q * walk.by[a].divisor;
            for (int k = 0; k < n; k++)
                offsets[k] += (int64_t)r * walk.strides[k][a];
            rest = q;
        }
        i = (int64_t)rest;
    }
    for (int k = 0; k < n; k++)
        offsets[k] += i * walk.strides[k][0];
}

/* CUDA_ITEMS (i, n): every i below n is met by one thread of a one-dimensional grid. */
#define CUDA_ITEMS(i, n)                                                      \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
         i += (int64_t)gridDim.x * blockDim.x)

enum { CUDA_BLOCK = 256 };
/* Blocks for n items; n > 0. */
static inline unsigned cuda_grid(int64_t n, int64_t block = CUDA_BLOCK)
{
    int64_t blocks = (n + block - 1) / block;
    return (unsigned)(blocks < 1 << 20 ? blocks : 1 << 20);
}

static inline cudaStream_t cuda_stream(const grt_run *run)
{
    return (cudaStream_t)run->stream;
}

/* Whether a pointer is aligned to `bytes`, a power of two. */
static inline bool cuda_aligned(const void *data, size_t bytes)
{
    return ((uintptr_t)data & (bytes - 1)) == 0;
}

/* Kernel and shape states: plain structs, zeroed, given back with free. */
template <typename S> static grt_status cuda_state(S **out)
{
    *out = (S *)calloc(1, sizeof(S));
    return *out ? GRT_OK : grt_fail_memory(sizeof(S));
}

/* V elements that are loaded and stored at once. */
template <typename T, int V> struct alignas(sizeof(T) * V) cuda_pack {
    T v[V];
};

/* Elements as bit patterns of their size: what is moved is not looked at. */
struct alignas(16) cuda_bits128 {
    uint64_t low, high;
};

/* Call f<T>(...) with T the bit pattern of an element size. */
#define CUDA_BY_SIZE(size, f, ...)            \
    ((size) == 1   ? f<uint8_t>(__VA_ARGS__)  \
     : (size) == 2 ? f<uint16_t>(__VA_ARGS__) \
     : (size) == 4 ? f<uint32_t>(__VA_ARGS__) \
     : (size) == 8 ? f<uint64_t>(__VA_ARGS__) \
                   : f<cuda_bits128>(__VA_ARGS__))

/* Dtypes whose elements can be moved as whole bytes, and those of indices. */
#define CUDA_MOVABLE GRT_SET_PLAIN
#define CUDA_INDEX   (GRT_BIT(INT32) | GRT_BIT(INT64))

/* Element i of an int32 or int64 tensor in host memory. */
static inline int64_t cuda_host_index(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}

/* Index k of int32 or int64 indices in device memory. */
static __device__ __forceinline__ int64_t cuda_index(const void *indices, bool is32, int64_t k)
{
    return is32 ? (int64_t)((const int32_t *)indices)[k] : ((const int64_t *)indices)[k];
}
#endif

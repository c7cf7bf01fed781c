/* SPDX-License-Identifier: Apache-2.0 */
/* Folding the elements of one output: sums, products, greatest and least, by one thread or by a block.
 * 16-bit and 32-bit floats are folded in float32, integers wrap in 64 bits. */
#ifndef GRT_BACKENDS_CUDA_FOLD_CUH
#define GRT_BACKENDS_CUDA_FOLD_CUH

#include "backends/cuda/number.cuh"
#include "backends/cuda/pointwise_eval.h"
#include "backends/cuda/walk.h"
#include "backends/shared/reduce.h"

namespace
{

/* in[kept.strides[1] + reduced.strides[0]] */
struct fold_job {
    cuda_walk<2, GRT_MAX_RANK> kept; /* operand 0 is the output */
    cuda_walk<1, GRT_MAX_RANK> reduced;
    grt_fold how;
    grt_finish end;
    bool truth;
    int64_t parts,
        per_part; /* every output is folded in `parts` pieces, which follow each other in the output */
    double count; /* for means */
};

/* Result of an empty set: lowest or greatest number of the type for maxima and minima. */
template <typename IN, typename A> __device__ __forceinline__ A fold_identity(grt_fold how)
{
    if (how == FOLD_PROD)
        return A(1);
    if (how != FOLD_MAX && how != FOLD_MIN)
        return A(0);
    if constexpr (std::is_floating_point<A>::value) {
        return how == FOLD_MAX ? (A)-INFINITY : (A)INFINITY;
    } else {
        IN low = std::is_signed<IN>::value ? (IN)(UINT64_C(1) << (8 * sizeof(IN) - 1)) : IN(0);
        return how == FOLD_MAX ? (A)low : (A)(IN)~low;
    }
}

/* Two results of the same fold. A NaN wins every comparison. */
template <typename A> __device__ __forceinline__ A fold_join(grt_fold how, A a, A b)
{
    switch (how) {
    case FOLD_PROD:
        return pw_vocabulary<A>::mul(a, b);
    case FOLD_MAX:
        return b > a || b != b ? b : a;
    case FOLD_MIN:
        return b < a || b != b ? b : a;
    default:
        return pw_vocabulary<A>::add(a, b);
    }
}

template <typename A> __device__ __forceinline__ A fold_take(grt_fold how, A acc, A x, A shift)
{
    switch (how) {
    case FOLD_ABS:
        x = pw_vocabulary<A>::absolute(x);
        break;
    case FOLD_SQUARE:
        x = pw_vocabulary<A>::mul(x, x);
        break;
    case FOLD_EXP:
        if constexpr (std::is_floating_point<A>::value)
            x = m_exp(x - shift);
        break;
    default:
        break;
    }
    return fold_join<A>(how, acc, x);
}

/* What a finished number is stored as. Reals that become integers are cut off. */
template <typename OUT> __device__ __forceinline__ OUT fold_cut_off(double v)
{
    return (OUT)(v >= 0x1p63   ? (uint64_t)INT64_MAX
                 : v > -0x1p63 ? (uint64_t)(int64_t)v
                 : v != v      ? 0
                               : (uint64_t)INT64_MIN);
}

template <typename A, typename OUT>
__device__ __forceinline__ OUT fold_finished(const fold_job &j, A acc, A shift)
{
    constexpr bool real_out = std::is_floating_point<typename pw_storage<OUT>::T>::value;
    constexpr bool real = std::is_floating_point<A>::value;
    typedef typename std::conditional<real, A, double>::type R;
    if (!real && j.end == FINISH_NONE) {
        if constexpr (!real_out)
            return j.truth ? (OUT)(acc != A(0)) : (OUT)acc;
    }
    if (!real && j.end == FINISH_MEAN && j.count > 0) {
        if constexpr (!real_out && !real)
            return (OUT)(acc / (A)j.count);
    }
    R v = (R)acc;
    switch (j.end) {
    case FINISH_MEAN:
        v = v / (R)j.count;
        break;
    case FINISH_SQRT:
        v = m_sqrt(v);
        break;
    case FINISH_LOG:
        v = m_log(v) + (R)shift;
        break;
    default:
        break;
    }
    if constexpr (real_out)
        return pw_narrow<OUT>((typename pw_storage<OUT>::T)v);
    else
        return fold_cut_off<OUT>((double)v);
}

template <typename A> __device__ __forceinline__ A fold_finite_or_zero(A v)
{
    return v - v == A(0) ? v : A(0);
}

enum { FOLD_AT_ONCE = 4 }; /* reads of a thread, none of which waits for another */

/* The elements begin, begin + step, ... of a reduction over one axis. */
template <typename IN, typename A>
__device__ __forceinline__ A fold_axis(const fold_job &j, const IN *in, int64_t begin, int64_t end,
                                       int64_t step, grt_fold how, A shift)
{
    const int64_t stride = j.reduced.strides[0][0];
    A acc[FOLD_AT_ONCE];
#pragma unroll
    for (int k = 0; k < FOLD_AT_ONCE; k++)
        acc[k] = fold_identity<IN, A>(how);
    int64_t r = begin;
    for (; r + (FOLD_AT_ONCE - 1) * step < end; r += FOLD_AT_ONCE * step) {
        IN v[FOLD_AT_ONCE];
#pragma unroll
        for (int k = 0; k < FOLD_AT_ONCE; k++)
            v[k] = in[(r + k * step) * stride];
#pragma unroll
        for (int k = 0; k < FOLD_AT_ONCE; k++)
            acc[k] = fold_take<A>(how, acc[k], (A)pw_widen<IN>(v[k]), shift);
    }
    for (; r < end; r += step)
        acc[0] = fold_take<A>(how, acc[0], (A)pw_widen<IN>(in[r * stride]), shift);
#pragma unroll
    for (int k = 1; k < FOLD_AT_ONCE; k++)
        acc[0] = fold_join<A>(how, acc[0], acc[k]);
    return acc[0];
}

template <typename IN, typename A>
__device__ __forceinline__ A fold_some(const fold_job &j, const IN *in, int64_t begin, int64_t end,
                                       int64_t step, grt_fold how, A shift)
{
    if (j.reduced.rank == 1)
        return fold_axis<IN, A>(j, in, begin, end, step, how, shift);
    A acc = fold_identity<IN, A>(how);
    for (int64_t r = begin; r < end; r += step) {
        int64_t at[1];
        cuda_walk_at(j.reduced, r, at);
        acc = fold_take<A>(how, acc, (A)pw_widen<IN>(in[at[0]]), shift);
    }
    return acc;
}

/* What a thread of a block folds of the elements from begin to end: neighbours, 16 bytes at a time, where
 * they are aligned. */
template <typename IN, typename A>
__device__ __forceinline__ A fold_share(const fold_job &j, const IN *in, int64_t begin, int64_t end,
                                        grt_fold how, A shift)
{
    enum { N = 16 / sizeof(IN) };
    if (N == 1 || j.reduced.rank != 1 || j.reduced.strides[0][0] != 1 || ((uintptr_t)(in + begin) & 15))
        return fold_some<IN, A>(j, in, begin + threadIdx.x, end, blockDim.x, how, shift);
    const cuda_vector<IN> *packs = (const cuda_vector<IN> *)(in + begin);
    const int64_t n = end > begin ? (end - begin) / N : 0;
    A acc[2] = {fold_identity<IN, A>(how), fold_identity<IN, A>(how)};
    int64_t i = threadIdx.x;
    for (; i + blockDim.x < n; i += 2 * blockDim.x) {
        const cuda_vector<IN> pack[2] = {packs[i], packs[i + blockDim.x]};
#pragma unroll
        for (int k = 0; k < 2 * N; k++)
            acc[k % 2] = fold_take<A>(how, acc[k % 2], (A)pw_widen<IN>(pack[k % 2].v[k / 2]), shift);
    }
    if (i < n) {
        const cuda_vector<IN> pack = packs[i];
#pragma unroll
        for (int k = 0; k < N; k++)
            acc[k % 2] = fold_take<A>(how, acc[k % 2], (A)pw_widen<IN>(pack.v[k]), shift);
    }
    for (int64_t r = begin + n * N + threadIdx.x; r < end; r += blockDim.x)
        acc[0] = fold_take<A>(how, acc[0], (A)pw_widen<IN>(in[r]), shift);
    return fold_join<A>(how, acc[0], acc[1]);
}

/* All threads get the result. blockDim.x is a multiple of 32. */
template <typename A> __device__ __forceinline__ A fold_block(grt_fold how, A acc, A *shared)
{
    for (int lane = 16; lane; lane /= 2)
        acc = fold_join<A>(how, acc, __shfl_xor_sync(0xffffffffu, acc, lane));
    int warps = blockDim.x / 32;
    if (warps == 1)
        return acc;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = acc;
    __syncthreads();
    acc = shared[0];
    for (int w = 1; w < warps; w++)
        acc = fold_join<A>(how, acc, shared[w]);
    return acc;
}

} // namespace
#endif

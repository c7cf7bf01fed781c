/* SPDX-License-Identifier: Apache-2.0 */
/* Results that leave a kernel quantised, by one scale: 8-bit integers and float8. */
#ifndef GRT_BACKENDS_CUDA_LEVELS_CUH
#define GRT_BACKENDS_CUDA_LEVELS_CUH

#include "backends/cuda/quantiser_pairs.cuh"

/* A scale and a zero point, as they were loaded. */
struct cuda_level_unit {
    float scale;
    int32_t zero;

    /* Not computed with before: their load is waited for here, together with a row's. */
    __device__ __forceinline__ cuda_level_unit here() const
    {
        cuda_level_unit same = *this;
        asm volatile("" : "+f"(same.scale), "+r"(same.zero));
        return same;
    }
};

/* Where a result leaves as 8-bit integers or float8. */
struct cuda_levels {
    uint8_t *to; /* NULL: none are wanted */
    const float *scale;
    const void *zero;
    grt_dtype dtype;

    __device__ __forceinline__ bool is_float8() const
    {
        return dtype == GRT_DTYPE_FLOAT8E4M3FN || dtype == GRT_DTYPE_FLOAT8E5M2;
    }
    __device__ __forceinline__ cuda_level_unit unit() const
    {
        if (!to)
            return {1.0f, 0};
        return {*scale, is_float8()               ? 0
                        : dtype == GRT_DTYPE_INT8 ? *(const int8_t *)zero
                                                  : *(const uint8_t *)zero};
    }
    __device__ __forceinline__ cuda_quantiser quantiser(const cuda_level_unit &of) const
    {
        return cuda_quantiser(of.scale, of.zero, 8, dtype == GRT_DTYPE_INT8);
    }
    __device__ __forceinline__ uint8_t one(const cuda_quantiser &quantises, float v) const
    {
        return (uint8_t)(is_float8()
                             ? cuda_float8_pair(quantises.quotient(v), 0.0f, dtype == GRT_DTYPE_FLOAT8E5M2)
                             : (uint32_t)quantises(v));
    }
    /* N of them, a multiple of four; the kind is asked for once. */
    template <int N>
    __device__ __forceinline__ void store(const cuda_quantiser &quantises, const float (&v)[N],
                                          uint8_t *out) const
    {
        uint32_t word[N / 4];
        if (!is_float8())
#pragma unroll
            for (int k = 0; k < N; k += 4)
                word[k / 4] = __byte_perm(
                    __byte_perm((uint32_t)quantises(v[k]), (uint32_t)quantises(v[k + 1]), 0x0040),
                    __byte_perm((uint32_t)quantises(v[k + 2]), (uint32_t)quantises(v[k + 3]), 0x0040),
                    0x5410);
        else
#pragma unroll
            for (int k = 0; k < N; k += 4)
                word[k / 4] = float8_pair(quantises, v + k) | float8_pair(quantises, v + k + 2) << 16;
#pragma unroll
        for (int k = 0; k < N / 4; k += 2)
            if constexpr (N % 8 == 0)
                *(uint2 *)(out + 4 * k) = make_uint2(word[k], word[k + 1]);
            else
                *(uint32_t *)(out + 4 * k) = word[k];
    }
    /* Eight of a 16-bit type, two in a word. */
    template <class T>
    __device__ __forceinline__ void store(const cuda_pair_quantiser<T> &quantises, const uint32_t (&words)[4],
                                          uint8_t *out) const
    {
        using pair = typename cuda_pair<T>::type;
        pair v[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            v[k] = *(const pair *)&words[k];
        if (!is_float8()) {
            *(uint2 *)out = make_uint2(quantises.word(v[0], v[1]), quantises.word(v[2], v[3]));
            return;
        }
        float wide[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            wide[k] = cuda_widen(k % 2 ? v[k / 2].y : v[k / 2].x);
        store(quantises.one, wide, out);
    }
    __device__ __forceinline__ uint32_t float8_pair(const cuda_quantiser &quantises, const float *v) const
    {
        return cuda_float8_pair(quantises.quotient(v[0]), quantises.quotient(v[1]),
                                dtype == GRT_DTYPE_FLOAT8E5M2);
    }
};

#endif

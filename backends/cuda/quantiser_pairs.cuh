/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear of eight float16 or bfloat16 numbers at once, which lie as pairs, to bytes or float8. */
#ifndef GRT_BACKENDS_CUDA_QUANTISER_PAIRS_CUH
#define GRT_BACKENDS_CUDA_QUANTISER_PAIRS_CUH

#include "backends/cuda/number.cuh"
#include "backends/cuda/quantiser.cuh"

#include <type_traits>

/* Two numbers of a 16-bit type. Sums and products are rounded as those of float32 that are rounded to the
 * type: float32 has more than twice the digits. */
template <class T> struct cuda_pair;
template <> struct cuda_pair<__half> {
    using type = __half2;
    static __device__ __forceinline__ type of(float a, float b)
    {
        return __floats2half2_rn(a, b);
    }
};
template <> struct cuda_pair<__nv_bfloat16> {
    using type = __nv_bfloat162;
    static __device__ __forceinline__ type of(float a, float b)
    {
        return __floats2bfloat162_rn(a, b);
    }
};

/* Limits are applied to numbers as they are, where that gives the same bytes: the float16 number that is
 * nearest to a limit times the scale has the limit's level, as it is at most an eighth of a level away (255
 * levels, 11 digits). bfloat16 has 8, which are too few. */
template <class T> struct cuda_pair_quantiser {
    using pair = typename cuda_pair<T>::type;
    cuda_quantiser one;
    pair least, most;
    uint32_t zeros; /* the zero point in each byte */
    bool is_quick;

    __device__ __forceinline__ explicit cuda_pair_quantiser(const cuda_quantiser &of) : one(of)
    {
        const float scale = of.quotient.scale, smallest = 6.2e-5f, largest = 200;
        is_quick =
            std::is_same<T, __half>::value && of.quotient.unit == 1.0f && scale > smallest && scale < largest;
        least = cuda_pair<T>::of(of.low * scale, of.low * scale);
        most = cuda_pair<T>::of(of.high * scale, of.high * scale);
        zeros = ((uint32_t)of.zero & 0xFF) * 0x01010101u;
    }
    /* Four bytes. */
    __device__ __forceinline__ uint32_t word(pair a, pair b) const
    {
        if (!is_quick)
            return packed((uint32_t)one(cuda_widen(a.x)), (uint32_t)one(cuda_widen(a.y)),
                          (uint32_t)one(cuda_widen(b.x)), (uint32_t)one(cuda_widen(b.y)));
        a = __hmin2(__hmax2(a, least), most); /* NaN becomes the least */
        b = __hmin2(__hmax2(b, least), most);
        return __vadd4(packed(level(a.x), level(a.y), level(b.x), level(b.y)), zeros);
    }

    static __device__ __forceinline__ uint32_t packed(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
    {
        return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
    }
    __device__ __forceinline__ uint32_t level(T x) const
    {
        return __float_as_uint(__fadd_rn(one.quotient.finite(cuda_widen(x)), 12582912.0f));
    }
};

#endif

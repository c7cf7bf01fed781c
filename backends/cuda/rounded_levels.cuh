/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of bytes in attention that is rounded: products, roundings, four in a word. */
#ifndef GRT_BACKENDS_CUDA_ROUNDED_LEVELS_CUH
#define GRT_BACKENDS_CUDA_ROUNDED_LEVELS_CUH

#include "backends/cuda/qfinish.cuh"
#include "backends/cuda/rounded_task.h"
#include "backends/cuda/tensor_core.cuh"

namespace
{

enum { LANES = 32, MOST_WARPS = 8, MOST_THREADS = MOST_WARPS * LANES, ROWS = 16, CHUNK = 32, TILES = 4 };
enum { PAD = 16 };
#define ALL_LANES 0xffffffffu
/* Bits of 2^23 and of 1.5 * 2^23, below which float32 has an integer in its low bits. */
#define BITS_OF_UNITS 0x4B000000
#define BITS_OF_WHOLE 0x4B400000

/* c += a b of unsigned a and signed b. */
__device__ __forceinline__ void rounded_multiply(int32_t *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* A level that was rounded by an addition, with its limits. */
__device__ __forceinline__ int32_t rounded_limited(float v, int32_t zero)
{
    return __viaddmin_s32_relu(__float_as_int(cuda_qrounded(v)), zero - BITS_OF_WHOLE, ROUNDED_LEVELS - 1);
}

/* The number of a level, in units of its scale. */
__device__ __forceinline__ float rounded_number(int32_t level, int32_t zero)
{
    return __fadd_rn(__int_as_float(level | BITS_OF_UNITS), -8388608.0f - (float)zero);
}

/* The level of a number that is in the range of roundings by an addition, before limits. */
__device__ __forceinline__ int32_t rounded_level(float v, int32_t zero)
{
    return __float_as_int(cuda_qrounded(v)) + (zero - BITS_OF_WHOLE);
}

/* Four levels with their limits, a's in the lowest byte. */
__device__ __forceinline__ uint32_t rounded_word(int32_t a, int32_t b, int32_t c, int32_t d)
{
    uint32_t high, word;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(b), "r"(a), "r"(high));
    return word;
}

__device__ __forceinline__ uint32_t level_in(uint32_t word, int i)
{
    return word >> (8 * i) & 0xFF;
}

__device__ __forceinline__ uint32_t rounded_look_up(const uint8_t *table, uint32_t word)
{
    return table[level_in(word, 0)] | table[level_in(word, 1)] << 8 | table[level_in(word, 2)] << 16 |
           (uint32_t)table[level_in(word, 3)] << 24;
}

} // namespace
#endif

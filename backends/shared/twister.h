/* SPDX-License-Identifier: Apache-2.0 */
/* The Mersenne Twister of ONNX's reference for Dropout, in parts that host and device code share: equal seeds
 * give equal numbers. Words are made 624 at a time, each from three of those before it. */
#ifndef GRT_BACKENDS_SHARED_TWISTER_H
#define GRT_BACKENDS_SHARED_TWISTER_H

#include "src/base/float.h"

enum { TWISTER_WORDS = 624, TWISTER_SHIFT = 397, TWISTER_NUMBERS = TWISTER_WORDS / 2 };

/* words: TWISTER_WORDS of them. */
GRT_INLINE void grt_twister_seed(uint32_t *words, uint32_t seed)
{
    for (uint32_t i = 0; i < TWISTER_WORDS; i++) {
        words[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1u;
    }
}

/* Word i of the next 624. Those before it are new already, the others old; words are replaced in any order
 * that keeps to that. */
GRT_INLINE uint32_t grt_twister_next(const uint32_t *words, int i)
{
    const uint32_t mixed = (words[i] & 0x80000000u) | (words[(i + 1) % TWISTER_WORDS] & 0x7fffffffu);
    return words[(i + TWISTER_SHIFT) % TWISTER_WORDS] ^ mixed >> 1 ^ (mixed & 1u ? 0x9908b0dfu : 0u);
}

GRT_INLINE uint32_t grt_twister_temper(uint32_t y)
{
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Number k of the TWISTER_NUMBERS that the words give: uniform in [0, 1) with 53 bits. */
GRT_INLINE double grt_twister_uniform(const uint32_t *words, int k)
{
    const uint32_t high = grt_twister_temper(words[2 * k]) >> 5,
                   low = grt_twister_temper(words[2 * k + 1]) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
// See fill.h. The loops have constant trip counts and no branches, which is what compilers vectorise at -O2.
#include "fill.h"
#include <string.h>

// splitmix64's output function: spreads consecutive numbers over all 64 bits.
static uint64_t mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t gen_fill_key(uint64_t seed, uint64_t index)
{
    return mix64(mix64(seed) ^ index);
}

static inline uint16_t half_bits(float value)
{
    uint32_t u;
    memcpy(&u, &value, sizeof u);
    uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    // Adding just under half a unit, plus the lowest kept bit, rounds ties to even.
    uint32_t rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t rebased = rounded - (112u << 10);
    uint32_t finite = rebased > 0x7c00u ? 0x7c00u : rebased;
    return (uint16_t)(sign | (magnitude < 0x38800000u ? 0u : finite));
}

uint16_t gen_half_from_float(float value)
{
    return half_bits(value);
}

// The block's key enters before and in the middle of the mixing: with one entry only, two blocks whose keys
// are near each other would share most of their numbers.
static inline float number(uint32_t counter, uint32_t first, uint32_t second, float scale, float middle)
{
    uint32_t x = counter * 0x9e3779b9u + first;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ second ^ (x >> 15)) * 0x846ca68bu;
    x ^= x >> 16;
    return (float)(int32_t)x * scale + middle;
}

void gen_fill_block(const struct gen_fill *fill, uint64_t block, void *out)
{
    uint64_t key = mix64(fill->key + block);
    uint32_t first = (uint32_t)key, second = (uint32_t)(key >> 32);
    float middle = 0.5f * (fill->low + fill->high);
    float scale = 0.5f * (fill->high - fill->low) / 2147483648.0f;
    if (fill->half) {
        uint16_t *halves = out;
        for (uint32_t i = 0; i < GEN_FILL_BLOCK; i++)
            halves[i] = half_bits(number(i, first, second, scale, middle));
    } else {
        float *floats = out;
        for (uint32_t i = 0; i < GEN_FILL_BLOCK; i++)
            floats[i] = number(i, first, second, scale, middle);
    }
}

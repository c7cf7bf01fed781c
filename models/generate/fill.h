/* SPDX-License-Identifier: Apache-2.0 */
// Random numbers for weights: counter-based, so that any part of any tensor can be computed on its own, and
// fast enough to keep a disk busy.
#ifndef GRT_MODELS_FILL_H
#define GRT_MODELS_FILL_H

#include <stddef.h>
#include <stdint.h>

struct gen_fill {
    uint64_t key; // one per tensor
    float low, high;
    int half; // elements are binary16, otherwise binary32
};

enum { GEN_FILL_BLOCK = 4096 }; // elements

uint64_t gen_fill_key(uint64_t seed, uint64_t index);

// Writes elements [block * GEN_FILL_BLOCK, + GEN_FILL_BLOCK) of a tensor.
void gen_fill_block(const struct gen_fill *fill, uint64_t block, void *out);

// Rounds to binary16, to nearest even. Subnormal results become zero.
uint16_t gen_half_from_float(float value);

#endif

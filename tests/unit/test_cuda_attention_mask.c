/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of masks of attention on Hopper. */
#include "backends/cuda/attention_mask.h"
#include "tests/unit/suite.h"

#include <string.h>

enum { BANKS = 32, BANK_BYTES = 4 };

/* The swizzle of the PTX ISA: bits 4 and up of an address are exchanged by those three places above. */
static uint32_t swizzled(uint32_t address, uint32_t line)
{
    return address ^ ((address >> 7 & (line / 16 - 1)) << 4);
}

START_TEST(elements_lie_where_the_engine_puts_them)
{
    for (uint32_t size = 1; size <= 4; size *= 2) {
        const uint32_t line = cuda_mask_line(size), columns = cuda_mask_columns(size);
        for (uint32_t row = 0; row < CUDA_MASK_ROWS; row++)
            for (uint32_t key = 0; key < CUDA_MASK_KEYS; key++) {
                const uint32_t panel = key / columns * CUDA_MASK_ROWS * line,
                               inside = row * line + key % columns * size;
                ck_assert_uint_eq(cuda_mask_at(size, row, key), panel + swizzled(inside, line));
                ck_assert_uint_lt(cuda_mask_at(size, row, key), cuda_mask_bytes(size));
            }
    }
}
END_TEST

/* A warp's lanes read two keys each, of eight rows and four pairs side by side: of 16 bits and less at once.
 */
START_TEST(lanes_meet_in_no_bank)
{
    for (uint32_t size = 1; size <= 2; size++)
        for (uint32_t k = 0; k < CUDA_MASK_KEYS; k += 8) {
            uint32_t word[BANKS];
            memset(word, 0xff, sizeof word);
            for (uint32_t lane = 0; lane < 32; lane++) {
                const uint32_t at = cuda_mask_at(size, lane / 4, k + 2 * (lane % 4)) / BANK_BYTES;
                ck_assert(word[at % BANKS] == UINT32_MAX || word[at % BANKS] == at);
                word[at % BANKS] = at;
            }
        }
}
END_TEST

UNIT_SUITE(test_cuda_attention_mask, NULL, NULL, elements_lie_where_the_engine_puts_them,
           lanes_meet_in_no_bank)

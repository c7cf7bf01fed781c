/* SPDX-License-Identifier: Apache-2.0 */
/* A table of bytes in shared memory for each lane of a warp, each in a bank of its own: whatever lanes look
 * up, they do not wait for each other. */
#ifndef GRT_BACKENDS_CUDA_LANE_TABLES_CUH
#define GRT_BACKENDS_CUDA_LANE_TABLES_CUH

#include <stdint.h>

namespace
{

/* Entries lie in such an order that four places are found at once: an entry's lower five bits are its row, of
 * 256 bytes; of the byte in the row its highest bit is the highest one, the two others are the lowest ones,
 * and the lane is between them. */
struct lane_tables {
    enum { LANES = 32, ROWS = 32, HALVES = 2, FILL = ROWS * HALVES * LANES };
    uint32_t words[ROWS][HALVES][LANES];

    /* By threads of a block, of which this one is `thread`: entry i is the table's i ^ flip. */
    __device__ __forceinline__ void fill(const uint8_t *table, uint8_t flip, int thread, int threads)
    {
        for (int i = thread; i < FILL; i += threads) {
            const int row = i / LANES / HALVES, half = i / LANES % HALVES;
            uint32_t word = 0;
            for (int k = 0; k < 4; k++)
                word |= (uint32_t)table[(half * 128 + k * ROWS + row) ^ flip] << (8 * k);
            words[row][half][i % LANES] = word;
        }
    }
    /* Of each byte of a word. */
    __device__ __forceinline__ uint32_t four(uint32_t word, int lane) const
    {
        const uint32_t rows = word & 0x1F1F1F1Fu, places = (word & 0x80808080u) | (word >> 5 & 0x03030303u) |
                                                           (uint32_t)lane * 0x04040404u;
        return __byte_perm(__byte_perm(at(rows, places, 0), at(rows, places, 1), 0x0040),
                           __byte_perm(at(rows, places, 2), at(rows, places, 3), 0x0040), 0x5410);
    }
    __device__ __forceinline__ uint32_t one(uint8_t byte, int lane) const
    {
        return four(byte, lane) & 0xFF;
    }

  private:
    /* No row has its highest bit set: that, eight times, is what is in front. */
    __device__ __forceinline__ uint32_t at(uint32_t rows, uint32_t places, int i) const
    {
        uint32_t place;
        asm("prmt.b32 %0, %1, %2, %3;" : "=r"(place) : "r"(places), "r"(rows), "r"(0xCC40 + 0x1111 * i));
        return ((const uint8_t *)words)[place];
    }
};

} // namespace

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of an attention mask in shared memory: 64 queries by 64 keys, as the bulk copy engine lays them out.
 * A panel has a line for each query: 64 bytes of 64 keys that have a byte each, else 128 bytes, which are 64
 * or 32 keys. 16-byte chunks of a line change places by the query, so that what a warp reads at once lies in
 * different banks. */
#ifndef GRT_BACKENDS_CUDA_ATTENTION_MASK_H
#define GRT_BACKENDS_CUDA_ATTENTION_MASK_H

#include "src/base/float.h"

#include <stdint.h>

enum { CUDA_MASK_ROWS = 64, CUDA_MASK_KEYS = 64 };

/* Bytes of a line, of masks whose elements have so many bytes: 1, 2 or 4. */
GRT_INLINE uint32_t cuda_mask_line(uint32_t size)
{
    return size == 1 ? 64 : 128;
}

/* Keys of a panel. */
GRT_INLINE uint32_t cuda_mask_columns(uint32_t size)
{
    return cuda_mask_line(size) / size;
}

/* All panels of a tile. */
GRT_INLINE uint32_t cuda_mask_bytes(uint32_t size)
{
    return CUDA_MASK_ROWS * CUDA_MASK_KEYS * size;
}

/* Where an element lies, in bytes from the tile's begin, which is a multiple of 1024. */
GRT_INLINE uint32_t cuda_mask_at(uint32_t size, uint32_t row, uint32_t key)
{
    const uint32_t panel = key / cuda_mask_columns(size), byte = key % cuda_mask_columns(size) * size,
                   turn = size == 1 ? row >> 1 & 3 : row & 7;
    return (panel * CUDA_MASK_ROWS + row) * cuda_mask_line(size) + ((byte / 16 ^ turn) * 16 + byte % 16);
}

#endif

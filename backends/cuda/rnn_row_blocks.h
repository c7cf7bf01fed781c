/* SPDX-License-Identifier: Apache-2.0 */
/* How the rows of a batch are divided among blocks that have all of a recurrent layer's hidden units and all
 * of R, a part of RNN_UNITS units for each warp: the first chunks in its registers, the others in shared
 * memory in the order of fragments (rnn_tiles.h).
 * Plain C: host tests check what kernels rely on.
 *
 * Two steps' hidden states lie there, a row `pitch` bytes behind the other. A lane stores a unit of rows k
 * and k + 4 of each eight, k = lane % 4, and reads 16 bytes of row k + 4 or k: as the pitch is an odd number
 * of 16 bytes, neither meets itself in a bank. */
#ifndef GRT_BACKENDS_CUDA_RNN_ROW_BLOCKS_H
#define GRT_BACKENDS_CUDA_RNN_ROW_BLOCKS_H

#include "backends/cuda/rnn_tiles.h"

enum {
    RNN_ROWS_WARPS = 8,       /* of a block that keeps weights in registers, too */
    RNN_ROWS_MOST_WARPS = 16, /* of one whose threads have half as many registers */
};

/* How many chunks' weights a warp keeps in registers: 144 of them, or what sums of more rows leave. */
#define RNN_ROWS_HELD(gates, eights) (144 / (eights) / ((gates)*8) < 8 ? 144 / (eights) / ((gates)*8) : 8)

typedef struct rnn_row_blocks {
    int32_t rows;   /* of the batch in each block: 8 or 16 */
    int32_t blocks; /* of all directions */
    int32_t parts;  /* of the hidden units: a warp each */
    int32_t chunks; /* of a row of R */
    int32_t held;   /* of these, in registers */
    int32_t pitch;
    size_t part_bytes; /* of R in shared memory */
    size_t shared;     /* bytes of a block */
} rnn_row_blocks;

/* The batch row, of eight, that column `column` of a product is. */
static inline RNN_BOTH int32_t rnn_rows_row(int32_t column)
{
    return column / 2 + column % 2 * 4;
}

/* strict: float32 in full. False: R does not fit. Eight rows a block while every block has a multiprocessor
 * of its own, or where more would not fit into registers; R is read for sixteen at a time else. */
static inline bool rnn_row_blocks_plan(int32_t gates, int32_t directions, int64_t batch, int64_t hidden,
                                       int32_t element, bool strict, int32_t multiprocessors,
                                       size_t shared_limit, rnn_row_blocks *out)
{
    if (batch < 1 || hidden < 1 || batch > (1 << 24) || hidden > RNN_ROWS_MOST_WARPS * RNN_UNITS)
        return false;
    const int32_t row_bytes = (int32_t)hidden * element, chunk_bytes = RNN_CHUNK_WORDS * 4;
    out->parts = (int32_t)((hidden + RNN_UNITS - 1) / RNN_UNITS);
    out->chunks = (row_bytes + chunk_bytes - 1) / chunk_bytes;
    out->pitch = (out->chunks * 4 + 1) * 16;
    const bool few = directions * ((batch + 7) / 8) <= multiprocessors || out->parts > RNN_ROWS_WARPS;
    out->rows = few ? 8 : 16;
    out->held = strict || out->parts > RNN_ROWS_WARPS ? 0 : RNN_ROWS_HELD(gates, out->rows / 8);
    out->held = out->held < out->chunks ? out->held : out->chunks;
    out->blocks = directions * (int32_t)((batch + out->rows - 1) / out->rows);
    out->part_bytes = (size_t)(out->chunks - out->held) * (size_t)(gates * RNN_UNITS * chunk_bytes);
    out->shared = (size_t)out->parts * out->part_bytes + (size_t)2 * (size_t)out->rows * (size_t)out->pitch;
    return out->shared <= shared_limit;
}

#endif

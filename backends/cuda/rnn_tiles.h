/* SPDX-License-Identifier: Apache-2.0 */
/* How a recurrent layer is divided among blocks that keep their part of R in shared memory, and where each
 * number of R lies there. Plain C: host tests check what kernels rely on.
 *
 * A block owns RNN_UNITS hidden units of one direction, for some rows of the batch. Numbers are moved as
 * words of 4 bytes: one float, or two 16-bit numbers that are neighbours in a row. A chunk is 16 words of
 * every row, which is two multiplications by tensor cores. */
#ifndef GRT_BACKENDS_CUDA_RNN_TILES_H
#define GRT_BACKENDS_CUDA_RNN_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define RNN_BOTH __host__ __device__
#else
#define RNN_BOTH
#endif

enum {
    RNN_UNITS = 16,       /* rows of a tensor core's tile: one gate of so many units */
    RNN_CHUNK_WORDS = 16, /* of one row */
    RNN_WARPS = 8,        /* of a block; they share the chunks */
    RNN_MOST_ROWS = 32,   /* of the batch, in a block */
};

/* How many chunks' weights a warp keeps in registers, for sums of 8 * eights batch rows: 128 of them, or what
 * sums of more rows leave. */
#define RNN_CHUNKS_HELD(gates, eights) (128 / (eights) / ((gates)*8) < 4 ? 128 / (eights) / ((gates)*8) : 4)

typedef struct rnn_tiles {
    int32_t gates, directions;
    int32_t rows;         /* of the batch in each block: 8, 16 or 32 */
    int32_t slices;       /* of the batch */
    int32_t parts;        /* of the hidden units */
    int32_t chunks;       /* of a row of R */
    int32_t splits;       /* warps that have chunks: so many partial sums are joined */
    int32_t row_words;    /* what blocks tell each other of a batch row, in words */
    int32_t pitch;        /* bytes from one batch row of the hidden state to the next in shared memory */
    size_t shared;        /* bytes of a block */
    size_t message_bytes; /* of all hidden states that are on their way between blocks, two steps', at most */
} rnn_tiles;

static inline int32_t rnn_blocks(const rnn_tiles *t)
{
    return t->directions * t->slices * t->parts;
}

/* The sizes for `rows` batch rows a block. An odd number of half kilobits between rows keeps the 16-byte
 * reads of eight lanes, four of each of two rows, in different banks. */
static inline void rnn_tiles_fill(rnn_tiles *t, int32_t gates, int32_t directions, int64_t batch,
                                  int64_t hidden, int32_t element, int32_t rows)
{
    const int64_t row_bytes = hidden * element, chunk_bytes = RNN_CHUNK_WORDS * 4;
    t->gates = gates;
    t->directions = directions;
    t->rows = rows;
    t->slices = (int32_t)((batch + rows - 1) / rows);
    t->parts = (int32_t)((hidden + RNN_UNITS - 1) / RNN_UNITS);
    t->chunks = (int32_t)((row_bytes + chunk_bytes - 1) / chunk_bytes);
    t->splits = t->chunks < RNN_WARPS ? t->chunks : RNN_WARPS;
    t->row_words = t->parts * RNN_UNITS * element / 4;
    t->pitch = (t->chunks | 1) * (int32_t)chunk_bytes;
    t->shared = (size_t)t->chunks * (size_t)gates * RNN_UNITS * (size_t)chunk_bytes +
                (size_t)rows * (size_t)t->pitch + (size_t)t->splits * (size_t)(gates * RNN_UNITS * rows) * 4;
    t->message_bytes = (size_t)2 * (size_t)(directions * t->slices * rows) * (size_t)t->row_words * 8;
}

/* Every block has a multiprocessor of its own, as blocks wait for each other. False: no division fits. */
static inline bool rnn_tiles_plan(int32_t gates, int32_t directions, int64_t batch, int64_t hidden,
                                  int32_t element, int32_t multiprocessors, size_t shared_limit,
                                  rnn_tiles *out)
{
    if (batch < 1 || hidden < 1 || batch > (1 << 20) || hidden > (1 << 16))
        return false;
    for (int32_t rows = 8; rows <= RNN_MOST_ROWS; rows *= 2) {
        rnn_tiles_fill(out, gates, directions, batch, hidden, element, rows);
        if ((int64_t)directions * out->slices * out->parts <= multiprocessors && out->shared <= shared_limit)
            return true;
    }
    return false;
}

/* Where word `word` of row `unit` of a gate's tile lies, in words. Lane l of a warp reads four neighbouring
 * words for each of a chunk's two multiplications: of rows l / 4 and l / 4 + 8, and of the hidden state's
 * words l % 4 * 4 and the three behind it. */
static inline RNN_BOTH int32_t rnn_fragment_at(int32_t gates, int32_t gate, int32_t unit, int32_t word)
{
    const int32_t chunk = word / RNN_CHUNK_WORDS, inner = word % RNN_CHUNK_WORDS;
    const int32_t lane = unit % 8 * 4 + inner / 4, half = inner % 4 / 2;
    const int32_t reg = unit / 8 + inner % 2 * 2;
    return (((chunk * gates + gate) * 2 + half) * 32 + lane) * 4 + reg;
}

/* Item of a block, one unit of one batch row, below RNN_UNITS * rows: neighbouring items are neighbouring
 * units, so that two threads of a warp make a word of two 16-bit numbers. */
static inline RNN_BOTH int32_t rnn_item_unit(int32_t item, int32_t rows)
{
    return item / 2 / rows * 2 + item % 2;
}
static inline RNN_BOTH int32_t rnn_item_row(int32_t item, int32_t rows)
{
    return item / 2 % rows;
}

/* Messages: one for each word of a hidden state. The number of a batch row's first one. */
static inline RNN_BOTH int64_t rnn_message_at(const rnn_tiles *t, int32_t step, int32_t direction,
                                              int32_t slice, int32_t row)
{
    return ((((int64_t)(step & 1) * t->directions + direction) * t->slices + slice) * t->rows + row) *
           t->row_words;
}

#endif

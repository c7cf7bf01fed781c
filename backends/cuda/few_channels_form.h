/* SPDX-License-Identifier: Apache-2.0 */
/* How convolutions of images and volumes with few channels become products: what a block has, and where each
 * term of the sum lies. Plain C: host tests check what kernels rely on.
 *
 * With channels last, the taps of one row of a window are neighbours in memory: 21 numbers for 7 taps of 3
 * channels. The sum runs over those of all rows of the window's planes, in pairs, which are words of 4 bytes.
 * A row begins with one number that does not count where words would straddle otherwise. */
#ifndef GRT_BACKENDS_CUDA_FEW_CHANNELS_FORM_H
#define GRT_BACKENDS_CUDA_FEW_CHANNELS_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FEW_BOTH __host__ __device__
#else
#define FEW_BOTH
#endif

enum {
    FEW_PIXELS = 128, /* of a block, in tile_rows rows; a warp has 32 */
    FEW_COLUMNS = 64, /* output channels of a block, at most */
    FEW_DEPTH = 16,   /* terms of a step */
    FEW_PAIRS = FEW_DEPTH / 2,
    FEW_MOST_STEPS = 32,
    VOLUME_MOST_STEPS = 64,
};

typedef struct few_channels_form {
    int32_t channels, deep, kernel[2], stride[2]; /* deep: planes of the window */
    bool paired;                                  /* every pixel begins at a word of the image */
    int32_t shift;                   /* numbers in front of each row's taps that do not count, 0 or 1 */
    int32_t row_terms;               /* of a row of the window, even */
    int32_t steps;                   /* of FEW_DEPTH terms */
    int32_t tile_rows, tile_columns; /* output pixels of a block */
    int32_t window_rows, pitch;      /* what it reads of a plane: rows, numbers from row to row (even) */
} few_channels_form;

static inline FEW_BOTH few_channels_form few_channels_form_of(int32_t channels, int32_t deep,
                                                              const int32_t *kernel, const int32_t *stride,
                                                              int32_t begin_column, int32_t in_columns,
                                                              int32_t out_columns)
{
    few_channels_form f;
    f.channels = channels;
    f.deep = deep;
    for (int32_t d = 0; d < 2; d++) {
        f.kernel[d] = kernel[d];
        f.stride[d] = stride[d];
    }
    const int32_t taps = kernel[1] * channels, step = stride[1] * channels;
    f.paired = step % 2 == 0 && in_columns * channels % 2 == 0;
    f.shift = f.paired ? begin_column * channels & 1 : 0;
    f.row_terms = (taps + f.shift + 1) / 2 * 2;
    f.steps = (deep * kernel[0] * f.row_terms + FEW_DEPTH - 1) / FEW_DEPTH;
    for (f.tile_columns = 16; f.tile_columns < FEW_PIXELS && f.tile_columns < out_columns;)
        f.tile_columns *= 2;
    f.tile_rows = FEW_PIXELS / f.tile_columns;
    f.window_rows = (f.tile_rows - 1) * stride[0] + kernel[0];
    f.pitch = (f.tile_columns - 1) * step + f.row_terms;
    f.pitch += f.pitch % 2;
    return f;
}

/* A pair of terms: where it lies behind its pixel's begin, in numbers, and which of its halves count. */
typedef struct few_channels_pair {
    int32_t offset;
    uint32_t mask;
} few_channels_pair;

static inline FEW_BOTH few_channels_pair few_channels_pair_at(const few_channels_form *f, int32_t pair)
{
    const int32_t term = 2 * pair, row = term / f->row_terms, at = term % f->row_terms;
    const int32_t taps = f->kernel[1] * f->channels;
    few_channels_pair p = {0, 0};
    if (row >= f->deep * f->kernel[0])
        return p;
    p.offset = (row / f->kernel[0] * f->window_rows + row % f->kernel[0]) * f->pitch + at;
    p.mask =
        (at >= f->shift && at - f->shift < taps ? 0xffffu : 0) | (at + 1 - f->shift < taps ? 0xffff0000u : 0);
    return p;
}

/* The number of a filter, [window plane, row, column, channel], that a term is multiplied by; -1: none. */
static inline FEW_BOTH int32_t few_channels_weight_at(const few_channels_form *f, int32_t term)
{
    const int32_t taps = f->kernel[1] * f->channels, row = term / f->row_terms,
                  at = term % f->row_terms - f->shift;
    return row < f->deep * f->kernel[0] && at >= 0 && at < taps ? row * taps + at : -1;
}

#endif

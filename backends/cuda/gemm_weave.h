/* SPDX-License-Identifier: Apache-2.0 */
/* Where results of a product lie that are pixels of images larger than those its rows are pixels of, at the
 * pitch of a tensor that has further channels. Plain C: host tests check what kernels rely on. */
#ifndef GRT_BACKENDS_CUDA_GEMM_WEAVE_H
#define GRT_BACKENDS_CUDA_GEMM_WEAVE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WEAVE_BOTH __host__ __device__
#else
#define WEAVE_BOTH
#endif

/* A row is block[0] x block[1] pixels, each of which `channels` columns are, line by line. */
typedef struct cuda_gemm_weave {
    bool is_on;       /* else a result lies at row * columns + column */
    int32_t line;     /* rows that lie side by side */
    int32_t block[2]; /* down, right */
    int32_t channels;
    int32_t pitch; /* numbers from pixel to pixel */
} cuda_gemm_weave;

/* A result lies at the sum of what its row and its column say. line: row / w->line. */
static inline WEAVE_BOTH int64_t cuda_gemm_woven_row(const cuda_gemm_weave *w, int row, int line)
{
    const int64_t pixels = (int64_t)row + (int64_t)line * (w->block[0] - 1) * w->line;
    return pixels * w->block[1] * w->pitch;
}

/* tap: column / w->channels, down: tap / w->block[1]. */
static inline WEAVE_BOTH int64_t cuda_gemm_woven_column(const cuda_gemm_weave *w, int column, int tap,
                                                        int down)
{
    const int64_t pixels = (int64_t)down * w->line * w->block[1] + tap - down * w->block[1];
    return pixels * w->pitch + column - tap * w->channels;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How products by packed weights are spread over a device. */
#include "backends/cuda/weight_product.h"

/* As the forms of weight_tile.cuh. */
typedef struct spread_size {
    int rows, tiles, k_tiles, at_once; /* at_once: blocks of threads that a processor runs */
} spread_size;

static const spread_size sizes[] = {
    [CUDA_WEIGHT_ROWS_8] = {8, 1, 8, 3},    [CUDA_WEIGHT_ROWS_8_WIDE] = {8, 4, 4, 2},
    [CUDA_WEIGHT_ROWS_16] = {16, 4, 4, 2},  [CUDA_WEIGHT_ROWS_32] = {32, 16, 1, 1},
    [CUDA_WEIGHT_ROWS_64] = {64, 16, 1, 1}, [CUDA_WEIGHT_ROWS_128] = {128, 8, 1, 1}};

static cuda_weight_spread spread_of(int64_t m)
{
    return m <= 2    ? CUDA_WEIGHT_ROWS_8
           : m <= 8  ? CUDA_WEIGHT_ROWS_8_WIDE
           : m <= 16 ? CUDA_WEIGHT_ROWS_16
           : m <= 32 ? CUDA_WEIGHT_ROWS_32
           : m <= 64 ? CUDA_WEIGHT_ROWS_64
                     : CUDA_WEIGHT_ROWS_128;
}

/* Microseconds on one processor of an H100: whichever takes longer, weights from memory or products. */
static double stage_time(const spread_size *s, int bits)
{
    const double numbers = 1024.0 * s->tiles * s->k_tiles, memory = numbers * bits / 8 * 1.1 / 25.0e3,
                 products = 2 * numbers * s->rows / 4.5e6;
    return memory > products ? memory : products;
}

static double time_of(const spread_size *s, int bits, int64_t m, int64_t n, int64_t blocks, int64_t stages,
                      int64_t splits, int processors)
{
    const int64_t all = blocks * splits, at_once = (int64_t)processors * s->at_once,
                  waves = (all - 1) / at_once + 1, each = (stages - 1) / splits + 1;
    const double share = all < processors ? 1 : all < at_once ? (double)all / processors : s->at_once;
    const double sums = splits > 1 ? 2.0 + 8.0 * (double)(splits * m * n) / 4e6 : 0;
    return (double)(waves * each) * stage_time(s, bits) * share + sums;
}

cuda_weight_choice cuda_weight_choose(int64_t m, int64_t tiles_n, int64_t tiles_k, int bits, bool wide,
                                      int processors)
{
    enum { MOST = 16 };
    cuda_weight_choice choice = {.spread = spread_of(m)};
    spread_size s = sizes[choice.spread];
    if (wide && s.rows > 32)
        s.rows /= 2;
    const int64_t blocks = ((tiles_n - 1) / s.tiles + 1) * ((m - 1) / s.rows + 1),
                  stages = (tiles_k - 1) / s.k_tiles + 1;
    int64_t best = 1;
    for (int64_t splits = 2; splits <= MOST && splits * 2 <= stages; splits++)
        if (time_of(&s, bits, m, tiles_n * 16, blocks, stages, splits, processors) <
            time_of(&s, bits, m, tiles_n * 16, blocks, stages, best, processors))
            best = splits;
    const int64_t each = (stages - 1) / best + 1;
    choice.splits = (int)((stages - 1) / each + 1);
    choice.split_tiles = (int)(each * s.k_tiles);
    if (choice.splits > 1)
        choice.workspace_bytes = (size_t)choice.splits * (size_t)m * (size_t)tiles_n * 16 * sizeof(float);
    return choice;
}

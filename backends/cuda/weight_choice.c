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

/* Wide tiles read x less often, and narrow ones leave no processor without one. */
static cuda_weight_spread spread_of(int64_t m, int64_t tiles_n, int processors)
{
    return m <= 2 && tiles_n / 4 < processors ? CUDA_WEIGHT_ROWS_8
           : m <= 8                           ? CUDA_WEIGHT_ROWS_8_WIDE
           : m <= 16                          ? CUDA_WEIGHT_ROWS_16
           : m <= 32                          ? CUDA_WEIGHT_ROWS_32
           : m <= 64                          ? CUDA_WEIGHT_ROWS_64
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

static int bits_of(const cuda_weight_task *task)
{
    return task->numbers == CUDA_WEIGHT_4 ? 4 : 8;
}

static cuda_weight_choice choose_tile(const cuda_weight_task *task, int64_t most_splits)
{
    cuda_weight_choice choice = {.spread = spread_of(task->m, task->tiles_n, task->processors)};
    spread_size s = sizes[choice.spread];
    if (task->wide && s.rows > 32)
        s.rows /= 2;
    const int64_t blocks = ((task->tiles_n - 1) / s.tiles + 1) * ((task->m - 1) / s.rows + 1),
                  stages = (task->tiles_k - 1) / s.k_tiles + 1;
    int64_t best = 1;
    for (int64_t splits = 2; splits <= most_splits && splits * 2 <= stages; splits++)
        if (time_of(&s, bits_of(task), task->m, task->tiles_n * 16, blocks, stages, splits,
                    task->processors) <
            time_of(&s, bits_of(task), task->m, task->tiles_n * 16, blocks, stages, best, task->processors))
            best = splits;
    const int64_t each = (stages - 1) / best + 1;
    choice.splits = (int)((stages - 1) / each + 1);
    choice.split_tiles = (int)(each * s.k_tiles);
    return choice;
}

/* Tiles of columns and rows that a block of threads has, of which one fits a processor, and the microseconds
 * that it takes for a tile of k on an H100. */
typedef struct wide_size {
    cuda_weight_spread spread;
    int tiles, rows;
    double each;
} wide_size;

static const wide_size wide_sizes[] = {{CUDA_WEIGHT_WIDE_32_DOUBLE, 16, 32, 0.38},
                                       {CUDA_WEIGHT_WIDE_64, 8, 64, 0.25},
                                       {CUDA_WEIGHT_WIDE_64_DOUBLE, 16, 64, 0.45},
                                       {CUDA_WEIGHT_WIDE_128, 8, 128, 0.34},
                                       {CUDA_WEIGHT_WIDE_256, 8, 256, 0.60}};

enum { FEW = 8 /* rows */ };

/* What a block's sums take to leave: of several parts of k, through a cluster's shared memory. */
static double wide_end_of(const wide_size *s, int64_t splits)
{
    const double bytes = 64.0 * s->tiles * s->rows, of_others = 1.0 - 1.0 / (double)splits;
    return splits > 1 ? 1.0 + bytes * of_others / 18e3 : 0.5;
}

static double wide_time_of(const cuda_weight_task *task, const wide_size *s, int64_t splits)
{
    const int64_t of_columns = task->gated ? (task->tiles_n / 2 - 1) / (s->tiles / 2) + 1
                                           : (task->tiles_n - 1) / s->tiles + 1,
                  blocks = of_columns * ((task->m - 1) / s->rows + 1) * splits;
    /* Clusters leave processors idle that are too few for one more. */
    const int64_t at_once = splits > 2 ? task->processors * 7 / 8 : task->processors;
    const double each = (double)((task->tiles_k - 1) / splits + 1);
    return (double)((blocks - 1) / at_once + 1) * (1.5 + each * s->each + wide_end_of(s, splits));
}

/* Blocks that begin early share the processors that the kernel in front leaves first, and leave others idle:
 * of products of several waves that costs more than it brings. */
static cuda_weight_choice choose_wide(const cuda_weight_task *task)
{
    enum { FEWEST_TILES = 4, WORTH_OVERLAPPING = 20 };
    static const int parts[] = {1, 2, 3, 4, 8};
    const wide_size *best = wide_sizes;
    int64_t best_splits = 1;
    for (size_t i = 0; i < sizeof wide_sizes / sizeof *wide_sizes; i++)
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            if ((j == 0 || parts[j] * FEWEST_TILES <= task->tiles_k) &&
                wide_time_of(task, &wide_sizes[i], parts[j]) < wide_time_of(task, best, best_splits)) {
                best = &wide_sizes[i];
                best_splits = parts[j];
            }
    return (cuda_weight_choice){.spread = best->spread,
                                .splits = (int)best_splits,
                                .split_tiles = (int)((task->tiles_k - 1) / best_splits + 1),
                                .overlaps = task->overlaps &&
                                            wide_time_of(task, best, best_splits) < WORTH_OVERLAPPING};
}

/* Fewer blocks of 16 columns than two for each processor. */
static bool has_few_columns(const cuda_weight_task *task)
{
    return task->tiles_n < 2 * (int64_t)task->processors;
}

static bool is_small_weight(const cuda_weight_task *task)
{
    enum { MOST_TILES = 16 /* of a processor */ };
    return task->tiles_n <= task->processors &&
           task->tiles_n * task->tiles_k <= MOST_TILES * (int64_t)task->processors;
}

/* Small weights are multiplied sooner by groups of 8 rows than by 32, as long as the blocks of threads of all
 * groups run at the same time: each group reads the weights anew, but from the cache. */
static bool takes_8_rows(const cuda_weight_task *task)
{
    const int64_t at_once = task->numbers == CUDA_WEIGHT_4 ? 2 : 1; /* as shared memory has room for */
    return task->m <= FEW || (is_small_weight(task) && (task->tiles_n + 1) / 2 * ((task->m - 1) / FEW + 1) <=
                                                           at_once * (int64_t)task->processors);
}

/* Small weights are multiplied sooner where warps divide k, as long as all blocks, of which one fits a
 * processor, run at a time; with less of k there is too little to divide. */
static bool takes_32_rows(const cuda_weight_task *task)
{
    const int64_t fewest_tiles = task->m <= 16 ? 4 : 8;
    return is_small_weight(task) && task->m > FEW && task->tiles_k >= fewest_tiles &&
           task->shared >= CUDA_WEIGHT_FEW_32_BYTES &&
           task->tiles_n * ((task->m - 1) / 32 + 1) <= task->processors;
}

/* Where columns are few, more warps of a block divide k, so that enough of memory's answers are under way. Of
 * weights of 8 bits each warp has twice as many. */
static bool is_deep(const cuda_weight_task *task)
{
    enum { FEWEST_TILES = 16 };
    const bool pays = task->numbers == CUDA_WEIGHT_4
                          ? has_few_columns(task)
                          : 2 * task->tiles_n <= task->processors && task->tiles_k >= FEWEST_TILES;
    return pays && task->shared >= CUDA_WEIGHT_FEW_BYTES;
}

/* Large blocks that begin early take the place of those in front, unless one fills a processor. */
static bool few_overlaps(const cuda_weight_task *task)
{
    return task->overlaps && !(task->m > 1 && task->numbers == CUDA_WEIGHT_4 && has_few_columns(task) &&
                               !is_small_weight(task));
}

static cuda_weight_choice choose_few(const cuda_weight_task *task)
{
    return (cuda_weight_choice){.spread = !takes_8_rows(task) ? CUDA_WEIGHT_FEW_32
                                          : task->m > 1       ? CUDA_WEIGHT_FEW_8
                                          : is_deep(task)     ? CUDA_WEIGHT_FEW_1_DEEP
                                                              : CUDA_WEIGHT_FEW_1,
                                .splits = 1,
                                .split_tiles = (int)task->tiles_k,
                                .overlaps = few_overlaps(task)};
}

static bool takes_row(const cuda_weight_task *task)
{
    return task->m == 1 && task->numbers == CUDA_WEIGHT_4 && task->shared >= CUDA_WEIGHT_ROW_BYTES;
}

/* Two tiles of columns share what x takes. More warps divide k where blocks are too few to fill the device.
 */
static cuda_weight_choice choose_one_row(const cuda_weight_task *task)
{
    const int64_t pairs = task->tiles_n / 2;
    return (cuda_weight_choice){.spread = pairs > 3 * (int64_t)task->processors   ? CUDA_WEIGHT_ROW_32_MANY
                                          : task->gated || !has_few_columns(task) ? CUDA_WEIGHT_ROW_32
                                                                                  : CUDA_WEIGHT_ROW_16,
                                .splits = 1,
                                .split_tiles = (int)task->tiles_k,
                                .overlaps = task->overlaps};
}

static bool takes_few(const cuda_weight_task *task)
{
    return takes_32_rows(task) ||
           (takes_8_rows(task) &&
            task->shared >= (task->m == 1 ? CUDA_WEIGHT_FEW_1_BYTES : CUDA_WEIGHT_FEW_BYTES));
}

cuda_weight_choice cuda_weight_choose(const cuda_weight_task *task)
{
    enum { MOST_SPLITS = 16 };
    const bool regular = task->blocks != CUDA_WEIGHT_IRREGULAR && !task->wide;
    cuda_weight_choice choice = regular && takes_row(task)   ? choose_one_row(task)
                                : regular && takes_few(task) ? choose_few(task)
                                : regular && task->encode    ? choose_wide(task)
                                                             : choose_tile(task, MOST_SPLITS);
    choice.blocks = task->blocks;
    choice.encode = task->encode;
    if (choice.splits > 1 && choice.spread < CUDA_WEIGHT_WIDE_64)
        choice.workspace_bytes =
            (size_t)choice.splits * (size_t)task->m * (size_t)task->tiles_n * 16 * sizeof(float);
    return choice;
}

cuda_weight_choice cuda_weight_choose_any(const cuda_weight_task *task)
{
    return choose_tile(task, 1);
}

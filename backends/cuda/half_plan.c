/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of half_tile.cuh's kernel takes a product, and in how many parts its sum: the one that takes the
 * least time by a model of the multiprocessors, whose constants were measured on an H100. */
#include "backends/cuda/half_plan.h"

#include "backends/cuda/half_forms.h"

#include <math.h>

/* Microseconds: of a kernel, of a stage that a block waits for alone, of a tile, of parts that are joined;
 * for each result of a stage, of a tile and of parts; for each byte from L2 to a multiprocessor, and of
 * memory. */
#define HALF_TIME_OF_LAUNCH  0.17
#define HALF_TIME_OF_STAGE   0.15
#define HALF_TIME_OF_TILE    2.4
#define HALF_TIME_OF_JOIN    1.23
#define HALF_TIME_OF_PRODUCT 2.11e-5
#define HALF_TIME_OF_RESULT  3.31e-5
#define HALF_TIME_OF_PART    1.91e-4
#define HALF_TIME_OF_BYTE    1.104e-5
#define HALF_TIME_OF_MEMORY  4.28e-7
#define HALF_LATENCY         0.38 /* of a stage's products, for a block alone */
#define HALF_GELU            1.35

enum { DEPTH = 64, GROUP_ROWS = 64, LINE = 2 * DEPTH, VECTOR = 8 };

typedef struct half_size {
    int groups, columns, blocks;
    bool splits;
} half_size;

static const half_size half_sizes[] = {
#define HALF_SIZE(NUMBER, GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS) \
    [NUMBER] = {GROUPS, COLUMNS, BLOCKS, SPLITS},
    HALF_FORMS(HALF_SIZE)
#undef HALF_SIZE
};
enum { FORMS = sizeof half_sizes / sizeof *half_sizes };

static double ceil_div(double a, double b)
{
    return ceil(a / b);
}

static double half_taps(const cuda_half_product *p)
{
    return p->is_windows ? (double)p->kernel[0] * p->kernel[1] : 1;
}

static double half_steps(const cuda_half_product *p)
{
    return half_taps(p) * ceil_div((double)p->channels, DEPTH);
}

/* Microseconds. A stage takes as long as the tensor cores or the L2 cache need for it, and longer if a block
 * waits for its own stages alone; then there is what begins and ends a tile. */
static double half_time(const cuda_half_product *p, const half_size *s, int splits)
{
    const double rows = s->groups * GROUP_ROWS, columns = s->columns,
                 tiles = ceil_div((double)p->rows, rows) * ceil_div((double)p->columns, columns),
                 each = ceil_div(half_steps(p), splits),
                 per = ceil_div(tiles * splits, p->multiprocessors), /* blocks of a multiprocessor */
        together = fmin(per, s->blocks);
    const double products = rows * columns * HALF_TIME_OF_PRODUCT,
                 stage = fmax(products, (rows + columns) * LINE * HALF_TIME_OF_BYTE),
                 alone = fmax(stage, HALF_TIME_OF_STAGE + HALF_LATENCY * products),
                 finish = rows * columns * HALF_TIME_OF_RESULT * (half_is_gelu(p->act.kind) ? HALF_GELU : 1),
                 ends = HALF_TIME_OF_TILE + finish;
    const double waiting = ceil_div(per, s->blocks) * (each * fmax(alone, together * stage) + ends),
                 busy = per * each * stage + ends + (per - 1) * finish / 2,
                 join = splits > 1 ? HALF_TIME_OF_JOIN + rows * columns * HALF_TIME_OF_PART : 0;
    return fmax(waiting, busy) + join;
}

/* Of reading and writing memory once. */
static double half_memory_time(const cuda_half_product *p)
{
    const double results = (double)p->rows * (double)p->columns;
    return 2 *
           ((double)p->rows * (double)p->channels + results * (p->has_residual ? 2 : 1) +
            (double)p->columns * (double)p->channels * half_taps(p)) *
           HALF_TIME_OF_MEMORY;
}

/* What lies outside of images comes as zeros; these are the limits of the engine's boxes. */
static bool half_windows_fit(const cuda_half_product *p)
{
    bool fit = p->images > 0;
    for (int i = 0; i < 2; i++) {
        const int64_t last = (int64_t)(p->out[i] - 1) * p->stride[i] - p->begin[i],
                      right = (int64_t)(p->kernel[i] - 1) * p->dilation[i], end = last + 1 - p->in[i];
        fit = fit && p->begin[i] <= 127 && p->begin[i] >= -127 && right <= 255 && end >= -128 && end <= 127 &&
              p->stride[i] >= 1 && p->stride[i] <= 8;
    }
    return fit;
}

static bool half_fits(const cuda_half_product *p)
{
    enum { MOST = 1 << 30 };
    const bool activates = p->act.kind == GRT_ACT_NONE || p->act.kind == GRT_ACT_RELU ||
                           p->act.kind == GRT_ACT_CLIP || (half_is_gelu(p->act.kind) && p->across);
    return (p->dtype == GRT_DTYPE_FLOAT16 || p->dtype == GRT_DTYPE_BFLOAT16) && activates && p->rows > 0 &&
           p->rows < MOST && p->channels > 0 && p->channels < MOST && p->columns > 0 && p->columns < MOST &&
           p->channels % VECTOR == 0 && p->columns % VECTOR == 0 &&
           (double)p->rows * (double)p->columns < (double)MOST * GROUP_ROWS && half_steps(p) < MOST &&
           (!p->is_windows || half_windows_fit(p));
}

/* Narrow forms have weights along the sum only; parts of a sum are not activated by GELU. */
static bool half_form_fits(const cuda_half_product *p, const half_size *s, int splits)
{
    return (s->columns >= 64 || !p->across) &&
           (splits == 1 || (s->splits && s->columns / 8 % splits == 0 && splits <= half_steps(p) &&
                            !half_is_gelu(p->act.kind)));
}

bool cuda_half_product_plan(cuda_half_product *p)
{
    double best = INFINITY;
    if (!half_fits(p))
        return false;
    for (int form = 0; form < FORMS; form++)
        for (int splits = 1; splits <= HALF_MOST_SPLITS; splits *= 2) {
            const half_size *s = &half_sizes[form];
            const double time = half_form_fits(p, s, splits) ? half_time(p, s, splits) : INFINITY;
            if (time < best) {
                best = time;
                p->form = form;
                p->splits = splits;
            }
        }
    const half_size *s = &half_sizes[p->form];
    const int64_t rows = s->groups * GROUP_ROWS,
                  tiles = (p->rows + rows - 1) / rows * ((p->columns + s->columns - 1) / s->columns);
    /* Of several rounds, the next kernel's blocks take places that this one's need. */
    p->overlaps = tiles * p->splits <= (int64_t)p->multiprocessors * s->blocks;
    p->time = HALF_TIME_OF_LAUNCH + fmax(best, half_memory_time(p));
    return true;
}

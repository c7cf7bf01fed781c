/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of gemm_tile.cuh's kernel takes a product, and in how many parts its sum: the one that takes the
 * least time by a model of the multiprocessors, whose constants were measured on an H100; but those of strict
 * float32 are derived from TF32's, with three times the products. */
#include "backends/cuda/gemm_plan.h"

#include "backends/cuda/gemm_forms.h"

#include <math.h>

/* Microseconds: of a kernel, of a stage that a block waits for alone, of a tile, of parts that are joined;
 * for each result of a stage, of a tile and of parts, and each column of a tile; for each byte from L2 to
 * multiprocessors, and of memory. Then factors: of a stage's products, for a block alone; of the wait for a
 * stage that is under way from the beginning, as the ring has room for it; columns, what tensor cores lose
 * with fewer; of results, by an activation that does not only bound. Kernels that take `most` and more do not
 * begin before the one in front has ended. */
typedef struct gemm_costs {
    double launch, stage, tile, join, product, result, part, column, byte, memory;
    double latency, begun, narrow, curved, most;
} gemm_costs;

/* Of TF32, and of strict float32, which differs in what depends on products. */
#define GEMM_COSTS_OF_FLOAT                                                                               \
    .launch = 0.067, .join = 1.07, .result = 8.8e-7, .part = 9.57e-5, .column = 1.59e-2, .byte = 9.35e-8, \
    .memory = 3.63e-7, .latency = 0.801, .narrow = 15.6, .curved = 2.36, .most = 16.0
static const gemm_costs costs_of_half = {.launch = 0.0015,
                                         .stage = 0.169,
                                         .tile = 1.59,
                                         .join = 1.27,
                                         .product = 2.46e-5,
                                         .result = 2.12e-5,
                                         .part = 1.16e-4,
                                         .column = 4.08e-3,
                                         .byte = 1.21e-7,
                                         .memory = 4.46e-7,
                                         .latency = 0.654,
                                         .begun = 0.558,
                                         .narrow = 9.18,
                                         .curved = 1.00,
                                         .most = 8.0},
                        costs_of_tf32 = {GEMM_COSTS_OF_FLOAT, .stage = 0.106, .tile = 1.14,
                                         .product = 2.71e-5, .begun = 0.125},
                        costs_of_strict = {GEMM_COSTS_OF_FLOAT, .stage = 0.25, .tile = 1.3, .product = 8.9e-5,
                                           .begun = 0.5};

enum { GROUP_ROWS = 64, LINE = 128 /* bytes of a stage's rows */, VECTOR = 16 /* bytes */ };

typedef struct gemm_size {
    int groups, columns, stages, blocks;
    bool splits;
} gemm_size;

#define GEMM_SIZE(NUMBER, GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS) \
    [NUMBER] = {GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS},
static const gemm_size usual_sizes[] = {GEMM_FORMS(GEMM_SIZE)},
                       strict_sizes[] = {GEMM_STRICT_FORMS(GEMM_SIZE)};
#undef GEMM_SIZE

static const gemm_size *gemm_sizes_of(const cuda_gemm *p, int *out_n)
{
    *out_n = (int)(p->strict ? sizeof strict_sizes : sizeof usual_sizes) / (int)sizeof *usual_sizes;
    return p->strict ? strict_sizes : usual_sizes;
}

static double ceil_div(double a, double b)
{
    return ceil(a / b);
}

static double gemm_taps(const cuda_gemm *p)
{
    return p->is_windows ? (double)p->kernel[0] * p->kernel[1] : 1;
}

static double gemm_size_of_number(const cuda_gemm *p)
{
    return (double)grt_dtype_size(p->dtype);
}

static const gemm_costs *gemm_costs_of(const cuda_gemm *p)
{
    return p->strict ? &costs_of_strict : p->dtype == GRT_DTYPE_FLOAT ? &costs_of_tf32 : &costs_of_half;
}

static double gemm_steps(const cuda_gemm *p)
{
    return gemm_taps(p) * ceil_div((double)p->channels * gemm_size_of_number(p), LINE);
}

/* Microseconds. A stage takes as long as the tensor cores need for it, and longer if a block waits for its
 * own stages alone, or all blocks for the L2 cache; then there is what begins and ends a tile. */
static double gemm_time(const cuda_gemm *p, const gemm_size *s, int splits)
{
    const gemm_costs *c = gemm_costs_of(p);
    const double rows = s->groups * GROUP_ROWS, columns = s->columns,
                 tiles = ceil_div((double)p->rows, rows) * ceil_div((double)p->columns, columns),
                 each = ceil_div(gemm_steps(p), splits),
                 per = ceil_div(tiles * splits, p->multiprocessors), /* blocks of a multiprocessor */
        together = fmin(per, s->blocks);
    const double stage = rows * columns * c->product * (1 + c->narrow / columns),
                 alone = fmax(stage, c->stage * (1 - (1 - c->begun) * fmin(1, s->stages / each)) +
                                         c->latency * stage),
                 finish =
                     (rows * c->result + c->column) * columns * (gemm_is_bounds(p->act.kind) ? 1 : c->curved),
                 ends = c->tile + finish;
    const double waiting = ceil_div(per, s->blocks) * (each * fmax(alone, together * stage) + ends),
                 busy = per * each * stage + ends + (per - 1) * finish / 2,
                 fetched = tiles * splits * each * (rows + columns) * LINE * c->byte + ends,
                 join = splits > 1 ? c->join + rows * columns * c->part : 0;
    return fmax(fmax(waiting, busy), fetched) + join;
}

/* Of reading and writing memory once. */
static double gemm_memory_time(const cuda_gemm *p)
{
    const double results = (double)p->rows * (double)p->columns;
    return gemm_size_of_number(p) *
           ((double)p->rows * (double)p->channels + results * (p->has_residual ? 2 : 1) +
            (double)p->columns * (double)p->channels * gemm_taps(p)) *
           gemm_costs_of(p)->memory;
}

/* What lies outside of images comes as zeros; these are the limits of the engine's boxes. */
static bool gemm_windows_fit(const cuda_gemm *p)
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

static bool gemm_fits(const cuda_gemm *p)
{
    enum { MOST = 1 << 30 };
    const int64_t vector = VECTOR / (int64_t)grt_dtype_size(p->dtype);
    return (p->dtype == GRT_DTYPE_FLOAT16 || p->dtype == GRT_DTYPE_BFLOAT16 ||
            (p->dtype == GRT_DTYPE_FLOAT && !p->across)) &&
           (!p->strict || p->dtype == GRT_DTYPE_FLOAT) && p->rows > 0 && p->rows < MOST && p->channels > 0 &&
           p->channels < MOST && p->columns > 0 && p->columns < MOST && p->channels % vector == 0 &&
           p->columns % vector == 0 && (double)p->rows * (double)p->columns < (double)MOST * GROUP_ROWS &&
           gemm_steps(p) < MOST && (!p->is_windows || gemm_windows_fit(p));
}

/* Narrow forms have weights along the sum only. */
static bool gemm_form_fits(const cuda_gemm *p, const gemm_size *s, int splits)
{
    return (s->columns >= 64 || !p->across) &&
           (splits == 1 || (s->splits && s->columns / 8 % splits == 0 && splits <= gemm_steps(p)));
}

bool cuda_gemm_plan(cuda_gemm *p)
{
    int forms;
    const gemm_size *sizes = gemm_sizes_of(p, &forms);
    double best = INFINITY;
    if (!gemm_fits(p))
        return false;
    for (int form = 0; form < forms; form++)
        for (int splits = 1; splits <= GEMM_MOST_SPLITS; splits *= 2) {
            const gemm_size *s = &sizes[form];
            const double time = gemm_form_fits(p, s, splits) ? gemm_time(p, s, splits) : INFINITY;
            if (time < best) {
                best = time;
                p->form = form;
                p->splits = splits;
            }
        }
    p->time = gemm_costs_of(p)->launch + fmax(best, gemm_memory_time(p));
    p->is_long = p->time >= gemm_costs_of(p)->most;
    return true;
}

/* Kernels store vectors, none of which may lie in two pixels, and count steps of rows in 32 bits. */
bool cuda_gemm_set_weave(cuda_gemm *p, const cuda_gemm_weave *weave, int64_t offset)
{
    const int64_t vector = VECTOR / (int64_t)grt_dtype_size(p->dtype);
    if (p->has_residual || p->across || !gemm_is_bounds(p->act.kind) ||
        cuda_gemm_woven_row(weave, 1, 0) > INT32_MAX || cuda_gemm_woven_row(weave, 0, 1) > INT32_MAX ||
        (weave->channels | weave->pitch | offset) % vector || p->rows % weave->line ||
        p->columns != (int64_t)weave->block[0] * weave->block[1] * weave->channels)
        return false;
    p->weave = *weave;
    return true;
}

/* Of the multiprocessors' time, that goes into results; small tiles are read more often. */
static double gemm_fill(const cuda_gemm *p, double rows, double columns)
{
    const double tiles = ceil_div((double)p->rows, rows) * ceil_div((double)p->columns, columns),
                 all = ceil_div(tiles, p->multiprocessors) * p->multiprocessors * rows * columns;
    return (double)p->rows * (double)p->columns / all * (rows * columns < 128 * 192 ? 0.9 : 1);
}

bool cuda_gemm_fills_better(const cuda_gemm *p)
{
    static const double theirs[][2] = {{128, 256}, {256, 128}, {128, 192}, {128, 128}};
    int forms;
    const gemm_size *s = gemm_sizes_of(p, &forms) + p->form;
    double best = 0;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        best = fmax(best, gemm_fill(p, theirs[i][0], theirs[i][1]));
    return gemm_fill(p, s->groups * GROUP_ROWS, s->columns) >= 1.05 * best;
}

bool cuda_gemm_is_whole(const cuda_gemm *p)
{
    enum { LEAST_COLUMNS = 32 };
    const double stages =
                     gemm_steps(p) * LINE / gemm_size_of_number(p) / (gemm_taps(p) * (double)p->channels),
                 columns = ceil_div((double)p->columns, LEAST_COLUMNS) * LEAST_COLUMNS / (double)p->columns;
    return stages * columns <= 1.25;
}

bool cuda_gemm_is_better_kept(const cuda_gemm *p)
{
    enum { MOST_TIME = 20 };
    return gemm_taps(p) > 1 && p->time <= MOST_TIME;
}

bool cuda_gemm_is_better_left(const cuda_gemm *p)
{
    enum { MOST_TIME = 60 };
    return gemm_taps(p) > 1 && p->time > MOST_TIME &&
           (p->act.kind == GRT_ACT_NONE || p->act.kind == GRT_ACT_RELU);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of gemm_tile.cuh's kernel takes a product, and in how many parts its sum: the one that takes the
 * least time by a model of the multiprocessors, whose constants were measured on an H100. */
#include "backends/cuda/gemm_plan.h"

#include "backends/cuda/gemm_forms.h"

#include <math.h>

/* Microseconds: of a kernel, of a stage that a block waits for alone, of a tile, of parts that are joined;
 * for each result of a stage, of a tile and of parts, and each column of a tile; for each byte from L2 to
 * multiprocessors, and of memory. */
#define GEMM_TIME_OF_LAUNCH  0.63
#define GEMM_TIME_OF_STAGE   0.117
#define GEMM_TIME_OF_TILE    0.80
#define GEMM_TIME_OF_JOIN    1.54
#define GEMM_TIME_OF_PRODUCT 2.19e-5
#define GEMM_TIME_OF_RESULT  2.57e-5
#define GEMM_TIME_OF_PART    1.29e-4
#define GEMM_TIME_OF_COLUMN  5.6e-3
#define GEMM_TIME_OF_BYTE    9.44e-8
#define GEMM_TIME_OF_MEMORY  4.83e-7
#define GEMM_LATENCY         0.71 /* of a stage's products, for a block alone */
#define GEMM_NARROW          20.2 /* columns: what tensor cores lose with fewer */
#define GEMM_CURVED          1.60 /* of results, by an activation that does not only bound */
#define GEMM_WIDE            1.50 /* of results, by 4 bytes each */
#define GEMM_LONG            8.0  /* two such kernels, one behind the other, take longer if they overlap */

enum { GROUP_ROWS = 64, LINE = 128 /* bytes of a stage's rows */, VECTOR = 16 /* bytes */ };

typedef struct gemm_size {
    int groups, columns, blocks;
    bool splits;
} gemm_size;

static const gemm_size gemm_sizes[] = {
#define GEMM_SIZE(NUMBER, GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS) \
    [NUMBER] = {GROUPS, COLUMNS, BLOCKS, SPLITS},
    GEMM_FORMS(GEMM_SIZE)
#undef GEMM_SIZE
};
enum { FORMS = sizeof gemm_sizes / sizeof *gemm_sizes };

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

static double gemm_steps(const cuda_gemm *p)
{
    return gemm_taps(p) * ceil_div((double)p->channels * gemm_size_of_number(p), LINE);
}

/* Microseconds. A stage takes as long as the tensor cores need for it, and longer if a block waits for its
 * own stages alone, or all blocks for the L2 cache; then there is what begins and ends a tile. */
static double gemm_time(const cuda_gemm *p, const gemm_size *s, int splits)
{
    const double rows = s->groups * GROUP_ROWS, columns = s->columns,
                 tiles = ceil_div((double)p->rows, rows) * ceil_div((double)p->columns, columns),
                 each = ceil_div(gemm_steps(p), splits),
                 per = ceil_div(tiles * splits, p->multiprocessors), /* blocks of a multiprocessor */
        together = fmin(per, s->blocks);
    const double stage = rows * columns * GEMM_TIME_OF_PRODUCT * (1 + GEMM_NARROW / columns),
                 alone = fmax(stage, GEMM_TIME_OF_STAGE + GEMM_LATENCY * stage),
                 finish = (rows * GEMM_TIME_OF_RESULT + GEMM_TIME_OF_COLUMN) * columns *
                          (gemm_is_bounds(p->act.kind) ? 1 : GEMM_CURVED) *
                          (p->dtype == GRT_DTYPE_FLOAT ? GEMM_WIDE : 1),
                 ends = GEMM_TIME_OF_TILE + finish;
    const double waiting = ceil_div(per, s->blocks) * (each * fmax(alone, together * stage) + ends),
                 busy = per * each * stage + ends + (per - 1) * finish / 2,
                 fetched = tiles * splits * each * (rows + columns) * LINE * GEMM_TIME_OF_BYTE + ends,
                 join = splits > 1 ? GEMM_TIME_OF_JOIN + rows * columns * GEMM_TIME_OF_PART : 0;
    return fmax(fmax(waiting, busy), fetched) + join;
}

/* Of reading and writing memory once. */
static double gemm_memory_time(const cuda_gemm *p)
{
    const double results = (double)p->rows * (double)p->columns;
    return gemm_size_of_number(p) *
           ((double)p->rows * (double)p->channels + results * (p->has_residual ? 2 : 1) +
            (double)p->columns * (double)p->channels * gemm_taps(p)) *
           GEMM_TIME_OF_MEMORY;
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

bool cuda_gemm_activates(const cuda_gemm *p)
{
    return gemm_is_bounds(p->act.kind) || p->dtype == GRT_DTYPE_FLOAT ||
           (gemm_is_gelu(p->act.kind) && p->across);
}

static bool gemm_fits(const cuda_gemm *p)
{
    enum { MOST = 1 << 30 };
    const int64_t vector = VECTOR / (int64_t)grt_dtype_size(p->dtype);
    return (p->dtype == GRT_DTYPE_FLOAT16 || p->dtype == GRT_DTYPE_BFLOAT16 ||
            (p->dtype == GRT_DTYPE_FLOAT && !p->across)) &&
           cuda_gemm_activates(p) && p->rows > 0 && p->rows < MOST && p->channels > 0 && p->channels < MOST &&
           p->columns > 0 && p->columns < MOST && p->channels % vector == 0 && p->columns % vector == 0 &&
           (double)p->rows * (double)p->columns < (double)MOST * GROUP_ROWS && gemm_steps(p) < MOST &&
           (!p->is_windows || gemm_windows_fit(p));
}

/* Narrow forms have weights along the sum only; parts of a sum are not activated by GELU. */
static bool gemm_form_fits(const cuda_gemm *p, const gemm_size *s, int splits)
{
    return (s->columns >= 64 || !p->across) &&
           (splits == 1 || (s->splits && s->columns / 8 % splits == 0 && splits <= gemm_steps(p) &&
                            gemm_is_bounds(p->act.kind)));
}

bool cuda_gemm_plan(cuda_gemm *p)
{
    double best = INFINITY;
    if (!gemm_fits(p))
        return false;
    for (int form = 0; form < FORMS; form++)
        for (int splits = 1; splits <= GEMM_MOST_SPLITS; splits *= 2) {
            const gemm_size *s = &gemm_sizes[form];
            const double time = gemm_form_fits(p, s, splits) ? gemm_time(p, s, splits) : INFINITY;
            if (time < best) {
                best = time;
                p->form = form;
                p->splits = splits;
            }
        }
    p->time = GEMM_TIME_OF_LAUNCH + fmax(best, gemm_memory_time(p));
    p->is_long = p->time >= GEMM_LONG;
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
    const gemm_size *s = &gemm_sizes[p->form];
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

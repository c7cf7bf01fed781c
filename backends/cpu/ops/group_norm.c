/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNormalization and InstanceNormalization: statistics per group of channels, scale and bias per channel.
 * With channels last (domain graphrt, float32 only) the sums of all channels are made side by side. There an
 * activation may follow. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/norm.h"
#include "backends/cpu/workspace.h"
#include "backends/shared/norm.h"
#include "src/base/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct group_shape {
    grt_group_norm norm;
    bool plain; /* float32 throughout */
    grt_act act;
    size_t sums, mean, factor; /* channels last: offsets into the workspace */
} group_shape;

/* Channels last: pixels that one thread adds up at a time. The number of threads changes no sum. */
enum { BLOCK = 256 };

static int64_t group_norm_blocks_of(const grt_group_norm *n)
{
    return (n->pixels + BLOCK - 1) / BLOCK;
}

static bool group_norm_is_float(const grt_reshape *r)
{
    return r->in[0]->dtype == GRT_DTYPE_FLOAT && r->in[GRT_NORM_SCALE]->dtype == GRT_DTYPE_FLOAT &&
           r->in[GRT_NORM_BIAS]->dtype == GRT_DTYPE_FLOAT;
}

static bool group_norm_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_act act;
    return grt_act_read(node->desc, &act, why);
}

static grt_status group_norm_reshape(grt_reshape *r)
{
    group_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    const grt_status status = grt_group_norm_fit(r, &s->norm);
    if (status != GRT_OK) {
        free(s);
        return status;
    }
    s->plain = group_norm_is_float(r);
    grt_act_read(r->desc, &s->act, NULL);
    r->shape = s;
    if (s->norm.last) {
        const int64_t images = r->in[0]->dims[0], channels = s->norm.groups * s->norm.channels;
        cpu_layout layout = {0};
        s->sums = cpu_layout_add(&layout, images * channels * group_norm_blocks_of(&s->norm), sizeof(float));
        s->mean = cpu_layout_add(&layout, images * channels, sizeof(float));
        s->factor = cpu_layout_add(&layout, images * channels, sizeof(float));
        r->workspace_bytes = layout.bytes; /* no more than the input has */
    }
    return GRT_OK;
}

static void group_norm_run_row(const grt_run *r, const grt_group_norm *s, int64_t row)
{
    const int64_t n = s->channels * s->pixels, first = row % s->groups * s->channels;
    const float *x = (const float *)r->in[0]->data + row * n, *scale = r->in[GRT_NORM_SCALE]->data,
                *bias = r->in[GRT_NORM_BIAS]->data;
    float *y = (float *)r->out[0]->data + row * n, mean, variance;
    cpu_norm_stats(x, n, false, &mean, &variance);
    const float factor = 1.0f / sqrtf(variance + (float)s->epsilon);
    for (int64_t c = 0; c < s->channels; c++) {
        const float a = factor * scale[first + c];
        cpu_norm_affine(x + c * s->pixels, y + c * s->pixels, s->pixels, mean, a, bias[first + c]);
    }
}

static void group_norm_run_row_exact(const grt_run *r, const grt_group_norm *s, int64_t row)
{
    const int64_t n = s->channels * s->pixels, first = row % s->groups * s->channels;
    const grt_tensor *x = r->in[0];
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n; i++)
        mean += grt_element_get(x, row * n + i) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = grt_element_get(x, row * n + i) - mean;
        squares += d * d;
    }
    const double factor = 1.0 / sqrt(squares / (double)n + s->epsilon);
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = first + i / s->pixels;
        const double v = (grt_element_get(x, row * n + i) - mean) * factor;
        grt_element_put(r->out[0], row * n + i,
                        v * grt_element_get(r->in[GRT_NORM_SCALE], channel) +
                            grt_element_get(r->in[GRT_NORM_BIAS], channel));
    }
}

/* Few channels are taken for several pixels together, as vectors want: this many floats at most. */
enum { WIDE = 64 };

static int64_t together(int64_t channels)
{
    return channels < WIDE ? WIDE / channels : 1;
}

static void repeat(const float *from, int64_t n, int64_t times, float *to)
{
    for (int64_t i = 0; i < times; i++)
        memcpy(to + i * n, from, (size_t)n * sizeof *to);
}

/* sums[c] = the sum of x[c], or of its squared distance from mean[c], over the rows. */
CPU_BODY add_rows_body(const float *x, int64_t rows, int64_t n, const float *mean, float *restrict sums)
{
    for (int64_t c = 0; c < n; c++)
        sums[c] = 0.0f;
    for (int64_t row = 0; row < rows; row++, x += n) {
        if (!mean) {
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                sums[c] += x[c];
        } else {
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                sums[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
        }
    }
}
CPU_DISPATCH(add_rows, (const float *x, int64_t rows, int64_t n, const float *mean, float *restrict sums),
             (x, rows, n, mean, sums))

static void add_pixels(const float *x, int64_t pixels, int64_t channels, const float *mean, float *sums)
{
    const int64_t times = together(channels), rows = pixels / times;
    float wide[WIDE], wide_mean[WIDE];
    if (times == 1 || rows == 0) {
        add_rows(x, pixels, channels, mean, sums);
        return;
    }
    if (mean)
        repeat(mean, channels, times, wide_mean);
    add_rows(x, rows, times * channels, mean ? wide_mean : NULL, wide);
    add_rows(x + rows * times * channels, pixels - rows * times, channels, mean, sums);
    for (int64_t i = 0; i < times * channels; i++)
        sums[i % channels] += wide[i];
}

CPU_BODY scale_rows_body(const float *x, float *y, int64_t rows, int64_t n, const float *mean,
                         const float *factor, const float *bias)
{
    for (int64_t row = 0; row < rows; row++, x += n, y += n) {
#pragma omp simd
        for (int64_t c = 0; c < n; c++)
            y[c] = (x[c] - mean[c]) * factor[c] + bias[c];
    }
}
CPU_DISPATCH(scale_rows,
             (const float *x, float *y, int64_t rows, int64_t n, const float *mean, const float *factor,
              const float *bias),
             (x, y, rows, n, mean, factor, bias))

static void scale_pixels(const float *x, float *y, int64_t pixels, int64_t channels, const float *mean,
                         const float *factor, const float *bias)
{
    const int64_t times = together(channels), rows = pixels / times, done = rows * times * channels;
    float wide[3][WIDE];
    if (times == 1 || rows == 0) {
        scale_rows(x, y, pixels, channels, mean, factor, bias);
        return;
    }
    repeat(mean, channels, times, wide[0]);
    repeat(factor, channels, times, wide[1]);
    repeat(bias, channels, times, wide[2]);
    scale_rows(x, y, rows, times * channels, wide[0], wide[1], wide[2]);
    scale_rows(x + done, y + done, pixels - rows * times, channels, mean, factor, bias);
}

/* Mean over a group of what its channels have summed up, from all blocks of image b. */
static float group_mean(const grt_group_norm *s, const float *sums, int64_t b, int64_t group)
{
    const int64_t channels = s->groups * s->channels, blocks = group_norm_blocks_of(s);
    double sum = 0.0;
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t c = 0; c < s->channels; c++)
            sum += (double)sums[(b * blocks + block) * channels + group * s->channels + c];
    return (float)(sum / (double)(s->channels * s->pixels));
}

static void run_last(const grt_run *r, const group_shape *shape)
{
    const grt_group_norm *s = &shape->norm;
    const int64_t channels = s->groups * s->channels, blocks = group_norm_blocks_of(s),
                  batch = s->rows / s->groups, items = batch * blocks;
    const bool many = items * BLOCK * channels > CPU_GRAIN;
    float *sums = cpu_workspace_at(r->workspace, shape->sums),
          *mean = cpu_workspace_at(r->workspace, shape->mean),
          *factor = cpu_workspace_at(r->workspace, shape->factor);
    const float *x = r->in[0]->data, *scale = r->in[GRT_NORM_SCALE]->data, *bias = r->in[GRT_NORM_BIAS]->data;
    float *y = r->out[0]->data;
    for (int pass = 0; pass < 3; pass++) {
#pragma omp parallel for num_threads(r->threads) if (many)
        for (int64_t i = 0; i < items; i++) {
            const int64_t b = i / blocks, first = i % blocks * BLOCK,
                          n = s->pixels - first < BLOCK ? s->pixels - first : BLOCK,
                          at = (b * s->pixels + first) * channels;
            if (pass < 2)
                add_pixels(x + at, n, channels, pass ? mean + b * channels : NULL, sums + i * channels);
            else
                scale_pixels(x + at, y + at, n, channels, mean + b * channels, factor + b * channels, bias);
        }
        for (int64_t row = 0; row < s->rows && pass < 2; row++) {
            const float v = group_mean(s, sums, row / s->groups, row % s->groups);
            for (int64_t c = 0; c < s->channels; c++)
                if (pass == 0)
                    mean[row * s->channels + c] = v;
                else
                    factor[row * s->channels + c] =
                        scale[row % s->groups * s->channels + c] / sqrtf(v + (float)s->epsilon);
        }
    }
}

static void run_first(const grt_run *r, const group_shape *s)
{
    const grt_group_norm *norm = &s->norm;
#pragma omp parallel for num_threads(r->threads) if (norm->rows * norm->channels * norm->pixels > CPU_GRAIN)
    for (int64_t row = 0; row < norm->rows; row++)
        if (s->plain)
            group_norm_run_row(r, norm, row);
        else
            group_norm_run_row_exact(r, norm, row);
}

static grt_status group_norm_run(const grt_run *r)
{
    const group_shape *s = r->shape;
    const grt_group_norm *norm = &s->norm;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    if (norm->last)
        run_last(r, s);
    else
        run_first(r, s);
    if (s->act.kind != GRT_ACT_NONE) { /* float32, as all kernels with an activation */
        const grt_epilogue e = {.rows = norm->rows, .cols = norm->channels * norm->pixels, .act = s->act};
        grt_epilogue_run(&e, r->out[0]->data, r->threads);
    }
    return GRT_OK;
}

#define LIFE  .reshape = group_norm_reshape, .release_shape = free, .run = group_norm_run
#define PLAIN .domain = "", .types = {CPU_FLOATS, CPU_FLOATS, CPU_FLOATS}, LIFE
#define LAST                                                                        \
    .domain = "graphrt", .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)}, \
    .supports = group_norm_supports, LIFE

static const grt_kernel_row rows[] = {
    {.op = "GroupNormalization", PLAIN},
    {.op = "InstanceNormalization", PLAIN},
    {.op = "GroupNormalization", LAST},
    {.op = "InstanceNormalization", LAST},
};
CPU_KERNELS(group_norm, rows);

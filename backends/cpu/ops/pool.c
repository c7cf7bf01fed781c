/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and the pools over whole images, with channels first or (domain graphrt) last. */
#include "backends/cpu/pool_planes.h"
#include "backends/cpu/pool_tiles.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/rows.h"
#include "src/base/element.h"
#include "backends/cpu/act.h" /* after the others: its pragma lets the loops below be vectors */

#include <math.h>
#include <stdlib.h>

static bool windows_overlap(const cpu_window *w)
{
    bool overlap = false;
    for (int32_t i = 0; i < w->spatial; i++)
        overlap = overlap || w->stride[i] < w->kernel[i];
    return overlap;
}

typedef struct pool_shape {
    cpu_pool pool;
    cpu_pool_planes planes;
} pool_shape;

static grt_status pool_reshape(grt_reshape *r)
{
    pool_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    cpu_pool *p = &s->pool;
    const grt_tensor *x = r->in[0];
    p->last = grt_channels_last(r->desc);
    p->max = !strcmp(r->desc->op, "MaxPool");
    p->count_padding = grt_attr_int(r->desc, "count_include_pad", 0) != 0;
    p->column_major = grt_attr_int(r->desc, "storage_order", 0) != 0;
    p->batch = x->dims[0];
    p->channels = x->dims[p->last ? x->rank - 1 : 1];
    p->threads = r->threads;
    const int32_t at = p->last ? 1 : 2;
    cpu_window_read(r->desc, x->rank - 2, x->dims + at, r->out[0]->dims + at, NULL, false, &p->w);
    const bool tiles = x->dtype == GRT_DTYPE_FLOAT && (r->n_out < 2 || !r->out[1]);
    const bool planes = tiles && cpu_pool_planes_cut(p, &s->planes, &r->workspace_bytes);
    if (tiles && !planes &&
        (!p->last || windows_overlap(&p->w))) /* others gain nothing from folded columns */
        cpu_pool_cut(p, &p->tiles, &r->workspace_bytes);
    r->shape = s;
    return GRT_OK;
}

static grt_status pool_run(const grt_run *r)
{
    const pool_shape *s = r->shape;
    const cpu_pool *p = &s->pool;
    grt_tensor *indices = r->n_out > 1 ? r->out[1] : NULL;
    if (grt_tensor_elements(r->out[0]) == 0)
        return GRT_OK;
    if (s->planes.planes > 0)
        cpu_pool_planes_run(&s->planes, r->in[0]->data, r->out[0]->data, r->workspace);
    else if (p->tiles.cols > 0)
        cpu_pool_tiles_run(p, r->in[0]->data, r->out[0]->data, r->workspace);
    else if (p->last && r->in[0]->dtype == GRT_DTYPE_FLOAT)
        cpu_pool_pixels(p, r->in[0]->data, r->out[0]->data);
    else if (p->last)
        cpu_pool_largest_bytes(p, r->in[0]->dtype, r->in[0]->data, r->out[0]->data);
    else
        cpu_pool_exact(p, r->in[0]->dtype, r->in[0]->data, r->out[0]->data, indices ? indices->data : NULL);
    return GRT_OK;
}

typedef struct global_pool {
    cpu_images x;
    bool max, lp;
    double power;
} global_pool;

static grt_status global_pool_reshape(grt_reshape *r)
{
    global_pool *p = calloc(1, sizeof *p);
    if (!p)
        return grt_fail_memory(sizeof *p);
    p->x = cpu_images_of(r->desc, r->in[0]);
    p->max = !strcmp(r->desc->op, "GlobalMaxPool");
    p->lp = !strcmp(r->desc->op, "GlobalLpPool");
    p->power = (double)grt_attr_int(r->desc, "p", 2);
    r->shape = p;
    return GRT_OK;
}

/* A block of channels of pixels that lie `step` floats apart: their sums, or the greatest values, NaN if one
 * is NaN. */
enum { BLOCK = 64 };

CPU_BODY fold_pixels_body(const float *x, int64_t pixels, int64_t step, int64_t n, bool max, float *y)
{
    float all[BLOCK];
    for (int64_t k = 0; k < n; k++)
        all[k] = x[k];
    for (int64_t pixel = 1; pixel < pixels; pixel++) {
        const float *row = x + pixel * step;
        if (max) {
#pragma omp simd
            for (int64_t k = 0; k < n; k++)
                all[k] = row[k] > all[k] || row[k] != row[k] ? row[k] : all[k];
        } else {
#pragma omp simd
            for (int64_t k = 0; k < n; k++)
                all[k] += row[k];
        }
    }
    for (int64_t k = 0; k < n; k++)
        y[k] = max ? all[k] : all[k] / (float)pixels;
}
CPU_DISPATCH(fold_pixels, (const float *x, int64_t pixels, int64_t step, int64_t n, bool max, float *y),
             (x, pixels, step, n, max, y))

static void global_last(const cpu_images *p, bool max, const float *x, float *y, int threads)
{
    const int64_t blocks = (p->channels + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(threads) if (p->batch * p->channels * p->pixels > CPU_GRAIN)
    for (int64_t i = 0; i < p->batch * blocks; i++) {
        const int64_t b = i / blocks, c = i % blocks * BLOCK,
                      n = p->channels - c < BLOCK ? p->channels - c : BLOCK;
        fold_pixels(x + b * p->pixels * p->channels + c, p->pixels, p->channels, n, max,
                    y + b * p->channels + c);
    }
}

static void global_first(const cpu_images *p, bool max, const float *x, float *y, int threads)
{
    const int64_t planes = p->batch * p->channels, parts = (planes + BLOCK - 1) / BLOCK;
    const int64_t many = planes * p->pixels > CPU_GRAIN;
#pragma omp parallel for num_threads(threads) if (many)
    for (int64_t i = 0; i < parts; i++) {
        const int64_t first = i * BLOCK, n = planes - first < BLOCK ? planes - first : BLOCK;
        double values[BLOCK];
        cpu_rows_best()->fold(max ? CPU_FOLD_LARGEST : CPU_FOLD_SUM, x + first * p->pixels, n, p->pixels,
                              values);
        for (int64_t k = 0; k < n; k++)
            y[first + k] = (float)(max ? values[k] : values[k] / (double)p->pixels);
    }
}

static double plane_value(const global_pool *p, const grt_tensor *x, int64_t from, int64_t step)
{
    double value = p->max ? -INFINITY : 0.0;
    for (int64_t i = 0; i < p->x.pixels; i++) {
        const double v = grt_element_get(x, from + i * step);
        if (p->max)
            value = v > value || v != v ? v : value;
        else
            value += p->lp ? pow(fabs(v), p->power) : v;
    }
    return p->max ? value : p->lp ? pow(value, 1.0 / p->power) : value / (double)p->x.pixels;
}

static grt_status global_pool_run(const grt_run *r)
{
    const global_pool *p = r->shape;
    const grt_tensor *x = r->in[0];
    grt_tensor *y = r->out[0];
    if (x->dtype == GRT_DTYPE_FLOAT && !p->lp && p->x.pixels > 0) {
        (p->x.last ? global_last : global_first)(&p->x, p->max, x->data, y->data, r->threads);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(r->threads) if (p->x.batch * p->x.channels * p->x.pixels > CPU_GRAIN)
    for (int64_t i = 0; i < p->x.batch * p->x.channels; i++) {
        if (p->x.last)
            grt_element_put(y, i,
                            plane_value(p, x,
                                        i / p->x.channels * p->x.pixels * p->x.channels + i % p->x.channels,
                                        p->x.channels));
        else
            grt_element_put(y, i, plane_value(p, x, i * p->x.pixels, 1));
    }
    return GRT_OK;
}

#define WINDOW .reshape = pool_reshape, .release_shape = free, .run = pool_run
#define GLOBAL \
    .types = {CPU_FLOATS}, .reshape = global_pool_reshape, .release_shape = free, .run = global_pool_run

static const grt_kernel_row rows[] = {
    {.domain = "", .op = "MaxPool", .types = {CPU_FLOATS | GRT_BIT(INT8) | GRT_BIT(UINT8)}, WINDOW},
    {.domain = "", .op = "AveragePool", .types = {CPU_FLOATS}, WINDOW},
    {.domain = "", .op = "GlobalAveragePool", GLOBAL},
    {.domain = "", .op = "GlobalMaxPool", GLOBAL},
    {.domain = "", .op = "GlobalLpPool", GLOBAL},
    {.domain = "graphrt",
     .op = "MaxPool",
     .types = {GRT_BIT(FLOAT) | GRT_BIT(INT8) | GRT_BIT(UINT8)},
     WINDOW},
    {.domain = "graphrt", .op = "AveragePool", .types = {GRT_BIT(FLOAT)}, WINDOW},
    {.domain = "graphrt", .op = "GlobalAveragePool", GLOBAL},
};
CPU_KERNELS(pool, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv, LpPool, MaxUnpool. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/threads.h"
#include "backends/shared/sampling.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

/* ---- LpPool ---- */

/* The norm of one window; o: output position in each dim. */
static double lp_window(const grt_lp_pool *shape, const grt_tensor *x, int64_t plane, int64_t out)
{
    const cpu_window *w = &shape->w;
    int64_t from[CPU_MAX_SPATIAL], to[CPU_MAX_SPATIAL], first[CPU_MAX_SPATIAL], k[CPU_MAX_SPATIAL];
    double sum = 0;
    for (int32_t i = w->spatial - 1; i >= 0; i--) {
        cpu_window_taps(w, i, out % w->out[i], &from[i], &to[i], &first[i]);
        out /= w->out[i];
        k[i] = from[i];
        if (from[i] == to[i])
            return 0;
    }
    for (;;) {
        int64_t at = 0;
        for (int32_t i = 0; i < w->spatial; i++)
            at = at * w->in[i] + first[i] + k[i] * w->dilation[i];
        double value = fabs(grt_element_get(x, plane * w->in_pixels + at));
        sum += shape->p == 2 ? value * value : shape->p == 1 ? value : pow(value, shape->p);
        int32_t i = w->spatial - 1;
        while (i >= 0 && ++k[i] == to[i]) {
            k[i] = from[i];
            i--;
        }
        if (i < 0)
            return shape->p == 2 ? sqrt(sum) : pow(sum, 1 / shape->p);
    }
}

static grt_status lp_run(const grt_run *run)
{
    const grt_lp_pool *shape = run->shape;
    int64_t pixels = shape->w.out_pixels, n = shape->planes * pixels;
    const bool many = grt_mul_saturated(n, shape->w.taps) > CPU_GRAIN;
#pragma omp parallel for num_threads(run->threads) if (many)
    for (int64_t i = 0; i < n; i++)
        grt_element_put(run->out[0], i, lp_window(shape, run->in[0], i / pixels, i % pixels));
    return GRT_OK;
}

/* ---- MaxUnpool ---- */

static grt_status unpool_run(const grt_run *run)
{
    const grt_unpool *shape = run->shape;
    const grt_tensor *x = run->in[0];
    grt_tensor *y = run->out[0];
    size_t element = grt_dtype_size(x->dtype), bytes = grt_tensor_bytes(y);
    int64_t n = grt_tensor_elements(x);
    if (bytes)
        memset(y->data, 0, bytes);
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = ((const int64_t *)run->in[1]->data)[i],
                      at = grt_unpool_place(shape, index, y->dims);
        if (at < 0)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "index %lld at element %lld is outside the output, whose indices end at %lld",
                               (long long)index, (long long)i, (long long)shape->elements - 1);
        memcpy((char *)y->data + (size_t)at * element, (const char *)x->data + (size_t)i * element, element);
    }
    return GRT_OK;
}

/* ---- DeformConv ---- */

static grt_status deform_reshape(grt_reshape *reshape)
{
    size_t samples;
    GRT_TRY(grt_deform_reshape(reshape));
    const grt_deform *shape = reshape->shape;
    if (grt_mul_size((size_t)shape->channels * sizeof(double), (size_t)shape->w.taps, &samples) &&
        grt_mul_size(samples, (size_t)reshape->threads, &reshape->workspace_bytes))
        return GRT_OK;
    free(reshape->shape);
    reshape->shape = NULL;
    return grt_fail_memory(SIZE_MAX);
}

/* What all taps of all channels see at output pixel `at`. */
static void deform_samples(const grt_run *run, int64_t batch, int64_t at, double *samples)
{
    const grt_deform *shape = run->shape;
    const cpu_window *w = &shape->w;
    const grt_tensor *x = run->in[GRT_DEFORM_X], *offsets = run->in[GRT_DEFORM_OFFSET],
                     *mask = grt_run_in(run, GRT_DEFORM_MASK);
    int64_t pixels = w->out_pixels, per_offset = shape->channels / shape->offset_groups;
    for (int64_t g = 0; g < shape->offset_groups; g++)
        for (int64_t tap = 0; tap < w->taps; tap++) {
            const int64_t cell = (batch * shape->offset_groups + g) * w->taps + tap;
            const double row = grt_deform_row(w, at, tap) + grt_element_get(offsets, cell * 2 * pixels + at);
            const double column =
                grt_deform_column(w, at, tap) + grt_element_get(offsets, (cell * 2 + 1) * pixels + at);
            const double factor = mask ? grt_element_get(mask, cell * pixels + at) : 1;
            for (int64_t c = g * per_offset; c < (g + 1) * per_offset; c++)
                samples[c * w->taps + tap] =
                    factor *
                    grt_deform_sample(w, x->dtype, x->data, batch * shape->channels + c, row, column);
        }
}

static grt_status deform_run(const grt_run *run)
{
    const grt_deform *shape = run->shape;
    const grt_tensor *bias = grt_run_in(run, GRT_DEFORM_BIAS);
    int64_t pixels = shape->w.out_pixels, n = shape->batch * pixels, taps = shape->w.taps;
    int64_t group_in = shape->channels / shape->groups, group_out = shape->out_channels / shape->groups;
#pragma omp parallel for num_threads(run->threads) if (n * taps * shape->channels > CPU_GRAIN)
    for (int64_t i = 0; i < n; i++) {
        double *samples = (double *)run->workspace + cpu_thread() * shape->channels * taps;
        int64_t batch = i / pixels, at = i % pixels;
        deform_samples(run, batch, at, samples);
        for (int64_t o = 0; o < shape->out_channels; o++) {
            const double *seen = samples + o / group_out * group_in * taps;
            double sum = bias ? grt_element_get(bias, o) : 0;
            for (int64_t k = 0; k < group_in * taps; k++)
                sum += seen[k] * grt_element_get(run->in[GRT_DEFORM_W], o * group_in * taps + k);
            grt_element_put(run->out[0], (batch * shape->out_channels + o) * pixels + at, sum);
        }
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "DeformConv",
     .types = {GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS, GRT_SET_FLOATS},
     .supports = grt_deform_supports,
     .reshape = deform_reshape,
     .release_shape = free,
     .run = deform_run},
    {.domain = "",
     .op = "LpPool",
     .types = {GRT_SET_FLOATS},
     .reshape = grt_lp_pool_reshape,
     .release_shape = free,
     .run = lp_run},
    {.domain = "",
     .op = "MaxUnpool",
     .types = {GRT_SET_FLOATS, GRT_BIT(INT64), GRT_BIT(INT64)},
     .reshape = grt_unpool_reshape,
     .release_shape = free,
     .run = unpool_run},
};
CPU_KERNELS(sampling, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* LRN: each element divided by a power of the squares in the channels around it. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/shared/norm.h"
#include "src/base/element.h"

#include <math.h>
#include <stdlib.h>

static grt_status lrn_reshape(grt_reshape *r)
{
    grt_lrn *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    grt_lrn_fit(r, s);
    r->shape = s;
    return GRT_OK;
}

enum { LANES = 64 };

/* Up to LANES neighbouring pixels of one channel; x is the image, `at` the position in it. */
CPU_BODY lrn_pixels_body(const grt_lrn *s, const float *x, float *y, int64_t channel, int64_t pixel,
                         int64_t lanes)
{
    float sum[LANES];
    const int64_t from = channel > s->before ? channel - s->before : 0;
    const int64_t to = channel + s->after < s->channels ? channel + s->after + 1 : s->channels;
    for (int64_t l = 0; l < lanes; l++)
        sum[l] = 0.0f;
    for (int64_t c = from; c < to; c++) {
        const float *row = x + c * s->pixels + pixel;
#pragma omp simd
        for (int64_t l = 0; l < lanes; l++)
            sum[l] += row[l] * row[l];
    }
    const int64_t at = channel * s->pixels + pixel;
    if (s->beta == 0.75f) {
#pragma omp simd
        for (int64_t l = 0; l < lanes; l++) {
            const float v = s->bias + s->alpha * sum[l], root = __builtin_sqrtf(v);
            y[at + l] = x[at + l] / (root * __builtin_sqrtf(root));
        }
        return;
    }
    for (int64_t l = 0; l < lanes; l++)
        y[at + l] = x[at + l] * powf(s->bias + s->alpha * sum[l], -s->beta);
}
CPU_DISPATCH(lrn_pixels,
             (const grt_lrn *s, const float *x, float *y, int64_t channel, int64_t pixel, int64_t lanes),
             (s, x, y, channel, pixel, lanes))

static void lrn_run_exact(const grt_lrn *s, const grt_tensor *x, grt_tensor *y, int64_t plane)
{
    const int64_t b = plane / s->channels, channel = plane % s->channels;
    const int64_t from = channel > s->before ? channel - s->before : 0;
    const int64_t to = channel + s->after < s->channels ? channel + s->after + 1 : s->channels;
    for (int64_t p = 0; p < s->pixels; p++) {
        double sum = 0.0;
        for (int64_t c = from; c < to; c++) {
            const double v = grt_element_get(x, (b * s->channels + c) * s->pixels + p);
            sum += v * v;
        }
        const double v = grt_element_get(x, plane * s->pixels + p);
        grt_element_put(y, plane * s->pixels + p,
                        v * pow((double)s->bias + (double)s->alpha * sum, -(double)s->beta));
    }
}

static grt_status lrn_run(const grt_run *r)
{
    const grt_lrn *s = r->shape;
    const int64_t image = s->channels * s->pixels;
    const bool plain = r->in[0]->dtype == GRT_DTYPE_FLOAT;
#pragma omp parallel for num_threads(r->threads) if (s->batch * image > CPU_GRAIN)
    for (int64_t plane = 0; plane < s->batch * s->channels; plane++) {
        if (!plain) {
            lrn_run_exact(s, r->in[0], r->out[0], plane);
            continue;
        }
        const int64_t at = plane / s->channels * image;
        for (int64_t p = 0; p < s->pixels; p += LANES)
            lrn_pixels(s, (const float *)r->in[0]->data + at, (float *)r->out[0]->data + at,
                       plane % s->channels, p, s->pixels - p < LANES ? s->pixels - p : LANES);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "LRN",
     .types = {CPU_FLOATS},
     .reshape = lrn_reshape,
     .release_shape = free,
     .run = lrn_run},
};
CPU_KERNELS(lrn, rows);

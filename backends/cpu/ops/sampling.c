/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv, LpPool, MaxUnpool. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/flip.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/move.h"
#include "backends/cpu/threads.h"
#include "backends/shared/sampling.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

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

/* float32 is one product for each group: samples of some pixels as columns, a row for each channel and tap.
 */
enum { DEFORM_FLOATS = 1 << 18, DEFORM_BLOCK = 64, DEFORM_CHANNELS = 64, CORNERS = 4 };

static int64_t deform_tile(const grt_deform *s)
{
    const int64_t rows = grt_mul_saturated(s->channels, s->w.taps), least = DEFORM_BLOCK,
                  n = rows > 0 && DEFORM_FLOATS / rows > least ? DEFORM_FLOATS / rows : least;
    return n < s->w.out_pixels ? n : s->w.out_pixels;
}

static grt_gemm deform_product(const grt_deform *s, int64_t n)
{
    const int64_t k = s->channels / s->groups * s->w.taps;
    return (grt_gemm){.batch = 1,
                      .m = s->out_channels / s->groups,
                      .n = n,
                      .k = k,
                      .lda = k,
                      .ldb = n,
                      .ldc = s->w.out_pixels,
                      .alpha = 1};
}

/* Bytes of the columns of a tile. */
static bool deform_columns(const grt_deform *s, size_t *out_bytes)
{
    return grt_mul_size((size_t)s->channels * sizeof(float), (size_t)s->w.taps, out_bytes) &&
           grt_mul_size(*out_bytes, (size_t)deform_tile(s), out_bytes) && *out_bytes <= SIZE_MAX / 4;
}

/* Bytes of an image with channels last. */
static bool deform_image(const grt_deform *s, size_t *out_bytes)
{
    if (!grt_mul_size((size_t)s->channels * sizeof(float), (size_t)s->w.in_pixels, out_bytes) ||
        *out_bytes > SIZE_MAX / 4)
        return false;
    *out_bytes = grt_align_up(*out_bytes, 64);
    return true;
}

static bool deform_workspace(const grt_reshape *reshape, const grt_deform *s, size_t *out_bytes)
{
    size_t samples, scratch, image;
    if (reshape->in[GRT_DEFORM_X]->dtype != GRT_DTYPE_FLOAT)
        return grt_mul_size((size_t)s->channels * sizeof(double), (size_t)s->w.taps, &samples) &&
               grt_mul_size(samples, (size_t)reshape->threads, out_bytes);
    const grt_gemm product = deform_product(s, deform_tile(s));
    if (!deform_image(s, &image) || !deform_columns(s, &samples) ||
        !grt_gemm_scratch_bytes(&product, reshape->threads, &scratch))
        return false;
    *out_bytes = image + grt_align_up(samples, 64) + scratch;
    return true;
}

static grt_status deform_reshape(grt_reshape *reshape)
{
    GRT_TRY(grt_deform_reshape(reshape));
    if (deform_workspace(reshape, reshape->shape, &reshape->workspace_bytes))
        return GRT_OK;
    free(reshape->shape);
    reshape->shape = NULL;
    return grt_fail_memory(SIZE_MAX);
}

/* Pixels that one tap reads for some output pixels, -1 outside the image, and what each weighs. */
typedef struct deform_block {
    int64_t at[CORNERS][DEFORM_BLOCK];
    float weight[CORNERS][DEFORM_BLOCK];
} deform_block;

static void deform_corners(const cpu_window *w, double row, double column, double factor, int64_t i,
                           deform_block *b)
{
    const bool inside = row > -1 && row < (double)w->in[0] && column > -1 && column < (double)w->in[1];
    const int64_t r = inside ? (int64_t)floor(row) : -2, c = inside ? (int64_t)floor(column) : -2;
    const double down = inside ? row - (double)r : 0, right = inside ? column - (double)c : 0;
    for (int k = 0; k < CORNERS; k++) {
        const int64_t y = r + k / 2, x = c + k % 2;
        const bool there = y >= 0 && y < w->in[0] && x >= 0 && x < w->in[1];
        b->at[k][i] = there ? y * w->in[1] + x : -1;
        b->weight[k][i] = (float)(factor * (k / 2 ? down : 1 - down) * (k % 2 ? right : 1 - right));
    }
}

/* What n channels see, DEFORM_CHANNELS at most; x: pixels with channels last, `each` apart. A pixel that is
 * not there is read by nobody, as what is in its place may be infinite. */
CPU_BODY deform_see_body(const deform_block *b, const float *x, int64_t each, int64_t n, int64_t m,
                         float (*seen)[DEFORM_CHANNELS])
{
    for (int64_t i = 0; i < m; i++) {
        float *to = seen[i];
        if (b->at[0][i] >= 0 && b->at[CORNERS - 1][i] >= 0) { /* the usual case: all are there */
            const float *p0 = x + b->at[0][i] * each, *p1 = x + b->at[1][i] * each,
                        *p2 = x + b->at[2][i] * each, *p3 = x + b->at[3][i] * each;
            const float w0 = b->weight[0][i], w1 = b->weight[1][i], w2 = b->weight[2][i],
                        w3 = b->weight[3][i];
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                to[c] = (w0 * p0[c] + w1 * p1[c]) + (w2 * p2[c] + w3 * p3[c]);
            continue;
        }
        for (int64_t c = 0; c < n; c++)
            to[c] = 0.0f;
        for (int k = 0; k < CORNERS; k++) {
            const float *p = x + b->at[k][i] * each, w = b->weight[k][i];
            if (b->at[k][i] < 0)
                continue;
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                to[c] += w * p[c];
        }
    }
}
CPU_DISPATCH(deform_see,
             (const deform_block *b, const float *x, int64_t each, int64_t n, int64_t m,
              float (*seen)[DEFORM_CHANNELS]),
             (b, x, each, n, m, seen))

/* Row (channel, tap) of the columns, for n output pixels from `first` on and all channels of offset group g.
 * image: pixels with channels last. */
static void deform_rows(const grt_run *run, const float *image, int64_t batch, int64_t g, int64_t tap,
                        int64_t first, int64_t n, float *columns)
{
    const grt_deform *s = run->shape;
    const cpu_window *w = &s->w;
    const grt_tensor *mask = grt_run_in(run, GRT_DEFORM_MASK);
    const int64_t pixels = w->out_pixels, each = s->channels / s->offset_groups,
                  cell = (batch * s->offset_groups + g) * w->taps + tap;
    const float *down = (const float *)run->in[GRT_DEFORM_OFFSET]->data + cell * 2 * pixels,
                *right = down + pixels, *factor = mask ? (const float *)mask->data + cell * pixels : NULL;
    for (int64_t from = 0; from < n; from += DEFORM_BLOCK) {
        const int64_t m = n - from < DEFORM_BLOCK ? n - from : DEFORM_BLOCK;
        deform_block b;
        int64_t left = w->out[1] - (first + from) % w->out[1]; /* of this row of pixels */
        double row = grt_deform_row(w, first + from, tap), column = grt_deform_column(w, first + from, tap);
        for (int64_t i = 0; i < m; i++) {
            const int64_t at = first + from + i;
            if (left-- == 0) {
                left = w->out[1] - 1;
                row = grt_deform_row(w, at, tap);
                column = grt_deform_column(w, at, tap);
            }
            deform_corners(w, row + (double)down[at], column + (double)right[at],
                           factor ? (double)factor[at] : 1, i, &b);
            column += (double)w->stride[1];
        }
        for (int64_t c = g * each; c < (g + 1) * each; c += DEFORM_CHANNELS) {
            const int64_t left_over = (g + 1) * each - c,
                          count = left_over < DEFORM_CHANNELS ? left_over : DEFORM_CHANNELS;
            float seen[DEFORM_BLOCK][DEFORM_CHANNELS];
            deform_see(&b, image + c, s->channels, count, m, seen);
            cpu_flip(sizeof(float), columns + (c * w->taps + tap) * n + from, w->taps * n, seen,
                     DEFORM_CHANNELS, count, m);
        }
    }
}

/* Output pixels [first, first + n) of one image, which is there with channels last, too. */
static void deform_floats(const grt_run *run, const float *image, int64_t batch, int64_t first, int64_t n,
                          float *columns)
{
    const grt_deform *s = run->shape;
    const grt_tensor *bias = grt_run_in(run, GRT_DEFORM_BIAS);
    const int64_t rows = s->offset_groups * s->w.taps;
    size_t bytes = 0;
    (void)deform_columns(s, &bytes); /* was checked by reshape */
#pragma omp parallel for num_threads(run->threads) if (rows * n * s->channels > CPU_GRAIN)
    for (int64_t i = 0; i < rows; i++)
        deform_rows(run, image, batch, i / s->w.taps, i % s->w.taps, first, n, columns);
    grt_gemm product = deform_product(s, n);
    for (int64_t g = 0; g < s->groups; g++) {
        product.bias_row = bias ? (const float *)bias->data + g * product.m : NULL;
        grt_gemm_run(&product, (const float *)run->in[GRT_DEFORM_W]->data + g * product.m * product.k,
                     columns + g * product.k * n,
                     (float *)run->out[0]->data +
                         (batch * s->out_channels + g * product.m) * s->w.out_pixels + first,
                     (char *)columns + grt_align_up(bytes, 64), run->threads);
    }
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
    if (run->in[GRT_DEFORM_X]->dtype == GRT_DTYPE_FLOAT) {
        const int64_t tile = deform_tile(shape), in_pixels = shape->w.in_pixels;
        float *image = run->workspace;
        size_t bytes = 0;
        (void)deform_image(shape, &bytes); /* was checked by reshape */
        for (int64_t i = 0; i < shape->batch; i++) {
            cpu_move turn = {.size = sizeof *image};
            cpu_move_axis(&turn, in_pixels, shape->channels, 1);
            cpu_move_axis(&turn, shape->channels, 1, in_pixels);
            cpu_move_run(&turn, image,
                         (const float *)run->in[GRT_DEFORM_X]->data + i * shape->channels * in_pixels,
                         run->threads);
            for (int64_t at = 0; at < pixels; at += tile)
                deform_floats(run, image, i, at, pixels - at < tile ? pixels - at : tile,
                              (float *)((char *)run->workspace + bytes));
        }
        return GRT_OK;
    }
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

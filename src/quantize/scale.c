/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/scale.h"

#include "src/base/float.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

scale_zero scale_of_range(value_range range, grt_dtype dtype)
{
    if (dtype != GRT_DTYPE_UINT8) {
        const float most = fmaxf(-range.low, range.high), largest = dtype == GRT_DTYPE_INT8 ? 127 : 448;
        return (scale_zero){most >= FLT_MIN * largest ? most / largest : 1, 0};
    }
    const double scale = ((double)range.high - (double)range.low) / 255;
    if (scale < (double)FLT_MIN)
        return (scale_zero){1, 0};
    const double zero = nearbyint(-(double)range.low / scale);
    return (scale_zero){(float)scale, (int32_t)fmin(fmax(zero, 0), 255)};
}

/* Elements that share a scale: `n` of them, in groups of `inner` that are `stride` apart each; groups are
 * `outer_stride` apart. */
typedef struct run_of_weights {
    const float *from;
    int64_t n, stride, inner, outer_stride;
} run_of_weights;

typedef struct coder {
    grt_dtype dtype;
    float low, most; /* smallest and largest number */
    float *run;      /* the elements of one run, side by side */
} coder;

/* To the nearest of the format's numbers; ties to even. Within +-2^22 the addition rounds. */
static inline float nearest_number(const coder *c, float x)
{
    const float limited = x < c->low ? c->low : x > c->most ? c->most : x;
    return limited + 0x1.8p23f - 0x1.8p23f;
}

static float code_value(const coder *c, float x)
{
    return c->dtype == GRT_DTYPE_FLOAT8E4M3FN
               ? grt_float8_to_float(grt_float_to_float8(x, GRT_FLOAT8_E4M3FN, true), GRT_FLOAT8_E4M3FN)
               : nearest_number(c, x);
}

static int64_t place_of(const run_of_weights *r, int64_t i)
{
    return i / r->inner * r->outer_stride + i % r->inner * r->stride;
}

static void gather_run(const coder *c, const run_of_weights *r)
{
    for (int64_t group = 0, i = 0; i < r->n; group++)
        for (int64_t k = 0; k < r->inner; k++)
            c->run[i++] = r->from[group * r->outer_stride + k * r->stride];
}

static float run_error(const coder *c, int64_t n, float scale)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const float lost = c->run[i] - nearest_number(c, c->run[i] / scale) * scale;
        sum += lost * lost;
    }
    return sum;
}

/* Of 4 bits a range that cuts off the largest weights is often better. Of more bits, the largest magnitude
 * decides. */
static float best_scale(const coder *c, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(c->run[i]));
    if (most < FLT_MIN * 512)
        return 1;
    float scale = most / c->most;
    if (c->dtype != GRT_DTYPE_INT4)
        return scale;
    float best = run_error(c, n, scale);
    for (int step = 1; step <= 12; step++) {
        const float other = most / (c->most + 0.25f * (float)step), error = run_error(c, n, other);
        if (error < best) {
            best = error;
            scale = other;
        }
    }
    return scale;
}

static void store_code(const coder *c, void *data, int64_t i, float value)
{
    uint8_t *bytes = data;
    if (c->dtype == GRT_DTYPE_FLOAT8E4M3FN)
        bytes[i] = grt_float_to_float8(value, GRT_FLOAT8_E4M3FN, true);
    else if (c->dtype == GRT_DTYPE_INT8)
        ((int8_t *)data)[i] = (int8_t)value;
    else
        bytes[i / 2] |= (uint8_t)(((uint32_t)(int32_t)value & 15u) << (i % 2 * 4));
}

/* Of the run that was gathered; `begin` is the first of all weights. */
static void code_run(const coder *c, const run_of_weights *r, const float *begin, float scale,
                     quantised_weights *out)
{
    for (int64_t i = 0; i < r->n; i++) {
        const float x = c->run[i], value = code_value(c, x / scale), lost = x - value * scale;
        store_code(c, out->data.data, r->from - begin + place_of(r, i), value);
        out->error += (double)lost * (double)lost;
        out->signal += (double)x * (double)x;
    }
}

/* outer x axis x inner: the weights around their axis. */
typedef struct around {
    int64_t outer, size, inner;
} around;

static around split_at(const grt_tensor *w, int32_t axis)
{
    around a = {1, axis < 0 ? 1 : w->dims[axis], 1};
    for (int32_t i = 0; i < w->rank; i++)
        *(i < axis ? &a.outer : &a.inner) *= i == axis ? 1 : w->dims[i];
    return a;
}

static void quantise_channels(const coder *c, const grt_tensor *w, around a, const float *least,
                              quantised_weights *out)
{
    for (int64_t i = 0; i < a.size; i++) {
        const run_of_weights r = {(const float *)w->data + i * a.inner, a.outer * a.inner, 1, a.inner,
                                  a.size * a.inner};
        gather_run(c, &r);
        float scale = best_scale(c, r.n);
        if (least && scale < least[i])
            scale = least[i];
        ((float *)out->scales.data)[i] = scale;
        code_run(c, &r, w->data, scale, out);
    }
}

static void quantise_blocks(const coder *c, const grt_tensor *w, around a, int64_t block,
                            quantised_weights *out)
{
    const int64_t blocks = (a.size + block - 1) / block;
    float *scales = out->scales.data;
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t i = 0; i < a.inner; i++) {
                const int64_t n = b + 1 < blocks ? block : a.size - b * block;
                const run_of_weights r = {(const float *)w->data + (o * a.size + b * block) * a.inner + i, n,
                                          a.inner, n, 0};
                float *scale = &scales[(o * blocks + b) * a.inner + i];
                gather_run(c, &r);
                *scale = best_scale(c, r.n);
                code_run(c, &r, w->data, *scale, out);
            }
}

grt_status quantise_weights(const grt_tensor *w, grt_dtype dtype, int32_t axis, int64_t block,
                            const float *least, grt_arena *arena, quantised_weights *out)
{
    static const coder int4 = {GRT_DTYPE_INT4, -8, 7, NULL}, int8 = {GRT_DTYPE_INT8, -127, 127, NULL},
                       float8 = {GRT_DTYPE_FLOAT8E4M3FN, -448, 448, NULL};
    coder c = dtype == GRT_DTYPE_INT4 ? int4 : dtype == GRT_DTYPE_INT8 ? int8 : float8;
    const around a = split_at(w, axis);
    *out = (quantised_weights){.data = *w, .scales = *w};
    out->data.dtype = dtype;
    if (block)
        out->scales.dims[axis] = (a.size + block - 1) / block;
    else
        out->scales = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = axis < 0 ? 0 : 1, .dims = {a.size}};
    out->data.data = grt_arena_calloc(arena, grt_tensor_bytes(&out->data) + 1, 1);
    out->scales.data = grt_arena_calloc(arena, grt_tensor_bytes(&out->scales) + 1, 1);
    c.run = malloc(((size_t)(!block           ? a.outer * a.inner
                             : block < a.size ? block
                                              : a.size) +
                    1) *
                   sizeof *c.run);
    if (!out->data.data || !out->scales.data || !c.run) {
        free(c.run);
        return grt_fail_memory(grt_tensor_bytes(&out->data));
    }
    if (block)
        quantise_blocks(&c, w, a, block, out);
    else
        quantise_channels(&c, w, a, least, out);
    free(c.run);
    return GRT_OK;
}

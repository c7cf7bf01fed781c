/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample and AffineGrid: which elements of an axis make a sample, and where the points of a grid lie. */
#ifndef GRT_BACKENDS_SHARED_GRID_SAMPLE_H
#define GRT_BACKENDS_SHARED_GRID_SAMPLE_H

#include "backends/kernel.h"
#include "src/base/float.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_grid_mode { GRT_GRID_LINEAR, GRT_GRID_NEAREST, GRT_GRID_CUBIC } grt_grid_mode;
typedef enum grt_grid_padding { GRT_GRID_ZEROS, GRT_GRID_BORDER, GRT_GRID_REFLECTION } grt_grid_padding;

typedef struct grt_grid {
    grt_grid_mode mode;
    grt_grid_padding padding;
    bool align;
} grt_grid;

/* The elements of one axis that make a sample: at most 4. index -1: zero. */
typedef struct grt_grid_taps {
    int32_t n;
    int64_t index[4];
    double weight[4];
} grt_grid_taps;

/* For kernel rows: the state is a grt_grid, the shape nothing; free releases. */
grt_status grt_grid_create(const grt_kernel_node *node, void **out_state);
grt_status grt_grid_reshape(grt_reshape *reshape);
/* The state is a bool: align_corners. */
grt_status grt_affine_create(const grt_kernel_node *node, void **out_state);
grt_status grt_affine_reshape(grt_reshape *reshape);

/* Mirrored at both ends of [low, high] until it lies between them. */
GRT_INLINE double grt_grid_reflect(double x, double low, double high)
{
    const double range = high - low;
    if (range <= 0)
        return low;
    if (x >= low && x <= high)
        return x;
    const double beyond = x < low ? low - x : x - high, turns = floor(beyond / range),
                 rest = beyond - turns * range;
    const bool even = fmod(turns, 2.0) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

GRT_INLINE int64_t grt_grid_index(const grt_grid *s, double i, int64_t n, double low, double high)
{
    if (s->padding == GRT_GRID_ZEROS)
        return i >= 0 && i < (double)n ? (int64_t)i : -1;
    if (s->padding == GRT_GRID_REFLECTION)
        i = grt_grid_reflect(i, low, high);
    return i <= 0 ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

/* x: of the position between the second and the third of four elements. */
GRT_INLINE void grt_grid_cubic(double x, double *weights)
{
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        const double d = fabs(x + 1 - k);
        weights[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

/* `at` is the grid's coordinate, -1 to 1 over an axis of n elements. */
GRT_INLINE void grt_grid_find_taps(const grt_grid *s, double at, int64_t n, grt_grid_taps *t)
{
    const double low = s->align ? 0 : -0.5, high = s->align ? (double)n - 1 : (double)n - 0.5;
    double x = s->align ? (at + 1) / 2 * (double)(n - 1) : ((at + 1) * (double)n - 1) / 2;
    x = (double)(float)x;
    x = x > -0x1p40 ? (x < 0x1p40 ? x : 0x1p40) : -0x1p40; /* NaN counts as far outside */
    if (s->mode == GRT_GRID_NEAREST)
        x = rint(x);
    if (x < low || x > high) {
        if (s->padding == GRT_GRID_BORDER)
            x = x < 0 ? 0 : x > (double)n - 1 ? (double)n - 1 : x;
        else if (s->padding == GRT_GRID_REFLECTION)
            x = grt_grid_reflect(x, low, high);
    }
    if (s->mode == GRT_GRID_NEAREST) {
        t->n = 1;
        t->weight[0] = 1;
        t->index[0] = grt_grid_index(s, s->padding == GRT_GRID_ZEROS ? x : trunc(x), n, low, high);
        return;
    }
    double first = floor(x);
    if (s->mode == GRT_GRID_LINEAR) {
        t->n = 2;
        t->weight[0] = 1 - (x - first);
        t->weight[1] = x - first;
    } else {
        t->n = 4;
        grt_grid_cubic(x - first, t->weight);
        first -= 1;
    }
    for (int32_t k = 0; k < t->n; k++)
        t->index[k] = grt_grid_index(s, first + k, n, low, high);
}

/* Coordinate of point i of an axis that has `size` of them. */
GRT_INLINE double grt_affine_point(bool align, int64_t i, int64_t size)
{
    if (align)
        return size > 1 ? -1 + 2.0 * (double)i / (double)(size - 1) : -1;
    return (2.0 * (double)i + 1) / (double)size - 1;
}

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Resize: its attributes, what it does to each axis of a shape, where an output position lies on the input
 * and how much its neighbours count. All backends compute from these. (ONNX, operator Resize.) */
#ifndef GRT_BACKENDS_SHARED_RESIZE_H
#define GRT_BACKENDS_SHARED_RESIZE_H

#include "backends/kernel.h"
#include "src/base/float.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_resize_mode { GRT_RESIZE_NEAREST, GRT_RESIZE_LINEAR, GRT_RESIZE_CUBIC } grt_resize_mode;
typedef enum grt_resize_coordinates {
    GRT_RESIZE_HALF_PIXEL,
    GRT_RESIZE_HALF_PIXEL_SYMMETRIC,
    GRT_RESIZE_PYTORCH_HALF_PIXEL,
    GRT_RESIZE_ALIGN_CORNERS,
    GRT_RESIZE_ASYMMETRIC,
    GRT_RESIZE_CROP,
    GRT_RESIZE_HALF_PIXEL_FOR_NEAREST,
} grt_resize_coordinates;
typedef enum grt_resize_rounding {
    GRT_RESIZE_PREFER_FLOOR,
    GRT_RESIZE_PREFER_CEIL,
    GRT_RESIZE_FLOOR,
    GRT_RESIZE_CEIL,
} grt_resize_rounding;
typedef enum grt_resize_aspect {
    GRT_RESIZE_STRETCH,
    GRT_RESIZE_NOT_LARGER,
    GRT_RESIZE_NOT_SMALLER
} grt_resize_aspect;

typedef struct grt_resize {
    grt_resize_mode mode;
    grt_resize_coordinates coordinates;
    grt_resize_rounding rounding;
    grt_resize_aspect aspect;
    bool antialias, exclude_outside;
    double cubic_a, outside; /* outside: what stands where a crop reaches beyond the input */
    int32_t n_axes;          /* -1: all */
    int64_t axes[GRT_MAX_RANK];
} grt_resize;

typedef struct grt_resize_axis {
    int64_t in, out;
    double scale, roi_start, roi_end;
    bool active; /* false: it stays as it is */
} grt_resize_axis;

void grt_resize_read(const grt_op_desc *desc, grt_resize *resize);
/* For rows' `supports`: anything can be picked, only numbers can be blended. */
bool grt_resize_supports(const grt_kernel_node *node, grt_text *why);
/* The plan of each of in[0]->rank axes, from inputs X, roi, scales and sizes, whose data must be known. */
grt_status grt_resize_plan(const grt_resize *resize, const grt_op_desc *desc, const grt_tensor *const *in,
                           int32_t n_in, const grt_tensor *out, grt_resize_axis *axes);

/* A position or width that is whole, or half, but for what rounding the scale to float32 did.
 * Scales of models are quotients of sizes so rounded: 1 / float(1/3) is 2.99999991, and its element is 3. */
GRT_INLINE double grt_resize_settle(double x)
{
    const double half = floor(2 * x + 0.5) / 2, least = 0x1p-10, error = 0x1p-23 * (fabs(x) + 1);
    return fabs(x - half) <= (error < least ? error : least) ? half : x;
}

/* Where output position i of an axis lies on the input. False: outside of what is cropped from. */
GRT_INLINE bool grt_resize_source(grt_resize_coordinates coordinates, const grt_resize_axis *p, int64_t i,
                                  double *out_x)
{
    const double x = (double)i, in = (double)p->in, width = grt_resize_settle(p->scale * in);
    switch (coordinates) {
    case GRT_RESIZE_HALF_PIXEL:
        *out_x = (x + 0.5) / p->scale - 0.5;
        return true;
    case GRT_RESIZE_HALF_PIXEL_SYMMETRIC:
        *out_x = in / 2 * (1 - (double)p->out / width) + (x + 0.5) / p->scale - 0.5;
        return true;
    case GRT_RESIZE_PYTORCH_HALF_PIXEL:
        *out_x = width == 1 ? -0.5 : (x + 0.5) / p->scale - 0.5;
        return true;
    case GRT_RESIZE_ALIGN_CORNERS:
        *out_x = width == 1 ? 0 : x * (in - 1) / (width - 1);
        return true;
    case GRT_RESIZE_ASYMMETRIC:
        *out_x = x / p->scale;
        return true;
    case GRT_RESIZE_HALF_PIXEL_FOR_NEAREST:
        *out_x = (x + 0.5) / p->scale;
        return true;
    case GRT_RESIZE_CROP:
        *out_x = (width == 1 ? (p->roi_end - p->roi_start) * (in - 1) / 2
                             : x * (p->roi_end - p->roi_start) * (in - 1) / (width - 1)) +
                 p->roi_start * (in - 1);
        return *out_x >= 0 && *out_x <= in - 1;
    }
    return false;
}

/* The element at x, of n; beyond the borders, theirs. */
GRT_INLINE int64_t grt_resize_clamp(double x, int64_t n)
{
    return !(x > 0) ? 0 : x >= (double)n ? n - 1 : (int64_t)x;
}

GRT_INLINE int64_t grt_resize_nearest(grt_resize_rounding rounding, double position, int64_t n)
{
    const double x = grt_resize_settle(position);
    const double whole = rounding == GRT_RESIZE_PREFER_FLOOR  ? ceil(x - 0.5)
                         : rounding == GRT_RESIZE_PREFER_CEIL ? floor(x + 0.5)
                         : rounding == GRT_RESIZE_FLOOR       ? floor(x)
                                                              : ceil(x);
    return grt_resize_clamp(whole, n);
}

/* Neighbours of a position that count: low to high around x, each weighed by its distance times shrink. */
typedef struct grt_resize_reach {
    double x, shrink;
    int64_t low, high; /* may lie beyond the borders */
} grt_resize_reach;

/* Neighbours on each side that count when an axis is scaled so. */
GRT_INLINE double grt_resize_radius(const grt_resize *s, double scale)
{
    return (s->mode == GRT_RESIZE_LINEAR ? 1 : 2) / (s->antialias && scale < 1 ? scale : 1);
}

/* False: the position lies outside. */
GRT_INLINE bool grt_resize_reach_of(const grt_resize *s, const grt_resize_axis *p, int64_t i,
                                    grt_resize_reach *a)
{
    const double radius = grt_resize_radius(s, p->scale), in = (double)p->in;
    if (!grt_resize_source(s->coordinates, p, i, &a->x))
        return false;
    /* far outside, where only the border counts, it does not matter how far */
    a->x = a->x < -2 * radius - 1 ? -2 * radius - 1 : a->x > in + 2 * radius ? in + 2 * radius : a->x;
    a->shrink = s->antialias && p->scale < 1 ? p->scale : 1;
    a->low = (int64_t)ceil(a->x - radius);
    a->high = (int64_t)floor(a->x + radius);
    return true;
}

/* What neighbour k of an axis of n elements counts, before weights are made to sum to 1
 * (grt_resize_rescales). */
GRT_INLINE double grt_resize_weight(const grt_resize *s, const grt_resize_reach *a, int64_t k, int64_t n)
{
    const double d = fabs(((double)k - a->x) * a->shrink), c = s->cubic_a;
    if (s->exclude_outside && (k < 0 || k >= n))
        return 0;
    if (s->mode == GRT_RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    return d <= 1  ? ((c + 2) * d - (c + 3)) * d * d + 1
           : d < 2 ? ((c * d - 5 * c) * d + 8 * c) * d - 4 * c
                   : 0;
}

/* Otherwise weights sum to 1 by themselves. */
GRT_INLINE bool grt_resize_rescales(const grt_resize *s)
{
    return s->antialias || s->exclude_outside;
}

#ifdef __cplusplus
}
#endif
#endif

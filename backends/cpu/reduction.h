/* SPDX-License-Identifier: Apache-2.0 */
/* A reduction, prepared: axes are collapsed, so that the innermost one is either reduced (runs are folded
 * into one number, reduce_runs.c) or kept (rows are folded into a strip of numbers, reduce_columns.c).
 * float32 is read in place; other types are widened strip by strip (reduce_elements.h). */
#ifndef GRT_BACKENDS_CPU_REDUCTION_H
#define GRT_BACKENDS_CPU_REDUCTION_H

#include "backends/cpu/convert.h"
#include "backends/cpu/move.h"
#include "backends/shared/reduce.h"

#include <math.h>

typedef struct cpu_reduce_axes {
    int32_t n;
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK];
} cpu_reduce_axes;

typedef struct cpu_reduce {
    grt_fold how;
    grt_finish finish;
    bool ints;   /* accumulate integers */
    bool by_row; /* the innermost axis is kept */
    grt_dtype dtype;
    const void *in;
    void *out;
    cpu_reduce_axes kept, reduced; /* without the innermost axis */
    int64_t inner;                 /* size of the innermost axis, contiguous in the input */
    int64_t n_reduced;             /* product of reduced.dims */
    double count;                  /* elements that go into one */
    uint64_t flip;                 /* sign bit for ordered integers */
    size_t size;
} cpu_reduce;

/* Elements that are widened at a time. */
enum { REDUCE_STRIP = 256 };
typedef union cpu_reduce_strip {
    double real[REDUCE_STRIP];
    uint64_t whole[REDUCE_STRIP];
} cpu_reduce_strip;

/* ---- reduce_runs.c: the innermost axis is reduced ---- */

/* Results [begin, end). */
void cpu_reduce_runs(const cpu_reduce *j, int64_t begin, int64_t end);
/* One number out of one long run of float32, by all threads. False: not of that kind. */
bool cpu_reduce_whole(const cpu_reduce *j, int32_t threads);

/* ---- reduce_columns.c: the innermost axis is kept ---- */

/* Items [begin, end), each one of `strips` strips of one row. */
void cpu_reduce_columns(const cpu_reduce *j, int64_t strips, int64_t begin, int64_t end);
/* Few strips of many rows, by all threads. False: there are strips enough, or little to do. */
bool cpu_reduce_many_rows(const cpu_reduce *j, int64_t strips, int64_t items, int32_t threads);

static inline int64_t cpu_reduce_product(const cpu_reduce_axes *axes)
{
    return grt_dims_product(axes->dims, 0, axes->n);
}

static inline int64_t cpu_reduce_offset(const cpu_reduce_axes *axes, int64_t flat)
{
    return grt_strided_offset(axes->dims, axes->n, axes->strides, flat);
}

/* Result of an empty set. */
static inline double cpu_reduce_start(grt_fold how)
{
    return how == FOLD_PROD ? 1 : how == FOLD_MAX ? -INFINITY : how == FOLD_MIN ? INFINITY : 0;
}

/* float32 holds the elements exactly. */
static inline bool cpu_reduce_is_narrow(const cpu_reduce *j)
{
    return j->dtype == GRT_DTYPE_FLOAT || j->dtype == GRT_DTYPE_FLOAT16 || j->dtype == GRT_DTYPE_BFLOAT16;
}

/* m such elements, in place or in `room`. */
static inline const float *cpu_reduce_floats(const cpu_reduce *j, const void *from, int64_t m, float *room)
{
    if (j->dtype == GRT_DTYPE_FLOAT)
        return from;
    cpu_widen(j->dtype, from, 0, m, room);
    return room;
}

/* Parts of sums are summed, of products multiplied, of maxima compared. */
static inline grt_fold cpu_reduce_join(grt_fold how)
{
    return how == FOLD_ABS || how == FOLD_SQUARE ? FOLD_SUM : how;
}

/* For sums of exp the maximum is subtracted first, against overflow. */
static inline double cpu_reduce_shift(double v)
{
    return isfinite(v) ? v : 0;
}

#endif

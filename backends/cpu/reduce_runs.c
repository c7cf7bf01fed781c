/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of the innermost axis: runs are folded into one number each. */
#include "backends/cpu/reduce_elements.h"

#include "backends/cpu/rows.h"

#include <float.h>

/* GCC may turn the selections below into vector selects only if comparisons need not trap. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

#define RUN_NAME(name)        name##_float
#define T                     float
#define A                     double
#define FOLD_ABS_OF(x)        fabsf(x)
#define FOLD_EXP_OF(x, shift) exp((double)(x) - (shift))
#define FOLD_NAN              NAN
#include "backends/cpu/reduce_run.inc"

#define RUN_NAME(name)        name##_double
#define T                     double
#define A                     double
#define FOLD_ABS_OF(x)        fabs(x)
#define FOLD_EXP_OF(x, shift) exp((x) - (shift))
#define FOLD_NAN              NAN
#include "backends/cpu/reduce_run.inc"

#define RUN_NAME(name)        name##_int
#define T                     uint64_t
#define A                     uint64_t
#define FOLD_ABS_OF(x)        ((int64_t)(x) < 0 ? 0 - (x) : (x))
#define FOLD_EXP_OF(x, shift) ((x) + (shift))
#define FOLD_NAN              0
#include "backends/cpu/reduce_run.inc"

/* True if rows of float32 are folded by rows.h, and how. */
static bool has_rows(const cpu_reduce *j, grt_fold how, cpu_fold *out)
{
    static const cpu_fold of[] = {
        [FOLD_SUM] = CPU_FOLD_SUM,     [FOLD_ABS] = CPU_FOLD_ABS,   [FOLD_SQUARE] = CPU_FOLD_SQUARE,
        [FOLD_MAX] = CPU_FOLD_LARGEST, [FOLD_MIN] = CPU_FOLD_LEAST, [FOLD_EXP] = CPU_FOLD_SUM};
    *out = of[how];
    return j->dtype == GRT_DTYPE_FLOAT && how != FOLD_PROD && how != FOLD_EXP && j->inner > 0;
}

static double run_floats(grt_fold how, double acc, const float *x, int64_t n, double shift)
{
    if (how != FOLD_EXP)
        return fold_run_float(how, acc, x, n, shift);
    for (int64_t at = 0; at < n; at += REDUCE_STRIP) {
        const int64_t m = n - at < REDUCE_STRIP ? n - at : REDUCE_STRIP;
        float exps[REDUCE_STRIP];
        double sum;
        cpu_reduce_exps(x + at, m, &shift, 0, exps);
        cpu_rows_best()->fold(CPU_FOLD_SUM, exps, 1, m, &sum);
        acc += sum;
    }
    return acc;
}

static double run_real(const cpu_reduce *j, grt_fold how, double acc, int64_t offset, int64_t n, double shift)
{
    const void *from = cpu_at_const(j->in, offset, j->size);
    cpu_fold row;
    if (n > 0 && has_rows(j, how, &row)) {
        double value;
        cpu_rows_best()->fold(row, from, 1, n, &value);
        return fold_run_double(cpu_reduce_join(how), acc, &value, 1, 0);
    }
    if (j->dtype == GRT_DTYPE_FLOAT)
        return run_floats(how, acc, from, n, shift);
    if (j->dtype == GRT_DTYPE_DOUBLE)
        return fold_run_double(how, acc, from, n, shift);
    cpu_reduce_strip strip;
    float narrow[REDUCE_STRIP];
    for (int64_t at = 0; at < n; at += REDUCE_STRIP) {
        int64_t m = n - at < REDUCE_STRIP ? n - at : REDUCE_STRIP;
        if (cpu_reduce_is_narrow(j)) {
            acc = run_floats(how, acc, cpu_reduce_floats(j, cpu_at_const(from, at, j->size), m, narrow), m,
                             shift);
            continue;
        }
        cpu_reduce_load_reals(j->dtype, &strip, cpu_at_const(from, at, j->size), m);
        acc = fold_run_double(how, acc, strip.real, m, shift);
    }
    return acc;
}

static uint64_t run_int(const cpu_reduce *j, uint64_t acc, int64_t offset, int64_t n)
{
    const void *from = cpu_at_const(j->in, offset, j->size);
    cpu_reduce_strip strip;
    for (int64_t at = 0; at < n; at += REDUCE_STRIP) {
        int64_t m = n - at < REDUCE_STRIP ? n - at : REDUCE_STRIP;
        cpu_reduce_load_ints(j->dtype, &strip, cpu_at_const(from, at, j->size), m, j->flip);
        acc = fold_run_int(j->how, acc, strip.whole, m, 0);
    }
    return acc;
}

static double reals_of(const cpu_reduce *j, grt_fold how, int64_t base, double shift)
{
    double acc = cpu_reduce_start(how);
    for (int64_t r = 0; r < j->n_reduced; r++)
        acc = run_real(j, how, acc, base + cpu_reduce_offset(&j->reduced, r), j->inner, shift);
    return acc;
}

/* Rows of float32 that lie one behind the other, many a call. False: others. */
static bool reduce_dense_rows(const cpu_reduce *j, int64_t begin, int64_t end)
{
    enum { ROWS = 64 };
    double values[ROWS];
    cpu_fold how;
    if (!has_rows(j, j->how, &how) || j->n_reduced != 1 || j->kept.n > 1)
        return false;
    for (int64_t i = begin; i < end; i += ROWS) {
        const int64_t n = end - i < ROWS ? end - i : ROWS;
        cpu_rows_best()->fold(how, (const float *)j->in + i * j->inner, n, j->inner, values);
        cpu_reduce_store_reals(j, i, values, n);
    }
    return true;
}

void cpu_reduce_runs(const cpu_reduce *j, int64_t begin, int64_t end)
{
    if (reduce_dense_rows(j, begin, end))
        return;
    for (int64_t i = begin; i < end; i++) {
        int64_t base = cpu_reduce_offset(&j->kept, i);
        double real = 0, shift = 0;
        uint64_t whole = 0;
        if (j->ints) {
            whole = cpu_reduce_start_int(j);
            for (int64_t r = 0; r < j->n_reduced; r++)
                whole = run_int(j, whole, base + cpu_reduce_offset(&j->reduced, r), j->inner);
        } else {
            if (j->how == FOLD_EXP)
                shift = cpu_reduce_shift(reals_of(j, FOLD_MAX, base, 0));
            real = reals_of(j, j->how, base, shift);
        }
        cpu_reduce_store(j, i, real, whole, shift);
    }
}

/* Each thread folds a part. Parts do not depend on the number of threads. */
enum { PARTS = 64 };

bool cpu_reduce_whole(const cpu_reduce *j, int32_t threads)
{
    if (j->ints || j->how == FOLD_EXP || j->by_row || j->n_reduced != 1 || j->kept.n ||
        j->inner < 8 * CPU_GRAIN)
        return false;
    double part[PARTS], acc = cpu_reduce_start(j->how);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < PARTS; p++) {
        int64_t begin = j->inner / PARTS * p, end = p + 1 == PARTS ? j->inner : j->inner / PARTS * (p + 1);
        part[p] = run_real(j, j->how, cpu_reduce_start(j->how), begin, end - begin, 0);
    }
    cpu_reduce_store(j, 0, fold_run_double(cpu_reduce_join(j->how), acc, part, PARTS, 0), 0, 0);
    return true;
}

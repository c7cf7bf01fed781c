/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions that keep the innermost axis: rows are folded into a strip of numbers. */
#include "backends/cpu/reduce_elements.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/threads.h"

#include <string.h>

/* GCC may turn the selections below into vector selects only if comparisons need not trap. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

#define ROW_NAME(name)        name##_float
#define T                     float
#define A                     double
#define FOLD_ABS_OF(x)        fabsf(x)
#define FOLD_EXP_OF(x, shift) exp((double)(x) - (shift))
#include "backends/cpu/reduce_row.inc"

/* float32 rows into float32 accumulators, for a few rows at a time. */
#define ROW_NAME(name)        name##_narrow
#define T                     float
#define A                     float
#define FOLD_ABS_OF(x)        fabsf(x)
#define FOLD_EXP_OF(x, shift) expf((x) - (shift))
#include "backends/cpu/reduce_row.inc"

#define ROW_NAME(name)        name##_double
#define T                     double
#define A                     double
#define FOLD_ABS_OF(x)        fabs(x)
#define FOLD_EXP_OF(x, shift) exp((x) - (shift))
#include "backends/cpu/reduce_row.inc"

#define ROW_NAME(name)        name##_int
#define T                     uint64_t
#define A                     uint64_t
#define FOLD_ABS_OF(x)        ((int64_t)(x) < 0 ? 0 - (x) : (x))
#define FOLD_EXP_OF(x, shift) ((x) + (shift))
#include "backends/cpu/reduce_row.inc"

/* v goes into a: NaN wins, and stays. */
#define INTO_SUM(a, v)     ((a) + (v))
#define INTO_ABS(a, v)     ((a) + fabsf(v))
#define INTO_SQUARE(a, v)  ((a) + (v) * (v))
#define INTO_PRODUCT(a, v) ((a) * (v))
#define INTO_MOST(a, v)    (((v) > (a)) | ((v) != (v)) ? (v) : (a))
#define INTO_LEAST(a, v)   (((v) < (a)) | ((v) != (v)) ? (v) : (a))

/* Four rows at a time, so that what is folded is read and written less often; in the order of the rows. */
#define FOLD_COLUMNS(INTO)                                                                               \
    do {                                                                                                 \
        int64_t k = 0;                                                                                   \
        for (; k + 4 <= n; k += 4) {                                                                     \
            const float *a = x + k * row, *b = a + row, *c = b + row, *d = c + row;                      \
            _Pragma("omp simd") for (int64_t i = 0; i < m; i++)                                          \
            {                                                                                            \
                const float ab = INTO(part[i], a[i]), bc = INTO(ab, b[i]), cd = INTO(bc, c[i]);          \
                part[i] = INTO(cd, d[i]);                                                                \
            }                                                                                            \
        }                                                                                                \
        for (; k < n; k++)                                                                               \
            _Pragma("omp simd") for (int64_t i = 0; i < m; i++) part[i] = INTO(part[i], x[k * row + i]); \
    } while (0)

/* m columns of n rows into `part`. */
CPU_BODY fold_columns_body(grt_fold how, float *restrict part, const float *restrict x, int64_t row,
                           int64_t n, int64_t m)
{
    switch (how) {
    case FOLD_SUM:
        FOLD_COLUMNS(INTO_SUM);
        break;
    case FOLD_ABS:
        FOLD_COLUMNS(INTO_ABS);
        break;
    case FOLD_SQUARE:
        FOLD_COLUMNS(INTO_SQUARE);
        break;
    case FOLD_PROD:
        FOLD_COLUMNS(INTO_PRODUCT);
        break;
    case FOLD_MAX:
        FOLD_COLUMNS(INTO_MOST);
        break;
    case FOLD_MIN:
        FOLD_COLUMNS(INTO_LEAST);
        break;
    case FOLD_EXP:
        break;
    }
}
CPU_DISPATCH(fold_columns,
             (grt_fold how, float *restrict part, const float *restrict x, int64_t row, int64_t n, int64_t m),
             (how, part, x, row, n, m))

/* Rows [begin, end) are folded in float32 for a while, which is twice as fast, and then into float64. */
static void rows_narrow(const cpu_reduce *j, grt_fold how, cpu_reduce_strip *acc, int64_t base, int64_t m,
                        int64_t begin, int64_t end)
{
    enum { ROWS = 32 };
    float part[REDUCE_STRIP], room[REDUCE_STRIP];
    const float start = (float)cpu_reduce_start(how);
    const bool dense = j->dtype == GRT_DTYPE_FLOAT && j->reduced.n == 1;
    for (int64_t r = begin; r < end; r += ROWS) {
        for (int64_t i = 0; i < m; i++)
            part[i] = start;
        if (dense)
            fold_columns(how, part, (const float *)j->in + base + r * j->reduced.strides[0],
                         j->reduced.strides[0], end - r < ROWS ? end - r : ROWS, m);
        for (int64_t k = r; k < r + ROWS && k < end && !dense; k++) {
            const int64_t at =
                j->reduced.n == 1 ? k * j->reduced.strides[0] : cpu_reduce_offset(&j->reduced, k);
            fold_row_narrow(how, part, cpu_reduce_floats(j, cpu_at_const(j->in, base + at, j->size), m, room),
                            m, NULL);
        }
        fold_row_float(cpu_reduce_join(how), acc->real, part, m, NULL);
    }
}

static void rows_real(const cpu_reduce *j, grt_fold how, cpu_reduce_strip *acc, int64_t base, int64_t m,
                      const double *shift)
{
    cpu_reduce_strip strip;
    for (int64_t i = 0; i < m; i++)
        acc->real[i] = cpu_reduce_start(how);
    if (cpu_reduce_is_narrow(j) && how != FOLD_EXP) {
        rows_narrow(j, how, acc, base, m, 0, j->n_reduced);
        return;
    }
    for (int64_t r = 0; r < j->n_reduced; r++) {
        const void *from = cpu_at_const(j->in, base + cpu_reduce_offset(&j->reduced, r), j->size);
        if (j->dtype == GRT_DTYPE_FLOAT && how == FOLD_EXP) {
            float exps[REDUCE_STRIP];
            cpu_reduce_exps(from, m, shift, 1, exps);
            fold_row_float(FOLD_SUM, acc->real, exps, m, NULL);
        } else if (j->dtype == GRT_DTYPE_FLOAT) {
            fold_row_float(how, acc->real, from, m, shift);
        } else {
            cpu_reduce_load_reals(j->dtype, &strip, from, m);
            fold_row_double(how, acc->real, strip.real, m, shift);
        }
    }
}

static void rows_int(const cpu_reduce *j, cpu_reduce_strip *acc, int64_t base, int64_t m)
{
    cpu_reduce_strip strip;
    for (int64_t i = 0; i < m; i++)
        acc->whole[i] = cpu_reduce_start_int(j);
    for (int64_t r = 0; r < j->n_reduced; r++) {
        cpu_reduce_load_ints(j->dtype, &strip,
                             cpu_at_const(j->in, base + cpu_reduce_offset(&j->reduced, r), j->size), m,
                             j->flip);
        fold_row_int(j->how, acc->whole, strip.whole, m, NULL);
    }
}

/* A few rows of float32, as the parts of a group: one accumulator is enough, and what a strip costs besides
 * its elements counts. False: not of that kind. */
static bool few_rows(const cpu_reduce *j, int64_t out, int64_t base, int64_t m)
{
    enum { FEW = 32 };
    if (j->dtype != GRT_DTYPE_FLOAT || j->how == FOLD_EXP || j->finish == FINISH_LOG || j->reduced.n != 1 ||
        j->n_reduced > FEW || j->n_reduced < 1)
        return false;
    const float start = (float)cpu_reduce_start(j->how);
    float part[REDUCE_STRIP];
    for (int64_t i = 0; i < m; i++)
        part[i] = start;
    fold_columns(j->how, part, (const float *)j->in + base, j->reduced.strides[0], j->n_reduced, m);
    float *to = (float *)j->out + out;
    for (int64_t i = 0; i < m && j->finish == FINISH_NONE; i++)
        to[i] = part[i];
    for (int64_t i = 0; i < m && j->finish == FINISH_MEAN; i++)
        to[i] = (float)((double)part[i] / j->count);
    for (int64_t i = 0; i < m && j->finish == FINISH_SQRT; i++)
        to[i] = (float)sqrt((double)part[i]);
    return true;
}

void cpu_reduce_columns(const cpu_reduce *j, int64_t strips, int64_t begin, int64_t end)
{
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / strips, at = item % strips * REDUCE_STRIP,
                m = j->inner - at < REDUCE_STRIP ? j->inner - at : REDUCE_STRIP;
        int64_t base = cpu_reduce_offset(&j->kept, row) + at;
        if (few_rows(j, row * j->inner + at, base, m))
            continue;
        cpu_reduce_strip acc, shift;
        memset(&shift, 0, sizeof shift);
        if (j->ints) {
            rows_int(j, &acc, base, m);
        } else {
            if (j->how == FOLD_EXP) {
                rows_real(j, FOLD_MAX, &shift, base, m, NULL);
                for (int64_t i = 0; i < m; i++)
                    shift.real[i] = cpu_reduce_shift(shift.real[i]);
            }
            rows_real(j, j->how, &acc, base, m, shift.real);
        }
        if (!j->ints && j->how != FOLD_EXP) {
            cpu_reduce_store_reals(j, row * j->inner + at, acc.real, m);
            continue;
        }
        for (int64_t i = 0; i < m; i++)
            cpu_reduce_store(j, row * j->inner + at + i, j->ints ? 0 : acc.real[i],
                             j->ints ? acc.whole[i] : 0, shift.real[i]);
    }
}

/* Few strips of many rows, as the pixels of an image: each thread folds some of the rows. Parts do not depend
 * on the number of threads. False: there are strips enough, or little to do. */
bool cpu_reduce_many_rows(const cpu_reduce *j, int64_t strips, int64_t items, int32_t threads)
{
    enum { FEW = 4, PARTS = 8, ROWS = 64 };
    if (!cpu_reduce_is_narrow(j) || j->ints || j->how == FOLD_EXP || items >= FEW ||
        j->n_reduced < PARTS * ROWS || j->n_reduced * j->inner < CPU_GRAIN)
        return false;
    for (int64_t item = 0; item < items; item++) {
        cpu_reduce_strip part[PARTS];
        const int64_t at = item % strips * REDUCE_STRIP,
                      m = j->inner - at < REDUCE_STRIP ? j->inner - at : REDUCE_STRIP, row = item / strips;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t p = 0; p < PARTS; p++) {
            for (int64_t i = 0; i < m; i++)
                part[p].real[i] = cpu_reduce_start(j->how);
            rows_narrow(j, j->how, &part[p], cpu_reduce_offset(&j->kept, row) + at, m,
                        j->n_reduced * p / PARTS, j->n_reduced * (p + 1) / PARTS);
        }
        for (int64_t p = 1; p < PARTS; p++)
            fold_row_double(cpu_reduce_join(j->how), part[0].real, part[p].real, m, NULL);
        cpu_reduce_store_reals(j, row * j->inner + at, part[0].real, m);
    }
    return true;
}

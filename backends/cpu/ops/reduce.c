/* SPDX-License-Identifier: Apache-2.0 */
/* The Reduce family. Axes are collapsed first, so that the innermost one is either reduced (runs are folded
 * into one number) or kept (rows are folded into a strip of numbers). float32 is read in place; other types
 * are widened strip by strip. */
#include "backends/cpu/convert.h"
#include "backends/cpu/dispatch.h"
#include "backends/cpu/move.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/rows.h"

#include "src/base/checked.h"
#include "src/base/float.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* GCC may turn the selections below into vector selects only if comparisons need not trap. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")
#endif

/* The fold over the elements, and the function applied to its result. */
typedef enum fold { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_PROD, FOLD_MAX, FOLD_MIN, FOLD_EXP } fold;
typedef enum finish { FINISH_NONE, FINISH_MEAN, FINISH_SQRT, FINISH_LOG } finish;

static const struct {
    const char *op;
    fold fold;
    finish finish;
} kinds[] = {
    {"ReduceSum", FOLD_SUM, FINISH_NONE},   {"ReduceMean", FOLD_SUM, FINISH_MEAN},
    {"ReduceProd", FOLD_PROD, FINISH_NONE}, {"ReduceMax", FOLD_MAX, FINISH_NONE},
    {"ReduceMin", FOLD_MIN, FINISH_NONE},   {"ReduceL1", FOLD_ABS, FINISH_NONE},
    {"ReduceL2", FOLD_SQUARE, FINISH_SQRT}, {"ReduceSumSquare", FOLD_SQUARE, FINISH_NONE},
    {"ReduceLogSum", FOLD_SUM, FINISH_LOG}, {"ReduceLogSumExp", FOLD_EXP, FINISH_LOG},
};

typedef struct reduce_state {
    fold fold;
    finish finish;
    bool empty_is_none; /* without axes nothing is reduced */
} reduce_state;

static grt_status create_reduce(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(reduce_state), out_state));
    reduce_state *state = *out_state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(node->desc->op, kinds[k].op)) {
            state->fold = kinds[k].fold;
            state->finish = kinds[k].finish;
        }
    state->empty_is_none = grt_attr_int(node->desc, "noop_with_empty_axes", 0) != 0;
    return GRT_OK;
}

/* ---- folding ---- */

enum { STRIP = 256 };

#define FOLD_NAME(name)       name##_float
#define T                     float
#define A                     double
#define FOLD_ABS_OF(x)        fabsf(x)
#define FOLD_EXP_OF(x, shift) exp((double)(x) - (shift))
#define FOLD_NAN              NAN
#include "backends/cpu/ops/reduce_fold.h"

/* float32 rows into float32 accumulators, for a few rows at a time. */
#define FOLD_NAME(name) name##_narrow
#define FOLD_ROWS_ONLY
#define T                     float
#define A                     float
#define FOLD_ABS_OF(x)        fabsf(x)
#define FOLD_EXP_OF(x, shift) expf((x) - (shift))
#define FOLD_NAN              NAN
#include "backends/cpu/ops/reduce_fold.h"
#undef FOLD_ROWS_ONLY

#define FOLD_NAME(name)       name##_double
#define T                     double
#define A                     double
#define FOLD_ABS_OF(x)        fabs(x)
#define FOLD_EXP_OF(x, shift) exp((x) - (shift))
#define FOLD_NAN              NAN
#include "backends/cpu/ops/reduce_fold.h"

/* Integers are folded without sign, as they wrap; storing drops the upper bits again. For maxima and minima
 * of signed types the sign bit is flipped while they are in this form, which keeps their order. */
#define FOLD_NAME(name)       name##_int
#define T                     uint64_t
#define A                     uint64_t
#define FOLD_ABS_OF(x)        ((int64_t)(x) < 0 ? 0 - (x) : (x))
#define FOLD_EXP_OF(x, shift) ((x) + (shift))
#define FOLD_NAN              0
#include "backends/cpu/ops/reduce_fold.h"
#include "backends/shared/reduce.h"

/* ---- one reduction, prepared ---- */

typedef struct axis_list {
    int32_t n;
    int64_t dims[GRT_MAX_RANK], strides[GRT_MAX_RANK];
} axis_list;

typedef struct job {
    const reduce_state *state;
    fold how;
    bool ints;   /* accumulate integers */
    bool by_row; /* the innermost axis is kept */
    grt_dtype dtype;
    const void *in;
    void *out;
    axis_list kept, reduced; /* without the innermost axis */
    int64_t inner;           /* size of the innermost axis, contiguous in the input */
    int64_t n_reduced;       /* product of reduced.dims */
    double count;            /* elements that go into one */
    uint64_t flip;           /* sign bit for ordered integers */
    size_t size;
} job;

static int64_t list_product(const axis_list *list)
{
    return grt_dims_product(list->dims, 0, list->n);
}

static int64_t list_offset(const axis_list *list, int64_t flat)
{
    return grt_strided_offset(list->dims, list->n, list->strides, flat);
}

typedef union numbers {
    double real[STRIP];
    uint64_t whole[STRIP];
} numbers;

#define LOAD_CASE(NAME, type, field, convert)                \
    case GRT_DTYPE_##NAME:                                   \
        for (int64_t i = 0; i < n; i++)                      \
            to->field[i] = convert(((const type *)from)[i]); \
        break;

static void load_reals(grt_dtype dtype, numbers *to, const void *from, int64_t n)
{
    switch (dtype) {
        LOAD_CASE(FLOAT, float, real, (double))
        LOAD_CASE(FLOAT16, uint16_t, real, (double)grt_half_to_float)
        LOAD_CASE(BFLOAT16, uint16_t, real, (double)grt_bfloat16_to_float)
        LOAD_CASE(INT8, int8_t, real, (double))
        LOAD_CASE(UINT8, uint8_t, real, (double))
        LOAD_CASE(INT16, int16_t, real, (double))
        LOAD_CASE(UINT16, uint16_t, real, (double))
        LOAD_CASE(INT32, int32_t, real, (double))
        LOAD_CASE(UINT32, uint32_t, real, (double))
        LOAD_CASE(INT64, int64_t, real, (double))
        LOAD_CASE(UINT64, uint64_t, real, (double))
        LOAD_CASE(DOUBLE, double, real, (double))
    default:
        break;
    }
}

static void load_ints(grt_dtype dtype, numbers *to, const void *from, int64_t n, uint64_t flip)
{
    switch (dtype) {
        LOAD_CASE(INT8, int8_t, whole, flip ^ (uint64_t)(int64_t))
        LOAD_CASE(INT16, int16_t, whole, flip ^ (uint64_t)(int64_t))
        LOAD_CASE(INT32, int32_t, whole, flip ^ (uint64_t)(int64_t))
        LOAD_CASE(INT64, int64_t, whole, flip ^ (uint64_t))
        LOAD_CASE(BOOL, uint8_t, whole, 0 !=)
        LOAD_CASE(UINT8, uint8_t, whole, (uint64_t))
        LOAD_CASE(UINT16, uint16_t, whole, (uint64_t))
        LOAD_CASE(UINT32, uint32_t, whole, (uint64_t))
        LOAD_CASE(UINT64, uint64_t, whole, (uint64_t))
    default:
        break;
    }
}

static void store_real(grt_dtype dtype, void *to, int64_t i, double v)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
        ((float *)to)[i] = (float)v;
        break;
    case GRT_DTYPE_DOUBLE:
        ((double *)to)[i] = v;
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)to)[i] = grt_float_to_half((float)v);
        break;
    default:
        ((uint16_t *)to)[i] = grt_float_to_bfloat16((float)v);
        break;
    }
}

static void store_int(size_t size, void *to, int64_t i, uint64_t v)
{
    switch (size) {
    case 8:
        ((uint64_t *)to)[i] = v;
        break;
    case 4:
        ((uint32_t *)to)[i] = (uint32_t)v;
        break;
    case 2:
        ((uint16_t *)to)[i] = (uint16_t)v;
        break;
    default:
        ((uint8_t *)to)[i] = (uint8_t)v;
        break;
    }
}

/* A real number converted to an integer type: truncated, within int64. */
static uint64_t real_to_int(double v)
{
    return v >= 0x1p63   ? (uint64_t)INT64_MAX
           : v > -0x1p63 ? (uint64_t)(int64_t)v
           : v != v      ? 0
                         : (uint64_t)INT64_MIN;
}

static void reduce_store(const job *j, int64_t i, double real, uint64_t whole, double shift)
{
    bool is_int = !grt_dtype_in(j->dtype, GRT_SET_FLOATS);
    bool is_signed = grt_dtype_in(j->dtype, GRT_SET_SIGNED);
    if (j->ints && j->state->finish == FINISH_NONE) {
        store_int(j->size, j->out, i, whole ^ j->flip);
        return;
    }
    if (j->ints && j->state->finish == FINISH_MEAN && j->count > 0) {
        uint64_t n = (uint64_t)j->count;
        store_int(j->size, j->out, i, is_signed ? (uint64_t)((int64_t)whole / (int64_t)n) : whole / n);
        return;
    }
    if (j->ints)
        real = is_signed ? (double)(int64_t)whole : (double)whole;
    switch (j->state->finish) {
    case FINISH_MEAN:
        real /= j->count;
        break;
    case FINISH_SQRT:
        real = sqrt(real);
        break;
    case FINISH_LOG:
        real = log(real) + shift;
        break;
    default:
        break;
    }
    if (is_int)
        store_int(j->size, j->out, i, real_to_int(real));
    else
        store_real(j->dtype, j->out, i, real);
}

/* Results i to i + n of reals; log of none, as that has a shift of its own. */
static void reduce_store_reals(const job *j, int64_t i, const double *values, int64_t n)
{
    float *to = (float *)j->out + i;
    if (j->dtype != GRT_DTYPE_FLOAT || j->state->finish == FINISH_LOG) {
        for (int64_t k = 0; k < n; k++)
            reduce_store(j, i + k, values[k], 0, 0);
        return;
    }
    for (int64_t k = 0; k < n && j->state->finish == FINISH_NONE; k++)
        to[k] = (float)values[k];
    for (int64_t k = 0; k < n && j->state->finish == FINISH_MEAN; k++)
        to[k] = (float)(values[k] / j->count);
    for (int64_t k = 0; k < n && j->state->finish == FINISH_SQRT; k++)
        to[k] = (float)sqrt(values[k]);
}

/* Result of an empty set: lowest or greatest number of the type for maxima and minima. */
static double start_real(fold how)
{
    return how == FOLD_PROD ? 1 : how == FOLD_MAX ? -INFINITY : how == FOLD_MIN ? INFINITY : 0;
}

static uint64_t start_int(const job *j)
{
    size_t bits = j->dtype == GRT_DTYPE_BOOL ? 1 : 8 * j->size;
    uint64_t top = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    bool is_signed = j->flip != 0;
    uint64_t least = is_signed ? j->flip ^ (0 - (top / 2 + 1)) : 0,
             most = is_signed ? j->flip ^ (top / 2) : top;
    return j->how == FOLD_PROD ? 1 : j->how == FOLD_MAX ? least : j->how == FOLD_MIN ? most : 0;
}

/* float32 holds the elements exactly. */
static bool is_narrow(const job *j)
{
    return j->dtype == GRT_DTYPE_FLOAT || j->dtype == GRT_DTYPE_FLOAT16 || j->dtype == GRT_DTYPE_BFLOAT16;
}

/* m such elements, in place or in `room`. */
static const float *as_float(const job *j, const void *from, int64_t m, float *room)
{
    if (j->dtype == GRT_DTYPE_FLOAT)
        return from;
    cpu_widen(j->dtype, from, 0, m, room);
    return room;
}

/* ---- innermost axis reduced ---- */

/* Parts of sums are summed, of products multiplied, of maxima compared. */
static fold join_of(fold how)
{
    return how == FOLD_ABS || how == FOLD_SQUARE ? FOLD_SUM : how;
}

/* True if rows of float32 are folded by rows.h, and how. */
static bool has_rows(const job *j, fold how, cpu_fold *out)
{
    static const cpu_fold of[] = {
        [FOLD_SUM] = CPU_FOLD_SUM,     [FOLD_ABS] = CPU_FOLD_ABS,   [FOLD_SQUARE] = CPU_FOLD_SQUARE,
        [FOLD_MAX] = CPU_FOLD_LARGEST, [FOLD_MIN] = CPU_FOLD_LEAST, [FOLD_EXP] = CPU_FOLD_SUM};
    *out = of[how];
    return j->dtype == GRT_DTYPE_FLOAT && how != FOLD_PROD && how != FOLD_EXP && j->inner > 0;
}

/* e^(v - shift) of at most STRIP numbers, in float32: the largest is about 1. step: 0, or 1 with a shift
 * each. */
static void exps_of(const float *v, int64_t m, const double *shift, int64_t step, float *out)
{
    const void *in[] = {out};
    const uint8_t scalar[] = {0};
    const float none[2] = {0};
    for (int64_t i = 0; i < m; i++)
        out[i] = (float)((double)v[i] - shift[i * step]);
    cpu_pw_f32()->typed[PW_Exp](m, out, in, scalar, none);
}

static double run_floats(fold how, double acc, const float *x, int64_t n, double shift)
{
    if (how != FOLD_EXP)
        return fold_run_float(how, acc, x, n, shift);
    for (int64_t at = 0; at < n; at += STRIP) {
        const int64_t m = n - at < STRIP ? n - at : STRIP;
        float exps[STRIP];
        double sum;
        exps_of(x + at, m, &shift, 0, exps);
        cpu_rows_best()->fold(CPU_FOLD_SUM, exps, 1, m, &sum);
        acc += sum;
    }
    return acc;
}

static double run_real(const job *j, fold how, double acc, int64_t offset, int64_t n, double shift)
{
    const void *from = cpu_at_const(j->in, offset, j->size);
    cpu_fold row;
    if (n > 0 && has_rows(j, how, &row)) {
        double value;
        cpu_rows_best()->fold(row, from, 1, n, &value);
        return fold_run_double(join_of(how), acc, &value, 1, 0);
    }
    if (j->dtype == GRT_DTYPE_FLOAT)
        return run_floats(how, acc, from, n, shift);
    if (j->dtype == GRT_DTYPE_DOUBLE)
        return fold_run_double(how, acc, from, n, shift);
    numbers strip;
    float narrow[STRIP];
    for (int64_t at = 0; at < n; at += STRIP) {
        int64_t m = n - at < STRIP ? n - at : STRIP;
        if (is_narrow(j)) {
            acc = run_floats(how, acc, as_float(j, cpu_at_const(from, at, j->size), m, narrow), m, shift);
            continue;
        }
        load_reals(j->dtype, &strip, cpu_at_const(from, at, j->size), m);
        acc = fold_run_double(how, acc, strip.real, m, shift);
    }
    return acc;
}

static uint64_t run_int(const job *j, uint64_t acc, int64_t offset, int64_t n)
{
    const void *from = cpu_at_const(j->in, offset, j->size);
    numbers strip;
    for (int64_t at = 0; at < n; at += STRIP) {
        int64_t m = n - at < STRIP ? n - at : STRIP;
        load_ints(j->dtype, &strip, cpu_at_const(from, at, j->size), m, j->flip);
        acc = fold_run_int(j->how, acc, strip.whole, m, 0);
    }
    return acc;
}

static double reals_of(const job *j, fold how, int64_t base, double shift)
{
    double acc = start_real(how);
    for (int64_t r = 0; r < j->n_reduced; r++)
        acc = run_real(j, how, acc, base + list_offset(&j->reduced, r), j->inner, shift);
    return acc;
}

/* For sums of exp the maximum is subtracted first, against overflow. */
static double finite_or_zero(double v)
{
    return isfinite(v) ? v : 0;
}

/* Rows of float32 that lie one behind the other, many a call. False: others. */
static bool reduce_dense_rows(const job *j, int64_t begin, int64_t end)
{
    enum { ROWS = 64 };
    double values[ROWS];
    cpu_fold how;
    if (!has_rows(j, j->how, &how) || j->n_reduced != 1 || j->kept.n > 1)
        return false;
    for (int64_t i = begin; i < end; i += ROWS) {
        const int64_t n = end - i < ROWS ? end - i : ROWS;
        cpu_rows_best()->fold(how, (const float *)j->in + i * j->inner, n, j->inner, values);
        reduce_store_reals(j, i, values, n);
    }
    return true;
}

static void reduce_runs(const job *j, int64_t begin, int64_t end)
{
    if (reduce_dense_rows(j, begin, end))
        return;
    for (int64_t i = begin; i < end; i++) {
        int64_t base = list_offset(&j->kept, i);
        double real = 0, shift = 0;
        uint64_t whole = 0;
        if (j->ints) {
            whole = start_int(j);
            for (int64_t r = 0; r < j->n_reduced; r++)
                whole = run_int(j, whole, base + list_offset(&j->reduced, r), j->inner);
        } else {
            if (j->how == FOLD_EXP)
                shift = finite_or_zero(reals_of(j, FOLD_MAX, base, 0));
            real = reals_of(j, j->how, base, shift);
        }
        reduce_store(j, i, real, whole, shift);
    }
}

/* ---- innermost axis kept ---- */

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
CPU_BODY fold_columns_body(fold how, float *restrict part, const float *restrict x, int64_t row, int64_t n,
                           int64_t m)
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
             (fold how, float *restrict part, const float *restrict x, int64_t row, int64_t n, int64_t m),
             (how, part, x, row, n, m))

/* Rows [begin, end) are folded in float32 for a while, which is twice as fast, and then into float64. */
static void rows_narrow(const job *j, fold how, numbers *acc, int64_t base, int64_t m, int64_t begin,
                        int64_t end)
{
    enum { ROWS = 32 };
    float part[STRIP], room[STRIP];
    const float start = (float)start_real(how);
    const bool dense = j->dtype == GRT_DTYPE_FLOAT && j->reduced.n == 1;
    for (int64_t r = begin; r < end; r += ROWS) {
        for (int64_t i = 0; i < m; i++)
            part[i] = start;
        if (dense)
            fold_columns(how, part, (const float *)j->in + base + r * j->reduced.strides[0],
                         j->reduced.strides[0], end - r < ROWS ? end - r : ROWS, m);
        for (int64_t k = r; k < r + ROWS && k < end && !dense; k++) {
            const int64_t at = j->reduced.n == 1 ? k * j->reduced.strides[0] : list_offset(&j->reduced, k);
            fold_row_narrow(how, part, as_float(j, cpu_at_const(j->in, base + at, j->size), m, room), m,
                            NULL);
        }
        fold_row_float(join_of(how), acc->real, part, m, NULL);
    }
}

static void rows_real(const job *j, fold how, numbers *acc, int64_t base, int64_t m, const double *shift)
{
    numbers strip;
    for (int64_t i = 0; i < m; i++)
        acc->real[i] = start_real(how);
    if (is_narrow(j) && how != FOLD_EXP) {
        rows_narrow(j, how, acc, base, m, 0, j->n_reduced);
        return;
    }
    for (int64_t r = 0; r < j->n_reduced; r++) {
        const void *from = cpu_at_const(j->in, base + list_offset(&j->reduced, r), j->size);
        if (j->dtype == GRT_DTYPE_FLOAT && how == FOLD_EXP) {
            float exps[STRIP];
            exps_of(from, m, shift, 1, exps);
            fold_row_float(FOLD_SUM, acc->real, exps, m, NULL);
        } else if (j->dtype == GRT_DTYPE_FLOAT) {
            fold_row_float(how, acc->real, from, m, shift);
        } else {
            load_reals(j->dtype, &strip, from, m);
            fold_row_double(how, acc->real, strip.real, m, shift);
        }
    }
}

static void rows_int(const job *j, numbers *acc, int64_t base, int64_t m)
{
    numbers strip;
    for (int64_t i = 0; i < m; i++)
        acc->whole[i] = start_int(j);
    for (int64_t r = 0; r < j->n_reduced; r++) {
        load_ints(j->dtype, &strip, cpu_at_const(j->in, base + list_offset(&j->reduced, r), j->size), m,
                  j->flip);
        fold_row_int(j->how, acc->whole, strip.whole, m, NULL);
    }
}

/* A few rows of float32, as the parts of a group: one accumulator is enough, and what a strip costs besides
 * its elements counts. False: not of that kind. */
static bool few_rows(const job *j, int64_t out, int64_t base, int64_t m)
{
    enum { FEW = 32 };
    if (j->dtype != GRT_DTYPE_FLOAT || j->how == FOLD_EXP || j->state->finish == FINISH_LOG ||
        j->reduced.n != 1 || j->n_reduced > FEW || j->n_reduced < 1)
        return false;
    const float start = (float)start_real(j->how);
    float part[STRIP];
    for (int64_t i = 0; i < m; i++)
        part[i] = start;
    fold_columns(j->how, part, (const float *)j->in + base, j->reduced.strides[0], j->n_reduced, m);
    float *to = (float *)j->out + out;
    for (int64_t i = 0; i < m && j->state->finish == FINISH_NONE; i++)
        to[i] = part[i];
    for (int64_t i = 0; i < m && j->state->finish == FINISH_MEAN; i++)
        to[i] = (float)((double)part[i] / j->count);
    for (int64_t i = 0; i < m && j->state->finish == FINISH_SQRT; i++)
        to[i] = (float)sqrt((double)part[i]);
    return true;
}

/* A work item is one strip of one row. */
static void reduce_rows(const job *j, int64_t strips, int64_t begin, int64_t end)
{
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / strips, at = item % strips * STRIP,
                m = j->inner - at < STRIP ? j->inner - at : STRIP;
        int64_t base = list_offset(&j->kept, row) + at;
        if (few_rows(j, row * j->inner + at, base, m))
            continue;
        numbers acc, shift;
        memset(&shift, 0, sizeof shift);
        if (j->ints) {
            rows_int(j, &acc, base, m);
        } else {
            if (j->how == FOLD_EXP) {
                rows_real(j, FOLD_MAX, &shift, base, m, NULL);
                for (int64_t i = 0; i < m; i++)
                    shift.real[i] = finite_or_zero(shift.real[i]);
            }
            rows_real(j, j->how, &acc, base, m, shift.real);
        }
        if (!j->ints && j->how != FOLD_EXP) {
            reduce_store_reals(j, row * j->inner + at, acc.real, m);
            continue;
        }
        for (int64_t i = 0; i < m; i++)
            reduce_store(j, row * j->inner + at + i, j->ints ? 0 : acc.real[i], j->ints ? acc.whole[i] : 0,
                         shift.real[i]);
    }
}

/* Few strips of many rows, as the pixels of an image: each thread folds some of the rows. Parts do not depend
 * on the number of threads. False: there are strips enough, or little to do. */
static bool reduce_many_rows(const job *j, int64_t strips, int64_t items, int32_t threads)
{
    enum { FEW = 4, PARTS = 8, ROWS = 64 };
    if (!is_narrow(j) || j->ints || j->how == FOLD_EXP || items >= FEW || j->n_reduced < PARTS * ROWS ||
        j->n_reduced * j->inner < CPU_GRAIN)
        return false;
    for (int64_t item = 0; item < items; item++) {
        numbers part[PARTS];
        const int64_t at = item % strips * STRIP, m = j->inner - at < STRIP ? j->inner - at : STRIP,
                      row = item / strips;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t p = 0; p < PARTS; p++) {
            for (int64_t i = 0; i < m; i++)
                part[p].real[i] = start_real(j->how);
            rows_narrow(j, j->how, &part[p], list_offset(&j->kept, row) + at, m, j->n_reduced * p / PARTS,
                        j->n_reduced * (p + 1) / PARTS);
        }
        for (int64_t p = 1; p < PARTS; p++)
            fold_row_double(join_of(j->how), part[0].real, part[p].real, m, NULL);
        reduce_store_reals(j, row * j->inner + at, part[0].real, m);
    }
    return true;
}

/* ---- the kernel ---- */

/* One number out of one long run of float32: each thread folds a part. Parts do not depend on the number of
 * threads. */
enum { PARTS = 64 };

static bool reduce_whole(const job *j, int32_t threads)
{
    if (j->ints || j->how == FOLD_EXP || j->by_row || j->n_reduced != 1 || j->kept.n ||
        j->inner < 8 * CPU_GRAIN)
        return false;
    double part[PARTS], acc = start_real(j->how);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < PARTS; p++) {
        int64_t begin = j->inner / PARTS * p, end = p + 1 == PARTS ? j->inner : j->inner / PARTS * (p + 1);
        part[p] = run_real(j, j->how, start_real(j->how), begin, end - begin, 0);
    }
    reduce_store(j, 0, fold_run_double(join_of(j->how), acc, part, PARTS, 0), 0, 0);
    return true;
}

/* Collapse axes into the job's lists; the innermost goes to `inner`. */
static void collapse(job *j, const grt_tensor *data, const bool *reduced)
{
    int64_t dims[GRT_MAX_RANK + 1], strides[GRT_MAX_RANK + 1], stride = 1;
    bool kinds_of[GRT_MAX_RANK + 1];
    int32_t n = 0; /* from the innermost outwards */
    for (int32_t k = data->rank - 1; k >= 0; k--) {
        if (data->dims[k] == 1)
            continue;
        if (n && kinds_of[n - 1] == reduced[k]) {
            dims[n - 1] *= data->dims[k];
        } else {
            dims[n] = data->dims[k], strides[n] = stride, kinds_of[n] = reduced[k];
            n++;
        }
        stride *= data->dims[k];
    }
    if (n == 0)
        dims[0] = 1, strides[0] = 1, kinds_of[0] = false, n = 1;
    j->inner = dims[0];
    j->by_row = !kinds_of[0];
    for (int32_t i = n - 1; i >= 1; i--) {
        axis_list *list = kinds_of[i] ? &j->reduced : &j->kept;
        list->dims[list->n] = dims[i];
        list->strides[list->n++] = strides[i];
    }
    j->n_reduced = list_product(&j->reduced);
    j->count = (double)j->n_reduced * (j->by_row ? 1 : (double)j->inner);
}

static grt_status run_reduce(const grt_run *run)
{
    const reduce_state *state = run->state;
    const grt_tensor *data = run->in[0];
    bool reduced[GRT_MAX_RANK];
    GRT_TRY(grt_reduce_axes(run->desc, run->in[0], run->n_in > 1 ? run->in[1] : NULL, run->out[0],
                            state->empty_is_none, reduced));
    job j = {.state = state,
             .how = state->fold,
             .dtype = data->dtype,
             .in = data->data,
             .out = run->out[0]->data,
             .size = grt_dtype_size(data->dtype)};
    j.ints = !grt_dtype_in(data->dtype, GRT_SET_FLOATS) && j.how != FOLD_EXP;
    bool is_signed = grt_dtype_in(data->dtype, GRT_SET_SIGNED),
         ordered = j.how == FOLD_MAX || j.how == FOLD_MIN;
    j.flip = is_signed && ordered ? (uint64_t)1 << 63 : 0;
    if (j.how == FOLD_ABS && j.ints && !is_signed)
        j.how = FOLD_SUM;
    collapse(&j, data, reduced);
    if (reduce_whole(&j, run->threads))
        return GRT_OK;
    int64_t strips = j.by_row ? (j.inner + STRIP - 1) / STRIP : 1, items = list_product(&j.kept) * strips;
    if (j.by_row && reduce_many_rows(&j, strips, items, run->threads))
        return GRT_OK;
    int64_t work = grt_tensor_elements(data), parts = work < 2 * CPU_GRAIN ? 1 : 4 * run->threads;
    parts = parts > items ? items : parts;
#pragma omp parallel for num_threads(run->threads) schedule(dynamic) if (parts > 1)
    for (int64_t p = 0; p < parts; p++) {
        int64_t begin = items * p / parts, end = items * (p + 1) / parts;
        if (j.by_row)
            reduce_rows(&j, strips, begin, end);
        else
            reduce_runs(&j, begin, end);
    }
    return GRT_OK;
}

#define REDUCE_OF(space, name, set)                                                                       \
    {                                                                                                     \
        .op = name, .domain = space, .types = {set, CPU_INDEX}, .create = create_reduce, .destroy = free, \
        .run = run_reduce                                                                                 \
    }
#define REDUCE(name, set) REDUCE_OF("", name, set)
/* Narrower inputs are widened. */
#define WIDE(name) REDUCE_OF("graphrt", name, GRT_BIT(FLOAT))

static const grt_kernel_row rows[] = {
    REDUCE("ReduceSum", GRT_SET_NUMBERS),
    REDUCE("ReduceMean", GRT_SET_NUMBERS),
    REDUCE("ReduceProd", GRT_SET_NUMBERS),
    REDUCE("ReduceMax", GRT_SET_NUMBERS | GRT_BIT(BOOL)),
    REDUCE("ReduceMin", GRT_SET_NUMBERS | GRT_BIT(BOOL)),
    REDUCE("ReduceL1", GRT_SET_NUMBERS),
    REDUCE("ReduceL2", GRT_SET_NUMBERS),
    REDUCE("ReduceSumSquare", GRT_SET_NUMBERS),
    REDUCE("ReduceLogSum", GRT_SET_NUMBERS),
    REDUCE("ReduceLogSumExp", GRT_SET_NUMBERS),
    WIDE("ReduceSum"),
    WIDE("ReduceL1"),
    WIDE("ReduceL2"),
    WIDE("ReduceSumSquare"),
};
CPU_KERNELS(reduce, rows);

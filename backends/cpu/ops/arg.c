/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, Hardmax: where the greatest element of an axis is. NaN counts as greatest and as least, as
 * in NumPy. */
#include "backends/cpu/move.h"

#include "backends/cpu/dispatch.h"
#include "backends/cpu/rows.h"
#include "src/base/float.h"

#include <string.h>

typedef struct arg_state {
    int64_t axis;
    bool least, last;
} arg_state;

static grt_status create_arg(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(arg_state), out_state));
    arg_state *state = *out_state;
    bool hardmax = grt_op_is(node->desc, "", "Hardmax");
    state->axis = grt_attr_int(node->desc, "axis", hardmax ? -1 : 0);
    state->least = grt_op_is(node->desc, "", "ArgMin");
    state->last = grt_attr_int(node->desc, "select_last_index", 0) != 0;
    return GRT_OK;
}

/* Best of n elements that lie `step` apart. A NaN stays the best; with select_last_index a later NaN replaces
 * it. */
#define DEFINE_BEST(name, T, LOAD)                                                                       \
    static int64_t best_##name(const void *data, int64_t n, int64_t step, bool least, bool last)         \
    {                                                                                                    \
        const T *v = data;                                                                               \
        int64_t at = 0;                                                                                  \
        for (int64_t i = 1; i < n; i++) {                                                                \
            bool odd = LOAD(v[at * step]) != LOAD(v[at * step]),                                         \
                 new_odd = LOAD(v[i * step]) != LOAD(v[i * step]);                                       \
            bool better =                                                                                \
                least ? LOAD(v[i * step]) < LOAD(v[at * step]) : LOAD(v[i * step]) > LOAD(v[at * step]); \
            bool same = last && (LOAD(v[i * step]) == LOAD(v[at * step]) || (odd && new_odd));           \
            if (same || (!odd && (better || new_odd)))                                                   \
                at = i;                                                                                  \
        }                                                                                                \
        return at;                                                                                       \
    }
DEFINE_BEST(float, float, )
DEFINE_BEST(double, double, )
DEFINE_BEST(half, uint16_t, grt_half_to_float)
DEFINE_BEST(bfloat16, uint16_t, grt_bfloat16_to_float)
DEFINE_BEST(i8, int8_t, )
DEFINE_BEST(u8, uint8_t, )
DEFINE_BEST(i16, int16_t, )
DEFINE_BEST(u16, uint16_t, )
DEFINE_BEST(i32, int32_t, )
DEFINE_BEST(u32, uint32_t, )
DEFINE_BEST(i64, int64_t, )
DEFINE_BEST(u64, uint64_t, )

/* Where in a run `value` is first, or last; n if nowhere. */
CPU_BODY find_value_body(const float *v, int64_t n, float value, bool last, int64_t *out)
{
    enum { BLOCK = 64 };
    const int64_t blocks = (n + BLOCK - 1) / BLOCK;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t begin = (last ? blocks - 1 - b : b) * BLOCK, m = n - begin < BLOCK ? n - begin : BLOCK;
        int32_t found = 0;
#pragma omp simd reduction(| : found)
        for (int64_t i = 0; i < m; i++)
            found |= v[begin + i] == value;
        for (int64_t i = 0; found && i < m; i++) {
            *out = begin + (last ? m - 1 - i : i);
            if (v[*out] == value)
                return;
        }
    }
    *out = n;
}
CPU_DISPATCH(find_value, (const float *v, int64_t n, float value, bool last, int64_t *out),
             (v, n, value, last, out))

/* The usual case, a contiguous run of float32, in two passes of vector code: the best value, then its place.
 */
static int64_t best_in_run(const float *v, int64_t n, bool least, bool last)
{
    double best;
    int64_t at;
    cpu_rows_best()->fold(least ? CPU_FOLD_LEAST : CPU_FOLD_LARGEST, v, 1, n, &best);
    if (best != best)
        return best_float(v, n, 1, least, last);
    find_value(v, n, (float)best, last, &at);
    return at;
}

/* float32, the axis running down: neighbouring columns are compared together, row after row. */
enum { COLUMNS = 256 };

/* One more row: `best` and `at` of each column. LEAST and LAST are constants. */
#define TAKE_ROW(LEAST, LAST)                                                                             \
    _Pragma("omp simd") for (int64_t k = 0; k < columns; k++)                                             \
    {                                                                                                     \
        const float v = row[k], b = best[k];                                                              \
        const int better = (LEAST) ? ((LAST) ? v <= b : v < b) : ((LAST) ? v >= b : v > b), odd = v != v, \
                  first = (LAST) | (b == b), take = better | (odd & first);                               \
        best[k] = take ? v : b;                                                                           \
        at[k] = take ? i : at[k];                                                                         \
    }

/* n rows of `columns`, at most COLUMNS, `step` apart; n fits an int32. */
CPU_BODY best_columns_body(const float *x, int32_t n, int64_t step, int64_t columns, bool least, bool last,
                           int64_t *out)
{
    float best[COLUMNS];
    int32_t at[COLUMNS];
    for (int64_t k = 0; k < columns; k++) {
        best[k] = x[k];
        at[k] = 0;
    }
    for (int32_t i = 1; i < n; i++) {
        const float *row = x + i * step;
        if (least && last)
            TAKE_ROW(1, 1)
        else if (least)
            TAKE_ROW(1, 0)
        else if (last)
            TAKE_ROW(0, 1)
        else
            TAKE_ROW(0, 0)
    }
    for (int64_t k = 0; k < columns; k++)
        out[k] = at[k];
}
CPU_DISPATCH(best_columns,
             (const float *x, int32_t n, int64_t step, int64_t columns, bool least, bool last, int64_t *out),
             (x, n, step, columns, least, last, out))

static int64_t (*const best_of[GRT_DTYPE_COUNT])(const void *data, int64_t n, int64_t step, bool least,
                                                 bool last) = {
    [GRT_DTYPE_FLOAT] = best_float, [GRT_DTYPE_DOUBLE] = best_double,     [GRT_DTYPE_FLOAT16] = best_half,
    [GRT_DTYPE_INT8] = best_i8,     [GRT_DTYPE_BFLOAT16] = best_bfloat16, [GRT_DTYPE_UINT8] = best_u8,
    [GRT_DTYPE_INT16] = best_i16,   [GRT_DTYPE_UINT16] = best_u16,        [GRT_DTYPE_INT32] = best_i32,
    [GRT_DTYPE_UINT32] = best_u32,  [GRT_DTYPE_INT64] = best_i64,         [GRT_DTYPE_UINT64] = best_u64,
};

static grt_status run_arg(const grt_run *run)
{
    const arg_state *s = run->state;
    const grt_tensor *in = run->in[0];
    int32_t axis = in->rank ? (int32_t)grt_axis(s->axis, in->rank) : 0;
    int64_t n = in->rank ? in->dims[axis] : 1, outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = in->rank ? grt_dims_product(in->dims, axis + 1, in->rank) : 1;
    size_t size = grt_dtype_size(in->dtype);
    int64_t *out = run->out[0]->data;
    if (n == 0 && outer * inner > 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %d has size 0: there is no index to name", axis);
    const int64_t strips = (inner + COLUMNS - 1) / COLUMNS;
    if (in->dtype == GRT_DTYPE_FLOAT && inner > 1 && n <= INT32_MAX) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
        for (int64_t i = 0; i < outer * strips; i++) {
            const int64_t column = i % strips * COLUMNS, row = i / strips,
                          columns = inner - column < COLUMNS ? inner - column : COLUMNS;
            best_columns((const float *)in->data + row * n * inner + column, (int32_t)n, inner, columns,
                         s->least, s->last, out + row * inner + column);
        }
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t k = 0; k < outer * inner; k++)
        out[k] = in->dtype == GRT_DTYPE_FLOAT && inner == 1
                     ? best_in_run((const float *)in->data + k * n, n, s->least, s->last)
                     : best_of[in->dtype](cpu_at_const(in->data, k / inner * n * inner + k % inner, size), n,
                                          inner, s->least, s->last);
    return GRT_OK;
}

/* The number 1. */
static void arg_one_of(grt_dtype dtype, void *out)
{
    const float f = 1;
    const double d = 1;
    const uint16_t half = grt_float_to_half(1), brain = grt_float_to_bfloat16(1);
    memcpy(out,
           dtype == GRT_DTYPE_FLOAT     ? (const void *)&f
           : dtype == GRT_DTYPE_DOUBLE  ? (const void *)&d
           : dtype == GRT_DTYPE_FLOAT16 ? (const void *)&half
                                        : (const void *)&brain,
           grt_dtype_size(dtype));
}

static grt_status run_hardmax(const grt_run *run)
{
    const arg_state *s = run->state;
    const grt_tensor *in = run->in[0];
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    int64_t n = in->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    size_t size = grt_dtype_size(in->dtype);
    char one[8];
    arg_one_of(in->dtype, one);
    if (n == 0)
        return GRT_OK;
    if (outer * inner > 0)
        memset(run->out[0]->data, 0, grt_tensor_bytes(run->out[0]));
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t k = 0; k < outer * inner; k++) {
        int64_t base = k / inner * n * inner + k % inner;
        int64_t at = in->dtype == GRT_DTYPE_FLOAT && inner == 1
                         ? best_in_run((const float *)in->data + base, n, false, false)
                         : best_of[in->dtype](cpu_at_const(in->data, base, size), n, inner, false, false);
        memcpy(cpu_at(run->out[0]->data, base + at * inner, size), one, size);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "ArgMax",
     .domain = "",
     .types = {GRT_SET_NUMBERS},
     .create = create_arg,
     .destroy = free,
     .run = run_arg},
    {.op = "ArgMin",
     .domain = "",
     .types = {GRT_SET_NUMBERS},
     .create = create_arg,
     .destroy = free,
     .run = run_arg},
    {.op = "Hardmax",
     .domain = "",
     .types = {GRT_SET_FLOATS},
     .create = create_arg,
     .destroy = free,
     .run = run_hardmax},
};
CPU_KERNELS(arg, rows);

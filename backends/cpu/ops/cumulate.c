/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd. */
#include "backends/cpu/dispatch.h"
#include "backends/cpu/move.h"
#include "backends/cpu/threads.h"
#include "backends/shared/cumulate.h"
#include "src/base/element.h"

/* Elements `step` apart, from `at` on; step is negative when going backwards. */
static void cumulate_reals(const grt_cumulate *s, grt_tensor *out, const grt_tensor *in, int64_t at,
                           int64_t n, int64_t step)
{
    double acc = s->product ? 1 : 0;
    for (int64_t i = 0; i < n; i++, at += step) {
        double v = grt_element_get(in, at), next = s->product ? acc * v : acc + v;
        grt_element_put(out, at, s->exclusive ? acc : next);
        acc = next;
    }
}

/* Integers wrap as their type does, which needs nothing but the lower bits. */
static void cumulate_ints(const grt_cumulate *s, grt_tensor *out, const grt_tensor *in, int64_t at, int64_t n,
                          int64_t step)
{
    uint64_t acc = s->product;
    for (int64_t i = 0; i < n; i++, at += step) {
        uint64_t v = (uint64_t)grt_tensor_int(in, at), next = s->product ? acc * v : acc + v;
        uint64_t result = s->exclusive ? acc : next;
        switch (grt_dtype_size(out->dtype)) {
        case 8:
            ((uint64_t *)out->data)[at] = result;
            break;
        case 4:
            ((uint32_t *)out->data)[at] = (uint32_t)result;
            break;
        case 2:
            ((uint16_t *)out->data)[at] = (uint16_t)result;
            break;
        default:
            ((uint8_t *)out->data)[at] = (uint8_t)result;
        }
        acc = next;
    }
}

/* Columns whose sums are made together, fewer where threads would have nothing to do; rows likewise. */
enum { CUMULATE_COLUMNS = 1024, CUMULATE_FEWER = 64, CUMULATE_ROWS = 8 };

#define CUMULATE_INLINE static inline __attribute__((always_inline))

/* `count` rows of n elements, `apart` from each other, whose elements are `step` apart: the sums of one wait
 * for each other, those of several do not. */
CUMULATE_INLINE void cumulate_lines(float *y, const float *x, int64_t n, int64_t step, int64_t apart,
                                    const int count, const bool product, const bool exclusive)
{
    double acc[CUMULATE_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < count; r++)
        acc[r] = product ? 1 : 0;
    for (int64_t i = 0; i < n; i++, x += step, y += step)
#pragma GCC unroll 8
        for (int r = 0; r < count; r++) {
            const double v = (double)x[r * apart], next = product ? acc[r] * v : acc[r] + v;
            y[r * apart] = (float)(exclusive ? acc[r] : next);
            acc[r] = next;
        }
}

/* What is computed is the loops' constant: they are not vectorised otherwise. */
CUMULATE_INLINE void cumulate_columns(float *y, const float *x, int64_t n, int64_t step, int64_t columns,
                                      const bool product, const bool exclusive)
{
    double acc[CUMULATE_COLUMNS];
    for (int64_t c = 0; c < columns; c++)
        acc[c] = product ? 1 : 0;
    for (int64_t i = 0; i < n; i++, x += step, y += step)
#pragma omp simd
        for (int64_t c = 0; c < columns; c++) {
            const double v = (double)x[c], next = product ? acc[c] * v : acc[c] + v;
            y[c] = (float)(exclusive ? acc[c] : next);
            acc[c] = next;
        }
}

CUMULATE_INLINE void cumulate_rows(float *y, const float *x, int64_t n, int64_t step, int64_t rows,
                                   const bool product, const bool exclusive)
{
    int64_t r = 0;
    for (; r + CUMULATE_ROWS <= rows; r += CUMULATE_ROWS)
        cumulate_lines(y + r * n, x + r * n, n, step, n, CUMULATE_ROWS, product, exclusive);
    for (; r < rows; r++)
        cumulate_lines(y + r * n, x + r * n, n, step, n, 1, product, exclusive);
}

#define CUMULATE_BY_KIND(call, ...)          \
    do {                                     \
        if (s->product && s->exclusive)      \
            call(__VA_ARGS__, true, true);   \
        else if (s->product)                 \
            call(__VA_ARGS__, true, false);  \
        else if (s->exclusive)               \
            call(__VA_ARGS__, false, true);  \
        else                                 \
            call(__VA_ARGS__, false, false); \
    } while (0)

/* Neighbouring columns of floats, whose elements are `step` apart, or whole rows, in double as
 * cumulate_reals. */
CPU_BODY cumulate_floats_body(const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step,
                              int64_t columns)
{
    CUMULATE_BY_KIND(cumulate_columns, y, x, n, step, columns);
}
CPU_DISPATCH(cumulate_floats,
             (const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step, int64_t columns),
             (s, y, x, n, step, columns))
CPU_BODY cumulate_whole_body(const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step,
                             int64_t rows)
{
    CUMULATE_BY_KIND(cumulate_rows, y, x, n, step, rows);
}
CPU_DISPATCH(cumulate_whole,
             (const grt_cumulate *s, float *y, const float *x, int64_t n, int64_t step, int64_t rows),
             (s, y, x, n, step, rows))

static void cumulate_all_floats(const grt_cumulate *s, const grt_run *run, int64_t outer, int64_t n,
                                int64_t inner)
{
    const float *x = run->in[0]->data;
    float *y = run->out[0]->data;
    const int64_t first = s->reverse ? (n - 1) * inner : 0, step = s->reverse ? -inner : inner;
    const bool many = outer * n * inner > CPU_GRAIN;
    if (inner == 1) {
#pragma omp parallel for num_threads(run->threads) schedule(static) if (many)
        for (int64_t row = 0; row < outer; row += CUMULATE_ROWS) {
            const int64_t left = outer - row, at = row * n + first;
            cumulate_whole(s, y + at, x + at, n, step, left < CUMULATE_ROWS ? left : CUMULATE_ROWS);
        }
        return;
    }
    const bool few = outer * ((inner + CUMULATE_COLUMNS - 1) / CUMULATE_COLUMNS) < run->threads;
    const int64_t width = few ? CUMULATE_FEWER : CUMULATE_COLUMNS, blocks = (inner + width - 1) / width;
#pragma omp parallel for num_threads(run->threads) schedule(static) if (many)
    for (int64_t i = 0; i < outer * blocks; i++) {
        const int64_t column = i % blocks * width, left = inner - column,
                      at = i / blocks * n * inner + first + column;
        cumulate_floats(s, y + at, x + at, n, step, left < width ? left : width);
    }
}

static grt_status run_cumulate(const grt_run *run)
{
    const grt_cumulate *s = run->state;
    const grt_tensor *in = run->in[0];
    grt_tensor *out = run->out[0];
    int32_t axis;
    GRT_TRY(grt_cumulate_axis(run->desc, in, run->in[1], &axis));
    int64_t n = in->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    bool ints = grt_dtype_in(in->dtype, GRT_SET_INTS);
    if (in->dtype == GRT_DTYPE_FLOAT && outer * n * inner > 0) {
        cumulate_all_floats(s, run, outer, n, inner);
        return GRT_OK;
    }
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t at = row / inner * n * inner + row % inner + (s->reverse ? (n - 1) * inner : 0);
        (ints ? cumulate_ints : cumulate_reals)(s, out, in, at, n, s->reverse ? -inner : inner);
    }
    return GRT_OK;
}

#define CUMULATE(name)                                                                                    \
    {                                                                                                     \
        .domain = "", .op = name, .types = {GRT_SET_NUMBERS, CPU_INDEX}, .flags = GRT_KERNEL_IN_PLACE(0), \
        .create = grt_cumulate_create, .destroy = free, .run = run_cumulate                               \
    }
static const grt_kernel_row rows[] = {CUMULATE("CumSum"), CUMULATE("CumProd")};
CPU_KERNELS(cumulate, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of doubles and integers: plain loops, a row of C at a time. */
#include "backends/cpu/matmul_typed.h"

#include "backends/cpu/cpu.h"
#include "src/base/element.h"

#include <string.h>

/* Unsigned arithmetic serves the signed types as well: the bits of a wrapped product are the same. */
#define PRODUCT(name, type)                                                                                  \
    static void name(const cpu_matmul *g, const type *a, const type *b, type *c)                             \
    {                                                                                                        \
        const int64_t m = g->m, n = g->n, k = g->k;                                                          \
        _Pragma(                                                                                             \
            "omp parallel for num_threads(g->threads) if (m > 1 && m * n * k > CPU_GRAIN)") for (int64_t i = \
                                                                                                     0;      \
                                                                                                 i < m; i++) \
        {                                                                                                    \
            type *row = c + i * n;                                                                           \
            memset(row, 0, (size_t)n * sizeof *row);                                                         \
            for (int64_t x = 0; x < k; x++) {                                                                \
                const type v = a[i * g->row_a + x * g->col_a];                                               \
                const type *from = b + x * g->row_b;                                                         \
                if (g->col_b == 1)                                                                           \
                    for (int64_t j = 0; j < n; j++)                                                          \
                        row[j] += v * from[j];                                                               \
                else                                                                                         \
                    for (int64_t j = 0; j < n; j++)                                                          \
                        row[j] += v * from[j * g->col_b];                                                    \
            }                                                                                                \
        }                                                                                                    \
    }

PRODUCT(product_double, double)
PRODUCT(product_32, uint32_t)
PRODUCT(product_64, uint64_t)

void cpu_matmul_typed(grt_dtype dtype, const cpu_matmul *g, const void *a, const void *b, void *c)
{
    if (dtype == GRT_DTYPE_DOUBLE)
        product_double(g, a, b, c);
    else if (dtype == GRT_DTYPE_INT32 || dtype == GRT_DTYPE_UINT32)
        product_32(g, a, b, c);
    else
        product_64(g, a, b, c);
}

/* Sums of whole numbers stay exact; only scaled ones go through double. */
static void add_exact(grt_tensor *y, int64_t at, const grt_tensor *c, int64_t from)
{
    if (grt_dtype_size(y->dtype) == 4)
        ((uint32_t *)y->data)[at] += ((const uint32_t *)c->data)[from];
    else
        ((uint64_t *)y->data)[at] += ((const uint64_t *)c->data)[from];
}

void cpu_matmul_add_c(grt_tensor *y, const cpu_matmul *g, float alpha, float beta, const grt_tensor *c,
                      int64_t c_rows, int64_t c_cols)
{
    const bool exact = alpha == 1.0f && beta == 1.0f && y->dtype != GRT_DTYPE_DOUBLE;
    if (alpha == 1.0f && (!c || beta == 0.0f))
        return;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t at = i * g->n + j, from = (c_rows > 1 ? i * c_cols : 0) + (c_cols > 1 ? j : 0);
            if (exact) {
                add_exact(y, at, c, from);
                continue;
            }
            const double add = c && beta != 0.0f ? (double)beta * grt_element_get(c, from) : 0.0;
            grt_element_put(y, at, (double)alpha * grt_element_get(y, at) + add);
        }
}

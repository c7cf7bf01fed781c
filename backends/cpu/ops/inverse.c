/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's Inverse: of square matrices, by elimination with row exchange in float64. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/threads.h"
#include "src/base/checked.h"
#include "src/base/element.h"

#include <math.h>

static grt_status reshape_inverse(grt_reshape *reshape)
{
    const grt_tensor *in = reshape->in[0];
    size_t bytes;
    if (in->rank < 2 || in->dims[in->rank - 2] != in->dims[in->rank - 1])
        return grt_fail_op(reshape->desc, GRT_STATUS_INVALID_ARGUMENT, "the input must be square matrices");
    const size_t n = (size_t)in->dims[in->rank - 1];
    if (!grt_mul_size(n, 2 * n * sizeof(double), &bytes) ||
        !grt_mul_size(bytes, (size_t)reshape->threads, &reshape->workspace_bytes))
        return grt_fail_memory(SIZE_MAX);
    return GRT_OK;
}

static void exchange_rows(double *a, int64_t width, int64_t i, int64_t k)
{
    for (int64_t j = 0; j < width && i != k; j++) {
        const double other = a[i * width + j];
        a[i * width + j] = a[k * width + j];
        a[k * width + j] = other;
    }
}

/* a is [n, 2 n], a matrix and the identity; afterwards the identity and the inverse. A singular matrix
 * divides by zero: infinities and NaN say so. */
static void eliminate(double *a, int64_t n)
{
    const int64_t width = 2 * n;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * width + k]) > fabs(a[pivot * width + k]))
                pivot = i;
        exchange_rows(a, width, k, pivot);
        const double first = a[k * width + k];
        for (int64_t j = 0; j < width; j++)
            a[k * width + j] /= first;
        for (int64_t i = 0; i < n; i++) {
            const double factor = i == k ? 0 : a[i * width + k];
            for (int64_t j = k; j < width && i != k; j++)
                a[i * width + j] -= factor * a[k * width + j];
        }
    }
}

static grt_status run_inverse(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    const int64_t n = in->dims[in->rank - 1], count = grt_dims_product(in->dims, 0, in->rank - 2);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (count * n * n * n > CPU_GRAIN)
    for (int64_t m = 0; m < count; m++) {
        double *a = (double *)run->workspace + 2 * n * n * cpu_thread();
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                a[i * 2 * n + j] = grt_element_get(in, (m * n + i) * n + j);
                a[i * 2 * n + n + j] = i == j;
            }
        eliminate(a, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                grt_element_put(run->out[0], (m * n + i) * n + j, a[i * 2 * n + n + j]);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Inverse",
     .types = {GRT_SET_FLOATS},
     .reshape = reshape_inverse,
     .run = run_inverse},
};
CPU_KERNELS(inverse, rows);

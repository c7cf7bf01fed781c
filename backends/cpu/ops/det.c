/* SPDX-License-Identifier: Apache-2.0 */
/* Det. */
#include "backends/cpu/move.h"
#include "backends/cpu/threads.h"
#include "backends/shared/det.h"
#include "src/base/element.h"

static grt_status reshape_det(grt_reshape *reshape)
{
    const grt_tensor *in = reshape->in[0];
    int64_t n = in->dims[in->rank - 1];
    GRT_TRY(grt_det_check(reshape));
    reshape->workspace_bytes = (size_t)(n * n) * sizeof(double) * (size_t)reshape->threads;
    return GRT_OK;
}

/* Product of the pivots of an elimination with row exchange; `a` is used up. */
static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        if (a[pivot * n + k] == 0)
            return 0;
        for (int64_t j = k; j < n && pivot != k; j++) {
            double other = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = other;
        }
        det *= pivot == k ? a[k * n + k] : -a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

static grt_status run_det(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    int64_t n = in->dims[in->rank - 1], count = grt_dims_product(in->dims, 0, in->rank - 2);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (count * n * n * n > CPU_GRAIN)
    for (int64_t m = 0; m < count; m++) {
        double *a = (double *)run->workspace + n * n * cpu_thread();
        for (int64_t i = 0; i < n * n; i++)
            a[i] = grt_element_get(in, m * n * n + i);
        grt_element_put(run->out[0], m, determinant(a, n));
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "Det", .domain = "", .types = {GRT_SET_FLOATS}, .reshape = reshape_det, .run = run_det},
};
CPU_KERNELS(det, rows);

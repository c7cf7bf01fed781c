/* SPDX-License-Identifier: Apache-2.0 */
/* Det: a block a matrix, by elimination with pivots. */
#include "backends/cuda/each.cuh"
#include "backends/shared/det.h"

namespace
{

grt_status cuda_reshape_det(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    GRT_TRY(grt_det_check(r));
    r->workspace_bytes = (size_t)grt_tensor_elements(in) * sizeof(double);
    return GRT_OK;
}

/* The row from k on with the greatest element in column k, the first of equal ones. For all threads of the
 * block. */
__device__ int64_t pivot_row(const double *a, int64_t n, int64_t k, int thread, int threads)
{
    __shared__ double most[CUDA_BLOCK];
    __shared__ int64_t rows[CUDA_BLOCK];
    double best = -1;
    int64_t row = k;
    for (int64_t i = k + thread; i < n; i += threads) {
        double v = fabs(a[i * n + k]);
        if (v > best) {
            best = v;
            row = i;
        }
    }
    most[thread] = best;
    rows[thread] = row;
    __syncthreads();
    for (int half = threads / 2; half; half /= 2) {
        if (thread < half) {
            double other = most[thread + half];
            if (other > most[thread] || (other == most[thread] && rows[thread + half] < rows[thread])) {
                most[thread] = other;
                rows[thread] = rows[thread + half];
            }
        }
        __syncthreads();
    }
    row = rows[0];
    __syncthreads();
    return row;
}

__device__ double determinant(double *a, int64_t n, int thread, int threads)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t pivot = pivot_row(a, n, k, thread, threads);
        const double top = a[pivot * n + k];
        __syncthreads();
        if (top == 0)
            return 0;
        for (int64_t j = k + thread; j < n && pivot != k; j += threads) {
            double other = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = other;
        }
        __syncthreads();
        det *= pivot == k ? top : -top;
        const int64_t left = n - k - 1;
        for (int64_t e = thread; e < left * left; e += threads) {
            const int64_t i = k + 1 + e / left, j = k + 1 + e % left;
            a[i * n + j] -= a[i * n + k] / top * a[k * n + j];
        }
        __syncthreads();
    }
    return det;
}

grt_status cuda_run_det(const grt_run *r)
{
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const int64_t n = r->in[0]->dims[r->in[0]->rank - 1];
    double *room = (double *)r->workspace;
    return cuda_each_block(r, grt_tensor_elements(r->out[0]),
                           [=] __device__(int64_t m, int thread, int threads) {
                               double *a = room + m * n * n;
                               for (int64_t i = thread; i < n * n; i += threads)
                                   a[i] = in.get(m * n * n + i);
                               __syncthreads();
                               const double det = determinant(a, n, thread, threads);
                               if (thread == 0)
                                   out.put(m, det);
                           });
}

const grt_kernel_row rows[] = {
    {.domain = "", .op = "Det", .types = {GRT_SET_FLOATS}, .reshape = cuda_reshape_det, .run = cuda_run_det},
};

} // namespace
CUDA_KERNELS(det, rows);

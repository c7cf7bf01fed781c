/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid: a thread per output element gathers what makes it. */
#include "backends/cuda/each.cuh"
#include "backends/shared/grid_sample.h"

namespace
{

/* `now`: the tap that a walk over all combinations is at. */
struct walked_taps : grt_grid_taps {
    int32_t now;
};

grt_status cuda_run_grid(const grt_run *r)
{
    const grt_grid s = *(const grt_grid *)r->state;
    const cuda_any in = cuda_any_in(r, 0), grid = cuda_any_in(r, 1), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(r->in[0]);
    const int32_t n = dims.rank - 2;
    const int64_t points = grt_dims_product(r->out[0]->dims, 2, r->out[0]->rank), channels = dims[1];
    const int64_t pixels = grt_dims_product(r->in[0]->dims, 2, dims.rank);
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        walked_taps all[GRT_MAX_RANK];
        int64_t p = i % points, plane = i / points, point = plane / channels * points + p;
        for (int32_t k = 0; k < n; k++) { /* the grid names the last axis first */
            grt_grid_find_taps(&s, grid.get(point * n + n - 1 - k), dims[k + 2], &all[k]);
            all[k].now = 0;
        }
        double sum = 0;
        for (int32_t k = 0; k >= 0;) {
            double w = 1;
            int64_t at = 0;
            for (k = 0; k < n; k++) {
                int64_t index = all[k].index[all[k].now];
                w = index < 0 ? 0 : w * all[k].weight[all[k].now];
                at = at * dims[k + 2] + (index < 0 ? 0 : index);
            }
            if (w != 0)
                sum += w * in.get(plane * pixels + at);
            for (k = n - 1; k >= 0 && ++all[k].now == all[k].n; k--)
                all[k].now = 0;
        }
        out.put(i, sum);
    });
}

grt_status cuda_run_affine(const grt_run *r)
{
    const grt_tensor *y = r->out[0];
    const bool align = *(const bool *)r->state;
    const int32_t n = y->rank - 2;
    const cuda_any matrix = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    const cuda_dims dims = cuda_dims_of(y);
    const int64_t points = grt_dims_product(y->dims, 1, n + 1);
    return cuda_each(r, grt_tensor_elements(y), [=] __device__(int64_t i) {
        int64_t p = i / n, rest = p % points, row = (p / points * n + i % n) * (n + 1);
        double sum = matrix.get(row + n);
        for (int32_t k = n - 1; k >= 0; k--) { /* coordinates start with that of the last axis */
            int64_t size = dims[k + 1], at = rest % size;
            rest /= size;
            sum += matrix.get(row + n - 1 - k) * grt_affine_point(align, at, size);
        }
        out.put(i, sum);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "GridSample",
     .types = {GRT_SET_NUMBERS, GRT_SET_FLOATS},
     .create = grt_grid_create,
     .destroy = free,
     .reshape = grt_grid_reshape,
     .run = cuda_run_grid},
    {.domain = "",
     .op = "AffineGrid",
     .types = {GRT_SET_FLOATS},
     .create = grt_affine_create,
     .destroy = free,
     .reshape = grt_affine_reshape,
     .run = cuda_run_affine},
};

} // namespace
CUDA_KERNELS(grid_sample, rows);

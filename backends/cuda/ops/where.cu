/* SPDX-License-Identifier: Apache-2.0 */
/* Where. */
#include "backends/cuda/walk.h"

namespace
{

typedef cuda_walk<4, GRT_MAX_RANK> choose_walk;

template <typename T>
__global__ void __launch_bounds__(CUDA_BLOCK)
    cuda_choose_kernel(const __grid_constant__ choose_walk walk, const uint8_t *condition, const T *x,
                       const T *y, T *out)
{
    CUDA_ITEMS (i, walk.total) {
        int64_t at[4];
        cuda_walk_at(walk, i, at);
        out[at[0]] = condition[at[1]] ? x[at[2]] : y[at[3]];
    }
}

template <typename T> grt_status cuda_where_choose(const grt_run *r)
{
    const choose_walk *walk = (const choose_walk *)r->shape;
    cuda_choose_kernel<T><<<cuda_grid(walk->total), CUDA_BLOCK, 0, cuda_stream(r)>>>(
        *walk, (const uint8_t *)r->in[0]->data, (const T *)r->in[1]->data, (const T *)r->in[2]->data,
        (T *)r->out[0]->data);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status reshape_where(grt_reshape *r)
{
    choose_walk *walk;
    GRT_TRY(cuda_state(&walk));
    cuda_walk_broadcast(walk, r->out[0], 3, r->in);
    r->shape = walk;
    return GRT_OK;
}

grt_status run_where(const grt_run *r)
{
    if (((const choose_walk *)r->shape)->total <= 0)
        return GRT_OK;
    return CUDA_BY_SIZE(grt_dtype_size(r->out[0]->dtype), cuda_where_choose, r);
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Where",
     .types = {GRT_BIT(BOOL), CUDA_MOVABLE, CUDA_MOVABLE},
     .flags = GRT_KERNEL_IN_PLACE(1) | GRT_KERNEL_IN_PLACE(2),
     .reshape = reshape_where,
     .release_shape = free,
     .run = run_where},
};

} // namespace
CUDA_KERNELS(where, rows);

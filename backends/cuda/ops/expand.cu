/* SPDX-License-Identifier: Apache-2.0 */
/* Expand, Tile. */
#include "backends/cuda/copy.h"

namespace
{

grt_status reshape_expand(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_broadcast_strides(in->dims, in->rank, out->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(copy, in->dtype);
    for (int32_t k = 0; k < out->rank; k++)
        cuda_copy_axis(copy, out->dims[k], to[k], from[k]);
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

grt_status reshape_tile(grt_reshape *r)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t from[GRT_MAX_RANK], to[GRT_MAX_RANK];
    bool empty = grt_tensor_elements(out) == 0;
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_dims_strides(in->dims, in->rank, from);
    grt_dims_strides(out->dims, out->rank, to);
    cuda_copy_begin(copy, in->dtype);
    if (empty)
        cuda_copy_axis(copy, 0, 0, 0);
    for (int32_t k = 0; !empty && k < out->rank; k++) {
        cuda_copy_axis(copy, out->dims[k] / in->dims[k], to[k] * in->dims[k], 0);
        cuda_copy_axis(copy, in->dims[k], to[k], from[k]);
    }
    cuda_copy_end(copy);
    r->shape = copy;
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Expand",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_expand,
     .release_shape = free,
     .run = cuda_copy_only},
    {.domain = "",
     .op = "Tile",
     .types = {CUDA_MOVABLE},
     .reshape = reshape_tile,
     .release_shape = free,
     .run = cuda_copy_only},
};

} // namespace
CUDA_KERNELS(expand, rows);

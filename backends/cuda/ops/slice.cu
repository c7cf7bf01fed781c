/* SPDX-License-Identifier: Apache-2.0 */
/* Slice. */
#include "backends/cuda/copy.h"
#include "backends/shared/slice.h"

namespace
{

grt_status plan_slice(grt_reshape *r, cuda_copy *copy)
{
    const grt_tensor *in = r->in[0], *out = r->out[0];
    int64_t to[GRT_MAX_RANK];
    grt_slice slice;
    cuda_copy_begin(copy, in->dtype);
    for (int32_t i = 1; i < r->n_in && grt_tensor_elements(out); i++)
        if (i != 2 && r->in[i] && !r->in[i]->data)
            return grt_fail_op(r->desc, GRT_STATUS_UNSUPPORTED,
                               "inputs starts, axes and steps must be known before the run");
    GRT_TRY(grt_slice_plan(r->desc, r->in, r->n_in, out, &slice));
    grt_dims_strides(out->dims, out->rank, to);
    copy->from_offset += slice.offset;
    for (int32_t k = 0; k < in->rank; k++)
        cuda_copy_axis(copy, out->dims[k], to[k], slice.steps[k]);
    cuda_copy_end(copy);
    return GRT_OK;
}

grt_status reshape_slice(grt_reshape *r)
{
    cuda_copy *copy;
    GRT_TRY(cuda_state(&copy));
    grt_status status = plan_slice(r, copy);
    if (status != GRT_OK) {
        free(copy);
        return status;
    }
    r->shape = copy;
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Slice",
     .types = {CUDA_MOVABLE, CUDA_INDEX, CUDA_INDEX, CUDA_INDEX},
     .flags = GRT_KERNEL_READS(1) | GRT_KERNEL_READS(3) | GRT_KERNEL_READS(4),
     .reshape = reshape_slice,
     .release_shape = free,
     .run = cuda_copy_only},
};

} // namespace
CUDA_KERNELS(slice, rows);

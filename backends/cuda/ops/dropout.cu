/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout when it is not training: a copy. */
#include "backends/cuda/walk.h"

namespace
{

bool supports_dropout(const grt_kernel_node *node, grt_text *why)
{
    if (!grt_node_has(node, 2) || (node->in[2].data && !*(const uint8_t *)node->in[2].data))
        return true;
    if (why)
        grt_text_add(why, "training_mode must be a constant, and false");
    return false;
}

grt_status run_dropout(const grt_run *r)
{
    size_t bytes = grt_tensor_bytes(r->in[0]);
    if (!bytes)
        return GRT_OK;
    if (r->out[0] && r->out[0]->data != r->in[0]->data)
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
    if (r->n_out > 1 && r->out[1])
        CUDA_TRY(cudaMemsetAsync(r->out[1]->data, 1, (size_t)grt_tensor_elements(r->in[0]), cuda_stream(r)));
    return GRT_OK;
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Dropout",
     .types = {GRT_SET_FLOATS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .supports = supports_dropout,
     .run = run_dropout},
};

} // namespace
CUDA_KERNELS(dropout, rows);

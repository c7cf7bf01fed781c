/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike where 8-bit floats or elements of less than a byte take part; BitCast. */
#include "backends/cuda/narrow.cuh"

namespace
{

struct cast_state {
    cuda_rounding how;
};

grt_status create_cast(const grt_kernel_node *node, void **out_state)
{
    const char *mode = grt_attr_string(node->desc, "round_mode", "up");
    cast_state *s;
    GRT_TRY(cuda_state(&s));
    s->how.saturate = grt_attr_int(node->desc, "saturate", 1) != 0;
    s->how.rounding = !strcmp(mode, "down")      ? GRT_ROUND_DOWN
                      : !strcmp(mode, "nearest") ? GRT_ROUND_NEAREST
                                                 : GRT_ROUND_UP;
    *out_state = s;
    return GRT_OK;
}

grt_status cuda_cast_narrow_copy(const grt_run *r)
{
    size_t bytes = grt_tensor_bytes(r->in[0]);
    if (bytes && r->in[0]->data != r->out[0]->data)
        CUDA_TRY(cudaMemcpyAsync(r->out[0]->data, r->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                                 cuda_stream(r)));
    return GRT_OK;
}

grt_status cuda_run_narrow_cast(const grt_run *r)
{
    grt_dtype from = r->in[0]->dtype;
    const void *in = r->in[0]->data;
    if (from == r->out[0]->dtype)
        return cuda_cast_narrow_copy(r);
    return cuda_make(r, r->out[0], ((const cast_state *)r->state)->how,
                     [=] __device__(int64_t i) { return cuda_any_load(from, in, i); });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Cast",
     .types = {CUDA_CODES},
     .supports = cuda_makes_codes,
     .create = create_cast,
     .destroy = free,
     .run = cuda_run_narrow_cast},
    {.domain = "",
     .op = "CastLike",
     .types = {CUDA_CODES},
     .supports = cuda_makes_codes,
     .create = create_cast,
     .destroy = free,
     .run = cuda_run_narrow_cast},
    {.domain = "",
     .op = "BitCast",
     .types = {GRT_SET_ALL & ~GRT_BIT(STRING)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .run = cuda_cast_narrow_copy},
};

} // namespace
CUDA_KERNELS(cast_narrow, rows);

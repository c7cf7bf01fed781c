/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of weights of 4 and 8 bits; only those that are asked for are dequantised. */
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/narrow.cuh"
#include "backends/cuda/number.cuh"
#include "backends/shared/weight_rows.h"

namespace
{

enum { INDICES, W, SCALE, ZERO };

bool supports_wgather(const grt_kernel_node *node, grt_text *why)
{
    return grt_weight_rows_supported(node, GRT_SET_BYTES | GRT_BIT(UINT4) | GRT_BIT(INT4) | GRT_SET_FLOAT8,
                                     GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16), why);
}

grt_status reshape_wgather(grt_reshape *r)
{
    grt_weight_rows *s;
    GRT_TRY(cuda_state(&s));
    r->shape = s;
    return grt_weight_rows_fit(r, s);
}

grt_status run_wgather(const grt_run *r)
{
    const grt_tensor *w = r->in[W], *scale = r->in[SCALE], *zero = grt_run_in(r, ZERO);
    const grt_weight_rows s = *(const grt_weight_rows *)r->shape;
    const int64_t rows = w->dims[0], cols = w->dims[1], n = grt_tensor_elements(r->in[INDICES]) * cols;
    const grt_dtype w_type = w->dtype, scale_type = scale->dtype, y_type = r->out[0]->dtype;
    const void *w_data = w->data, *scale_data = scale->data, *zero_data = zero ? zero->data : NULL;
    void *y = r->out[0]->data;
    cuda_indexed by;
    if (n <= 0)
        return GRT_OK;
    if (rows <= 0)
        return cuda_no_elements(r);
    GRT_TRY(cuda_indexed_begin(r, INDICES, "indices", &by));
    return cuda_each(r, n, [=] __device__(int64_t i) {
        const cuda_divided at = cuda_divide(i, cols);
        const int64_t row = by.at(at.q, rows), k = row * s.row_step + cuda_divide(at.r, s.block).q;
        const float off =
            zero_data ? cuda_to_float(cuda_any_load(w_type, zero_data, s.one_zero ? 0 : k)) : 0.0f;
        const float x = cuda_to_float(cuda_any_load(w_type, w_data, row * cols + at.r)) - off;
        cuda_store<float>(y, y_type, i, x * cuda_load<float>(scale_data, scale_type, k));
    });
}

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "WGather",
     .supports = supports_wgather,
     .reshape = reshape_wgather,
     .release_shape = free,
     .run = run_wgather},
};

} // namespace
CUDA_KERNELS(wgather, rows);

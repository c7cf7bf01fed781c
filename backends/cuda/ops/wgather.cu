/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::WGather: rows of weights of 4 and 8 bits; only those that are asked for are dequantised. */
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/narrow.cuh"
#include "backends/cuda/number.cuh"

namespace
{

enum { INDICES, W, SCALE, ZERO };

/* Which scale an element of the table has. */
struct gather_scales {
    int64_t row_step, block; /* block: elements of a row that share a scale */
    bool one_zero;
};

bool cuda_wgather_read_scales(const grt_op_desc *desc, const grt_tensor *w, const grt_tensor *scale,
                              const grt_tensor *zero, gather_scales *out)
{
    const int64_t block = grt_attr_int(desc, "block_size", 0),
                  axis = grt_axis(grt_attr_int(desc, "axis", 1), 2), n = grt_tensor_elements(scale),
                  rows = w->dims[0], cols = w->dims[1], zeros = zero ? grt_tensor_elements(zero) : 1;
    *out = {0, cols > 0 ? cols : 1, zeros == 1};
    if (w->rank != 2 || (zeros != 1 && zeros != n))
        return false;
    if (block > 0) {
        const int64_t blocks = cols / block + (cols % block != 0);
        out->row_step = blocks;
        out->block = block;
        return axis == 1 && scale->rank == 2 && scale->dims[0] == rows && scale->dims[1] == blocks;
    }
    if (n == 1)
        return true;
    if (axis == 0)
        out->row_step = 1;
    else
        out->block = 1;
    return n == (axis == 0 ? rows : cols);
}

bool supports_wgather(const grt_kernel_node *node, grt_text *why)
{
    const grt_dtype_set numbers =
        GRT_BIT(UINT8) | GRT_BIT(INT8) | GRT_BIT(UINT4) | GRT_BIT(INT4) | GRT_SET_FLOAT8;
    const grt_dtype_set scales = GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16);
    const grt_tensor *zero = grt_node_has(node, ZERO) ? &node->in[ZERO] : NULL;
    gather_scales read;
    const bool fits = node->n_in > SCALE && grt_dtype_in(node->in[INDICES].dtype, CUDA_INDEX) &&
                      grt_dtype_in(node->in[W].dtype, numbers) && node->in[W].rank == 2 &&
                      grt_dtype_in(node->in[SCALE].dtype, scales) && node->in[SCALE].rank >= 0 &&
                      (!node->out[0].dtype || node->out[0].dtype == node->in[SCALE].dtype) &&
                      (!zero || zero->dtype == node->in[W].dtype) &&
                      cuda_wgather_read_scales(node->desc, &node->in[W], &node->in[SCALE], zero, &read);
    if (!fits && why)
        grt_text_add(why, "a matrix of 4 or 8 bits is needed, with scales for all, for each row, for each "
                          "column or for blocks of a row");
    return fits;
}

grt_status reshape_wgather(grt_reshape *r)
{
    gather_scales *s;
    GRT_TRY(cuda_state(&s));
    r->shape = s;
    return cuda_wgather_read_scales(r->desc, r->in[W], r->in[SCALE], r->n_in > ZERO ? r->in[ZERO] : NULL, s)
               ? GRT_OK
               : grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                             "the weights, scales and zero points do not fit");
}

grt_status run_wgather(const grt_run *r)
{
    const grt_tensor *w = r->in[W], *scale = r->in[SCALE], *zero = grt_run_in(r, ZERO);
    const gather_scales s = *(const gather_scales *)r->shape;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/weight_rows.h"

#include "src/base/tensor.h"

enum { INDICES, W, SCALE, ZERO };

bool grt_weight_rows_read(const grt_op_desc *desc, const grt_tensor *w, const grt_tensor *scale,
                          const grt_tensor *zero, grt_weight_rows *out)
{
    const int64_t block = grt_attr_int(desc, "block_size", 0),
                  axis = grt_axis(grt_attr_int(desc, "axis", 1), 2), n = grt_tensor_elements(scale),
                  rows = w->dims[0], cols = w->dims[1], zeros = zero ? grt_tensor_elements(zero) : 1;
    *out = (grt_weight_rows){0, cols > 0 ? cols : 1, zeros == 1};
    if (w->rank != 2 || (zeros != 1 && zeros != n))
        return false;
    if (block > 0) {
        out->row_step = cols / block + (cols % block != 0);
        out->block = block;
        return axis == 1 && scale->rank == 2 && scale->dims[0] == rows && scale->dims[1] == out->row_step;
    }
    if (n == 1)
        return true;
    if (axis == 0)
        out->row_step = 1;
    else
        out->block = 1;
    return n == (axis == 0 ? rows : cols);
}

grt_status grt_weight_rows_fit(const grt_reshape *r, grt_weight_rows *out)
{
    if (grt_weight_rows_read(r->desc, r->in[W], r->in[SCALE], grt_reshape_in(r, ZERO), out))
        return GRT_OK;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "the weights, scales and zero points do not fit");
}

bool grt_weight_rows_supported(const grt_kernel_node *node, grt_dtype_set weights, grt_dtype_set scales,
                               grt_text *why)
{
    const grt_tensor *zero = grt_node_has(node, ZERO) ? &node->in[ZERO] : NULL;
    grt_weight_rows read;
    const grt_dtype scale = node->n_in > SCALE ? node->in[SCALE].dtype : GRT_DTYPE_NONE;
    const grt_dtype result = scale == GRT_DTYPE_FLOAT8E8M0 ? GRT_DTYPE_FLOAT : scale;
    const bool fits =
        node->n_in > SCALE && grt_dtype_in(node->in[INDICES].dtype, GRT_BIT(INT32) | GRT_BIT(INT64)) &&
        grt_dtype_in(node->in[W].dtype, weights) && node->in[W].rank == 2 && grt_dtype_in(scale, scales) &&
        node->in[SCALE].rank >= 0 && (!node->out[0].dtype || node->out[0].dtype == result) &&
        (!zero || zero->dtype == node->in[W].dtype) &&
        grt_weight_rows_read(node->desc, &node->in[W], &node->in[SCALE], zero, &read);
    if (!fits && why)
        grt_text_add(
            why,
            "a matrix of few bits is needed that this device has a kernel for, with scales for all, for each "
            "row, for each column or for blocks of a row, and a result of their type");
    return fits;
}

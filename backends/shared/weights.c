/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/weights.h"

#include "src/base/element.h"
#include "src/base/tensor.h"

/* Zero points of numbers whose zero is their own: floats. */
static bool are_zero(const grt_tensor *zero)
{
    const int bits = (int)grt_dtype_bits(zero->dtype);
    for (int64_t i = 0; i < grt_tensor_elements(zero); i++)
        if (bits == 8 ? ((const uint8_t *)zero->data)[i] & 127 : grt_packed_get(zero->data, i, bits) & 7)
            return false;
    return true;
}

static bool read_zeros(const grt_tensor *zero, grt_weights *w)
{
    if (!zero->data || zero->rank < 0)
        return false;
    w->zeros = grt_tensor_elements(zero);
    if (w->zeros != 1 && w->zeros != w->scales)
        return false;
    if (!w->is_float)
        return true;
    w->zeros = 0;
    return are_zero(zero);
}

bool grt_weights_read(const grt_kernel_node *node, grt_weights *out)
{
    const grt_tensor *w = &node->in[GRT_WEIGHTS_W], *scale = &node->in[GRT_WEIGHTS_SCALE];
    if (w->rank != 2 || !w->data || scale->rank < 0)
        return false;
    *out = (grt_weights){.transposed = grt_attr_int(node->desc, "transB", 0) != 0,
                         .is_signed = grt_dtype_in(w->dtype, GRT_BIT(INT8) | GRT_BIT(INT4) | GRT_BIT(INT2)),
                         .is_float = grt_dtype_in(w->dtype, GRT_WEIGHTS_FLOATS),
                         .bits = (int)grt_dtype_bits(w->dtype),
                         .block = grt_attr_int(node->desc, "block_size", 0),
                         .scales = grt_tensor_elements(scale)};
    const int64_t along_k = out->transposed ? 1 : 0, axis = grt_axis(grt_attr_int(node->desc, "axis", 1), 2);
    out->k = w->dims[along_k];
    out->n = w->dims[1 - along_k];
    out->by_block = out->block > 0;
    if (out->k < 1 || out->n < 1 ||
        (grt_node_has(node, GRT_WEIGHTS_ZERO) && !read_zeros(&node->in[GRT_WEIGHTS_ZERO], out)))
        return false;
    out->blocks = out->by_block ? (out->k - 1) / out->block + 1 : 1;
    if (out->by_block)
        return axis == along_k && scale->rank == 2 && scale->dims[along_k] == out->blocks &&
               scale->dims[1 - along_k] == out->n;
    out->block = out->k;
    out->by_row = out->scales != 1 && axis == along_k;
    return out->scales == 1 || out->scales == (out->by_row ? out->k : out->n);
}

int64_t grt_weights_scale(const grt_weights *w, int64_t b, int64_t j)
{
    if (!w->by_block)
        return w->scales == 1 ? 0 : j;
    return w->transposed ? j * w->blocks + b : b * w->n + j;
}

uint8_t grt_weights_number(const grt_weights *w, const void *data, int64_t i)
{
    const uint8_t number = w->bits == 8 ? ((const uint8_t *)data)[i] : grt_packed_get(data, i, w->bits);
    return (uint8_t)(number ^ grt_weights_flip(w));
}

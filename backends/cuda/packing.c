/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/packing.h"
#include "backends/cuda/weight_pack.h"

#include "src/base/tensor.h"

#include <string.h>

static const char format[] = "channels last";

bool cuda_packing_differs(const grt_tensor *weights)
{
    return weights->dims[1] > 1 && grt_dims_product(weights->dims, 2, weights->rank) > 1;
}

/* [n, rows, cols] to [n, cols, rows] */
static void cuda_packing_transpose(const char *from, char *to, int64_t n, int64_t rows, int64_t cols,
                                   size_t size)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                memcpy(to + ((i * cols + c) * rows + r) * (int64_t)size,
                       from + ((i * rows + r) * cols + c) * (int64_t)size, size);
}

void cuda_packing_turn(const grt_tensor *weights, void *out_data)
{
    cuda_packing_transpose(weights->data, out_data, weights->dims[0], weights->dims[1],
                           grt_dims_product(weights->dims, 2, weights->rank), grt_dtype_size(weights->dtype));
}

void cuda_packing_describe(const grt_tensor *weights, grt_packing *out_packing)
{
    memcpy(out_packing->format, format, sizeof format);
    out_packing->bytes = grt_tensor_bytes(weights);
}

bool cuda_packing_is(const grt_packing *packing, const grt_tensor *weights)
{
    return !strcmp(packing->format, format) && packing->bytes == grt_tensor_bytes(weights) &&
           weights->rank >= 3;
}

grt_status cuda_packing_unpack(const grt_tensor *packed, const grt_packing *packing, void *out_data)
{
    char type[GRT_TYPE_TEXT_SIZE];
    bool weights;
    GRT_TRY(cuda_weight_unpack(packed, packing, out_data, &weights));
    if (weights)
        return GRT_OK;
    if (!cuda_packing_is(packing, packed) || packed->dtype == GRT_DTYPE_STRING)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "a weight, %s, is packed as '%s' in %zu bytes, which is no format of the CUDA "
                        "backend's; make the "
                        "plan again with graphc optimize",
                        grt_tensor_text(packed, type), packing->format, packing->bytes);
    cuda_packing_transpose(packed->data, out_data, packed->dims[0],
                           grt_dims_product(packed->dims, 2, packed->rank), packed->dims[1],
                           grt_dtype_size(packed->dtype));
    return GRT_OK;
}

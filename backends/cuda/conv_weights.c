/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/conv_weights.h"

#include "backends/cuda/gemm_node.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/packing.h"

#include <stdlib.h>
#include <string.h>

enum { W = 1 };

void cuda_conv_weights_destroy(const cuda_conv_weights *weights)
{
    void *const all[] = {weights->turned_copy, weights->rows, weights->filters};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            cudaFree(all[i]);
}

/* [channels, 1, window] to [window, channels], on the host. */
static void window_first(const char *from, char *to, int64_t channels, int64_t taps, size_t size)
{
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < channels; c++)
            memcpy(to + (t * channels + c) * (int64_t)size, from + (c * taps + t) * (int64_t)size, size);
}

/* Constants that are read with channels last. */
static bool reads_turned(const grt_kernel_node *node)
{
    const grt_tensor *w = &node->in[W];
    return grt_channels_last(node->desc) && w->data && w->rank >= 3 && w->dtype != GRT_DTYPE_DOUBLE &&
           grt_tensor_bytes(w) > 0;
}

/* One filter a channel, or several; those of a single channel are a product of windows and filters. */
static bool is_depthwise(const grt_tensor *w, bool transposed, int64_t groups)
{
    return !transposed && w->dims[1] == 1 &&
           (groups == w->dims[0] || (groups > 1 && w->dims[0] % groups == 0));
}

static grt_status conv_weights_take_packed(const grt_kernel_node *node, bool filters, cuda_conv_weights *out)
{
    out->turned = cuda_packing_is(&node->packing[W], &node->in[W]) && !filters;
    return out->turned ? GRT_OK
                       : grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN,
                                     "the weights are packed as '%s', which this convolution does not read; "
                                     "make the plan again with graphc optimize",
                                     node->packing[W].format);
}

static grt_status upload_turned(const grt_kernel_node *node, bool filters, cuda_conv_weights *out)
{
    const grt_tensor *w = &node->in[W];
    const size_t bytes = grt_tensor_bytes(w);
    char *turned = malloc(bytes);
    if (!turned)
        return grt_fail_memory(bytes);
    if (filters)
        window_first(w->data, turned, w->dims[0], grt_dims_product(w->dims, 2, w->rank),
                     grt_dtype_size(w->dtype));
    else
        cuda_packing_turn(w, turned);
    const grt_status status = cuda_keep(node, turned, bytes, filters ? &out->filters : &out->turned_copy);
    free(turned);
    return status;
}

/* [out_channels, window, channels], each filter padded by zeros. */
static grt_status upload_rows(const grt_kernel_node *node, cuda_conv_weights *out)
{
    const grt_tensor *w = &node->in[W];
    const size_t bytes = grt_tensor_bytes(w), n = (size_t)w->dims[0], filter = bytes / n,
                 padded = (size_t)cuda_gemm_row_length(w) * grt_dtype_size(w->dtype);
    const bool turn = !grt_node_packing(node, W) && cuda_packing_differs(w);
    char *rows = calloc(n, padded), *turned = turn ? malloc(bytes) : NULL;
    grt_status status = rows && (turned || !turn) ? GRT_OK : grt_fail_memory(padded * n);
    if (status == GRT_OK && turn)
        cuda_packing_turn(w, turned);
    for (size_t i = 0; status == GRT_OK && i < n; i++)
        memcpy(rows + i * padded, (turn ? turned : (const char *)w->data) + i * filter, filter);
    if (status == GRT_OK)
        status = cuda_keep(node, rows, padded * n, &out->rows);
    free(turned);
    free(rows);
    return status;
}

static bool wants_rows(const grt_kernel_node *node, bool transposed, int64_t groups)
{
    const grt_tensor *w = &node->in[W];
    return !cuda_is_described(node->device) && cuda_gemm_on(&((const cuda_device *)node->device)->prop) &&
           cuda_gemm_has_type(w->dtype) && !transposed && groups == 1 && cuda_gemm_row_length(w) > 0;
}

grt_status cuda_conv_weights_create(const grt_kernel_node *node, bool transposed, int64_t groups,
                                    cuda_conv_weights *out)
{
    const grt_tensor *w = &node->in[W];
    *out = (cuda_conv_weights){0};
    if (!reads_turned(node))
        return GRT_OK;
    const bool filters = is_depthwise(w, transposed, groups), packed = grt_node_packing(node, W) != NULL;
    if (packed)
        GRT_TRY(conv_weights_take_packed(node, filters, out));
    out->depthwise = filters && !packed;
    if (!packed && !cuda_is_described(node->device) && (filters || cuda_packing_differs(w)))
        GRT_TRY(upload_turned(node, filters, out));
    if (wants_rows(node, transposed, groups))
        GRT_TRY(upload_rows(node, out));
    out->ready = true;
    return GRT_OK;
}

grt_status cuda_conv_weights_pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing,
                                  void **out_data)
{
    const grt_tensor *w = &node->in[W];
    if (i != W || !reads_turned(node) || !cuda_packing_differs(w))
        return GRT_OK;
    *out_data = malloc(grt_tensor_bytes(w));
    if (!*out_data)
        return grt_fail_memory(grt_tensor_bytes(w));
    cuda_packing_turn(w, *out_data);
    cuda_packing_describe(w, out_packing);
    return GRT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, strides and broadcasting of tensor views. */
#include "src/base/tensor.h"

#include "src/base/checked.h"
#include "src/base/element.h"

#include <string.h>

static const struct {
    const char *text;
    size_t bits;
} dtypes[GRT_DTYPE_COUNT] = {[GRT_DTYPE_NONE] = {"none", 0},
#define X(name, number, bits, text) [number] = {text, bits},
                             GRT_DTYPE_LIST(X)
#undef X
};

_Alignas(64) char grt_nothing[64];

const char *grt_dtype_name(grt_dtype dtype)
{
    return dtype > 0 && dtype < GRT_DTYPE_COUNT ? dtypes[dtype].text : "none";
}

size_t grt_dtype_bits(grt_dtype dtype)
{
    return dtype > 0 && dtype < GRT_DTYPE_COUNT ? dtypes[dtype].bits : 0;
}

/* Bytes, strides and places within a tensor fit into int64_t, whatever the dtype, and those along the other
 * dims of a tensor without elements do so too. */
static const int64_t most_elements = (int64_t)1 << 58;

int64_t grt_dims_product(const int64_t *dims, int32_t from, int32_t to)
{
    int64_t n = 1;
    bool zero = false;
    for (int32_t i = from; i < to; i++) {
        zero |= dims[i] == 0;
        if (dims[i] < 0 || !grt_mul_i64(n, dims[i] ? dims[i] : 1, &n) || n > most_elements)
            return -1;
    }
    return zero ? 0 : n;
}

int64_t grt_tensor_elements(const grt_tensor *tensor)
{
    return !tensor || tensor->rank < 0 || tensor->rank > GRT_MAX_RANK
               ? -1
               : grt_dims_product(tensor->dims, 0, tensor->rank);
}

size_t grt_elements_bytes(grt_dtype dtype, int64_t n)
{
    size_t bits;
    if (n < 0 || !grt_mul_size((size_t)n, grt_dtype_bits(dtype), &bits) || bits > SIZE_MAX - 7)
        return SIZE_MAX;
    return (bits + 7) / 8;
}

size_t grt_tensor_bytes(const grt_tensor *tensor)
{
    return tensor ? grt_elements_bytes(tensor->dtype, grt_tensor_elements(tensor)) : SIZE_MAX;
}

bool grt_dims_equal(const int64_t *a, int32_t rank_a, const int64_t *b, int32_t rank_b)
{
    if (rank_a != rank_b)
        return false;
    for (int32_t i = 0; i < rank_a; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

bool grt_tensor_same_type(const grt_tensor *a, const grt_tensor *b)
{
    return a->dtype == b->dtype && grt_dims_equal(a->dims, a->rank, b->dims, b->rank);
}

void grt_dims_strides(const int64_t *dims, int32_t rank, int64_t *out_strides)
{
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        out_strides[i] = stride;
        stride *= dims[i];
    }
}

bool grt_dims_broadcast(const int64_t *a, int32_t rank_a, const int64_t *b, int32_t rank_b, int64_t *out,
                        int32_t *out_rank)
{
    int32_t rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) {
        int64_t x = i < rank - rank_a ? 1 : a[i - (rank - rank_a)];
        int64_t y = i < rank - rank_b ? 1 : b[i - (rank - rank_b)];
        if (x != y && x != 1 && y != 1)
            return false;
        dims[i] = x == 1 ? y : x;
    }
    memcpy(out, dims, (size_t)rank * sizeof *dims);
    *out_rank = rank;
    return true;
}

void grt_broadcast_strides(const int64_t *dims, int32_t rank, int32_t out_rank, int64_t *out_strides)
{
    int64_t stride = 1;
    int32_t lead = out_rank - rank;
    for (int32_t i = 0; i < lead; i++)
        out_strides[i] = 0;
    for (int32_t i = rank - 1; i >= 0; i--) {
        out_strides[lead + i] = dims[i] == 1 ? 0 : stride;
        stride *= dims[i];
    }
}

int64_t grt_tensor_int(const grt_tensor *tensor, int64_t i)
{
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case GRT_DTYPE_INT64:
    case GRT_DTYPE_UINT64:
        return ((const int64_t *)data)[i];
    case GRT_DTYPE_INT32:
        return ((const int32_t *)data)[i];
    case GRT_DTYPE_UINT32:
        return ((const uint32_t *)data)[i];
    case GRT_DTYPE_INT16:
        return ((const int16_t *)data)[i];
    case GRT_DTYPE_UINT16:
        return ((const uint16_t *)data)[i];
    case GRT_DTYPE_INT8:
        return ((const int8_t *)data)[i];
    default: /* UINT8, BOOL */
        return ((const uint8_t *)data)[i];
    }
}

double grt_tensor_double(const grt_tensor *tensor, int64_t i)
{
    return grt_element_get(tensor, i);
}

const char *grt_kind_name(grt_kind kind)
{
    static const char *const names[] = {"tensor", "sequence", "optional", "map"};
    return names[kind];
}

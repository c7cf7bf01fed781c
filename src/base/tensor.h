/* SPDX-License-Identifier: Apache-2.0 */
/* What every room asks of a tensor view: sizes, strides, broadcasting. */
#ifndef GRT_BASE_TENSOR_H
#define GRT_BASE_TENSOR_H

#include "src/base/float.h"
#include "src/base/status.h"

enum {
    GRT_VALUE_ALIGNMENT = 64, /* bytes: of values in an arena, and of ranges that views take within a value */
};

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* Sets of dtypes, one bit each: GRT_DTYPES(FLOAT) | GRT_DTYPES(DOUBLE). */
typedef uint32_t grt_dtype_set;
#define GRT_BIT(name)    (1u << GRT_DTYPE_##name)
#define GRT_SET_FLOATS   (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))
#define GRT_SET_SIGNED   (GRT_BIT(INT8) | GRT_BIT(INT16) | GRT_BIT(INT32) | GRT_BIT(INT64))
#define GRT_SET_UNSIGNED (GRT_BIT(UINT8) | GRT_BIT(UINT16) | GRT_BIT(UINT32) | GRT_BIT(UINT64))
#define GRT_SET_INTS     (GRT_SET_SIGNED | GRT_SET_UNSIGNED)
#define GRT_SET_BYTES    (GRT_BIT(UINT8) | GRT_BIT(INT8))
#define GRT_SET_NUMBERS  (GRT_SET_FLOATS | GRT_SET_INTS)
#define GRT_SET_FLOAT8                                                                                 \
    (GRT_BIT(FLOAT8E4M3FN) | GRT_BIT(FLOAT8E4M3FNUZ) | GRT_BIT(FLOAT8E5M2) | GRT_BIT(FLOAT8E5M2FNUZ) | \
     GRT_BIT(FLOAT8E8M0))
#define GRT_SET_SUBBYTE \
    (GRT_BIT(UINT4) | GRT_BIT(INT4) | GRT_BIT(FLOAT4E2M1) | GRT_BIT(UINT2) | GRT_BIT(INT2))
#define GRT_SET_COMPLEX (GRT_BIT(COMPLEX64) | GRT_BIT(COMPLEX128))
/* All whose elements are whole bytes and plain data. */
#define GRT_SET_PLAIN (GRT_SET_NUMBERS | GRT_BIT(BOOL) | GRT_SET_FLOAT8 | GRT_SET_COMPLEX)
#define GRT_SET_ALL   (GRT_SET_PLAIN | GRT_SET_SUBBYTE | GRT_BIT(STRING))

static inline bool grt_dtype_in(grt_dtype dtype, grt_dtype_set set)
{
    return dtype > 0 && dtype < GRT_DTYPE_COUNT && (set >> dtype & 1u);
}
/* Bytes per element of a type of whole bytes; 0 for sub-byte types. */
static inline size_t grt_dtype_size(grt_dtype dtype)
{
    return grt_dtype_bits(dtype) / 8;
}
/* Bytes of n elements, sub-byte types rounded up; SIZE_MAX on overflow or n < 0. */
size_t grt_elements_bytes(grt_dtype dtype, int64_t n);
/* Product of dims[from..to); -1 if one is negative or the product of those that are not 0 is above 2^58. */
int64_t grt_dims_product(const int64_t *dims, int32_t from, int32_t to);
bool grt_dims_equal(const int64_t *a, int32_t rank_a, const int64_t *b, int32_t rank_b);
/* Row-major strides in elements. */
void grt_dims_strides(const int64_t *dims, int32_t rank, int64_t *out_strides);
/* Numpy broadcasting of two known shapes into out (may alias a or b); false if they do not fit. */
bool grt_dims_broadcast(const int64_t *a, int32_t rank_a, const int64_t *b, int32_t rank_b, int64_t *out,
                        int32_t *out_rank);
/* Strides that walk `dims` (rank) while `out_dims` (out_rank >= rank) is traversed: 0 where broadcast. */
void grt_broadcast_strides(const int64_t *dims, int32_t rank, int32_t out_rank, int64_t *out_strides);
/* Where the element with this row-major index in `dims` lies under strides. */
GRT_INLINE int64_t grt_strided_offset(const int64_t *dims, int32_t rank, const int64_t *strides,
                                      int64_t index)
{
    int64_t offset = 0;
    for (int32_t k = rank - 1; k >= 0; k--) {
        offset += index % dims[k] * strides[k];
        index /= dims[k];
    }
    return offset;
}
/* axis in [-rank, rank) to [0, rank); -1 if out of range. */
static inline int64_t grt_axis(int64_t axis, int32_t rank)
{
    if (axis < -rank || axis >= rank)
        return -1;
    return axis < 0 ? axis + rank : axis;
}
/* Where tensors without elements and workspaces of no size lie in host memory: kernels get an address to
 * reckon from all the same. Nothing is read or written there. */
extern char grt_nothing[64];
/* Element i of an integer tensor (any integer dtype or bool), widened. The dtype must be one of these. */
int64_t grt_tensor_int(const grt_tensor *tensor, int64_t i);
/* Element i of any numeric tensor of whole-byte elements, as double. */
double grt_tensor_double(const grt_tensor *tensor, int64_t i);
/* "tensor", "sequence", "optional", "map". */
const char *grt_kind_name(grt_kind kind);
/* Same dtype and dims; `data` not looked at. */
bool grt_tensor_same_type(const grt_tensor *a, const grt_tensor *b);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

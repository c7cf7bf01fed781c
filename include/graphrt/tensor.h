/* SPDX-License-Identifier: Apache-2.0 */
/* Data types and tensors: views of memory that their caller owns. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_TENSOR_H
#define GRAPHRT_TENSOR_H

#include <graphrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, onnx number, bits per element, text). The numbers are those of ONNX's TensorProto.DataType. Sub-byte elements
 * are packed low bits first; each tensor is padded to whole bytes. BOOL is one byte, 0 or 1. STRING elements are
 * grt_string. */
#define GRT_DTYPE_LIST(X)                                                                                              \
    X(FLOAT, 1, 32, "float32")                                                                                         \
    X(UINT8, 2, 8, "uint8")                                                                                            \
    X(INT8, 3, 8, "int8")                                                                                              \
    X(UINT16, 4, 16, "uint16")                                                                                         \
    X(INT16, 5, 16, "int16")                                                                                           \
    X(INT32, 6, 32, "int32")                                                                                           \
    X(INT64, 7, 64, "int64")                                                                                           \
    X(STRING, 8, 128, "string")                                                                                        \
    X(BOOL, 9, 8, "bool")                                                                                              \
    X(FLOAT16, 10, 16, "float16")                                                                                      \
    X(DOUBLE, 11, 64, "float64")                                                                                       \
    X(UINT32, 12, 32, "uint32")                                                                                        \
    X(UINT64, 13, 64, "uint64")                                                                                        \
    X(COMPLEX64, 14, 64, "complex64")                                                                                  \
    X(COMPLEX128, 15, 128, "complex128")                                                                               \
    X(BFLOAT16, 16, 16, "bfloat16")                                                                                    \
    X(FLOAT8E4M3FN, 17, 8, "float8e4m3fn")                                                                             \
    X(FLOAT8E4M3FNUZ, 18, 8, "float8e4m3fnuz")                                                                         \
    X(FLOAT8E5M2, 19, 8, "float8e5m2")                                                                                 \
    X(FLOAT8E5M2FNUZ, 20, 8, "float8e5m2fnuz")                                                                         \
    X(UINT4, 21, 4, "uint4")                                                                                           \
    X(INT4, 22, 4, "int4")                                                                                             \
    X(FLOAT4E2M1, 23, 4, "float4e2m1")                                                                                 \
    X(FLOAT8E8M0, 24, 8, "float8e8m0")                                                                                 \
    X(UINT2, 25, 2, "uint2")                                                                                           \
    X(INT2, 26, 2, "int2")

typedef enum grt_dtype {
    GRT_DTYPE_NONE = 0,
#define X(name, number, bits, text) GRT_DTYPE_##name = number,
    GRT_DTYPE_LIST(X)
#undef X
    GRT_DTYPE_COUNT
} grt_dtype;

/* "float32", "int64", ...; "none" for GRT_DTYPE_NONE and unknown numbers. The text is static. Threads: any. */
GRT_API const char *grt_dtype_name(grt_dtype dtype);
/* Bits of one element; 0 for GRT_DTYPE_NONE and unknown numbers. Threads: any. */
GRT_API size_t grt_dtype_bits(grt_dtype dtype);

/* One element of a STRING tensor: bytes, not necessarily 0-terminated. */
typedef struct grt_string {
    const char *data;
    size_t size;
} grt_string;

#define GRT_MAX_RANK 16

typedef enum grt_memory {
    GRT_MEMORY_HOST = 0,   /* ordinary host memory */
    GRT_MEMORY_PINNED = 1, /* page-locked host memory: copies to and from devices need no staging */
    GRT_MEMORY_DEVICE = 2, /* memory of device number `device` */
} grt_memory;

/* A view of a dense row-major tensor. It owns nothing: whoever allocated `data` keeps it alive while the view is in
 * use. */
typedef struct grt_tensor {
    grt_dtype dtype;
    int32_t rank;               /* 0 for a scalar; at most GRT_MAX_RANK; -1 if unknown (descriptions of models only) */
    int64_t dims[GRT_MAX_RANK]; /* the first `rank` are read; -1 if unknown (descriptions of models only) */
    void *data;                 /* aligned as its elements are; may be NULL if there are no elements */
    grt_memory memory;
    int32_t device;             /* the device's number, for GRT_MEMORY_DEVICE */
    uint64_t reserved[5];       /* 0 */
} grt_tensor;

/* Number of elements: 1 for a scalar, 0 if a dim is 0, -1 if a dim is unknown or the product of the dims that are not 0
 * exceeds 2^58. Every function refuses larger tensors.
 * Threads: any. */
GRT_API int64_t grt_tensor_elements(const grt_tensor *tensor);
/* Bytes of the elements, sub-byte types rounded up to whole bytes; SIZE_MAX if a dim is unknown or the size overflows.
 * Threads: any. */
GRT_API size_t grt_tensor_bytes(const grt_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif

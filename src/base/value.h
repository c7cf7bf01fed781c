/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time values: tensors, sequences, optionals and maps, with counted memory. */
#ifndef GRT_BASE_VALUE_H
#define GRT_BASE_VALUE_H

#include "src/base/tensor.h"

#ifdef __cplusplus /* CUDA files; whoever includes this within extern "C" has included <atomic> before */
#include <atomic>
using std::atomic_int;
#else
#include <stdatomic.h>
#endif

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* Memory that several values may share (views, sequence items). `release` gets the buffer itself. */
typedef struct grt_buffer {
    atomic_int refs;
    size_t size;
    void *data;
    void (*release)(struct grt_buffer *buffer);
    void *owner;
} grt_buffer;

grt_buffer *
grt_buffer_create(size_t size); /* 64-byte aligned host memory, not zeroed; NULL when out of memory */
grt_buffer *grt_buffer_retain(grt_buffer *buffer);
void grt_buffer_release(grt_buffer *buffer);

/* `t` comes first: a pointer to a tensor value's view is a pointer to the value.
 * TENSOR: t, whose data lies in `buffer`, or is borrowed if buffer is NULL.
 * SEQUENCE: items[0..n). OPTIONAL: n is 0 or 1. MAP: n is 2, tensors of one dim of one size: keys in
 * ascending order, and their values (see value_map.h). t.dtype is the dtype of the tensors inside; of a map,
 * of the values. */
struct grt_value {
    grt_tensor t;
    grt_kind kind;
    grt_buffer *buffer;
    size_t n, capacity;
    struct grt_value *items;
};

/* Releases the content; the value becomes an empty TENSOR. The struct itself is the caller's. */
void grt_value_clear(grt_value *value);
/* dst (cleared first) becomes a second holder of src's content: tensors share their buffer, borrowed data is
 * copied. */
grt_status grt_value_share(grt_value *dst, const grt_value *src);
/* dst (cleared first) becomes a deep copy of src, string bytes included. */
grt_status grt_value_copy(grt_value *dst, const grt_value *src);
/* dst (cleared first) becomes a tensor with memory of its own; string elements are zeroed. */
grt_status grt_value_alloc(grt_value *dst, grt_dtype dtype, int32_t rank, const int64_t *dims);
/* The same, but memory that dst alone holds is used again if it is large enough, and not far too large. */
grt_status grt_value_realloc(grt_value *dst, grt_dtype dtype, int32_t rank, const int64_t *dims);
/* Make room and insert a cleared item at `index` of a sequence; *out_item is that slot. */
grt_status grt_value_insert(grt_value *sequence, size_t index, grt_value **out_item);
/* Copy a tensor into dst with memory of its own; string bytes go behind the elements in the same buffer. */
grt_status grt_value_copy_tensor(grt_value *dst, const grt_tensor *src);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

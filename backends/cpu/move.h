/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided boxes: the engine behind Transpose, Concat, Split, Slice, Expand, Tile, Pad and the
 * like. */
#ifndef GRT_BACKENDS_CPU_MOVE_H
#define GRT_BACKENDS_CPU_MOVE_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/flip.h"

#include <stdlib.h>

/* Room for an axis that is cut into two (Tile, DepthToSpace). */
enum { CPU_MOVE_RANK = 2 * GRT_MAX_RANK };

/* For each index i of `dims`: dst[sum i*to] = src[sum i*from]. Strides are in elements; `from` may be 0 or
 * negative. */
typedef struct cpu_move {
    int32_t rank;
    size_t size; /* bytes of an element: 1, 2, 4, 8 or 16 */
    int64_t dims[CPU_MOVE_RANK], to[CPU_MOVE_RANK], from[CPU_MOVE_RANK];
} cpu_move;

/* Add an axis behind those there are. */
static inline void cpu_move_axis(cpu_move *move, int64_t dim, int64_t to, int64_t from)
{
    move->dims[move->rank] = dim;
    move->to[move->rank] = to;
    move->from[move->rank++] = from;
}
/* Uses up `move`. Source and destination must not overlap. Bigger moves use up to `threads` threads. */
void cpu_move_run(cpu_move *move, void *dst, const void *src, int32_t threads);
/* memcpy and fill, spread over threads when large. */
void cpu_copy(void *dst, const void *src, size_t bytes, int32_t threads);
/* n elements of `size` bytes, all equal to *element. */
void cpu_fill(void *dst, const void *element, size_t size, int64_t n, int32_t threads);

/* Dtypes whose elements can be moved as whole bytes. */
#define CPU_MOVABLE (GRT_SET_PLAIN | GRT_BIT(STRING))
#define CPU_INDEX   (GRT_BIT(INT32) | GRT_BIT(INT64))

/* Zeroed kernel state of `size` bytes; its destroy function is free. */
static inline grt_status cpu_state(size_t size, void **out_state)
{
    *out_state = calloc(1, size);
    return *out_state ? GRT_OK : grt_fail_memory(size);
}
/* Element i of an int32 or int64 tensor. */
static inline int64_t cpu_index(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_INT32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
}
/* Position of the first index that is outside [-size, size), -1 if none is. */
int64_t cpu_index_outside(const grt_tensor *indices, int64_t size);
/* The pointer `i` elements of `size` bytes further. */
static inline void *cpu_at(void *data, int64_t i, size_t size)
{
    return (char *)data + i * (int64_t)size;
}
static inline const void *cpu_at_const(const void *data, int64_t i, size_t size)
{
    return (const char *)data + i * (int64_t)size;
}

#endif

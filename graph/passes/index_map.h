/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps: where the elements of a value lie in the value that they were moved from, whatever nodes moved
 * them.
 *
 * A map has a source, an offset and parts from the outermost to the innermost. A part is a loop of `size`
 * over elements that are `stride` apart; an axis of the value is the product of the parts that name it, and
 * an axis of size 1 has none. Reshape splits and joins parts, Transpose sorts them, Slice, Split and Gather
 * of a range or of one index move the offset, Expand adds parts of stride 0. Sizes and strides are dims, so
 * that maps hold for symbolic shapes too. */
#ifndef GRT_GRAPH_PASSES_INDEX_MAP_H
#define GRT_GRAPH_PASSES_INDEX_MAP_H

#include "graph/ir/ir.h"

enum { INDEX_MAP_PARTS = 24 };

typedef struct index_part {
    grt_dim size, stride; /* stride in elements of the source; 0: repeated */
    int32_t axis;
} index_part;

typedef struct index_map {
    ir_value *source;
    grt_dim offset;
    int32_t rank, n;
    index_part parts[INDEX_MAP_PARTS]; /* their axes do not decrease */
} index_map;

/* The map of dims onto themselves, without a source. False if one is 0 or there are too many. */
bool index_map_of_dims(grt_dims *dims, int32_t rank, const grt_dim *sizes, index_map *map);
/* The map of a value onto what it was moved from, as far back as that can be followed; at worst itself.
 * scale: may be NULL; else products with scalar constants are followed too, and multiply *scale. */
bool index_map_of(ir_value *value, index_map *map, double *scale);
/* The map of a value onto one that it was moved from. False if it was not, or its moves compose to no map. */
bool index_map_onto(ir_value *value, ir_value *source, index_map *map);
/* The value under other dims, in the same order. */
bool index_map_reshape(grt_dims *dims, index_map *map, int32_t rank, const grt_dim *to);
/* Broadcast to dims, as ONNX does. */
bool index_map_expand(grt_dims *dims, index_map *map, int32_t rank, const grt_dim *to);
bool index_map_transpose(index_map *map, const int64_t *perm);
/* Joins those of n parts that follow each other; returns how many are left. Their axes are not looked at. */
int32_t index_parts_join(grt_dims *dims, index_part *parts, int32_t n);
/* a / b, if b is known to divide a. */
bool index_map_divide(grt_dims *dims, grt_dim a, grt_dim b, grt_dim *out);
/* The number of parts of an axis once those that follow each other are joined; they are written to `out`
 * (room for INDEX_MAP_PARTS). */
int32_t index_map_axis(grt_dims *dims, const index_map *map, int32_t axis, index_part *out);
/* True if the axis is one part, or of size 1 (stride 0 then). */
bool index_map_single(grt_dims *dims, const index_map *map, int32_t axis, index_part *out);
/* True if the value is all of the source, in order. */
bool index_map_is_whole(grt_dims *dims, const index_map *map);

#endif

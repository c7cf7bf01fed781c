/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: parts of a value that a Slice takes or a graphrt::WriteSlice writes. */
#ifndef GRT_GRAPH_PASSES_SLICE_BOX_H
#define GRT_GRAPH_PASSES_SLICE_BOX_H

#include "graph/passes/rewrite.h"

enum { MOST_SLICES = 8 }; /* that are followed from a value to what it was cut out of */

/* In each dim `sizes` of a value's elements, `steps` apart. */
typedef struct slice_box {
    int32_t rank;
    int64_t starts[GRT_MAX_RANK], steps[GRT_MAX_RANK];
    grt_dim sizes[GRT_MAX_RANK];
} slice_box;

const grt_dims *slice_box_dims(const ir_value *value);
/* The size of a dim; -1: not known. */
int64_t slice_box_dim(const ir_value *value, int32_t axis);

void slice_box_of_all(const ir_value *value, slice_box *out);
bool slice_box_equal(const slice_box *a, const slice_box *b);
bool slice_box_is_all(const slice_box *b, const ir_value *value);
/* The part `inner` of the part `outer`; out may be one of them. False: it leaves int64, or ranks differ. */
bool slice_box_within(const slice_box *outer, const slice_box *inner, slice_box *out);
/* Steps between single elements mean nothing: boxes that are the same have the same steps. */
void slice_box_normalise(const grt_dims *dims, slice_box *b);

/* The box of its data that a WriteSlice writes; false of other nodes and NULL. */
bool slice_box_of_write(const ir_node *node, slice_box *out);
/* Which part of `whole` is `part`, by one Slice or more; false if it is none. */
bool slice_box_of_part(const ir_value *part, const ir_value *whole, slice_box *out);
/* True if `part` is the slice `where` of `whole`. */
bool slice_box_is_part(const ir_value *part, const ir_value *whole, const slice_box *where);
/* The value that was written to the slice `at` of `value`, last of all; NULL if it is not known. */
ir_value *slice_box_written(const ir_value *value, slice_box at);

#endif

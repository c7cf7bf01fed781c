/* SPDX-License-Identifier: Apache-2.0 */
/* Values that were cut out of another by Split, Slice or Gather of a range, as inputs of an element-wise
 * group: the group reads them where they lie (graphrt::PointwiseParts), and nothing is copied for it. */
#ifndef GRT_GRAPH_PASSES_POINTWISE_PARTS_H
#define GRT_GRAPH_PASSES_POINTWISE_PARTS_H

#include "graph/passes/rewrite.h"

typedef struct pointwise_part {
    ir_value *source;
    int32_t axis; /* of the value */
    int64_t size; /* of the source along it, once it has the value's other dims */
    int64_t start;
} pointwise_part;

/* True if the value is such a part, of which groups' members are the only readers (their marks are not
 * negative), and of ranges of whole vectors. */
bool pointwise_part_of(ir_value *value, pointwise_part *out);
/* The source with the value's dims around the axis, in front of `before`; NULL if it cannot have them. */
ir_value *pointwise_part_source(ir_node *before, const ir_value *value, const pointwise_part *part);

/* True if the value is a Concat along its last axis, by whole vectors, that groups alone read: its parts can
 * be read instead (graphrt::PointwiseConcat). */
bool pointwise_is_joined(const ir_value *value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Permutations: index maps that put all elements of their source into another order, which one Transpose
 * between two Reshapes can do. */
#ifndef GRT_GRAPH_PASSES_PERMUTATION_H
#define GRT_GRAPH_PASSES_PERMUTATION_H

#include "graph/passes/index_map.h"

enum { PERMUTATION_CHAIN = 24 }; /* nodes that are followed, so that a pass stays linear */

typedef struct permutation {
    int32_t n;                     /* 1: the order stays */
    grt_dim dims[INDEX_MAP_PARTS]; /* of the source, its elements grouped as they move */
    int64_t perm[INDEX_MAP_PARTS];
} permutation;

/* The map as a permutation of all of its source; false if it is none. */
bool permutation_of(grt_dims *dims, const index_map *map, permutation *out);
/* The same of n parts in their order, none of which are joined; a part of size 1 may have any stride. */
bool permutation_of_parts(grt_dims *dims, const index_part *parts, int32_t n, const ir_value *source,
                          permutation *out);
/* True if the node is a view or a Transpose. */
bool permutation_moves(const ir_node *node);
/* What such nodes alone made the value of: itself, if none did. */
ir_value *permutation_source(ir_value *value);
/* The source, permuted, by new nodes in front of `before`, as the dims of `rank`. NULL: these cannot be made.
 */
ir_value *permutation_apply(ir_node *before, ir_value *source, const permutation *p, int32_t rank,
                            const grt_dim *to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What ScatterND and ScatterElements by constant indices write, where that is a box. */
#ifndef GRT_GRAPH_PASSES_SCATTER_WRITE_H
#define GRT_GRAPH_PASSES_SCATTER_WRITE_H

#include "graph/passes/slice_box.h"

/* What a node writes: `updates`, which have box.sizes, into the box of `data`. */
typedef struct scatter_write {
    ir_value *data, *updates;
    slice_box box;
    bool adds; /* to what is there */
} scatter_write;

/* False, with nothing changed but nodes that nobody uses, if the node is no such write. Linear in the
 * indices. */
bool scatter_write_read(ir_node *node, scatter_write *out);
/* x with its dims in the order of perm; NULL: no memory. */
ir_value *scatter_write_transposed(ir_node *before, ir_value *x, const int64_t *perm);

#endif

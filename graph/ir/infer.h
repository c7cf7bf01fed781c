/* SPDX-License-Identifier: Apache-2.0 */
/* Inference: types and symbolic dims of values. */
#ifndef GRT_GRAPH_IR_INFER_H
#define GRT_GRAPH_IR_INFER_H

#include "graph/ir/ir.h"

/* Run the rule of a node without bodies and merge the result into its outputs' types. No rule: the outputs
 * stay as declared. */
grt_status infer_by_row(ir_node *node);
/* Give constants of a node the float type of its other inputs, where that is what is meant: infer_mixed.c. */
grt_status infer_mixed(ir_node *node);
/* Hold the dtypes of inputs against the operator's schema: infer_types.c. */
grt_status infer_types(ir_node *node);
/* Reduce all of a scalar that is reduced over axis 0: infer_reduction.c. */
grt_status infer_reduction(ir_node *node);
/* Count axes of a Transpose from the front: infer_permutation.c. */
grt_status infer_permutation(ir_node *node);
/* Warn of values whose declared type is not the one that was inferred: infer_declared.c. */
grt_status infer_declared(ir_module *module);

/* Types of all values of a module, bodies included. */
grt_status ir_infer(ir_module *module);

#endif

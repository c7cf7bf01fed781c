/* SPDX-License-Identifier: Apache-2.0 */
/* Inference and upgrade rules that the files of the pointwise family share. */
#ifndef GRT_GRAPH_OPS_POINTWISE_RULES_H
#define GRT_GRAPH_OPS_POINTWISE_RULES_H

#include "graph/ir/ir.h"

/* Fail unless input i has one of these dtypes (unknown ones pass). */
grt_status pw_infer_dtype(const infer *inf, int32_t i, grt_dtype_set set);
/* Inputs broadcast together; all dtypes equal and in `set`; output 0 has `dtype`, or theirs if NONE. */
grt_status pw_infer_broadcast(infer *inf, grt_dtype_set set, grt_dtype dtype);
/* After that: content of the output if the inputs' contents are known and the op is shape arithmetic. */
void pw_infer_elems(infer *inf);

/* One rule per kind of pointwise.def. */
grt_status pw_infer_FLOAT(infer *inf);
grt_status pw_infer_SIGNED(infer *inf);
grt_status pw_infer_NUMBER(infer *inf);
grt_status pw_infer_INT(infer *inf);
grt_status pw_infer_COMPARE(infer *inf);
grt_status pw_infer_LOGIC(infer *inf);

/* Opset < 7 wrote broadcasting as attributes: `broadcast` = 1 lets B fit a run of A's dims that begins at
 * `axis`. */
grt_status pw_upgrade(ir_node *node, int32_t opset);
/* Insert a view of input `index` that lines its dims up with those of input 0 from `axis` on. */
grt_status pw_align(ir_node *node, int32_t index, int64_t axis);

#endif

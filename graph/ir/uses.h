/* SPDX-License-Identifier: Apache-2.0 */
/* The list of places where a value is used, as nodes' inputs and graphs' outputs keep it. */
#ifndef GRT_GRAPH_IR_USES_H
#define GRT_GRAPH_IR_USES_H

#include "graph/ir/ir.h"

/* `use` becomes one of the value's; NULL: an omitted input. */
void ir_use_link(ir_use *use, ir_value *value);
void ir_use_unlink(ir_use *use);
/* Room for one more of n uses, which move when their array grows; the lists follow. NULL when out of memory.
 */
ir_use *ir_uses_grow(grt_arena *arena, ir_use *old, int32_t n);

#endif

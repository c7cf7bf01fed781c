/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that passes make. They count against the compile's budget as long as something uses them. */
#ifndef GRT_GRAPH_IR_CONSTANT_H
#define GRT_GRAPH_IR_CONSTANT_H

#include "graph/ir/ir.h"
#include "src/base/value.h"

/* A constant of the module's with room for its content, which is undefined; NULL if the budget does not allow
 * it, or out of memory: then the module stays as it is. */
grt_tensor *ir_constant_create(ir_module *module, grt_dtype dtype, int32_t rank, const int64_t *dims);
/* Counts `buffer` and releases it with the module, or once nothing uses it. False when out of memory (the
 * buffer is released then). */
bool ir_constant_adopt(ir_module *module, grt_buffer *buffer);
/* Releases the memory of unused constants. No tensors outside the graph may be held. Cheap unless many
 * constants were made since the last call. */
grt_status ir_constants_collect(ir_module *module);
#endif

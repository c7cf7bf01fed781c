/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of dtypes in messages. */
#ifndef GRT_GRAPH_IR_DTYPE_SET_H
#define GRT_GRAPH_IR_DTYPE_SET_H

#include "src/base/tensor.h"
#include "src/base/text.h"

/* "float32, int64" */
void dtype_set_add_to(grt_text *text, grt_dtype_set set);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Products that look like the last one of an attention, though its form is not the one that is found. */
#ifndef GRT_GRAPH_PASSES_ATTENTION_NEAR_H
#define GRT_GRAPH_PASSES_ATTENTION_NEAR_H

#include "graph/ir/ir.h"

/* Why the product, for which attention_find says nothing, is no attention; NULL if it has nothing to do with
 * one: no softmax of a product of two computed values goes into it, or its other factor is a weight. */
const char *attention_near_miss(const ir_node *last);

#endif

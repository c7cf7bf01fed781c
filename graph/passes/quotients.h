/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of sums of products, as normalised linear attention computes them: q (k v) / (q (k 1)). */
#ifndef GRT_GRAPH_PASSES_QUOTIENTS_H
#define GRT_GRAPH_PASSES_QUOTIENTS_H

#include "graph/ir/ir.h"

/* True if the product of two computed values, itself or multiplied once more, is divided by another such
 * product: only the quotient is bounded, its parts grow with the number of terms. Looks at a bounded number
 * of nodes. */
bool quotients_has_part(const ir_node *product);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that keep a key if several conditions hold, one of which is that it is not later than the query. */
#ifndef GRT_GRAPH_PASSES_CAUSAL_CHOICE_H
#define GRT_GRAPH_PASSES_CAUSAL_CHOICE_H

#include "graph/passes/rewrite.h"

/* The mask of the other conditions, in front of what makes this one; NULL if it is no such mask of n queries
 * and n keys. Queries all of whose keys are hidden stay so: keys are hidden by false or -inf, not by a finite
 * number, with which such a query looks at later keys too. */
ir_value *causal_choice_rest(const ir_value *mask, int64_t n);

#endif

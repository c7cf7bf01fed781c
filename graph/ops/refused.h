/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that have no row. */
#ifndef GRT_GRAPH_OPS_REFUSED_H
#define GRT_GRAPH_OPS_REFUSED_H

/* Why there is none, for a message: the decision about this operator, or that it is not known. */
const char *op_refused_why(const char *domain, const char *op);

#endif

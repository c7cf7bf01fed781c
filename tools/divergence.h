/* SPDX-License-Identifier: Apache-2.0 */
/* Where two models begin to differ, and the report of it. */
#ifndef TOOLS_DIVERGENCE_H
#define TOOLS_DIVERGENCE_H

#include "tools/compare_request.h"
#include "tools/comparison.h"

/* The first tensor beyond the tolerance; NULL if all are within. */
const compared_tensor *divergence_first(const compare_request *request, const comparison *c);
void divergence_print_text(const compare_request *request, const comparison *c);
bool divergence_print_json(const compare_request *request, const comparison *c);

#endif

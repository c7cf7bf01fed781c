/* SPDX-License-Identifier: Apache-2.0 */
/* Running the passes. */
#ifndef GRT_GRAPH_PASSES_PASSES_H
#define GRT_GRAPH_PASSES_PASSES_H

#include "graph/passes/pass.h"

typedef struct pass_row {
    const char *name;
    const char *summary;
    int32_t level; /* runs at this optimisation level and above */
    pass_rounding rounding;
    grt_status (*run)(pass_context *context);
} pass_row;

const pass_row *pass_at(size_t index); /* NULL past the end */
/* Run all enabled passes; verifies the IR after each in debug builds. */
grt_status pass_run_enabled(pass_context *context);

#endif

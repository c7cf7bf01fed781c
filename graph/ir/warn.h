/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings: broken rules with one possible meaning, and the meaning taken. */
#ifndef GRT_GRAPH_IR_WARN_H
#define GRT_GRAPH_IR_WARN_H

#include "src/base/status.h"

struct grt_finding;

typedef struct ir_warnings {
    void (*tell)(void *user, const struct grt_finding *finding); /* NULL: warnings are dropped */
    void *user;
    bool strict; /* a warning is an error */
    int64_t n;   /* so far; they are bounded */
} ir_warnings;

/* Reports a finding of status OK, or that there are more than are shown. */
void ir_warnings_tell(ir_warnings *warnings, const char *node, const char *op, int64_t opset,
                      const char *message);

#endif

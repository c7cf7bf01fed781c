/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of steps that a model must have, as --expect gives them. */
#ifndef TOOLS_EXPECTED_OPS_H
#define TOOLS_EXPECTED_OPS_H

#include <graphrt/graphrt.h>

#include <stdbool.h>

typedef struct expected_op {
    char op[64]; /* "*": any */
    int64_t steps;
    bool at_most;
} expected_op;

typedef struct expected_ops {
    size_t n;
    expected_op *items;
} expected_ops;

/* Adds "OP=N" or "OP<=N". False, with a message, if it is not of that form. */
bool expected_ops_add(expected_ops *ops, const char *text);
/* EXIT_GOOD, or EXIT_CHECK with a message for each op that has another or a larger number of steps, or
 * EXIT_BAD. */
int expected_ops_check(const expected_ops *ops, const grt_model *model);
void expected_ops_release(expected_ops *ops);

#endif

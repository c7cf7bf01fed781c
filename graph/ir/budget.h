/* SPDX-License-Identifier: Apache-2.0 */
/* Budget of one compile for constants that it makes, so that a small model cannot use much memory or time.
 *
 * Constants that passes make (folded nodes; weights that are scaled, joined or narrowed) take bytes of the
 * budget as long as something uses them. What it takes to compute them is taken from the operations for good.
 * What is beyond the budget stays as the model has it and is computed when that runs. */
#ifndef GRT_GRAPH_IR_BUDGET_H
#define GRT_GRAPH_IR_BUDGET_H

#include "src/base/cancel.h"
#include <stddef.h>

struct grt_buffer;

/* A constant's memory. */
typedef struct made_constant {
    struct made_constant *next;
    struct grt_buffer *buffer;
} made_constant;

typedef struct compile_budget {
    size_t bytes, used;         /* what constants may take, and what those that live take */
    double operations;          /* that are left */
    made_constant *made, *free; /* constants' memory; entries to be used again */
    size_t made_since;          /* bytes since the last ir_constants_collect */
    grt_cancel cancel;          /* also asked between nodes that are folded */
} compile_budget;

/* Bytes of constants that a compile of a model of `size` bytes may make: external data counts. */
size_t budget_bytes(size_t size);
/* The budget of a model of `size` bytes; what has been made stays counted. */
void budget_start(compile_budget *budget, size_t size);
/* True if there is room for constants of so many bytes that take so many operations to compute. */
bool budget_allows(const compile_budget *budget, size_t bytes, double operations);
/* Take operations, whether the budget allows them or not. */
void budget_work(compile_budget *budget, double operations);

/* Release all of it, with the module. */
void budget_release(compile_budget *budget);

#endif

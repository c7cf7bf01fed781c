/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a node together: inputs with random content in guarded memory, attributes. The struct is model.h's.
 */
#ifndef GRT_TESTS_DIFFERENTIAL_NODE_H
#define GRT_TESTS_DIFFERENTIAL_NODE_H

#include "tests/differential/model.h"

/* Floats in [-2, 2), whole numbers in [-9, 9]. The tensor is the node's. */
grt_tensor *add_input(node *n, grt_dtype dtype, int32_t rank, const int64_t *dims);
/* A list of int64, a single number: known when the model is compiled, or an input. */
void add_list(node *n, const int64_t *values, int64_t count);
void add_number(node *n, grt_dtype dtype, double value);

void set_int(node *n, const char *name, int64_t value);
void set_real(node *n, const char *name, double value);
void set_ints(node *n, const char *name, const int64_t *values, int count);
void set_text(node *n, const char *name, const char *value);

void node_release(node *n);
/* Nothing was written round the inputs? */
bool node_guards_hold(const node *n);
/* The same node with inputs of its own, those that are computed as they come out. */
void node_settle(const node *n, node *out);
/* The same node in float32, with inputs of its own. */
void node_widen(const node *n, node *out);
/* Op, inputs and attributes in a line. */
void node_describe(const node *n, char *text, size_t size);

#endif

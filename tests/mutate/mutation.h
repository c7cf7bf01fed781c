/* SPDX-License-Identifier: Apache-2.0 */
/* A model with a few changes, such as a faulty exporter makes: attributes, inputs, types, data. */
#ifndef GRT_TESTS_MUTATE_MUTATION_H
#define GRT_TESTS_MUTATE_MUTATION_H

#include "tests/mutate/pool.h"

#include <stdbool.h>

enum { MUTATION_PARTS = 512 };

typedef struct mutation {
    const pool *pool;
    grt_arena *arena; /* all that the model consists of */
    Onnx__ModelProto *model;
    /* What there is to change, subgraphs and functions included. */
    Onnx__GraphProto *graphs[MUTATION_PARTS];
    Onnx__NodeProto *nodes[MUTATION_PARTS];
    Onnx__TensorProto *tensors[MUTATION_PARTS];
    Onnx__ValueInfoProto *values[MUTATION_PARTS];
    size_t n_graphs, n_nodes, n_tensors, n_values;
    char what[600]; /* was changed, for reports */
} mutation;

/* Change the model at one to three places. False if it has nothing to change. */
bool mutate(mutation *m);

/* Changes return false where there is nothing that they could change. Those of one noun stand together in
 * mutate_<noun>.c. */
typedef bool mutation_change(mutation *m);
mutation_change mutate_attribute_drop, mutate_attribute_add, mutate_attribute_retype, mutate_attribute_number,
    mutate_attribute_list;
mutation_change mutate_node_input, mutate_node_output, mutate_node_rewire, mutate_node_op, mutate_node_list;
mutation_change mutate_tensor_dims, mutate_tensor_dtype, mutate_tensor_cut, mutate_tensor_values,
    mutate_tensor_field;
mutation_change mutate_value_dim, mutate_value_rank, mutate_value_dtype, mutate_value_kind,
    mutate_value_known;
mutation_change mutate_opset;

/* Adds to m->what. */
void mutation_tell(mutation *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One of n things: n > 0. */
size_t mutation_pick(size_t n);
/* A copy of a tensor's raw data, of the size that dtype and dims ask for, if that is small. */
void mutation_fit(mutation *m, Onnx__TensorProto *t);

/* Lists of messages and numbers. */
#define MUTATION_REMOVE(list, n, at) \
    (memmove((list) + (at), (list) + (at) + 1, ((n) - (at)-1) * sizeof *(list)), (n)--)
#define MUTATION_APPEND(m, list, n, element)                                     \
    do {                                                                         \
        void *longer_ = grt_arena_alloc((m)->arena, ((n) + 1) * sizeof *(list)); \
        (list) = (n) ? memcpy(longer_, (list), (n) * sizeof *(list)) : longer_;  \
        (list)[(n)++] = (element);                                               \
    } while (0)

#endif

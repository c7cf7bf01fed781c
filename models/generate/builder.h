/* SPDX-License-Identifier: Apache-2.0 */
// Generator of large ONNX models for benchmarks: a graph builder, a streaming writer, and one file per
// model family. Topology is real, weights are random but seeded and well conditioned.
//
// A builder owns every name, node and tensor recipe it hands out until gen_release. Functions never fail:
// this is a tool, and running out of memory for a graph's skeleton ends it with a message. Weights are not
// held in memory at all; the writer computes them while it streams them out.
#ifndef GRT_MODELS_BUILDER_H
#define GRT_MODELS_BUILDER_H

#include <stddef.h>
#include <stdint.h>
#include "proto/onnx.pb-c.h"
#include "fill.h"

// The name of a value in the graph; NULL stands for an optional operand that is left out.
typedef const char *gen_value;

// Dims that are left symbolic.
enum { GEN_BATCH = -1, GEN_SEQUENCE = -2 };

enum gen_dtype {
    GEN_FLOAT32 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    GEN_FLOAT16 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
    GEN_INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    GEN_BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
};

// An initializer: its message without data, and where its bytes come from.
struct gen_tensor {
    Onnx__TensorProto *proto;
    size_t bytes;
    const void *literal; // NULL: computed by fill
    struct gen_fill fill;
};

struct gen {
    Onnx__ModelProto model;
    Onnx__GraphProto graph; // without initializers: the writer streams those after the rest
    enum gen_dtype dtype;   // of weights, activations and scalars
    uint64_t seed;
    struct gen_tensor *tensors;
    size_t n_tensors, cap_tensors, cap_nodes;
    uint64_t parameters; // elements of floating-point initializers
    struct gen_chunk *arena;
};

void gen_init(struct gen *g, const char *graph_name, enum gen_dtype dtype, uint64_t seed);
void gen_release(struct gen *g);

// Zeroed memory that lives as long as the builder.
void *gen_alloc(struct gen *g, size_t bytes);
char *gen_format(struct gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

gen_value gen_input(struct gen *g, const char *name, enum gen_dtype dtype, size_t rank, const int64_t *dims);
// Declares the last node's first output as a graph output and returns it under its new name; the old one is
// void.
gen_value gen_output(struct gen *g, const char *name, size_t rank, const int64_t *dims);

// Appends a node with one output and returns that. GEN_NODE counts the inputs.
gen_value gen_node(struct gen *g, const char *op, size_t n_inputs, const gen_value *inputs);
#define GEN_NODE(g, op, ...) \
    gen_node(g, op, sizeof((gen_value[]){__VA_ARGS__}) / sizeof(gen_value), (gen_value[]){__VA_ARGS__})

// Gives the last node one more output.
gen_value gen_extra_output(struct gen *g);

// Attributes of the last node.
void gen_attr_int(struct gen *g, const char *name, int64_t value);
void gen_attr_ints(struct gen *g, const char *name, size_t n, const int64_t *values);
void gen_attr_float(struct gen *g, const char *name, float value);

// Random weights in the builder's dtype, uniform in [low, high].
gen_value gen_weight(struct gen *g, const char *name, size_t rank, const int64_t *dims, float low,
                     float high);
// The same, with zero mean and the variance gain / fan_in: 2 before a ReLU, 1 otherwise.
gen_value gen_weight_scaled(struct gen *g, const char *name, size_t rank, const int64_t *dims, float gain,
                            int64_t fan_in);

// Small constants. Literal data is copied.
gen_value gen_literal(struct gen *g, enum gen_dtype dtype, size_t rank, const int64_t *dims,
                      const void *data);
gen_value gen_floats(struct gen *g, size_t rank, const int64_t *dims, const float *values);
gen_value gen_scalar(struct gen *g, float value);
gen_value gen_ints(struct gen *g, size_t n, const int64_t *values);
#define GEN_INTS(g, ...) \
    gen_ints(g, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

#endif

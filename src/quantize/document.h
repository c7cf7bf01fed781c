/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX model that is edited: nodes and weights of its main graph in lists, everything else as it was.
 *
 * Messages are shared between a document and its copies and never changed: whoever changes a node changes a
 * copy of it. Weights are views of mapped files or of an arena. */
#ifndef GRT_SRC_QUANTIZE_DOCUMENT_H
#define GRT_SRC_QUANTIZE_DOCUMENT_H

#include "graph/import/messages.h"
#include "src/base/names.h"

/* A constant tensor by name. */
typedef struct document_weight {
    const char *name;
    grt_tensor tensor;
    Onnx__TensorProto *message; /* of strings, which have no other form here; else NULL */
} document_weight;

typedef struct document {
    grt_arena *arena;
    const Onnx__ModelProto *source;
    int64_t opset, ir_version;
    Onnx__NodeProto **nodes;
    size_t n_nodes, node_capacity;
    document_weight **weights;
    size_t n_weights, weight_capacity;
    Onnx__ValueInfoProto **inputs, **outputs;
    size_t n_inputs, n_outputs, output_capacity;
    const char *about; /* metadata entry "graphrt.quantize" of the file; NULL: none */
    names by_name;     /* weights */
    names taken;       /* names of all values */
} document;

/* Read a model. Constants become weights; inputs that only give a weight's default value are removed. Release
 * in any case. */
grt_status document_open(document *d, const compile_source *source);
/* The same lists in an arena of its own; `from` must outlive it. Release in any case. */
grt_status document_copy(document *d, const document *from);
/* The same without nodes. */
grt_status document_copy_frame(document *d, const document *from);
void document_release(document *d);

/* "" if the node has no such input or output. */
const char *node_in(const Onnx__NodeProto *node, size_t i);
const char *node_out(const Onnx__NodeProto *node, size_t i);
/* True if the node is of ONNX's own domain and this op. */
bool node_is(const Onnx__NodeProto *node, const char *op);
const Onnx__AttributeProto *node_attr(const Onnx__NodeProto *node, const char *name);
int64_t node_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise);
float node_float(const Onnx__NodeProto *node, const char *name, float otherwise);
/* What reports call it: its name, or that of its first output. */
const char *node_title(const Onnx__NodeProto *node);

document_weight *document_find(const document *d, const char *name);
/* A name that no value has: `base`, then base_1 and so on. It is taken from then on. NULL: out of memory,
 * which the arena remembers. */
const char *document_name(document *d, const char *base, const char *suffix);

/* These remember a lack of memory in the arena, for document_check. */
Onnx__NodeProto *document_add(document *d, const char *op, const char *name);
void document_keep(document *d, const Onnx__NodeProto *node);
/* A copy that may be changed, at the end of the list; its lists of names are its own. */
Onnx__NodeProto *document_add_copy(document *d, const Onnx__NodeProto *node);
void node_add_in(document *d, Onnx__NodeProto *node, const char *name);
void node_add_out(document *d, Onnx__NodeProto *node, const char *name);
void node_set_int(document *d, Onnx__NodeProto *node, const char *name, int64_t value);
void node_drop_attr(document *d, Onnx__NodeProto *node, const char *name);
document_weight *document_add_weight(document *d, const char *name, const grt_tensor *tensor);
/* An output of the model; dtype FLOAT, any shape. */
void document_add_output(document *d, const char *name);
/* OUT_OF_MEMORY if anything above found none. */
grt_status document_check(const document *d);

/* Call `each` for every name that the node's subgraphs use, their own values included. */
void node_each_captured(const Onnx__NodeProto *node, void (*each)(void *user, const char *name), void *user);

#endif

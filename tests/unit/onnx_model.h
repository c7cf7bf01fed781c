/* SPDX-License-Identifier: Apache-2.0 */
/* Small ONNX models made on the spot: lists are written as text, "a,b,,c". Everything lives in one arena. */
#ifndef GRT_TESTS_ONNX_MODEL_H
#define GRT_TESTS_ONNX_MODEL_H

#include "graph/compile.h"
#include "src/onnx/pb.h"

typedef struct onnx_model {
    grt_arena *arena;
    Onnx__ModelProto *proto; /* IR 10, opset 20, an empty graph "g" */
    Onnx__GraphProto *graph;
} onnx_model;

onnx_model onnx_create(void);
void onnx_release(onnx_model *m);

Onnx__GraphProto *onnx_graph(onnx_model *m, const char *name);
/* Appended to the graph. dims as in "2,batch,?": numbers, symbols, unknown. NULL dims: rank unknown. */
void onnx_input(onnx_model *m, Onnx__GraphProto *g, const char *name, grt_dtype dtype, const char *dims);
void onnx_output(onnx_model *m, Onnx__GraphProto *g, const char *name);
Onnx__NodeProto *onnx_node(onnx_model *m, Onnx__GraphProto *g, const char *op, const char *inputs,
                           const char *outputs);
/* float32 with typed data 0, 1, 2, ... */
Onnx__TensorProto *onnx_tensor(onnx_model *m, const char *name, const char *dims);
Onnx__TensorProto *onnx_raw(onnx_model *m, const char *name, grt_dtype dtype, const char *dims,
                            const void *data, size_t size);
void onnx_initializer(onnx_model *m, Onnx__GraphProto *g, Onnx__TensorProto *tensor);

Onnx__AttributeProto *onnx_attr(onnx_model *m, Onnx__NodeProto *node, const char *name, int type);
void onnx_attr_int(onnx_model *m, Onnx__NodeProto *node, const char *name, int64_t value);

void onnx_opset(onnx_model *m, const char *domain, int64_t version);
Onnx__FunctionProto *onnx_function(onnx_model *m, const char *domain, const char *name, const char *inputs,
                                   const char *outputs);
Onnx__NodeProto *onnx_function_node(onnx_model *m, Onnx__FunctionProto *f, const char *domain, const char *op,
                                    const char *inputs, const char *outputs);

/* The file's bytes, in the arena. */
grt_string onnx_bytes(onnx_model *m);
void onnx_write(onnx_model *m, const char *path);
/* The plan that is made of the model's file; options may be NULL. */
void onnx_compile(onnx_model *m, const grt_compile_options *options, const char *plan);

grt_status onnx_import(onnx_model *m, ir_module **out_module);
/* From memory, and by way of a plan's file, where constants are packed. The caller releases the model. */
grt_model *onnx_open(onnx_model *m, grt_runtime *runtime);
grt_model *onnx_open_plan(onnx_model *m, grt_runtime *runtime, const grt_compile_options *options);

/* x (float32 [2,3]) -> Relu -> y. */
onnx_model onnx_relu(void);
/* x (float32 [2]) -> my.twice -> y, where twice(a) = once(once(a)), once(a) = LeakyRelu(a, alpha = ref
 * slope). */
onnx_model onnx_functions(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the inputs of an operator may be, as the schemas of ONNX and of ONNX Runtime say it: dtypes, and which
 * inputs have one dtype. Asked of a model's nodes, not of those that rewrites and passes make: infer_types.c.
 */
#ifndef GRT_GRAPH_IR_INPUT_TYPES_H
#define GRT_GRAPH_IR_INPUT_TYPES_H

#include "src/base/tensor.h"

enum { MAX_INPUT_TYPES = 32 }; /* that the schema of one operator lists */

typedef struct input_type {
    const char *parameter; /* inputs of one type parameter have one dtype; "": a type of its own */
    grt_dtype_set dtypes;  /* of a tensor here; 0: any */
    bool repeated;         /* this and all further inputs */
} input_type;

typedef struct input_types {
    const char *domain, *op;
    const input_type *inputs; /* of the newest form; `dtypes` are those of all its forms */
    int32_t n;
} input_types;

/* NULL if neither the standard nor ONNX Runtime has a schema of an operator with inputs by that name. */
const input_types *input_types_find(const char *domain, const char *op);
/* All, in the order of domains and names; NULL past the end. */
const input_types *input_types_at(size_t index);

#endif

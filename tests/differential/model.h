/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models of one node and what prepares its inputs, written byte by byte, so that programs that test
 * through the public API need nothing else. */
#ifndef GRT_TESTS_DIFFERENTIAL_MODEL_H
#define GRT_TESTS_DIFFERENTIAL_MODEL_H

#include <graphrt/graphrt.h>

enum { MAX_INPUTS = 9, MAX_ATTRIBUTES = 10, MAX_INTS = 2 * GRT_MAX_RANK };

typedef struct attribute {
    const char *name, *text; /* text: a string */
    int64_t ints[MAX_INTS];
    int n; /* of ints; -1: one number, not a list; -2: a real number instead */
    float real;
} attribute;

/* An input that DequantizeLinear makes of constants, or of what QuantizeLinear makes of it. Its tensor in the
 * node has what comes out. */
typedef struct coded {
    grt_tensor codes, scale, zero; /* codes.data NULL: the input is not coded; zero.data NULL: omitted */
    int64_t axis, block;           /* block 0: none */
    bool turned;                   /* a Transpose of its two dims follows */
    bool rounded;                  /* by QuantizeLinear, which changes nothing; there are no codes then */
} coded;

typedef struct node {
    const char *op;
    const char *domain; /* NULL: ONNX's own */
    const char *then;   /* an op of one input behind it; NULL: none */
    attribute attributes[MAX_ATTRIBUTES];
    int n_attributes, n_in;
    grt_tensor in[MAX_INPUTS];
    bool constant[MAX_INPUTS]; /* an initializer instead of an input */
    bool preset[MAX_INPUTS];   /* an initializer that an input may replace */
    bool omitted[MAX_INPUTS];
    bool computed[MAX_INPUTS]; /* its rows, the last one first: a value that a step makes and the node may
                                  overwrite */
    bool around;               /* input 0 has rows on both sides of its steps: they are moved behind these */
    grt_dtype out;
    const char *precision; /* that it is compiled with; NULL: none */
    int n_more, which;     /* outputs beside the one that is the model's; its place among them */
    coded coded[MAX_INPUTS];
    bool joined; /* the last input is none of the node's: a Concat along joined_axis puts it behind the
                    result, or, joined_first, in front of it */
    bool joined_first;
    int64_t joined_axis;
    bool wide; /* compared with what float32 gives, not with its own type on the CPU */
} node;

/* The file's bytes, malloc'ed; NULL when out of memory. */
void *model_bytes(const node *n, size_t *out_size);

#endif

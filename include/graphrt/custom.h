/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators. Part of <graphrt/graphrt.h>, whose rules hold.
 *
 * An operator that a program brings: what ONNX says of one (domain, name, attributes), a rule that tells outputs' types
 * from inputs', and functions that compute. Models and plans use it like any other, in all sessions of the process; a
 * plan with one needs it again where it is opened. Functions are called from any thread, several at once, and must not
 * call into this library but through the host's functions. examples/custom_ops.c is one in a shared object. */
#ifndef GRAPHRT_CUSTOM_H
#define GRAPHRT_CUSTOM_H

#include <graphrt/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_attribute_kind {
    GRT_ATTRIBUTE_INT = 0,
    GRT_ATTRIBUTE_FLOAT,
    GRT_ATTRIBUTE_STRING,
    GRT_ATTRIBUTE_TENSOR,
    GRT_ATTRIBUTE_INTS,
    GRT_ATTRIBUTE_FLOATS,
    GRT_ATTRIBUTE_STRINGS
} grt_attribute_kind;

typedef struct grt_custom_attribute {
    const char *name;
    grt_attribute_kind kind;
    bool required;
    uint64_t reserved[6]; /* 0 */
} grt_custom_attribute;

/* A dim in a shape rule: a size, or an expression of sizes that only a run knows. Below 0: nothing is known of it. */
typedef int32_t grt_custom_dim;

typedef struct grt_custom_type {
    grt_dtype dtype;                   /* NONE: not known; of inputs also: left out */
    int32_t rank;                      /* -1: not known */
    grt_custom_dim dims[GRT_MAX_RANK];
    const grt_tensor *value;           /* inputs: the content in host memory, where it is known; else NULL */
    uint64_t reserved[6];              /* 0 */
} grt_custom_type;

struct grt_custom_host;
/* One node of a model, during a call. */
typedef struct grt_custom_node {
    size_t struct_size; /* set by the library, as in all structs that it gives to these functions */
    const char *name;
    size_t n_inputs, n_outputs; /* as the node lists them, those left out included */
    const struct grt_custom_host *host;
    const void *internal;
} grt_custom_node;

/* What functions of operators may ask of the library. Attributes: false, and nothing is written, if the node does not
 * have it, or of another kind; what they point to lives as long as the node, which is as long as the state of its
 * kernel. */
typedef struct grt_custom_host {
    size_t struct_size;
    bool (*get_int)(const grt_custom_node *node, const char *name, int64_t *out_value);
    bool (*get_float)(const grt_custom_node *node, const char *name, float *out_value);
    bool (*get_string)(const grt_custom_node *node, const char *name, grt_string *out_value);
    bool (*get_tensor)(const grt_custom_node *node, const char *name, grt_tensor *out_value);
    bool (*get_ints)(const grt_custom_node *node, const char *name, const int64_t **out_values, size_t *out_n);
    bool (*get_floats)(const grt_custom_node *node, const char *name, const float **out_values, size_t *out_n);
    bool (*get_strings)(const grt_custom_node *node, const char *name, const grt_string **out_values, size_t *out_n);
    /* Returns status; the message follows the node's name in grt_last_error. */
    grt_status (*fail_node)(const grt_custom_node *node, grt_status status, const char *message);
    /* In shape rules only. dim_value: false if the size is not known before a run. dim_compute: operation is + - * /
     * (rounded down) ^ (divided and rounded up) % < (the smaller) > (the larger). */
    grt_custom_dim (*dim_constant)(const grt_custom_node *node, int64_t size);
    bool (*dim_value)(const grt_custom_node *node, grt_custom_dim dim, int64_t *out_size);
    grt_custom_dim (*dim_compute)(const grt_custom_node *node, char operation, grt_custom_dim a, grt_custom_dim b);
} grt_custom_host;

/* One execution of a node. Tensors that are left out are NULL; outputs have their dims and memory. On CUDA all data is
 * in the device's memory, and what is done with it must be enqueued on `stream`, which may be capturing: nothing may
 * wait for the device. */
typedef struct grt_custom_run {
    size_t struct_size;
    const grt_custom_node *node;
    const grt_tensor *const *inputs;
    grt_tensor *const *outputs;
    int32_t threads; /* CPU: of the session; OpenMP's regions have one where grt_runtime_set_threads lets the run have
                        no more */
    void *stream;    /* a cudaStream_t; NULL on the CPU */
} grt_custom_run;

/* Zero it, then set struct_size. Texts and lists are copied. */
typedef struct grt_custom_op {
    size_t struct_size;
    const char *domain;           /* not ai.onnx, ai.onnx.ml or graphrt */
    const char *name;             /* not one that the library has in that domain */
    size_t min_inputs, max_inputs; /* max: SIZE_MAX for no limit */
    size_t min_outputs, max_outputs;
    const grt_custom_attribute *attributes; /* nodes with others are refused */
    size_t n_attributes;
    const uint64_t *input_dtypes; /* of each input the dtypes that run takes, as 1 << GRT_DTYPE_...; 0: any. The last
                                     holds for all that follow */
    size_t n_input_dtypes;        /* 0: all take any */
    bool random;                  /* two runs differ: its results are never computed at compile time */
    /* Fill in the outputs' types, which begin as unknown; they cannot be STRING. Called at compile time, where dims may
     * not be known, and for runs whose dims depend on data: the rank, and every dim, must follow from the inputs' once
     * these are known. */
    grt_status (*infer)(void *user, const grt_custom_node *node, const grt_custom_type *inputs,
                        grt_custom_type *outputs);
    /* Optional: once a session, for attributes; *out_state is NULL before. And its end. */
    grt_status (*create)(void *user, const grt_custom_node *node, void **out_state);
    void (*release)(void *user, void *state);
    /* On the CPU; NULL: it cannot. Not called where an output has no elements. */
    grt_status (*run)(void *user, void *state, const grt_custom_run *run);
    /* On CUDA devices, the session's being current; NULL: it cannot. */
    grt_status (*run_cuda)(void *user, void *state, const grt_custom_run *run);
    void *user;
} grt_custom_op;

/* Register n operators for the life of the process, all or none; all ops[i] have the same struct_size. They serve
 * models that are opened or compiled afterwards.
 * Threads: any. Errors: INVALID_ARGUMENT (names the operator). */
GRT_API GRT_MUST_USE grt_status grt_custom_ops_register(const grt_custom_op *ops, size_t n);
/* Open a shared object, which executes its code, and register what its function graphrt_custom_ops returns. It is never
 * closed. A path without '/' is a file of the current directory. To load the same object again does nothing.
 * Threads: any. Errors: IO, and as grt_custom_ops_register. */
GRT_API GRT_MUST_USE grt_status grt_custom_ops_load(const char *path);
/* What such an object exports by that name: its operators, which must stay where they are, and their number. */
typedef const grt_custom_op *grt_custom_ops_fn(size_t *out_n);
#define GRT_CUSTOM_OPS_SYMBOL "graphrt_custom_ops"

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One operator instance, as the graph, the plan and the kernels all see it: domain, op, attributes. */
#ifndef GRT_BASE_OP_DESC_H
#define GRT_BASE_OP_DESC_H

#include "src/base/arena.h"
#include "src/base/tensor.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

struct ir_graph;

typedef enum grt_attr_kind {
    GRT_ATTR_INT = 0,
    GRT_ATTR_FLOAT,
    GRT_ATTR_STRING,
    GRT_ATTR_TENSOR,
    GRT_ATTR_INTS,
    GRT_ATTR_FLOATS,
    GRT_ATTR_STRINGS,
    GRT_ATTR_GRAPH, /* `graph` while compiling; `body` (index of the plan's body) afterwards */
    GRT_ATTR_TYPE,  /* type_kind, type_dtype: what an Optional without input would hold */
} grt_attr_kind;

/* Views: whoever made the attribute (IR arena, plan) owns what it points to. Strings are 0-terminated as well
 * as sized. */
typedef struct grt_attr {
    const char *name;
    grt_attr_kind kind;
    union {
        int64_t i;
        float f;
        grt_string s;
        const grt_tensor *t;
        struct {
            const int64_t *v;
            size_t n;
        } ints;
        struct {
            const float *v;
            size_t n;
        } floats;
        struct {
            const grt_string *v;
            size_t n;
        } strings;
        struct ir_graph *graph;
        int64_t body;
        struct {
            grt_kind kind;
            grt_dtype dtype;
        } type;
    };
} grt_attr;

/* Attribute of Loop and Scan, made by import: the shapes that the source declares of the body's outputs, each
 * as rank and dims, -1 where it says nothing. */
#define GRT_ATTR_DECLARED "declared_outputs"

typedef struct grt_op_desc {
    const char *domain; /* "" is ai.onnx; "graphrt" is our own */
    const char *op;
    const char *name; /* source node names, for messages; never NULL */
    const grt_attr *attrs;
    size_t n_attrs;
} grt_op_desc;

/* NULL if absent. Never looked up on the run path: kernels read attributes in create. */
const grt_attr *grt_attr_find(const grt_op_desc *desc, const char *name);
/* The attribute's value, or `fallback` if it is absent or of another kind (import has checked kinds). */
int64_t grt_attr_int(const grt_op_desc *desc, const char *name, int64_t fallback);
float grt_attr_float(const grt_op_desc *desc, const char *name, float fallback);
const char *grt_attr_string(const grt_op_desc *desc, const char *name, const char *fallback);
/* True if attribute `layout` says that channels are the last dim of the data ("NHWC"). */
bool grt_channels_last(const grt_op_desc *desc);
/* NULL and *out_n = 0 if absent. */
const int64_t *grt_attr_ints(const grt_op_desc *desc, const char *name, size_t *out_n);
const float *grt_attr_floats(const grt_op_desc *desc, const char *name, size_t *out_n);
const grt_string *grt_attr_strings(const grt_op_desc *desc, const char *name, size_t *out_n);
const grt_tensor *grt_attr_tensor(const grt_op_desc *desc, const char *name);
bool grt_op_is(const grt_op_desc *desc, const char *domain, const char *op);

/* grt_fail with "Conv node 'layer1/conv': " before the message. */
grt_status grt_fail_op(const grt_op_desc *desc, grt_status status, const char *format, ...) GRT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

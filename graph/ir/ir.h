/* SPDX-License-Identifier: Apache-2.0 */
/* The graph while it is compiled: modules, graphs, nodes, values and their uses.
 *
 * Everything lives in the module's arena. A graph is a list of nodes in topological order; bodies of If, Loop
 * and Scan are graphs that may use values of the graphs around them. Past import every node is in its op's
 * newest form; past inference all are of ai.onnx, ai.onnx.ml or our own domain. */
#ifndef GRT_GRAPH_IR_IR_H
#define GRT_GRAPH_IR_IR_H

#include "graph/ir/budget.h"
#include "graph/ir/op.h"
#include "graph/ir/warn.h"
#include "src/base/dim.h"
#include "src/base/op_desc.h"

typedef struct ir_module ir_module;
typedef struct ir_graph ir_graph;
typedef struct ir_value ir_value;

/* One place where a value is used: input `index` of `node`, or, if node is NULL, output `index` of `graph`.
 */
typedef struct ir_use {
    ir_value *value; /* NULL: omitted optional input */
    ir_node *node;
    ir_graph *graph;
    int32_t index;
    struct ir_use *next, **link; /* list of the value's uses */
} ir_use;

struct ir_value {
    const char *name; /* unique in the module after import; never NULL */
    ir_type type;
    ir_graph *graph;   /* where it is defined */
    ir_node *producer; /* NULL for graph inputs and constants */
    int32_t out_index; /* of producer */
    bool is_input;     /* of its graph */
    ir_use *uses;
    int32_t n_uses; /* uses, not users: Add(y, y) counts 2; graph outputs count */
    int64_t mark;   /* scratch of the pass that runs */
};

struct ir_node {
    grt_op_desc desc;  /* desc.attrs is replaced, not edited: see ir_attr_set */
    const op_row *row; /* NULL only for an op that no row knows (kept so that check can list it) */
    int32_t opset;     /* that the source node was written for */
    bool check_types;  /* a node of the model's: inference has yet to look at its inputs' dtypes */
    int32_t n_in, n_out;
    ir_use *in;     /* in[i].value may be NULL */
    ir_value **out; /* out[i] may be NULL */
    ir_graph *graph;
    ir_node *prev, *next;
    int64_t mark;
};

struct ir_graph {
    ir_module *module;
    ir_node *parent; /* the node whose body this is; NULL for the main graph */
    const char *name;
    ir_node *first, *last;
    int32_t n_nodes;
    ir_value **inputs;   /* of the main graph: without initializers that are not also inputs */
    ir_value **defaults; /* per input: the constant it takes when unset (overridable initializer), or NULL */
    int32_t n_inputs;
    ir_use *outputs;
    const char **output_names; /* the interface's; the values may have others after rewrites */
    int32_t n_outputs;
    const int64_t *declared; /* of an imported body: as in GRT_ATTR_DECLARED */
    size_t n_declared;
};

/* What the model says of a value that a node makes. */
typedef struct ir_declared {
    struct ir_declared *next;
    const ir_value *value;
    grt_dtype dtype;     /* NONE: nothing */
    int32_t rank;        /* -1: nothing */
    const int64_t *dims; /* -1: nothing, or a name */
} ir_declared;

struct ir_module {
    grt_arena *arena;
    grt_dims *dims;
    ir_graph *main;
    const char *producer;
    grt_metadata metadata;
    int64_t opset; /* of ai.onnx in the source */
    int64_t ir_version;
    int64_t source_nodes; /* as imported, functions inlined, bodies included */
    int64_t next_id;      /* for fresh names */
    bool has_bodies;      /* there has been a graph besides the main one */
    compile_budget budget;
    ir_declared *declared;
    ir_warnings warnings;
};

grt_status ir_module_create(ir_module **out_module);
void ir_module_release(ir_module *module);
ir_graph *ir_graph_create(ir_module *module, ir_node *parent, const char *name);

/* Builders return NULL only when the module's arena has failed; passes check that once, at their end. */

/* A value without producer: constant, graph input, or to be some node's output. name NULL: a fresh one from
 * `hint`. */
ir_value *ir_value_create(ir_graph *graph, const char *name);
ir_value *ir_value_fresh(ir_graph *graph, const char *hint);
/* A fresh name in place of its own: the value is no longer the model's tensor of that name. */
void ir_value_forget_name(ir_value *value);
/* A constant of the graph that shares `tensor` (which must live as long as the module). */
ir_value *ir_constant(ir_graph *graph, const char *name, const grt_tensor *tensor);
/* Constants with a copy of the data, for rewrites. */
ir_value *ir_constant_ints(ir_graph *graph, const char *hint, const int64_t *values,
                           int64_t n);                                       /* int64[n] */
ir_value *ir_constant_int(ir_graph *graph, const char *hint, int64_t value); /* int64 scalar */
/* Scalar of a float or integer dtype, converted from double. */
ir_value *ir_constant_scalar(ir_graph *graph, const char *hint, grt_dtype dtype, double value);

/* Append or insert a node. `op` is looked up in the op table. name: the source nodes' names (provenance).
 * Outputs are fresh values; with n_out == 1 the common case is ir_node_out(node). */
ir_node *ir_node_create(ir_graph *graph, ir_node *before, const char *domain, const char *op,
                        const char *name, int32_t n_in, ir_value *const *in, int32_t n_out);
static inline ir_value *ir_node_out(const ir_node *node)
{
    return node ? node->out[0] : NULL;
}
/* Unlink a node from its graph. Its outputs must have no uses left. */
void ir_node_remove(ir_node *node);
void ir_node_move_before(ir_node *node, ir_node *before); /* within one graph; before NULL: to the end */
void ir_node_set_input(ir_node *node, int32_t index, ir_value *value);
void ir_node_add_input(ir_node *node, ir_value *value);
void ir_node_drop_inputs(ir_node *node, int32_t from); /* inputs from.. are removed */
static inline ir_value *ir_in(const ir_node *node, int32_t index)
{
    return index < node->n_in ? node->in[index].value : NULL;
}
void ir_graph_add_input(ir_graph *graph, ir_value *value, ir_value *default_value);
void ir_graph_add_output(ir_graph *graph, ir_value *value);
void ir_graph_set_output(ir_graph *graph, int32_t index, ir_value *value);
/* Every use of `from`, graph outputs included, becomes a use of `to`. */
void ir_value_replace(ir_value *from, ir_value *to);

/* Attributes. Setting replaces an attribute of that name or adds one. */
void ir_attr_set(ir_node *node, grt_attr attr);
void ir_attr_set_int(ir_node *node, const char *name, int64_t value);
void ir_attr_set_float(ir_node *node, const char *name, float value);
void ir_attr_set_string(ir_node *node, const char *name, const char *value);
void ir_attr_set_ints(ir_node *node, const char *name, const int64_t *values, size_t n);
void ir_attr_remove(ir_node *node, const char *name);
void ir_attrs_copy(ir_node *to, const ir_node *from);
/* Turn the node into another op in place (same inputs, outputs, attributes); it is no longer one of the
 * model's. */
void ir_node_become(ir_node *node, const char *domain, const char *op);
/* desc.name of `node` becomes "its name+other's": for fusions. */
void ir_node_absorb_name(ir_node *node, const ir_node *other);

/* Known content of a constant. */
bool ir_const_ints(const ir_value *value, const int64_t **out_values,
                   int64_t *out_n);                            /* int64/int32 data (int32 copied) */
bool ir_const_int(const ir_value *value, int64_t *out);        /* one of them */
bool ir_const_float(const ir_value *value, double *out_value); /* one-element float or int */
/* True if a node makes the value and one use reads it: what a pattern may replace. */
bool ir_is_inner(const ir_value *value);
bool ir_node_is_unused(const ir_node *node); /* no use of any of its outputs */
bool ir_node_has_body(const ir_node *node);  /* a graph among its attributes */

#define IR_FOR_EACH_NODE(node, graph)                                                         \
    for (ir_node *node = (graph)->first, *node##_next; node && (node##_next = node->next, 1); \
         node = node##_next)

/* Zero: the marks of all values that the graph's nodes read or make, and of its inputs. */
void ir_clear_marks(ir_graph *graph);
/* Call `visit` for each graph below `graph` and for itself, bodies first. */
grt_status ir_graph_walk(ir_graph *graph, grt_status (*visit)(ir_graph *graph, void *user), void *user);
/* For messages: "'x' float32[Nx3], none, 'w' float32[8x3]". */
void ir_node_add_inputs(const ir_node *node, grt_text *text);
/* Checks order, use lists, ownership, types; INTERNAL with the culprit named. Runs after every pass in debug
 * builds. */
grt_status ir_verify(const ir_module *module);

/* A warning about a node of the module; INVALID_MODEL with the same text if it is strict. */
grt_status ir_warn(ir_module *module, const ir_node *node, const char *format, ...) GRT_PRINTF(3, 4);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the import room share. The door to the room is ir_import in graph/import/import.h.
 *
 * One importer per model. It walks the unpacked messages once, in file order, and builds the IR as it goes;
 * scopes say what a name means. Problems go through problem(): either import stops at the first, or all are
 * collected. */
#ifndef GRT_GRAPH_IMPORT_IMPORTER_H
#define GRT_GRAPH_IMPORT_IMPORTER_H

#include "graph/ir/ir.h"
#include "graph/ir/op.h"
#include "src/base/file_map.h"
#include "src/base/names.h"
#include "src/onnx/pb.h"

/* Limits on how a small file may expand. */
enum {
    MAX_FUNCTIONS = 10000,
    MAX_CALL_DEPTH = 100,
    MAX_SCOPE_DEPTH = 200, /* subgraphs and calls together: import recurses */
    MAX_INLINED_NODES = 500000,
    MAX_ATTRIBUTES = 1024, /* of one node or function */
    MAX_OPSETS = 256       /* of a model or function */
};

/* Opset versions by domain: of the model, or of one function. */
typedef struct opsets {
    Onnx__OperatorSetIdProto **list;
    size_t n;
    int32_t fallback; /* version of ai.onnx if it is not listed (IR < 3), or 0 */
} opsets;

struct scope;

/* An attribute's value given by a call to a function, and the scope that its names and references belong to.
 */
typedef struct call_attr {
    const char *name;
    const Onnx__AttributeProto *proto;
    struct scope *scope;
} call_attr;

/* A function body being inlined. */
typedef struct call {
    const Onnx__FunctionProto *function;
    struct call *outer; /* of the call that this one is inside of */
    const char *prefix; /* of node and value names: "call/" */
    call_attr *attrs;
    size_t n_attrs;
    int32_t depth;
} call;

/* What the names of one graph, or one function body, mean. `thing` of an entry is a value, PENDING or
 * OMITTED. */
typedef struct scope {
    struct scope *outer; /* NULL for the main graph and for function bodies: they see nothing around them */
    names table;
    ir_graph *graph; /* where nodes go; a function body shares its caller's */
    const opsets *opsets;
    call *call; /* NULL outside functions */
} scope;

typedef struct external_file {
    struct external_file *next;
    const char *location;
    const uint8_t *data;
    size_t size;
    grt_file_map map; /* empty: the caller has given the data */
} external_file;

typedef struct importer {
    const struct compile_source *source;
    const Onnx__ModelProto *model;
    ir_module *module;
    grt_arena *arena;   /* the module's */
    grt_arena *scratch; /* messages and tables: gone after import */
    int64_t ir_version;
    opsets opsets;
    names functions;    /* "domain\x1fname\x1foverload" */
    names used;         /* value names of the module */
    names domains_told; /* domains whose version was complained about */
    external_file *files;
    int64_t inlined;    /* nodes that came from functions */
    int32_t depth;      /* of graphs and calls that are being imported, each inside the one before */
    size_t dense_bytes; /* of sparse tensors */
    names
        tensors; /* tensors of functions' bodies, by address: each is read once however often it is inlined */
    size_t size; /* of the model in bytes */
    int64_t serial; /* ir_value.mark of nodes' outputs during import: the order in which they were made */
    void (*each)(void *user, const grt_finding *finding); /* NULL: stop at the first problem */
    void *user;
    int64_t n_problems;
    names node_names; /* of nodes: to see which are shared */
    names dims_told;  /* names of dims that were warned of */
    /* import_node: graphs and functions have nodes, whose attributes have graphs. The one call that runs
     * upwards. */
    grt_status (*node)(struct importer *imp, scope *s, const Onnx__NodeProto *proto);
} importer;

/* What a problem is about. */
typedef struct culprit {
    const char *node, *op;
    int64_t opset;
} culprit;

/* Report a rule that the model breaks. Returns GRT_OK if import shall go on (all problems are collected),
 * else the failure. */
grt_status problem(importer *imp, const culprit *who, const char *format, ...) GRT_PRINTF(3, 4);
/* Report a broken rule with one possible meaning; the message names the meaning taken. An error if `strict`.
 */
grt_status warning(importer *imp, const culprit *who, const char *format, ...) GRT_PRINTF(3, 4);
/* The same as problem() with the thread's current message, and any status: OUT_OF_MEMORY and IO always stop.
 */
grt_status problem_from(importer *imp, const culprit *who, grt_status status);

static inline const char *text_or_empty(const char *text)
{
    return text ? text : "";
}
/* "" for ai.onnx. */
const char *domain_of(const char *domain);

/* types.c. The name is in a comma-separated list, or the list is "*"; NULL lists nothing. */
bool import_listed(const char *list, const char *name);

/* scope.c. define: `name` now means `value`; *out_fresh (may be NULL) says whether it could keep its name in
 * the module. */
grt_status scope_define(importer *imp, scope *s, const culprit *who, const char *name, ir_value *value);
/* From here on the name means another value of the same graph. */
grt_status scope_redefine(importer *imp, scope *s, const char *name, ir_value *value);
/* A name that will be defined by a later node: only to be able to say so. */
grt_status scope_announce(importer *imp, scope *s, const char *name);
/* `name` is an operand of the function that the caller left out. */
grt_status scope_omit(importer *imp, scope *s, const char *name);
/* *out_value is NULL for "" and for omitted operands; also, after a problem that was collected, for unknown
 * names. */
grt_status scope_resolve(importer *imp, scope *s, const culprit *who, const char *what, const char *name,
                         ir_value **out_value);
/* The value that `name` is in this very scope, or NULL. */
ir_value *scope_own(const scope *s, const char *name);
/* A module-wide unique name for a value that the source calls `name`. NULL: out of memory. */
const char *scope_unique(importer *imp, const scope *s, const char *name);

/* order.c. Put the nodes of a graph or function in the order of their data. *out_ordered is false if there is
 * none: then a problem was told. */
grt_status order_nodes(importer *imp, const char *graph, Onnx__NodeProto **nodes, size_t n,
                       bool *out_ordered);

/* declare.c. Keep what the graph declares of the values that its nodes make. */
grt_status declare_types(importer *imp, const scope *s, const Onnx__GraphProto *proto);

/* types.c. fixed: dims are what the file says (inputs of the model); otherwise only kind and dtype are taken.
 */
grt_status import_type(importer *imp, const culprit *who, const char *name, const Onnx__TypeProto *proto,
                       bool trusted, ir_type *out_type);

/* tensors.c. Tensors live in the module's arena or in mapped files. */
grt_status import_tensor(importer *imp, const Onnx__TensorProto *proto, const grt_tensor **out_tensor);
grt_status import_sparse(importer *imp, const Onnx__SparseTensorProto *proto, const grt_tensor **out_tensor);
/* external.c */
grt_status import_external(importer *imp, const Onnx__TensorProto *proto, grt_tensor *out_tensor);

/* attrs.c */
grt_status import_attrs(importer *imp, scope *s, const culprit *who, ir_node *node,
                        const Onnx__NodeProto *proto);
/* The attribute that `proto` stands for: itself, what the call gives for its reference, or NULL (left out).
 * *out_scope: where its names belong. */
const Onnx__AttributeProto *attr_target(const Onnx__AttributeProto *proto, scope *s, scope **out_scope);
/* The value of a Constant node. */
grt_status import_constant(importer *imp, scope *s, const culprit *who, const Onnx__NodeProto *proto,
                           const grt_tensor **out_tensor);

/* graph.c */
grt_status import_main(importer *imp, const Onnx__GraphProto *proto);
grt_status import_body(importer *imp, scope *outer, ir_node *parent, const Onnx__GraphProto *proto,
                       ir_graph **out_graph);

/* node.c */
grt_status import_node(importer *imp, scope *s, const Onnx__NodeProto *proto);

/* functions.c */
grt_status import_functions(importer *imp);
const Onnx__FunctionProto *function_find(const importer *imp, const char *domain, const char *name,
                                         const char *overload);
grt_status import_call(importer *imp, scope *s, const culprit *who, const Onnx__FunctionProto *function,
                       const Onnx__NodeProto *proto, const char *name);

#endif

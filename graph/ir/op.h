/* SPDX-License-Identifier: Apache-2.0 */
/* Op rows: all that the compiler knows of an operator, written once per op in graph/ops/<op>.c. But for the
 * dtypes that a model's inputs may have, which are generated from schemas: input_types.h. */
#ifndef GRT_GRAPH_IR_OP_H
#define GRT_GRAPH_IR_OP_H

#include "graph/ir/type.h"

typedef struct ir_node ir_node; /* graph/ir/ir.h */

/* A rule sees types only, never ir_nodes: the compiler calls it with symbolic dims, the runtime with concrete
 * ones (for shapes that depend on data). So one rule is the whole truth about an op's output shapes. */
typedef struct infer {
    const grt_op_desc *desc;
    grt_dims *dims;   /* table of all dim handles here */
    grt_arena *arena; /* for arrays that out[] points to */
    int32_t n_in, n_out;
    const ir_type *const *in; /* NULL where omitted; index only below n_in */
    ir_type *out;             /* zeroed, kind TENSOR, rank -1; the rule fills them */
} infer;

/* True if input i is present. */
static inline bool infer_has(const infer *inf, int32_t i)
{
    return i < inf->n_in && inf->in[i];
}
grt_status infer_fail(const infer *inf, const char *format, ...)
    GRT_PRINTF(2, 3); /* INVALID_MODEL naming the node */
/* n dims in the arena, to be filled; NULL when out of memory (the driver notices). */
grt_dim *infer_dims(const infer *inf, int32_t n);
/* out[i] is a tensor of known rank with these dims (kept, not copied). */
void infer_set(infer *inf, int32_t i, grt_dtype dtype, int32_t rank, const grt_dim *dims);
void infer_set_unknown(infer *inf, int32_t i, grt_dtype dtype); /* rank unknown */
void infer_set_fresh(infer *inf, int32_t i, grt_dtype dtype,
                     int32_t rank); /* rank known, every dim a fresh symbol */
void infer_set_like(infer *inf, int32_t i, grt_dtype dtype, const ir_type *shape); /* shape of another type */
/* Broadcast inputs from..to-1 together. rank -1 if one is unknown. */
grt_status infer_broadcast(infer *inf, int32_t from, int32_t to, int32_t *out_rank, const grt_dim **out_dims);
/* Fail unless the two inputs have one dtype (omitted ones pass). */
grt_status infer_same_dtype(const infer *inf, int32_t a, int32_t b);
/* Fail if input i is a sequence, an optional or a map. For rules of OP_ANY_KIND: the others are only asked
 * about tensors. */
grt_status infer_tensor(const infer *inf, int32_t i);
/* Content of an integer input as dims: its constant data or its `elems`. False if unknown. Length goes to
 * *out_n. */
bool infer_elems(const infer *inf, int32_t i, const grt_dim **out_dims, int64_t *out_n);
/* Content of an integer input if it is all constants. */
bool infer_ints(const infer *inf, int32_t i, const int64_t **out_values, int64_t *out_n);
/* Constant content of a one-element numeric input. */
bool infer_scalar(const infer *inf, int32_t i, double *out_value);
/* Product of dims[from..to). */
grt_dim infer_product(const infer *inf, const grt_dim *dims, int32_t from, int32_t to);
/* attribute `axis` style numbers: normalised, or failure naming attribute and rank */
grt_status infer_axis(const infer *inf, const char *what, int64_t axis, int32_t rank, int32_t *out_axis);
/* An attribute that is a dtype; `absent` if it is not there, or 0. Fails for what is no dtype or not
 * `allowed`, of `absent` too, unless that is NONE: it may be an input's. */
grt_status infer_dtype_attr(const infer *inf, const char *name, grt_dtype_set allowed, grt_dtype absent,
                            grt_dtype *out_dtype);
static inline bool infer_const(const infer *inf, grt_dim dim, int64_t *out_value)
{
    return grt_dim_is_const(inf->dims, dim, out_value);
}

/* Common rules. */
grt_status infer_same_as_first(infer *inf); /* out[0] has the type and shape of in[0] */
grt_status infer_elementwise(infer *inf);   /* all inputs of one dtype, broadcast; out[0] of that dtype */

typedef struct op_attr {
    const char *name;
    grt_attr_kind kind;
    bool required;
} op_attr;

/* What every number of an attribute of kind INT or INTS lies in. */
typedef struct op_range {
    const char *attr;
    int64_t least, most;
} op_range;

enum {
    OP_VARIADIC = 32767, /* no limit, not this one: ask op_count_fits */
};

typedef enum op_flags {
    OP_VIEW = 1 << 0,        /* output 0 is input 0's elements in the same order: no kernel needed */
    OP_COMMUTATIVE = 1 << 1, /* inputs 0 and 1 may be exchanged */
    OP_RANDOM = 1 << 2,      /* not folded, not merged: two runs differ */
    OP_GAPS = 1 << 3,        /* of any number of inputs, those behind min_in may be missing */
    OP_POINTWISE =
        1 << 4, /* out[i...] depends on the broadcast in[k][i...] only: may join a pointwise group */
    OP_SMALL_INTS = 1 << 5,     /* shape arithmetic: the rule can propagate `elems` */
    OP_EXPANDS_ALWAYS = 1 << 6, /* `expand` is asked even where there is a kernel */
    OP_PARTS = 1 << 7,          /* the outputs are parts of input 0 along `axis`, in order: see view.h */
    OP_ANY_KIND = 1 << 8,       /* inputs may be sequences, optionals and maps: the rule says which */
    OP_SHAPED =
        1 << 9, /* kernels go by the outputs' dims: inputs from 1 on are shapes, which a plan may lack */
    OP_TF32 = 1 << 10,            /* a sum of products of float32 that may be made of TF32 ones */
    OP_ZERO_IS_NEUTRAL = 1 << 11, /* f(x, 0) is x; of a commutative op f(0, x) too */
    OP_ONE_IS_NEUTRAL = 1 << 12,  /* f(x, 1) is x; as above */
    OP_INVOLUTION = 1 << 13,      /* f(f(x)) is x */
    OP_SINGLE = 1 << 14,          /* of one input, it is that input */
    OP_READS_DIMS = 1 << 15,      /* reads the dims of its inputs, not their elements */
    OP_ONE_FLOAT_TYPE = 1 << 16,  /* its floats all have one type: see infer_mixed.c */
    OP_SELECTS =
        1 << 17,        /* how large the results are depends on the data, but it is no more than the inputs */
    OP_FILLS = 1 << 18, /* models make their weights by it, of a few elements */
    OP_REDUCES = 1 << 19, /* reduces input 0 over the axes in input 1: see infer_reduction.c */
    OP_PICKS = 1 << 20,   /* every element of output 0 is one of input 0; which one, a common scale does not
                           * change. Views need not say. */
    OP_FILTERS =
        1 << 21, /* reads inputs from 1 on again and again: for each position, for each step of time */
    OP_TAKES_EPILOGUE = 1 << 22, /* a product that has a form with an epilogue in graphrt */
    OP_FINITE = 1 << 23,         /* of a few finite numbers, element by element, it makes finite ones */
    OP_STEPS = 1 << 24, /* a layer of recurrent steps, whose form in graphrt has rows around the steps */
} op_flags;

/* What becomes of a float32 node where the caller asked for 16-bit floats (pass `precision`). Every op with a
 * kernel for floats states it. */
typedef enum op_precision {
    OP_UNSTATED = 0,  /* float32 */
    OP_WIDE,          /* float32: results or terms leave the range of float16, or lose what matters. Powers,
                       * exponentials,          logarithms, roots, sums, trigonometry, random numbers, recurrences,
                       * losses,          quantisation. */
    OP_NARROW,        /* narrow, whatever comes in: products, norms */
    OP_NARROW_FIRST,  /* input 0 narrow, whatever comes in; the others keep their type: products by quantised
                         weights */
    OP_NARROW_TABLE,  /* narrow if input 0 is a constant, else as input 0; the others keep their type */
    OP_FOLLOWS,       /* as its inputs, so that no cast lies between two ops of the same kind */
    OP_FOLLOWS_FIRST, /* as input 0; the others keep their type */
    OP_NARROW_RESULT, /* graphrt::Q* products: only the residual and the result, as attribute output_dtype
                         says */
    OP_READS_NARROW,  /* input 0 as it is, computed in float32, as attribute precision says */
    OP_WIDE_RESULT,   /* float32, but for input 0, which graphrt's op of the same name reads as it is */
} op_precision;

/* How the op goes with channels last, where a region of the graph is laid out so (pass `layout`).
 * Element-wise ops do as they are. */
typedef enum op_layout {
    OP_LAYOUT_USUAL = 0, /* knows the usual layout only */
    OP_LAYOUT_CONV,      /* graphrt::Conv, and what a region begins with */
    OP_LAYOUT_QCONV,     /* graphrt::QConv */
    OP_LAYOUT_SCALED, /* element-wise, if all inputs that are not as large as the result have one element */
    OP_LAYOUT_FIRST,  /* element by element of input 0; the other inputs know no positions */
    OP_LAYOUT_PAIR,   /* graphrt::PixelFilter: inputs 0 and 1 have pixels and channels */
    OP_LAYOUT_FORM,   /* by the op of the same name and parameters of graphrt, with layout "NHWC" */
    OP_LAYOUT_CONCAT, /* as it is, along other axes; these, each by its own parameters */
    OP_LAYOUT_SPLIT,
    OP_LAYOUT_SLICE,
    OP_LAYOUT_PAD,
    OP_LAYOUT_ROLL,
    OP_LAYOUT_RESIZE,
    OP_LAYOUT_REDUCE,
    OP_LAYOUT_TRANSPOSE,
    OP_LAYOUT_RESHAPE,
    OP_LAYOUT_DEPTH, /* DepthToSpace, by a Transpose of what is channels last */
    N_OP_LAYOUTS
} op_layout;

/* How N nodes of the op become one on a batch (passes/batch.c). Element-wise ops and views need not say. */
typedef enum op_batch {
    OP_BATCH_NEVER = 0,
    OP_BATCH_POINTWISE,  /* element by element */
    OP_BATCH_PARAMETERS, /* element by element of input 0; the other inputs are the same for all nodes */
    OP_BATCH_UNARY,      /* element by element, of one input */
    OP_BATCH_VIEW,
    OP_BATCH_MATMUL,
    OP_BATCH_GEMM,
    OP_BATCH_TRANSPOSE,
    OP_BATCH_AXIS,   /* of one input, along attribute axis, -1 if absent */
    OP_BATCH_NORM,   /* along axis, with scale and bias */
    OP_BATCH_CONCAT, /* along axis */
    OP_BATCH_REDUCE, /* input 1: axes */
    N_OP_BATCHES
} op_batch;

/* Steps for each element of inputs and outputs. Element-wise ops and views need not say. */
typedef enum op_cost {
    OP_COST_UNKNOWN = 0, /* taken to grow with the square of the elements */
    OP_COST_MOVE = 1,    /* moves elements */
    OP_COST_COMPUTE = 4, /* computes a constant number of steps */
    OP_COST_SORT = 32,
} op_cost;

/* Ops with bodies, which the runtime executes itself. */
typedef enum op_control {
    OP_NO_CONTROL = 0,
    OP_IF,
    OP_LOOP,
    OP_SCAN,
    OP_SEQUENCE_MAP,
    N_OP_CONTROLS
} op_control;

/* What the compiler knows of an op. Zero is the safe answer of every trait: nothing is done with the op. */
typedef struct op_row {
    const char *domain, *name;
    int16_t since; /* version of the newest form, the one all fields below speak of */
    int16_t min_in, max_in, min_out, max_out; /* max: OP_VARIADIC if unbounded */
    const op_attr *attrs;                     /* ends with a NULL name; NULL: none */
    const op_range *ranges; /* of attributes, whatever is known of dims; ends with a NULL attr; NULL: any */
    uint32_t flags;
    op_precision precision;
    op_layout layout;
    op_batch batch;
    op_cost cost;
    op_control control;
    /* See flops.h. Multiplications and additions; NULL: not counted. */
    double (*flops)(const ir_node *node);
    /* Steps beyond a few for each element; NULL: as cost and flops say. */
    double (*work)(const ir_node *node);
    grt_status (*infer)(infer *inf);
    /* True if output 0 is input 0's elements in the same order at these dims, which are known, for ops that
     * are no OP_VIEW: there is nothing to move. Other inputs may be NULL or lack content; in doubt false.
     * NULL: never. */
    bool (*stays)(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in, const grt_tensor *out);
    /* Rewrite a node written for `opset` (< since) into the newest form: moving attributes to inputs and so
     * on. NULL: old forms differ in nothing but allowed types. Called once per node at import, types of
     * constants are known. */
    grt_status (*upgrade)(ir_node *node, int32_t opset);
    /* Replace the node by simpler ones, for backends without a kernel: the op's function body. Called after
     * inference. Sets *out_done = false if this instance has no expansion. NULL: none. */
    grt_status (*expand)(ir_node *node, bool *out_done);
    /* Replace the node by nodes of ai.onnx: operators that exporters write and the standard does not have.
     * Called once, by inference, when the types of the inputs are known; such rows have no `infer`. See
     * ops/foreign.h. */
    grt_status (*rewrite)(ir_node *node);
} op_row;

/* True if an op that takes min to max inputs (or outputs) may have n. */
static inline bool op_count_fits(int64_t n, int16_t min, int16_t max)
{
    return n >= min && (max == OP_VARIADIC || n <= max);
}

typedef struct op_table {
    const op_row *rows;
    size_t n;
} op_table;
/* In graph/ops/<file>.c, last thing: OP_TABLE(file, rows). The list in graph/sources.mk makes it known. */
#define OP_TABLE(file, row_array) \
    const op_table grt_ops_##file = {row_array, sizeof(row_array) / sizeof *(row_array)}

/* NULL if no row has that domain and name, custom operators included. "ai.onnx" equals "". */
const op_row *op_find(const char *domain, const char *name);
/* All rows, for documentation and support reports. */
const op_row *op_at(size_t index); /* NULL past the end */
/* Newest opset version of a domain whose ops we know (28 for ""), 0 for unknown domains. */
int32_t op_newest(const char *domain);

/* Fails with INVALID_MODEL, naming node, op and attribute, if a number lies outside of its range in the row.
 * Rules and kernels need not look again: inference asks for each node of a model, plan_check for each step of
 * a plan. */
grt_status op_check_ranges(const op_row *row, const grt_op_desc *desc);
/* Run `node`'s rule and store the result in its outputs. Values keep what was known and is more precise. */
grt_status op_infer_node(ir_node *node);
/* Run an op's rule on bare types (the runtime's way in). `row->infer` must not be NULL. */
grt_status op_infer_types(const op_row *row, infer *inf);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: rewrites of a module, for a target. passes.c has the order in which they run. */
#ifndef GRT_GRAPH_PASSES_PASS_H
#define GRT_GRAPH_PASSES_PASS_H

#include "graph/ir/ir.h"
#include "src/base/device_traits.h"
#include "src/base/value.h"

/* What the compiler asks of the target that the plan is made for; filled in by the runtime from a backend's
 * rows. */
typedef struct grt_target {
    const char *name; /* "cpu" */
    /* Is there a kernel? in/out: dtype always set; rank -1, dims -1 where unknown; data where constant; dtype
     * NONE: omitted. On false, `why` (may be NULL) says what is missing and the nearest supported form. */
    bool (*supports)(const struct grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                     int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why);
    /* The same, or would a session fall back to the host? Every node of a plan must pass
     * this. NULL: as supports. */
    bool (*runs)(const struct grt_target *target, const grt_op_desc *desc, const grt_tensor *in, int32_t n_in,
                 const grt_tensor *out, int32_t n_out, grt_text *why);
    const grt_device_traits *traits;
    /* Execute one op on host tensors, for constant folding. out: cleared values; or all of them with the
     * dtype and dims that they will have, and no data: the op's rule is not asked then. A kernel that wants
     * more than most_workspace bytes for itself is not run: UNSUPPORTED. */
    grt_status (*evaluate)(const struct grt_target *target, const grt_op_desc *desc,
                           const grt_tensor *const *in, int32_t n_in, grt_value *out, int32_t n_out,
                           size_t most_workspace);
    void *user;
} grt_target;

/* Arithmetic of float32 models. */
typedef enum grt_precision {
    GRT_PRECISION_MODEL = 0, /* the model's own: float32 is float32 */
    GRT_PRECISION_TF32,      /* products may round their inputs to TF32 */
    GRT_PRECISION_FLOAT16,
    GRT_PRECISION_BFLOAT16,
} grt_precision;

/* What a pass does to roundings of 16-bit floats. */
typedef enum pass_rounding {
    PASS_KEEPS_ROUNDINGS,
    PASS_DROPS_ROUNDINGS, /* computes several nodes as one, or in another order: fewer or other roundings */
} pass_rounding;

/* One of "fp32", "tf32", "fp16" and "bf16"; false if it is none. */
bool pass_precision_read(const char *text, size_t size, grt_precision *out);
/* What an exception says of a node of this name, or of several joined by '+': the first that fits one of
 * them. False: nothing. */
bool pass_precision_find(const char *exceptions, const char *name, grt_precision *out);

typedef struct pass_context {
    ir_module *module;
    const grt_target *target;
    const char *disabled; /* comma-separated names */
    const char *enabled;  /* the same: passes that run for targets that do not ask for them, too */
    int32_t level;
    grt_precision precision;
    bool precision_asked;   /* by the caller; else it is the model's own */
    bool exact;             /* 16-bit floats are rounded wherever the model has one */
    const char *exceptions; /* to `precision`: "NAME=fp32,...", or NULL; see pass_precision_find */
    bool bfloat16_products; /* products have been told to round to bfloat16; values stay float32 */
    bool keeps_quantised;   /* pass `quantised` is to come: DequantizeLinear of constants is not folded */
    void (*progress)(void *user, const char *phase, double fraction);
    void *user;
    ir_warnings near_misses; /* what patterns nearly matched */
    int64_t changed;         /* a pass adds the number of rewrites it made */
} pass_context;

/* What the caller asked for, for this node. */
grt_precision pass_precision_of(const pass_context *context, const ir_node *node);

/* All passes, each in a file of its own name: X(name, level, rounding, summary), in the order of their first
 * run. rounding is that of pass_rounding, for passes that stay out of `exact` compiles. */
#define PASSES(X)                                                                                         \
    X(half_models, 1, DROPS, "narrow models in float16 that a float32 mask has made float32")             \
    X(cse, 1, KEEPS, "merge nodes and small constants that are equal")                                    \
    X(fold, 1, KEEPS, "compute what depends on constants only")                                           \
    X(fold_if, 1, KEEPS, "take the branch of an If whose condition is known")                             \
    X(simplify, 1, KEEPS, "remove no-ops, join reshapes and transposes")                                  \
    X(slice_updates, 2, KEEPS, "write slices of tensors as such, not by an index for each element")       \
    X(joined_slices, 2, KEEPS, "make one move of slices of a value that are joined again")                \
    X(single_parts, 2, KEEPS, "slice what was transposed instead of taking it apart")                     \
    X(symbolic_sizes, 1, KEEPS, "ask the model's inputs for sizes that they have")                        \
    X(dce, 1, KEEPS, "remove nodes whose results nobody uses")                                            \
    X(stacks, 2, DROPS, "fold stacked values by themselves, without the stack")                           \
    X(quantised, 2, DROPS, "make integer steps of products and convolutions of 8-bit numbers")            \
    X(legalise, 0, KEEPS, "replace ops that the target has no kernel for by simpler ones")                \
    X(joined_products, 2, KEEPS, "make one product of those that are joined")                             \
    X(softmax, 2, DROPS, "find Softmax that is written out")                                              \
    X(recognise, 2, DROPS, "find GELU, SiLU, RMS and layer normalisation that are written out")           \
    X(pixel_filters, 2, DROPS, "find convolutions by filters for each pixel that are written out")        \
    X(spectra, 2, DROPS, "convolve by spectra in one step")                                               \
    X(interleaved_rotary, 2, DROPS, "find rotary position embedding of neighbours that is written out")   \
    X(rotary, 2, DROPS, "find rotary position embedding that is written out")                             \
    X(partial_rotary, 2, DROPS, "let rotary embedding leave the rest of each head as it is by itself")    \
    X(rotary_tokens, 2, DROPS, "let rotary embedding leave the tokens beside an image's as they are")     \
    X(whole_groups, 2, DROPS, "compute 1 x 1 convolutions in narrow or few groups with all channels")     \
    X(tokens, 2, DROPS, "compute 1 x 1 convolutions in front of attention as products")                   \
    X(column_order, 2, KEEPS, "give products their columns in the order in which they are read")          \
    X(attention, 2, DROPS, "find attention that is written out")                                          \
    X(mixed_heads, 2, DROPS, "mix heads of scores with each other where they lie")                        \
    X(turned_products, 2, KEEPS, "exchange factors of products that are transposed back")                 \
    X(step_rows, 2, KEEPS, "let recurrent layers read and write rows where they lie")                     \
    X(left_products, 2, KEEPS, "let constant matrices that mix tokens multiply from the left")            \
    X(moves, 2, KEEPS, "join what moves elements into one transpose")                                     \
    X(row_moves, 2, KEEPS, "drop moves of rows that cancel around products")                              \
    X(row_order, 2, KEEPS, "let rows have the order that saves most of their moves")                      \
    X(row_places, 2, KEEPS, "leave rows where windows have them until others need them elsewhere")        \
    X(causal_mask, 2, DROPS, "let attention hide later keys by itself instead of by a mask")              \
    X(mask_rows, 2, KEEPS, "make one row of attention masks whose rows are equal")                        \
    X(affine, 2, DROPS, "put scales and shifts per channel into weights")                                 \
    X(planes, 2, DROPS, "compute one filter for every channel as a filter for each")                      \
    X(joined_convs, 2, DROPS, "compute sums of convolutions of one input as one convolution")             \
    X(phases, 2, DROPS, "compute transposed convolutions as convolutions")                                \
    X(batch_branches, 2, DROPS, "compute branches of one form as one batch")                              \
    X(quantised_epilogues, 2, DROPS, "let products of 8-bit numbers apply activations and add residuals") \
    X(epilogue, 2, DROPS, "let convolutions and products add bias and residual and apply the activation") \
    X(merge_projections, 2, KEEPS, "make one product of the three in front of an attention")              \
    X(bfloat16_products, 0, KEEPS,                                                                        \
      "let products round to bfloat16, where the target has such, and keep values")                       \
    X(precision, 0, KEEPS, "narrow what gains by it to the precision that was asked for")                 \
    X(quantised_norms, 2, KEEPS, "let layer normalisations quantise their results")                       \
    X(unsigned_windows, 2, KEEPS, "let windows see zeros outside of 8-bit images")                        \
    X(merge_products, 2, KEEPS, "make one product of those of one row that have the same input")          \
    X(networks, 2, DROPS, "compute chains of small batched products in one go")                           \
    X(weight_rows, 2, KEEPS, "store constant weights of float32 products as tensor cores read them")      \
    X(whole_columns, 2, KEEPS, "give large products columns of zeros until they are whole vectors")       \
    X(layout, 2, KEEPS, "lay convolution regions out with channels last")                                 \
    X(whole_vectors, 2, KEEPS, "give convolutions filters of zeros until channels are whole vectors")     \
    X(equal_parts, 2, KEEPS, "move equal parts of a value, which are moved alike, all at once")           \
    X(norm_activation, 2, DROPS, "let norms of groups and images apply the activation behind them")       \
    X(weight_gates, 2, DROPS, "make one product of the two of a gated layer by weights of 4 bits")        \
    X(weight_steps, 2, DROPS,                                                                             \
      "let products by weights of 4 bits normalise their input and gate their result")                    \
    X(attention_parts, 2, KEEPS, "let attention read queries, keys and values side by side")              \
    X(quantised_attention, 2, KEEPS, "let attention quantise its results")                                \
    X(rounded_attention, 2, KEEPS, "make one step of attention that is rounded behind each node")         \
    X(rotary_pairs, 2, KEEPS, "rotate queries and keys in one step")                                      \
    X(cache_updates, 2, KEEPS, "pad a cache of keys or values and write into it in one step")             \
    X(rows, 2, DROPS, "compute element-wise ops around sums of rows in one go")                           \
    X(pointwise, 2, DROPS, "compute connected element-wise ops in one go")                                \
    X(moved_parts, 2, KEEPS, "let what joins values move those that are moved in front of it")            \
    X(woven_convs, 2, KEEPS, "let convolutions store the pixels that their channels are in place")        \
    X(drop_shape_inputs, 1, KEEPS, "drop the computation of shapes that the plan knows")                  \
    X(merge_gathers, 2, KEEPS, "make one step of small Gathers that do not wait for each other")

#define X(name, level, rounding, summary) grt_status pass_##name(pass_context *context);
PASSES(X)
#undef X

#endif

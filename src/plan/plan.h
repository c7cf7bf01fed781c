/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in memory: what the compiler produces, the file stores and the runtime executes. Immutable once
 * built. */
#ifndef GRT_SRC_PLAN_PLAN_H
#define GRT_SRC_PLAN_PLAN_H

#include "src/base/cancel.h"
#include "src/base/choice.h"
#include "src/base/dim.h"
#include "src/base/op_desc.h"
#include "src/base/packing.h"
#include "src/base/value.h"

typedef enum grt_plan_value_role {
    GRT_VALUE_STEP = 0, /* made by a step */
    GRT_VALUE_INPUT,    /* input of the body */
    GRT_VALUE_CONST,    /* weight */
    GRT_VALUE_CAPTURE,  /* a body's copy of a value of the body around it */
} grt_plan_value_role;

typedef struct grt_plan_value {
    const char *name;
    grt_plan_value_role role;
    grt_kind kind, element_kind;
    grt_dtype dtype;
    grt_dtype keys;      /* of maps */
    int32_t rank;        /* -1: known at run time only */
    const int32_t *dims; /* rank indices into plan->dims */
    int32_t weight;      /* CONST: index into plan->weights; INPUT: of its default, -1 if none */
    bool is_static;      /* all dims are expressions of input symbols: planned before the run */
} grt_plan_value;

typedef enum grt_step_kind {
    GRT_STEP_KERNEL = 0, /* a backend's kernel */
    GRT_STEP_VIEW, /* the outputs are input 0's elements with new dims: all of them, or one range each, in
                      order */
    GRT_STEP_IF,
    GRT_STEP_LOOP,
    GRT_STEP_SCAN,
    GRT_STEP_SEQUENCE_MAP,
} grt_step_kind;

typedef struct grt_plan_step {
    grt_step_kind kind;
    grt_op_desc desc;
    int32_t n_in, n_out, n_bodies;
    const int32_t *in; /* value ids of this body; -1 where omitted */
    const int32_t *out;
    const int32_t
        *bodies;    /* indices into plan->bodies, in the order of the op's graph attributes: If: then, else */
    bool is_static; /* all inputs and outputs are; prepared once per combination of input dims */
    double flops;   /* at the default dims */
} grt_plan_step;

/* A graph: the main one is bodies[0]. */
typedef struct grt_plan_body {
    const char *name;
    int32_t n_values, n_steps, n_inputs, n_outputs, n_captures;
    const grt_plan_value *values;
    const grt_plan_step *steps; /* in order of execution */
    const int32_t *inputs;      /* value ids */
    const int32_t *outputs;
    const char *const *output_names; /* the interface's names; inputs are named by their values */
    const int32_t *captures_outer;   /* value ids of the body around this one ... */
    const int32_t *captures_inner;   /* ... and of this body, pairwise */
    int32_t parent;                  /* body that has the step which owns this one; -1 for main */
} grt_plan_body;

typedef struct grt_plan {
    grt_arena *arena; /* owns all that is pointed to, weights' data excepted */
    int32_t n_bodies, n_weights, n_dims, n_symbols;
    const grt_plan_body *bodies;
    const grt_tensor *weights; /* data: in the mapped file or in the compiler's memory */
    const grt_packing
        *packings; /* per weight: its layout; NULL: all plain. Packed ones are read by kernels
                      of `target` only, and dims and dtype are the tensor's before it was packed */
    const grt_dim_expr
        *dims; /* operands before their users; CONST, SYMBOL (value = symbol), or an operation */
    const char *const *symbols;
    const char *target; /* backend name */
    const char *producer;
    grt_metadata metadata; /* text is NULL where there is none */
    int64_t opset, source_nodes, parameters;
    uint64_t weights_bytes;
    uint64_t content;     /* identifies the plan's bytes; 0: compiled in memory, equal to itself only */
    uint64_t arena_bytes; /* of the main body at the default dims (every input symbol 1) */
    double flops;
    const grt_choice *choices; /* that come with the plan, sorted by key */
    size_t n_choices;
    bool left_out;                        /* there were some, which the caller does not trust */
    const char *signer;                   /* the key that its signature names, verified or not; "" */
    bool verified;                        /* the caller asked for that signature, and it is right */
    const void *weights_base;             /* all of them, weights_bytes; NULL: none, or the compiler's */
    const char *options;                  /* text of the compile options, for inspect */
    void (*release_weights)(void *owner); /* may be NULL */
    void *weights_owner;
} grt_plan;

void grt_plan_release(grt_plan *plan);

/* Layout and bytes of weight i. */
grt_packing grt_plan_packing(const grt_plan *plan, int32_t weight);

/* True if these bytes begin like a plan. */
bool grt_plan_recognize(const void *bytes, size_t size);
/* src/plan/read.c: check and decode a plan. The bytes must outlive the plan; weights point into them. path is
 * for messages and for weights that lie beside the plan. Errors: INVALID_PLAN naming section, offset,
 * expected and found. */
grt_status grt_plan_read(const char *path, const void *bytes, size_t size, grt_plan **out_plan);
/* The same for a caller who trusts those, but the checksum of many weights (16 MiB and more), and their
 * digest where a signature is asked for, are left to *out_check; NULL if they were computed. The caller
 * releases it before the plan. Errors: also UNTRUSTED. */
struct grt_weights_check;
struct grt_trust;
grt_status grt_plan_read_later(const char *path, const void *bytes, size_t size,
                               const struct grt_trust *trust, struct grt_weights_check **out_check,
                               grt_plan **out_plan);
/* src/plan/write.c: encode. Whole file or nothing: temporary file, fsync, rename. Asks `cancel` (may be
 * NULL) between weights. */
grt_status grt_plan_write(const grt_plan *plan, const char *path, bool external_weights,
                          const grt_cancel *cancel);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what prepare (prepare.h) decided for a body at one combination of input dims. A run obeys: it
 * goes through the instructions, each of which has its function, and asks nothing again. Nothing here changes
 * after prepare.
 *
 * The plan's own is_static says what a compiler can promise of any device, for its estimate of memory. What
 * is fixed at these dims, on this session's device, is said by places and instructions, and only by them. */
#ifndef GRT_SRC_EXEC_PROGRAM_H
#define GRT_SRC_EXEC_PROGRAM_H

#include "src/call/op_call.h"
#include "src/exec/place.h"
#include "src/plan/plan.h"

struct grt_frame;
typedef struct grt_instruction grt_instruction;

/* Whether the dims of a step that is prepared in the run fit each other. */
typedef enum grt_dims_check {
    GRT_DIMS_CHECKED = 0,  /* known from compiling, or looked at in prepare */
    GRT_DIMS_CHECK_ONCE,   /* all are constants, of a plan from elsewhere */
    GRT_DIMS_CHECK_ALWAYS, /* some dim is no constant */
} grt_dims_check;

/* A step that has something to do in a run. */
struct grt_instruction {
    grt_status (*run)(struct grt_frame *frame, const grt_instruction *instruction);
    /* Host steps: what `run` does between copies from the device and to it. */
    grt_status (*on_host)(struct grt_frame *frame, const grt_instruction *instruction);
    const grt_plan_step *step;
    grt_op_call *call;  /* the frame's; its kernel is prepared already if `prepared` */
    int32_t index;      /* of the step */
    bool prepared;      /* all its values are fixed */
    bool host;          /* runs on the CPU in a session on a device */
    bool outputs_fixed; /* they have their places, although the step may be prepared in the run */
    grt_dims_check check;
    const int32_t *drop; /* values of the run that nobody reads after it */
    int32_t n_drop;
};

/* Instructions [first, end): on a device that has graphs either one graph, or enqueued one by one. */
typedef struct grt_segment {
    int32_t first, end;
    bool graph;
} grt_segment;

typedef struct grt_program {
    const grt_plan *plan;
    const grt_plan_body *body;
    int32_t index; /* of the body */
    grt_place *places;
    grt_instruction *instructions;
    int32_t n_instructions;
    int32_t *instruction_of; /* per step; -1: a run has nothing to do for it */
    grt_segment *segments;
    int32_t n_segments;
    int32_t blocker;         /* the first instruction that cannot be in a graph; -1: none */
    int32_t *clear, n_clear; /* values of which a run may leave something behind */
    /* Programs of the main body have dims, those of other bodies are for all dims: */
    int64_t *dims;    /* value of each of the plan's dims ... */
    bool *dims_known; /* ... where input symbols decide it */
    /* Per output: nothing else decides where it lies, so it may be written straight to the caller's memory.
     */
    bool *output_is_free;
    int32_t *sharing_start, *sharing; /* values of each storage: sharing[sharing_start[s] .. [s + 1]) */
    size_t arena_bytes, workspace_bytes, input_bytes;
} grt_program;

/* The value's dims follow from those of the inputs; `main` is the main body's program, `v` of any body. */
bool grt_program_has_dims(const grt_program *main, const grt_plan_value *v);

/* What a step needs in a run; NULL: nothing. */
const grt_instruction *grt_program_instruction(const grt_program *program, int32_t step);

/* What places and instructions promise each other, looked at in debug builds and by tests. INTERNAL, naming
 * the value or step, if it does not hold. */
grt_status grt_program_check(const grt_program *program);

#endif

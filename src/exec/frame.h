/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: a program and what its runs change. The main body has one for each combination of input dims, other
 * bodies have one each. */
#ifndef GRT_SRC_EXEC_FRAME_H
#define GRT_SRC_EXEC_FRAME_H

#include "src/exec/executor.h"
#include "src/exec/program.h"
#include "src/exec/replay.h"

typedef struct grt_frame {
    const grt_program *program;
    grt_executor *executor;
    grt_arena *arena; /* of the program's and the frame's tables */
    grt_value *values;
    /* Main body of device sessions: the same values as the host sees them, with data where it has them;
     * otherwise equal to `values`. */
    grt_value *host;
    bool *host_ok;      /* host[v] holds the content of this run */
    bool *host_fetched; /* host[v] is an input's content, copied here from the caller's device memory */
    grt_op_call *calls; /* per step */
    bool *proven;       /* per step: GRT_DIMS_CHECK_ONCE was done */
    int32_t at;         /* the instruction that runs, or ran last */
    void *stream;       /* that the steps enqueue on */
    char *input_block;  /* device memory of inputs, once one of them is in host memory */
    bool spare_block;   /* that was made before anybody bound an input */
    const char *arena_base, *workspace_base; /* what the pointers were made for, once bound */
    bool bound;
    bool captured; /* a graph of the caller's points into it */
    grt_replay replay;
    grt_replay trips;     /* see round_trip.h */
    int32_t awaited;      /* steps whose generated kernel is being made; see new_code.h */
    unsigned code_rounds; /* of the background, when that was looked at last */
} grt_frame;

/* With empty tables, for prepare to fill. Takes over the arena, which has the program, if it succeeds. */
grt_status grt_frame_create(grt_executor *executor, const grt_program *program, grt_arena *arena,
                            grt_frame **out_frame);
void grt_frame_release(grt_frame *frame); /* NULL-safe */
/* Its block of memory of the device for inputs, if it has one. */
void grt_frame_free_inputs(grt_frame *frame);

static inline bool grt_frame_on_device(const grt_frame *frame)
{
    return frame->host != frame->values;
}

/* True if a run with pointers that were bound before would make no graph: all is there, or cannot be made. */
bool grt_frame_is_settled(const grt_frame *frame);

/* Let go of what the last run left in a value, or in all of them. */
void grt_frame_drop(grt_frame *frame, int32_t value);
void grt_frame_clear(grt_frame *frame);

/* host[v] gets the dims of v, no data; for what is not on the host. */
void grt_frame_shadow(grt_frame *frame, int32_t value);

/* The op's rule has the last word on dims that the plan's expressions gave the step. `content`: it may look
 * into small inputs. */
grt_status grt_frame_check_dims(grt_frame *frame, int32_t step, grt_dims_check check, bool content);

/* A step has failed: the error names its node, as what devices and their libraries say is about a call, and,
 * if something does not fit, what the inputs are. */
grt_status grt_frame_explain(const grt_frame *frame, int32_t step, grt_status status);

/* What the steps enqueue on from now on. */
void grt_frame_set_stream(grt_frame *frame, void *stream);
/* Prepared kernels get the executor's workspace, which has moved. */
void grt_frame_set_workspace(grt_frame *frame);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A program while it is made: prepare and its helpers write it through the draft; for everybody else it is
 * constant. */
#ifndef GRT_SRC_EXEC_DRAFT_H
#define GRT_SRC_EXEC_DRAFT_H

#include "src/exec/frame.h"

typedef struct grt_step_draft {
    bool host;          /* the CPU runs it in a session on a device */
    bool done;          /* a run has nothing to do for it */
    bool prepared;      /* all that it touches is fixed */
    bool outputs_fixed; /* what it makes is, though the step may be prepared in the run */
    bool hoisted;       /* its results are computed already */
    bool view; /* its outputs are ranges of input 0: as the plan has it, or at these dims (stays.h) */
    grt_dims_check check;
} grt_step_draft;

typedef struct grt_draft {
    grt_program *program;
    grt_frame *frame;
    grt_step_draft *steps;
    size_t hoisted_bytes; /* of all content that was computed in prepare */
} grt_draft;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Static memory: the arena offset of each value of a body, from sizes and lifetimes. */
#ifndef GRT_SRC_PLAN_MEMORY_PLAN_H
#define GRT_SRC_PLAN_MEMORY_PLAN_H

#include "src/plan/plan.h"

/* Values that share memory (views, in-place results) have one storage. */
typedef struct grt_memory_plan {
    int32_t n_values;
    int32_t *storage; /* per value: the value id that stands for its storage */
    size_t *offset;   /* per value: in the arena; SIZE_MAX for inputs, constants and storage that follows an
                         input */
    size_t *within;   /* per value: bytes from the beginning of its storage; not 0 for parts of a value */
    size_t arena_bytes;
} grt_memory_plan;

/* What is known at the concrete dims. */
typedef struct grt_memory_request {
    const grt_plan *plan; /* for what the bodies of steps capture */
    const grt_plan_body *body;
    const size_t *bytes;      /* per value, where planned */
    const int64_t *elements;  /* per value, where planned */
    const bool *planned;      /* per value: made by a step, of known size, to be put into the arena */
    const bool *step_planned; /* per step: runs with memory that is planned; others find theirs at run time */
    const bool
        *step_views; /* per step: its outputs are ranges of input 0, in order; NULL: as its kind says */
    /* Inputs whose memory the step's output 0 may take over, one bit each. */
    uint32_t (*in_place)(void *user, int32_t step);
    void *user;
} grt_memory_request;

grt_status grt_memory_plan_make(const grt_memory_request *request, grt_memory_plan *out_plan);
void grt_memory_plan_release(grt_memory_plan *plan);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a context is bound to: the caller's inputs and outputs. */
#ifndef GRT_SRC_EXEC_BINDING_H
#define GRT_SRC_EXEC_BINDING_H

#include "src/plan/plan.h"

/* An output whose memory is asked for; allocate NULL: it is not. */
typedef struct grt_asked_output {
    grt_output_allocator *allocate;
    void *user;
    grt_memory memory;
} grt_asked_output;

typedef struct grt_binding {
    const grt_plan *plan;
    grt_value *inputs; /* borrowed data */
    const grt_value
        *kept; /* per input, defaults in place of the plan's where the dtype is not NONE; NULL: none */
    bool *input_set;
    grt_tensor *outputs; /* data NULL where the context's memory is used */
    bool *output_set;
    bool *in_place; /* outputs that are state, written over their inputs */
    grt_asked_output *asked;
    bool any_asked;
    bool rebound;               /* something was bound since overlaps were looked for */
    struct grt_extent *extents; /* of what is bound, for that */
} grt_binding;

grt_status grt_binding_create(const grt_plan *plan, grt_binding *out_binding);
void grt_binding_release(grt_binding *binding);

static inline const grt_plan_body *grt_binding_body(const grt_binding *binding)
{
    return &binding->plan->bodies[0];
}

/* Device memory of the caller's, bound as input or output. */
static inline bool grt_is_device_tensor(const grt_tensor *t)
{
    return t->memory == GRT_MEMORY_DEVICE;
}

/* Every input is bound, or has a default that is bound now. */
grt_status grt_binding_check_inputs(grt_binding *binding);
/* No output is bound over an input or another output: a run writes outputs while it reads inputs and other
 * outputs. Looks only once at what is bound. */
grt_status grt_binding_check_overlap(grt_binding *binding);

#endif

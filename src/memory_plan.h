/* Static memory: where in the arena each value of a body lies, given its size and the steps between which it lives. */
#ifndef GRT_SRC_MEMORY_PLAN_H
#define GRT_SRC_MEMORY_PLAN_H

#include "src/plan.h"

/* Values that share memory (views, in-place results) have one storage. */
typedef struct grt_memory_plan {
    int32_t n_values;
    int32_t *storage; /* per value: the value id that stands for its storage */
    size_t *offset;   /* per value: in the arena; SIZE_MAX for inputs, constants and storage that follows an input */
    size_t arena_bytes;
} grt_memory_plan;

/* bytes[v]: size of value v at the concrete dims; ignored for values that are not static. in_place(user, step): the inputs
 * whose memory the step's output 0 may take over, one bit each. */
grt_status grt_memory_plan_make(const grt_plan_body *body, const size_t *bytes,
                                uint32_t (*in_place)(void *user, int32_t step), void *user, grt_memory_plan *out_plan);
void grt_memory_plan_release(grt_memory_plan *plan);

#endif

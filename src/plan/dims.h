/* SPDX-License-Identifier: Apache-2.0 */
/* The dims of a plan's values for given input dims, outside a run: for reports and for what is prepared at
 * compile time. */
#ifndef GRT_SRC_PLAN_DIMS_H
#define GRT_SRC_PLAN_DIMS_H

#include "src/plan/plan.h"

typedef struct grt_plan_dims {
    int64_t *value; /* of each of the plan's dims ... */
    bool *known;    /* ... where the expression makes sense */
} grt_plan_dims;

/* symbols: one value per symbol; NULL: 1 each. */
grt_status grt_plan_dims_make(const grt_plan *plan, const int64_t *symbols, grt_plan_dims *out_dims);
void grt_plan_dims_release(grt_plan_dims *dims);

/* A value as a kernel sees it before a run: constants with their data, dims -1 where they are not known;
 * dtype NONE and rank -1 for an omitted one (value < 0). dims NULL: those that are constant. */
grt_tensor grt_plan_describe(const grt_plan *plan, const grt_plan_body *body, int32_t value,
                             const grt_plan_dims *dims);

/* The values of the symbols for inputs of these dims, 1 where they say nothing. Errors: INVALID_ARGUMENT for
 * unknown inputs, wrong ranks and dims that do not fit the plan or each other. */
grt_status grt_plan_symbols(const grt_plan *plan, const grt_input_shape *shapes, size_t n,
                            int64_t *out_symbols);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing algorithms while a plan is compiled, for devices that need not be there. */
#ifndef GRT_SRC_TARGET_CHOOSE_H
#define GRT_SRC_TARGET_CHOOSE_H

#include "backends/backend.h"
#include "src/plan/plan.h"

/* For each described device: every step of the main graph whose kernel chooses algorithms and whose dims are
 * known (given by `shapes`, or with 1 for what they leave open) is prepared as a session would, and what it
 * chooses goes to plan->choices. The plan must be packed for the backend before. Errors: DEVICE where a
 * library is missing, UNSUPPORTED for backends without descriptions, INVALID_ARGUMENT for shapes that do not
 * fit. */
grt_status grt_plan_choose(grt_plan *plan, const grt_backend *backend, const grt_compile_options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The activation memory of a plan at the default dims (every symbol 1), for reports. */
#ifndef GRT_SRC_TARGET_MEASURE_H
#define GRT_SRC_TARGET_MEASURE_H

#include "backends/backend.h"
#include "src/plan/plan.h"

/* Sets plan->arena_bytes; leaves it 0 if the dims make no sense when every symbol is 1. */
grt_status grt_plan_measure(grt_plan *plan, const grt_backend *backend);

#endif

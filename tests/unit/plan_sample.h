/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with one of everything, for the tests and the fuzzer of plan files. */
#ifndef GRT_TESTS_PLAN_SAMPLE_H
#define GRT_TESTS_PLAN_SAMPLE_H

#include "src/plan/format.h"

/* Weights' data belongs to static memory. NULL when out of memory. */
grt_plan *plan_sample(void);

/* Make the checksums of a plan's bytes right again, where header and sections still make sense: so that
 * changed bytes get past them. */
void plan_reseal(void *bytes, size_t size);

#endif

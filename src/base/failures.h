/* SPDX-License-Identifier: Apache-2.0 */
/* What failed in a parallel region, kept for the thread that waits for it. */
#ifndef GRT_BASE_FAILURES_H
#define GRT_BASE_FAILURES_H

#include "src/base/text.h"

/* Zero-initialised, but `lists`. */
typedef struct grt_failures {
    grt_status lists; /* failures of this status are told together, unless there is another; GRT_OK: none */
    grt_status status;
    int32_t n;
    grt_text text;
} grt_failures;

/* In the thread of a team in which it failed. GRT_OK is no failure. */
void grt_failures_add(grt_failures *failures, grt_status status);
/* Behind the region: the first failure, with its message; GRT_OK if there was none. */
grt_status grt_failures_end(grt_failures *failures);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The deferred checksum of a plan's weights: it is computed while a driver starts. Any number of threads may
 * help. */
#ifndef GRT_SRC_PLAN_WEIGHTS_CHECK_H
#define GRT_SRC_PLAN_WEIGHTS_CHECK_H

#include "src/plan/signature.h"

typedef struct grt_weights_check grt_weights_check;

/* `where` is for the message: "plan.grt: section WEIGHTS at offset 4096". data must outlive the check.
 * digest: what was signed; NULL: nobody asks for a signature. */
grt_status grt_weights_check_create(const char *where, const void *data, size_t size, uint64_t expected,
                                    const plan_digest *digest, grt_weights_check **out_check);
void grt_weights_check_release(grt_weights_check *check);
/* Check a few more megabytes; false if there is nothing left to begin. NULL-safe. */
bool grt_weights_check_help(grt_weights_check *check);
/* Do what is left with all cores, wait for helpers, and say whether the weights are what was written.
 * INVALID_PLAN or UNTRUSTED if not, now and ever after. NULL: GRT_OK. */
grt_status grt_weights_check_finish(grt_weights_check *check);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one state: a chain, in the order of submission, of which one at a time is queued or at work.
 * The state belongs to the pool as long as there are any. Everything here is called with the pool's lock. */
#ifndef GRT_SRC_POOL_CHAIN_H
#define GRT_SRC_POOL_CHAIN_H

#include "src/pool/parts.h"

/* The request is the state's newest. INVALID_ARGUMENT: the state is of another model, or in use elsewhere. */
grt_status grt_chain_join(grt_request *request);
/* It is about to be answered: if it was the last, the state is the caller's again. */
void grt_chain_finish(const grt_request *request);
/* The next may follow, which is returned if it waits for that. */
grt_request *grt_chain_leave(grt_request *request);

#endif

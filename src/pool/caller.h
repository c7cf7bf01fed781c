/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls a function of a pool: a thread of the process that made the pool, and perhaps one that is in a
 * callback, which must not wait for the pool. */
#ifndef GRT_SRC_POOL_CALLER_H
#define GRT_SRC_POOL_CALLER_H

#include "src/pool/parts.h"

/* INVALID_ARGUMENT: the pool is NULL, or of the parent of this process. */
grt_status grt_caller_check(const grt_pool *pool, const char *function);
/* The same for functions that wait until requests are done: not in a callback of the pool, which is of one
 * that is not done before it returns. */
grt_status grt_caller_check_may_wait(const grt_pool *pool, const char *function);
/* True if the thread is in a callback of the pool. */
bool grt_caller_is_called_back(const grt_pool *pool);
/* Calls `done` of a submission. */
void grt_caller_call_back(const grt_pool *pool, grt_request *request,
                          void (*callback)(void *user, grt_request *request));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How the thread of a context waits for its next requests. Everything here is called with the pool's lock.
 *
 * Waking a thread that sleeps takes some microseconds of who submits, and more until it runs. So a thread
 * whose last requests came right after those before them looks for the next for a moment, and then sleeps.
 * One of a pool at a time does, and none where that does not pay: an idle pool has sleeping threads only.
 *
 * A client that waits for each of its requests at once serves them itself, and the thread would be woken in
 * vain. So after some of these it is not woken, but dozes: it sleeps for a fraction of a millisecond at a
 * time and takes a request whose client has not come. One of a pool at a time does, until the requests stop.
 */
#ifndef GRT_SRC_POOL_LINGER_H
#define GRT_SRC_POOL_LINGER_H

#include "src/pool/parts.h"

/* What a thread that looks is told: grt_worker.called. */
enum { GRT_LINGER_NOTHING = 0, GRT_LINGER_FOR_ITS_CLIENT, GRT_LINGER_AT_ONCE };

/* Until the worker has requests that nobody else serves, or its lane ends. The lock is given back meanwhile.
 */
void grt_linger_wait(grt_worker *worker);
/* The worker was given requests: its thread is to come. */
void grt_linger_call(grt_worker *worker, double now_ms);
/* A client serves the worker's request, for which it was called. */
void grt_linger_overtaken(grt_worker *worker, double now_ms);
/* Something happens, and is not that the client of a request that was left to it comes: its thread is to
 * come.
 */
void grt_linger_hurry(grt_pool *pool);

#endif

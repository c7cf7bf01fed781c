/* SPDX-License-Identifier: Apache-2.0 */
/* How the thread of a context waits for its next requests. Everything here is called with the pool's lock.
 *
 * Waking a thread that sleeps takes some microseconds of who submits, and more until it runs. So a thread
 * whose last requests came right after those before them looks for the next for a moment, and then sleeps.
 * One of a pool at a time does, and none where that does not pay: an idle pool has sleeping threads only. */
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

#endif

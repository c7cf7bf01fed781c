/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a context is prepared for a request. What preparing allocates stays in the allocator's arena of the
 * thread that prepares: where clients' threads do it, in turns, blocks of one context lie in the arenas of
 * all, and what those keep grows. So a worker's own thread prepares, graphs of devices too, and others run
 * what is prepared. */
#ifndef GRT_SRC_POOL_PREPARED_H
#define GRT_SRC_POOL_PREPARED_H

#include "src/pool/parts.h"

/* With the pool's lock, while nobody serves the worker. True where it is not known. */
bool grt_prepared_for(const grt_worker *worker, const grt_request *request);

#endif

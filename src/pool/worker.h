/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of contexts: they serve what they are given. */
#ifndef GRT_SRC_POOL_WORKER_H
#define GRT_SRC_POOL_WORKER_H

#include "src/pool/parts.h"

/* `worker` is zeroed. Its thread is started, and it is idle. Of session and channel one is NULL. */
grt_status grt_worker_start(grt_worker *worker, grt_lane *lane, size_t index, grt_session *session,
                            grt_channel *channel);
/* Its thread ends, once its lane is ending. */
void grt_worker_join(grt_worker *worker);
/* Afterwards. */
void grt_worker_release(grt_worker *worker);

/* Run and answer what the worker was given, on this thread, and become idle. Without locks. */
void grt_worker_serve(grt_worker *worker);

#endif

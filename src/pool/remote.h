/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of workers whose session is in a process of its own: what binding, running and keeping results are
 * for a context. */
#ifndef GRT_SRC_POOL_REMOTE_H
#define GRT_SRC_POOL_REMOTE_H

#include "src/pool/parts.h"

/* UNSUPPORTED, with its name, if an input or output is no tensor of numbers. */
grt_status grt_remote_check_model(const grt_model *model);

/* Inputs of n requests, one behind the other; `padded` rows in all, or 0: of one request as it is. */
grt_status grt_remote_bind(grt_worker *worker, grt_request *const *requests, size_t n, int64_t padded);
/* `cancelled` is looked at once; later, grt_remote_cancel ends the run. *out_gone: see grt_channel_run. */
grt_status grt_remote_run(grt_worker *worker, double deadline_ms, bool (*cancelled)(void *user), void *user);
/* With the pool's lock, while the worker has requests. */
void grt_remote_cancel(const grt_worker *worker);
/* Each result has so many rows. */
grt_status grt_remote_check_rows(const grt_worker *worker, int64_t padded);
/* Results of a request, or, with rows, from the first row on. */
grt_status grt_remote_keep(const grt_worker *worker, grt_request *request, int64_t first_row, bool rows);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a request: counted, done, collected, called back. */
#ifndef GRT_SRC_POOL_ANSWER_H
#define GRT_SRC_POOL_ANSWER_H

#include "src/pool/parts.h"

/* Without locks. Nobody else answers it: it is in no queue and no batch. `slot`: where a worker has it, which
 * becomes NULL; may be NULL. It may be gone afterwards; it counts as open until grt_answer_close. */
void grt_answer(grt_request *request, grt_status status, grt_request **slot);
/* n requests whose callbacks have returned; with the pool's lock. */
void grt_answer_close(grt_pool *pool, size_t n);

#endif

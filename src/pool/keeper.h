/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a pool that answers requests which leave before their end, and sees to times. It sleeps while
 * there is no time to see to. */
#ifndef GRT_SRC_POOL_KEEPER_H
#define GRT_SRC_POOL_KEEPER_H

#include "src/pool/parts.h"

grt_status grt_keeper_start(grt_pool *pool);
/* Once the pool is ending. */
void grt_keeper_join(grt_pool *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of a pool: sessions of one model with their workers and their queue. */
#ifndef GRT_SRC_POOL_LANE_H
#define GRT_SRC_POOL_LANE_H

#include "src/pool/parts.h"

/* The lane is in the pool if it succeeds. */
grt_status grt_lane_add(grt_pool *pool, grt_session *const *sessions, size_t n,
                        const grt_pool_options *options, size_t *out_lane);
/* What may be found wrong before sessions are made. */
grt_status grt_lane_check(grt_pool *pool, const grt_pool_options *options);
/* The same of processes, which are the lane's in any case. */
grt_status grt_lane_add_processes(grt_pool *pool, grt_model *model, struct grt_lane_processes *processes,
                                  const grt_pool_options *options, size_t *out_lane);
/* The device among those of the pool, for so many contexts of one lane; NULL: of processes, by its name. */
grt_status grt_lane_take_device(grt_pool *pool, const grt_device *device, const char *name, size_t contexts,
                                grt_pool_device **out_device);
/* Lane number `index`. INVALID_ARGUMENT: there is none. Without the lock. */
grt_status grt_lane_find(grt_pool *pool, size_t index, grt_lane **out_lane);
/* Nothing waits in it. Its threads end: one may still run a batch whose requests have all left, and looks at
 * all lanes of the pool afterwards. */
void grt_lane_end(grt_lane *lane);
/* When those of all lanes have ended. */
void grt_lane_release(grt_lane *lane);

#endif

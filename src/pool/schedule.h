/* SPDX-License-Identifier: Apache-2.0 */
/* Who is served next, and by whom. Everything here is called with the pool's lock. */
#ifndef GRT_SRC_POOL_SCHEDULE_H
#define GRT_SRC_POOL_SCHEDULE_H

#include "src/pool/parts.h"

/* A request waits from now on. There is room in its lane. */
void grt_schedule_add(grt_request *request);
/* The one before it in its chain has been answered: it waits for a worker. */
void grt_schedule_follow(grt_request *request);
/* Sessions of the lane were lost or replaced: requests with state wait for those that are there now. */
void grt_schedule_find_sessions(grt_lane *lane);
/* Hand out what waits to workers that are idle. */
void grt_schedule_dispatch(grt_pool *pool, double now_ms);
/* The thread of the worker that has the request is on its way: another may serve in its place. */
grt_worker *grt_schedule_overtake(grt_request *request);
/* An idle worker for the request of a thread that would serve it itself; NULL: it has to wait its turn. */
grt_worker *grt_schedule_lend(grt_request *request);
/* The worker has served. */
void grt_schedule_become_idle(grt_worker *worker, double now_ms);

/* True if the lane has a session that is not lost, or is replaced just now. */
bool grt_schedule_is_served(const grt_lane *lane);
/* Nobody is sent to the session any more. False: the lane has no other, and none is coming; those that wait
 * are answered with DEVICE. */
bool grt_schedule_lose(grt_lane_session *session, grt_lane *lane);
/* The worker's session is lost: nobody is sent there any more, and the request in the slot waits again, for
 * another. False: the lane has no other; the request is the worker's to answer, and those that wait are
 * answered with DEVICE. */
bool grt_schedule_go_elsewhere(grt_worker *worker, grt_request **slot);

/* A request that waits or is in a batch is answered with the verdict, by the keeper. */
void grt_schedule_leave(grt_request *request, grt_status verdict);
/* Requests whose deadline is over leave. The time at which there is something to do again; INFINITY: never.
 */
double grt_schedule_look(grt_pool *pool);
/* The keeper looks at that time at the latest. */
void grt_schedule_wake_keeper(grt_pool *pool, double at_ms);

#endif

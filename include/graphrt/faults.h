/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that fail: what is lost with one, and how a pool goes on. Included by itself; the rules of
 * <graphrt/graphrt.h> hold. */
#ifndef GRAPHRT_FAULTS_H
#define GRAPHRT_FAULTS_H

#include <graphrt/graphrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run that fails with DEVICE, and whose device then does not even give memory any more, loses its session: its later
 * runs are DEVICE at once, with the first error. Sessions on other devices are not concerned. Requests of pools that
 * were at work there are run by other sessions of their lane; nobody is sent to the lost one; each is answered once.
 * Where a lane has no other session, its requests are DEVICE, and so are further submissions. After most of its errors
 * CUDA gives a process no access to that GPU again: a new session there wants a new process. */

/* DEVICE, with the error that it was lost by, if the session is lost. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_session_check(const grt_session *session);

/* Let `session`, of the lane's model, serve in place of number `index` of the lane's sessions, lost or not: on whatever
 * device. What that one has at work is finished before, requests that come meanwhile go to the others or wait. The
 * caller may release both sessions.
 * Threads: any; not in a callback. Errors: INVALID_ARGUMENT (another model, no such lane or session); CANCELLED after
 * grt_pool_shutdown; as grt_context_create, then the lane is as it was. */
GRT_API GRT_MUST_USE grt_status grt_pool_replace_session(grt_pool *pool, size_t lane, size_t index,
                                                         grt_session *session);

#ifdef __cplusplus
}
#endif
#endif

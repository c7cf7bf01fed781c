/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes have used of the devices that they share. Everything here is called with the pool's lock.
 *
 * A worker's time on a device counts in full while it is alone there, and by half while there are two: the
 * sum over all workers is the time in which the device was busy. So shares stay comparable however many are
 * at work. */
#ifndef GRT_SRC_POOL_SHARE_H
#define GRT_SRC_POOL_SHARE_H

#include "src/pool/parts.h"

/* The lane has its first request again: what it did not use while it was idle is not saved up. */
void grt_share_join(grt_lane *lane);
/* The worker is at work from now on, until it is not. */
void grt_share_begin(grt_worker *worker, double now_ms);
void grt_share_end(grt_worker *worker, double now_ms);

/* May the request be at work on the device, too? Up to `most` workers any may. One more may be where the
 * device has it, so that one lane's copies are hidden by another's computing; but not if a lane that has
 * requests has used less of its share, nor beside or before a request of higher priority. */
bool grt_share_has_place(const grt_pool_device *device, const grt_request *request);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in the memory of devices: one copy per device and content, shared by all sessions of a runtime that
 * run the same plan there, whoever opened it. */
#ifndef GRT_SRC_SESSION_RESIDENT_H
#define GRT_SRC_SESSION_RESIDENT_H

#include "backends/backend.h"

typedef struct grt_residents grt_residents;
typedef struct grt_resident grt_resident;

grt_status grt_residents_create(grt_residents **out_residents);
void grt_residents_release(grt_residents *residents); /* when nothing is resident; NULL-safe */

/* Key of the content on a device. */
typedef struct grt_resident_key {
    const grt_backend *backend;
    int32_t index;
    const void *plan; /* of plans that were compiled in memory; else NULL */
    uint64_t content;
    bool verified; /* by a signature: `content` alone can be made equal on purpose */
    size_t bytes;
} grt_resident_key;

/* True if it is there, or on its way. */
bool grt_resident_is_there(grt_residents *residents, const grt_resident_key *key);
/* Take a reference. If *out_fill, the caller has to fill it (grt_resident_data) and say so with
 * grt_resident_settle; otherwise it is full: whoever was first has been waited for. Fails if memory is short,
 * or as the filler failed. */
grt_status grt_resident_take(grt_residents *residents, const grt_resident_key *key, grt_device *device,
                             grt_resident **out_resident, bool *out_fill);
/* status != GRT_OK: it could not be filled. Those who wait fail alike; the next who takes it fills anew. The
 * caller keeps its reference. */
void grt_resident_settle(grt_resident *resident, grt_status status);
/* Until it is full; fails as the filler did. */
grt_status grt_resident_wait(grt_resident *resident);
void *grt_resident_data(const grt_resident *resident);
grt_resident *grt_resident_retain(grt_resident *resident);
void grt_resident_give(grt_resident *resident); /* NULL-safe */

#endif

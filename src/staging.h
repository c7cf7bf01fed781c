/* Copies between a device and host memory that it cannot reach by itself.
 *
 * Pageable memory crosses in chunks through a ring of page-locked ones: while the device fetches one, the
 * host fills the next. The driver would do the same, but for one copy at a time and at about half the speed
 * (docs/decisions/copies.md). Of one context, whose copies follow each other on its streams. */
#ifndef GRT_SRC_STAGING_H
#define GRT_SRC_STAGING_H

#include "backends/backend.h"

typedef struct grt_staging grt_staging;

/* Page-locks nothing yet: the first large copy does. */
grt_status grt_staging_create(grt_device *device, grt_staging **out_staging);
void grt_staging_release(grt_staging *staging); /* NULL-safe; its copies must be done */

/* Enqueue a copy to the device. `src` has been read when this returns, unless it is page-locked itself, which
 * `memory` says: then it is read when the stream gets there. */
grt_status grt_staging_upload(grt_staging *staging, void *dst, const void *src, size_t bytes,
                              grt_memory memory, void *stream);
/* A copy from the device, behind what the stream has to do. Done when this returns, unless `dst` is
 * page-locked: then when the stream gets there. */
grt_status grt_staging_download(grt_staging *staging, void *dst, grt_memory memory, const void *src,
                                size_t bytes, void *stream);

#endif

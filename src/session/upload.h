/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads one image of weights to several devices at once.
 *
 * Reader threads fill a small ring of chunks, pinned where the devices can; each chunk crosses to one device
 * of every island, an island being devices that can copy from each other. The rest of the island gets it
 * along a ring of peer copies in the order in which the devices came. Devices may come at any time: one that
 * comes late gets from its peers what is past. Nothing here waits for a copy but the reuse of the ring's
 * slots and each device's end. */
#ifndef GRT_SRC_SESSION_UPLOAD_H
#define GRT_SRC_SESSION_UPLOAD_H

#include "backends/backend.h"
#include "src/plan/weights_check.h"

#include <stdatomic.h>

/* A run of bytes of the image; runs are in order of offset and do not overlap. Gaps stay undefined. */
typedef struct grt_upload_piece {
    const void *data;
    size_t offset, bytes;
} grt_upload_piece;

typedef struct grt_upload_options {
    size_t max_pinned;   /* bytes of the ring; 0: 128 MiB */
    int32_t readers;     /* 0: one per core, at most 16 */
    bool direct;         /* no copies between devices */
    atomic_bool *cancel; /* may be NULL */
    void (*moved)(void *user,
                  size_t bytes); /* a chunk arrived on some device; from any thread; may be NULL */
    void *user;
} grt_upload_options;

typedef struct grt_upload_stats {
    size_t host_bytes, peer_bytes;   /* onto this device */
    size_t read_bytes, pinned_bytes; /* of the whole upload so far */
} grt_upload_stats;

typedef struct grt_upload grt_upload;

/* pieces must outlive the upload. check: read along by the readers while no device is there yet; may be NULL.
 * At most max_devices may run. Starts the readers. */
grt_status grt_upload_create(const grt_upload_piece *pieces, size_t n, size_t total, int32_t max_devices,
                             grt_weights_check *check, const grt_upload_options *options,
                             grt_upload **out_upload);
/* From a thread of the device's own: fill `block` (total bytes of its memory); returns when everything is
 * there. The block must stay until the upload is released, as other devices read it. */
grt_status grt_upload_run(grt_upload *upload, grt_device *device, void *block, grt_upload_stats *out_stats);
/* After options->cancel was set: runs return CANCELLED. */
void grt_upload_wake(grt_upload *upload);
/* After every run has returned. NULL-safe. */
void grt_upload_release(grt_upload *upload);

#endif

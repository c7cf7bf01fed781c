/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that two processes map: a head that stays where it is, and data that grows. */
#ifndef GRT_SRC_PROCESS_SHARED_H
#define GRT_SRC_PROCESS_SHARED_H

#include "backends/device.h"
#include "src/process/wire.h"

typedef struct grt_shared {
    int fd;
    size_t head_bytes;
    grt_wire_head *head;
    char *data;
    size_t bytes;        /* of data that this side has mapped */
    grt_device *pinning; /* the data is page-locked for this device; NULL: for none */
    bool pinned;
} grt_shared;

/* In both cases grt_shared_close when it is not wanted any more. */
grt_status grt_shared_create(size_t n_tensors, grt_shared *out_shared);
grt_status grt_shared_open(int fd, size_t n_tensors, grt_device *pinning, grt_shared *out_shared);
void grt_shared_close(grt_shared *shared);

/* So many bytes of data at least: what there was stays, perhaps at another address. */
grt_status grt_shared_reserve(grt_shared *shared, size_t bytes);
/* The other side may have made more. */
grt_status grt_shared_follow(grt_shared *shared);

/* Room for a tensor of these bytes at *at, which is moved behind it; OUT_OF_MEMORY if no memory has that
 * much.
 */
grt_status grt_shared_place(grt_wire_tensor *tensor, size_t bytes, uint64_t *at);
/* A view of what the other side has written down there: IO unless all of it is mapped. */
grt_status grt_shared_view(const grt_shared *shared, const grt_wire_tensor *tensor, grt_tensor *out_view);

#endif

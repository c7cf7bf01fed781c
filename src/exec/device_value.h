/* SPDX-License-Identifier: Apache-2.0 */
/* Values whose memory is a device's, and a pool of it for values whose sizes come with the run. */
#ifndef GRT_SRC_EXEC_DEVICE_VALUE_H
#define GRT_SRC_EXEC_DEVICE_VALUE_H

#include "backends/backend.h"

/* Device memory that values gave back is kept for the next ones: a second run of the same sizes asks the
 * device for nothing. Of one context, whose steps follow each other on one stream, so that whoever gets a
 * block next comes after whoever had it. */
typedef struct grt_device_pool grt_device_pool;
grt_status grt_device_pool_create(grt_device *device, grt_device_pool **out_pool);
void grt_device_pool_release(grt_device_pool *pool);       /* NULL-safe; its values must be gone */
size_t grt_device_pool_bytes(const grt_device_pool *pool); /* taken from the device; NULL: 0 */

/* grt_value_alloc in the device's memory; device NULL or a host device: in host memory. pool NULL: the memory
 * goes straight back to the device when the value is gone, which waits for whatever may be using it. */
grt_status grt_device_value_alloc(grt_device *device, grt_device_pool *pool, grt_value *dst, grt_dtype dtype,
                                  int32_t rank, const int64_t *dims);
/* dst (cleared first) becomes a host copy of the device tensor `src`; waits for the stream. */
grt_status grt_device_value_download(grt_device *device, void *stream, grt_value *dst, const grt_tensor *src);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Values in device memory, and the device heap for values whose sizes come with the run. */
#ifndef GRT_SRC_EXEC_DEVICE_VALUE_H
#define GRT_SRC_EXEC_DEVICE_VALUE_H

#include "backends/backend.h"
#include "src/base/account.h"

/* Keeps freed device memory of values: a second run of the same sizes allocates nothing. Belongs to one
 * context, whose steps are ordered on one stream, so reuse needs no wait. */
typedef struct grt_device_heap grt_device_heap;
grt_status grt_device_heap_create(grt_device *device, grt_account *account, grt_device_heap **out_pool);
void grt_device_heap_release(grt_device_heap *pool);       /* NULL-safe; its values must be gone */
void grt_device_heap_trim(grt_device_heap *pool);          /* what no value has; NULL-safe */
size_t grt_device_heap_bytes(const grt_device_heap *pool); /* taken from the device; NULL: 0 */

/* grt_value_alloc in the device's memory; device NULL or a host device: in host memory. pool NULL: the memory
 * goes straight back to the device when the value is gone, which waits for whatever may be using it. */
grt_status grt_device_value_alloc(grt_device *device, grt_device_heap *pool, grt_value *dst, grt_dtype dtype,
                                  int32_t rank, const int64_t *dims);
/* dst (cleared first) becomes a host copy of the device tensor `src`; waits for the stream. */
grt_status grt_device_value_download(grt_device *device, void *stream, grt_value *dst, const grt_tensor *src);

#endif

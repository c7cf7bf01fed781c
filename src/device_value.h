/* Values whose memory is a device's. */
#ifndef GRT_SRC_DEVICE_VALUE_H
#define GRT_SRC_DEVICE_VALUE_H

#include "backends/backend.h"

/* grt_value_alloc in the device's memory; device NULL or a host device: in host memory. */
grt_status grt_device_value_alloc(grt_device *device, grt_value *dst, grt_dtype dtype, int32_t rank,
                                  const int64_t *dims);
/* dst (cleared first) becomes a host copy of the device tensor `src`; waits for the stream. */
grt_status grt_device_value_download(grt_device *device, void *stream, grt_value *dst, const grt_tensor *src);

#endif

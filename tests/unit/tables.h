/* SPDX-License-Identifier: Apache-2.0 */
/* A device's tables as a test may change them, function by function. */
#ifndef GRT_TESTS_TABLES_H
#define GRT_TESTS_TABLES_H

#include "backends/device.h"

typedef struct device_tables {
    grt_device_api api; /* points to the tables below where the device has such; a test adds others */
    const grt_device_api *before; /* the device's own */
    grt_memory_api memory;
    grt_copy_api copies;
    grt_stream_api streams;
    grt_current_api current;
    grt_fence_api fences;
    grt_graph_api graphs;
    grt_peer_api peers;
    grt_pinned_api pinned;
    grt_timer_api timer;
    grt_local_api locals;
} device_tables;

/* From now on the device has these: copies of its own. */
void device_tables_take(device_tables *t, grt_device *device);
void device_tables_give_back(device_tables *t, grt_device *device);

#endif

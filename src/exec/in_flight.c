/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/in_flight.h"

#include <stdlib.h>
#include <string.h>

struct grt_kept_memory {
    struct grt_kept_memory *next;
    void *data;
};

grt_status grt_in_flight_follow(grt_in_flight *flight, void *stream)
{
    if (!flight->any || flight->stream == grt_device_stream_id(flight->device, stream))
        return GRT_OK;
    return grt_device_stream_wait_fence(flight->device, stream, flight->fence);
}

grt_status grt_in_flight_launched(grt_in_flight *flight, void *stream)
{
    grt_device *device = flight->device;
    if (!grt_device_has_fences(device))
        return grt_device_wait(device, stream);
    if (!flight->fence)
        GRT_TRY(grt_device_fence_create(device, &flight->fence));
    GRT_TRY(grt_device_fence_record(device, flight->fence, stream));
    flight->any = true;
    flight->stream = grt_device_stream_id(device, stream);
    return GRT_OK;
}

void grt_in_flight_landed(grt_in_flight *flight)
{
    flight->any = false;
}

grt_status grt_in_flight_settle(grt_in_flight *flight)
{
    if (!flight->any)
        return GRT_OK;
    flight->any = false;
    return grt_device_fence_wait(flight->device, flight->fence);
}

void grt_in_flight_abandon(grt_in_flight *flight, void *stream)
{
    char *message = strdup(grt_last_error());
    (void)grt_in_flight_settle(flight);
    (void)grt_device_wait(flight->device, stream);
    grt_error_set(message ? message : "out of memory");
    free(message);
}

grt_status grt_in_flight_drop(grt_in_flight *flight, void *memory, bool captured)
{
    if (!captured || !memory) {
        grt_device_free(flight->device, memory);
        return GRT_OK;
    }
    struct grt_kept_memory *kept = malloc(sizeof *kept);
    if (!kept)
        return grt_fail_memory(sizeof *kept);
    *kept = (struct grt_kept_memory){flight->kept, memory};
    flight->kept = kept;
    return GRT_OK;
}

void grt_in_flight_release(grt_in_flight *flight)
{
    (void)grt_in_flight_settle(flight);
    for (struct grt_kept_memory *m = flight->kept, *next; m; m = next) {
        next = m->next;
        grt_device_free(flight->device, m->data);
        free(m);
    }
    flight->kept = NULL;
    grt_device_fence_release(flight->device, flight->fence);
    flight->fence = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The checked way to a device's tables. */
#include "backends/device.h"

#include "src/base/large.h"

#include <stdlib.h>
#include <string.h>

static grt_status fail_absent(const grt_device *device, const char *noun)
{
    return grt_fail(GRT_STATUS_UNSUPPORTED, "device %d of its kind offers no %s", device->index, noun);
}

void grt_device_close(grt_device *device)
{
    if (device)
        device->api->close(device);
}

bool grt_device_is_host(const grt_device *device)
{
    return !device->api->copies;
}

bool grt_device_chooses(const grt_device *device)
{
    return device->api->identify;
}

void grt_device_identify(grt_device *device, grt_text *key)
{
    if (device && device->api->identify)
        device->api->identify(device, key);
}

enum { ALIGNMENT = 256 };

static grt_status alloc_host(grt_device *device, size_t bytes, void **out_data)
{
    (void)device;
    *out_data = grt_alloc_large(ALIGNMENT, bytes);
    return *out_data ? GRT_OK : grt_fail_memory(bytes);
}

static void free_host(grt_device *device, void *data)
{
    (void)device;
    free(data);
}

static grt_status check_host(grt_device *device, const void *data)
{
    (void)device, (void)data;
    return GRT_OK;
}

static grt_status host_in_use(grt_device *device, size_t *out_bytes)
{
    (void)device;
    *out_bytes = 0;
    return GRT_OK;
}

const grt_memory_api grt_host_memory = {
    .alloc = alloc_host, .free = free_host, .check = check_host, .in_use = host_in_use};

grt_status grt_device_alloc(grt_device *device, size_t bytes, void **out_data)
{
    if (bytes > SIZE_MAX / 2)
        return grt_fail_memory(bytes);
    if (!device->api->memory)
        return fail_absent(device, "memory");
    return device->api->memory->alloc(device, bytes ? bytes : 1, out_data);
}

void grt_device_free(grt_device *device, void *data)
{
    if (data)
        device->api->memory->free(device, data);
}

grt_status grt_device_check_pointer(grt_device *device, const void *data)
{
    return device->api->memory ? device->api->memory->check(device, data) : fail_absent(device, "memory");
}

grt_status grt_device_in_use(grt_device *device, size_t *out_bytes)
{
    const grt_memory_api *memory = device->api->memory;
    return memory ? memory->in_use(device, out_bytes) : fail_absent(device, "memory");
}

/* Without a table, page-locked memory is as any of the host's. */
grt_status grt_device_alloc_pinned(grt_device *device, size_t bytes, void **out_data)
{
    const grt_pinned_api *pinned = device->api->pinned;
    if (bytes > SIZE_MAX / 2)
        return grt_fail_memory(bytes);
    return (pinned ? pinned->alloc : alloc_host)(device, bytes ? bytes : 1, out_data);
}

void grt_device_free_pinned(grt_device *device, void *data)
{
    const grt_pinned_api *pinned = device->api->pinned;
    if (data)
        (pinned ? pinned->free : free_host)(device, data);
}

grt_status grt_device_pin(grt_device *device, void *data, size_t bytes)
{
    return device->api->pinned ? device->api->pinned->pin(device, data, bytes) : GRT_OK;
}

void grt_device_unpin(grt_device *device, void *data)
{
    if (device->api->pinned)
        device->api->pinned->unpin(device, data);
}

static grt_status copy_host(void *dst, const void *src, size_t bytes)
{
    if (bytes)
        memcpy(dst, src, bytes);
    return GRT_OK;
}

grt_status grt_device_upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    const grt_copy_api *copies = device->api->copies;
    return copies ? copies->upload(device, dst, src, bytes, stream) : copy_host(dst, src, bytes);
}

grt_status grt_device_download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    const grt_copy_api *copies = device->api->copies;
    return copies ? copies->download(device, dst, src, bytes, stream) : copy_host(dst, src, bytes);
}

grt_status grt_device_copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    const grt_copy_api *copies = device->api->copies;
    return copies ? copies->copy(device, dst, src, bytes, stream) : copy_host(dst, src, bytes);
}

grt_status grt_device_stream_create(grt_device *device, int32_t priority, void **out_stream)
{
    *out_stream = NULL;
    return device->api->streams ? device->api->streams->create(device, priority, out_stream) : GRT_OK;
}

grt_status grt_device_part_take(grt_device *whole, int64_t n, grt_device **part)
{
    return whole->api->parts
               ? whole->api->parts->take(whole, n, part)
               : fail_absent(whole, "processors for one session alone: leave multiprocessors 0");
}

void grt_device_part_give(grt_device *part)
{
    part->api->parts->give(part);
}

void grt_device_part_close(grt_device *part)
{
    part->api->parts->close(part);
}

void grt_device_stream_release(grt_device *device, void *stream)
{
    if (stream)
        device->api->streams->release(device, stream);
}

grt_status grt_device_wait(grt_device *device, void *stream)
{
    return device->api->streams ? device->api->streams->wait(device, stream) : GRT_OK;
}

uint64_t grt_device_stream_id(grt_device *device, void *stream)
{
    return device->api->streams ? device->api->streams->id(device, stream) : 0;
}

bool grt_device_stream_is_captured(grt_device *device, void *stream)
{
    return device->api->streams && device->api->streams->is_captured(device, stream);
}

grt_status grt_device_enter(grt_device *device, bool *out_switched)
{
    *out_switched = false;
    return device->api->current ? device->api->current->enter(device, out_switched) : GRT_OK;
}

void grt_device_leave(grt_device *device, bool switched)
{
    if (device->api->current)
        device->api->current->leave(device, switched);
}

bool grt_device_has_fences(const grt_device *device)
{
    return device->api->fences;
}

grt_status grt_device_fence_create(grt_device *device, void **out_fence)
{
    *out_fence = NULL;
    return device->api->fences ? device->api->fences->create(device, out_fence)
                               : fail_absent(device, "fences");
}

void grt_device_fence_release(grt_device *device, void *fence)
{
    if (fence)
        device->api->fences->release(device, fence);
}

grt_status grt_device_fence_record(grt_device *device, void *fence, void *stream)
{
    return device->api->fences ? device->api->fences->record(device, fence, stream)
                               : fail_absent(device, "fences");
}

grt_status grt_device_fence_wait(grt_device *device, void *fence)
{
    return device->api->fences ? device->api->fences->wait(device, fence) : fail_absent(device, "fences");
}

grt_status grt_device_stream_wait_fence(grt_device *device, void *stream, void *fence)
{
    return device->api->fences ? device->api->fences->stream_wait(device, stream, fence)
                               : fail_absent(device, "fences");
}

bool grt_device_has_graphs(const grt_device *device)
{
    return device->api->graphs;
}

grt_status grt_device_graph_begin(grt_device *device, void *stream)
{
    return device->api->graphs ? device->api->graphs->begin(device, stream) : fail_absent(device, "graphs");
}

grt_status grt_device_graph_end(grt_device *device, void *stream, void **out_graph)
{
    if (out_graph)
        *out_graph = NULL;
    return device->api->graphs ? device->api->graphs->end(device, stream, out_graph)
                               : fail_absent(device, "graphs");
}

grt_status grt_device_graph_launch(grt_device *device, void *graph, void *stream)
{
    return device->api->graphs ? device->api->graphs->launch(device, graph, stream)
                               : fail_absent(device, "graphs");
}

void grt_device_graph_release(grt_device *device, void *graph)
{
    if (graph)
        device->api->graphs->release(device, graph);
}

bool grt_device_has_peers(const grt_device *device)
{
    return device->api->peers;
}

bool grt_device_peer_can(grt_device *device, grt_device *from)
{
    return device->backend == from->backend && device->api->peers && device->api->peers->can(device, from);
}

grt_status grt_device_peer_enable(grt_device *device, grt_device *from)
{
    return device->api->peers ? device->api->peers->enable(device, from) : fail_absent(device, "peers");
}

grt_status grt_device_peer_copy(grt_device *device, void *dst, grt_device *from, const void *src,
                                size_t bytes, void *stream)
{
    return device->api->peers ? device->api->peers->copy(device, dst, from, src, bytes, stream)
                              : fail_absent(device, "peers");
}

bool grt_device_has_timer(const grt_device *device)
{
    return device->api->timer;
}

grt_status grt_device_event_create(grt_device *device, void **out_event)
{
    *out_event = NULL;
    return device->api->timer ? device->api->timer->create(device, out_event) : fail_absent(device, "timer");
}

void grt_device_event_release(grt_device *device, void *event)
{
    if (event)
        device->api->timer->release(device, event);
}

grt_status grt_device_event_record(grt_device *device, void *event, void *stream)
{
    return device->api->timer ? device->api->timer->record(device, event, stream)
                              : fail_absent(device, "timer");
}

grt_status grt_device_event_elapsed(grt_device *device, void *begin, void *end, double *out_ms)
{
    return device->api->timer ? device->api->timer->elapsed(device, begin, end, out_ms)
                              : fail_absent(device, "timer");
}

grt_status grt_device_local_check(grt_device *device, void *local)
{
    return local ? device->api->locals->check(device, local) : GRT_OK;
}

void grt_device_local_release(grt_device *device, void *local)
{
    if (local)
        device->api->locals->release(device, local);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The backends there are, and the checked way to their devices. */
#include "backends/backend.h"
#include "backends/module.h"

#include <string.h>

static const grt_backend *const backends[] = {&grt_backend_cpu, &grt_backend_null, &grt_backend_mirror};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

const grt_backend *grt_backend_find(const char *name)
{
    grt_text names = {0};
    for (size_t i = 0; i < N_BACKENDS; i++) {
        if (!strcmp(backends[i]->name, name)) {
            grt_text_release(&names);
            return backends[i];
        }
        grt_text_add(&names, "%s, ", backends[i]->name);
    }
    const grt_backend *module = NULL;
    if (!strcmp(name, "cuda"))
        module = grt_backend_module(name);
    else
        grt_fail(GRT_STATUS_DEVICE, "there is no device kind '%s'; there are: %scuda", name,
                 grt_text_get(&names));
    grt_text_release(&names);
    return module;
}

bool grt_device_is_host(const grt_device *device)
{
    return !device->vtable->upload;
}

void grt_device_close(grt_device *device)
{
    if (device)
        device->vtable->close(device);
}

grt_status grt_device_alloc(grt_device *device, size_t bytes, void **out_data)
{
    if (bytes > SIZE_MAX / 2)
        return grt_fail_memory(bytes);
    return device->vtable->alloc(device, bytes ? bytes : 1, out_data);
}

void grt_device_free(grt_device *device, void *data)
{
    if (data)
        device->vtable->free(device, data);
}

grt_status grt_device_upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    if (!grt_device_is_host(device))
        return device->vtable->upload(device, dst, src, bytes, stream);
    if (bytes)
        memcpy(dst, src, bytes);
    return GRT_OK;
}

grt_status grt_device_download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    if (!grt_device_is_host(device))
        return device->vtable->download(device, dst, src, bytes, stream);
    if (bytes)
        memcpy(dst, src, bytes);
    return GRT_OK;
}

grt_status grt_device_enter(grt_device *device, bool *out_switched)
{
    *out_switched = false;
    return grt_device_is_host(device) ? GRT_OK : device->vtable->enter(device, out_switched);
}

void grt_device_leave(grt_device *device, bool switched)
{
    if (!grt_device_is_host(device))
        device->vtable->leave(device, switched);
}

grt_status grt_device_copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    if (!grt_device_is_host(device))
        return device->vtable->copy(device, dst, src, bytes, stream);
    if (bytes)
        memcpy(dst, src, bytes);
    return GRT_OK;
}

grt_status grt_device_wait(grt_device *device, void *stream)
{
    return grt_device_is_host(device) ? GRT_OK : device->vtable->stream_wait(device, stream);
}

grt_status grt_device_check_pointer(grt_device *device, const void *data)
{
    return device->vtable->check_pointer ? device->vtable->check_pointer(device, data) : GRT_OK;
}

/* ---- streams ---- */

grt_status grt_device_stream_create(grt_device *device, void **out_stream)
{
    return device->vtable->stream_create(device, out_stream);
}

void grt_device_stream_release(grt_device *device, void *stream)
{
    if (stream)
        device->vtable->stream_release(device, stream);
}

uint64_t grt_device_stream_id(grt_device *device, void *stream)
{
    return device->vtable->stream_id ? device->vtable->stream_id(device, stream)
                                     : (uint64_t)(uintptr_t)stream;
}

bool grt_device_stream_is_captured(grt_device *device, void *stream)
{
    return device->vtable->stream_is_captured && device->vtable->stream_is_captured(device, stream);
}

/* ---- fences ---- */

bool grt_device_has_fences(const grt_device *device)
{
    return device->vtable->fence_create;
}

grt_status grt_device_fence_create(grt_device *device, void **out_fence)
{
    return device->vtable->fence_create(device, out_fence);
}

void grt_device_fence_release(grt_device *device, void *fence)
{
    if (fence)
        device->vtable->fence_release(device, fence);
}

grt_status grt_device_fence_record(grt_device *device, void *fence, void *stream)
{
    return device->vtable->fence_record(device, fence, stream);
}

grt_status grt_device_fence_wait(grt_device *device, void *fence)
{
    return device->vtable->fence_wait(device, fence);
}

grt_status grt_device_stream_wait_fence(grt_device *device, void *stream, void *fence)
{
    return device->vtable->stream_wait_fence(device, stream, fence);
}

/* ---- graphs ---- */

bool grt_device_has_graphs(const grt_device *device)
{
    return device->vtable->graph_begin;
}

grt_status grt_device_graph_begin(grt_device *device, void *stream)
{
    return device->vtable->graph_begin(device, stream);
}

grt_status grt_device_graph_end(grt_device *device, void *stream, void **out_graph)
{
    *out_graph = NULL;
    grt_status status = device->vtable->graph_end(device, stream, out_graph);
    if (status == GRT_OK)
        return GRT_OK;
    grt_device_graph_release(device, *out_graph);
    *out_graph = NULL;
    return status;
}

grt_status grt_device_graph_launch(grt_device *device, void *graph, void *stream)
{
    return device->vtable->graph_launch(device, graph, stream);
}

void grt_device_graph_release(grt_device *device, void *graph)
{
    if (graph)
        device->vtable->graph_release(device, graph);
}

/* ---- times ---- */

bool grt_device_has_timer(const grt_device *device)
{
    return device->vtable->event_create;
}

grt_status grt_device_event_create(grt_device *device, void **out_event)
{
    return device->vtable->event_create(device, out_event);
}

void grt_device_event_release(grt_device *device, void *event)
{
    if (event)
        device->vtable->event_release(device, event);
}

grt_status grt_device_event_record(grt_device *device, void *event, void *stream)
{
    return device->vtable->event_record(device, event, stream);
}

grt_status grt_device_event_elapsed(grt_device *device, void *begin, void *end, double *out_ms)
{
    return device->vtable->event_elapsed(device, begin, end, out_ms);
}

/* ---- what kernels keep ---- */

grt_status grt_device_local_check(grt_device *device, void *local)
{
    return local ? device->vtable->local_check(device, local) : GRT_OK;
}

void grt_device_local_release(grt_device *device, void *local)
{
    if (local)
        device->vtable->local_release(device, local);
}

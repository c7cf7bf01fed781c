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

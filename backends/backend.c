/* The backends there are, and the checked way to their devices. */
#include "backends/backend.h"

#include <string.h>

static const grt_backend *const backends[] = {&grt_backend_cpu, &grt_backend_null};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

const grt_backend *grt_backend_find(const char *name)
{
    grt_text names = {0};
    for (size_t i = 0; i < N_BACKENDS; i++) {
        if (!strcmp(backends[i]->name, name)) {
            grt_text_release(&names);
            return backends[i];
        }
        grt_text_add(&names, "%s%s", i ? ", " : "", backends[i]->name);
    }
    grt_fail(GRT_STATUS_DEVICE, "there is no device kind '%s'; this build has: %s", name, grt_text_get(&names));
    grt_text_release(&names);
    return NULL;
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

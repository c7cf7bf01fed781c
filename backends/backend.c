/* SPDX-License-Identifier: Apache-2.0 */
/* The backends there are, and the checked way to their devices. */
#include "backends/backend.h"
#include "backends/module.h"
#include "src/base/structs.h"

#include <string.h>

typedef struct backend_entry {
    grt_device_kind_info kind;
    const grt_backend *built_in; /* NULL: in a module of its own */
} backend_entry;

static const backend_entry backends[] = {
    {{.name = "cpu"}, &grt_backend_cpu},
    {{.name = "null", .test_only = true}, &grt_backend_null},
    {{.name = "mirror", .accelerator = true, .test_only = true}, &grt_backend_mirror},
    {{.name = "cuda", .accelerator = true}, NULL},
};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

size_t grt_device_kind_count(void)
{
    return N_BACKENDS;
}

grt_status grt_device_kind(size_t index, grt_device_kind_info *out_info)
{
    if (index >= N_BACKENDS)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_device_kind: there are %d kinds, none of number %zu", (int)N_BACKENDS, index);
    return grt_info_give(out_info, &backends[index].kind, sizeof backends[index].kind,
                         "grt_device_kind_info");
}

const grt_backend *grt_backend_find(const char *name)
{
    grt_text names = {0};
    for (size_t i = 0; i < N_BACKENDS; i++) {
        if (!strcmp(backends[i].kind.name, name)) {
            grt_text_release(&names);
            return backends[i].built_in ? backends[i].built_in : grt_backend_module(name);
        }
        grt_text_add(&names, "%s%s", i ? ", " : "", backends[i].kind.name);
    }
    grt_fail(GRT_STATUS_DEVICE, "there is no device kind '%s'; there are: %s", name, grt_text_get(&names));
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

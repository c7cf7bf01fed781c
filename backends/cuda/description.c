/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/description.h"

#include "backends/cuda/libraries.h"
#include "backends/cuda/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void close_description(grt_device *base)
{
    cuda_device *device = (cuda_device *)base;
    cuda_libraries_release(device->libraries);
    free(device);
}

/* No driver is known: choices serve all of them. */
static void cuda_identify_description(grt_device *base, grt_text *key)
{
    const cuda_device *device = (const cuda_device *)base;
    grt_text_add(key, "gpu=%s;sm=%d%d;driver=0;", device->prop.name, device->prop.major, device->prop.minor);
}

const grt_device_api cuda_description_api = {.close = close_description,
                                             .identify = cuda_identify_description};

/* One number of cuDNN's text of a device: "name": 123. Names stand in quotes there, and quotes in strings
 * have a backslash in front. */
static grt_status description_number(const grt_device_description *d, const char *name, int64_t most,
                                     int64_t *out_number)
{
    const size_t size = strlen(name);
    for (const char *at = d->properties; (at = strstr(at, name)); at += size) {
        if (at == d->properties || at[-1] != '"' || at[size] != '"')
            continue;
        const char *text = at + size + 1;
        text += strspn(text, " \t\r\n");
        char *end;
        if (*text != ':')
            continue;
        errno = 0;
        *out_number = strtoll(text + 1, &end, 10);
        if (end != text + 1 && !errno && *out_number > 0 && *out_number <= most)
            return GRT_OK;
    }
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "the properties of the described device '%s' must have a number \"%s\" of 1 to %lld; graphc "
        "devices --dump writes them from a GPU",
        d->name, name, (long long)most);
}

/* What kernels choose their forms by. Of a multiprocessor, a block can ask for all but what the system keeps.
 */
static grt_status description_properties(const grt_device_description *d, struct cudaDeviceProp *out)
{
    enum { MOST_BYTES = 1 << 30, MOST_COUNT = 1 << 20 };
    int64_t multiprocessors, shared, reserved;
    GRT_TRY(description_number(d, "multiProcessorCount", MOST_COUNT, &multiprocessors));
    GRT_TRY(description_number(d, "maxSharedMemoryPerBlockOptin", MOST_BYTES, &shared));
    GRT_TRY(description_number(d, "reservedSharedMemoryPerBlock", MOST_BYTES, &reserved));
    out->multiProcessorCount = (int)multiprocessors;
    out->sharedMemPerBlockOptin = (size_t)shared;
    out->sharedMemPerMultiprocessor = (size_t)(shared + reserved);
    return GRT_OK;
}

static grt_status cuda_read_description(const grt_device_description *d, cuda_device *device)
{
    device->base = (grt_device){.api = &cuda_description_api, .backend = &grt_backend_cuda, .index = -1};
    memcpy(device->prop.name, d->name, strlen(d->name));
    device->prop.major = d->sm / 10;
    device->prop.minor = d->sm % 10;
    GRT_TRY(description_properties(d, &device->prop));
    return cuda_libraries_describe(d->name, d->properties, &device->libraries);
}

grt_status cuda_open_description(const grt_device_description *d, grt_device **out_device)
{
    if (d->sm < 80 || d->sm > 9999 || !*d->name || strlen(d->name) >= sizeof((cuda_device *)0)->prop.name ||
        strchr(d->name, ';'))
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "the description of '%.200s' has compute capability %d.%d; a name without ';' and 8.0 or "
            "newer is wanted",
            d->name, d->sm / 10, d->sm % 10);
    cuda_device *device = calloc(1, sizeof *device);
    if (!device)
        return grt_fail_memory(sizeof *device);
    const grt_status status = cuda_read_description(d, device);
    if (status != GRT_OK) {
        free(device);
        return status;
    }
    *out_device = &device->base;
    return GRT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The null backend: executes nothing, checks everything. It is the skeleton for a new backend: copy the
 * folder, add a line to backends/backends.def and the files to backends/sources.mk, and replace what stands
 * here.
 *
 * Its devices compute on the host's memory, so that they need no noun but memory. A device with memory of its
 * own has copies and streams, too, and may have each of the others in backends/device.h; backends/cuda/ has
 * all of them. tests/interface/ holds it to what they promise: build/tests/interface/interface --device NAME.
 */
#include "backends/backend.h"

#include "backends/null/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const grt_backend grt_backend_null;

enum { DEVICES = 8, SM = 10 };

/* How many there are in this machine. With none, say why by grt_fail and return 0. */
static int32_t null_device_count(void)
{
    return DEVICES;
}

/* What a device holds stands in a struct of its own, whose first member is a grt_device. */
typedef struct null_device {
    grt_device base;
    int32_t sm;
    char name[64];
} null_device;

static void null_close_device(grt_device *device)
{
    free(device);
}

/* For kernels that choose algorithms: what tells this kind of device and its driver from others. */
static void null_identify(grt_device *device, grt_text *key)
{
    const null_device *d = (const null_device *)device;
    grt_text_add(key, "gpu=%s;sm=%d;driver=1;", d->name, d->sm);
}

/* A table for each noun that the devices offer: complete, or left out. */
static const grt_device_api api = {
    .close = null_close_device,
    .identify = null_identify,
    .memory = &grt_host_memory,
};

static grt_status make_device(const grt_device_api *its_api, int32_t index, const char *name, int32_t sm,
                              grt_device **out_device)
{
    null_device *d = calloc(1, sizeof *d);
    if (!d)
        return grt_fail_memory(sizeof *d);
    d->base = (grt_device){.api = its_api, .backend = &grt_backend_null, .index = index};
    d->sm = sm;
    snprintf(d->name, sizeof d->name, "%s", name);
    *out_device = &d->base;
    return GRT_OK;
}

static grt_status null_open_device(int32_t index, grt_device **out_device)
{
    if (index < 0 || index >= DEVICES)
        return grt_fail(GRT_STATUS_DEVICE, "there is no device null:%d; null:0 to null:%d exist", index,
                        DEVICES - 1);
    return make_device(&api, index, "null", SM, out_device);
}

static void null_identify_description(grt_device *device, grt_text *key)
{
    const null_device *d = (const null_device *)device;
    grt_text_add(key, "gpu=%s;sm=%d;driver=0;", d->name, d->sm);
}

static const grt_device_api description_api = {.close = null_close_device,
                                               .identify = null_identify_description};

/* What another machine is told of a device of this one... */
static grt_status null_describe(grt_device *device, grt_text *name, int32_t *out_sm, grt_text *properties)
{
    const null_device *d = (const null_device *)device;
    grt_text_add(name, "%s", d->name);
    grt_text_add(properties, "{}");
    *out_sm = d->sm;
    return GRT_OK;
}

/* ...and what it makes of that there. */
static grt_status null_open_description(const grt_device_description *description, grt_device **out_device)
{
    return make_device(&description_api, -1, description->name, description->sm, out_device);
}

const grt_backend grt_backend_null = {
    .name = "null",
    .traits = {.simulated = true},
    .device_count = null_device_count,
    .device_open = null_open_device,
    .api = &api,
    .find_kernel = null_find_kernel,
    .describe = null_describe,
    .open_description = null_open_description,
    .description_api = &description_api,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/session/devices.h"

#include "backends/registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    const grt_backend *backend;
    int32_t index;
    bool opening;
    grt_device *device; /* NULL while opening, and after a failure: the next one who asks tries again */
    grt_device_algos algos;
} entry;

/* It stays, as memory may that was allocated with it, and is taken again. */
typedef struct taken_part {
    struct taken_part *next;
    grt_device *whole, *device; /* device: NULL until it was taken once */
    bool taken;
} taken_part;

struct grt_devices {
    pthread_mutex_t lock; /* of the lists; not held while a backend opens a device */
    pthread_cond_t changed;
    entry *list;
    taken_part *parts;
};

grt_status grt_devices_create(grt_devices **out_devices)
{
    grt_devices *devices = calloc(1, sizeof *devices);
    if (!devices)
        return grt_fail_memory(sizeof *devices);
    pthread_mutex_init(&devices->lock, NULL);
    pthread_cond_init(&devices->changed, NULL);
    *out_devices = devices;
    return GRT_OK;
}

void grt_devices_release(grt_devices *devices)
{
    if (!devices)
        return;
    for (taken_part *p = devices->parts, *next; p; p = next) {
        next = p->next;
        if (p->device)
            grt_device_part_close(p->device);
        free(p);
    }
    for (entry *e = devices->list, *next; e; e = next) {
        next = e->next;
        grt_device_close(e->device);
        free(e);
    }
    pthread_mutex_destroy(&devices->lock);
    pthread_cond_destroy(&devices->changed);
    free(devices);
}

bool grt_devices_any(grt_devices *devices)
{
    pthread_mutex_lock(&devices->lock);
    const bool any = devices->list != NULL;
    pthread_mutex_unlock(&devices->lock);
    return any;
}

static entry *devices_find(grt_devices *devices, const grt_backend *backend, int32_t index)
{
    for (entry *e = devices->list; e; e = e->next)
        if (e->backend == backend && e->index == index)
            return e;
    entry *e = calloc(1, sizeof *e);
    if (e) {
        *e = (entry){.next = devices->list, .backend = backend, .index = index};
        devices->list = e;
    }
    return e;
}

grt_status grt_devices_open(grt_devices *devices, const grt_backend *backend, int32_t index,
                            grt_algo_cache *algos, grt_background *background, grt_device **out_device)
{
    pthread_mutex_lock(&devices->lock);
    entry *e = devices_find(devices, backend, index);
    while (e && e->opening)
        pthread_cond_wait(&devices->changed, &devices->lock);
    const bool mine = e && !e->device;
    if (mine)
        e->opening = true;
    pthread_mutex_unlock(&devices->lock);
    if (!e)
        return grt_fail_memory(sizeof *e);
    if (mine) {
        grt_device *device = NULL;
        grt_status status = backend->device_open(index, &device);
        if (status == GRT_OK) {
            grt_device_algos_init(&e->algos, algos);
            e->algos.base.background = background;
            e->algos.transient = backend->traits.simulated && !grt_algo_cache_is_named(algos);
            device->algos = grt_device_chooses(device) ? &e->algos.base : NULL;
        }
        pthread_mutex_lock(&devices->lock);
        e->opening = false;
        e->device = device;
        pthread_cond_broadcast(&devices->changed);
        pthread_mutex_unlock(&devices->lock);
        GRT_TRY(status);
    }
    *out_device = e->device;
    return GRT_OK;
}

static taken_part *devices_find_part(grt_devices *devices, grt_device *whole)
{
    for (taken_part *p = devices->parts; p; p = p->next)
        if (p->whole == whole && !p->taken)
            return p;
    taken_part *p = calloc(1, sizeof *p);
    if (p) {
        *p = (taken_part){.next = devices->parts, .whole = whole};
        devices->parts = p;
    }
    return p;
}

grt_status grt_devices_take_part(grt_devices *devices, grt_device *whole, int64_t n, grt_device **out_part)
{
    pthread_mutex_lock(&devices->lock);
    taken_part *p = devices_find_part(devices, whole);
    const grt_status status = p ? grt_device_part_take(whole, n, &p->device) : grt_fail_memory(sizeof *p);
    if (status == GRT_OK) {
        p->taken = true;
        *out_part = p->device;
    }
    pthread_mutex_unlock(&devices->lock);
    return status;
}

void grt_devices_give_part(grt_devices *devices, grt_device *part)
{
    pthread_mutex_lock(&devices->lock);
    for (taken_part *p = devices->parts; p; p = p->next)
        if (p->device == part) {
            grt_device_part_give(part);
            p->taken = false;
        }
    pthread_mutex_unlock(&devices->lock);
}

grt_status grt_device_parse(const char *text, const grt_backend **out_backend, int32_t *out_index)
{
    char name[32] = "cpu";
    long index = 0;
    if (text) {
        const char *colon = strchr(text, ':');
        size_t length = colon ? (size_t)(colon - text) : strlen(text);
        char *end = NULL;
        if (colon)
            index = strtol(colon + 1, &end, 10);
        if (length >= sizeof name || (colon && (end == colon + 1 || *end || index < 0 || index > 1 << 20)))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "device '%s' is not of the form KIND or KIND:NUMBER",
                            text);
        memcpy(name, text, length);
        name[length] = '\0';
    }
    *out_backend = grt_backend_find(name);
    *out_index = (int32_t)index;
    return *out_backend ? GRT_OK : GRT_STATUS_DEVICE;
}

grt_status grt_device_count(const char *kind, int32_t *out_count)
{
    if (!kind || !out_count)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_device_count: kind or out_count is NULL");
    const grt_backend *backend = grt_backend_find(kind);
    if (!backend)
        return GRT_STATUS_DEVICE;
    *out_count = backend->device_count();
    return GRT_OK;
}

static grt_status describe_one(const grt_backend *backend, int32_t index,
                               void (*each)(void *user, const grt_device_description *description),
                               void *user)
{
    grt_device *device;
    grt_text name = {0}, properties = {0};
    grt_device_description d = {0};
    GRT_TRY(backend->device_open(index, &device));
    grt_status status = backend->describe(device, &name, &d.sm, &properties);
    if (status == GRT_OK && (name.failed || properties.failed))
        status = grt_fail_memory(properties.size);
    d.name = grt_text_get(&name);
    d.properties = grt_text_get(&properties);
    if (status == GRT_OK)
        each(user, &d);
    grt_text_release(&name);
    grt_text_release(&properties);
    grt_device_close(device);
    return status;
}

grt_status grt_device_describe(const char *device,
                               void (*each)(void *user, const grt_device_description *description),
                               void *user)
{
    const grt_backend *backend;
    int32_t index;
    if (!device || !each)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_device_describe: device or each is NULL");
    GRT_TRY(grt_device_parse(device, &backend, &index));
    if (!backend->describe)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "devices of kind '%s' have no descriptions", backend->name);
    return describe_one(backend, index, each, user);
}

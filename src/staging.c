/* See staging.h. */
#include "src/staging.h"

#include <stdlib.h>
#include <string.h>

/* A chunk is long enough to cross at nearly the bus's speed, and short enough that little is left to copy
 * when the last one is there. Smaller copies are left to the driver, which has page-locked memory for them.
 */
enum { SLOTS = 8, CHUNK = 256 << 10, LEAST = 64 << 10 };

typedef struct slot {
    char *data;
    void *fence;
    bool pending; /* a copy was enqueued, and nobody waited for it */
} slot;

struct grt_staging {
    grt_device *device;
    char *block;  /* page-locked; NULL: not yet */
    bool refused; /* there is no such memory: the driver may do it all */
    slot slots[SLOTS];
    int next;
};

grt_status grt_staging_create(grt_device *device, grt_staging **out_staging)
{
    grt_staging *staging = calloc(1, sizeof *staging);
    if (!staging)
        return grt_fail_memory(sizeof *staging);
    staging->device = device;
    staging->refused = !device->vtable->alloc_pinned || !device->vtable->fence_create;
    *out_staging = staging;
    return GRT_OK;
}

static void release_ring(grt_staging *staging)
{
    grt_device *device = staging->device;
    for (int i = 0; i < SLOTS; i++)
        if (staging->slots[i].fence)
            device->vtable->fence_release(device, staging->slots[i].fence);
    memset(staging->slots, 0, sizeof staging->slots);
    if (staging->block)
        device->vtable->free_pinned(device, staging->block);
    staging->block = NULL;
}

void grt_staging_release(grt_staging *staging)
{
    if (staging)
        release_ring(staging);
    free(staging);
}

static grt_status make_ring(grt_staging *staging)
{
    grt_device *device = staging->device;
    void *block;
    GRT_TRY(device->vtable->alloc_pinned(device, (size_t)SLOTS * CHUNK, &block));
    staging->block = block;
    for (int i = 0; i < SLOTS; i++) {
        staging->slots[i].data = staging->block + (size_t)i * CHUNK;
        GRT_TRY(device->vtable->fence_create(device, &staging->slots[i].fence));
    }
    return GRT_OK;
}

/* Is there a ring for a copy of this size? Where memory cannot be page-locked copies are slower, not wrong.
 */
static bool has_ring(grt_staging *staging, size_t bytes)
{
    if (staging->refused || bytes < LEAST)
        return false;
    if (!staging->block && make_ring(staging) != GRT_OK) {
        release_ring(staging);
        staging->refused = true;
    }
    return !staging->refused;
}

static grt_status wait_for(grt_staging *staging, slot *s)
{
    if (s->pending)
        GRT_TRY(staging->device->vtable->fence_wait(staging->device, s->fence));
    s->pending = false;
    return GRT_OK;
}

/* The next slot of the ring, free to be written. */
static grt_status take_slot(grt_staging *staging, slot **out_slot)
{
    slot *s = &staging->slots[staging->next];
    staging->next = (staging->next + 1) % SLOTS;
    *out_slot = s;
    return wait_for(staging, s);
}

static grt_status mark(grt_staging *staging, slot *s, void *stream)
{
    GRT_TRY(staging->device->vtable->fence_record(staging->device, s->fence, stream));
    s->pending = true;
    return GRT_OK;
}

static size_t chunk_at(size_t bytes, size_t at)
{
    return bytes - at < CHUNK ? bytes - at : CHUNK;
}

grt_status grt_staging_upload(grt_staging *staging, void *dst, const void *src, size_t bytes,
                              grt_memory memory, void *stream)
{
    grt_device *device = staging->device;
    if (memory == GRT_MEMORY_PINNED || !has_ring(staging, bytes))
        return grt_device_upload(device, dst, src, bytes, stream);
    for (size_t at = 0; at < bytes; at += CHUNK) {
        const size_t n = chunk_at(bytes, at);
        slot *s;
        GRT_TRY(take_slot(staging, &s));
        memcpy(s->data, (const char *)src + at, n);
        GRT_TRY(grt_device_upload(device, (char *)dst + at, s->data, n, stream));
        GRT_TRY(mark(staging, s, stream));
    }
    return GRT_OK;
}

grt_status grt_staging_download(grt_staging *staging, void *dst, grt_memory memory, const void *src,
                                size_t bytes, void *stream)
{
    grt_device *device = staging->device;
    if (memory == GRT_MEMORY_PINNED)
        return grt_device_download(device, dst, src, bytes, stream);
    if (!has_ring(staging, bytes)) {
        GRT_TRY(grt_device_download(device, dst, src, bytes, stream));
        return grt_device_wait(device, stream);
    }
    slot *slots[SLOTS];
    for (size_t asked = 0, done = 0; done < bytes;) { /* up to SLOTS chunks are on their way */
        for (; asked < bytes && asked - done < (size_t)SLOTS * CHUNK; asked += CHUNK) {
            slot *s;
            GRT_TRY(take_slot(staging, &s));
            GRT_TRY(grt_device_download(device, s->data, (const char *)src + asked, chunk_at(bytes, asked),
                                        stream));
            GRT_TRY(mark(staging, s, stream));
            slots[asked / CHUNK % SLOTS] = s;
        }
        slot *s = slots[done / CHUNK % SLOTS];
        GRT_TRY(wait_for(staging, s));
        memcpy((char *)dst + done, s->data, chunk_at(bytes, done));
        done += CHUNK;
    }
    return GRT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/session/resident.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct grt_residents {
    pthread_mutex_t lock; /* of the list and all in it; not held across a call of a device */
    pthread_cond_t settled;
    grt_resident *list;
};

struct grt_resident {
    grt_residents *residents;
    grt_resident *next;
    grt_resident_key key;
    grt_device *device;
    void *data;
    int32_t refs;
    enum { FILLING, FULL, FAILED } state;
    grt_status status;
    char *error;
};

grt_status grt_residents_create(grt_residents **out_residents)
{
    grt_residents *residents = calloc(1, sizeof *residents);
    if (!residents)
        return grt_fail_memory(sizeof *residents);
    pthread_mutex_init(&residents->lock, NULL);
    pthread_cond_init(&residents->settled, NULL);
    *out_residents = residents;
    return GRT_OK;
}

void grt_residents_release(grt_residents *residents)
{
    if (!residents)
        return;
    pthread_mutex_destroy(&residents->lock);
    pthread_cond_destroy(&residents->settled);
    free(residents);
}

static grt_resident *resident_find(grt_residents *residents, const grt_resident_key *key)
{
    grt_resident *r = residents->list;
    while (r && (r->state == FAILED || r->key.backend != key->backend || r->key.index != key->index ||
                 r->key.plan != key->plan || r->key.content != key->content ||
                 r->key.verified != key->verified || r->key.bytes != key->bytes))
        r = r->next;
    return r;
}

bool grt_resident_is_there(grt_residents *residents, const grt_resident_key *key)
{
    pthread_mutex_lock(&residents->lock);
    const bool there = resident_find(residents, key) != NULL;
    pthread_mutex_unlock(&residents->lock);
    return there;
}

/* Give up one reference; true if that was the last: the caller then releases it outside the lock. */
static bool unlink_last(grt_resident *r)
{
    if (--r->refs)
        return false;
    grt_resident **at = &r->residents->list;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    return true;
}

static void resident_release(grt_resident *r)
{
    grt_device_free(r->device, r->data);
    free(r->error);
    free(r);
}

/* Another thread fills it: wait. Under the lock. */
static grt_status wait_for(grt_resident *r)
{
    while (r->state == FILLING)
        pthread_cond_wait(&r->residents->settled, &r->residents->lock);
    if (r->state == FULL)
        return GRT_OK;
    return grt_fail(r->status, "%s", r->error ? r->error : "the weights could not be uploaded");
}

grt_status grt_resident_take(grt_residents *residents, const grt_resident_key *key, grt_device *device,
                             grt_resident **out_resident, bool *out_fill)
{
    pthread_mutex_lock(&residents->lock);
    grt_resident *r = resident_find(residents, key);
    *out_fill = r == NULL;
    if (!r && (r = calloc(1, sizeof *r))) {
        *r = (grt_resident){.residents = residents, .next = residents->list, .key = *key, .device = device};
        residents->list = r;
    }
    if (!r) {
        pthread_mutex_unlock(&residents->lock);
        return grt_fail_memory(sizeof *r);
    }
    r->refs++;
    grt_status status = *out_fill ? GRT_OK : wait_for(r);
    const bool last = status != GRT_OK && unlink_last(r);
    pthread_mutex_unlock(&residents->lock);
    if (*out_fill && (status = grt_device_alloc(device, key->bytes, &r->data)) != GRT_OK) {
        grt_resident_settle(r, status);
        grt_resident_give(r);
    }
    if (last)
        resident_release(r);
    if (status == GRT_OK)
        *out_resident = r;
    return status;
}

grt_status grt_resident_wait(grt_resident *r)
{
    pthread_mutex_lock(&r->residents->lock);
    const grt_status status = wait_for(r);
    pthread_mutex_unlock(&r->residents->lock);
    return status;
}

void grt_resident_settle(grt_resident *r, grt_status status)
{
    char *error = status == GRT_OK ? NULL : strdup(grt_last_error());
    pthread_mutex_lock(&r->residents->lock);
    r->state = status == GRT_OK ? FULL : FAILED;
    r->status = status;
    r->error = error;
    pthread_cond_broadcast(&r->residents->settled);
    pthread_mutex_unlock(&r->residents->lock);
}

void *grt_resident_data(const grt_resident *r)
{
    return r->data;
}

grt_resident *grt_resident_retain(grt_resident *r)
{
    pthread_mutex_lock(&r->residents->lock);
    r->refs++;
    pthread_mutex_unlock(&r->residents->lock);
    return r;
}

void grt_resident_give(grt_resident *r)
{
    if (!r)
        return;
    grt_residents *residents = r->residents;
    pthread_mutex_lock(&residents->lock);
    const bool last = unlink_last(r);
    pthread_mutex_unlock(&residents->lock);
    if (last)
        resident_release(r);
}

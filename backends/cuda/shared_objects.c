/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/shared_objects.h"

#include "src/base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum state { ABSENT, BEING_MADE, MADE } state;

struct cuda_shared_object {
    UT_hash_handle hh;
    size_t users; /* who hold it or wait for it */
    state state;
    const cuda_object_kind *kind;
    void *data;
    char key[];
};

struct cuda_shared_objects {
    pthread_mutex_t lock; /* not held while one is made */
    pthread_cond_t changed;
    cuda_shared_object *table;
};

grt_status cuda_shared_objects_create(cuda_shared_objects **out_objects)
{
    cuda_shared_objects *objects = calloc(1, sizeof *objects);
    if (!objects)
        return grt_fail_memory(sizeof *objects);
    pthread_mutex_init(&objects->lock, NULL);
    pthread_cond_init(&objects->changed, NULL);
    *out_objects = objects;
    return GRT_OK;
}

static cuda_shared_object *find_or_add(cuda_shared_objects *objects, const char *key,
                                       const cuda_object_kind *kind)
{
    cuda_shared_object *o;
    GRT_HASH_FIND_OR_ADD(objects->table, key, o);
    if (o && !o->kind)
        o->kind = kind;
    return o;
}

/* With the lock held; what is to be released then, without it, or NULL. */
static cuda_shared_object *cuda_shared_objects_leave(cuda_shared_objects *objects, cuda_shared_object *o)
{
    if (--o->users)
        return NULL;
    HASH_DEL(objects->table, o);
    return o;
}

static void release(cuda_shared_object *o)
{
    if (o && o->data)
        o->kind->release(o->data);
    free(o);
}

void cuda_shared_objects_release(cuda_shared_objects *objects)
{
    if (!objects)
        return;
    cuda_shared_object *o, *next;
    HASH_ITER (hh, objects->table, o, next) {
        HASH_DEL(objects->table, o);
        release(o);
    }
    pthread_cond_destroy(&objects->changed);
    pthread_mutex_destroy(&objects->lock);
    free(objects);
}

/* With the lock held before and after. */
static grt_status make_unlocked(cuda_shared_objects *objects, cuda_shared_object *o, void *user)
{
    o->state = BEING_MADE;
    pthread_mutex_unlock(&objects->lock);
    void *data = NULL;
    const grt_status status = o->kind->make(user, &data);
    pthread_mutex_lock(&objects->lock);
    o->data = data;
    o->state = status == GRT_OK ? MADE : ABSENT;
    pthread_cond_broadcast(&objects->changed);
    return status;
}

grt_status cuda_shared_object_take(cuda_shared_objects *objects, const char *key,
                                   const cuda_object_kind *kind, void *user, cuda_shared_object **out_object)
{
    cuda_shared_object *left = NULL;
    grt_status status = GRT_OK;
    *out_object = NULL;
    pthread_mutex_lock(&objects->lock);
    cuda_shared_object *o = find_or_add(objects, key, kind);
    if (o) {
        o->users++;
        while (o->state == BEING_MADE)
            pthread_cond_wait(&objects->changed, &objects->lock);
        if (o->state == ABSENT)
            status = make_unlocked(objects, o, user);
        if (status == GRT_OK)
            *out_object = o;
        else
            left = cuda_shared_objects_leave(objects, o);
    }
    pthread_mutex_unlock(&objects->lock);
    release(left);
    return o ? status : grt_fail_memory(sizeof *o + strlen(key) + 1);
}

void *cuda_shared_object_data(const cuda_shared_object *object)
{
    return object->data;
}

void cuda_shared_object_give(cuda_shared_objects *objects, cuda_shared_object *object)
{
    pthread_mutex_lock(&objects->lock);
    cuda_shared_object *left = cuda_shared_objects_leave(objects, object);
    pthread_mutex_unlock(&objects->lock);
    release(left);
}

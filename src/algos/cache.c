/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/cache.h"

#include "src/algos/code_store.h"
#include "src/algos/file_store.h"
#include "src/algos/plan_store.h"
#include "src/base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A key that kernels asked for, as it went the first time. */
typedef struct request {
    bool missed, from_plan;
    grt_code_origin code; /* of a generated kernel; NOWHERE: it is a choice's */
    UT_hash_handle hh;
    char key[];
} request;

struct grt_algo_cache {
    pthread_mutex_t lock; /* of what follows; the file store takes it by itself where it uses its file */
    grt_file_store file;
    grt_plan_store plans;
    request *requests;
    _Atomic(const char *) plan_note; /* why plans' choices were passed over; set once */
    bool forgot;                     /* memory was short */
};

grt_status grt_algo_cache_create(const char *path, grt_algo_cache **out_cache)
{
    grt_algo_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return grt_fail_memory(sizeof *cache);
    const grt_status status = grt_file_store_init(&cache->file, path, &cache->lock);
    if (status != GRT_OK) {
        free(cache);
        return status;
    }
    grt_plan_store_init(&cache->plans);
    pthread_mutex_init(&cache->lock, NULL);
    *out_cache = cache;
    return GRT_OK;
}

void grt_algo_cache_release(grt_algo_cache *cache)
{
    if (!cache)
        return;
    grt_file_store_save(&cache->file);
    request *q, *next;
    HASH_ITER (hh, cache->requests, q, next) {
        HASH_DEL(cache->requests, q);
        free(q);
    }
    cache->file.base.release(&cache->file.base);
    cache->plans.base.release(&cache->plans.base);
    free((char *)atomic_load(&cache->plan_note));
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

const char *grt_algo_cache_path(const grt_algo_cache *cache)
{
    return cache->file.path;
}

bool grt_algo_cache_is_named(const grt_algo_cache *cache)
{
    return cache->file.named;
}

void grt_algo_cache_load(grt_algo_cache *cache)
{
    grt_file_store_load(&cache->file);
}

void grt_algo_cache_save(grt_algo_cache *cache)
{
    grt_file_store_save(&cache->file);
}

bool grt_algo_cache_is_dirty(const grt_algo_cache *cache)
{
    return atomic_load_explicit(&cache->file.dirty, memory_order_relaxed);
}

void grt_algo_cache_warnings(grt_algo_cache *cache, grt_text *text)
{
    pthread_mutex_lock(&cache->lock);
    grt_text_add(text, "%s", grt_text_get(&cache->file.warnings));
    pthread_mutex_unlock(&cache->lock);
}

void grt_algo_cache_add_plan(grt_algo_cache *cache, const grt_choice *choices, size_t n)
{
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < n; i++)
        if (!cache->plans.base.keep(&cache->plans.base, &choices[i]))
            cache->forgot = true;
    pthread_mutex_unlock(&cache->lock);
}

const char *grt_algo_cache_plan_note(const grt_algo_cache *cache)
{
    const char *note = atomic_load(&cache->plan_note);
    return note ? note : "";
}

/* Under the lock. */
static void note_version(grt_algo_cache *cache, const char *key)
{
    grt_text here = {0}, there = {0}, note = {0};
    if (!atomic_load(&cache->plan_note) && grt_plan_store_version(&cache->plans, key, &there, &here)) {
        grt_text_add(
            &note,
            "the plan's choices were made with %s, here is %s: they are made anew; compile or tune the "
            "plan with the version that runs it",
            grt_text_get(&there), grt_text_get(&here));
        atomic_store(&cache->plan_note, note.data); /* NULL when out of memory */
    }
    grt_text_release(&here);
    grt_text_release(&there);
}

/* Plans come first, unless the file has measured: that counts more than what a heuristic said. */
static const grt_choice *find_choice(const grt_algo_cache *cache, const char *key, bool *out_from_plan)
{
    const grt_choice *of_plan = cache->plans.base.find(&cache->plans.base, key),
                     *of_file = cache->file.base.find(&cache->file.base, key);
    const bool measured = of_file && of_file->source == GRT_CHOICE_TUNED;
    *out_from_plan = of_plan && (!measured || of_plan->source == GRT_CHOICE_TUNED);
    return *out_from_plan ? of_plan : of_file;
}

static request *find_request(grt_algo_cache *cache, const char *key)
{
    request *q = NULL;
    HASH_FIND_STR(cache->requests, key, q);
    return q;
}

/* NULL: the key is too long, or memory is short. */
static request *cache_find_or_add_request(grt_algo_cache *cache, const char *key)
{
    request *q;
    if (strlen(key) > GRT_CHOICE_MAX_KEY)
        return NULL;
    GRT_HASH_FIND_OR_ADD(cache->requests, key, q);
    cache->forgot = cache->forgot || !q;
    return q;
}

static void note_request(grt_algo_cache *cache, const char *key, bool missed, bool from_plan)
{
    request *q = find_request(cache, key) ? NULL : cache_find_or_add_request(cache, key);
    if (q) {
        q->missed = missed;
        q->from_plan = from_plan;
    }
}

static void *copy_data(grt_algo_cache *cache, const grt_choice *choice, size_t *out_size)
{
    char *copy = choice ? malloc(choice->size + 1) : NULL;
    if (copy)
        memcpy(copy, choice->data, choice->size + 1);
    else if (choice)
        cache->forgot = true;
    *out_size = copy ? choice->size : 0;
    return copy;
}

static void cache_count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void *cache_find(grt_algos *base, const char *key, size_t *out_size)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    bool from_plan;
    pthread_mutex_lock(&cache->lock);
    char *copy = copy_data(cache, find_choice(cache, key, &from_plan), out_size);
    note_request(cache, key, !copy, copy && from_plan);
    if (!copy)
        note_version(cache, key);
    pthread_mutex_unlock(&cache->lock);
    cache_count(!copy ? &algos->misses : from_plan ? &algos->plan_hits : &algos->hits);
    return copy;
}

static void cache_store(grt_algos *base, const char *key, const void *data, size_t size,
                        grt_choice_source source, double cost_ms)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    const grt_choice choice = {.key = key,
                               .data = data,
                               .size = size,
                               .source = (int32_t)source,
                               .cost_ms = cost_ms,
                               .made = (int64_t)time(NULL)};
    cache_count(source == GRT_CHOICE_TUNED ? &algos->searches : &algos->heuristics);
    if (size > GRT_CHOICE_MAX_DATA)
        return;
    pthread_mutex_lock(&cache->lock);
    cache->file.transient = algos->transient;
    if (!cache->file.base.keep(&cache->file.base, &choice))
        cache->forgot = true;
    /* A new measurement replaces the plan's. */
    if (source == GRT_CHOICE_TUNED && cache->plans.base.find(&cache->plans.base, key))
        (void)cache->plans.base.keep(&cache->plans.base, &choice);
    pthread_mutex_unlock(&cache->lock);
}

static void cache_reject(grt_algos *base, const char *key)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    bool from_plan;
    cache_count(&algos->rejected);
    pthread_mutex_lock(&cache->lock);
    cache->file.transient = algos->transient;
    (void)find_choice(cache, key, &from_plan); /* what find gave out */
    grt_choice_store *store = from_plan ? &cache->plans.base : &cache->file.base;
    request *q = store->reject(store, key) ? find_request(cache, key) : NULL;
    if (from_plan)
        atomic_fetch_sub_explicit(&algos->plan_hits, 1, memory_order_relaxed);
    if (q) {
        q->missed = !cache->file.base.find(&cache->file.base, key);
        q->from_plan = q->from_plan && !from_plan;
    }
    pthread_mutex_unlock(&cache->lock);
}

static void *code(grt_algos *base, const char *key, size_t *out_size)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    pthread_mutex_lock(&cache->lock);
    char *copy = copy_data(cache, cache->plans.base.find(&cache->plans.base, key), out_size);
    pthread_mutex_unlock(&cache->lock);
    if (copy)
        cache_count(&algos->plan_hits);
    return copy;
}

static void *cache_read_code(grt_algos *base, const char *key, char **out_key, size_t *out_size)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    if (!algos->transient)
        return grt_code_store_read(&algos->cache->file, key, out_key, out_size);
    *out_key = NULL;
    *out_size = 0;
    return NULL;
}

static void cache_write_code(grt_algos *base, const char *key, const void *data, size_t size, double ms)
{
    const grt_device_algos *algos = (grt_device_algos *)base;
    if (!algos->transient)
        grt_code_store_write(&algos->cache->file, key, data, size, ms);
}

static void cache_drop_code(grt_algos *base, const char *key)
{
    const grt_device_algos *algos = (grt_device_algos *)base;
    if (!algos->transient)
        grt_code_store_drop(&algos->cache->file, key);
}

static void cache_note_code(grt_algos *base, const char *key, grt_code_origin before, grt_code_origin now)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    atomic_fetch_sub_explicit(&algos->codes[before], before != GRT_CODE_NOWHERE, memory_order_relaxed);
    atomic_fetch_add_explicit(&algos->codes[now], now != GRT_CODE_NOWHERE, memory_order_relaxed);
    pthread_mutex_lock(&cache->lock);
    request *q = cache_find_or_add_request(cache, key);
    if (q) {
        q->code = now;
        q->from_plan = now == GRT_CODE_PLAN;
        q->missed = now != GRT_CODE_PLAN && now != GRT_CODE_STORE;
    }
    pthread_mutex_unlock(&cache->lock);
}

void grt_device_algos_init(grt_device_algos *algos, grt_algo_cache *cache)
{
    *algos = (grt_device_algos){.base = {.find = cache_find,
                                         .store = cache_store,
                                         .reject = cache_reject,
                                         .code = code,
                                         .read_code = cache_read_code,
                                         .write_code = cache_write_code,
                                         .drop_code = cache_drop_code,
                                         .note_code = cache_note_code},
                                .cache = cache};
}

bool grt_algo_cache_is_tuned(grt_algo_cache *cache, const char *key)
{
    pthread_mutex_lock(&cache->lock);
    const grt_choice *of_file = cache->file.base.find(&cache->file.base, key),
                     *of_plan = cache->plans.base.find(&cache->plans.base, key);
    const bool tuned = (of_file && of_file->source == GRT_CHOICE_TUNED) ||
                       (of_plan && of_plan->source == GRT_CHOICE_TUNED && !strcmp(of_plan->key, key));
    pthread_mutex_unlock(&cache->lock);
    return tuned;
}

bool grt_algo_cache_forgot(const grt_algo_cache *cache)
{
    return cache->forgot;
}

void grt_algo_cache_lookups(grt_algo_cache *cache, void (*each)(void *user, const grt_algo_lookup *lookup),
                            void *user)
{
    bool from_plan;
    pthread_mutex_lock(&cache->lock);
    for (const request *q = cache->requests; q; q = q->hh.next) {
        const grt_algo_lookup lookup = {
            .key = q->key,
            .hit = !q->missed,
            .from_plan = q->from_plan,
            .code = q->code,
            .nearest = q->missed && !q->code ? grt_file_store_nearest(&cache->file, q->key) : NULL,
            .choice = find_choice(cache, q->key, &from_plan)};
        each(user, &lookup);
    }
    pthread_mutex_unlock(&cache->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See cache.h. */
#include "src/algos/cache.h"

#include "src/algos/db.h"
#include "src/algos/overlay.h"
#include "src/base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct entry {
    char *key;
    void *data; /* NULL: asked for, but there is none */
    size_t size;
    void *refused; /* data that is to leave the file, or has left it */
    size_t refused_size;
    bool leaves; /* it still has to */
    grt_algo_source source;
    double cost_ms;
    int64_t made;
    bool from_file; /* what the file had; stays true when the data is replaced */
    bool dirty;     /* data is to be written */
    bool asked, missed, from_plan;
    UT_hash_handle hh;
} entry;

struct grt_algo_cache {
    char *path;           /* NULL: off */
    bool named;           /* by the program or the environment */
    pthread_mutex_t lock; /* of the map; never held while the file is used */
    pthread_mutex_t file; /* one load or save at a time */
    entry *map;
    grt_algo_overlay plans;          /* choices that came with plans */
    _Atomic(const char *) plan_note; /* why they were passed over; set once */
    atomic_bool dirty;
    uint64_t stamp; /* of the file when it was loaded; under `file` */
    bool failed;    /* the file could not be written: said once */
    grt_text warnings;
};

grt_status grt_algo_cache_create(const char *path, grt_algo_cache **out_cache)
{
    grt_algo_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return grt_fail_memory(sizeof *cache);
    grt_status status = GRT_OK;
    if (!path)
        status = grt_algo_db_default_path(&cache->path);
    else if (strcmp(path, "off") && !(cache->path = strdup(path)))
        status = grt_fail_memory(strlen(path));
    if (status != GRT_OK) {
        free(cache);
        return status;
    }
    const char *set = getenv("GRAPHRT_ALGO_CACHE");
    cache->named = path || (set && *set);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_mutex_init(&cache->file, NULL);
    *out_cache = cache;
    return GRT_OK;
}

static void release_entry(entry *e)
{
    free(e->key);
    free(e->data);
    free(e->refused);
    free(e);
}

void grt_algo_cache_release(grt_algo_cache *cache)
{
    if (!cache)
        return;
    grt_algo_cache_save(cache);
    entry *e, *next;
    HASH_ITER (hh, cache->map, e, next) {
        HASH_DEL(cache->map, e);
        release_entry(e);
    }
    grt_algo_overlay_release(&cache->plans);
    free((char *)atomic_load(&cache->plan_note));
    pthread_mutex_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->file);
    grt_text_release(&cache->warnings);
    free(cache->path);
    free(cache);
}

const char *grt_algo_cache_path(const grt_algo_cache *cache)
{
    return cache->path;
}

bool grt_algo_cache_is_named(const grt_algo_cache *cache)
{
    return cache->named;
}

/* What went wrong with the file is a warning; the thread's error stays as it was. */
typedef struct quiet {
    char *error;
} quiet;

static quiet quiet_begin(void)
{
    return (quiet){strdup(grt_last_error())};
}

static void quiet_end(quiet q)
{
    grt_error_set(q.error ? q.error : "");
    free(q.error);
}

static void warn(grt_algo_cache *cache, const char *message)
{
    pthread_mutex_lock(&cache->lock);
    if (cache->warnings.size < 4096)
        grt_text_add(&cache->warnings, "%s%s", cache->warnings.size ? "\n" : "", message);
    pthread_mutex_unlock(&cache->lock);
}

void grt_algo_cache_warnings(grt_algo_cache *cache, grt_text *text)
{
    pthread_mutex_lock(&cache->lock);
    grt_text_add(text, "%s", grt_text_get(&cache->warnings));
    pthread_mutex_unlock(&cache->lock);
}

bool grt_algo_cache_is_dirty(const grt_algo_cache *cache)
{
    return atomic_load_explicit(&cache->dirty, memory_order_relaxed);
}

/* ---- the map; all under the lock ---- */

static entry *find_or_add(grt_algo_cache *cache, const char *key)
{
    entry *e = NULL;
    const size_t size = strlen(key);
    HASH_FIND(hh, cache->map, key, size, e);
    if (e || size > GRT_ALGO_MAX_KEY)
        return e;
    e = calloc(1, sizeof *e);
    char *copy = e ? strdup(key) : NULL;
    if (!copy) {
        free(e);
        return NULL;
    }
    e->key = copy;
    HASH_ADD_KEYPTR(hh, cache->map, e->key, size, e);
    if (GRT_HASH_HAS(e))
        return e;
    free(copy);
    free(e);
    return NULL;
}

static bool set_data(entry *e, const void *data, size_t size)
{
    char *copy = malloc(size + 1);
    if (!copy)
        return false;
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    free(e->data);
    e->data = copy;
    e->size = size;
    return true;
}

/* ---- the file ---- */

static void take_row(void *user, const grt_algo_row *row)
{
    grt_algo_cache *cache = user;
    pthread_mutex_lock(&cache->lock);
    entry *e = find_or_add(cache, row->key);
    const bool refused =
        e && e->refused && e->refused_size == row->size && !memcmp(e->refused, row->data, row->size);
    if (e && !e->dirty && !refused && set_data(e, row->data, row->size)) {
        e->source = (grt_algo_source)row->source;
        e->cost_ms = row->cost_ms;
        e->made = row->made;
        e->from_file = true;
    }
    pthread_mutex_unlock(&cache->lock);
}

void grt_algo_cache_load(grt_algo_cache *cache)
{
    if (!cache->path)
        return;
    pthread_mutex_lock(&cache->file);
    const uint64_t stamp = grt_algo_db_stamp(cache->path);
    if (stamp != cache->stamp) {
        size_t skipped;
        quiet q = quiet_begin();
        cache->stamp = stamp;
        if (grt_algo_db_read(cache->path, take_row, cache, &skipped) != GRT_OK)
            warn(cache, grt_last_error());
        else if (skipped) {
            grt_text text = {0};
            grt_text_add(&text, "algorithm cache '%s': %zu damaged rows were ignored", cache->path, skipped);
            warn(cache, grt_text_get(&text));
            grt_text_release(&text);
        }
        quiet_end(q);
    }
    pthread_mutex_unlock(&cache->file);
}

/* Rows to write, with copies of what they point to, as the map may change meanwhile. */
typedef struct batch {
    grt_algo_row *rows;
    size_t n, capacity;
    bool failed;
} batch;

static void batch_add(batch *b, const entry *e, bool rejected)
{
    const void *data = rejected ? e->refused : e->data;
    const size_t size = rejected ? e->refused_size : e->size, key = strlen(e->key) + 1;
    char *copy = malloc(key + size);
    if (b->n == b->capacity) {
        const size_t grown = b->capacity ? 2 * b->capacity : 64;
        grt_algo_row *rows = realloc(b->rows, grown * sizeof *rows);
        if (rows) {
            b->rows = rows;
            b->capacity = grown;
        }
    }
    if (!copy || b->n == b->capacity) {
        free(copy);
        b->failed = true;
        return;
    }
    memcpy(copy, e->key, key);
    if (size)
        memcpy(copy + key, data, size);
    b->rows[b->n++] = (grt_algo_row){.key = copy,
                                     .data = copy + key,
                                     .size = size,
                                     .source = e->source,
                                     .cost_ms = e->cost_ms,
                                     .made = e->made,
                                     .rejected = rejected};
}

static void batch_take(batch *b, grt_algo_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    atomic_store(&cache->dirty, false);
    for (entry *e = cache->map; e; e = e->hh.next) {
        if (e->leaves)
            batch_add(b, e, true);
        if (e->dirty)
            batch_add(b, e, false);
        e->leaves = e->dirty = false;
    }
    pthread_mutex_unlock(&cache->lock);
}

/* What could not be written stays to be written, unless it was stored anew meanwhile. */
static void batch_give_back(const batch *b, grt_algo_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < b->n; i++) {
        entry *e = find_or_add(cache, b->rows[i].key);
        if (e && e->data && !b->rows[i].rejected)
            e->dirty = true;
        if (e && e->refused && b->rows[i].rejected)
            e->leaves = true;
    }
    pthread_mutex_unlock(&cache->lock);
}

static void batch_release(batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        free((char *)b->rows[i].key);
    free(b->rows);
}

void grt_algo_cache_save(grt_algo_cache *cache)
{
    if (!cache->path || !grt_algo_cache_is_dirty(cache))
        return;
    batch b = {0};
    quiet q = quiet_begin();
    pthread_mutex_lock(&cache->file);
    batch_take(&b, cache);
    if (b.n && grt_algo_db_write(cache->path, b.rows, b.n) != GRT_OK) {
        batch_give_back(&b, cache); /* the next save after the next store tries again */
        if (!cache->failed)
            warn(cache, grt_last_error());
        cache->failed = true;
    }
    pthread_mutex_unlock(&cache->file);
    quiet_end(q);
    batch_release(&b);
}

/* ---- plans ---- */

void grt_algo_cache_add_plan(grt_algo_cache *cache, const grt_algo_row *rows, size_t n)
{
    pthread_mutex_lock(&cache->lock);
    grt_algo_overlay_add(&cache->plans, rows, n);
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
    if (!atomic_load(&cache->plan_note) && grt_algo_overlay_version(&cache->plans, key, &there, &here)) {
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

/* ---- what kernels call ---- */

/* The plans' row for a key, unless the cache has measured: what was measured counts more than what was said.
 * Under the lock; e may be NULL. */
static const grt_algo_row *row_of_plan(const grt_algo_cache *cache, const char *key, const entry *e)
{
    const grt_algo_row *row = grt_algo_overlay_find(&cache->plans, key);
    const bool measured = e && e->data && e->source == GRT_ALGO_TUNED;
    return row && measured && row->source != GRT_ALGO_TUNED ? NULL : row;
}

static void *find(grt_algos *base, const char *key, size_t *out_size)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    char *copy = NULL;
    *out_size = 0;
    pthread_mutex_lock(&cache->lock);
    entry *e = find_or_add(cache, key);
    const grt_algo_row *row = row_of_plan(cache, key, e);
    const void *data = row ? row->data : e ? e->data : NULL;
    const size_t size = row ? row->size : data ? e->size : 0;
    if (data && (copy = malloc(size + 1))) {
        memcpy(copy, data, size + 1);
        *out_size = size;
    }
    if (e && !e->asked) {
        e->asked = true;
        e->missed = !copy;
        e->from_plan = copy && row;
    }
    if (!copy)
        note_version(cache, key);
    pthread_mutex_unlock(&cache->lock);
    atomic_fetch_add_explicit(!copy ? &algos->misses
                              : row ? &algos->plan_hits
                                    : &algos->hits,
                              1, memory_order_relaxed);
    return copy;
}

static void store(grt_algos *base, const char *key, const void *data, size_t size, grt_algo_source source,
                  double cost_ms)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    atomic_fetch_add_explicit(source == GRT_ALGO_TUNED ? &algos->searches : &algos->heuristics, 1,
                              memory_order_relaxed);
    if (size > GRT_ALGO_MAX_DATA)
        return;
    pthread_mutex_lock(&cache->lock);
    entry *e = find_or_add(cache, key);
    if (e && (!e->data || source >= e->source) && set_data(e, data, size)) {
        e->source = source;
        e->cost_ms = cost_ms;
        e->made = (int64_t)time(NULL);
        e->dirty = !algos->transient;
        if (e->dirty)
            atomic_store(&cache->dirty, true);
    }
    /* What a plan has from an earlier measurement is out of date. */
    const grt_algo_row row = {
        .key = key, .data = data, .size = size, .source = (int32_t)source, .cost_ms = cost_ms};
    if (source == GRT_ALGO_TUNED && grt_algo_overlay_find(&cache->plans, key))
        grt_algo_overlay_add(&cache->plans, &row, 1);
    pthread_mutex_unlock(&cache->lock);
}

static void reject(grt_algos *base, const char *key)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    atomic_fetch_add_explicit(&algos->rejected, 1, memory_order_relaxed);
    pthread_mutex_lock(&cache->lock);
    entry *e = find_or_add(cache, key);
    const bool of_plan =
        row_of_plan(cache, key, e) && grt_algo_overlay_reject(&cache->plans, key); /* what find gave out */
    if (of_plan)
        atomic_fetch_sub_explicit(&algos->plan_hits, 1, memory_order_relaxed);
    if (e && of_plan) {
        e->missed = !e->data;
        e->from_plan = false;
    } else if (e && e->data) {
        free(e->refused);
        e->refused = e->data;
        e->refused_size = e->size;
        e->data = NULL;
        e->size = 0;
        e->dirty = false;
        e->leaves = !algos->transient;
        e->missed = true;
        if (e->leaves)
            atomic_store(&cache->dirty, true);
    }
    pthread_mutex_unlock(&cache->lock);
}

static void *code(grt_algos *base, const char *key, size_t *out_size)
{
    grt_device_algos *algos = (grt_device_algos *)base;
    grt_algo_cache *cache = algos->cache;
    char *copy = NULL;
    *out_size = 0;
    pthread_mutex_lock(&cache->lock);
    const grt_algo_row *row = grt_algo_overlay_find(&cache->plans, key);
    if (row && (copy = malloc(row->size + 1))) {
        memcpy(copy, row->data, row->size);
        copy[row->size] = '\0';
        *out_size = row->size;
    }
    pthread_mutex_unlock(&cache->lock);
    if (copy)
        atomic_fetch_add_explicit(&algos->plan_hits, 1, memory_order_relaxed);
    return copy;
}

void grt_device_algos_init(grt_device_algos *algos, grt_algo_cache *cache)
{
    *algos = (grt_device_algos){.base = {find, store, reject, code}, .cache = cache};
}

/* ---- who asked for what ---- */

/* Parts `name=value;` that both keys have; -1 if the ops differ. */
static int alike(const char *a, const char *b)
{
    int n = 0;
    for (const char *part = a; *part; part += strcspn(part, ";") + (part[strcspn(part, ";")] != 0)) {
        const size_t size = strcspn(part, ";");
        bool found = false;
        for (const char *other = b; *other && !found;
             other += strcspn(other, ";") + (other[strcspn(other, ";")] != 0))
            found = strcspn(other, ";") == size && !strncmp(part, other, size);
        if (!found && part == a)
            return -1;
        n += found;
    }
    return n;
}

bool grt_algo_cache_is_tuned(grt_algo_cache *cache, const char *key)
{
    entry *e = NULL;
    pthread_mutex_lock(&cache->lock);
    HASH_FIND(hh, cache->map, key, strlen(key), e);
    const grt_algo_row *row = grt_algo_overlay_find(&cache->plans, key);
    const bool tuned = (e && e->data && e->source == GRT_ALGO_TUNED) ||
                       (row && row->source == GRT_ALGO_TUNED && !strcmp(row->key, key));
    pthread_mutex_unlock(&cache->lock);
    return tuned;
}

void grt_algo_cache_lookups(grt_algo_cache *cache, void (*each)(void *user, const grt_algo_lookup *lookup),
                            void *user)
{
    pthread_mutex_lock(&cache->lock);
    for (const entry *e = cache->map; e; e = e->hh.next) {
        if (!e->asked)
            continue;
        const grt_algo_row *of_plan = row_of_plan(cache, e->key, e);
        grt_algo_row row = {.key = e->key,
                            .data = e->data,
                            .size = e->size,
                            .source = (int32_t)e->source,
                            .cost_ms = e->cost_ms,
                            .made = e->made};
        if (of_plan)
            row = *of_plan;
        grt_algo_lookup lookup = {
            .key = e->key, .hit = !e->missed, .from_plan = e->from_plan, .row = row.data ? &row : NULL};
        int best = 0;
        for (const entry *other = cache->map; other && e->missed; other = other->hh.next) {
            const int n = other->from_file && other != e ? alike(e->key, other->key) : -1;
            if (n > best) {
                best = n;
                lookup.nearest = other->key;
            }
        }
        each(user, &lookup);
    }
    pthread_mutex_unlock(&cache->lock);
}

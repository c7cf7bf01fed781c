/* SPDX-License-Identifier: Apache-2.0 */
#include "src/algos/file_store.h"

#include "src/algos/db.h"
#include "src/base/grow.h"
#include "src/base/hash.h"
#include "src/base/log.h"

#include <stdlib.h>
#include <string.h>

typedef struct grt_file_entry {
    grt_choice choice; /* its key is `key`, its data belongs to it; data NULL: it was rejected */
    void *refused;     /* data that is to leave the file, or has left it */
    size_t refused_size;
    bool leaves;    /* it still has to */
    bool from_file; /* what the file had; stays true when the data is replaced */
    bool dirty;     /* data is to be written */
    UT_hash_handle hh;
    char key[];
} entry;

static grt_file_store *file_store_of(const grt_choice_store *base)
{
    return (grt_file_store *)(uintptr_t)base;
}

static entry *find_entry(const grt_file_store *store, const char *key)
{
    entry *e = NULL;
    HASH_FIND_STR(store->map, key, e);
    return e;
}

static entry *file_store_find_or_add(grt_file_store *store, const char *key)
{
    entry *e;
    GRT_HASH_FIND_OR_ADD(store->map, key, e);
    if (e)
        e->choice.key = e->key;
    return e;
}

static bool is_refused(const entry *e, const grt_choice *choice)
{
    return e->refused && e->refused_size == choice->size && !memcmp(e->refused, choice->data, choice->size);
}

static bool set_choice(entry *e, const grt_choice *choice)
{
    char *copy = malloc(choice->size + 1);
    if (!copy)
        return false;
    if (choice->size)
        memcpy(copy, choice->data, choice->size);
    copy[choice->size] = '\0';
    free((void *)e->choice.data);
    e->choice = *choice;
    e->choice.key = e->key;
    e->choice.data = copy;
    return true;
}

static const grt_choice *file_store_find(const grt_choice_store *base, const char *key)
{
    const entry *e = find_entry(file_store_of(base), key);
    return e && e->choice.data ? &e->choice : NULL;
}

static bool file_store_keep(grt_choice_store *base, const grt_choice *choice)
{
    grt_file_store *store = file_store_of(base);
    if (strlen(choice->key) > GRT_CHOICE_MAX_KEY || choice->size > GRT_CHOICE_MAX_DATA)
        return true;
    entry *e = file_store_find_or_add(store, choice->key);
    if (e && e->choice.data && choice->source < e->choice.source)
        return true;
    if (!e || !set_choice(e, choice))
        return false;
    e->dirty = !store->transient;
    if (e->dirty)
        atomic_store(&store->dirty, true);
    return true;
}

static bool file_store_reject(grt_choice_store *base, const char *key)
{
    grt_file_store *store = file_store_of(base);
    entry *e = find_entry(store, key);
    if (!e || !e->choice.data)
        return false;
    free(e->refused);
    e->refused = (void *)e->choice.data;
    e->refused_size = e->choice.size;
    e->choice.data = NULL;
    e->choice.size = 0;
    e->dirty = false;
    e->leaves = !store->transient;
    if (e->leaves)
        atomic_store(&store->dirty, true);
    return true;
}

static void file_store_release(grt_choice_store *base)
{
    grt_file_store *store = file_store_of(base);
    entry *e, *next;
    HASH_ITER (hh, store->map, e, next) {
        HASH_DEL(store->map, e);
        free((void *)e->choice.data);
        free(e->refused);
        free(e);
    }
    pthread_mutex_destroy(&store->file);
    grt_text_release(&store->warnings);
    free(store->path);
}

grt_status grt_file_store_init(grt_file_store *store, const char *path, pthread_mutex_t *lock)
{
    *store =
        (grt_file_store){.base = {file_store_find, file_store_keep, file_store_reject, file_store_release},
                         .lock = lock,
                         .named = path != NULL};
    if (!path)
        GRT_TRY(grt_algo_db_default_path(&store->path, &store->named));
    else if (strcmp(path, "off") && !(store->path = strdup(path)))
        return grt_fail_memory(strlen(path));
    pthread_mutex_init(&store->file, NULL);
    return GRT_OK;
}

void grt_file_store_warn(grt_file_store *store, const char *message)
{
    pthread_mutex_lock(store->lock);
    if (store->warnings.size < 4096)
        grt_text_add(&store->warnings, "%s%s", store->warnings.size ? "\n" : "", message);
    pthread_mutex_unlock(store->lock);
    GRT_LOG(WARNING, "cache", "%s", message);
}

static void take_choice(void *user, const grt_choice *choice)
{
    grt_file_store *store = user;
    pthread_mutex_lock(store->lock);
    entry *e = file_store_find_or_add(store, choice->key);
    if (e && !e->dirty && !is_refused(e, choice) && set_choice(e, choice))
        e->from_file = true;
    pthread_mutex_unlock(store->lock);
}

void grt_file_store_load(grt_file_store *store)
{
    if (!store->path)
        return;
    pthread_mutex_lock(&store->file);
    const uint64_t stamp = grt_algo_db_stamp(store->path);
    if (stamp != store->stamp) {
        size_t skipped;
        char *error = grt_error_keep();
        store->stamp = stamp;
        if (grt_algo_db_read(store->path, take_choice, store, &skipped) != GRT_OK)
            grt_file_store_warn(store, grt_last_error());
        else if (skipped) {
            grt_text text = {0};
            grt_text_add(&text, "algorithm cache '%s': %zu damaged rows were ignored", store->path, skipped);
            grt_file_store_warn(store, grt_text_get(&text));
            grt_text_release(&text);
        }
        grt_error_give_back(error);
    }
    pthread_mutex_unlock(&store->file);
}

/* Rows to write, with copies of what they point to, as the map may change meanwhile. */
typedef struct batch {
    grt_choice *rows;
    size_t n, capacity;
    bool failed;
} batch;

static void batch_add(batch *b, const entry *e, bool rejected)
{
    grt_choice row = e->choice;
    if (rejected) {
        row.data = e->refused;
        row.size = e->refused_size;
    }
    const size_t key = strlen(row.key) + 1;
    char *copy = malloc(key + row.size);
    if (!copy || !GRT_GROW(b->rows, b->n, b->capacity)) {
        free(copy);
        b->failed = true;
        return;
    }
    memcpy(copy, row.key, key);
    if (row.size)
        memcpy(copy + key, row.data, row.size);
    row.key = copy;
    row.data = copy + key;
    row.rejected = rejected;
    b->rows[b->n++] = row;
}

static void batch_take(batch *b, grt_file_store *store)
{
    pthread_mutex_lock(store->lock);
    atomic_store(&store->dirty, false);
    for (entry *e = store->map; e; e = e->hh.next) {
        if (e->leaves)
            batch_add(b, e, true);
        if (e->dirty)
            batch_add(b, e, false);
        e->leaves = e->dirty = false;
    }
    pthread_mutex_unlock(store->lock);
}

/* Failed writes remain queued unless a newer entry replaced them. */
static void batch_give_back(const batch *b, grt_file_store *store)
{
    pthread_mutex_lock(store->lock);
    for (size_t i = 0; i < b->n; i++) {
        entry *e = file_store_find_or_add(store, b->rows[i].key);
        if (e && e->choice.data && !b->rows[i].rejected)
            e->dirty = true;
        if (e && e->refused && b->rows[i].rejected)
            e->leaves = true;
    }
    pthread_mutex_unlock(store->lock);
}

static void batch_release(batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        free((char *)b->rows[i].key);
    free(b->rows);
}

void grt_file_store_save(grt_file_store *store)
{
    if (!store->path || !atomic_load(&store->dirty))
        return;
    batch b = {0};
    char *error = grt_error_keep();
    pthread_mutex_lock(&store->file);
    batch_take(&b, store);
    if (b.n && grt_algo_db_write(store->path, b.rows, b.n) != GRT_OK) {
        batch_give_back(&b, store); /* the next save after the next store tries again */
        if (!store->failed)
            grt_file_store_warn(store, grt_last_error());
        store->failed = true;
    }
    pthread_mutex_unlock(&store->file);
    grt_error_give_back(error);
    batch_release(&b);
}

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

const char *grt_file_store_nearest(const grt_file_store *store, const char *key)
{
    const char *nearest = NULL;
    int best = 0;
    for (const entry *e = store->map; e; e = e->hh.next) {
        const int n = e->from_file && strcmp(e->choice.key, key) != 0 ? alike(key, e->choice.key) : -1;
        if (n > best) {
            best = n;
            nearest = e->choice.key;
        }
    }
    return nearest;
}

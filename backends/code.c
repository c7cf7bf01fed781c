/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/code.h"

#include "src/base/background.h"
#include "src/base/clock.h"
#include "src/base/hash.h"
#include "src/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef enum code_state {
    UNKNOWN,   /* nobody has looked, or all who waited have left */
    LOOKING,   /* a thread that asked does */
    QUEUED,    /* in the background */
    COMPILING, /* there */
    SETTLED,   /* it is there, or will never be */
} code_state;

struct grt_code {
    UT_hash_handle hh;
    grt_codes *codes;
    atomic_int state;       /* changed with the lock */
    _Atomic(void *) loaded; /* set once */
    void *data;
    size_t block_memory;
    int64_t users;
    const void *job; /* of QUEUED */
    grt_code_origin origin;
    char key[];
};

struct grt_codes {
    grt_device *device;
    const grt_code_maker *maker;
    pthread_mutex_t lock; /* not held while code is looked for or made */
    pthread_cond_t changed;
    grt_code *table;
    atomic_bool said_missing; /* that there is no compiler: once */
};

grt_status grt_code_when_parse(const char *text, grt_code_when otherwise, const char *option,
                               grt_code_when *out_when)
{
    static const char *const names[] = {"background", "first", "never"};
    *out_when = otherwise;
    for (int i = 0; text && *text; i++) {
        if (i == GRT_CODE_NEVER + 1)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "%s is '%s'; it may be background, first or never, or left out", option, text);
        if (strcmp(text, names[i]))
            continue;
        *out_when = (grt_code_when)i;
        break;
    }
    return GRT_OK;
}

grt_status grt_codes_create(grt_device *device, const grt_code_maker *maker, grt_codes **out_codes)
{
    grt_codes *codes = calloc(1, sizeof *codes);
    if (!codes)
        return grt_fail_memory(sizeof *codes);
    codes->device = device;
    codes->maker = maker;
    pthread_mutex_init(&codes->lock, NULL);
    pthread_cond_init(&codes->changed, NULL);
    *out_codes = codes;
    return GRT_OK;
}

void grt_codes_release(grt_codes *codes)
{
    if (!codes)
        return;
    grt_code *c, *next;
    HASH_ITER (hh, codes->table, c, next) {
        HASH_DEL(codes->table, c);
        if (atomic_load(&c->loaded))
            codes->maker->unload(codes->device, atomic_load(&c->loaded));
        free(c->data);
        free(c);
    }
    pthread_cond_destroy(&codes->changed);
    pthread_mutex_destroy(&codes->lock);
    free(codes);
}

/* With the lock. */
static grt_code *code_find_or_add(grt_codes *codes, const char *key)
{
    grt_code *c;
    GRT_HASH_FIND_OR_ADD(codes->table, key, c);
    if (c)
        c->codes = codes;
    return c;
}

/* ---- finding and making ---- */

/* Code and what is needed to make it; a job of the background owns it. */
typedef struct making {
    grt_code *code;
    grt_text key; /* in the store, but for the compiler */
    grt_text source;
    char *name, *function;
} making;

static void making_release(making *m)
{
    grt_text_release(&m->key);
    grt_text_release(&m->source);
    free(m->name);
    free(m->function);
    free(m);
}

/* Equal source for an equal target is equal code, whatever key a plan has it under. */
static making *making_create(grt_code *code, const grt_code_request *request)
{
    making *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->code = code;
    m->name = strdup(request->name);
    m->function = strdup(request->function);
    request->write(request->user, &m->source);
    const XXH128_hash_t hash = XXH3_128bits(grt_text_get(&m->source), m->source.size);
    grt_text_add(&m->key, "code=%s;", request->function);
    code->codes->maker->target(code->codes->device, &m->key);
    grt_text_add(&m->key, "source=%016llx%016llx;", (unsigned long long)hash.high64,
                 (unsigned long long)hash.low64);
    if (m->name && m->function && !m->source.failed && !m->key.failed)
        return m;
    making_release(m);
    return NULL;
}

/* Takes over the bytes, whether the device takes them or not. */
static void *load(grt_code *code, const char *function, void *data, size_t size)
{
    const grt_codes *codes = code->codes;
    void *loaded = codes->maker->load(codes->device, data, size, function);
    if (loaded)
        code->data = data;
    else
        free(data);
    return loaded;
}

static void *load_of_plan(grt_code *code, const char *function)
{
    size_t size;
    grt_device *device = code->codes->device;
    void *data = grt_device_code_find(device, code->key, &size);
    void *loaded = data ? load(code, function, data, size) : NULL;
    if (data && !loaded)
        grt_device_algo_reject(device, NULL, code->key);
    return loaded;
}

static void *load_of_store(const making *m)
{
    size_t size;
    grt_device *device = m->code->codes->device;
    char *key;
    void *data = grt_device_code_read(device, grt_text_get(&m->key), &key, &size);
    void *loaded = data ? load(m->code, m->function, data, size) : NULL;
    if (data && !loaded)
        grt_device_code_drop(device, key);
    if (data)
        free(key);
    return loaded;
}

/* A machine without a compiler is no failure; a source that it refuses is one of ours. */
static void say_not_made(grt_codes *codes, grt_status status)
{
    if (status == GRT_STATUS_DEVICE && atomic_exchange(&codes->said_missing, true))
        return;
    GRT_LOG(WARNING, "code", "generated kernels are interpreted: %s", grt_last_error());
}

static void *compile(const making *m)
{
    grt_codes *codes = m->code->codes;
    void *data = NULL, *loaded = NULL;
    size_t size;
    const double begin = grt_now_ms();
    grt_text key = {0};
    grt_text_add(&key, "%s", grt_text_get(&m->key));
    const grt_status status =
        codes->maker->compile(codes->device, m->name, grt_text_get(&m->source), &key, &data, &size);
    if (status != GRT_OK) {
        say_not_made(codes, status);
    } else {
        if (!key.failed)
            grt_device_code_write(codes->device, grt_text_get(&key), data, size, grt_now_ms() - begin);
        loaded = load(m->code, m->function, data, size);
        if (!loaded)
            grt_device_code_drop(codes->device, grt_text_get(&key));
    }
    grt_text_release(&key);
    return loaded;
}

/* ---- states ---- */

/* With the lock. */
static void set_origin(grt_code *code, grt_code_origin origin)
{
    if (code->origin != origin)
        grt_device_code_note(code->codes->device, code->key, code->origin, origin);
    code->origin = origin;
}

static void code_set_state(grt_code *code, code_state state, grt_code_origin origin)
{
    set_origin(code, origin);
    atomic_store_explicit(&code->state, state, memory_order_release);
    pthread_cond_broadcast(&code->codes->changed);
}

/* With the lock. */
static void publish(grt_code *code, void *loaded, grt_code_origin origin)
{
    const grt_codes *codes = code->codes;
    if (loaded && code->block_memory && codes->maker->allow &&
        codes->maker->allow(codes->device, loaded, code->block_memory) != GRT_OK) {
        codes->maker->unload(codes->device, loaded);
        loaded = NULL;
    }
    atomic_store_explicit(&code->loaded, loaded, memory_order_release);
    code_set_state(code, SETTLED, loaded ? origin : GRT_CODE_INTERPRETED);
}

static void run_in_background(void *data)
{
    const making *m = data;
    grt_codes *codes = m->code->codes;
    bool switched = false;
    pthread_mutex_lock(&codes->lock);
    code_set_state(m->code, COMPILING, GRT_CODE_WAITING);
    pthread_mutex_unlock(&codes->lock);
    const grt_status status = grt_device_enter(codes->device, &switched);
    /* Another device or process may have been faster. */
    void *found = status == GRT_OK ? load_of_store(m) : NULL;
    void *loaded = status == GRT_OK && !found ? compile(m) : found;
    pthread_mutex_lock(&codes->lock);
    publish(m->code, loaded, found ? GRT_CODE_STORE : GRT_CODE_COMPILED);
    pthread_mutex_unlock(&codes->lock);
    grt_device_leave(codes->device, switched);
}

static void drop_job(void *data)
{
    making_release(data);
}

static grt_background *background_of(const grt_codes *codes)
{
    return codes->device->algos ? codes->device->algos->background : NULL;
}

/* With the lock. False: there is nobody to do it. */
static bool add_job(grt_code *code, making *m)
{
    grt_background *background = background_of(code->codes);
    const grt_job job = {run_in_background, drop_job, m};
    code_set_state(code, QUEUED, GRT_CODE_WAITING);
    code->job = m;
    return background && grt_background_add(background, &job);
}

static bool take_back(grt_code *code)
{
    if (!grt_background_remove(background_of(code->codes), code->job))
        return false;
    code_set_state(code, UNKNOWN, GRT_CODE_NOWHERE);
    return true;
}

/* The state is LOOKING; the lock is held before and after, not meanwhile. */
static void code_look_up(grt_code *code, const grt_code_request *request)
{
    grt_codes *codes = code->codes;
    pthread_mutex_unlock(&codes->lock);
    grt_code_origin origin = GRT_CODE_PLAN;
    void *loaded = load_of_plan(code, request->function);
    making *m = loaded ? NULL : making_create(code, request);
    if (m) {
        origin = GRT_CODE_STORE;
        loaded = load_of_store(m);
        if (!loaded && request->when == GRT_CODE_FIRST) {
            origin = GRT_CODE_COMPILED;
            loaded = compile(m);
        }
    }
    pthread_mutex_lock(&codes->lock);
    if (!loaded && m && request->when == GRT_CODE_IN_BACKGROUND && add_job(code, m))
        return;
    if (m)
        making_release(m);
    if (!loaded && request->when == GRT_CODE_NEVER)
        code_set_state(code, UNKNOWN, GRT_CODE_INTERPRETED); /* another session may want it made */
    else
        publish(code, loaded, origin);
}

/* With the lock. */
static void bring_about(grt_code *code, const grt_code_request *request)
{
    grt_codes *codes = code->codes;
    for (bool looked = false;;) {
        switch ((code_state)atomic_load(&code->state)) {
        case UNKNOWN:
            if (looked)
                return;
            looked = true;
            code_set_state(code, LOOKING, code->origin);
            code_look_up(code, request);
            break;
        case QUEUED:
            if (request->when != GRT_CODE_FIRST)
                return;
            if (!take_back(code))
                pthread_cond_wait(&codes->changed, &codes->lock); /* it begins just now */
            break;
        case COMPILING:
            if (request->when != GRT_CODE_FIRST)
                return;
            pthread_cond_wait(&codes->changed, &codes->lock);
            break;
        case LOOKING:
            pthread_cond_wait(&codes->changed, &codes->lock);
            break;
        case SETTLED:
            return;
        }
    }
}

/* With the lock. */
static grt_status ask_block_memory(grt_code *code, size_t bytes)
{
    const grt_codes *codes = code->codes;
    if (bytes <= code->block_memory)
        return GRT_OK;
    code->block_memory = bytes;
    void *loaded = grt_code_get(code);
    return loaded && codes->maker->allow ? codes->maker->allow(codes->device, loaded, bytes) : GRT_OK;
}

grt_status grt_code_take(grt_codes *codes, const grt_code_request *request, grt_code **out_code)
{
    *out_code = NULL;
    pthread_mutex_lock(&codes->lock);
    grt_code *code = code_find_or_add(codes, request->key);
    grt_status status = code ? ask_block_memory(code, request->block_memory) : grt_fail_memory(sizeof *code);
    if (status == GRT_OK) {
        code->users++;
        bring_about(code, request);
        *out_code = code;
    }
    pthread_mutex_unlock(&codes->lock);
    return status;
}

void grt_code_give(grt_code *code)
{
    if (!code)
        return;
    pthread_mutex_lock(&code->codes->lock);
    if (--code->users == 0 && atomic_load(&code->state) == QUEUED)
        (void)take_back(code);
    pthread_mutex_unlock(&code->codes->lock);
}

void *grt_code_get(const grt_code *code)
{
    return atomic_load_explicit(&code->loaded, memory_order_acquire);
}

bool grt_code_is_awaited(const grt_code *code)
{
    const int state = code ? atomic_load_explicit(&code->state, memory_order_acquire) : SETTLED;
    return state == QUEUED || state == COMPILING;
}

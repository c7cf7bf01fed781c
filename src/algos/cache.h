/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of algorithms: what devices' kernels are given to find and to keep choices. It asks two stores,
 * that of its file (file_store.h) and that of plans (plan_store.h), and remembers who asked for what.
 *
 * Sessions load it before their kernels are created and save it afterwards; the file is never touched while a
 * library is asked or a kernel runs. All functions may be called from any thread. */
#ifndef GRT_SRC_ALGOS_CACHE_H
#define GRT_SRC_ALGOS_CACHE_H

#include "backends/algos.h"

#include <stdatomic.h>

typedef struct grt_algo_cache grt_algo_cache;

/* path NULL: the default place, see grt_algo_db_default_path; "off": in memory only. Touches no file. */
grt_status grt_algo_cache_create(const char *path, grt_algo_cache **out_cache);
void grt_algo_cache_release(grt_algo_cache *cache); /* saves what is new; NULL-safe */
/* The file; NULL if there is none. Belongs to the cache. */
const char *grt_algo_cache_path(const grt_algo_cache *cache);

/* True if the program or the environment named the file. Otherwise it is the user's own. */
bool grt_algo_cache_is_named(const grt_algo_cache *cache);

/* Reads new rows of the file into the map. Costs a stat() if the file has not changed since. */
void grt_algo_cache_load(grt_algo_cache *cache);
/* Writes changes since the last call, in one transaction. */
void grt_algo_cache_save(grt_algo_cache *cache);
/* True if there is something to save. One atomic read. */
bool grt_algo_cache_is_dirty(const grt_algo_cache *cache);
/* What went wrong with the file since the cache was made; "" if nothing did. Adds to text. */
void grt_algo_cache_warnings(grt_algo_cache *cache, grt_text *text);

/* True if the recorded choice for the key was measured on such a device and driver. */
bool grt_algo_cache_is_tuned(grt_algo_cache *cache, const char *key);

/* Choices that come with a plan: kernels find them before what the file has, and they never go into the file.
 * What the file has from measuring counts more than what a plan has from a heuristic. Of two plans that
 * differ the one added last counts. See plan_store.h for which devices they serve. */
void grt_algo_cache_add_plan(grt_algo_cache *cache, const grt_choice *choices, size_t n);
/* Why choices of plans were passed over, once that has happened: they were made with another version of a
 * library. "" before. Belongs to the cache. */
const char *grt_algo_cache_plan_note(const grt_algo_cache *cache);

/* Every key that kernels asked for, in order of the asking. */
typedef struct grt_algo_lookup {
    const char *key;
    bool hit;            /* it was in the file, or asked for and stored before, or came with a plan */
    bool from_plan;      /* of a hit */
    const char *nearest; /* of a miss: the key in the file that shares the most parts; NULL if the file has
                            none of the op */
    const grt_choice *choice; /* what is known by now; NULL: nothing */
    grt_code_origin code;     /* of a generated kernel; NOWHERE: the key is a choice's */
} grt_algo_lookup;
void grt_algo_cache_lookups(grt_algo_cache *cache, void (*each)(void *user, const grt_algo_lookup *lookup),
                            void *user);

/* True if memory was short when something was asked or kept. */
bool grt_algo_cache_forgot(const grt_algo_cache *cache);

/* The cache as one device sees it, with counters of its own. */
typedef struct grt_device_algos {
    grt_algos base; /* first: kernels see this */
    grt_algo_cache *cache;
    bool transient; /* what it stores or rejects stays in this process */
    atomic_uint_fast64_t hits, plan_hits, misses, heuristics, searches, rejected;
    atomic_uint_fast64_t codes[GRT_CODE_ORIGINS]; /* generated kernels by where they are from now */
} grt_device_algos;
void grt_device_algos_init(grt_device_algos *algos, grt_algo_cache *cache);

#endif

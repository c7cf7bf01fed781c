/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of algorithms in a directory of the test's own. */
#ifndef GRT_TESTS_ALGO_CACHE_H
#define GRT_TESTS_ALGO_CACHE_H

#include "src/algos/cache.h"
#include "tests/unit/files.h"

/* The directory, which any user may write, and the cache's file below it, which tests may change. */
extern char algo_directory[FILES_NAME], algo_path[160];

void algo_setup(void);
void algo_teardown(void);

/* The cache of algo_path, and it as one device sees it. */
grt_algo_cache *algo_open(grt_device_algos *algos);
void algo_put(grt_device_algos *algos, const char *key, const char *data, grt_choice_source source);
const char *algo_get(grt_device_algos *algos, const char *key); /* "" where nothing is stored */
const char *algo_warnings(grt_algo_cache *cache);

#endif

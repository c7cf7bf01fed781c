/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/algo_cache.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char algo_directory[FILES_NAME], algo_path[160];

void algo_setup(void)
{
    files_directory(algo_directory);
    ck_assert_int_eq(chmod(algo_directory, 0777), 0);
    snprintf(algo_path, sizeof algo_path, "%s/deep/er/algos.db", algo_directory);
}

void algo_teardown(void)
{
    files_remove(algo_directory);
}

grt_algo_cache *algo_open(grt_device_algos *algos)
{
    grt_algo_cache *cache = NULL;
    ck_assert_int_eq(grt_algo_cache_create(algo_path, &cache), GRT_OK);
    grt_algo_cache_load(cache);
    grt_device_algos_init(algos, cache);
    return cache;
}

void algo_put(grt_device_algos *algos, const char *key, const char *data, grt_choice_source source)
{
    algos->base.store(&algos->base, key, data, strlen(data), source, 1.5);
}

const char *algo_get(grt_device_algos *algos, const char *key)
{
    static _Thread_local char text[256];
    size_t size;
    char *data = algos->base.find(&algos->base, key, &size);
    snprintf(text, sizeof text, "%.*s", (int)size, data ? data : "");
    free(data);
    return text;
}

const char *algo_warnings(grt_algo_cache *cache)
{
    static _Thread_local char text[5000];
    grt_text t = {0};
    grt_algo_cache_warnings(cache, &t);
    snprintf(text, sizeof text, "%s", grt_text_get(&t));
    grt_text_release(&t);
    return text;
}

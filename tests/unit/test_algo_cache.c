/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of algorithms: stored rows are found again, by later processes as well. */
#include "tests/unit/algo_cache.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

START_TEST(stored_is_found_by_the_next_process)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=Conv;x=1;"), "");
    algo_put(&a, "op=Conv;x=1;", "first", GRT_CHOICE_HEURISTIC);
    algo_put(&a, "op=Conv;x=2;", "", GRT_CHOICE_HEURISTIC); /* no bytes are data, too */
    ck_assert_str_eq(algo_get(&a, "op=Conv;x=1;"), "first");
    ck_assert_uint_eq(a.hits, 1);
    ck_assert_uint_eq(a.misses, 1);
    ck_assert_uint_eq(a.heuristics, 2);
    grt_algo_cache_release(cache); /* saves */
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=Conv;x=1;"), "first");
    size_t size = 9;
    void *data = a.base.find(&a.base, "op=Conv;x=2;", &size);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(size, 0);
    free(data);
    ck_assert_str_eq(algo_warnings(cache), "");
    grt_algo_cache_release(cache);
}
END_TEST

START_TEST(tuned_stays)
{
    grt_device_algos a, b;
    grt_algo_cache *one = algo_open(&a), *two = algo_open(&b);
    algo_put(&a, "op=A;", "tuned", GRT_CHOICE_TUNED);
    algo_put(&a, "op=A;", "guess", GRT_CHOICE_HEURISTIC);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "tuned");
    grt_algo_cache_save(one);
    algo_put(&b, "op=A;", "guess", GRT_CHOICE_HEURISTIC); /* does not know of the other */
    grt_algo_cache_release(two);
    grt_algo_cache_release(one);
    one = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "tuned");
    algo_put(&a, "op=A;", "better", GRT_CHOICE_TUNED);
    grt_algo_cache_release(one);
    one = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "better");
    grt_algo_cache_release(one);
}
END_TEST

START_TEST(rejected_is_replaced)
{
    grt_device_algos a;
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=A;", "old", GRT_CHOICE_TUNED);
    algo_put(&a, "op=B;", "old", GRT_CHOICE_TUNED);
    grt_algo_cache_release(cache);
    cache = algo_open(&a);
    a.base.reject(&a.base, "op=A;");
    a.base.reject(&a.base, "op=B;");
    ck_assert_str_eq(algo_get(&a, "op=A;"), "");
    algo_put(&a, "op=A;", "new", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    grt_algo_cache_load(cache); /* what was refused does not come back */
    ck_assert_str_eq(algo_get(&a, "op=B;"), "");
    grt_algo_cache_release(cache);
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "new");
    ck_assert_str_eq(algo_get(&a, "op=B;"), "");
    grt_algo_cache_release(cache);
}
END_TEST

START_TEST(another_process_is_noticed)
{
    grt_device_algos a, b;
    grt_algo_cache *one = algo_open(&a), *two = algo_open(&b);
    algo_put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(one);
    grt_algo_cache_load(two);
    ck_assert_str_eq(algo_get(&b, "op=A;"), "x");
    algo_put(&b, "op=A2;", "y", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(two);
    grt_algo_cache_load(one);
    ck_assert_str_eq(algo_get(&a, "op=A2;"), "y");
    grt_algo_cache_release(one);
    grt_algo_cache_release(two);
}
END_TEST

START_TEST(switched_off)
{
    grt_algo_cache *cache;
    grt_device_algos a;
    ck_assert_int_eq(grt_algo_cache_create("off", &cache), GRT_OK);
    ck_assert_ptr_null(grt_algo_cache_path(cache));
    grt_device_algos_init(&a, cache);
    grt_algo_cache_load(cache);
    algo_put(&a, "op=A;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_save(cache);
    ck_assert_str_eq(algo_get(&a, "op=A;"), "x"); /* in memory it works */
    grt_algo_cache_release(cache);
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_ptr_null(grt_algo_cache_path(cache));
    grt_algo_cache_release(cache);
    setenv("GRAPHRT_ALGO_CACHE", "/else/where", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_str_eq(grt_algo_cache_path(cache), "/else/where");
    grt_algo_cache_release(cache);
    unsetenv("GRAPHRT_ALGO_CACHE");
    setenv("XDG_CACHE_HOME", "not/absolute", 1); /* to be ignored, says the standard */
    setenv("HOME", "/home/me", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_str_eq(grt_algo_cache_path(cache), "/home/me/.cache/graphrt/algos.db");
    grt_algo_cache_release(cache);
    setenv("XDG_CACHE_HOME", "/var/x", 1);
    ck_assert_int_eq(grt_algo_cache_create(NULL, &cache), GRT_OK);
    ck_assert_str_eq(grt_algo_cache_path(cache), "/var/x/graphrt/algos.db");
    grt_algo_cache_release(cache);
}
END_TEST

static void remember(void *user, const grt_algo_lookup *lookup)
{
    if (!lookup->hit && lookup->nearest)
        snprintf(user, 64, "%s", lookup->nearest);
}

START_TEST(a_miss_knows_its_nearest)
{
    grt_device_algos a;
    char nearest[64] = "";
    grt_algo_cache *cache = algo_open(&a);
    algo_put(&a, "op=Conv;gpu=H100;cudnn=9;x=8;", "x", GRT_CHOICE_HEURISTIC);
    algo_put(&a, "op=Conv;gpu=H200;cudnn=8;x=16;", "x", GRT_CHOICE_HEURISTIC);
    algo_put(&a, "op=MatMul;gpu=H100;cudnn=9;x=16;", "x", GRT_CHOICE_HEURISTIC);
    grt_algo_cache_release(cache);
    cache = algo_open(&a);
    ck_assert_str_eq(algo_get(&a, "op=Conv;gpu=H100;cudnn=9;x=16;"), "");
    grt_algo_cache_lookups(cache, remember, nearest);
    ck_assert_str_eq(nearest, "op=Conv;gpu=H100;cudnn=9;x=8;");
    grt_algo_cache_release(cache);
}
END_TEST

UNIT_SUITE(test_algo_cache, algo_setup, algo_teardown, stored_is_found_by_the_next_process, tuned_stays,
           rejected_is_replaced, another_process_is_noticed, switched_off, a_miss_knows_its_nearest)

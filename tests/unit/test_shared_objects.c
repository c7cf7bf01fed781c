/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the CUDA backend that are made once for all who ask: how often they are made and released, when
 * making fails, and when many ask at once. */
#include "backends/cuda/shared_objects.h"

#include "tests/unit/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static cuda_shared_objects *objects;
static atomic_int made, released;

static void count_release(void *data)
{
    atomic_fetch_add(&released, 1);
    free(data);
}

static grt_status make_int(void *user, void **out_data)
{
    int *data = malloc(sizeof *data);
    usleep(1000); /* others ask meanwhile */
    *data = *(const int *)user;
    *out_data = data;
    atomic_fetch_add(&made, 1);
    return GRT_OK;
}

static grt_status make_nothing(void *user, void **out_data)
{
    (void)user;
    (void)out_data;
    atomic_fetch_add(&made, 1);
    return GRT_OK;
}

static grt_status fail_to_make(void *user, void **out_data)
{
    (void)user;
    (void)out_data;
    return grt_fail(GRT_STATUS_DEVICE, "not today");
}

static const cuda_object_kind ints = {make_int, count_release}, nothings = {make_nothing, count_release},
                              failures = {fail_to_make, count_release};

static void setup(void)
{
    atomic_store(&made, 0);
    atomic_store(&released, 0);
    ck_assert_int_eq(cuda_shared_objects_create(&objects), GRT_OK);
}

static void teardown(void)
{
    cuda_shared_objects_release(objects);
}

static cuda_shared_object *take(const char *key, int value)
{
    cuda_shared_object *object;
    ck_assert_int_eq(cuda_shared_object_take(objects, key, &ints, &value, &object), GRT_OK);
    return object;
}

START_TEST(once_for_a_key)
{
    cuda_shared_object *a = take("a", 1), *b = take("b", 2), *again = take("a", 3);
    ck_assert(a == again && a != b);
    ck_assert_int_eq(*(int *)cuda_shared_object_data(again), 1);
    ck_assert_int_eq(made, 2);
    cuda_shared_object_give(objects, a);
    ck_assert_int_eq(released, 0);
    cuda_shared_object_give(objects, again);
    ck_assert_int_eq(released, 1);
    a = take("a", 4);
    ck_assert_int_eq(*(int *)cuda_shared_object_data(a), 4);
    cuda_shared_object_give(objects, a);
    cuda_shared_object_give(objects, b);
    ck_assert_int_eq(released, 3);
}
END_TEST

START_TEST(nothing_and_failures)
{
    cuda_shared_object *object, *again;
    ck_assert_int_eq(cuda_shared_object_take(objects, "a", &failures, NULL, &object), GRT_STATUS_DEVICE);
    ck_assert_ptr_null(object);
    ck_assert_int_eq(cuda_shared_object_take(objects, "a", &nothings, NULL, &object), GRT_OK);
    ck_assert_int_eq(cuda_shared_object_take(objects, "a", &ints, NULL, &again), GRT_OK);
    ck_assert(object == again && !cuda_shared_object_data(object));
    cuda_shared_object_give(objects, object);
    cuda_shared_object_give(objects, again);
    ck_assert(made == 1 && released == 0);
}
END_TEST

static void *ask(void *key)
{
    return take(key, 5);
}

START_TEST(many_at_once)
{
    enum { THREADS = 8 };
    static char keys[2][2] = {"a", "b"};
    pthread_t threads[THREADS];
    cuda_shared_object *held[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, keys[i % 2]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *object;
        pthread_join(threads[i], &object);
        held[i] = object;
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert(held[i] == held[i % 2]);
        cuda_shared_object_give(objects, held[i]);
    }
    ck_assert(made == 2 && released == 2);
}
END_TEST

UNIT_SUITE(test_shared_objects, setup, teardown, once_for_a_key, nothing_and_failures, many_at_once)

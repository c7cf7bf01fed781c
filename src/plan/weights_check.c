/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* madvise */
#include "src/plan/weights_check.h"

#include "src/base/openmp.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    BATCH = 4,              /* leaves at a time */
    LEAVES_PER_HELPER = 16, /* less is done before a thread has started */
    MOST_HELPERS = 63,
};

struct grt_weights_check {
    char *where;
    const char *data;
    size_t size, n_leaves;
    uint64_t expected;
    uint64_t *leaves;
    plan_digest signed_digest, *digests; /* of the leaves; NULL: not asked for */
    atomic_size_t next, done;
    pthread_mutex_t lock;
    pthread_cond_t finished;
};

grt_status grt_weights_check_create(const char *where, const void *data, size_t size, uint64_t expected,
                                    const plan_digest *digest, grt_weights_check **out_check)
{
    grt_weights_check *check = calloc(1, sizeof *check);
    if (!check)
        return grt_fail_memory(sizeof *check);
    check->n_leaves = size / PLAN_LEAF + (size % PLAN_LEAF != 0);
    check->leaves = malloc((check->n_leaves + 1) * sizeof *check->leaves);
    if (digest) {
        check->signed_digest = *digest;
        check->digests = malloc((check->n_leaves + 1) * sizeof *check->digests);
    }
    check->where = strdup(where);
    check->data = data;
    check->size = size;
    check->expected = expected;
    pthread_mutex_init(&check->lock, NULL);
    pthread_cond_init(&check->finished, NULL);
    if (!check->leaves || !check->where || (digest && !check->digests)) {
        grt_weights_check_release(check);
        return grt_fail_memory(size / PLAN_LEAF);
    }
    *out_check = check;
    return GRT_OK;
}

void grt_weights_check_release(grt_weights_check *check)
{
    if (!check)
        return;
    pthread_mutex_destroy(&check->lock);
    pthread_cond_destroy(&check->finished);
    free(check->leaves);
    free(check->digests);
    free(check->where);
    free(check);
}

/* Map and read all pages at once, instead of by a fault each. Advice: the bytes are read anyway. */
static void populate(const grt_weights_check *check, size_t begin, size_t bytes)
{
#ifdef MADV_POPULATE_READ
    const uintptr_t page = 4096, from = ((uintptr_t)check->data + begin) & ~(page - 1);
    const size_t left = check->size - begin;
    madvise((void *)from, (uintptr_t)check->data + begin + (bytes < left ? bytes : left) - from,
            MADV_POPULATE_READ);
#else
    (void)check, (void)begin, (void)bytes;
#endif
}

bool grt_weights_check_help(grt_weights_check *check)
{
    if (!check || atomic_load(&check->next) >= check->n_leaves)
        return false;
    const size_t first = atomic_fetch_add(&check->next, BATCH);
    size_t i = first;
    if (first < check->n_leaves)
        populate(check, first * PLAN_LEAF, BATCH * PLAN_LEAF);
    for (; i < first + BATCH && i < check->n_leaves; i++) {
        const size_t begin = i * PLAN_LEAF, left = check->size - begin,
                     n = left < PLAN_LEAF ? left : PLAN_LEAF;
        check->leaves[i] = XXH3_64bits(check->data + begin, n);
        if (check->digests)
            plan_digest_leaf(check->data + begin, n, &check->digests[i]);
    }
    if (i > first && atomic_fetch_add(&check->done, i - first) + (i - first) == check->n_leaves) {
        pthread_mutex_lock(&check->lock);
        pthread_cond_broadcast(&check->finished);
        pthread_mutex_unlock(&check->lock);
    }
    return i > first;
}

static void *help_until_all_are_taken(void *check)
{
    while (grt_weights_check_help(check)) {
    }
    return NULL;
}

/* A thread for each processor beside the caller's, as far as there is work for it and the system makes it. A
 * team of OpenMP would spin when it is done, while the session that was waited for begins to run. */
static size_t start_helpers(grt_weights_check *check, pthread_t helpers[MOST_HELPERS])
{
    const size_t taken = atomic_load(&check->next), processors = (size_t)grt_team_default();
    const size_t left = taken < check->n_leaves ? (check->n_leaves - taken) / LEAVES_PER_HELPER : 0;
    size_t wanted = processors - 1, started = 0;
    if (wanted > left)
        wanted = left;
    if (wanted > MOST_HELPERS)
        wanted = MOST_HELPERS;
    while (started < wanted && pthread_create(&helpers[started], NULL, help_until_all_are_taken, check) == 0)
        started++;
    return started;
}

grt_status grt_weights_check_finish(grt_weights_check *check)
{
    if (!check)
        return GRT_OK;
    pthread_t helpers[MOST_HELPERS];
    const size_t started = start_helpers(check, helpers);
    help_until_all_are_taken(check);
    for (size_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    pthread_mutex_lock(&check->lock);
    while (atomic_load(&check->done) < check->n_leaves)
        pthread_cond_wait(&check->finished, &check->lock);
    const uint64_t found = XXH3_64bits(check->leaves, check->n_leaves * sizeof *check->leaves);
    pthread_mutex_unlock(&check->lock);
    if (found != check->expected)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s (%zu bytes): checksum expected %016" PRIx64 ", found %016" PRIx64
                        ": the file is corrupt; make it again with graphc optimize",
                        check->where, check->size, check->expected, found);
    if (!check->digests)
        return GRT_OK;
    plan_digest all;
    plan_digest_leaves(check->digests, check->n_leaves, &all);
    return plan_digest_compare(check->where, "it", &check->signed_digest, &all);
}

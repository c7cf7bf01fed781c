/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/triton/copiers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { PIECE = 1 << 20 };

/* A copy under way, in the list while some of it is given to nobody. */
typedef struct shared_copy {
    struct shared_copy *next;
    char *to;
    const char *from;
    size_t size, given;
    size_t helpers; /* that are at it */
} shared_copy;

struct copiers {
    pthread_mutex_t lock; /* guards everything here, and shared_copy */
    pthread_cond_t work, done;
    shared_copy *copies;
    bool ends;
    size_t n_threads;
    pthread_t threads[];
};

/* Large inputs of devices are read by them alone: the copy goes around the caches, which saves a third of the
 * traffic of memory, as lines are not read before they are written. */
static void copy_around_caches(char *to, const char *from, size_t size)
{
#ifdef __SSE2__
    const size_t head = -(uintptr_t)to % sizeof(__m128i);
    if (size >= 256 << 10) {
        memcpy(to, from, head);
        to += head, from += head, size -= head;
        for (; size >= 64; to += 64, from += 64, size -= 64)
            for (int i = 0; i < 4; i++)
                _mm_stream_si128((__m128i *)(void *)to + i,
                                 _mm_loadu_si128((const __m128i *)(const void *)from + i));
        _mm_sfence();
    }
#endif
    memcpy(to, from, size);
}

/* Copies the next piece, if there is one. Locked; not while it copies. */
static bool copy_next_piece(copiers *all, shared_copy *c)
{
    const size_t at = c->given, left = c->size - at, n = left < PIECE ? left : PIECE;
    if (!n)
        return false;
    c->given += n;
    pthread_mutex_unlock(&all->lock);
    copy_around_caches(c->to + at, c->from + at, n);
    pthread_mutex_lock(&all->lock);
    return true;
}

static shared_copy *unfinished_copy(const copiers *all)
{
    shared_copy *c = all->copies;
    while (c && c->given == c->size)
        c = c->next;
    return c;
}

static void *copiers_main(void *argument)
{
    copiers *all = argument;
    pthread_mutex_lock(&all->lock);
    while (!all->ends) {
        shared_copy *c = unfinished_copy(all);
        if (!c) {
            pthread_cond_wait(&all->work, &all->lock);
            continue;
        }
        c->helpers++;
        copy_next_piece(all, c);
        if (--c->helpers == 0)
            pthread_cond_broadcast(&all->done);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

copiers *copiers_create(size_t n)
{
    copiers *all = calloc(1, sizeof *all + n * sizeof *all->threads);
    if (!all)
        return NULL;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->work, NULL);
    pthread_cond_init(&all->done, NULL);
    while (all->n_threads < n && pthread_create(&all->threads[all->n_threads], NULL, copiers_main, all) == 0)
        all->n_threads++;
    return all;
}

size_t copiers_threads(const copiers *all)
{
    return all->n_threads;
}

void copiers_release(copiers *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->ends = true;
    pthread_cond_broadcast(&all->work);
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < all->n_threads; i++)
        pthread_join(all->threads[i], NULL);
    pthread_cond_destroy(&all->done);
    pthread_cond_destroy(&all->work);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

void copiers_copy(copiers *all, char *to, const char *from, size_t size)
{
    shared_copy mine = {.to = to, .from = from, .size = size};
    if (!all->n_threads || size < 2 * PIECE) {
        copy_around_caches(to, from, size);
        return;
    }
    pthread_mutex_lock(&all->lock);
    mine.next = all->copies;
    all->copies = &mine;
    pthread_cond_broadcast(&all->work);
    while (copy_next_piece(all, &mine))
        ;
    shared_copy **at = &all->copies;
    while (*at != &mine)
        at = &(*at)->next;
    *at = mine.next;
    while (mine.helpers)
        pthread_cond_wait(&all->done, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/background.h"

#include "src/base/exit_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct queued {
    struct queued *next;
    grt_job job;
} queued;

struct grt_background {
    pthread_mutex_t lock; /* not held while a job runs */
    pthread_cond_t idle;
    queued *first, **last;
    bool working;   /* the thread has something to do */
    bool has_ended; /* there is a thread to be joined that does nothing any more */
    bool stopped;
    pthread_t thread;
    pid_t process; /* that the thread is in */
    atomic_uint rounds;
};

grt_status grt_background_create(grt_background **out_background)
{
    grt_background *b = calloc(1, sizeof *b);
    if (!b)
        return grt_fail_memory(sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->idle, NULL);
    b->last = &b->first;
    *out_background = b;
    return GRT_OK;
}

/* A process that was forked meanwhile has the queue, but not the thread. */
static void background_lock(grt_background *b)
{
    pthread_mutex_lock(&b->lock);
    if ((b->working || b->has_ended) && b->process != getpid())
        b->working = b->has_ended = false;
}

static queued *take_first(grt_background *b)
{
    queued *q = b->first;
    b->first = q->next;
    if (!b->first)
        b->last = &b->first;
    return q;
}

static void background_drop(queued *q)
{
    q->job.drop(q->job.data);
    free(q);
}

/* Behind everybody else, who have something to wait for. To Linux, 0 is this thread. */
static void lower_priority(void)
{
    enum { NICE = 10 };
    (void)setpriority(PRIO_PROCESS, 0, NICE);
}

static void *do_jobs(void *arg)
{
    grt_background *b = arg;
    lower_priority();
    pthread_mutex_lock(&b->lock);
    while (b->first && !b->stopped) {
        queued *q = take_first(b);
        pthread_mutex_unlock(&b->lock);
        if (!grt_exit_guard_ends())
            q->job.run(q->job.data);
        background_drop(q);
        pthread_mutex_lock(&b->lock);
    }
    b->working = false;
    b->has_ended = true;
    atomic_fetch_add_explicit(&b->rounds, 1, memory_order_release);
    pthread_cond_broadcast(&b->idle);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* With the lock. Signals are for the program's own threads. */
static bool start_thread(grt_background *b)
{
    sigset_t all, before;
    if (b->has_ended)
        pthread_join(b->thread, NULL); /* it holds the lock no more */
    b->has_ended = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    b->process = getpid();
    b->working = grt_exit_guard_start(&b->thread, do_jobs, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return b->working;
}

bool grt_background_add(grt_background *b, const grt_job *job)
{
    queued *q = malloc(sizeof *q);
    if (!q)
        return false;
    *q = (queued){.job = *job};
    background_lock(b);
    const bool ok = !b->stopped && (b->working || start_thread(b));
    if (ok) {
        *b->last = q;
        b->last = &q->next;
    }
    pthread_mutex_unlock(&b->lock);
    if (!ok)
        free(q);
    return ok;
}

bool grt_background_remove(grt_background *b, const void *data)
{
    background_lock(b);
    queued **at = &b->first;
    while (*at && (*at)->job.data != data)
        at = &(*at)->next;
    queued *found = *at;
    if (found) {
        *at = found->next;
        if (b->last == &found->next)
            b->last = at;
    }
    pthread_mutex_unlock(&b->lock);
    if (found)
        background_drop(found);
    return found != NULL;
}

unsigned grt_background_rounds(const grt_background *b)
{
    return atomic_load_explicit(&b->rounds, memory_order_acquire);
}

void grt_background_settle(grt_background *b)
{
    background_lock(b);
    while (b->working)
        pthread_cond_wait(&b->idle, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

void grt_background_stop(grt_background *b)
{
    background_lock(b);
    b->stopped = true;
    while (b->working)
        pthread_cond_wait(&b->idle, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

void grt_background_release(grt_background *b)
{
    if (!b)
        return;
    grt_background_stop(b);
    if (b->has_ended)
        pthread_join(b->thread, NULL);
    while (b->first)
        background_drop(take_first(b));
    pthread_cond_destroy(&b->idle);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/oversubscription.h"

/* Of the time that a thread wants to run, the share that it waits for a processor: a few thousandths on
 * processors of its own, a half or more beside busy neighbours. Between the limits it stays as it is. */
static const double high_share = 0.2, low_share = 0.05;
enum { WINDOW_NS = 20000000 };

bool grt_oversubscription_judge(bool oversubscribed, grt_oversubscription_sample *start,
                                grt_oversubscription_sample now)
{
    const double ran = (double)(now.ran_ns - start->ran_ns),
                 waited = (double)(now.waited_ns - start->waited_ns);
    if (ran + waited < WINDOW_NS)
        return oversubscribed;
    *start = now;
    return waited > (oversubscribed ? low_share : high_share) * (ran + waited);
}

#if defined _OPENMP && !defined __clang__
#include "src/base/openmp.h"

#include <fcntl.h>
#include <inttypes.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_NS = 10000000, MOST_PARKED = 64 };

/* Guards what follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool oversubscribed;
static pthread_t parker;
static bool has_parker; /* to be joined */
static int32_t parked_team_size;
/* What parked threads wait on. */
static pthread_mutex_t park_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unparked = PTHREAD_COND_INITIALIZER;
static bool parked;

static void set_parked(bool value)
{
    pthread_mutex_lock(&park_lock);
    parked = value;
    pthread_cond_broadcast(&unparked);
    pthread_mutex_unlock(&park_lock);
}

static bool is_parked(void)
{
    pthread_mutex_lock(&park_lock);
    const bool value = parked;
    pthread_mutex_unlock(&park_lock);
    return value;
}

static void *park_team(void *unused)
{
    (void)unused;
    if (grt_team_possible(parked_team_size) < parked_team_size) {
        set_parked(false); /* fewer would shorten nothing; the next look asks again */
        return NULL;
    }
#pragma omp parallel num_threads(parked_team_size)
    {
        pthread_mutex_lock(&park_lock);
        while (parked)
            pthread_cond_wait(&unparked, &park_lock);
        pthread_mutex_unlock(&park_lock);
    }
    return NULL; /* libgomp ends the team's threads with the one that made them */
}

static void join_parker(void)
{
    if (has_parker)
        pthread_join(parker, NULL);
    has_parker = false;
}

/* As many that, with a team of `threads`, there are more OpenMP threads than processors. */
static void start_parking(int32_t threads)
{
    sigset_t all, before;
    const int32_t wanted = omp_get_num_procs() - threads + 2;
    if (wanted > MOST_PARKED)
        return;
    join_parker();
    parked_team_size = wanted < 2 ? 2 : wanted;
    set_parked(true);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_parker = !pthread_create(&parker, NULL, park_team, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!has_parker)
        set_parked(false);
}

static void shorten(bool wanted, int32_t threads)
{
    if (wanted && !is_parked())
        start_parking(threads);
    else if (!wanted && is_parked())
        set_parked(false);
}

void grt_oversubscription_shorten_waits(bool wanted, int32_t threads)
{
    pthread_mutex_lock(&lock);
    oversubscribed = wanted;
    shorten(wanted, threads);
    pthread_mutex_unlock(&lock);
}

/* Of the calling thread. False where the kernel does not count. */
static bool take_sample(grt_oversubscription_sample *sample)
{
    char text[96];
    const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[n < 0 ? 0 : n] = '\0';
    return sscanf(text, "%" SCNd64 " %" SCNd64, &sample->ran_ns, &sample->waited_ns) == 2;
}

static bool stays_out;

/* Parked threads and those of a run's team would take address space from each other, and libgomp ends the
 * process where a thread that was proven to be possible is not any more. */
static bool is_address_space_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

static void prepare_once(void)
{
    pthread_atfork(grt_oversubscription_end, NULL,
                   NULL); /* a child has no parked threads; if that fails, its waits stay short */
    stays_out = getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") || is_address_space_limited();
}

static int64_t coarse_now(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void grt_oversubscription_look(int32_t threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local int64_t next;
    static _Thread_local grt_oversubscription_sample start;
    grt_oversubscription_sample sample;
    const int64_t now = coarse_now();
    if (threads < 2 || now < next)
        return;
    next = now + LOOK_EVERY_NS;
    pthread_once(&once, prepare_once);
    if (stays_out || !take_sample(&sample)) {
        next = INT64_MAX;
        return;
    }
    if (pthread_mutex_trylock(&lock))
        return;
    oversubscribed = grt_oversubscription_judge(oversubscribed, &start, sample);
    shorten(oversubscribed, threads);
    pthread_mutex_unlock(&lock);
}

void grt_oversubscription_end(void)
{
    pthread_mutex_lock(&lock);
    shorten(false, 0);
    join_parker();
    oversubscribed = false;
    pthread_mutex_unlock(&lock);
}

/* The library may be unloaded while the program goes on. */
__attribute__((destructor)) static void end_with_library(void)
{
    grt_oversubscription_end();
}

#else

void grt_oversubscription_look(int32_t threads)
{
    (void)threads;
}

void grt_oversubscription_shorten_waits(bool wanted, int32_t threads)
{
    (void)wanted;
    (void)threads;
}

void grt_oversubscription_end(void)
{
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/openmp.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <signal.h>

#include "src/base/cores.h"

static _Thread_local bool has_team;
static _Thread_local int32_t proven = 1; /* the largest team that could be made */

int32_t grt_team_default(void)
{
    const int32_t cores = grt_cores_available(), most = omp_get_max_threads(), limit = omp_get_thread_limit();
    const int32_t threads = cores < most ? cores : most;
    return threads < limit ? threads : limit;
}

int32_t grt_team_resize(int32_t threads)
{
    int32_t before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    grt_team_used();
    return before;
}

static void *wait_for_all(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Makes up to n threads that are there at the same time, and ends them. Signals are not for them. */
static int32_t make_threads(int32_t n)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t made[GRT_MOST_THREADS];
    sigset_t all, before;
    int32_t count = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&gate);
    while (count < n && !pthread_create(&made[count], NULL, wait_for_all, &gate))
        count++;
    pthread_mutex_unlock(&gate);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int32_t i = 0; i < count; i++)
        pthread_join(made[i], NULL);
    pthread_mutex_destroy(&gate);
    return count;
}

int32_t grt_team_possible(int32_t wanted)
{
    if (wanted <= proven || omp_in_parallel()) /* regions in regions have one thread */
        return wanted < 1 ? 1 : wanted;
    if (wanted > GRT_MOST_THREADS)
        wanted = GRT_MOST_THREADS;
    grt_team_used();
    const int32_t found = 1 + make_threads(wanted - 1);
    if (found > proven)
        proven = found;
    return found;
}

grt_team grt_team_enter(int32_t threads, bool alone)
{
    const grt_team before = {omp_get_max_threads(), omp_get_max_active_levels()};
    if (alone || grt_team_possible(threads) < threads)
        omp_set_max_active_levels(0);
    grt_team_resize(threads);
    return before;
}

void grt_team_leave(grt_team before)
{
    grt_team_resize(before.threads);
    if (omp_get_max_active_levels() != before.levels)
        omp_set_max_active_levels(before.levels);
}

/* Other users of OpenMP in this thread get a new team, too, when they want one next. */
static void let_go(void)
{
    if (has_team)
        omp_pause_resource_all(omp_pause_hard);
    has_team = false;
    proven = 1;
}

static void install(void)
{
    pthread_atfork(let_go, NULL, NULL); /* if that fails, forking is as it was */
}

void grt_team_used(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (has_team)
        return;
    pthread_once(&once, install);
    has_team = true;
}

#else

int32_t grt_team_default(void)
{
    return 1;
}

int32_t grt_team_possible(int32_t wanted)
{
    (void)wanted;
    return 1;
}

grt_team grt_team_enter(int32_t threads, bool alone)
{
    (void)threads;
    (void)alone;
    return (grt_team){1, 1};
}

void grt_team_leave(grt_team before)
{
    (void)before;
}

int32_t grt_team_resize(int32_t threads)
{
    (void)threads;
    return 1;
}

void grt_team_used(void)
{
}

#endif

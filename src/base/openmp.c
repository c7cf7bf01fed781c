/* See openmp.h. */
#include "src/base/openmp.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>

static _Thread_local bool has_team;

int32_t grt_team_size(void)
{
    return omp_get_max_threads();
}

int32_t grt_team_resize(int32_t threads)
{
    int32_t before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    grt_team_used();
    return before;
}

/* Other users of OpenMP in this thread get a new team, too, when they want one next. */
static void let_go(void)
{
    if (has_team)
        omp_pause_resource_all(omp_pause_hard);
    has_team = false;
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

int32_t grt_team_size(void)
{
    return 1;
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/clock.h"

#include "src/base/uncancelled.h"

#include <errno.h>
#include <math.h>
#include <time.h>

void grt_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static bool cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double deadline_ms)
{
    enum { MS_A_SECOND = 1000 };
    static const double most_seconds = 1e9; /* what is later is never */
    const double seconds = floor(deadline_ms / MS_A_SECOND);
    if (deadline_ms == 0 || seconds > most_seconds) {
        pthread_cond_wait(cond, lock);
        return true;
    }
    if (!(seconds >= 0))
        return false;
    const struct timespec until = {.tv_sec = (time_t)seconds,
                                   .tv_nsec = (long)((deadline_ms - seconds * MS_A_SECOND) * 1e6)};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

bool grt_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double deadline_ms)
{
    const int before = grt_uncancelled_begin();
    const bool goes_on = cond_wait(cond, lock, deadline_ms);
    grt_uncancelled_end(before);
    return goes_on;
}

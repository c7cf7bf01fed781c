/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that is cancelled (pthread_cancel) while it has a lock, or a request that it serves, would leave
 * both behind. Between these calls it is not: it is cancelled later. */
#ifndef GRT_BASE_UNCANCELLED_H
#define GRT_BASE_UNCANCELLED_H

#include <pthread.h>

/* What to give to the other. */
static inline int grt_uncancelled_begin(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void grt_uncancelled_end(int before)
{
    pthread_setcancelstate(before, NULL);
}

#endif

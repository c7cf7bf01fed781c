/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/forked.h"

#include <pthread.h>

/* Written by a child before it has threads, read by any thread. */
static unsigned forks;

static void count_fork(void)
{
    forks++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork); /* if that fails, children are not told from their parents */
}

unsigned grt_forked_number(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return forks;
}

bool grt_forked_since(unsigned number)
{
    return forks != number;
}

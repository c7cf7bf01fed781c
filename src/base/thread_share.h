/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that runs share: how many those at work may have together. Any number of threads may use one. */
#ifndef GRT_BASE_THREAD_SHARE_H
#define GRT_BASE_THREAD_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct grt_thread_share {
    atomic_int limit; /* 0: none */
    atomic_int used;  /* of runs that began under a limit */
} grt_thread_share;

/* What a run has, to give back. */
typedef struct grt_thread_grant {
    int32_t counted;
    bool alone; /* the calling thread is all there is */
} grt_thread_grant;

/* For a run that wants `threads`, its calling thread among them: all of them, or the calling thread alone if
 * all would go beyond the limit. A run never waits and never has a number between, for which kernels are not
 * made. */
grt_thread_grant grt_thread_share_take(grt_thread_share *share, int32_t threads);
void grt_thread_share_give(grt_thread_share *share, grt_thread_grant grant);

#endif

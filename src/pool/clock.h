/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until a time on the clock of grt_clock_ms. */
#ifndef GRT_SRC_POOL_CLOCK_H
#define GRT_SRC_POOL_CLOCK_H

#include <pthread.h>
#include <stdbool.h>

void grt_clock_cond_init(pthread_cond_t *cond);
/* Waits with the lock; 0: without limit. False: the time is over. No cancellation point. */
bool grt_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, double deadline_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Work that nobody waits for: jobs are done one after the other by one thread of low priority, which ends
 * when there are none. Any thread may call these functions. */
#ifndef GRT_BASE_BACKGROUND_H
#define GRT_BASE_BACKGROUND_H

#include "src/base/status.h"

#include <stdbool.h>

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_background grt_background;

typedef struct grt_job {
    void (*run)(void *data);
    void (*drop)(void *data); /* behind run, and without it for a job that is never run */
    void *data;               /* tells the job from others */
} grt_job;

grt_status grt_background_create(grt_background **out_background);
/* Drops what has not begun, waits for the job that runs; NULL-safe. */
void grt_background_release(grt_background *background);
/* False: there is no thread or no memory for it; then the job is the caller's. */
bool grt_background_add(grt_background *background, const grt_job *job);
/* Drops the job with this data. False: it has begun, or there is none. */
bool grt_background_remove(grt_background *background, const void *data);
/* How often the thread has come to the end of its jobs. One atomic read. */
unsigned grt_background_rounds(const grt_background *background);
/* Takes and begins no more jobs; waits for the one that runs. */
void grt_background_stop(grt_background *background);
/* Waits until there is nothing to do. */
void grt_background_settle(grt_background *background);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif

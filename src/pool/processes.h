/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a lane's sessions: each has a thread that waits for its end and replaces it. */
#ifndef GRT_SRC_POOL_PROCESSES_H
#define GRT_SRC_POOL_PROCESSES_H

#include "src/pool/parts.h"

#include <graphrt/processes.h>

/* One of a lane. */
typedef struct grt_lane_process {
    struct grt_lane_processes *of;
    grt_lane *lane;
    size_t index;
    const char *device;
    grt_process *process; /* with the pool's lock; NULL: it is replaced, or will not be any more */
    uint64_t started;
    int32_t failures; /* in a row */
    pthread_t thread;
    bool watched;
    grt_status status; /* of its first start */
    char *error;
} grt_lane_process;

typedef struct grt_lane_processes {
    grt_process_setup setup;
    int32_t most_failures;
    int stop; /* readable once they are not replaced any more */
    char **devices;
    size_t n;
    grt_lane_process *list;
} grt_lane_processes;

/* All are ready, with so many contexts each. grt_lane_processes_release in every case, NULL-safe. */
grt_status grt_lane_processes_create(const grt_model *model, const char *const *devices, size_t n,
                                     int32_t contexts, const grt_process_options *options,
                                     grt_lane_processes **out_processes);
void grt_lane_processes_release(grt_lane_processes *processes);

/* The lane's workers have their channels: from now on processes are replaced. */
grt_status grt_lane_processes_watch(grt_lane_processes *processes, grt_lane *lane);
/* They are not replaced any more. */
void grt_lane_processes_stop(grt_lane_processes *processes);

#endif

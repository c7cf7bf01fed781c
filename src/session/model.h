/* SPDX-License-Identifier: Apache-2.0 */
/* Models: an immutable plan, mapped from a file or compiled in memory. */
#ifndef GRT_SRC_SESSION_MODEL_H
#define GRT_SRC_SESSION_MODEL_H

#include "src/algos/cache.h"
#include "src/base/background.h"
#include "src/base/file_map.h"
#include "src/base/thread_share.h"
#include "src/session/devices.h"
#include "src/session/phases.h"
#include "src/plan/plan.h"
#include "src/session/resident.h"
#include "src/plan/weights_check.h"

#include <pthread.h>
#include <stdatomic.h>

struct grt_runtime {
    atomic_int refs;
    grt_algo_cache *algos;
    grt_devices *devices;
    grt_residents *residents;
    grt_thread_share threads;   /* of runs on the CPU */
    grt_background *background; /* which makes generated kernels */
    grt_code_when code_when;    /* for sessions that do not say; see GRAPHRT_COMPILE */
};

struct grt_model {
    atomic_int refs;
    grt_runtime *runtime;
    grt_plan *plan;
    void *map; /* the mapped file, or a copy of the caller's bytes */
    size_t map_size;
    grt_file_map file;        /* empty: the model came as bytes */
    bool borrowed;            /* the caller's memory */
    grt_weights_check *check; /* of many weights, which sessions do before they are ready; NULL: done */
    pthread_mutex_t lock;     /* of the list below */
    struct grt_host_weights *host_weights;
    grt_phases phases;
    uint64_t passes; /* of the optimiser that ran when it was opened */
    grt_arena *texts;
    const char **io_symbols; /* GRT_MAX_RANK per input, then per output: symbolic dims as text, or NULL */
};

grt_runtime *grt_runtime_retain(grt_runtime *runtime);
grt_model *grt_model_retain(grt_model *model);
/* Texts of symbolic dims are made once, at opening, so that questions may come from any thread. */
grt_status grt_model_make_texts(grt_model *model);
/* These bytes of the model have been packed: if they are mapped from its file, their pages may leave memory.
 * They can still be read. */
void grt_model_forget(const grt_model *model, const void *data, size_t bytes);

#endif

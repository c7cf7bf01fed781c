/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime object: what sessions share, which is the devices that are open, the cache of algorithms and
 * threads. */
#include "src/session/model.h"

#include "src/base/exit_guard.h"
#include "src/base/openmp.h"
#include "src/base/span.h"

#include <stdlib.h>

grt_status grt_runtime_create(grt_runtime **out_runtime)
{
    if (!out_runtime)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_runtime_create: out_runtime is NULL");
    grt_runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime)
        return grt_fail_memory(sizeof *runtime);
    atomic_init(&runtime->refs, 1);
    grt_status status = grt_algo_cache_create(NULL, &runtime->algos);
    if (status == GRT_OK)
        status = grt_devices_create(&runtime->devices);
    if (status == GRT_OK)
        status = grt_residents_create(&runtime->residents);
    if (status == GRT_OK)
        status = grt_background_create(&runtime->background);
    if (status == GRT_OK)
        status = grt_code_when_parse(getenv("GRAPHRT_COMPILE"), GRT_CODE_IN_BACKGROUND, "GRAPHRT_COMPILE",
                                     &runtime->code_when);
    if (status != GRT_OK) {
        grt_runtime_release(runtime);
        return status;
    }
    grt_team_used();
    grt_exit_guard_register();
    grt_spans_look();
    *out_runtime = runtime;
    return GRT_OK;
}

grt_status grt_runtime_set_threads(grt_runtime *runtime, int32_t threads)
{
    if (!runtime || threads < 0 || threads > GRT_MOST_THREADS)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_runtime_set_threads: %s; expected a runtime and a number from 0 to %d",
                        runtime ? "threads are out of range" : "runtime is NULL", GRT_MOST_THREADS);
    atomic_store_explicit(&runtime->threads.limit, threads, memory_order_relaxed);
    return GRT_OK;
}

void grt_runtime_stop_compiling(grt_runtime *runtime)
{
    if (runtime)
        grt_background_stop(runtime->background);
}

grt_runtime *grt_runtime_retain(grt_runtime *runtime)
{
    atomic_fetch_add_explicit(&runtime->refs, 1, memory_order_relaxed);
    return runtime;
}

void grt_runtime_release(grt_runtime *runtime)
{
    if (!runtime || atomic_fetch_sub_explicit(&runtime->refs, 1, memory_order_acq_rel) != 1)
        return;
    grt_background_release(runtime->background); /* what it makes is for devices */
    grt_residents_release(runtime->residents);
    grt_devices_release(runtime->devices);
    grt_algo_cache_release(runtime->algos);
    free(runtime);
}

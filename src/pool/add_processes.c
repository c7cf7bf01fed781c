/* SPDX-License-Identifier: Apache-2.0 */
/* grt_pool_add_processes: lanes whose sessions are in processes of their own. */
#include "src/base/structs.h"
#include "src/pool/caller.h"
#include "src/pool/lane.h"
#include "src/pool/processes.h"
#include "src/pool/remote.h"

#include <string.h>

/* As grt_pool_create has it. No device is opened for that. */
static int32_t contexts_for(const char *const *devices, size_t n, const grt_pool_options *options)
{
    enum { ON_DEVICES = 3 };
    if (options->contexts)
        return options->contexts;
    for (size_t k = 0; k < grt_device_kind_count(); k++) {
        grt_device_kind_info info = {.struct_size = sizeof info};
        if (grt_device_kind(k, &info) != GRT_OK || !info.accelerator)
            continue;
        const size_t length = strlen(info.name);
        for (size_t i = 0; i < n; i++)
            if (devices[i] && !strncmp(devices[i], info.name, length) &&
                (!devices[i][length] || devices[i][length] == ':'))
                return ON_DEVICES;
    }
    return 1;
}

static grt_status check_add(const grt_pool *pool, const grt_model *model, const char *const *devices,
                            size_t n, const size_t *out_lane)
{
    enum { MOST_PROCESSES = 1024 };
    GRT_TRY(grt_caller_check(pool, "grt_pool_add_processes"));
    if (!model || !devices || !out_lane)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_add_processes: model, devices or out_lane is NULL");
    if (!n || n > MOST_PROCESSES)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_pool_add_processes: %zu processes; 1 to %d are possible", n,
                        (int)MOST_PROCESSES);
    return GRT_OK;
}

grt_status grt_pool_add_processes(grt_pool *pool, grt_model *model, const char *const *devices, size_t n,
                                  const grt_pool_options *options, const grt_process_options *processes,
                                  size_t *out_lane)
{
    grt_pool_options used = {0};
    grt_process_options started = {0};
    grt_lane_processes *all = NULL;
    GRT_TRY(check_add(pool, model, devices, n, out_lane));
    GRT_TRY(grt_options_take(&used, sizeof used, options, "grt_pool_options"));
    GRT_TRY(grt_options_take(&started, sizeof started, processes, "grt_process_options"));
    GRT_TRY(grt_lane_check(pool, &used));
    GRT_TRY(grt_remote_check_model(model));
    used.contexts = contexts_for(devices, n, &used);
    const grt_status status = grt_lane_processes_create(model, devices, n, used.contexts, &started, &all);
    if (status == GRT_OK)
        return grt_lane_add_processes(pool, model, all, &used, out_lane);
    grt_lane_processes_release(all);
    return status;
}

grt_status grt_pool_get_process(grt_pool *pool, size_t lane, size_t index, grt_process_info *out_info)
{
    grt_process_info info = {0};
    GRT_TRY(grt_caller_check(pool, "grt_pool_get_process"));
    pthread_mutex_lock(&pool->lock);
    const grt_lane_processes *all = lane < pool->n_lanes ? pool->lanes[lane]->processes : NULL;
    const bool found = all && index < all->n;
    if (found) {
        const grt_lane_process *p = &all->list[index];
        const grt_lane_session *s = &pool->lanes[lane]->sessions[index];
        info = (grt_process_info){
            .pid = p->process ? p->process->pid : 0, .started = p->started, .lost = s->lost && !s->coming};
    }
    pthread_mutex_unlock(&pool->lock);
    return found ? grt_info_give(out_info, &info, sizeof info, "grt_process_info")
                 : grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "grt_pool_get_process: the pool has no process %zu of lane %zu", index, lane);
}

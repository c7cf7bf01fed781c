/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/processes.h"

#include "src/base/log.h"
#include "src/pool/schedule.h"
#include "src/process/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { START_TIMEOUT_MS = 120000, GRACE_MS = 2000, MOST_FAILURES = 3 };

static void *start_first(void *user)
{
    grt_lane_process *p = user;
    p->status = grt_process_start(&p->of->setup, p->device, -1, &p->process);
    p->started = p->status == GRT_OK;
    if (p->status != GRT_OK)
        p->error = strdup(grt_last_error());
    return NULL;
}

/* At once: making a session takes long. */
static grt_status start_all(grt_lane_processes *all)
{
    for (size_t i = 1; i < all->n; i++)
        all->list[i].watched = pthread_create(&all->list[i].thread, NULL, start_first, &all->list[i]) == 0;
    for (size_t i = 0; i < all->n; i++) {
        grt_lane_process *p = &all->list[i];
        if (!p->watched)
            start_first(p);
        else
            pthread_join(p->thread, NULL);
        p->watched = false;
    }
    for (size_t i = 0; i < all->n; i++)
        if (all->list[i].status != GRT_OK)
            return grt_fail(all->list[i].status, "%s",
                            all->list[i].error ? all->list[i].error : "out of memory");
    return GRT_OK;
}

static grt_status copy_text(char *to, size_t size, const char *from, const char *what)
{
    const size_t n = from ? strlen(from) : 0;
    if (n >= size)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s has %zu bytes, at most %zu are taken", what, n,
                        size - 1);
    memcpy(to, from ? from : "", n + 1);
    return GRT_OK;
}

static grt_status take_process_options(grt_lane_processes *all, const grt_process_options *options)
{
    grt_process_setup *setup = &all->setup;
    if (options->fallback && strcmp(options->fallback, "cpu") != 0)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "fallback is '%s', must be 'cpu' or NULL",
                        options->fallback);
    if (!(options->start_timeout_ms >= 0) || !(options->grace_ms >= 0) || options->most_failures < 0)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "start_timeout_ms is %g, grace_ms %g, most_failures %d; none may be negative",
                        options->start_timeout_ms, options->grace_ms, options->most_failures);
    setup->start_timeout_ms = options->start_timeout_ms > 0 ? options->start_timeout_ms : START_TIMEOUT_MS;
    setup->grace_ms = options->grace_ms > 0 ? options->grace_ms : GRACE_MS;
    all->most_failures = options->most_failures ? options->most_failures : MOST_FAILURES;
    setup->start.threads = options->threads;
    setup->start.priority = options->priority;
    setup->start.fallback = options->fallback != NULL;
    setup->start.memory_limit = options->memory_limit;
    setup->start.multiprocessors = options->multiprocessors;
    return copy_text(setup->start.custom_ops, sizeof setup->start.custom_ops, options->custom_ops,
                     "custom_ops");
}

static grt_status name_processes(grt_lane_processes *all, const char *const *devices, size_t n)
{
    all->list = calloc(n, sizeof *all->list);
    all->devices = calloc(n, sizeof *all->devices);
    if (!all->list || !all->devices)
        return grt_fail_memory(n * sizeof *all->list);
    all->n = n;
    for (size_t i = 0; i < n; i++) {
        char name[GRT_WIRE_DEVICE];
        GRT_TRY(copy_text(name, sizeof name, devices[i] ? devices[i] : "cpu", "a device's name"));
        all->devices[i] = strdup(name);
        if (!all->devices[i])
            return grt_fail_memory(0);
        all->list[i] = (grt_lane_process){.of = all, .index = i, .device = all->devices[i]};
    }
    return GRT_OK;
}

static grt_status make_processes(grt_lane_processes *all, const grt_model *model, const char *const *devices,
                                 size_t n, int32_t contexts, const grt_process_options *options)
{
    GRT_TRY(name_processes(all, devices, n));
    GRT_TRY(take_process_options(all, options));
    all->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (all->stop < 0)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "an eventfd cannot be made");
    if (model->check)
        GRT_TRY(grt_weights_check_finish(model->check));
    all->setup.start.n_channels = contexts;
    GRT_TRY(grt_process_setup_create(model->plan, options->program, &all->setup));
    return start_all(all);
}

grt_status grt_lane_processes_create(const grt_model *model, const char *const *devices, size_t n,
                                     int32_t contexts, const grt_process_options *options,
                                     grt_lane_processes **out_processes)
{
    grt_lane_processes *all = calloc(1, sizeof *all);
    if (!all)
        return grt_fail_memory(sizeof *all);
    all->stop = -1;
    *out_processes = all;
    return make_processes(all, model, devices, n, contexts, options);
}

void grt_lane_processes_release(grt_lane_processes *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->n; i++) { /* their ends take time, which is the same for all */
        if (all->list[i].process)
            grt_process_kill(all->list[i].process);
    }
    for (size_t i = 0; i < all->n; i++) {
        grt_process_release(all->list[i].process);
        free(all->list[i].error);
        free(all->devices[i]);
    }
    grt_process_setup_release(&all->setup);
    if (all->stop >= 0)
        close(all->stop);
    free(all->devices);
    free(all->list);
    free(all);
}

static grt_lane_session *session_of(const grt_lane_process *p)
{
    return &p->lane->sessions[p->index];
}

/* Its requests fail by themselves, and go elsewhere. */
static grt_process *withdraw_process(grt_lane_process *p)
{
    grt_pool *pool = p->lane->pool;
    pthread_mutex_lock(&pool->lock);
    session_of(p)->coming = true;
    (void)grt_schedule_lose(session_of(p), p->lane);
    pool->n_watchers++;
    while (session_of(p)->busy)
        pthread_cond_wait(&pool->closed, &pool->lock);
    pool->n_watchers--;
    grt_process *ended = p->process;
    p->process = NULL;
    pthread_mutex_unlock(&pool->lock);
    return ended;
}

static void put_process_in_place(grt_lane_process *p, grt_process *process)
{
    grt_lane *lane = p->lane;
    size_t k = 0;
    pthread_mutex_lock(&lane->pool->lock);
    for (size_t i = 0; i < lane->n_workers; i++)
        if (lane->workers[i].session == p->index)
            lane->workers[i].channel = &process->channels[k++];
    p->process = process;
    p->started++;
    session_of(p)->lends = process->lends;
    session_of(p)->lost = session_of(p)->coming = false;
    grt_schedule_dispatch(lane->pool, grt_now_ms());
    pthread_mutex_unlock(&lane->pool->lock);
}

static void give_process_up(grt_lane_process *p)
{
    pthread_mutex_lock(&p->lane->pool->lock);
    session_of(p)->coming = false;
    (void)grt_schedule_lose(session_of(p), p->lane);
    pthread_mutex_unlock(&p->lane->pool->lock);
    GRT_LOG(ERROR, "run", "the process for %s is not replaced any more: %d in a row have failed", p->device,
            (int)p->failures);
}

/* False: there is no new one. */
static bool start_next(grt_lane_process *p)
{
    double pause_ms = 100;
    grt_process *process;
    for (; p->failures < p->of->most_failures; pause_ms *= 2) {
        const grt_status status = grt_process_start(&p->of->setup, p->device, p->of->stop, &process);
        if (status == GRT_OK) {
            put_process_in_place(p, process);
            return true;
        }
        if (status == GRT_STATUS_CANCELLED)
            return false;
        p->failures++;
        GRT_LOG(WARNING, "run", "%s", grt_last_error());
        if (grt_link_await(-1, p->of->stop, pause_ms) == GRT_LINK_STOPPED)
            return false;
    }
    give_process_up(p);
    return false;
}

static void *watch_process(void *user)
{
    grt_lane_process *p = user;
    bool goes_on = true;
    while (goes_on && grt_process_await_end(p->process, p->of->stop)) {
        grt_process *ended = withdraw_process(p);
        const bool answered = atomic_load_explicit(&ended->answered, memory_order_relaxed);
        GRT_LOG(WARNING, "run", "the process %lld for %s has ended and is replaced", (long long)ended->pid,
                p->device);
        grt_process_release(ended);
        p->failures = answered ? 0 : p->failures + 1;
        goes_on = start_next(p);
    }
    return NULL;
}

grt_status grt_lane_processes_watch(grt_lane_processes *all, grt_lane *lane)
{
    for (size_t i = 0; i < all->n; i++) {
        grt_lane_process *p = &all->list[i];
        p->lane = lane;
        p->watched = pthread_create(&p->thread, NULL, watch_process, p) == 0;
        if (!p->watched)
            return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "a thread for the process of %s cannot be made",
                            p->device);
    }
    return GRT_OK;
}

void grt_lane_processes_stop(grt_lane_processes *all)
{
    if (all->stop >= 0)
        (void)eventfd_write(all->stop, 1);
    for (size_t i = 0; i < all->n; i++) {
        if (all->list[i].watched)
            pthread_join(all->list[i].thread, NULL);
        all->list[i].watched = false;
    }
}

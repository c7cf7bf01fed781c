/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a process that has a session for a pool: grt_process_serve. Each channel has a context and a
 * thread. */
#include "src/exec/context.h"
#include "src/process/link.h"
#include "src/process/shared.h"
#include "src/session/session.h"

#include <graphrt/faults.h>
#include <graphrt/processes.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct served {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    atomic_bool ending; /* the pool is gone */
    size_t n;
    struct served_channel *channels;
} served;

typedef struct served_channel {
    served *of;
    int fd;
    grt_shared shared;
    grt_context *context;
    pthread_t thread;
    bool started;
} served_channel;

static const grt_plan_body *body_of(const served_channel *c)
{
    return &c->of->model->plan->bodies[0];
}

static grt_status serve_bind_inputs(served_channel *c)
{
    for (int32_t i = 0; i < body_of(c)->n_inputs; i++) {
        const grt_wire_tensor *wire = &c->shared.head->tensors[i];
        grt_tensor view;
        if (wire->dtype == GRT_DTYPE_NONE) {
            GRT_TRY(grt_context_set_input(c->context, (size_t)i, NULL));
            continue;
        }
        GRT_TRY(grt_shared_view(&c->shared, wire, &view));
        GRT_TRY(grt_context_set_input(c->context, (size_t)i, &view));
    }
    return GRT_OK;
}

/* Known before the run: the result is made where the pool finds it. */
static grt_status place_output(served_channel *c, int32_t i, uint64_t *at)
{
    grt_wire_tensor *wire = &c->shared.head->tensors[body_of(c)->n_inputs + i];
    grt_tensor t;
    *wire = (grt_wire_tensor){0};
    if (grt_context_output_dims(c->context, (size_t)i, &t) != GRT_OK || grt_tensor_bytes(&t) == SIZE_MAX)
        return GRT_OK;
    wire->dtype = t.dtype;
    wire->rank = t.rank;
    memcpy(wire->dims, t.dims, sizeof wire->dims);
    return grt_shared_place(wire, grt_tensor_bytes(&t), at);
}

static grt_status serve_bind_outputs(served_channel *c)
{
    const int32_t n = body_of(c)->n_inputs;
    for (int32_t i = 0; i < body_of(c)->n_outputs; i++) {
        grt_tensor view;
        if (c->shared.head->tensors[n + i].dtype != GRT_DTYPE_NONE)
            GRT_TRY(grt_shared_view(&c->shared, &c->shared.head->tensors[n + i], &view));
        GRT_TRY(grt_context_set_output(c->context, (size_t)i,
                                       c->shared.head->tensors[n + i].dtype ? &view : NULL));
    }
    return GRT_OK;
}

static grt_status bind_channel(served_channel *c)
{
    uint64_t at = c->shared.head->free_at;
    GRT_TRY(grt_shared_follow(&c->shared));
    GRT_TRY(serve_bind_inputs(c));
    for (int32_t i = 0; i < body_of(c)->n_outputs; i++)
        GRT_TRY(place_output(c, i, &at));
    const char *before = c->shared.data;
    GRT_TRY(grt_shared_reserve(&c->shared, at));
    c->shared.head->free_at = at;
    if (c->shared.data != before)
        GRT_TRY(serve_bind_inputs(c));
    return serve_bind_outputs(c);
}

/* Of a size that was not known before. */
static grt_status give_late_output(served_channel *c, int32_t i)
{
    grt_wire_head *head = c->shared.head;
    grt_wire_tensor *wire = &head->tensors[body_of(c)->n_inputs + i];
    grt_tensor found;
    if (wire->dtype != GRT_DTYPE_NONE)
        return GRT_OK;
    GRT_TRY(grt_context_get_output(c->context, (size_t)i, &found));
    grt_wire_tensor placed = {.rank = found.rank};
    memcpy(placed.dims, found.dims, sizeof placed.dims);
    const size_t bytes = grt_tensor_bytes(&found);
    GRT_TRY(grt_shared_place(&placed, bytes, &head->free_at));
    GRT_TRY(grt_shared_reserve(&c->shared, head->free_at));
    if (bytes)
        memcpy(c->shared.data + placed.offset, found.data, bytes);
    placed.dtype = found.dtype;
    *wire = placed;
    return GRT_OK;
}

static bool channel_is_cancelled(void *user)
{
    served_channel *c = user;
    return atomic_load_explicit(&c->shared.head->cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&c->of->ending, memory_order_relaxed);
}

static grt_status run_channel(served_channel *c)
{
    const grt_run_options options = {.struct_size = sizeof options,
                                     .deadline_ms = c->shared.head->deadline_ms,
                                     .cancel = channel_is_cancelled,
                                     .user = c};
    GRT_TRY(bind_channel(c));
    GRT_TRY(grt_context_run_with(c->context, &options));
    for (int32_t i = 0; i < body_of(c)->n_outputs; i++)
        GRT_TRY(give_late_output(c, i));
    return GRT_OK;
}

static void serve_once(served_channel *c)
{
    grt_wire_head *head = c->shared.head;
    head->lost = false;
    head->status = run_channel(c);
    if (head->status == GRT_OK)
        return;
    if (head->status == GRT_STATUS_DEVICE && !grt_session_is_lost(c->of->session))
        grt_session_probe(c->of->session);
    head->lost = grt_session_is_lost(c->of->session);
    snprintf(head->error, sizeof head->error, "%s", grt_last_error());
}

static void *serve_channel(void *user)
{
    served_channel *c = user;
    char word;
    while (grt_link_receive(c->fd, &word, 1, NULL, 0) == GRT_OK) {
        serve_once(c);
        if (grt_link_send(c->fd, &word, 1, NULL, 0) != GRT_OK)
            break;
    }
    return NULL;
}

static grt_status check_start(const grt_wire_start *start)
{
    enum { MOST_TENSORS = 1 << 20 };
    if (strncmp(start->release, grt_version(), sizeof start->release) != 0)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "it is of release %s, the pool of release %.*s",
                        grt_version(), (int)sizeof start->release, start->release);
    if (start->n_channels < 1 || 1 + 2 * start->n_channels > GRT_LINK_MOST_FDS || start->n_tensors < 0 ||
        start->n_tensors > MOST_TENSORS)
        return grt_fail(GRT_STATUS_IO, "%d channels of %d tensors are wanted", start->n_channels,
                        start->n_tensors);
    return GRT_OK;
}

static grt_status open_served(served *s, const grt_wire_start *start, int plan)
{
    char path[64];
    const grt_compile_options open = {.struct_size = sizeof open, .trust = "all"}; /* the pool wrote it */
    const grt_session_options options = {.struct_size = sizeof options,
                                         .threads = start->threads,
                                         .fallback = start->fallback ? "cpu" : NULL,
                                         .memory_limit = start->memory_limit,
                                         .priority = start->priority,
                                         .multiprocessors = start->multiprocessors};
    snprintf(path, sizeof path, "/proc/self/fd/%d", plan);
    if (start->custom_ops[0])
        GRT_TRY(grt_custom_ops_load(start->custom_ops));
    GRT_TRY(grt_runtime_create(&s->runtime));
    const grt_status status = grt_model_open_with(s->runtime, path, &open, &s->model);
    close(plan);
    GRT_TRY(status);
    return grt_session_create(s->model, start->device, &options, &s->session);
}

static grt_status open_channels(served *s, const grt_wire_start *start)
{
    grt_device *pinning = s->session->on_device ? s->session->device : NULL;
    for (size_t i = 0; i < s->n; i++) {
        served_channel *c = &s->channels[i];
        GRT_TRY(grt_shared_open(c->shared.fd, (size_t)start->n_tensors, pinning, &c->shared));
        GRT_TRY(grt_context_create(s->session, &c->context));
    }
    return GRT_OK;
}

static grt_status start_channels(served *s)
{
    for (size_t i = 0; i < s->n; i++) {
        served_channel *c = &s->channels[i];
        c->started = pthread_create(&c->thread, NULL, serve_channel, c) == 0;
        if (!c->started)
            return grt_fail(GRT_STATUS_OUT_OF_MEMORY, "a thread for a context cannot be made");
    }
    return GRT_OK;
}

/* Runs that are in progress are cancelled. */
static void end_served(served *s)
{
    atomic_store(&s->ending, true);
    for (size_t i = 0; i < s->n; i++)
        shutdown(s->channels[i].fd, SHUT_RDWR);
    for (size_t i = 0; i < s->n; i++) {
        served_channel *c = &s->channels[i];
        if (c->started)
            pthread_join(c->thread, NULL);
        grt_context_release(c->context);
        grt_shared_close(&c->shared); /* before the session, whose device has its pages */
        close(c->fd);
    }
    grt_session_release(s->session);
    grt_model_release(s->model);
    grt_runtime_release(s->runtime);
    free(s->channels);
}

static grt_status tell_ready(int fd, const served *s, grt_status status)
{
    grt_wire_ready *ready = calloc(1, sizeof *ready);
    if (!ready)
        return grt_fail_memory(sizeof *ready);
    ready->status = status;
    ready->lends = status == GRT_OK && (s->session->on_device || s->session->threads == 1);
    snprintf(ready->error, sizeof ready->error, "%s", status == GRT_OK ? "" : grt_last_error());
    const grt_status told = grt_link_send(fd, ready, sizeof *ready, NULL, 0);
    grt_error_set(ready->error);
    free(ready);
    return status != GRT_OK ? status : told;
}

/* fds: the plan, then the end and the memory of each channel. */
static grt_status make_served(served *s, const grt_wire_start *start, const int *fds)
{
    s->channels = calloc((size_t)start->n_channels, sizeof *s->channels);
    if (!s->channels)
        return grt_fail_memory(0);
    s->n = (size_t)start->n_channels;
    for (size_t i = 0; i < s->n; i++)
        s->channels[i] = (served_channel){.of = s, .fd = fds[1 + 2 * i], .shared.fd = fds[2 + 2 * i]};
    GRT_TRY(open_served(s, start, fds[0]));
    GRT_TRY(open_channels(s, start));
    return start_channels(s);
}

static grt_status serve_session(int fd, const grt_wire_start *start)
{
    int fds[GRT_LINK_MOST_FDS];
    char word;
    served s = {0};
    grt_status status = check_start(start);
    if (status == GRT_OK)
        status = grt_link_receive(fd, &word, 1, fds, 1 + 2 * (size_t)start->n_channels);
    if (status == GRT_OK)
        status = make_served(&s, start, fds);
    status = tell_ready(fd, &s, status);
    if (status == GRT_OK)
        (void)grt_link_receive(fd, &word, 1, NULL, 0); /* the end is all that comes */
    end_served(&s);
    return status;
}

grt_status grt_process_serve(int fd)
{
    grt_wire_start *start = malloc(sizeof *start);
    grt_status status = start ? grt_link_receive(fd, start, sizeof *start, NULL, 0) : grt_fail_memory(0);
    if (status == GRT_OK)
        status = serve_session(fd, start);
    free(start);
    close(fd);
    return status;
}

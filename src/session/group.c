/* SPDX-License-Identifier: Apache-2.0 */
/* Making sessions, one or many at once: a thread for each device, one upload of the weights for all. */
#include "src/session/session.h"

#include "src/base/checked.h"
#include "src/base/exit_guard.h"
#include "src/base/log.h"
#include "src/base/openmp.h"
#include "src/base/structs.h"

#include <stdlib.h>
#include <string.h>

typedef struct group group;

/* One device of the call. */
typedef struct item {
    group *group;
    size_t index;
    const char *text; /* as the caller named it */
    const grt_backend *backend;
    int32_t number;
    grt_session *session;
    grt_resident
        *filled; /* other devices copy from it until the upload ends, whatever becomes of the session */
    grt_status status;
    char *error;
} item;

/* The weights for one kind of device. */
typedef struct source {
    struct source *next;
    const grt_backend *backend;
    const grt_host_weights *weights;
    grt_upload_piece *pieces;
    grt_upload *upload;
} source;

struct group {
    grt_model *model;
    grt_sessions_options options;
    grt_session_warm *warm;
    double start_ms;
    size_t n;
    item *items;
    atomic_bool cancel;
    atomic_size_t next;   /* item that no thread works at yet */
    pthread_mutex_t lock; /* of sources and what they need */
    source *sources;
    pthread_mutex_t progress; /* one call of the user's function at a time; of what follows */
    bool asked_to_stop;
    size_t moved, to_move; /* bytes */
    double reached, told;  /* weight of the devices' other work in the progress */
    grt_phases check;      /* of the weights' checksum */
};

/* ---- progress and cancellation ---- */

static void stop(group *g)
{
    atomic_store(&g->cancel, true);
    pthread_mutex_lock(&g->lock);
    for (source *s = g->sources; s; s = s->next)
        if (s->upload)
            grt_upload_wake(s->upload);
    pthread_mutex_unlock(&g->lock);
}

/* Of a device's work, opening and kernels count a tenth each, its weights the rest. */
static double fraction(const group *g)
{
    const double weights = g->to_move ? (double)g->moved / (double)g->to_move : 0;
    const double all = 0.8 * (weights < 1 ? weights : 1) + 0.2 * g->reached / (double)g->n;
    return all < 1 ? all : 1;
}

static void group_tell(group *g, const item *it, const char *phase)
{
    bool go_on = true;
    g->told = fraction(g);
    const grt_load_progress progress = {.struct_size = sizeof progress,
                                        .index = it->index,
                                        .device = it->text,
                                        .phase = phase,
                                        .fraction = g->told};
    if (g->options.progress && !g->asked_to_stop)
        go_on = g->options.progress(g->options.user, &progress);
    if (!go_on)
        g->asked_to_stop = true;
}

/* CANCELLED: the caller wants to stop. */
static grt_status group_begin(item *it, const char *phase)
{
    group *g = it->group;
    grt_phases_next(&it->session->phases, phase);
    pthread_mutex_lock(&g->progress);
    g->reached += strcmp(phase, "weights") && strcmp(phase, "create kernels") ? 0 : 0.5;
    group_tell(g, it, phase);
    const bool asked = g->asked_to_stop;
    pthread_mutex_unlock(&g->progress);
    if (asked)
        stop(g);
    return atomic_load(&g->cancel) ? grt_fail(GRT_STATUS_CANCELLED, "cancelled before %s", phase) : GRT_OK;
}

static void on_moved(void *user, size_t bytes)
{
    group *g = user;
    pthread_mutex_lock(&g->progress);
    g->moved += bytes;
    if (fraction(g) - g->told >= 0.01)
        group_tell(g, &g->items[0], "weights");
    const bool asked = g->asked_to_stop && !atomic_load(&g->cancel);
    pthread_mutex_unlock(&g->progress);
    if (asked)
        stop(g);
}

/* ---- weights ---- */

static grt_status make_pieces(const grt_model *model, source *s, int32_t *out_n)
{
    const grt_plan *plan = model->plan;
    size_t at = 0;
    int32_t n = 0;
    s->pieces = calloc((size_t)plan->n_weights + 1, sizeof *s->pieces);
    if (!s->pieces)
        return grt_fail_memory((size_t)plan->n_weights * sizeof *s->pieces);
    for (int32_t i = 0; i < plan->n_weights; i++) {
        const size_t bytes = grt_host_weights_bytes(model, s->weights, i);
        if (plan->weights[i].dtype == GRT_DTYPE_STRING)
            continue;
        if (bytes)
            s->pieces[n++] = (grt_upload_piece){s->weights->tensors[i].data, at, bytes};
        at += grt_align_up(bytes, GRT_WEIGHT_ALIGNMENT);
    }
    *out_n = n;
    return GRT_OK;
}

static void release_source(group *g, source *s)
{
    grt_upload_release(s->upload);
    grt_host_weights_give(g->model, s->weights);
    free(s->pieces);
    free(s);
}

static grt_status make_source(group *g, const grt_backend *backend, source **out_source)
{
    source *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->backend = backend;
    int32_t n = 0, devices = 0;
    for (size_t i = 0; i < g->n; i++)
        devices += g->items[i].backend == backend;
    grt_status status = grt_host_weights_take(g->model, backend, &s->weights);
    if (status == GRT_OK)
        status = make_pieces(g->model, s, &n);
    if (status == GRT_OK) {
        const grt_upload_options options = {.max_pinned = g->options.max_pinned,
                                            .readers = g->options.readers,
                                            .direct =
                                                g->options.upload && !strcmp(g->options.upload, "direct"),
                                            .cancel = &g->cancel,
                                            .moved = on_moved,
                                            .user = g};
        const size_t total = grt_session_key(g->model, s->weights, 0).bytes;
        status =
            grt_upload_create(s->pieces, (size_t)n, total, devices, g->model->check, &options, &s->upload);
    }
    if (status != GRT_OK) {
        release_source(g, s);
        return status;
    }
    *out_source = s;
    return GRT_OK;
}

static grt_status get_source(group *g, const grt_backend *backend, source **out_source)
{
    grt_status status = GRT_OK;
    pthread_mutex_lock(&g->lock);
    source *s = g->sources;
    while (s && s->backend != backend)
        s = s->next;
    if (!s && (status = make_source(g, backend, &s)) == GRT_OK) {
        s->next = g->sources;
        g->sources = s;
    }
    pthread_mutex_unlock(&g->lock);
    *out_source = s;
    return status;
}

static grt_status group_fill(item *it, void *block)
{
    source *s;
    GRT_TRY(get_source(it->group, it->backend, &s));
    it->filled = grt_resident_retain(it->session->resident);
    return grt_upload_run(s->upload, it->session->device, block, &it->session->uploaded);
}

/* Weights on their way to a device, while its kernels are made. */
typedef struct mover {
    item *it;
    void *block; /* NULL: they are there */
    pthread_t thread;
    bool has_thread;
    size_t phase;
    double end_ms;
    grt_status status;
    char *error;
} mover;

static void *move_weights(void *arg)
{
    mover *m = arg;
    grt_session *session = m->it->session;
    m->status = group_fill(m->it, m->block);
    if (m->status != GRT_OK)
        m->error = strdup(grt_last_error());
    grt_resident_settle(session->resident, m->status);
    m->end_ms = grt_now_ms() - session->phases.start_ms;
    return NULL;
}

static grt_status start_moving(mover *m)
{
    GRT_TRY(grt_session_place_weights(m->it->session, &m->block));
    m->phase = m->it->session->phases.n - 1;
    if (!m->block)
        return GRT_OK;
    m->has_thread = pthread_create(&m->thread, NULL, move_weights, m) == 0;
    if (!m->has_thread)
        move_weights(m);
    return GRT_OK;
}

static grt_status finish_moving(mover *m)
{
    if (m->has_thread)
        pthread_join(m->thread, NULL);
    if (m->block)
        m->it->session->phases.list[m->phase].end_ms = m->end_ms;
    if (m->status != GRT_OK)
        grt_error_set(m->error ? m->error : "out of memory");
    free(m->error);
    return m->status;
}

/* Start to read for devices that lack the weights, while they are being opened. A failure here is reported
 * again where the weights are used. */
static void read_ahead(group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const item *it = &g->items[i];
        const grt_host_weights *weights;
        source *s;
        if (!it->backend->traits.own_memory ||
            grt_host_weights_take(g->model, it->backend, &weights) != GRT_OK)
            continue;
        const grt_resident_key key = grt_session_key(g->model, weights, it->number);
        if (!grt_resident_is_there(g->model->runtime->residents, &key)) {
            const grt_status ignored = get_source(g, it->backend, &s);
            (void)ignored;
        }
        grt_host_weights_give(g->model, weights);
    }
}

/* ---- devices ---- */

/* Where the weights will be is known; what they are is not looked at on the device. */
static grt_status make_kernels(item *it)
{
    const group *g = it->group;
    const int32_t share = g->options.threads / (int32_t)g->n;
    GRT_TRY(group_begin(it, "create kernels"));
    GRT_TRY(grt_session_create_kernels(it->session, share > 1 ? share : 1));
    if (it->backend->traits.loads_code) {
        GRT_TRY(group_begin(it, "prepare"));
        g->warm(it->session);
    }
    return GRT_OK;
}

static grt_status make_session(item *it)
{
    const group *g = it->group;
    mover m = {.it = it};
    GRT_TRY(grt_session_start(g->model, &g->options, g->start_ms, &it->session));
    if (it->backend->traits.own_memory) {
        GRT_TRY(group_begin(it, "start driver"));
        (void)it->backend->device_count(); /* a failure is met again below */
    }
    GRT_TRY(group_begin(it, "open device"));
    GRT_TRY(grt_session_open_device(it->session, it->backend, it->number));
    GRT_TRY(group_begin(it, "weights"));
    GRT_TRY(start_moving(&m));
    grt_status status = make_kernels(it);
    grt_phases_next(&it->session->phases, NULL);
    if (status == GRT_OK) {
        status = finish_moving(&m);
    } else {
        char *error = strdup(grt_last_error());
        (void)finish_moving(&m);
        grt_error_set(error ? error : "out of memory");
        free(error);
    }
    if (status == GRT_OK)
        grt_session_forget_copied(it->session);
    return status;
}

static void work_at(item *it)
{
    group *g = it->group;
    it->status = make_session(it);
    if (it->status != GRT_OK) {
        it->error = strdup(grt_last_error());
        grt_session_release(it->session);
        it->session = NULL;
        if (!g->options.partial)
            stop(g);
        return;
    }
    grt_session_save_choices(it->session);
    pthread_mutex_lock(&g->progress);
    group_tell(g, it, "ready");
    pthread_mutex_unlock(&g->progress);
}

static void *work(void *arg)
{
    group *g = arg;
    size_t i;
    while ((i = atomic_fetch_add(&g->next, 1)) < g->n)
        work_at(&g->items[i]);
    return NULL;
}

static grt_status check_weights(group *g)
{
    grt_phases_start(&g->check);
    g->check.start_ms = g->start_ms;
    grt_phases_next(&g->check, "check weights");
    grt_status status = grt_weights_check_finish(g->model->check);
    grt_phases_next(&g->check, NULL);
    if (status != GRT_OK)
        stop(g);
    return status;
}

/* The calling thread reads ahead and checks; a single device that has no memory of its own needs no other. */
static grt_status work_at_all(group *g)
{
    size_t n = g->options.max_parallel > 0 && (size_t)g->options.max_parallel < g->n
                   ? (size_t)g->options.max_parallel
                   : g->n;
    if (n == 1 && !g->items[0].backend->traits.own_memory) {
        work(g);
        return check_weights(g);
    }
    pthread_t *threads = calloc(n, sizeof *threads);
    if (!threads)
        return grt_fail_memory(n * sizeof *threads);
    size_t started = 0;
    while (started < n && pthread_create(&threads[started], NULL, work, g) == 0)
        started++;
    read_ahead(g);
    grt_status status = check_weights(g);
    if (started < n) /* fewer threads will do */
        work(g);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return status;
}

/* The first failure that is not the consequence of another's. */
static grt_status judge(group *g, grt_status checked)
{
    const item *first = NULL;
    size_t failed = 0;
    grt_text text = {0};
    for (size_t i = 0; i < g->n; i++) {
        const item *it = &g->items[i];
        if (it->status == GRT_OK)
            continue;
        failed++;
        if (!first || (first->status == GRT_STATUS_CANCELLED && it->status != GRT_STATUS_CANCELLED))
            first = it;
        if (it->status != GRT_STATUS_CANCELLED || g->asked_to_stop)
            grt_text_add(&text, "%s%s: %s", text.size ? "\n  " : "", it->text,
                         it->error ? it->error : "out of memory");
    }
    grt_status status = checked;
    if (checked == GRT_OK && g->asked_to_stop)
        status = grt_fail(GRT_STATUS_CANCELLED, "cancelled by the progress function");
    else if (checked == GRT_OK) {
        grt_error_set(text.failed ? "out of memory" : grt_text_get(&text));
        if (failed == g->n || (failed && !g->options.partial))
            status = first->status;
    }
    grt_text_release(&text);
    return status;
}

static grt_status check_arguments(const group *g)
{
    const grt_sessions_options *o = &g->options;
    if (o->threads < 0 || o->threads > GRT_MOST_THREADS)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "threads is %d, must be from 0 to %d", o->threads,
                        GRT_MOST_THREADS);
    if (o->fallback && strcmp(o->fallback, "cpu"))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "fallback is '%s', must be NULL or \"cpu\"",
                        o->fallback);
    if (o->upload && strcmp(o->upload, "auto") && strcmp(o->upload, "direct"))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "upload is '%s', must be NULL, \"auto\" or \"direct\"",
                        o->upload);
    grt_code_when when;
    GRT_TRY(grt_code_when_parse(o->compile, GRT_CODE_IN_BACKGROUND, "compile", &when));
    if (o->max_parallel < 0 || o->readers < 0)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "max_parallel or readers is negative");
    return GRT_OK;
}

static grt_status run_group(group *g, const char *const *devices, grt_session **out_sessions)
{
    GRT_TRY(check_arguments(g));
    const int32_t wanted = g->options.threads ? g->options.threads : grt_team_default();
    g->options.threads = grt_team_possible(wanted);
    for (size_t i = 0; i < g->n; i++) {
        item *it = &g->items[i];
        *it = (item){.group = g, .index = i, .text = devices && devices[i] ? devices[i] : "cpu"};
        GRT_TRY(grt_device_parse(it->text, &it->backend, &it->number));
    }
    g->to_move = 0;
    for (size_t i = 0; i < g->n; i++)
        g->to_move += g->items[i].backend->traits.own_memory ? g->model->plan->weights_bytes : 0;
    grt_status status = judge(g, work_at_all(g));
    grt_exit_guard_register(); /* in the thread that asked, which may end the process soon */
    for (source *s = g->sources, *next; s; s = next) {
        next = s->next;
        release_source(g, s);
    }
    for (size_t i = 0; i < g->n; i++) {
        item *it = &g->items[i];
        grt_resident_give(it->filled);
        if (status != GRT_OK) {
            grt_session_release(it->session);
            it->session = NULL;
        } else if (it->session && g->model->check)
            grt_phases_add(&it->session->phases, &g->check.list[0]);
    }
    for (size_t i = 0; status == GRT_OK && i < g->n; i++)
        out_sessions[i] = g->items[i].session;
    return status;
}

grt_status grt_session_group_create(grt_model *model, const char *const *devices, size_t n,
                                    const grt_sessions_options *options, grt_session_warm *warm,
                                    grt_session **out_sessions)
{
    if (!model || !out_sessions || !n || n > 1 << 16)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_sessions_create: model or out_sessions is NULL, or n is 0 "
                        "or beyond 65536");
    grt_team_used();
    group g = {.model = model, .n = n, .start_ms = grt_now_ms(), .warm = warm};
    GRT_TRY(grt_options_take(&g.options, sizeof g.options, options, "grt_sessions_options"));
    g.items = calloc(n, sizeof *g.items);
    if (!g.items)
        return grt_fail_memory(n * sizeof *g.items);
    pthread_mutex_init(&g.lock, NULL);
    pthread_mutex_init(&g.progress, NULL);
    grt_status status = run_group(&g, devices, out_sessions);
    if (status != GRT_OK)
        GRT_LOG(ERROR, "load", "%s", grt_last_error());
    for (size_t i = 0; status == GRT_OK && i < n; i++)
        if (out_sessions[i])
            GRT_LOG(INFO, "load", "session on %s with %d threads, ready after %.1f ms", out_sessions[i]->name,
                    (int)out_sessions[i]->threads, grt_now_ms() - g.start_ms);
    for (size_t i = 0; i < n; i++)
        free(g.items[i].error);
    free(g.items);
    pthread_mutex_destroy(&g.lock);
    pthread_mutex_destroy(&g.progress);
    return status;
}

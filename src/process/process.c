/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "src/process/process.h"

#include "src/base/clock.h"
#include "src/process/link.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Where the tools are, seen from the library's directory: as installed, with a directory for each
 * architecture, in a Python package, in a build tree, in a program that has the library in it. */
static char *find_program(void)
{
    static const char *const places[] = {"../bin", "../../bin", "bin", "..", "."};
    Dl_info info;
    char *own =
        dladdr((void *)grt_process_start, &info) && info.dli_fname ? realpath(info.dli_fname, NULL) : NULL;
    char path[PATH_MAX];
    char *slash = own ? strrchr(own, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        const int n = snprintf(path, sizeof path, "%.*s/%s/graphrun", (int)(slash - own), own, places[i]);
        if (n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0) {
            free(own);
            return strdup(path);
        }
    }
    free(own);
    return strdup("graphrun"); /* of the PATH */
}

/* In a directory that nobody else may enter, for the moment that it has a name. */
static grt_status write_unnamed(const grt_plan *plan, int *out_fd)
{
    const char *base = secure_getenv("TMPDIR");
    char directory[PATH_MAX], path[PATH_MAX + 16];
    snprintf(directory, sizeof directory, "%s/graphrt-XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(directory))
        return grt_fail(GRT_STATUS_IO, "%s: a directory for the plan of processes cannot be made: %s",
                        directory, strerror(errno));
    snprintf(path, sizeof path, "%s/plan.grt", directory);
    grt_status status = grt_plan_write(plan, path, false, NULL);
    if (status == GRT_OK && (*out_fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        status = grt_fail(GRT_STATUS_IO, "%s: %s", path, strerror(errno));
    unlink(path);
    rmdir(directory);
    return status;
}

grt_status grt_process_setup_create(const grt_plan *plan, const char *program, grt_process_setup *out_setup)
{
    out_setup->plan = -1;
    out_setup->program = program ? strdup(program) : find_program();
    if (!out_setup->program)
        return grt_fail_memory(0);
    snprintf(out_setup->start.release, sizeof out_setup->start.release, "%s", grt_version());
    out_setup->start.n_tensors = plan->bodies[0].n_inputs + plan->bodies[0].n_outputs;
    return write_unnamed(plan, &out_setup->plan);
}

void grt_process_setup_release(grt_process_setup *setup)
{
    if (setup->program && setup->plan >= 0)
        close(setup->plan);
    free(setup->program);
    *setup = (grt_process_setup){.plan = -1};
}

/* Signals of a terminal are for the program, not for what it has started; all else is as a program expects it
 * at its start. */
static int spawn_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setpgroup(attributes, 0);
    error = error ? error : posix_spawnattr_setsigmask(attributes, &none);
    error = error ? error : posix_spawnattr_setsigdefault(attributes, &all);
    return error ? error
                 : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                            POSIX_SPAWN_SETSIGDEF);
}

static grt_status spawn_program(const char *program, int end, pid_t *out_pid)
{
    enum { ITS_END = 3 };
    char number[16];
    char *arguments[] = {(char *)program, "worker", number, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    snprintf(number, sizeof number, "%d", (int)ITS_END);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return grt_fail_memory(0);
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = spawn_attributes(&attributes);
        error = error ? error : posix_spawn_file_actions_adddup2(&actions, end, ITS_END);
        error = error ? error : posix_spawnp(out_pid, program, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error ? grt_fail(GRT_STATUS_IO, "the program '%s' for a process of a pool cannot be started: %s",
                            program, strerror(error))
                 : GRT_OK;
}

/* fds: the plan, then the other end and the memory of each channel. */
static grt_status make_channels(grt_process *p, const grt_process_setup *setup, int *fds, size_t *out_n)
{
    for (size_t i = 0; i < p->n; i++)
        p->channels[i] = (grt_channel){.fd = -1, .shared.fd = -1, .process = p};
    fds[(*out_n)++] = setup->plan;
    for (size_t i = 0; i < p->n; i++) {
        int ends[2];
        GRT_TRY(grt_link_create(ends));
        p->channels[i].fd = ends[0];
        fds[(*out_n)++] = ends[1];
        GRT_TRY(grt_shared_create((size_t)setup->start.n_tensors, &p->channels[i].shared));
        fds[(*out_n)++] = p->channels[i].shared.fd;
    }
    return GRT_OK;
}

static grt_status send_start(const grt_process *p, const grt_process_setup *setup, const int *fds, size_t n)
{
    grt_wire_start *start = malloc(sizeof *start);
    if (!start)
        return grt_fail_memory(sizeof *start);
    *start = setup->start;
    memcpy(start->device, p->device, sizeof start->device);
    const char word = 'f';
    grt_status status = grt_link_send(p->control, start, sizeof *start, NULL, 0);
    if (status == GRT_OK) /* how many there are is known from the start */
        status = grt_link_send(p->control, &word, 1, fds, n);
    free(start);
    return status;
}

static grt_status take_ready(grt_process *p)
{
    grt_wire_ready *ready = malloc(sizeof *ready);
    if (!ready)
        return grt_fail_memory(sizeof *ready);
    grt_status status = grt_link_receive(p->control, ready, sizeof *ready, NULL, 0);
    if (status == GRT_OK && ready->status != GRT_OK) {
        ready->error[sizeof ready->error - 1] = '\0';
        status = grt_fail(ready->status, "%s", ready->error);
    } else if (status == GRT_OK) {
        p->lends = ready->lends;
    }
    free(ready);
    return status;
}

static grt_status await_ready(grt_process *p, const grt_process_setup *setup, int stop_fd)
{
    switch (grt_link_await(p->control, stop_fd, setup->start_timeout_ms)) {
    case GRT_LINK_STOPPED:
        return grt_fail(GRT_STATUS_CANCELLED, "the pool ends");
    case GRT_LINK_TIMEOUT:
        return grt_fail(GRT_STATUS_IO, "it was not ready within %.0f ms", setup->start_timeout_ms);
    case GRT_LINK_READABLE:
        break;
    }
    return take_ready(p);
}

static grt_status begin_process(grt_process *p, const grt_process_setup *setup, int stop_fd)
{
    int ends[2], fds[GRT_LINK_MOST_FDS];
    size_t n = 0;
    GRT_TRY(grt_link_create(ends));
    p->control = ends[0];
    grt_status status = make_channels(p, setup, fds, &n);
    if (status == GRT_OK)
        status = spawn_program(setup->program, ends[1], &p->pid);
    close(ends[1]);
    if (status == GRT_OK)
        status = send_start(p, setup, fds, n);
    for (size_t i = 1; i < n; i += 2) /* the other ends */
        close(fds[i]);
    return status == GRT_OK ? await_ready(p, setup, stop_fd) : status;
}

grt_status grt_process_start(const grt_process_setup *setup, const char *device, int stop_fd,
                             grt_process **out_process)
{
    grt_process *p = calloc(1, sizeof *p);
    if (!p)
        return grt_fail_memory(sizeof *p);
    p->control = -1;
    p->grace_ms = setup->grace_ms;
    p->channels = calloc((size_t)setup->start.n_channels, sizeof *p->channels);
    snprintf(p->device, sizeof p->device, "%s", device);
    grt_status status = p->channels ? GRT_OK : grt_fail_memory(0);
    if (status == GRT_OK) {
        p->n = (size_t)setup->start.n_channels;
        status = begin_process(p, setup, stop_fd);
    }
    if (status != GRT_OK) {
        grt_process_release(p);
        return grt_fail_context(status, "the process for %s", device);
    }
    *out_process = p;
    return GRT_OK;
}

void grt_process_kill(const grt_process *process)
{
    if (process->pid > 0)
        kill(process->pid, SIGKILL);
}

void grt_process_release(grt_process *p)
{
    if (!p)
        return;
    grt_process_kill(p);
    while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    for (size_t i = 0; i < p->n; i++) {
        if (p->channels[i].fd > 0)
            close(p->channels[i].fd);
        if (p->channels[i].shared.head_bytes)
            grt_shared_close(&p->channels[i].shared);
    }
    if (p->control >= 0)
        close(p->control);
    free(p->channels);
    free(p);
}

bool grt_process_await_end(const grt_process *process, int stop_fd)
{
    return grt_link_await(process->control, stop_fd, -1) != GRT_LINK_STOPPED;
}

/* When the process has to have answered; INFINITY: nobody is in a hurry. *cancelled_ms: since when it is
 * known that the run was cancelled; 0: it was not. */
static double answer_limit(const grt_channel *c, double *cancelled_ms)
{
    const grt_wire_head *head = c->shared.head;
    const double deadline = head->deadline_ms > 0 ? head->deadline_ms + c->process->grace_ms : 0;
    if (*cancelled_ms == 0 && atomic_load(&head->cancelled))
        *cancelled_ms = grt_now_ms();
    const double cancelled = *cancelled_ms > 0 ? *cancelled_ms + c->process->grace_ms : 0;
    return deadline > 0 && (cancelled == 0 || deadline < cancelled) ? deadline : cancelled;
}

/* The process looks at what was cancelled between two steps. One that does not answer is ended. */
static void await_answer(const grt_channel *c)
{
    enum { LOOK_MS = 500 };
    double cancelled_ms = 0;
    for (;;) {
        if (grt_link_await(c->fd, -1, LOOK_MS) != GRT_LINK_TIMEOUT)
            return;
        const double limit = answer_limit(c, &cancelled_ms);
        if (limit > 0 && grt_now_ms() > limit) {
            grt_process_kill(c->process);
            (void)grt_link_await(c->fd, -1, -1);
            return;
        }
    }
}

static grt_status fail_gone(const grt_channel *c)
{
    return grt_fail(GRT_STATUS_DEVICE, "the process %lld of %s has ended", (long long)c->process->pid,
                    c->process->device);
}

static grt_status take_answer(grt_channel *c, bool *out_gone)
{
    grt_wire_head *head = c->shared.head;
    GRT_TRY(grt_shared_follow(&c->shared));
    if (head->status == GRT_OK) {
        atomic_store_explicit(&c->process->answered, true, memory_order_relaxed);
        return GRT_OK;
    }
    head->error[sizeof head->error - 1] = '\0';
    if (head->lost) {
        grt_process_kill(c->process);
        *out_gone = true;
    }
    return grt_fail(head->status, "%s", head->error);
}

grt_status grt_channel_run(grt_channel *c, bool *out_gone)
{
    char word = 'r';
    *out_gone = false;
    grt_status status = grt_link_send(c->fd, &word, 1, NULL, 0);
    if (status == GRT_OK) {
        await_answer(c);
        status = grt_link_receive(c->fd, &word, 1, NULL, 0);
    }
    if (status == GRT_OK)
        return take_answer(c, out_gone);
    *out_gone = true;
    return fail_gone(c);
}

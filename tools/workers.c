/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tools/workers.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 256, MAX_TEXT = 1 << 20 };

/* Result of a job: this header, then `size` bytes of text. */
typedef struct report_head {
    int32_t code;
    uint32_t size;
} report_head;

typedef struct worker {
    pid_t pid;      /* 0: free */
    int fd, orders; /* its reports; the next index, as 8 bytes */
    size_t index;   /* of the job it has */
    bool busy;      /* with that; otherwise it is told to end */
    bool stopped;
    bool ends; /* it said so: how does not matter */
    double deadline_ms;
    char *text; /* what has come for the job: head and text */
    size_t size, capacity;
} worker;

typedef int job_function(void *user, size_t i, int fd);

typedef struct pool {
    const worker_options *options;
    job_function *job;
    void *user;
    worker workers[MAX_JOBS];
    int jobs, running;
    size_t n, started;
    worker_result *results;
    bool *finished;
    bool failed;
} pool;

static bool read_all(int fd, void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t k = read(fd, (char *)data + done, n - done);
        if (k == 0 || (k < 0 && errno != EINTR))
            return false;
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

/* The job's report goes through a file in memory, so that its end is known. */
static int work_once(const pool *p, uint64_t index, int fd)
{
    const int file = memfd_create("report", MFD_CLOEXEC);
    if (file < 0)
        return WORKER_ENDS;
    const int code = p->job(p->user, (size_t)index, file);
    const off_t end = lseek(file, 0, SEEK_END);
    const report_head head = {code, (uint32_t)(end < 0 ? 0 : end > MAX_TEXT ? MAX_TEXT : end)};
    char *text = malloc(head.size + 1);
    bool ok = text && lseek(file, 0, SEEK_SET) == 0 && read_all(file, text, head.size);
    ok = ok && write_fully(fd, &head, sizeof head) && write_fully(fd, text, head.size);
    free(text);
    close(file);
    return ok ? code : WORKER_ENDS;
}

static int work_on_orders(const pool *p, int orders, int fd)
{
    uint64_t index;
    int code = 0;
    while (read_all(orders, &index, sizeof index)) {
        code = work_once(p, index, fd);
        if (!p->options->reuse || code & WORKER_ENDS)
            break;
    }
    return p->options->reuse ? 0 : code & ~WORKER_ENDS;
}

static void order_job(pool *p, worker *w)
{
    const uint64_t index = p->started++;
    w->index = (size_t)index;
    w->busy = true;
    w->size = 0;
    w->deadline_ms = now_ms() + p->options->limit_s * 1e3;
    /* A worker that is gone is found at the end of its reports. */
    if (!write_fully(w->orders, &index, sizeof index))
        kill(w->pid, SIGKILL);
}

static void dismiss_worker(pool *p, worker *w)
{
    close(w->orders);
    w->orders = -1;
    w->deadline_ms = now_ms() + p->options->limit_s * 1e3;
}

static bool start_worker_process(pool *p)
{
    int reports[2], orders[2];
    fflush(NULL); /* or the child would print it again */
    if (pipe2(reports, O_CLOEXEC) != 0) {
        tool_error("cannot make a pipe: %s", strerror(errno));
        return false;
    }
    if (pipe2(orders, O_CLOEXEC) != 0) {
        tool_error("cannot make a pipe: %s", strerror(errno));
        close(reports[0]);
        close(reports[1]);
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < p->jobs; i++) /* or the others would not see the end of their orders */
            if (p->workers[i].pid && p->workers[i].orders >= 0)
                close(p->workers[i].orders);
        signal(SIGPIPE, SIG_DFL);
        close(reports[0]);
        close(orders[1]);
        exit(work_on_orders(p, orders[0], reports[1]));
    }
    close(reports[1]);
    close(orders[0]);
    if (pid < 0) {
        tool_error("cannot make a process: %s", strerror(errno));
        close(reports[0]);
        close(orders[1]);
        return false;
    }
    worker *w = p->workers;
    while (w->pid)
        w++;
    *w = (worker){.pid = pid, .fd = reports[0], .orders = orders[1]};
    p->running++;
    order_job(p, w);
    return true;
}

/* False at the end of the worker's reports. */
static bool collect_report(worker *w)
{
    enum { STEP = 4096 };
    char rest[STEP];
    if (w->size + STEP > w->capacity) {
        char *grown = realloc(w->text, w->capacity + 4 * STEP);
        if (grown) {
            w->text = grown;
            w->capacity += 4 * STEP;
        }
    }
    const bool fits = w->size + STEP <= w->capacity;
    ssize_t n = read(w->fd, fits ? w->text + w->size : rest, STEP);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    w->size += fits && n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Whether all of the job's report is there. */
static bool is_reported(const worker *w, report_head *head)
{
    if (!w->busy || w->size < sizeof *head)
        return false;
    memcpy(head, w->text, sizeof *head);
    return w->size >= sizeof *head + head->size;
}

static void workers_give_result(pool *p, worker *w, int code, const char *text, size_t size)
{
    worker_result *r = &p->results[w->index];
    *r = (worker_result){.code = code, .text = calloc(size + 1, 1), .size = size};
    if (r->text && size)
        memcpy(r->text, text, size);
    p->failed |= !r->text;
    p->finished[w->index] = true;
    w->busy = false;
}

static void give_report(pool *p, worker *w, int status)
{
    report_head head = {0, 0};
    if (!is_reported(w, &head))
        workers_give_result(p, w, WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : -1, "", 0);
    else
        workers_give_result(p, w, head.code & ~WORKER_ENDS, w->text + sizeof head, head.size);
    w->ends |= (head.code & WORKER_ENDS) != 0;
}

/* The process is gone, with or without having done its job. */
static void reap_worker(pool *p, worker *w)
{
    int status = 0;
    char why[128] = "";
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(w->fd);
    if (w->orders >= 0)
        close(w->orders);
    const bool exits = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (w->stopped)
        snprintf(why, sizeof why, "took more than %g s", p->options->limit_s);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "crashed: signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (w->busy && why[0]) {
        workers_give_result(p, w, -1, why, strlen(why));
    } else if (w->busy) {
        give_report(p, w, status);
        if (p->results[w->index].code == 0 && !exits) /* it fell over its own end */
            p->results[w->index].code = WEXITSTATUS(status);
    } else if (!w->ends && (why[0] || !exits)) {
        if (!why[0])
            snprintf(why, sizeof why, "exit status %d", WEXITSTATUS(status));
        tool_error("a process that had done its jobs, the last of which was number %zu, ended badly: %s",
                   w->index, why);
        p->failed = true;
    }
    free(w->text);
    *w = (worker){0};
    p->running--;
}

/* A reused worker has done its job. */
static void continue_worker(pool *p, worker *w)
{
    report_head head;
    if (!p->options->reuse || !is_reported(w, &head))
        return;
    give_report(p, w, 0);
    if (p->started < p->n && !p->failed && !w->ends)
        order_job(p, w);
    else
        dismiss_worker(p, w);
}

/* Wait for reports, ends and deadlines. */
static void poll_workers(pool *p)
{
    struct pollfd fds[MAX_JOBS];
    worker *of[MAX_JOBS];
    int n = 0;
    double now = now_ms(), next = now + 1000;
    for (int i = 0; i < p->jobs; i++) {
        worker *w = &p->workers[i];
        if (!w->pid)
            continue;
        if (!w->stopped && now >= w->deadline_ms) {
            kill(w->pid, SIGKILL);
            w->stopped = true;
        }
        if (w->deadline_ms < next && !w->stopped)
            next = w->deadline_ms;
        fds[n] = (struct pollfd){w->fd, POLLIN, 0};
        of[n++] = w;
    }
    if (poll(fds, (nfds_t)n, (int)(next - now) + 1) <= 0)
        return;
    for (int i = 0; i < n; i++)
        if (fds[i].revents) {
            if (collect_report(of[i]))
                continue_worker(p, of[i]);
            else
                reap_worker(p, of[i]);
        }
}

static void run_workers(pool *p, bool (*done)(void *, size_t, const worker_result *))
{
    size_t reported = 0;
    while (!p->failed && reported < p->n) {
        while (!p->failed && p->running < p->jobs && p->started < p->n)
            p->failed = !start_worker_process(p);
        if (p->running)
            poll_workers(p);
        for (; reported < p->n && p->finished[reported]; reported++) {
            if (p->results[reported].text && !p->failed)
                p->failed = !done(p->user, reported, &p->results[reported]);
            free(p->results[reported].text);
        }
    }
    for (int i = 0; i < p->jobs; i++) /* after an error: those that wait for orders */
        if (p->workers[i].pid && p->workers[i].orders >= 0 && !p->workers[i].busy)
            dismiss_worker(p, &p->workers[i]);
    while (p->running) /* leave no process behind */
        poll_workers(p);
    for (; reported < p->n; reported++)
        free(p->results[reported].text);
}

bool workers_run(size_t n, const worker_options *options, job_function *job,
                 bool (*done)(void *, size_t, const worker_result *), void *user)
{
    pool *p = calloc(1, sizeof *p);
    worker_result *results = calloc(n + 1, sizeof *results);
    bool *finished = calloc(n + 1, sizeof *finished), ok = p && results && finished;
    if (ok) {
        const int jobs = options->jobs < 1 ? 1 : options->jobs > MAX_JOBS ? MAX_JOBS : options->jobs;
        *p = (pool){.options = options, .job = job, .user = user, .jobs = jobs, .n = n};
        p->results = results;
        p->finished = finished;
        void (*pipe_action)(int) = signal(SIGPIPE, SIG_IGN); /* a worker that died is found by waiting */
        run_workers(p, done);
        signal(SIGPIPE, pipe_action);
        ok = !p->failed;
    } else {
        tool_error("out of memory");
    }
    free(results);
    free(finished);
    free(p);
    return ok;
}

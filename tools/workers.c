/* See workers.h. */
#define _GNU_SOURCE
#include "tools/workers.h"

#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 256, MAX_TEXT = 1 << 20 };

typedef struct worker {
    pid_t pid; /* 0: free */
    int fd;
    size_t index;
    double deadline_ms;
    bool stopped;
    worker_result result;
} worker;

typedef struct pool {
    worker workers[MAX_JOBS];
    int jobs, running;
    double limit_s;
    worker_result *results;
    bool *finished;
} pool;

static bool start(pool *p, size_t index, int (*job)(void *, size_t, int), void *user)
{
    int ends[2];
    fflush(NULL); /* or the child would print it again */
    if (pipe2(ends, O_CLOEXEC) != 0) {
        tool_error("cannot make a pipe: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid < 0) {
        tool_error("cannot make a process: %s", strerror(errno));
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (pid == 0) {
        close(ends[0]);
        exit(job(user, index, ends[1]));
    }
    close(ends[1]);
    worker *w = p->workers;
    while (w->pid)
        w++;
    *w = (worker){.pid = pid, .fd = ends[0], .index = index, .deadline_ms = now_ms() + p->limit_s * 1e3};
    p->running++;
    return true;
}

/* False at the end of the job's report. */
static bool collect(worker *w)
{
    char buffer[4096];
    ssize_t n = read(w->fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0)
        return false;
    if (w->result.size + (size_t)n > MAX_TEXT)
        return true; /* enough is enough */
    char *grown = realloc(w->result.text, w->result.size + (size_t)n + 1);
    if (!grown)
        return true;
    w->result.text = grown;
    memcpy(grown + w->result.size, buffer, (size_t)n);
    w->result.size += (size_t)n;
    grown[w->result.size] = 0;
    return true;
}

static void finish(pool *p, worker *w)
{
    int status = 0;
    char why[128] = "";
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(w->fd);
    w->result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (w->stopped)
        snprintf(why, sizeof why, "took more than %g s", p->limit_s);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "crashed: signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (why[0]) {
        w->result.code = -1;
        free(w->result.text);
        w->result.text = strdup(why);
        w->result.size = strlen(why);
    }
    if (!w->result.text)
        w->result.text = calloc(1, 1);
    p->results[w->index] = w->result;
    p->finished[w->index] = true;
    w->pid = 0;
    p->running--;
}

/* Wait for reports, ends and deadlines. */
static void serve(pool *p)
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
        if (fds[i].revents && !collect(of[i]))
            finish(p, of[i]);
}

bool workers_run(size_t n, int jobs, double limit_s, int (*job)(void *, size_t, int),
                 void (*done)(void *, size_t, const worker_result *), void *user)
{
    pool *p = calloc(1, sizeof *p);
    bool ok = p != NULL;
    if (p) {
        p->jobs = jobs < 1 ? 1 : jobs > MAX_JOBS ? MAX_JOBS : jobs;
        p->limit_s = limit_s;
        p->results = calloc(n + 1, sizeof *p->results);
        p->finished = calloc(n + 1, sizeof *p->finished);
        ok = p->results && p->finished;
    }
    if (!ok)
        tool_error("out of memory");
    size_t started = 0, reported = 0;
    while (ok && reported < n) {
        while (ok && p->running < p->jobs && started < n)
            ok = start(p, started++, job, user);
        if (p->running)
            serve(p);
        for (; reported < n && p->finished[reported]; reported++) {
            done(user, reported, &p->results[reported]);
            free(p->results[reported].text);
        }
    }
    while (p && p->running) /* after an error: leave no process behind */
        serve(p);
    if (p) {
        for (; p->results && reported < n; reported++)
            free(p->results[reported].text);
        free(p->results);
        free(p->finished);
    }
    free(p);
    return ok;
}

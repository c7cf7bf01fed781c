/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in processes of their own, several at a time, each with a time limit: a crash or hang of one is that
 * one's failure. */
#ifndef TOOLS_WORKERS_H
#define TOOLS_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct worker_result {
    int code;   /* what the job returned; -1 if it crashed or was stopped */
    char *text; /* its output, or why it ended; never NULL; malloc'ed */
    size_t size;
} worker_result;

typedef struct worker_options {
    int jobs;       /* at a time */
    double limit_s; /* of one job */
    /* A process is reused for the next job, as starting one is expensive (a GPU's driver). One
     * that crashes, is stopped or returns with WORKER_ENDS is replaced. */
    bool reuse;
} worker_options;

/* Added to what a job returns: its process is not fit for another one. */
enum { WORKER_ENDS = 128 };

/* Run job(user, i, fd) for i in [0, n). The job writes its report to fd and returns 0 to 100. done(user, i,
 * result) is called in this process, in order of i; the result is released afterwards. It returns false,
 * after printing why, to start no more. False if it did, if processes cannot be made, or if one that is
 * reused ends badly after its last job (printed). This process must not have started threads. */
bool workers_run(size_t n, const worker_options *options, int (*job)(void *user, size_t i, int fd),
                 bool (*done)(void *user, size_t i, const worker_result *result), void *user);

#endif

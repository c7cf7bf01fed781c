/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in processes of their own, for pools. Included by itself; the rules of <graphrt/graphrt.h> hold. */
#ifndef GRAPHRT_PROCESSES_H
#define GRAPHRT_PROCESSES_H

#include <graphrt/graphrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* After most of its errors CUDA gives a process no access to that GPU again. A lane of processes has each of its
 * sessions in a process that is started for it: this process opens none of their devices and loses none. A process that
 * ends, whose device fails, or that answers too late is replaced by a new one. Requests that it had at work are run
 * again by whichever process is free, once: a request whose second process ends, too, is DEVICE. Requests that wait go
 * on waiting while a process is started. docs/services.md has what a request costs. */
typedef struct grt_process_options {
    size_t struct_size;
    const char *program;       /* what is started: `PROGRAM worker FD`, which calls grt_process_serve(FD). NULL:
                                  graphrun, beside the library as it is installed, else of the PATH */
    const char *custom_ops;    /* a shared object that each process loads as grt_custom_ops_load does; NULL: none */
    int32_t threads;           /* of each session, as in grt_session_options, like the next three */
    const char *fallback;
    uint64_t memory_limit;
    int32_t priority;
    double start_timeout_ms;   /* until a session is ready; 0: 120,000 */
    double grace_ms;           /* a process that has not answered so long after its request was cancelled or late is
                                  ended; 0: 2,000 */
    int32_t most_failures;     /* so many starts in a row that fail, or whose process ends before it has answered, are
                                  the end of that session; 0: 3 */
    int64_t multiprocessors;   /* of each session, as in grt_session_options. Sessions of different processes may have
                                  the same ones */
} grt_process_options;

/* Add a lane whose n sessions of `model` are each in a process of its own, on devices[i] ("cuda:0"; the same may be
 * named more than once). The plan is written to a file without a name in the directory for temporary files, which the
 * processes map. Waits until all are ready. All that requests of other lanes can do they can, batches too, with these
 * exceptions: inputs and outputs are tensors of numbers in memory of the host, and there is no state. The caller may
 * release the model. options and processes may be NULL.
 * Threads: any. Errors: as grt_pool_add, and those of the session in its process; IO if no process can be started, or
 * it ends before it is ready; UNSUPPORTED (sequences, optionals, strings; a process of another release). */
GRT_API GRT_MUST_USE grt_status grt_pool_add_processes(grt_pool *pool, grt_model *model, const char *const *devices,
                                                       size_t n, const grt_pool_options *options,
                                                       const grt_process_options *processes, size_t *out_lane);

typedef struct grt_process_info {
    size_t struct_size; /* set by the caller */
    int64_t pid;        /* of the process at work now; 0: one is being started, or there is none any more */
    uint64_t started;   /* processes that became ready, the first included */
    bool lost;          /* it is not replaced any more */
} grt_process_info;
/* About the process of session number `index` of a lane.
 * Threads: any. Errors: INVALID_ARGUMENT (no such lane, session or process). */
GRT_API GRT_MUST_USE grt_status grt_pool_get_process(grt_pool *pool, size_t lane, size_t index,
                                                     grt_process_info *out_info);

/* What the program of a lane of processes calls, before it has started threads: serves the pool at the other end of the
 * descriptor until that is closed, and closes it. A program of one's own can register custom operators first.
 * Threads: one of the process.
 * Errors: IO if there is no pool at the other end; those of making the session, which the pool is told, too. */
GRT_API GRT_MUST_USE grt_status grt_process_serve(int fd);

#ifdef __cplusplus
}
#endif
#endif

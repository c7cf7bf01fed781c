/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's side of a process with a session: starting and ending it, and runs in it. */
#ifndef GRT_SRC_PROCESS_PROCESS_H
#define GRT_SRC_PROCESS_PROCESS_H

#include "src/plan/plan.h"
#include "src/process/shared.h"

#include <sys/types.h>

/* What a context is for a session in this process. One run at a time. */
typedef struct grt_channel {
    int fd;
    grt_shared shared;
    struct grt_process *process;
} grt_channel;

typedef struct grt_process {
    pid_t pid;
    int control;
    double grace_ms;
    size_t n;
    grt_channel *channels;
    bool lends;           /* see grt_lane_session */
    atomic_bool answered; /* a run of it has ended well */
    char device[GRT_WIRE_DEVICE];
} grt_process;

/* What the processes of a lane are started with. */
typedef struct grt_process_setup {
    grt_wire_start start; /* but for the device */
    char *program;
    int plan; /* a file without a name; -1: none yet */
    double start_timeout_ms, grace_ms;
} grt_process_setup;

/* program NULL: graphrun, wherever it is. grt_process_setup_release in both cases. */
grt_status grt_process_setup_create(const grt_plan *plan, const char *program, grt_process_setup *out_setup);
void grt_process_setup_release(grt_process_setup *setup);

/* Waits until its session is ready, or stop_fd is readable (CANCELLED; -1: nobody stops it). */
grt_status grt_process_start(const grt_process_setup *setup, const char *device, int stop_fd,
                             grt_process **out_process);
/* Its runs fail soon. Any thread, before its release. */
void grt_process_kill(const grt_process *process);
/* It has ended afterwards; no channel is in use. NULL-safe. */
void grt_process_release(grt_process *process);
/* Until it has ended by itself; false: stop_fd is readable. */
bool grt_process_await_end(const grt_process *process, int stop_fd);

/* Run what the head and the data say. DEVICE with *out_gone: the process has ended, or is ended as its device
 * is lost or it answers too late. */
grt_status grt_channel_run(grt_channel *channel, bool *out_gone);

#endif

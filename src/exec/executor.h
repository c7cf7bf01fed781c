/* SPDX-License-Identifier: Apache-2.0 */
/* What all frames of one context run with: the session, the stream, memory, and what is bound. One run at a
 * time uses it. */
#ifndef GRT_SRC_EXEC_EXECUTOR_H
#define GRT_SRC_EXEC_EXECUTOR_H

#include "src/call/op_call.h"
#include "src/exec/binding.h"
#include "src/exec/device_value.h"
#include "src/exec/in_flight.h"
#include "src/exec/stop.h"
#include "src/session/session.h"

struct grt_frame;
struct grt_watched;

/* Who is told what steps make; see watch.h. */
typedef struct grt_watch {
    void (*function)(void *user, const struct grt_watched *watched); /* NULL: nobody */
    void *user;
} grt_watch;

/* Memory of the device that grows and is never given back before the context. */
typedef struct grt_region {
    char *data;
    size_t bytes;
    grt_account_kind kind;
    bool captured;     /* a graph of the caller's points there */
    size_t kept_bytes; /* of earlier ones that such graphs point at */
} grt_region;

typedef struct grt_executor {
    grt_session *session;
    grt_binding bound;
    grt_weights_version *weights; /* that the last run had */
    unsigned weights_number;
    void *stream;     /* of the device; NULL on host devices */
    grt_region arena; /* activations */
    grt_region workspace;
    char *host_workspace; /* device sessions: of steps that run on the CPU */
    size_t host_workspace_bytes;
    grt_device_heap *pool; /* of the device, for values whose sizes come with the run; NULL on host devices */
    grt_in_flight flight;
    grt_arena *strings; /* bytes of string elements, until the next run */
    void *local;        /* what the backend keeps for this context; see grt_run_hooks */
    grt_run_hooks hooks;
    grt_shape_scratch scratch;
    struct grt_frame *main;    /* the main body's that runs: the plan's dims have their values there */
    struct grt_frame **bodies; /* per body of the plan, made with the first program; [0] unused */
    int32_t depth;             /* of nested bodies */
    atomic_flag busy;          /* a thread runs it */
    grt_stop stop;             /* of the run in progress */
    grt_watch watch;
    bool debug; /* GRAPHRT_DEBUG is set, or the build is for debugging: pointers are checked, steps waited for
                 */
} grt_executor;

/* True if executors that are made now debug. */
bool grt_executor_debugs(void);
grt_status grt_executor_create(grt_session *session, grt_executor *executor); /* zeroed before */
/* When no frame is left. */
void grt_executor_release(grt_executor *executor);

static inline const grt_plan *grt_executor_plan(const grt_executor *executor)
{
    return executor->session->model->plan;
}

static inline grt_device *grt_executor_device(const grt_executor *executor)
{
    return executor->session->device;
}

/* Two threads in one context would write over each other's activations: INVALID_ARGUMENT, naming the
 * function, while one is inside; nobody else runs it until it is let go. */
grt_status grt_executor_hold(grt_executor *executor, const char *function);
void grt_executor_let_go(grt_executor *executor);

/* The newest weights are the defaults of inputs from now on. */
grt_status grt_executor_take_weights(grt_executor *executor);

/* Memory of the session's device that counts against its limit. */
grt_status grt_executor_alloc(grt_executor *executor, grt_account_kind kind, size_t bytes, void **out_data);
void grt_executor_free(grt_executor *executor, grt_account_kind kind, size_t bytes, void *data);
/* Nothing may be in use. What a graph of the caller's points at stays. */
grt_status grt_executor_drop_region(grt_executor *executor, grt_region *region);
/* Make room, where there is less; nothing may be in use. */
grt_status grt_executor_reserve_arena(grt_executor *executor, size_t bytes);
grt_status grt_executor_reserve_workspace(grt_executor *executor, size_t bytes);
grt_status grt_executor_reserve_host_workspace(grt_executor *executor, size_t bytes);

/* For a kernel that asked for no more than there is. */
static inline void *grt_executor_workspace(const grt_executor *executor)
{
    return executor->workspace.data || executor->session->on_device ? executor->workspace.data : grt_nothing;
}

/* The caller is capturing a run: its graph points into the memory that there is now. */
void grt_executor_note_capture(grt_executor *executor);
/* Kernels of the last run found fault with its data: the error, once. The run was waited for, or is in
 * flight. */
grt_status grt_executor_check_local(grt_executor *executor);

#endif

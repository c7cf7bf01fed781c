/* SPDX-License-Identifier: Apache-2.0 */
/* What runs do and when. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_TRACE_H
#define GRAPHRT_TRACE_H

#include <graphrt/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_profile_kind {
    GRT_PROFILE_RUN = 0,      /* all of a run, on the host's clock */
    GRT_PROFILE_PREPARE = 1,  /* planning for new dims, a part of it */
    GRT_PROFILE_COMPUTE = 2,  /* the steps; on devices with the copies around them */
    GRT_PROFILE_STEP = 3,     /* one step */
} grt_profile_kind;

/* Something that a run has done. */
typedef struct grt_profile_event {
    size_t struct_size;     /* set by the library */
    grt_profile_kind kind;
    int32_t step;           /* STEP: its number, as in grt_model_step; else -1 */
    const char *op;         /* STEP: "Conv"; else "" */
    const char *name;       /* STEP: names of the source nodes, joined by '+'; else "" */
    double begin_ms;        /* on the clock of grt_clock_ms */
    double end_ms;
    bool on_device;         /* the times are the device's: laid out from the begin of COMPUTE on, one step after the
                               other */
    grt_status status;      /* RUN: how it ended */
} grt_profile_event;

typedef struct grt_profile_options {
    size_t struct_size;
    /* Called on the thread that ran, after the run, for each of its events: RUN first, PREPARE and COMPUTE if it came
     * so far, then the steps in the order in which they ran. Must not use the context. */
    void (*event)(void *user, const grt_profile_event *event);
    void *user;
    bool steps; /* STEP too: the steps of the main graph are timed one by one, and on devices not replayed as graphs */
} grt_profile_options;
/* Tell of the following runs by grt_context_run and grt_context_run_with; options NULL: no more, which costs a run
 * nothing. It excludes grt_context_set_timing: `steps` switches that on, and the end of it off.
 * Threads: one a context. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_context_set_profile(grt_context *context, const grt_profile_options *options);

/* What a thread was doing. Those of one thread are nested, but for REQUEST and QUEUE, which begin on another thread. */
typedef enum grt_span_kind {
    GRT_SPAN_REQUEST = 0,  /* a request of a pool, from its submission until it is answered */
    GRT_SPAN_QUEUE = 1,    /* its beginning, until a context has it */
    GRT_SPAN_COPY_IN = 2,  /* a request's inputs are bound, or those of a batch put together */
    GRT_SPAN_RUN = 3,      /* grt_context_run; what grt_context_run_async enqueues */
    GRT_SPAN_PREPARE = 4,  /* planning for new dims */
    GRT_SPAN_UPLOAD = 5,   /* devices: enqueueing copies of inputs; where memory is pageable, the copies */
    GRT_SPAN_STEP = 6,     /* one step; on devices its enqueueing */
    GRT_SPAN_REPLAY = 7,   /* launching a segment of steps that was captured */
    GRT_SPAN_CAPTURE = 8,  /* capturing it */
    GRT_SPAN_DOWNLOAD = 9, /* as UPLOAD, of outputs */
    GRT_SPAN_WAIT = 10,    /* for the device to be done */
    GRT_SPAN_COPY_OUT = 11 /* a request's results are copied or shared */
} grt_span_kind;

typedef struct grt_span {
    size_t struct_size;  /* set by the library */
    grt_span_kind kind;
    int32_t step;        /* STEP: its number, as in grt_model_step, in the main graph or in a body; else -1 */
    const char *op;      /* STEP: "Conv"; else "" */
    const char *name;    /* STEP: names of the source nodes, joined by '+'; else "" */
    const char *device;  /* of the session, "cuda:0"; REQUEST, QUEUE: "" */
    size_t lane;         /* REQUEST, QUEUE, COPY_IN, COPY_OUT: its number in the pool */
    uint64_t request;    /* the same: number of the request among all of the process, from 1; 0: of a batch */
    double begin_ms;     /* on the clock of grt_clock_ms */
    double end_ms;
    grt_status status;   /* REQUEST: how it ended */
    uint64_t reserved[4];
} grt_span;

/* Send spans of all runs and pools of the process to `span`, each when it is over, on the thread that was in it; NULL:
 * no more, which is how it begins, and which costs a load and a comparison. Nothing runs otherwise than without:
 * segments are replayed, and times on devices are the host's (grt_context_set_profile has the device's). The strings
 * are valid until the function returns. It is called by any thread, several at once, and must not call this library.
 * When the call returns, no thread is in the earlier function. Spans that are open then have no end, or no beginning.
 * The same spans are told to profilers as NVTX ranges, without this call: docs/seeing.md.
 * Threads: any, not in `span`. */
GRT_API void grt_trace_set(void (*span)(void *user, const grt_span *span), void *user);

typedef enum grt_log_level {
    GRT_LOG_OFF = 0,
    GRT_LOG_ERROR = 1,   /* runs and loads that failed */
    GRT_LOG_WARNING = 2, /* works, but not as well as it could: a segment that could not be captured */
    GRT_LOG_INFO = 3,    /* models, sessions */
    GRT_LOG_DEBUG = 4,   /* new combinations of dims */
} grt_log_level;

typedef struct grt_log_message {
    size_t struct_size;   /* set by the library */
    grt_log_level level;
    const char *category; /* "load", "run" */
    const char *text;     /* one line or more, printable as grt_printable makes it */
} grt_log_message;

/* Send messages of this level and the more important ones to `message`, for all of the process; OFF, or NULL: none,
 * which is how it begins. A run that is prepared and succeeds tells nothing. The function is called by any thread,
 * several at once, and must not call this library. When the call returns, no thread is in the earlier function. graphc
 * and graphrun print what GRAPHRT_LOG (error, warning, info, debug) or --verbose (info) asks for.
 * Threads: any, not in `message`. */
GRT_API void grt_log_set(grt_log_level level, void (*message)(void *user, const grt_log_message *message), void *user);

#ifdef __cplusplus
}
#endif
#endif

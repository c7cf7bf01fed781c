/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: one execution in flight. A frame holds the values of one body; the main body has one frame per
 * combination of input dims, planned once ("profile"); bodies of control flow have one frame each. */
#ifndef GRT_SRC_EXEC_CONTEXT_H
#define GRT_SRC_EXEC_CONTEXT_H

#include "src/plan/memory_plan.h"
#include "src/call/op_call.h"
#include "src/session/session.h"

enum { GRT_MAX_PROFILES = 16, GRT_MAX_REPLAYS = 4, GRT_MAX_CAPTURES = 4 };

typedef struct grt_step_state {
    grt_op_call call;
    bool is_static; /* prepared with the frame; otherwise prepared at every run */
    bool skip;      /* nothing to do: a view whose memory is its input's, or hoisted */
    bool host;      /* runs on the CPU although the session is on a device */
    bool open;     /* some dim that it touches is no constant: whether they fit is not known from compiling */
    bool unproven; /* all are constants, of a plan from elsewhere: whether they fit was not looked at yet */
    int32_t *drop; /* dynamic values that nobody reads after this step */
    int32_t n_drop;
} grt_step_state;

/* Where a bound tensor lies; see overlap.c. */
typedef struct grt_extent grt_extent;

typedef struct grt_replay {
    uint64_t pointers;
    bool used;   /* it ran once, step by step */
    void *graph; /* NULL before it is captured */
} grt_replay;

typedef struct grt_frame {
    grt_context *context;
    const grt_plan_body *body;
    int32_t index; /* of the body */
    grt_arena *arena;
    grt_value *values;
    /* Device sessions: the same values as the host sees them, with data where it has them; otherwise equal to
     * `values`. */
    grt_value *host;
    bool *host_ok;      /* host[v] holds the content of this run */
    bool *made_on_host; /* by a step that runs on the CPU */
    bool *read_on_device;
    char *input_block; /* device memory of the main body's inputs, once one of them is in host memory */
    size_t input_bytes;
    /* The steps as graphs to replay, one for each of the last sets of pointers that were bound. */
    grt_replay replays[GRT_MAX_REPLAYS];
    int32_t next_replay;  /* the one that goes first */
    uint64_t pointers;    /* hash of what is bound now */
    int32_t blocker;      /* the first step that cannot be in a graph; -1: none */
    char *not_captured;   /* why the last capture failed; NULL: it did not */
    int32_t failures;     /* of captures, up to GRT_MAX_CAPTURES */
    int32_t failed_step;  /* where the last of them failed; -1: at its end */
    int32_t step;         /* that runs, or ran last */
    void *stream;         /* that the steps enqueue on */
    bool *borrowed;       /* values whose content belongs to somebody else: captures */
    bool *known;          /* dims are known before the run */
    bool *hoisted;        /* content depends on the dims alone: computed once, when the frame was made */
    size_t hoisted_bytes; /* of all such content */
    bool *dynamic;        /* values made by steps that are not static: their memory comes with the run */
    grt_step_state *steps;
    /* Main body only: */
    int64_t *dims;    /* value of each of the plan's dims ... */
    bool *dims_known; /* ... where input symbols decide it */
    int64_t *key;     /* dims of all inputs, one after another */
    size_t key_size;
    grt_memory_plan memory;
    int32_t *group_start, *group; /* values of each storage: group[group_start[s] .. group_start[s + 1]) */
    const char *arena_base, *workspace_base; /* what the pointers were made for, once bound */
    bool bound;
    uint64_t last_used;
    bool captured;               /* a graph of the caller's points into it; see in_flight.h */
    struct grt_frame *next_kept; /* in the context's list of those that were evicted all the same */
} grt_frame;

struct grt_context {
    grt_session *session;
    grt_frame *profiles[GRT_MAX_PROFILES];
    int32_t n_profiles;
    grt_frame *current; /* of the last run; NULL before */
    grt_frame **bodies; /* per body of the plan; [0] unused */
    grt_value *inputs;  /* bound; borrowed data */
    bool *input_set;
    grt_tensor *outputs; /* bound; data NULL where the context's memory is used */
    bool *output_set;
    grt_tensor *kept; /* outputs of the last run that have been bound elsewhere since; dtype NONE: not so */
    bool any_kept;
    bool rebound;        /* something was bound since overlaps were looked for */
    grt_extent *extents; /* of what is bound, for that */
    atomic_flag busy;    /* a thread runs it */
    char *arena;
    size_t arena_bytes;
    char *workspace;
    size_t workspace_bytes;
    /* in_flight.h: */
    void *flight;                            /* fence behind the last enqueued run; NULL: there was none */
    bool in_flight;                          /* nobody has waited for it */
    uint64_t flight_stream;                  /* id of the stream that it is on */
    bool arena_captured, workspace_captured; /* a graph of the caller's points there */
    struct grt_kept_memory *kept_memory;     /* arenas and workspaces that such graphs point at */
    grt_frame *kept_frames;
    void *local;          /* what the backend keeps for this context; see grt_run_hooks */
    char *host_workspace; /* device sessions: of steps that run on the CPU */
    size_t host_workspace_bytes;
    void *stream; /* of the device; NULL on host devices */
    struct grt_device_pool
        *pool;          /* of the device, for values whose sizes come with the run; NULL on host devices */
    grt_value *results; /* device sessions: outputs on the host */
    grt_arena *strings;
    grt_run_hooks hooks;
    grt_shape_scratch scratch;
    int32_t depth; /* of nested bodies */
    uint64_t runs, reshapes;
    bool ran;
    bool debug; /* GRAPHRT_DEBUG is set, or the build is for debugging: pointers are checked, steps waited for
                 */
    bool timing;
    grt_step_time *times;
    size_t n_times;
    void **events;   /* device sessions with timing: one before each step and one behind the last */
    void *bounds[2]; /* events around the steps, once device times are asked for */
    bool measures;   /* they are recorded */
    double device_ms;
    double host_us;
};

static inline const grt_plan *grt_context_plan(const grt_context *context)
{
    return context->session->model->plan;
}

static inline const grt_plan_body *grt_context_body(const grt_context *context)
{
    return &grt_context_plan(context)->bodies[0];
}

/* src/exec/binding.c: every input is bound, or has a default that is bound now. */
grt_status grt_context_check_inputs(grt_context *context);

/* src/exec/overlap.c: no output is bound over an input or another output. Looks only once at what is bound.
 */
grt_status grt_context_check_overlap(grt_context *context);
size_t grt_extent_bytes(const grt_context *context); /* of context->extents */

/* src/exec/profile.c: the frame for the dims of what is bound, planned now if they are new. */
grt_status grt_context_choose_profile(grt_context *context, grt_frame **out_frame);
/* Make room, where there is less; nothing may be in use. */
grt_status grt_context_reserve_arena(grt_context *context, size_t bytes);
grt_status grt_context_reserve_workspace(grt_context *context, size_t bytes);

/* src/exec/frame.c */
grt_status grt_frame_create(grt_context *context, int32_t body, const int64_t *symbols,
                            grt_frame **out_frame);
void grt_frame_release(grt_frame *frame);
/* Let go of all dynamic values. */
void grt_frame_clear(grt_frame *frame);
void grt_frame_drop(grt_frame *frame, int32_t value);
bool grt_frame_has_dims(const grt_frame *frame, int32_t value); /* known from input symbols */
/* The op's rule has the last word on dims that the plan's expressions gave the step, unless the compiler
 * asked it already. `content`: it may look into small inputs. */
grt_status grt_frame_check_step(grt_frame *frame, int32_t s, bool content);

static inline bool grt_frame_on_device(const grt_frame *frame)
{
    return frame->host != frame->values;
}

/* src/exec/frame_memory.c */
/* Give static values their places in the arena. */
grt_status grt_frame_plan_memory(grt_frame *frame);
/* Point static values into the context's arena and inputs at what is bound. */
grt_status grt_frame_bind(grt_frame *frame);

/* src/exec/hoist.c */
/* Does the step compute from dims alone? All inputs are constants or hoisted, or it asks for nothing but
 * dims. */
bool grt_frame_can_hoist(const grt_frame *frame, int32_t step);
/* Compute it now; there is nothing to do for it in a run. */
grt_status grt_frame_hoist(grt_frame *frame, int32_t step);

/* src/exec/transfer.c: values between the host and the device. */
/* host[v] holds the content of v, downloaded if it must be; waits for the stream then. */
grt_status grt_frame_fetch(grt_frame *frame, int32_t value);
/* The device gets what a step on the CPU made. */
grt_status grt_frame_store(grt_frame *frame, int32_t value);
/* host[v] gets the dims of v, no data; for what is not on the host. */
void grt_frame_shadow(grt_frame *frame, int32_t value);
/* Device memory of the caller's, bound as input or output. */
static inline bool grt_is_device_tensor(const grt_tensor *t)
{
    return t->memory == GRT_MEMORY_DEVICE;
}
/* Inputs that lie in one of these kinds of memory: bits 1 << grt_memory. */
grt_status grt_frame_upload_inputs(grt_frame *frame, uint32_t kinds, void *stream);
/* Results that could not be written where the caller wants them on the device. */
grt_status grt_frame_copy_on_device(grt_frame *frame, void *stream);
/* Results for page-locked memory of the caller's, once the stream gets there. */
grt_status grt_frame_copy_to_pinned(grt_frame *frame, void *stream);
grt_status grt_frame_download_outputs(grt_frame *frame);

/* src/exec/execute.c: run the steps of a frame whose inputs are set. */
grt_status grt_frame_run(grt_frame *frame);
/* The same on a stream of the caller's; nothing waits. captured: into a graph of the caller's. UNSUPPORTED if
 * a step needs the host. */
grt_status grt_frame_run_async(grt_frame *frame, void *stream, bool captured);
void grt_frame_release_graphs(grt_frame *frame);
/* The first step that needs the host or whose memory comes with the run; -1: none. */
int32_t grt_frame_find_blocker(const grt_frame *frame);
void grt_frame_get_replay(const grt_frame *frame, grt_replay_info *out_info);

/* src/exec/control_flow.c: If, Loop, Scan, SequenceMap. */
grt_status grt_control_run(grt_frame *frame, int32_t step);

#endif

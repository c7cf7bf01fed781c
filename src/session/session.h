/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a model resident on a device. Immutable once created, shared by contexts and threads. */
#ifndef GRT_SRC_SESSION_SESSION_H
#define GRT_SRC_SESSION_SESSION_H

#include "backends/backend.h"
#include "graph/ir/op.h"
#include "src/base/account.h"
#include "src/session/host_weights.h"
#include "src/session/kept_weights.h"
#include "src/session/model.h"
#include "src/session/resident.h"
#include "src/session/upload.h"

/* The kernel of one step. row is NULL for steps that the executor runs itself. */
typedef struct grt_session_kernel {
    const grt_kernel_row *row;
    const op_row *op;
    void *state;
    bool host; /* runs on the CPU although the session is on a device */
} grt_session_kernel;

/* Texts that callers may still read, newest first. */
typedef struct grt_session_text {
    struct grt_session_text *older;
    char *text;
} grt_session_text;

struct grt_session {
    atomic_int refs;
    grt_model *model;
    grt_device *device; /* the runtime's, or a part of it */
    bool has_part;
    int32_t threads;
    int32_t team;                 /* of its runs: grt_session_team */
    grt_session_kernel **kernels; /* per body, per step */
    bool on_device;               /* the device has memory of its own */
    bool fallback;                /* ops that the device lacks run on the CPU */
    bool rehearsal;               /* nothing runs: its weights, activations and workspaces are numbers only */
    int32_t priority;             /* of its contexts' streams */
    grt_code_when code_when;      /* when generated kernels are made for it */
    int64_t multiprocessors;      /* wanted for itself; 0: none */
    grt_account *account;         /* of its memory on the device */
    bool packed; /* the plan was made for this backend: host_weights lie as its packings say */
    const grt_tensor *host_weights; /* where they are in host memory: shared's */
    const grt_host_weights *shared;
    grt_tensor *weights;       /* where they are on the device */
    grt_resident *resident;    /* device memory of all weights; NULL on host devices */
    grt_upload_stats uploaded; /* by this session; zeros if the weights were there */
    grt_phases phases;
    grt_kept_weights kept; /* that callers have replaced */
    void *_Atomic spare;   /* what warming up left for the first context; NULL: nothing */
    void (*release_spare)(void *spare);
    char name[48];                      /* "cuda:0" */
    char *_Atomic lost;                 /* the error that its device failed with; NULL: it works */
    grt_session_text *_Atomic warnings; /* of the cache of algorithms, as they were told last; NULL: never */
};

/* Making a session, in this order; group.c does so. What was begun is released with grt_session_release. */
grt_status grt_session_start(grt_model *model, const grt_sessions_options *options, double start_ms,
                             grt_session **out_session);
grt_status grt_session_open_device(grt_session *session, const grt_backend *backend, int32_t index);
/* *out_block: memory of the device that the caller has to fill with the weights, and then to settle
 * (session->resident); NULL: they are there. */
grt_status grt_session_place_weights(grt_session *session, void **out_block);
/* On up to `threads` threads. */
grt_status grt_session_create_kernels(grt_session *session, int32_t threads);
void grt_session_release_kernels(grt_session *session); /* also of a creation that failed half-way */
/* The largest team that a thread needs which prepares or runs this session's steps. Kernels on the host are
 * made for session->threads; where there are none, only preparing takes a team, of GRT_MOST_PREPARING at
 * most. To have a team costs the making of its threads once a thread (openmp.h), which on a machine of many
 * cores is longer than the rest of a device's session. */
enum { GRT_MOST_PREPARING = 8 };
static inline int32_t grt_session_team(const grt_session *session)
{
    return session->team;
}
/* On devices of their own memory, once the weights are there: they are still read until then. */
void grt_session_forget_copied(const grt_session *session);
/* Saves new algorithms after a session's kernels have chosen. */
void grt_session_save_choices(grt_session *session);

/* Lets a session whose kernels exist do what its first run would have to; see src/exec/warm_up.c. */
typedef void grt_session_warm(grt_session *session);
/* grt_sessions_create, with `warm` called for sessions on devices that load code while they run. */
grt_status grt_session_group_create(grt_model *model, const char *const *devices, size_t n,
                                    const grt_sessions_options *options, grt_session_warm *warm,
                                    grt_session **out_sessions);
/* What warm left, once: the caller's from now on. NULL: nothing, or somebody has it. */
void *grt_session_take_spare(grt_session *session);

/* What the weights of a model are on a device of this kind, and how they lie in its one block. `offset` of
 * weight i is the sum of the sizes before it, each rounded up. */
grt_resident_key grt_session_key(const grt_model *model, const grt_host_weights *weights, int32_t index);
enum { GRT_WEIGHT_ALIGNMENT = 256 };

grt_session *grt_session_retain(grt_session *session);

/* After a run on the session's device has failed with DEVICE: is it the end of the device? The message stays.
 */
void grt_session_probe(grt_session *session);
static inline bool grt_session_is_lost(const grt_session *session)
{
    return atomic_load_explicit(&session->lost, memory_order_acquire) != NULL;
}

#endif

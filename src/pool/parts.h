/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool is made of. One lock has all of it that changes; nobody computes, copies or calls back with it.
 */
#ifndef GRT_SRC_POOL_PARTS_H
#define GRT_SRC_POOL_PARTS_H

#include "src/pool/batch.h"
#include "src/pool/histogram.h"
#include "src/process/process.h"

enum { GRT_POOL_PHASES = GRT_POOL_TOTAL + 1 };

/* A context with its thread. */
typedef struct grt_worker {
    struct grt_lane *lane;
    size_t session;
    grt_context *context; /* which keeps its session */
    grt_session *on;
    grt_channel *channel; /* in place of both: to a process that has the session */
    bool gone;            /* that process has ended with the last run */
    const char *name;     /* of the session's device */
    grt_batch batch;
    pthread_t thread;
    bool started;
    pthread_cond_t wake;
    struct grt_worker *next_idle; /* of the session's */
    grt_request **requests;       /* to serve; NULL: it left the batch, or is answered */
    int64_t *first_rows;          /* of each, in the batch */
    size_t n_requests, n_served;
    int64_t rows;
    int32_t priority;             /* the highest of its requests' */
    double each_ms;               /* of its device, when it began */
    bool begun;                   /* somebody serves */
    bool lent;                    /* a thread of the caller's serves in place of its own */
    atomic_size_t live;           /* requests that have not left the batch */
    double idle_ms;               /* since when it is */
    bool lingering_pays, lingers; /* see linger.h */
    atomic_int called;            /* looked at while it lingers */
    int left;                     /* requests in a row that their clients served at once */
} grt_worker;

/* A device, for all lanes. */
typedef struct grt_pool_device {
    struct grt_pool_device *next;
    const grt_device *device; /* NULL: of other processes; then it has a name */
    char name[GRT_WIRE_DEVICE];
    size_t running, most, more; /* workers; `more`, by grt_share_has_place */
    double each_ms, counted_ms; /* see share.h: what one worker would have had, until then */
} grt_pool_device;

typedef struct grt_lane_session {
    grt_worker *idle;
    size_t busy;
    grt_pool_device *device;
    grt_queue own; /* requests whose state is on its device; of sessions of one device, the first has them */
    bool lends;    /* its workers may be served by any thread: operators have no teams */
    bool lost;     /* its device has failed */
    bool coming;   /* and a new process for it is started */
    bool held;     /* it gets no requests: somebody replaces it */
} grt_lane_session;

typedef struct grt_lane {
    struct grt_pool *pool;
    size_t number;
    grt_model *model;
    size_t n_sessions, n_workers;
    grt_lane_session *sessions;
    grt_worker *workers;
    struct grt_lane_processes *processes; /* of its sessions; NULL: they are in this process */
    size_t turn;                          /* the session that is asked first */
    /* the queue */
    grt_queue queue;
    size_t most_waiting, n_waiting; /* those for the one before them included */
    size_t n_own;                   /* in queues of sessions */
    pthread_cond_t room;
    grt_request *oldest, *newest;
    int64_t rows_waiting;
    grt_batching batching;
    double max_delay_ms;
    /* its share */
    double share, used, mean_ms; /* used: what its workers had of devices, divided by the share */
    size_t running;              /* workers */
    bool ending;                 /* their threads end */
    grt_pool_stats stats;
    grt_times times[GRT_POOL_PHASES];
} grt_lane;

struct grt_pool {
    unsigned process; /* that made it: grt_forked_number */
    grt_request_store *store;
    pthread_mutex_t lock;
    grt_lane **lanes;
    size_t n_lanes;
    grt_pool_device *devices;
    size_t device_runs; /* of each device; 0: as many as the lane with the most workers there has */
    double used;        /* of the lane that was served last */
    uint64_t n_submitted;
    size_t open;           /* requests whose callback has not returned */
    pthread_cond_t closed; /* one is not open any more; or a worker has become idle */
    size_t n_watchers;     /* threads that wait for that */
    bool closing;          /* no more requests */
    size_t n_draining;     /* batches are not waited for */
    bool one_lingers;      /* a worker's thread looks for requests and does not sleep */
    grt_worker *dozing;    /* whose thread sleeps for a moment and then looks; NULL: none */
    bool ending;           /* the keeper ends */
    /* the keeper: deadlines, delays of batches, and what is cancelled */
    pthread_t keeper;
    bool keeper_started;
    pthread_cond_t keeper_wake;
    double keeper_until; /* it looks again then */
    grt_queue deadlines; /* of requests that wait, or are in a batch */
    grt_request *left;   /* to be answered with their verdicts */
    /* for grt_pool_take_done */
    grt_request *first_done, **last_done;
    int fd;
};

#endif

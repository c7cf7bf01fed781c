/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: many runs at once. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_POOL_H
#define GRAPHRT_POOL_H

#include <graphrt/info.h>
#include <graphrt/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pool: lanes of contexts, each context with a thread. A lane has sessions of one model, a bounded queue of requests,
 * and a share of the devices. While one request computes, the inputs of the next and the results of the last are
 * copied. A request goes to the session of its lane that has the fewest at work. Who is served next: the highest
 * priority; of equals, the lane that has used least of its share; in a lane, the one that came first. docs/services.md
 * has it at length. */
typedef struct grt_pool grt_pool;
/* One run that was submitted to a pool. */
typedef struct grt_request grt_request;

/* How many rows a batch gets that has fewer than max_batch: contexts keep programs for 16 combinations of dims. Rows
 * that are added are copies of the last one. */
typedef enum grt_padding {
    GRT_PADDING_POWER_OF_TWO = 0, /* the next power of two, at most max_batch */
    GRT_PADDING_FULL = 1,         /* max_batch */
    GRT_PADDING_NONE = 2,         /* none are added */
} grt_padding;

/* Options of a pool's first lane, or of one that is added. */
typedef struct grt_pool_options {
    size_t struct_size;
    int32_t contexts;    /* of each session, at most 64; 0: 3 on devices with memory of their own, else 1 */
    int32_t queue;       /* at most this many requests wait for a context; 0: as many as there are contexts, times
                            max_batch */
    double share;        /* of devices that lanes have in common, in proportion to the other lanes' while all have
                            requests of equal priority; 0: 1 */
    double max_delay_ms; /* a batch waits so long for more rows, from the submission of its first request on; 0: it is
                            made of what waits when a context is free */
    int32_t max_batch;   /* requests are put together to batches of at most so many rows; 0 or 1: each runs by itself.
                            The first dim of all outputs, and of all inputs without default, must be one and the same
                            symbol, which no other dim depends on. That rows do not depend on each other, nor on how
                            many there are, is the caller's knowledge */
    grt_padding padding;
    int32_t device_runs; /* grt_pool_create only: requests or batches that are at work on one device at a time, of all
                            lanes; 0: as many as the lane with the most contexts there has, and on devices with memory
                            of their own one more, for a lane that has used least of its share, but not beside or before
                            what has a higher priority */
} grt_pool_options;

/* Create a pool with one lane, number 0, over n sessions of one model. The caller may release the sessions before the
 * pool. options may be NULL. Without sessions (NULL, 0) it has no lane yet, and options->device_runs is all that
 * counts.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_pool_create(grt_session *const *sessions, size_t n, const grt_pool_options *options,
                                                grt_pool **out_pool);
/* Add a lane over n sessions of one model: another model, or the same for other clients. *out_lane is its number.
 * Threads: any. Errors: as grt_pool_create; CANCELLED after grt_pool_shutdown. */
GRT_API GRT_MUST_USE grt_status grt_pool_add(grt_pool *pool, grt_session *const *sessions, size_t n,
                                             const grt_pool_options *options, size_t *out_lane);
/* Finishes the requests that were submitted; they stay valid. No other thread may be inside a function of the pool. In
 * a callback of the pool, and in a child that fork() made, it does nothing. */
GRT_API void grt_pool_release(grt_pool *pool);
/* Wait until all requests that were submitted are done and their callbacks have returned. BUSY if some are not at the
 * deadline, on the clock of grt_clock_ms; 0: none.
 * Threads: any. Errors: INVALID_ARGUMENT in a callback of the pool. */
GRT_API GRT_MUST_USE grt_status grt_pool_drain(grt_pool *pool, double deadline_ms);
/* Take no more requests (CANCELLED), wait as grt_pool_drain does, cancel what is not done at the deadline, and wait for
 * that: no longer than a step of it takes. DEADLINE_EXCEEDED if something was cancelled.
 * Threads: any. Errors: as grt_pool_drain. */
GRT_API GRT_MUST_USE grt_status grt_pool_shutdown(grt_pool *pool, double deadline_ms);
/* Cancel all requests that were submitted so far. Threads: any. */
GRT_API void grt_pool_cancel(grt_pool *pool);

/* What is submitted. Zero it, set struct_size, the inputs, and what else is wanted. */
typedef struct grt_submission {
    size_t struct_size;
    size_t lane;                     /* its number */
    const grt_tensor *inputs;        /* as grt_context_set_input takes them, in the model's order; dtype NONE: the
                                        input's default */
    const grt_value *const *values;  /* in place of `inputs`: values of any kind; NULL elements: the input's default */
    size_t n_inputs;                 /* as many as the model has */
    const grt_tensor *outputs;       /* where outputs[i].dtype is not NONE, output i is written there, as with
                                        grt_context_set_output */
    size_t n_outputs;                /* at most as many as the model has */
    double deadline_ms;              /* on the clock of grt_clock_ms; 0: none. It is answered DEADLINE_EXCEEDED then,
                                        waiting or at work */
    /* Called once when the request is done, by a thread of the pool, or of grt_pool_run or grt_request_wait: it may
     * submit, cancel, ask for results and release the request. It must not wait for what its pool does: functions that
     * would are INVALID_ARGUMENT there, and a submission to a full queue is BUSY. The thread serves nobody meanwhile.
     * May be NULL. */
    void (*done)(void *user, grt_request *request);
    void *user;
    int32_t priority;                /* higher ones are served first; those at work are not interrupted */
    bool collect;                    /* grt_pool_take_done gives it back when it is done */
    /* The request runs with this state, and its inputs and outputs that are state are not given; NULL: none. Requests
     * with one state run one at a time, in the order of their submission, whatever their priorities; where they have
     * callbacks, the next begins when that has returned. They are in no batch. One that fails, is cancelled or late
     * leaves the state as grt_context_set_state says, and the next goes on from there. The state may be of any session
     * of the lane's model: the request goes to a session on its device, or, where the lane has none, takes it to
     * another device. On a device that fails the state is lost, and its requests are DEVICE. Until the last request
     * with it is done no other function may use the state (INVALID_ARGUMENT) but grt_state_release. */
    grt_state *state;
} grt_submission;

/* Queue a run. The arrays are copied; the data they point to is in use until the request is done. Waits while the
 * lane's queue is full, until the submission's deadline. The request belongs to the caller. With `done`, out_request
 * may be NULL: the callback is given the request and has to release it. A wrong tensor makes the request fail, not this
 * call.
 * Threads: any. Errors: INVALID_ARGUMENT (a wrong number of tensors); CANCELLED after grt_pool_shutdown;
 * DEADLINE_EXCEEDED; BUSY in a callback of the pool, if the queue is full. */
GRT_API GRT_MUST_USE grt_status grt_pool_submit_with(grt_pool *pool, const grt_submission *submission,
                                                     grt_request **out_request);
/* The same, but BUSY at once where the queue is full. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_pool_try_submit(grt_pool *pool, const grt_submission *submission,
                                                    grt_request **out_request);
/* grt_pool_submit_with, to lane 0, with these tensors and nothing else. Threads: any. Errors: the same. */
GRT_API GRT_MUST_USE grt_status grt_pool_submit(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs,
                                                const grt_tensor *outputs, size_t n_outputs, grt_request **out_request);
/* The same with a value for each input, NULL for the input's default: sequences and optionals too. The array is copied;
 * the values must stay alive until the request is done. No output is bound.
 * Threads: any. Errors: as grt_pool_submit. */
GRT_API GRT_MUST_USE grt_status grt_pool_submit_values(grt_pool *pool, const grt_value *const *inputs, size_t n_inputs,
                                                       grt_request **out_request);
/* Submit a request to lane 0, wait for it and release it. Outputs that are not bound are lost. Where a context is free
 * and nobody waits, the calling thread runs it, unless the context must be prepared for new dims, or the session's
 * operators have teams of threads.
 * Threads: any. Errors: as grt_pool_submit and the request's. */
GRT_API GRT_MUST_USE grt_status grt_pool_run(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs,
                                             const grt_tensor *outputs, size_t n_outputs);

/* Wait until the request is done. Returns the status of its run, with the message in the calling thread's
 * grt_last_error(). If no thread has begun with it though its turn has come, the calling thread runs it, as in
 * grt_pool_run.
 * Threads: any. Errors: as grt_context_run; CANCELLED, DEADLINE_EXCEEDED; INVALID_ARGUMENT in a callback of the pool,
 * if it is not done. */
GRT_API GRT_MUST_USE grt_status grt_request_wait(grt_request *request);
/* The same until a deadline on the clock of grt_clock_ms: BUSY if the request is not done then. 0 asks and does not
 * wait.
 * Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_request_wait_until(grt_request *request, double deadline_ms);
/* End the request: one that waits is done at once, one at work within a step (grt_context_run_with), both with
 * CANCELLED; one of a batch is done at once, and the others go on. Does not wait; does nothing if the request is done,
 * and it may still succeed if it nearly was. Memory of the caller is in use until the request is done.
 * Threads: any; not signal handlers. */
GRT_API void grt_request_cancel(grt_request *request);
/* `user` of the submission. Threads: any. */
GRT_API void *grt_request_user(const grt_request *request);
/* View of output `index` of a request that is done: the memory that was bound, or memory of the request, valid until
 * its release.
 * Threads: any. Errors: INVALID_ARGUMENT if the request is not done or has failed, or if the output is no tensor. */
GRT_API GRT_MUST_USE grt_status grt_request_get_output(grt_request *request, size_t index, grt_tensor *out_tensor);
/* The same as a value of any kind, which belongs to the request.
 * Threads: any. Errors: as grt_request_get_output; INVALID_ARGUMENT if the output was bound to memory of the caller. */
GRT_API GRT_MUST_USE grt_status grt_request_get_output_value(grt_request *request, size_t index,
                                                             const grt_value **out_value);
typedef struct grt_request_info {
    size_t struct_size; /* set by the caller */
    size_t session;     /* that ran it: its position in the array of the lane's creation */
    double queued_ms;   /* from submission to the start of the run */
    double run_ms;      /* the run, copies to and from the device included; of a batch, of all of it */
    double copy_in_ms;  /* binding inputs, and putting batches together */
    double copy_out_ms; /* copying or sharing results */
    int64_t batch_rows; /* of the batch that it was part of, padding included; 0: it ran by itself */
} grt_request_info;
/* Figures of a request that is done; 0 where it did not get that far.
 * Threads: any. Errors: INVALID_ARGUMENT if it is not done. */
GRT_API GRT_MUST_USE grt_status grt_request_get_info(grt_request *request, grt_request_info *out_info);
/* Waits until the request is done: in a callback of the pool, cancel it before. */
GRT_API void grt_request_release(grt_request *request);

/* Requests with `collect` that are done, in the order in which they were. *out_fd is readable while there are any: for
 * poll and the like; do not read it. It belongs to the pool.
 * Threads: any. Errors: UNSUPPORTED where the system has no eventfd. */
GRT_API GRT_MUST_USE grt_status grt_pool_get_fd(grt_pool *pool, int *out_fd);
/* Take one of them: the same request that was submitted, which is released once. BUSY if there is none.
 * Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_pool_take_done(grt_pool *pool, grt_request **out_request);

/* Counts of a lane since its creation. Each request that was accepted is in one of succeeded, failed, cancelled and
 * late once it is done.
 * Threads: any. Errors: INVALID_ARGUMENT. */
typedef struct grt_pool_stats {
    size_t struct_size; /* set by the caller */
    uint64_t submitted;
    uint64_t succeeded, failed, cancelled, late;
    uint64_t refused;     /* by grt_pool_try_submit: BUSY */
    uint64_t batches;     /* of several requests, or with padding */
    uint64_t batch_rows;  /* in them, without padding */
    uint64_t padded_rows; /* that were added */
    uint64_t waiting, running; /* requests, now */
} grt_pool_stats;
GRT_API GRT_MUST_USE grt_status grt_pool_get_stats(grt_pool *pool, size_t lane, grt_pool_stats *out_stats);

/* Parts of a request's time: see grt_request_info. TOTAL is from submission until it is done. */
typedef enum grt_pool_phase {
    GRT_POOL_QUEUE = 0,
    GRT_POOL_COPY_IN = 1,
    GRT_POOL_RUN = 2,
    GRT_POOL_COPY_OUT = 3,
    GRT_POOL_TOTAL = 4,
} grt_pool_phase;
/* Times of requests that succeeded. Percentiles are the limits of their buckets: at most a quarter too high.
 * Threads: any.
 * Errors: INVALID_ARGUMENT. */
enum { GRT_HISTOGRAM_BUCKETS = 130 };
typedef struct grt_histogram {
    size_t struct_size; /* set by the caller */
    uint64_t count;
    double sum_ms, max_ms;
    double p50_ms, p90_ms, p95_ms, p99_ms, p99_9_ms;
    uint64_t buckets[GRT_HISTOGRAM_BUCKETS]; /* bucket i: above the limit of bucket i - 1 */
} grt_histogram;
GRT_API GRT_MUST_USE grt_status grt_pool_get_histogram(grt_pool *pool, size_t lane, grt_pool_phase phase,
                                                       grt_histogram *out_histogram);
/* Upper limit of a bucket: from 1.024 us, four for each power of two; that of the last is infinite. Threads: any. */
GRT_API double grt_histogram_limit_ms(size_t bucket);

/* grt_context_get_replay of a context of session number `session`. Strings are valid until the pool's next request.
 * Threads: any. Errors: INVALID_ARGUMENT if no idle context of that session has run yet. */
GRT_API GRT_MUST_USE grt_status grt_pool_get_replay(grt_pool *pool, size_t session, grt_replay_info *out_info);

#ifdef __cplusplus
}
#endif
#endif

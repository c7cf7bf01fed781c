/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a pool: what one run gets and gives, in memory that belongs to no context. A request has two
 * holders: whoever submitted it, until it is released, and the pool, until it is answered and its callback
 * has returned. Requests that nobody holds are kept for the next. */
#ifndef GRT_SRC_POOL_REQUEST_H
#define GRT_SRC_POOL_REQUEST_H

#include "src/base/span.h"
#include "src/base/value.h"
#include "src/pool/queue.h"

#include <pthread.h>
#include <stdatomic.h>

struct grt_pool;
struct grt_lane;
struct grt_worker;

typedef enum grt_request_stage {
    GRT_REQUEST_WAITING = 0,
    GRT_REQUEST_AT_WORK, /* its inputs are read */
    GRT_REQUEST_BATCHED, /* its rows are in a batch: its inputs are not read any more */
    GRT_REQUEST_ENDING,  /* somebody answers it: it is too late to cancel */
} grt_request_stage;

/* Requests to be used again. It lives as long as a pool or a request has it. */
typedef struct grt_request_store {
    atomic_int refs;
    pthread_mutex_t lock;
    grt_request *free;
    size_t n_free;
} grt_request_store;

struct grt_request {
    grt_queued queued; /* first: a queued item is a request */
    grt_request_store *store;
    grt_request *next; /* in whatever list has it */
    atomic_int holders;
    /* as submitted */
    unsigned process; /* by which: grt_forked_number */
    struct grt_pool *pool;
    struct grt_lane *lane;
    grt_tensor *inputs, *outputs;
    const grt_value **values; /* in place of inputs ... */
    bool by_value;            /* ... if values were submitted */
    size_t n_inputs, n_outputs, most_inputs, most_outputs;
    void (*callback)(void *user, grt_request *request);
    void *user;
    bool collect;
    grt_state *with; /* state; NULL: none, or it was answered */
    int64_t rows;    /* that it would have in a batch; 0: it runs by itself */
    double submitted_ms;
    grt_span_request span;
    /* under the pool's lock */
    grt_request_stage stage;
    grt_request *older, *newer;   /* of those that wait in the lane */
    grt_queue *in;                /* by turn; NULL: it waits for the one before it */
    grt_request *before, *behind; /* of its state */
    struct grt_worker *worker;    /* that has it in its batch */
    grt_status verdict;           /* why it is answered before its run */
    bool again;                   /* it was at work in a process that has ended */
    atomic_bool cancelled;        /* looked at by the run */
    /* by whoever answers it */
    grt_value *results; /* of outputs that the caller did not bind */
    grt_request_info info;
    /* under the request's lock, which is taken before the pool's */
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool done;
    grt_status status;
    char *error;
};

grt_status grt_request_store_create(grt_request_store **out_store);
void grt_request_store_release(grt_request_store *store);

/* The submission's arrays are copied. */
grt_status grt_request_create(grt_request_store *store, const grt_submission *submission, size_t n_outputs,
                              grt_request **out_request);
/* The request is done: the message of a failure is the thread's. Waiters wake. */
void grt_request_finish(grt_request *request, grt_status status);
/* Waits until it is done; its status, with its message. */
grt_status grt_request_await(grt_request *request);
/* One holder less. */
void grt_request_let_go(grt_request *request);

#endif

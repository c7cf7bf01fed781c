/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a pool: what one run gets and gives, in memory that belongs to no context. */
#ifndef GRT_SRC_POOL_REQUEST_H
#define GRT_SRC_POOL_REQUEST_H

#include "src/exec/context.h"

#include <pthread.h>

struct grt_request {
    grt_request *next; /* in the queue */
    grt_tensor *inputs, *outputs;
    const grt_value **values; /* in place of inputs; NULL: tensors were submitted */
    grt_value *results;       /* of outputs that the caller did not bind */
    size_t n_inputs, n_outputs;
    /* under the request's lock */
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool done;
    grt_status status;
    char *error;
    grt_request_info info;
    double submitted_ms;
};

/* What is submitted: n_inputs tensors or values, and tensors for the first n_outputs outputs. */
typedef struct grt_submission {
    const grt_tensor *inputs, *outputs;
    const grt_value *const *values; /* NULL: inputs */
    size_t n_inputs, n_outputs;
} grt_submission;

/* The arrays are copied. n_results: outputs of the model. */
grt_status grt_request_create(const grt_submission *submission, size_t n_results, grt_request **out_request);
void grt_request_free(grt_request *request);
/* Run it in a context, keep what came of it, and tell who waits. `session`: for its report. */
void grt_request_serve(grt_request *request, grt_context *context, size_t session);

#endif
